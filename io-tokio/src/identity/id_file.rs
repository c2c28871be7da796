//! The file `daemon.id`: a UUID and a line end, in the state directory that all profiles share.

use super::is_id;
use crate::config::StateDirs;
use crate::prepare::beneath::require_regular;
use rustix::fs::{FlockOperation, OFlags, flock};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use thiserror::Error;
use uuid::Uuid;

const FILE: &str = "daemon.id";
/// A longer file is no id.
const MAX_BYTES: u64 = 256;
/// Profiles looked at for earlier ids.
const MAX_PROFILES: usize = 1_000;

/// The daemon's id cannot be told.
#[derive(Debug, Error)]
pub enum IdentityError {
    /// The file is there and cannot be read.
    #[error("cannot read the daemon id in {}: {source}; make the file readable, or give an id with --daemon-id", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is no id yet and none can be written.
    #[error("cannot write a daemon id to {}: {source}; make the directory writable, or give an id with --daemon-id", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The id in the shared state directory. If there is no usable one, that of the profile in use or else a new one is
/// written there. Of daemons that start at the same time, one writes.
pub(super) fn read_or_make(dirs: &StateDirs) -> Result<String, IdentityError> {
    let path = dirs.shared.join(FILE);
    if let Some(id) = read(&path)? {
        return Ok(id);
    }
    let failed = |source| IdentityError::Write { path: path.clone(), source };
    DirBuilder::new().recursive(true).mode(0o755).create(&dirs.shared).map_err(failed)?;
    let directory = File::open(&dirs.shared).map_err(failed)?;
    // A file system without locks must not keep the daemon from starting: then the last writer wins.
    let _ = flock(&directory, FlockOperation::LockExclusive);
    if let Some(id) = read(&path)? {
        return Ok(id);
    }
    let inherited = if dirs.profile == dirs.shared { None } else { read(&dirs.profile.join(FILE))? };
    let id = inherited.unwrap_or_else(|| Uuid::now_v7().to_string());
    write(&dirs.shared, &path, &id).map_err(failed)?;
    Ok(id)
}

/// Ids that older versions kept in each profile.
pub(super) fn ids_of_profiles(shared: &Path) -> Vec<String> {
    let Ok(profiles) = fs::read_dir(shared.join("profiles")) else { return Vec::new() };
    let files = profiles.flatten().take(MAX_PROFILES).map(|profile| profile.path().join(FILE));
    files.filter_map(|file| read(&file).ok().flatten()).map(|id| id.to_ascii_lowercase()).collect()
}

/// The id in a file; `None` if there is no file or no id in it.
fn read(path: &Path) -> Result<Option<String>, IdentityError> {
    let read = || -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // A FIFO would be waited for without an end.
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = File::options().read(true).custom_flags(flags).open(path)?;
        require_regular(&file)?;
        file.take(MAX_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    match read() {
        Ok(bytes) => Ok(String::from_utf8(bytes).ok().map(|t| t.trim().to_owned()).filter(|t| is_id(t))),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(IdentityError::Read { path: path.to_owned(), source }),
    }
}

/// All or nothing: a reader sees no half of an id. The temporary file has mode 0600 from its begin.
fn write(directory: &Path, path: &Path, id: &str) -> io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(".daemon-id-").suffix(".tmp").tempfile_in(directory)?;
    file.write_all(format!("{id}\n").as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}
