//! Room on the disks before a task is prepared. Work directories and what is written down of runs may be on two of them, and a task needs both.

use super::disk::Trouble;
use super::host::Host;
use crate::service::state_dir;
use std::path::Path;

/// Whether there is room for a task's directory and for what is written down of its run.
pub(super) fn enough_space(host: &Host) -> Result<(), Trouble> {
    let Some(wanted) = host.settings.min_free_space else { return Ok(()) };
    has_space(&host.settings.workspaces_root, wanted)?;
    has_space(&state_dir(&host.settings), wanted)
}

fn has_space(mut at: &Path, wanted: u64) -> Result<(), Trouble> {
    while !at.exists() {
        let Some(parent) = at.parent() else { return Ok(()) };
        at = parent;
    }
    let Ok(disk) = rustix::fs::statvfs(at) else { return Ok(()) };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if free >= wanted {
        return Ok(());
    }
    Err(Trouble::new(format!(
        "the disk of {} has {} MiB free, less than min_free_space ({} MiB); free some space or lower the setting",
        at.display(),
        free >> 20,
        wanted >> 20
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_with_too_little_room_is_named_by_what_is_there_of_the_path() {
        let temp = tempfile::tempdir().expect("temp");
        let missing = temp.path().join("not/yet");
        assert!(has_space(&missing, 0).is_ok());
        let Err(trouble) = has_space(&missing, u64::MAX) else { panic!("so large a disk?") };
        let named = format!("the disk of {} has ", temp.path().display());
        assert!(
            trouble.text.starts_with(&named) && trouble.text.contains("min_free_space"),
            "{}",
            trouble.text
        );
    }
}
