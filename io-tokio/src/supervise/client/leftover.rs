//! Runs that a daemon left behind when it was killed.

use super::launcher::Launcher;
use super::run::{Position, Run, RunEvent};
use super::spec::Credit;
use crate::supervise::record::RunDir;
use std::fs;
use std::time::Duration;
use tokio::time::timeout;

/// Until the end of a run that is killed is no longer waited for.
const LIMIT: Duration = Duration::from_secs(10);

/// A directory that is older than this and has no run in it never gets one.
const UNFINISHED_LIMIT: Duration = Duration::from_mins(1);

impl Launcher {
    /// Kills the runs that an earlier daemon left in the runs directory and removes their directories. Gives how many agents
    /// were still at work. Runs of a daemon that lives are not touched.
    ///
    /// The server is told that these tasks are lost, and may hand them out again: an agent that goes on would work beside its
    /// successor in one directory.
    pub async fn end_leftovers(&self) -> usize {
        let mut alive = 0;
        let entries = fs::read_dir(&self.shared().runs_dir).into_iter().flatten().flatten();
        for dir in entries.map(|entry| RunDir::new(entry.path())) {
            if has_a_daemon(&dir) {
                continue;
            }
            alive += usize::from(dir.is_supervised().unwrap_or(false));
            // What it wrote so far is of interest to nobody.
            let length = |name: &str| dir.file(name).metadata().map_or(0, |meta| meta.len());
            let end = Position { stdout: length("stdout"), stderr: length("stderr") };
            let Ok(run) = self.attach(dir.path(), end, Credit::Explicit) else {
                if is_old(&dir) {
                    let _ = dir.remove();
                }
                continue;
            };
            if timeout(LIMIT, kill(run)).await.is_err() {
                tracing::error!(run = %dir.path().display(), "a run that an earlier daemon left does not end");
            } else if let Err(error) = dir.remove() {
                tracing::warn!(%error, "the directory of a run that an earlier daemon left cannot be removed");
            }
        }
        alive
    }
}

/// Whether a directory without a run is none that is being made right now.
fn is_old(dir: &RunDir) -> bool {
    let modified = dir.path().metadata().and_then(|meta| meta.modified());
    modified.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > UNFINISHED_LIMIT))
}

async fn kill(mut run: Run) {
    run.kill();
    while !matches!(run.next().await, RunEvent::Ended(_)) {}
}

/// Whether the supervisor's parent is still a daemon: a supervisor that lost it was given to another kind of process.
#[cfg(target_os = "linux")]
fn has_a_daemon(dir: &RunDir) -> bool {
    use crate::supervise::procfs::{Stat, boot_id};
    let Ok(status) = dir.status() else { return false };
    if status.boot_id != boot_id() {
        return false;
    }
    let same = |stat: &Stat| Some(stat.started) == status.supervisor.started;
    let Some(supervisor) = Stat::of(status.supervisor.pid).filter(same) else { return false };
    // Not by their names: a supervisor is started through a link to its program.
    let program = |pid: i32| fs::read_link(format!("/proc/{pid}/exe")).ok();
    program(supervisor.parent).is_some_and(|parent| Some(parent) == program(supervisor.pid))
}

/// Nothing tells.
#[cfg(not(target_os = "linux"))]
fn has_a_daemon(_dir: &RunDir) -> bool {
    true
}
