//! A failure that is made small and written down.

use longshore_core::sim::{SimConfig, shrink_until};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// What is left of a failure.
#[derive(Debug)]
pub(super) enum Saved {
    /// It was made small, or as small as there was time for.
    Small {
        file: Result<PathBuf, String>,
        steps: usize,
        faults: Vec<&'static str>,
        alone: bool,
        stopped: bool,
    },
    /// It was stopped before the failure was there a second time.
    Stopped { seed: u64 },
}

/// Makes a failing world small until it cannot be smaller or `stop` is set, and saves it as `<seed>.jsonl` below `dir`. `None` if it does not fail.
pub(super) fn save(cfg: &SimConfig, dir: &Path, stop: &AtomicBool) -> Option<Saved> {
    let is_over = || stop.load(Ordering::Relaxed);
    let Some(small) = shrink_until(cfg, &is_over) else {
        return is_over().then_some(Saved::Stopped { seed: cfg.seed });
    };
    let file = dir.join(format!("{}.jsonl", cfg.seed));
    let written = small.trace().map_err(|error| error.to_string()).and_then(|trace| {
        fs::create_dir_all(dir)
            .and_then(|()| fs::write(&file, trace))
            .map_err(|error| format!("{}: {error}", file.display()))
    });
    Some(Saved::Small {
        file: written.map(|()| file),
        steps: small.failure.script.len(),
        faults: small.faults.iter().map(|fault| fault.as_str()).collect(),
        alone: small.alone,
        stopped: small.stopped,
    })
}

impl Saved {
    /// For people.
    pub(super) fn lines(&self) -> Vec<String> {
        match self {
            Self::Stopped { seed } => vec![format!(
                "not saved, as it was stopped before that: the same command with --seeds 1 --from {seed} shows it again"
            )],
            Self::Small { file, steps, faults, alone, stopped } => {
                let faults = if faults.is_empty() { "none".into() } else { faults.join(", ") };
                let whole = if *alone { "" } else { ", which show it only together with the world" };
                let cut = if *stopped { ", stopped before it was as small as it gets" } else { "" };
                let file = match file {
                    Ok(file) => format!("saved as {}", file.display()),
                    Err(error) => format!("not saved: {error}"),
                };
                let needs = if *stopped { "may need" } else { "needs" };
                vec![
                    format!("faults that it {needs}: {faults}"),
                    format!("{steps} steps{whole}{cut}; {file}"),
                ]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No core of ours fails, so this only says that it does.
    #[test]
    fn what_was_stopped_is_told_as_such() {
        let (file, faults) = (Ok("d/7.jsonl".into()), vec!["crash"]);
        let small = Saved::Small { file, steps: 9, faults, alone: true, stopped: true };
        let lines = [
            "faults that it may need: crash",
            "9 steps, stopped before it was as small as it gets; saved as d/7.jsonl",
        ];
        assert_eq!(small.lines(), lines);
        let lines = Saved::Stopped { seed: 7 }.lines();
        assert!(lines[0].contains("stopped before that") && lines[0].contains("--from 7 "), "{lines:?}");
    }

    #[test]
    fn a_world_that_does_not_fail_is_not_saved_and_one_that_is_stopped_says_so() {
        let (dir, cfg) = (Path::new("/nowhere"), SimConfig { steps: 200, ..SimConfig::calm(3) });
        assert!(save(&cfg, dir, &AtomicBool::new(false)).is_none());
        assert!(matches!(save(&cfg, dir, &AtomicBool::new(true)), Some(Saved::Stopped { seed: 3 })));
    }
}
