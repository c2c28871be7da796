//! The private temporary directory of a task.
//!
//! It is short, as sockets are made in it and their paths have little room (bug 40), outside of the env root, and goes
//! away with the run. A lock in it that is held for as long as the task lives says that it is in use: neither age nor
//! the server's word does (bug 39).

use crate::prepare::{Dir, Identity, LockFile, tree};
use rustix::fs::FileType;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Variable that names the directory in which all private temporary directories are made.
pub const BASE_VARIABLE: &str = "MULTICA_AGENT_TEMP_BASE";
/// What all names begin with.
pub const PREFIX: &str = "multica-task-";
/// Longest path, in bytes, that leaves room for the names of sockets in it (INV-76).
pub const MAX_PATH: usize = 80;

const LOCK: &str = ".task_lock";
/// The lock before it is published: the final name never exists unlocked while its owner starts.
const CLAIMING: &str = ".task_lock.claiming";
/// The root-level directory that is preferred: short, whatever the daemon's own `TMPDIR`.
const SHORT_BASE: &str = "/tmp";
/// How many random names are tried.
const MAX_TRIES: usize = 64;

/// Why there is no private temporary directory.
#[derive(Debug, thiserror::Error)]
pub enum TempDirError {
    /// The configured base is relative.
    #[error("{BASE_VARIABLE} must be an absolute path, and is {given:?}")]
    NotAbsolute {
        /// What it is.
        given: PathBuf,
    },
    /// Nothing can be made in the configured base.
    #[error("{BASE_VARIABLE}: create task temp dir in {}: {source}", base.display())]
    BadBase {
        /// The base.
        base: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Nothing can be made in the system's own.
    #[error("create task temp dir in {}: {source}; set {BASE_VARIABLE} to a directory that can be used", base.display())]
    Create {
        /// The base.
        base: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Without a configured base the path is too long for sockets.
    #[error(
        "task temp dir {} has {len} bytes and may have {MAX_PATH} at most; set {BASE_VARIABLE} to a shorter directory",
        path.display()
    )]
    TooLong {
        /// The path it would have.
        path: PathBuf,
        /// Its length in bytes.
        len: usize,
    },
    /// It could not be removed as a whole; the next sweep tries again.
    #[error("remove task temp dir {}: {source}", path.display())]
    Remove {
        /// The directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is not one of ours, or somebody else holds it.
    #[error("take over task temp dir {}: {reason}", path.display())]
    Adopt {
        /// The directory.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
}

/// A private temporary directory with its lock. Dropping it removes it as far as possible;
/// [`TempDir::remove`] says what was not possible.
#[derive(Debug)]
pub struct TempDir {
    base: Dir,
    name: OsString,
    dir: Dir,
    identity: Identity,
    lock: Option<LockFile>,
}

impl TempDir {
    /// Makes one, mode 0700. `base` is the value of `MULTICA_AGENT_TEMP_BASE`; nothing or blanks mean the
    /// root-level temporary directory where there is one, else the system's.
    ///
    /// A configured base is taken whatever its length (see [`TempDir::warning`]); without one a path of more than 80
    /// bytes is [`TempDirError::TooLong`].
    pub fn create(base: Option<&OsStr>) -> Result<Self, TempDirError> {
        let configured = base.map(|base| base.as_bytes().trim_ascii()).filter(|base| !base.is_empty());
        if let Some(base) = configured {
            let base = PathBuf::from(OsStr::from_bytes(base));
            if !base.is_absolute() {
                return Err(TempDirError::NotAbsolute { given: base });
            }
            return make(&base).map_err(|source| TempDirError::BadBase { base, source });
        }
        let base = default_base();
        let len = base.as_os_str().len() + 1 + PREFIX.len() + MAX_SUFFIX;
        if len > MAX_PATH {
            return Err(TempDirError::TooLong { path: base.join(PREFIX), len });
        }
        make(&base).map_err(|source| TempDirError::Create { base, source })
    }

    /// Takes over the directory of a run that outlived its daemon: locks it again. Errors if it is not one of ours or
    /// a living process holds it.
    pub fn adopt(path: &Path) -> Result<Self, TempDirError> {
        let refuse = |reason: &str| TempDirError::Adopt { path: path.to_owned(), reason: reason.to_owned() };
        let failed = |error: io::Error| refuse(&error.to_string());
        let (Some(base), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(refuse("it has no parent directory"));
        };
        if !name.as_bytes().starts_with(PREFIX.as_bytes()) {
            return Err(refuse("its name is not that of a task temp dir"));
        }
        let base = Dir::open(base).map_err(failed)?;
        let dir = base.child(name).map_err(failed)?.ok_or_else(|| refuse("it does not exist"))?;
        let lock =
            LockFile::try_existing(&dir, LOCK).map_err(failed)?.ok_or_else(|| refuse("it is in use"))?;
        let identity = dir.identity().map_err(failed)?;
        Ok(Self { base, name: name.to_owned(), dir, identity, lock: Some(lock) })
    }

    /// The directory: the value of `TMPDIR`, `TMP` and `TEMP`.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Something for the log: the path is long because of the configured base.
    pub fn warning(&self) -> Option<String> {
        let len = self.path().as_os_str().len();
        (len > MAX_PATH).then(|| {
            format!("the task temp dir has a path of {len} bytes because of {BASE_VARIABLE}; above {MAX_PATH} tools may fail to make sockets in it")
        })
    }

    /// The locked file, to hand to a supervisor on purpose.
    pub fn lock_file(&self) -> Option<&File> {
        self.lock.as_ref().map(LockFile::file)
    }

    /// Leaves the directory to a run that goes on without this daemon. The lock is not undone for a supervisor that
    /// was given it; see [`TempDir::adopt`].
    pub fn leave(mut self) -> PathBuf {
        if let Some(lock) = self.lock.take() {
            lock.leave();
        }
        self.dir.path().to_owned()
    }

    /// Releases the lock, then removes the contents, the lock file and the directory, in this order (INV-78). Links
    /// are removed and not followed. A directory that is gone already is no error. What cannot be removed stays with
    /// its lock file, for the next sweep.
    pub fn remove(mut self) -> Result<(), TempDirError> {
        let path = self.dir.path().to_owned();
        self.unlock_and_remove().map_err(|source| TempDirError::Remove { path, source })
    }

    fn unlock_and_remove(&mut self) -> io::Result<()> {
        let Some(lock) = self.lock.take() else { return Ok(()) };
        drop(lock);
        // Through the handle, which is the directory even if its name now belongs to something else.
        let emptied = empty(&self.dir);
        match self.base.identity_of(&self.name)? {
            None => emptied,
            Some(now) if now == self.identity => {
                emptied.and_then(|()| remove_emptied(&self.base, &self.name, &self.dir))
            }
            Some(_) => tree::remove(&self.base, &self.name).into_result().map(drop).and(emptied),
        }
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = self.unlock_and_remove();
    }
}

/// Digits of the largest random suffix.
const MAX_SUFFIX: usize = 10;

fn default_base() -> PathBuf {
    let short = Path::new(SHORT_BASE);
    if short.is_dir() { short.to_owned() } else { std::env::temp_dir() }
}

fn make(base: &Path) -> io::Result<TempDir> {
    let base_dir = Dir::open(base)?;
    for _ in 0..MAX_TRIES {
        let number = uuid::Uuid::new_v4().as_u128() & u128::from(u32::MAX);
        let name = OsString::from(format!("{PREFIX}{number}"));
        if !base_dir.make(&name, 0o700)? {
            continue;
        }
        return publish(&base_dir, &name).inspect_err(|_| {
            tree::remove(&base_dir, &name);
        });
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "no free name was found"))
}

fn publish(base: &Dir, name: &OsStr) -> io::Result<TempDir> {
    let gone = || io::Error::new(io::ErrorKind::NotFound, "it was removed while it was being made");
    let dir = base.child(name)?.ok_or_else(gone)?;
    dir.chmod(0o700)?;
    let lock = LockFile::try_take(&dir, CLAIMING)?.ok_or_else(gone)?;
    rustix::fs::renameat(&dir, CLAIMING, &dir, LOCK)?;
    let (base, identity) = (Dir::open(base.path())?, dir.identity()?);
    Ok(TempDir { base, name: name.to_owned(), dir, identity, lock: Some(lock) })
}

fn empty(dir: &Dir) -> io::Result<()> {
    // The agent may have taken our own permissions away.
    let _ = dir.chmod(0o700);
    tree::clear(dir, &[LOCK]).into_result().map(drop)
}

fn remove_emptied(base: &Dir, name: &OsStr, dir: &Dir) -> io::Result<()> {
    dir.unlink(LOCK)?;
    base.rmdir(name).map(drop).inspect_err(|_| {
        // Without its mark no sweep would know that it is dead.
        let _ = dir.create(LOCK, b"", 0o644);
    })
}

/// What a sweep did.
#[derive(Debug, Default)]
pub struct Swept {
    /// Directories of dead tasks that were removed.
    pub removed: u64,
    /// Bytes of the files that are gone.
    pub bytes: u64,
    /// Directories without a lock that were kept; they are removed only if a time to live for them is set.
    pub kept_legacy: u64,
    /// Dead directories that could not be removed as a whole.
    pub failed: u64,
}

enum State {
    InUse,
    Legacy,
    Dead,
}

/// Removes the temporary directories of tasks that are dead: those whose lock is free. Of directories without any lock
/// only those go that are older than `legacy_ttl`, have something in them, and are still without one at the last
/// moment. Links and files are never touched, whatever their name.
///
/// `base` as in [`TempDir::create`]. A base that is not there has nothing to sweep.
pub fn sweep(base: Option<&OsStr>, legacy_ttl: Option<Duration>, now: SystemTime) -> io::Result<Swept> {
    let configured = base.map(|base| base.as_bytes().trim_ascii()).filter(|base| !base.is_empty());
    let base = configured.map_or_else(default_base, |base| PathBuf::from(OsStr::from_bytes(base)));
    let mut swept = Swept::default();
    let base = match Dir::open(&base) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(swept),
        opened => opened?,
    };
    for name in base.names()? {
        let Some(dir) = candidate(&base, &name) else { continue };
        match state(&dir) {
            State::InUse => continue,
            State::Dead => {}
            State::Legacy => {
                let is_old =
                    legacy_ttl.filter(|ttl| !ttl.is_zero()).is_some_and(|ttl| is_older(&dir, now, ttl));
                if !is_old || !matches!(state(&dir), State::Legacy) {
                    swept.kept_legacy += 1;
                    continue;
                }
            }
        }
        let _ = dir.chmod(0o700);
        let removed = tree::clear(&dir, &[LOCK]);
        swept.bytes += removed.bytes;
        if removed.is_complete() && remove_emptied(&base, &name, &dir).is_ok() {
            swept.removed += 1;
        } else {
            swept.failed += 1;
        }
    }
    Ok(swept)
}

/// A directory with one of our names that belongs to our user.
fn candidate(base: &Dir, name: &OsStr) -> Option<Dir> {
    if !name.as_bytes().starts_with(PREFIX.as_bytes()) {
        return None;
    }
    let stat = base.stat(name).ok()??;
    let is_dir = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    if !is_dir || stat.st_uid != rustix::process::geteuid().as_raw() {
        return None;
    }
    base.child(name).ok()?
}

fn state(dir: &Dir) -> State {
    match dir.kind(LOCK) {
        Ok(None) => State::Legacy,
        Err(_) => State::InUse,
        Ok(Some(_)) => match LockFile::try_existing(dir, LOCK) {
            Ok(Some(_released_at_once)) => State::Dead,
            _ => State::InUse,
        },
    }
}

/// Whether the newest thing in it is older than `ttl`; an empty one, or one that is just being made, is not.
fn is_older(dir: &Dir, now: SystemTime, ttl: Duration) -> bool {
    let Ok(names) = dir.names() else { return false };
    let mut newest = None;
    for name in names.iter().filter(|name| *name != LOCK && *name != CLAIMING) {
        let Ok(modified) = std::fs::symlink_metadata(dir.path().join(name)).and_then(|meta| meta.modified())
        else {
            return false;
        };
        newest = newest.max(Some(modified));
    }
    newest.and_then(|newest| now.duration_since(newest).ok()).is_some_and(|age| age > ttl)
}

#[cfg(test)]
#[path = "tempdir_tests.rs"]
mod tests;
