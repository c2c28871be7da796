//! Frees a directory, or what of it can be made again.
//!
//! The core has reserved it, so no task of this daemon is in it. Another daemon may share the disk: the directory's own lock is tried first, held
//! until the end, and one that is locked is left alone. No link is followed, and a directory without a daemon's mark is not touched.

use super::look::{self, MANAGED, is_marked};
use super::policy::Verdict;
use crate::prepare::layout::LOCK;
use crate::prepare::{Dir, LockFile, layout, tree};
use longshore_core::id::EnvRoot;
use rustix::fs::FileType;
use std::io;
use std::path::Path;

/// Where directories go before they are removed, below the workspaces root: a task that comes meanwhile finds nothing in the way.
pub(super) const TRASH: &str = ".longshore-trash";
/// How deep is looked for what can be made again.
const MAX_DEPTH: usize = 48;

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freed {
    /// Bytes of the files that are gone.
    pub bytes: u64,
    /// Entries that are gone.
    pub entries: u64,
    /// Entries that could not be removed.
    pub failed: u64,
}

/// Why nothing was freed.
#[derive(Debug, thiserror::Error)]
pub enum FreeError {
    /// Somebody works in it.
    #[error("it is in use")]
    InUse,
    /// No daemon has made it.
    #[error("it has no mark of a daemon; remove it by hand if it is not needed")]
    NotOurs,
    /// The file system does not let us.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Frees as much of `root` as the verdict says. One that is gone is done.
///
/// # Errors
/// See [`FreeError`]. What could not be removed of it is no error: it is counted, and there for the next time.
pub fn free(
    workspaces_root: &Path,
    root: &EnvRoot,
    verdict: Verdict,
    patterns: &[String],
) -> Result<Freed, FreeError> {
    let mut freed = Freed::default();
    let top = Dir::open(workspaces_root)?;
    let Some((above, dir)) = look::open(&top, root)? else { return Ok(freed) };
    if verdict == Verdict::Keep {
        return Ok(freed);
    }
    if !is_marked(&dir) {
        return Err(FreeError::NotOurs);
    }
    let lock = LockFile::try_take(&dir, LOCK)?.ok_or(FreeError::InUse)?;
    match verdict {
        Verdict::Keep => {}
        Verdict::Managed => freed.managed(&dir)?,
        Verdict::Artifacts => {
            freed.managed(&dir)?;
            freed.artifacts(&dir, patterns, 0);
        }
        Verdict::All => freed.all(&top, &above, &dir)?,
    }
    drop(lock);
    Ok(freed)
}

impl Freed {
    fn add(&mut self, removed: &tree::Removed) {
        self.bytes += removed.bytes;
        self.entries += removed.entries;
        self.failed += removed.failed;
        if let Some((path, error)) = removed.failures.first() {
            tracing::warn!(path = %path.display(), "the collector cannot remove it: {error}");
        }
    }

    fn all(&mut self, top: &Dir, above: &Dir, dir: &Dir) -> io::Result<()> {
        let name = dir.path().file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let identity = dir.identity()?;
        let trash = top.ensure(TRASH, layout::PRIVATE_DIR)?;
        let away = uuid::Uuid::new_v4().simple().to_string();
        match rustix::fs::renameat(above, name, &trash, &away) {
            Ok(()) if trash.identity_of(&away)? == Some(identity) => {
                self.add(&tree::remove(&trash, &away));
            }
            Ok(()) => {
                // Another directory had got its name since: it goes back where it was.
                rustix::fs::renameat(&trash, &away, above, name)?;
                return Err(io::Error::other("it was exchanged while it was being removed"));
            }
            // Another file system begins at the workspace.
            Err(rustix::io::Errno::XDEV) => self.add(&tree::remove(above, name)),
            Err(error) => return Err(error.into()),
        }
        // It stays if there is something in it. So does the workspace's in any case: a task may just be about to make its own there.
        match top.rmdir(TRASH) {
            Err(error) if !tree::is_not_empty(&error) => Err(error),
            _ => Ok(()),
        }
    }

    fn managed(&mut self, dir: &Dir) -> io::Result<()> {
        if let Some(home) = look::managed(dir)? {
            self.add(&tree::remove(&home, MANAGED));
        }
        Ok(())
    }

    /// Removes what is called like something that can be made again, wherever it is, but not in the files of git, and never by way of a link.
    fn artifacts(&mut self, dir: &Dir, patterns: &[String], depth: usize) {
        let Ok(names) = dir.names() else { return };
        for name in names {
            if name == ".git" || !matches!(dir.kind(&name), Ok(Some(FileType::Directory))) {
                continue;
            }
            if patterns.iter().any(|pattern| name == **pattern) {
                self.add(&tree::remove(dir, &name));
            } else if depth < MAX_DEPTH
                && let Ok(Some(below)) = dir.child(&name)
            {
                self.artifacts(&below, patterns, depth + 1);
            }
        }
    }
}

#[cfg(test)]
#[path = "free_tests.rs"]
mod tests;
