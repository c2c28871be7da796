//! A directory held open: everything below it is reached from the handle, one name at a time, and no symbolic link
//! is followed. An agent can write where we write, so a path that was checked a moment ago proves nothing (bug 42).

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Which file it is, whatever it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    dev: u64,
    ino: u64,
}

impl Identity {
    #[allow(
        clippy::useless_conversion,
        clippy::unnecessary_cast,
        clippy::cast_sign_loss,
        reason = "the types differ between systems"
    )]
    fn of(stat: &Stat) -> Self {
        Self { dev: stat.st_dev as u64, ino: u64::from(stat.st_ino) }
    }

    /// What is at `path`, links followed.
    pub fn at(path: &Path) -> io::Result<Self> {
        Ok(Self::of(&fs::stat(path)?))
    }

    /// Which file is open here.
    pub fn of_open(file: impl AsFd) -> io::Result<Self> {
        Ok(Self::of(&fs::fstat(file)?))
    }
}

const DIR_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// An open directory, and where it was for the texts of errors.
#[derive(Debug)]
pub struct Dir {
    fd: OwnedFd,
    path: PathBuf,
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Dir {
    /// Opens a directory that is trusted as it is spelled, links included.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { fd: fs::open(path, flags, Mode::empty())?, path: path.to_owned() })
    }

    /// Where it was when it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The same directory once more.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { fd: self.fd.try_clone()?, path: self.path.clone() })
    }

    /// Which directory it is.
    pub fn identity(&self) -> io::Result<Identity> {
        Identity::of_open(&self.fd)
    }

    /// What `name` is, the link itself if it is one; `None` if there is nothing.
    pub fn kind(&self, name: impl AsRef<OsStr>) -> io::Result<Option<FileType>> {
        Ok(self.stat(name.as_ref())?.map(|stat| FileType::from_raw_mode(stat.st_mode)))
    }

    /// Which file `name` is; `None` if there is nothing.
    pub fn identity_of(&self, name: impl AsRef<OsStr>) -> io::Result<Option<Identity>> {
        Ok(self.stat(name.as_ref())?.map(|stat| Identity::of(&stat)))
    }

    pub(crate) fn stat(&self, name: &OsStr) -> io::Result<Option<Stat>> {
        match fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a directory in it; `None` if there is none. A link is `ELOOP`, anything else `ENOTDIR`.
    pub fn child(&self, name: impl AsRef<OsStr>) -> io::Result<Option<Self>> {
        let name = one_name(name.as_ref())?;
        match fs::openat(&self.fd, name, DIR_FLAGS, Mode::empty()) {
            Ok(fd) => Ok(Some(Self { fd, path: self.path.join(name) })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(self.link_or(name, error)),
        }
    }

    /// Opens a directory in it for removal, as [`super::mounts`] says; `None` if there is none.
    pub(crate) fn own_child(&self, name: impl AsRef<OsStr>) -> io::Result<Option<Self>> {
        let name = one_name(name.as_ref())?;
        match super::mounts::open_unmounted(&self.fd, name, DIR_FLAGS) {
            Ok(fd) => Ok(fd.map(|fd| Self { fd, path: self.path.join(name) })),
            Err(error) => match error.raw_os_error().map(Errno::from_raw_os_error) {
                Some(errno) => Err(self.link_or(name, errno)),
                None => Err(error),
            },
        }
    }

    /// Makes the directory if there is none; says whether it did. The mode is subject to the umask.
    pub fn make(&self, name: impl AsRef<OsStr>, mode: u32) -> io::Result<bool> {
        match fs::mkdirat(&self.fd, one_name(name.as_ref())?, mode_of(mode)) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a directory in it, made if there is none.
    pub fn ensure(&self, name: impl AsRef<OsStr>, mode: u32) -> io::Result<Self> {
        let name = name.as_ref();
        self.make(name, mode)?;
        self.child(name)?.ok_or_else(|| Errno::NOENT.into())
    }

    /// Opens a directory further down; `None` if a part is missing.
    pub fn descend(&self, below: &Path) -> io::Result<Option<Self>> {
        let mut at = self.try_clone()?;
        for part in plain_parts(below)? {
            match at.child(part)? {
                Some(next) => at = next,
                None => return Ok(None),
            }
        }
        Ok(Some(at))
    }

    /// Writes a new file; `EEXIST` if anything has that name, a dangling link included.
    pub fn create(&self, name: impl AsRef<OsStr>, bytes: &[u8], mode: u32) -> io::Result<()> {
        let name = one_name(name.as_ref())?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(fs::openat(&self.fd, name, flags, mode_of(mode))?);
        file.write_all(bytes).inspect_err(|_| {
            // A half-written file would be taken for a whole one.
            let _ = fs::unlinkat(&self.fd, name, AtFlags::empty());
        })
    }

    /// Writes a file in one step: whoever reads it sees the old text or the new one. A link is replaced, not followed.
    pub fn replace(&self, name: impl AsRef<OsStr>, bytes: &[u8], mode: u32) -> io::Result<()> {
        let name = one_name(name.as_ref())?;
        let mut temp = OsString::from(".");
        temp.push(name);
        temp.push(format!(".{}.tmp", uuid::Uuid::new_v4().simple()));
        self.create(&temp, bytes, mode)?;
        fs::renameat(&self.fd, &temp, &self.fd, name).map_err(|error| {
            let _ = fs::unlinkat(&self.fd, &temp, AtFlags::empty());
            error.into()
        })
    }

    /// Opens a regular file for reading without ever waiting for a FIFO; `None` if there is nothing.
    pub fn open_file(&self, name: impl AsRef<OsStr>) -> io::Result<Option<File>> {
        let name = one_name(name.as_ref())?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match fs::openat(&self.fd, name, flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(self.link_or(name, error)),
        };
        require_regular(&file)?;
        Ok(Some(file))
    }

    /// Reads a regular file of at most `limit` bytes; `None` if there is nothing.
    pub fn read(&self, name: impl AsRef<OsStr>, limit: u64) -> io::Result<Option<Vec<u8>>> {
        let Some(file) = self.open_file(name)? else { return Ok(None) };
        read_bounded(file, limit).map(Some)
    }

    /// What is in it, in order of name.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in fs::Dir::read_from(&self.fd)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Removes a file or the link itself; says whether there was one.
    pub fn unlink(&self, name: impl AsRef<OsStr>) -> io::Result<bool> {
        gone(fs::unlinkat(&self.fd, one_name(name.as_ref())?, AtFlags::empty()))
    }

    /// Removes an empty directory; says whether there was one.
    pub fn rmdir(&self, name: impl AsRef<OsStr>) -> io::Result<bool> {
        gone(fs::unlinkat(&self.fd, one_name(name.as_ref())?, AtFlags::REMOVEDIR))
    }

    /// Sets the mode of the directory itself, whatever the umask.
    pub fn chmod(&self, mode: u32) -> io::Result<()> {
        Ok(fs::fchmod(&self.fd, mode_of(mode))?)
    }

    fn link_or(&self, name: &OsStr, error: Errno) -> io::Error {
        match self.kind(name) {
            Ok(Some(FileType::Symlink)) => Errno::LOOP.into(),
            _ => error.into(),
        }
    }
}

/// A mode as the system's type.
#[allow(clippy::unnecessary_cast, reason = "the types differ between systems")]
pub(crate) fn mode_of(bits: u32) -> Mode {
    Mode::from_raw_mode(bits as fs::RawMode)
}

/// Reads all of an open file, or fails if that is more than `limit` bytes.
pub(crate) fn read_bounded(file: impl Read, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {limit} bytes")));
    }
    Ok(bytes)
}

pub(crate) fn require_regular(file: &File) -> io::Result<()> {
    if file.metadata()?.is_file() { Ok(()) } else { Err(io::Error::other("it is no regular file")) }
}

/// The parts of a path that goes only down: no root, no `.` or `..`.
pub(crate) fn plain_parts(path: &Path) -> io::Result<Vec<&OsStr>> {
    path.components()
        .map(|part| match part {
            Component::Normal(name) => Ok(name),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "the path does not go straight down")),
        })
        .collect()
}

fn one_name(name: &OsStr) -> io::Result<&OsStr> {
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes == b"." || bytes == b".." || bytes.contains(&b'/') {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not the name of a file"));
    }
    Ok(name)
}

fn gone(result: rustix::io::Result<()>) -> io::Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bug_42_links_are_refused_and_replaced_but_never_followed() {
        let temp = tempfile::tempdir().expect("temp");
        let victim = temp.path().join("victim");
        std::fs::create_dir(&victim).expect("victim");
        std::fs::write(victim.join("f"), "precious").expect("file");
        let base = temp.path().join("base");
        std::fs::create_dir(&base).expect("base");
        std::os::unix::fs::symlink(&victim, base.join("d")).expect("link");
        std::os::unix::fs::symlink(victim.join("f"), base.join("f")).expect("link");
        let dir = Dir::open(&base).expect("open");

        let error = dir.child("d").expect_err("a link");
        assert_eq!(error.raw_os_error(), Some(Errno::LOOP.raw_os_error()));
        assert!(dir.ensure("d", 0o755).is_err());
        assert!(dir.descend(Path::new("d/x")).is_err());
        assert!(dir.read("f", 100).is_err());
        assert!(dir.create("f", b"x", 0o644).is_err());
        dir.replace("f", b"mine", 0o600).expect("replaced");
        assert_eq!(std::fs::read(base.join("f")).expect("mine"), b"mine");
        assert_eq!(std::fs::read(victim.join("f")).expect("whole"), b"precious");
        assert_eq!(dir.names().expect("names"), ["d", "f"], "no temporary file is left");
    }

    #[test]
    fn names_that_lead_elsewhere_are_no_names() {
        let temp = tempfile::tempdir().expect("temp");
        let dir = Dir::open(temp.path()).expect("open");
        for name in ["", ".", "..", "a/b", "/etc"] {
            assert!(dir.create(name, b"", 0o600).is_err(), "{name}");
        }
        assert!(dir.descend(Path::new("../x")).is_err());
    }

    #[test]
    fn reading_is_bounded_and_never_waits() {
        let temp = tempfile::tempdir().expect("temp");
        let dir = Dir::open(temp.path()).expect("open");
        dir.create("f", b"12345", 0o600).expect("file");
        assert_eq!(dir.read("f", 5).expect("fits").as_deref(), Some(b"12345".as_slice()));
        assert!(dir.read("f", 4).is_err());
        fs::mkfifoat(&dir, "pipe", mode_of(0o600)).expect("fifo");
        assert!(dir.read("pipe", 4).is_err(), "a FIFO is an error at once");
        assert_eq!(dir.read("none", 4).expect("absent"), None);
    }
}
