//! A file that has no name until it is whole.

use nix::sys::signal::{SigSet, SigmaskHow};
use std::fs::{File, Permissions};
use std::io::{self, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::NamedTempFile;

/// A file without a name, on the file system where it gets one. Dropped, it is gone, and so it is when the process ends in whatever way.
#[derive(Debug)]
pub(super) struct Unnamed(File);

impl Unnamed {
    /// Makes one, mode 0600, for this name.
    pub(super) fn beside(path: &Path) -> io::Result<Self> {
        let file = tempfile::tempfile_in(dir_of(path))?;
        file.set_permissions(Permissions::from_mode(0o600))?;
        Ok(Self(file))
    }

    /// Gives it its name, at once.
    ///
    /// # Errors
    /// `AlreadyExists` if something has this name; the file is gone then.
    pub(super) fn name(mut self, path: &Path) -> io::Result<()> {
        match self.link(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => self.copy(path),
            done => done,
        }
    }

    /// Links the file itself. That needs a file that never had a name, and `/proc`.
    #[cfg(target_os = "linux")]
    fn link(&self, path: &Path) -> io::Result<()> {
        use rustix::fs::{AtFlags, CWD, linkat};
        use std::os::fd::AsRawFd;
        let open = format!("/proc/self/fd/{}", self.0.as_raw_fd());
        Ok(linkat(CWD, open, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
    }

    #[cfg(not(target_os = "linux"))]
    fn link(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Where it cannot be linked: a copy that is renamed. No signal ends the process meanwhile, so that only `kill -9` in this moment leaves a
    /// file under another name.
    fn copy(&mut self, path: &Path) -> io::Result<()> {
        let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let copied = (|| {
            let mut copy = NamedTempFile::new_in(dir_of(path))?;
            self.0.rewind()?;
            io::copy(&mut self.0, &mut copy)?;
            copy.persist_noclobber(path)?;
            Ok(())
        })();
        before.thread_set_mask()?;
        copied
    }
}

impl Write for Unnamed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn dir_of(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn names(dir: &Path) -> usize {
        fs::read_dir(dir).expect("lists").count()
    }

    /// Either way of giving it its name, also over a file that is there.
    #[test]
    fn linked_or_copied_it_is_the_same_and_nothing_is_written_over() {
        let dir = tempfile::tempdir().expect("temp");
        let made = || {
            let mut file = Unnamed::beside(&dir.path().join("x")).expect("made");
            file.write_all(b"text").expect("written");
            file
        };
        for (nth, copied) in [false, true].into_iter().enumerate() {
            let path = dir.path().join(nth.to_string());
            let mut file = made();
            assert_eq!(names(dir.path()), nth, "it has no name yet");
            if copied { file.copy(&path) } else { file.name(&path) }.expect("named");
            assert_eq!(fs::read(&path).expect("reads"), b"text");
            assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
            fs::write(&path, "mine").expect("writes");
            let mut late = made();
            let refused = if copied { late.copy(&path) } else { late.name(&path) }.expect_err("it is there");
            assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(fs::read(&path).expect("reads"), b"mine");
            assert_eq!(names(dir.path()), nth + 1);
        }
        let open = SigSet::thread_get_mask().expect("a mask");
        assert!(!open.contains(nix::sys::signal::Signal::SIGINT), "signals come through again");
    }
}
