//! What was found, as the core may know it: no path and no text.

use super::{Discovery, Problem};
use longshore_core::event::{Probed, Standing};
use longshore_core::id::Provider;
use sha2::{Digest, Sha256};

/// Stands for some texts: the same for the same ones in every process and on every machine, and never the same for others.
pub fn fingerprint<T: AsRef<[u8]>>(texts: impl IntoIterator<Item = T>) -> u64 {
    let mut hash = Sha256::new();
    for text in texts {
        let text = text.as_ref();
        // The lengths keep `ab, c` from `a, bc`.
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    }
    let bytes = hash.finalize();
    let mut head = [0; 8];
    head.copy_from_slice(&bytes[..8]);
    u64::from_le_bytes(head)
}

impl Discovery {
    /// How each agent CLI is; one that is not there is left out.
    pub fn standings(&self) -> Vec<Probed> {
        let works = self.agents.iter().map(|agent| Probed {
            provider: agent.provider.clone(),
            standing: Standing::Works { version: fingerprint([&agent.version_line]) },
        });
        let others = self.skipped.iter().filter_map(|skipped| {
            let standing = skipped.problem.standing()?;
            Some(Probed { provider: Provider::new(skipped.cli.provider), standing })
        });
        works.chain(others).collect()
    }
}

impl Problem {
    /// What it means; `None` if there is no such program.
    const fn standing(&self) -> Option<Standing> {
        match self {
            Self::Missing { .. } => None,
            Self::NotExecutable { .. } => Some(Standing::NotExecutable),
            Self::NoVersion { .. } | Self::Gate { .. } => Some(Standing::Unreadable),
            Self::Slow => Some(Standing::Slow),
            Self::TooOld { .. } => Some(Standing::TooOld),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_the_same_everywhere_and_knows_where_a_text_ends() {
        assert_eq!(
            fingerprint(["2.1.0 (Claude Code)"]),
            6_910_411_521_062_142_221,
            "it is compared with what traces hold"
        );
        assert_ne!(fingerprint(["2.1.0"]), fingerprint(["2.1.1"]));
        assert_ne!(fingerprint(["ab", "c"]), fingerprint(["a", "bc"]));
        assert_ne!(fingerprint(["", "a"]), fingerprint(["a"]));
    }
}
