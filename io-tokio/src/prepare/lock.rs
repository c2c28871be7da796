//! Who may write in an env root: a name in a file says whose it is, an advisory lock says that an execution is alive.
//!
//! Both are needed: the server may send the same task again while its first execution lives, so being the owner is no
//! proof that what is there can be wiped (#7326). The locks are `flock`s, as every daemon on the same disk must use
//! the same kind; they are tried, never waited for.

use super::beneath::{Dir, Identity, mode_of, require_regular};
use super::error::{At, PrepareError};
use super::layout::{self, LOCK, OWNER};
use longshore_core::id::EnvRoot;
use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Largest owner file that is read, in bytes; ids have at most 128.
const MAX_OWNER: u64 = 4096;

/// A held lock file. Dropping it unlocks, also for copies of the descriptor in another process.
#[derive(Debug)]
pub(crate) struct LockFile {
    file: Option<File>,
}

impl LockFile {
    /// Opens or makes `name` and locks it. `None` if somebody else holds it, or if the name was given to another file
    /// in the meantime, which means the same.
    pub(crate) fn try_take(dir: &Dir, name: &str) -> io::Result<Option<Self>> {
        Self::try_open(dir, name, OFlags::CREATE)
    }

    /// The same for a lock file that must be there already: only asking must not make one.
    pub(crate) fn try_existing(dir: &Dir, name: &str) -> io::Result<Option<Self>> {
        Self::try_open(dir, name, OFlags::empty())
    }

    fn try_open(dir: &Dir, name: &str, more: OFlags) -> io::Result<Option<Self>> {
        let flags = more | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mode = mode_of(layout::FILE);
        let file = File::from(rustix::fs::openat(dir, name, flags, mode)?);
        require_regular(&file)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let held = Self { file: Some(file) };
        let same = dir.identity_of(name)? == Some(held.identity()?);
        Ok(same.then_some(held))
    }

    fn identity(&self) -> io::Result<Identity> {
        Identity::of_open(self.file())
    }

    /// The locked file.
    pub(crate) fn file(&self) -> &File {
        self.file.as_ref().expect("open until it is left or dropped")
    }

    /// Closes the descriptor without unlocking: another process that was given a copy keeps the lock.
    pub(crate) fn leave(mut self) {
        self.file = None;
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            let _ = rustix::fs::flock(file, FlockOperation::Unlock);
        }
    }
}

/// The claim on a task's own env root: the directory, the owner's mark in it, and the lock, held by the daemon from
/// before the preparation until after the unwinding (INV-83). Dropping it releases the lock.
#[derive(Debug)]
pub struct Claim {
    dir: Dir,
    root: EnvRoot,
    parent: Dir,
    lock: LockFile,
    identity: Identity,
    leftovers: bool,
}

impl Claim {
    /// Claims `<workspaces root>/<workspace>/<task key>`, made if it is not there. Deletes nothing.
    ///
    /// Errors: [`PrepareError::Busy`] while an execution of this or another process is alive there,
    /// [`PrepareError::OtherOwner`], [`PrepareError::Unowned`], [`PrepareError::OwnerUnreadable`],
    /// [`PrepareError::InvalidId`], and those of the file system.
    pub fn take(workspaces_root: &Path, workspace_id: &str, task_id: &str) -> Result<Self, PrepareError> {
        let root = checked_root(workspace_id, task_id)?;
        std::fs::create_dir_all(workspaces_root).at("create", workspaces_root)?;
        let top = Dir::open(workspaces_root).at("open", workspaces_root)?;
        let (workspace, key) = root.as_str().split_once('/').expect("made of two names");
        let parent = top.ensure(workspace, layout::DIR).at("open", workspaces_root.join(workspace))?;
        let path = parent.path().join(key);
        let dir = parent.ensure(key, layout::PRIVATE_DIR).at("open", &path)?;
        let lock = LockFile::try_take(&dir, LOCK)
            .at("lock", path.join(LOCK))?
            .ok_or_else(|| PrepareError::Busy { root: path.clone() })?;
        let identity = dir.identity().at("look at", &path)?;
        if parent.identity_of(key).at("look at", &path)? != Some(identity) {
            return Err(PrepareError::Changed { path });
        }
        let leftovers = match owner(&dir, task_id)? {
            Owner::Mine => has_work(&dir)?,
            Owner::Nobody => {
                mark(&dir, task_id)?;
                false
            }
        };
        Ok(Self { dir, root, parent, lock, identity, leftovers })
    }

    /// Below the workspaces root: `<workspace>/<key>`.
    pub fn root(&self) -> &EnvRoot {
        &self.root
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Which directory it is.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Whether an earlier execution of the same task left something, which the preparation wipes.
    pub fn has_leftovers(&self) -> bool {
        self.leftovers
    }

    /// Gives the claim up at the end of the task. A root that nothing was made in (its task used another one) is
    /// removed while the lock is still held, so that it does not stay behind for days.
    pub fn release(self) {
        let bare = has_work(&self.dir).is_ok_and(|work| !work);
        let name = self.dir.path().file_name().unwrap_or_default();
        if bare && self.parent.identity_of(name).is_ok_and(|now| now == Some(self.identity)) {
            // Owner first: what is left if this is cut short is a root without owner or content, which anybody may claim.
            let _ = self.dir.unlink(OWNER);
            let _ = self.dir.unlink(LOCK);
            let _ = self.parent.rmdir(name);
        }
    }

    /// Closes the descriptor without unlocking, for a run that goes on without this daemon: a supervisor that was
    /// given the descriptor keeps the lock.
    pub fn leave(self) {
        self.lock.leave();
    }

    /// The locked file, to hand to a supervisor on purpose.
    pub fn lock_file(&self) -> &File {
        self.lock.file()
    }
}

/// The lock on an env root of an earlier task, taken through a handle on the workspaces root. Neither the owner's mark
/// nor anything else in it is changed. Dropping it releases the lock.
#[derive(Debug)]
pub struct PriorLock {
    dir: Dir,
    _lock: LockFile,
    identity: Identity,
}

impl PriorLock {
    /// Locks `<workspace>/<key>` below the open workspaces root; `None` if there is no such directory.
    /// [`PrepareError::Busy`] if an execution is alive there.
    pub fn try_take(workspaces_root: &Dir, below: &Path) -> Result<Option<Self>, PrepareError> {
        let path = workspaces_root.path().join(below);
        let Some(dir) = workspaces_root.descend(below).at("open", &path)? else { return Ok(None) };
        let lock = LockFile::try_take(&dir, LOCK).at("lock", path.join(LOCK))?;
        let lock = lock.ok_or_else(|| PrepareError::Busy { root: path.clone() })?;
        let identity = dir.identity().at("look at", &path)?;
        Ok(Some(Self { dir, _lock: lock, identity }))
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Which directory it is.
    pub fn identity(&self) -> Identity {
        self.identity
    }
}

/// Whose an env root is, seen by a task that may have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The task's own.
    Mine,
    /// Nobody's, and nothing is in it.
    Nobody,
}

/// Reads the owner's mark; every answer but "mine" and "nobody's and empty" is an error.
pub(crate) fn owner(dir: &Dir, task_id: &str) -> Result<Owner, PrepareError> {
    let root = || dir.path().to_owned();
    let raw = dir
        .read(OWNER, MAX_OWNER)
        .map_err(|error| PrepareError::OwnerUnreadable { root: root(), reason: error.to_string() })?;
    let text = String::from_utf8_lossy(&raw.unwrap_or_default()).trim().to_owned();
    if text == task_id {
        Ok(Owner::Mine)
    } else if !text.is_empty() {
        Err(PrepareError::OtherOwner { root: root(), owner: text.chars().take(128).collect() })
    } else if has_work(dir)? {
        Err(PrepareError::Unowned { root: root() })
    } else {
        Ok(Owner::Nobody)
    }
}

/// The ids as a place on disk.
pub(crate) fn checked_root(workspace_id: &str, task_id: &str) -> Result<EnvRoot, PrepareError> {
    layout::predicted_root(workspace_id, task_id).ok_or_else(|| {
        let (what, id) = match layout::task_key(task_id) {
            None => ("task id", task_id),
            Some(_) => ("workspace id", workspace_id),
        };
        PrepareError::InvalidId { what: what.to_owned(), id: id.chars().take(160).collect() }
    })
}

fn has_work(dir: &Dir) -> Result<bool, PrepareError> {
    let names = dir.names().at("list", dir.path())?;
    Ok(names.iter().any(|name| name != OWNER && name != LOCK))
}

/// Writes the owner's mark before anything else is made, straight into its place: a temporary name would be content
/// without owner for whoever finds it after a crash, while an empty mark beside nothing else can be claimed again.
pub(crate) fn mark(dir: &Dir, task_id: &str) -> Result<(), PrepareError> {
    let path: PathBuf = dir.path().join(OWNER);
    dir.unlink(OWNER).at("replace", &path)?;
    dir.create(OWNER, task_id.as_bytes(), layout::FILE).at("write", &path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const TASK: &str = "0197a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b";

    fn claim(root: &Path) -> Result<Claim, PrepareError> {
        Claim::take(root, "ws", TASK)
    }

    #[test]
    fn clm_1_a_first_claim_makes_directory_owner_and_lock() {
        let temp = tempfile::tempdir().expect("temp");
        let root = temp.path().join("not/yet");
        let held = claim(&root).expect("claimed");
        assert!(!held.has_leftovers());
        assert_eq!(held.root().as_str(), "ws/0c1d2e3f4a5b");
        assert_eq!(fs::read_to_string(held.path().join(OWNER)).expect("owner"), TASK);
        assert!(held.path().join(LOCK).exists());
    }

    #[test]
    fn inv_83_a_live_claim_excludes_every_other_until_it_is_dropped() {
        let temp = tempfile::tempdir().expect("temp");
        let held = claim(temp.path()).expect("claimed");
        fs::write(held.path().join("work"), "x").expect("work");
        let error = claim(temp.path()).expect_err("busy");
        assert_eq!(error.kind(), "busy");
        assert!(error.to_string().contains("held by a running execution"));
        drop(held);
        let again = claim(temp.path()).expect("free again");
        assert!(again.has_leftovers());
        assert!(again.path().join("work").exists(), "a claim deletes nothing");
    }

    #[test]
    fn clm_7_of_many_at_once_exactly_one_wins() {
        let temp = tempfile::tempdir().expect("temp");
        let barrier = std::sync::Barrier::new(8);
        let won: Vec<Option<Claim>> = std::thread::scope(|scope| {
            let tries: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        barrier.wait();
                        claim(temp.path()).ok()
                    })
                })
                .collect();
            tries.into_iter().map(|one| one.join().expect("no panic")).collect()
        });
        assert_eq!(won.iter().flatten().count(), 1);
    }

    #[test]
    fn inv_84_another_owner_or_unowned_content_is_refused_and_untouched() {
        let temp = tempfile::tempdir().expect("temp");
        let root = temp.path().join("ws/0c1d2e3f4a5b");
        fs::create_dir_all(&root).expect("root");
        fs::write(root.join("work"), "x").expect("work");
        assert_eq!(claim(temp.path()).expect_err("unowned").kind(), "unowned");
        fs::write(root.join(OWNER), "").expect("torn");
        assert_eq!(claim(temp.path()).expect_err("torn with content").kind(), "unowned");
        fs::write(root.join(OWNER), "somebody").expect("owner");
        let error = claim(temp.path()).expect_err("another owner");
        assert!(error.to_string().contains("somebody"), "{error}");
        assert_eq!(fs::read(root.join("work")).expect("whole"), b"x");
        fs::remove_file(root.join(OWNER)).expect("remove");
        fs::create_dir(root.join(OWNER)).expect("a directory");
        assert_eq!(claim(temp.path()).expect_err("unreadable").kind(), "owner_unreadable");
    }

    #[test]
    fn clm_5_a_torn_mark_beside_nothing_is_claimed_again() {
        let temp = tempfile::tempdir().expect("temp");
        let root = temp.path().join("ws/0c1d2e3f4a5b");
        fs::create_dir_all(&root).expect("root");
        fs::write(root.join(OWNER), " \n").expect("torn");
        fs::write(root.join(LOCK), "").expect("lock");
        drop(claim(temp.path()).expect("adopted"));
        assert_eq!(fs::read_to_string(root.join(OWNER)).expect("owner"), TASK);
    }

    #[test]
    fn bug_42_an_env_root_that_is_a_link_is_refused() {
        let temp = tempfile::tempdir().expect("temp");
        let victim = temp.path().join("victim");
        fs::create_dir(&victim).expect("victim");
        fs::create_dir(temp.path().join("ws")).expect("ws");
        std::os::unix::fs::symlink(&victim, temp.path().join("ws/0c1d2e3f4a5b")).expect("link");
        assert_eq!(claim(temp.path()).expect_err("a link").kind(), "symlink");
        assert_eq!(fs::read_dir(&victim).expect("list").count(), 0);
    }

    #[test]
    fn ids_that_are_no_path_component_are_refused_before_anything_is_made() {
        let temp = tempfile::tempdir().expect("temp");
        for (workspace, task) in [("../x", TASK), ("ws", "a/b"), ("ws", ""), ("", TASK), ("ws", "..")] {
            assert_eq!(Claim::take(temp.path(), workspace, task).expect_err("invalid").kind(), "invalid_id");
        }
        assert_eq!(fs::read_dir(temp.path()).expect("list").count(), 0);
    }

    #[test]
    fn releasing_removes_a_bare_root_and_leaves_one_with_work() {
        let temp = tempfile::tempdir().expect("temp");
        let held = claim(temp.path()).expect("claimed");
        let path = held.path().to_owned();
        held.release();
        assert!(!path.exists());
        let held = claim(temp.path()).expect("claimed");
        fs::create_dir(path.join("workdir")).expect("work");
        held.release();
        assert!(path.join("workdir").exists());
        drop(claim(temp.path()).expect("released"));
    }

    #[test]
    fn clm_9_and_10_a_prior_root_is_locked_once_and_a_missing_one_is_none() {
        let temp = tempfile::tempdir().expect("temp");
        fs::create_dir_all(temp.path().join("ws/key")).expect("root");
        let top = Dir::open(temp.path()).expect("open");
        let held = PriorLock::try_take(&top, Path::new("ws/key")).expect("ok").expect("there");
        let error = PriorLock::try_take(&top, Path::new("ws/key")).expect_err("busy");
        assert_eq!(error.kind(), "busy");
        drop(held);
        assert!(PriorLock::try_take(&top, Path::new("ws/key")).expect("ok").is_some());
        assert!(PriorLock::try_take(&top, Path::new("ws/none")).expect("ok").is_none());
        assert!(PriorLock::try_take(&top, Path::new("../ws")).is_err());
    }
}
