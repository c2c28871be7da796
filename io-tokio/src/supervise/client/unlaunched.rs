//! Directories in which no agent was started, as far as one can see.
//!
//! Who holds the lock on `alive` decides what becomes of such a directory: a supervisor takes it before it starts anything
//! and then looks whether the file is still there; a daemon that gives the launch up takes it and removes the file.

use crate::regular;
use crate::supervise::record::{RunDir, Status};
use std::fs::{self, File};
use std::io;

/// What a directory holds.
pub(super) enum Found {
    /// A run; without a status where it failed before there was one and has a record only.
    Run(Option<Box<Status>>),
    /// A supervisor is in the middle of its launch.
    Launching,
    /// No agent was started, and from now on none can be.
    Nothing,
}

/// All that a launch that got nowhere may leave.
const FILES: [&str; 10] = [
    "prompt",
    "alive",
    "owner.json",
    "owner.json.new",
    "status.json.new",
    "exit.json.new",
    "stdout",
    "stderr",
    "control",
    "stdin",
];

/// Looks at a directory, and gives a launch in it up for good if nobody is at it.
pub(super) fn look(dir: &RunDir) -> io::Result<Found> {
    if let Some(run) = run(dir)? {
        return Ok(run);
    }
    let alive = match regular::open(File::options().read(true), &dir.file("alive")) {
        Ok(alive) => Some(alive),
        // It is made before the order to launch is given.
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    if let Some(alive) = &alive {
        match alive.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Ok(Found::Launching),
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
        // The supervisor may have come and gone since the first look.
        if let Some(run) = run(dir)? {
            return Ok(run);
        }
    }
    give_up(dir)?;
    drop(alive);
    Ok(Found::Nothing)
}

fn run(dir: &RunDir) -> io::Result<Option<Found>> {
    match dir.status() {
        Ok(status) => Ok(Some(Found::Run(Some(Box::new(status))))),
        // A launch that failed before there was a status has a record all the same.
        Err(error) => match dir.exit() {
            Ok(Some(_)) => Ok(Some(Found::Run(None))),
            Ok(None) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Ok(None) => Err(error),
            Err(error) => Err(error),
        },
    }
}

/// Removes what a launch left, `alive` first. Touches nothing where there is a file that is not ours.
fn give_up(dir: &RunDir) -> io::Result<()> {
    let entries = match fs::read_dir(dir.path()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    for entry in entries {
        let name = entry?.file_name();
        if !FILES.iter().any(|file| name == *file) {
            let text = format!("it has no status.json, and {} in it is no file of a run", name.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
    }
    match fs::remove_file(dir.file("alive")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // What is left of it from here on is no launch any more, and whoever comes next removes it.
    if let Err(error) = dir.remove() {
        tracing::warn!(run = %dir.path().display(), %error, "a directory that no run has is left behind");
    }
    Ok(())
}

/// Kills a supervisor that hangs in its launch; the kernel kills the helper with it.
#[cfg(target_os = "linux")]
pub(super) fn kill_supervisor(dir: &RunDir) {
    use crate::supervise::{procfs, tree};
    if let Ok(owner) = dir.owner()
        && let Some(stat) = procfs::living(&owner.supervisor, owner.boot_id.as_deref())
    {
        tracing::warn!(run = %dir.path().display(), "a supervisor hangs in its launch and is killed");
        tree::signal_same(&stat, rustix::process::Signal::KILL);
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn kill_supervisor(_dir: &RunDir) {}
