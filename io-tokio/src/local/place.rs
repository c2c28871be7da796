//! The private directory of one run that brings its control plane along.

use super::embedded::EmbeddedError;
use super::origin::{self, Origin};
use crate::config::Settings;
use crate::regular;
use std::cell::Cell;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Random characters in its name.
const RANDOM: usize = 8;
/// The folder in it that holds the tasks' directories.
const WORKSPACES: &str = "workspaces";
/// The daemon's log in it.
pub(super) const LOG: &str = "daemon.log";
/// The file in the folder around it that keeps version control out.
pub(super) const IGNORE: &str = ".gitignore";

/// A directory that nobody else uses. A new one is removed with this value until it is [kept](Self::keep); then it stays when the run is
/// over, as people look into it.
#[derive(Debug)]
pub(crate) struct Place {
    dir: PathBuf,
    /// The same directory, wherever it is by now.
    handle: File,
    /// Whether nothing has happened in it yet.
    is_unused: Cell<bool>,
    /// The folder around it, if that was made for it and is to go with it.
    folder: Option<PathBuf>,
}

impl Place {
    /// Makes a directory, mode 0700, whose name begins with `prefix`, below `parent`, which is made (0700) if it is missing.
    pub(crate) fn make(parent: &Path, prefix: &str) -> Result<Self, EmbeddedError> {
        let failed = |path: &Path, source| EmbeddedError::Directory { path: path.to_owned(), source };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(parent)
            .map_err(|source| failed(parent, source))?;
        // Without links in it, as workspaces roots are compared by their paths.
        let parent = parent.canonicalize().map_err(|source| failed(parent, source))?;
        let made = tempfile::Builder::new()
            .prefix(prefix)
            .rand_bytes(RANDOM)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(&parent)
            .map_err(|source| failed(&parent, source))?;
        let marked = origin::mark(made.path()).and_then(|()| File::open(made.path()));
        let handle = marked.map_err(|source| failed(made.path(), source))?;
        Ok(Self { dir: made.keep(), handle, is_unused: Cell::new(true), folder: None })
    }

    /// The directory of an earlier run, which is used again. What is given back is nothing if it is none.
    pub(crate) fn of_earlier(dir: &Path) -> Option<Self> {
        let dir = dir.canonicalize().ok()?;
        let handle = File::open(&dir).ok()?;
        let place = Self { dir, handle, is_unused: Cell::new(false), folder: None };
        place.queue().is_file().then_some(place)
    }

    /// It stays from now on.
    pub(crate) fn keep(&self) {
        self.is_unused.set(false);
    }

    /// The folder around it goes with it, if it goes and nobody else has anything in there but what version control reads.
    pub(crate) fn with_folder(mut self, folder: PathBuf) -> Self {
        self.folder = Some(folder);
        self
    }

    /// What it says of itself. One that is no copy says where it is from now on.
    pub(crate) fn origin(&self) -> io::Result<Origin> {
        let origin = origin::of(&self.dir)?;
        if origin == Origin::Own {
            origin::mark(&self.dir)?;
        }
        Ok(origin)
    }

    /// Where the directory is by now: somebody may have moved it while the run was at work. Where that cannot be told, where it was.
    pub(crate) fn now(&self) -> PathBuf {
        let own = self.handle.metadata().map(|own| (own.dev(), own.ino())).ok();
        let is_own = |dir: &Path| fs::metadata(dir).ok().map(|it| (it.dev(), it.ino())) == own;
        if own.is_none() || is_own(&self.dir) {
            return self.dir.clone();
        }
        // Linux knows the way to what is open.
        let moved = fs::read_link(format!("/proc/self/fd/{}", self.handle.as_raw_fd()));
        moved.ok().filter(|moved| is_own(moved)).unwrap_or_else(|| self.dir.clone())
    }

    /// Where a task's directory is by now. `recorded` is where it was when the task ended, which may be before the run's directory was moved.
    pub(crate) fn by_now(&self, recorded: &Path) -> PathBuf {
        let root = self.now().join(WORKSPACES);
        let of = |above: &&Path| above.file_name().is_some_and(|name| name == WORKSPACES);
        let below = recorded.ancestors().filter(of).filter_map(|above| recorded.strip_prefix(above).ok());
        below.map(|below| root.join(below)).find(|path| path.is_dir()).unwrap_or_else(|| recorded.to_owned())
    }

    /// The file that holds the run's task and all that is known of it.
    pub(crate) fn queue(&self) -> PathBuf {
        self.dir.join("queue.redb")
    }

    /// The directory.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where the tasks' directories are.
    pub(crate) fn workspaces(&self) -> PathBuf {
        self.dir.join(WORKSPACES)
    }

    /// The daemon's log.
    pub(crate) fn log(&self) -> PathBuf {
        self.dir.join(LOG)
    }

    /// Makes a directory in it.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf, EmbeddedError> {
        let path = self.dir.join(name);
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|source| EmbeddedError::Directory { path: path.clone(), source })?;
        Ok(path)
    }

    /// Makes the log's file, or goes on with the one of an earlier run.
    pub(crate) fn open_log(&self) -> Result<File, EmbeddedError> {
        let path = self.log();
        let opened = regular::open(OpenOptions::new().append(true).create(true).mode(0o600), &path);
        opened.map_err(|source| EmbeddedError::Log { path, source })
    }

    /// Has the daemon keep all that is its own in here; what it takes from the user's home stays as it is.
    pub(crate) fn settle(&self, settings: &mut Settings) {
        let state = self.dir.join("state");
        (settings.dirs.shared, settings.dirs.profile) = (state.clone(), state);
        settings.workspaces_root = self.workspaces();
        // The paths of the work directories are printed, so they must not be of something that is gone.
        settings.keep_env_after_task = true;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.is_unused.get() {
            return;
        }
        // What cannot be removed is a log file; the error that is on its way to the user matters more.
        let _ = fs::remove_dir_all(&self.dir);
        let Some(folder) = &self.folder else { return };
        let ignore = folder.join(IGNORE);
        let others = |entries: fs::ReadDir| entries.flatten().any(|entry| entry.path() != ignore);
        if fs::read_dir(folder).is_ok_and(|entries| !others(entries)) {
            let _ = fs::remove_file(ignore);
            let _ = fs::remove_dir(folder);
        }
    }
}
