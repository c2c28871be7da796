//! A failure that is made small and written down.

use longshore_core::sim::{SimConfig, shrink};
use std::fs;
use std::path::{Path, PathBuf};

/// What is left of a failure.
#[derive(Debug)]
pub(super) struct Saved {
    file: Result<PathBuf, String>,
    steps: usize,
    faults: Vec<&'static str>,
    alone: bool,
}

/// Makes a failing world small and saves it as `<seed>.jsonl` below `dir`. `None` if it does not fail.
pub(super) fn save(cfg: &SimConfig, dir: &Path) -> Option<Saved> {
    let small = shrink(cfg)?;
    let file = dir.join(format!("{}.jsonl", cfg.seed));
    let written = small.trace().map_err(|error| error.to_string()).and_then(|trace| {
        fs::create_dir_all(dir)
            .and_then(|()| fs::write(&file, trace))
            .map_err(|error| format!("{}: {error}", file.display()))
    });
    Some(Saved {
        file: written.map(|()| file),
        steps: small.failure.script.len(),
        faults: small.faults.iter().map(|fault| fault.as_str()).collect(),
        alone: small.alone,
    })
}

impl Saved {
    /// For people.
    pub(super) fn lines(&self) -> Vec<String> {
        let faults = if self.faults.is_empty() { "none".into() } else { self.faults.join(", ") };
        let whole = if self.alone { "" } else { ", which show it only together with the world" };
        let file = match &self.file {
            Ok(file) => format!("saved as {}", file.display()),
            Err(error) => format!("not saved: {error}"),
        };
        vec![format!("faults that it needs: {faults}"), format!("{} steps{whole}; {file}", self.steps)]
    }
}
