//! Runs that a daemon left behind when it was killed.

use super::error::AttachError;
use super::launcher::Launcher;
use super::run::{Position, Run, RunEvent};
use super::spec::Credit;
use super::{lost, unlaunched};
use crate::supervise::record::RunDir;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::timeout;

/// Until the end of a run that is killed is no longer waited for.
const LIMIT: Duration = Duration::from_secs(10);

/// A directory that says nothing of its daemon and is older than this has none: it is written at once.
const UNFINISHED_LIMIT: Duration = Duration::from_mins(1);

impl Launcher {
    /// Kills the runs that an earlier daemon left in the runs directory and removes their directories, apart from the
    /// directories in `kept` (paths as [`run_dir`](Self::run_dir) gives them). Gives how many agents were still at work. Runs of
    /// a daemon that lives, this one included, are not touched.
    ///
    /// The server is told that these tasks are lost, and may hand them out again: an agent that goes on would work beside its
    /// successor in one directory.
    pub async fn end_strays(&self, kept: &BTreeSet<PathBuf>) -> usize {
        let mut alive = 0;
        let entries = fs::read_dir(&self.shared().runs_dir).into_iter().flatten().flatten();
        let strays = entries.map(|entry| entry.path()).filter(|path| !kept.contains(path)).map(RunDir::new);
        for dir in strays.filter(|dir| !has_a_daemon(dir)) {
            alive += usize::from(self.end_stray(&dir).await);
        }
        alive
    }

    /// Kills the run in `dir`, if there is one, and removes the directory. Only for a run whose daemon is gone. Gives whether an agent was
    /// at work there.
    pub async fn end_left(&self, dir: impl Into<PathBuf>) -> bool {
        self.end_stray(&RunDir::new(dir)).await
    }

    /// Ends what is at work in a directory that cannot be [attached](Self::attach), as its files are damaged; whether it is gone.
    pub async fn end_unreadable(&self, dir: impl Into<PathBuf>) -> bool {
        end_unreadable(&RunDir::new(dir)).await
    }

    async fn end_stray(&self, dir: &RunDir) -> bool {
        let alive = dir.is_supervised().unwrap_or(false);
        // What it wrote so far is of interest to nobody.
        let length = |name: &str| dir.file(name).metadata().map_or(0, |meta| meta.len());
        let end = Position { stdout: length("stdout"), stderr: length("stderr") };
        let ended = match self.attach(dir.path(), end, Credit::Explicit).await {
            Ok(run) => timeout(LIMIT, kill(run)).await.is_ok(),
            Err(AttachError::NeverLaunched { .. }) => true,
            Err(AttachError::NoRun { source, .. }) => {
                tracing::warn!(run = %dir.path().display(), %source, "the run of an earlier daemon cannot be read");
                end_unreadable(dir).await
            }
        };
        if !ended {
            tracing::error!(run = %dir.path().display(), "a run that an earlier daemon left does not end");
        } else if let Err(error) = dir.remove() {
            tracing::warn!(%error, "the directory of a run that an earlier daemon left cannot be removed");
        }
        alive
    }
}

async fn kill(mut run: Run) {
    run.kill();
    while !matches!(run.next().await, RunEvent::Ended(_)) {}
}

/// Ends a run whose files say nothing that could be trusted, by what was written before it was launched; whether it is gone.
async fn end_unreadable(dir: &RunDir) -> bool {
    let dir = dir.clone();
    let ended = tokio::task::spawn_blocking(move || {
        unlaunched::kill_supervisor(&dir);
        lost::settle(&dir, "its files are damaged");
        !dir.is_supervised().unwrap_or(false)
    });
    ended.await.unwrap_or(false)
}

/// Whether the daemon that has this run, or is just about to launch it, lives.
fn has_a_daemon(dir: &RunDir) -> bool {
    match dir.owner() {
        Ok(owner) => owner.lives(),
        // Just being made, as far as one can see.
        Err(_) => !is_old(dir) && dir.status().is_err() && !dir.is_supervised().unwrap_or(false),
    }
}

fn is_old(dir: &RunDir) -> bool {
    let modified = dir.path().metadata().and_then(|meta| meta.modified());
    modified.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > UNFINISHED_LIMIT))
}
