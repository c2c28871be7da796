//! The private directory of one run that brings its control plane along.

use super::embedded::EmbeddedError;
use super::origin::{self, Origin};
use crate::config::Settings;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Random characters in its name.
const RANDOM: usize = 8;

/// A new directory that nobody else uses. It stays when the run is over: people look into it.
#[derive(Debug)]
pub(crate) struct Place {
    dir: PathBuf,
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
        let dir = made.keep();
        origin::mark(&dir).map_err(|source| failed(&dir, source))?;
        Ok(Self { dir })
    }

    /// The directory of an earlier run, which is used again. What is given back is nothing if it is none.
    pub(crate) fn of_earlier(dir: &Path) -> Option<Self> {
        let dir = dir.canonicalize().ok()?;
        let place = Self { dir };
        place.queue().is_file().then_some(place)
    }

    /// The directory that it is a copy of, if it is one. One that is none says where it is from now on.
    pub(crate) fn copy_of(&self) -> io::Result<Option<PathBuf>> {
        Ok(match origin::of(&self.dir)? {
            Origin::CopyOf(original) => Some(original),
            Origin::Own => {
                origin::mark(&self.dir)?;
                None
            }
        })
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
        self.dir.join("workspaces")
    }

    /// The daemon's log.
    pub(crate) fn log(&self) -> PathBuf {
        self.dir.join("daemon.log")
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
        let opened = OpenOptions::new().append(true).create(true).mode(0o600).open(&path);
        opened.map_err(|source| EmbeddedError::Directory { path, source })
    }

    /// Has the daemon keep all that is its own in here; what it takes from the user's home stays as it is.
    pub(crate) fn settle(&self, settings: &mut Settings) {
        let state = self.dir.join("state");
        (settings.dirs.shared, settings.dirs.profile) = (state.clone(), state);
        settings.workspaces_root = self.workspaces();
        // The paths of the work directories are printed, so they must not be of something that is gone.
        settings.keep_env_after_task = true;
    }

    /// Removes it, for a run that did not come to anything.
    pub(crate) fn discard(self) {
        // What cannot be removed is a log file; the error that is on its way to the user matters more.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
