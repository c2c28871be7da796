//! The lock: one file for each pair of server and daemon id, for all profiles of a user.
//!
//! The file is never removed, so that whoever has it open and whoever opens it next mean the same one. It is closed on exec: a supervisor that
//! outlives its daemon does not hold it.

use crate::config::Settings;
use crate::config::server_url;
use crate::identity::{self, Identity};
use crate::remedy;
use rustix::fs::OFlags;
use sha2::{Digest, Sha256};
use std::fmt::{self, Write as _};
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use thiserror::Error;

/// Below the state directory that all profiles share.
const FOLDER: &str = "longshore/owners";
/// Bytes of the hash that name the file.
const NAME: usize = 16;
/// How long the lock is tried for. A daemon that is just ending, or that was killed between the fork and the exec of a child, gives it back in
/// much less.
const PATIENCE: Duration = Duration::from_millis(250);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(10);
/// What is read of a holder's words.
const MAX_WORDS: u64 = 200;

/// The right to serve a server as this daemon. It lasts until it is dropped or the process ends.
#[derive(Debug)]
pub struct Owner {
    _file: File,
}

/// Why a daemon must not serve.
#[derive(Debug, Error)]
pub enum OwnerError {
    /// Somebody does already.
    #[error(
        "a daemon with the id {daemon_id} serves {server} already: {holder}. Stop it first, or give this one an id of its own with --daemon-id"
    )]
    Taken {
        /// The server, as it was configured here.
        server: String,
        /// The id that both have.
        daemon_id: String,
        /// Who it is.
        holder: Holder,
    },
    /// Nobody can tell whether somebody does.
    #[error(
        "{} cannot be locked: {source}. Without that lock nothing keeps a second daemon from taking the tasks of this one, so it does not \
         start: {}",
        path.display(), remedy::for_directory(source)
    )]
    Lock {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// What the holder of a lock says of itself. It is for people only: the words may be old, or of somebody else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder(String);

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "a process that has not said which one it is" } else { &self.0 })
    }
}

impl Owner {
    /// Takes the right, and writes into the file who has it. Waits for up to a quarter of a second while somebody else has it.
    ///
    /// # Errors
    /// See [`OwnerError`].
    pub fn take(settings: &Settings, identity: &Identity) -> Result<Self, OwnerError> {
        let (shared, server) = (&settings.dirs.shared, &settings.server_url);
        let path = shared.join(FOLDER).join(file_name(server, &identity.daemon_id));
        let failed = |source| OwnerError::Lock { path: path.clone(), source };
        make_folder(shared, &path).map_err(failed)?;
        let begun = Instant::now();
        loop {
            let mut file = open(&path).map_err(failed)?;
            match file.try_lock() {
                Ok(()) if is_in_place(&file, &path) => {
                    // The words are for people: a full disk must not keep the daemon from serving.
                    if let Err(error) = sign(&mut file, settings) {
                        tracing::debug!(%error, path = %path.display(), "the owner's name could not be written down");
                    }
                    return Ok(Self { _file: file });
                }
                // Somebody has removed it, and others may have made another one.
                Ok(()) if begun.elapsed() < PATIENCE => {}
                Ok(()) => return Err(failed(io::Error::other("it is removed again and again"))),
                Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => {
                    return Err(OwnerError::Taken {
                        server: server.clone(),
                        daemon_id: identity.daemon_id.clone(),
                        holder: holder(&mut file),
                    });
                }
                Err(TryLockError::Error(source)) => return Err(failed(source)),
            }
        }
    }
}

/// The name says nothing of server and id, which may be anything.
fn file_name(server: &str, daemon_id: &str) -> String {
    let of = format!("{}\n{}", server_url::place(server), daemon_id.to_ascii_lowercase());
    let mut name = String::with_capacity(2 * NAME + 5);
    for byte in &Sha256::digest(of)[..NAME] {
        // Writing to a string does not fail.
        let _ = write!(name, "{byte:02x}");
    }
    name + ".lock"
}

fn make_folder(shared: &Path, path: &Path) -> io::Result<()> {
    // As whoever logs in makes it.
    DirBuilder::new().recursive(true).mode(0o755).create(shared)?;
    let folder = path.parent().unwrap_or(shared);
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn open(path: &Path) -> io::Result<File> {
    // A link would lead to a file of something else, and a FIFO would be waited for.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(flags)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    Ok(file)
}

/// Whether the file that was locked is the one that others find.
fn is_in_place(file: &File, path: &Path) -> bool {
    let same = |ours: std::fs::Metadata, theirs: std::fs::Metadata| {
        (ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino())
    };
    file.metadata().is_ok_and(|ours| path.symlink_metadata().is_ok_and(|theirs| same(ours, theirs)))
}

/// Whoever looks in between finds nothing, not the words of the one before.
fn sign(file: &mut File, settings: &Settings) -> io::Result<()> {
    file.set_len(0)?;
    let since = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    // A home directory may be that of several machines.
    let (id, profile, host) = (std::process::id(), &settings.profile, identity::host_name());
    file.write_all(format!("process {id}, profile {profile}, since {since}, on {host}\n").as_bytes())
}

fn holder(file: &mut File) -> Holder {
    let mut bytes = Vec::new();
    // What cannot be read is not told.
    let _ = file.take(MAX_WORDS).read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().next().unwrap_or_default();
    Holder(line.chars().filter(|c| !c.is_control()).collect::<String>().trim().to_owned())
}

#[cfg(test)]
#[path = "lock_tests.rs"]
mod tests;
