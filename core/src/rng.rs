//! The core's only source of chance: a small seeded generator held in the state, so that a trace replays bit by bit.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What the generator starts from; written to the trace's header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seed(pub u64);

/// splitmix64: one word of state, good enough for jitter, and not for anything secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: Seed) -> Self {
        Self(seed.0)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A whole number of milliseconds in `[0, limit)`; zero for a zero limit.
    pub(crate) fn below(&mut self, limit: Duration) -> Duration {
        let ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        if ms == 0 { Duration::ZERO } else { Duration::from_millis(self.next() % ms) }
    }

    /// `d` changed by at most `permille` thousandths of it, either way.
    pub(crate) fn jitter(&mut self, d: Duration, permille: u32) -> Duration {
        let span = d * permille / 1000;
        (d.saturating_sub(span)) + self.below(span * 2 + Duration::from_millis(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_stays_within_its_bounds() {
        let mut rng = Rng::new(Seed(7));
        let base = Duration::from_secs(10);
        for _ in 0..1000 {
            let d = rng.jitter(base, 200);
            assert!((Duration::from_secs(8)..=Duration::from_secs(12)).contains(&d), "{d:?}");
        }
        assert_eq!(rng.below(Duration::ZERO), Duration::ZERO);
    }
}
