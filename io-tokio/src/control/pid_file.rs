//! `daemon.pid`: tells people and other programs which process the daemon is. Nobody here acts upon it.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The file of a running daemon. Dropped, it is removed, unless another daemon has written its own meanwhile.
#[derive(Debug)]
pub struct PidFile {
    path: PathBuf,
    pid: u32,
}

impl PidFile {
    /// Writes the id of this process, in place of whatever was there: whoever has the port is the daemon.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(path: impl Into<PathBuf>) -> io::Result<Self> {
        let (path, pid) = (path.into(), std::process::id());
        let dir = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        fs::create_dir_all(dir)?;
        let mut file = tempfile::Builder::new()
            .prefix(".daemon-")
            .permissions(fs::Permissions::from_mode(0o644))
            .tempfile_in(dir)?;
        io::Write::write_all(&mut file, pid.to_string().as_bytes())?;
        file.persist(&path).map_err(|error| error.error)?;
        Ok(Self { path, pid })
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        remove_if_of(&self.path, self.pid);
    }
}

/// Removes the file of a process that has ended, if it is still that one's.
pub(super) fn remove_if_of(path: &Path, pid: u32) {
    if fs::read_to_string(path).is_ok_and(|text| text.trim() == pid.to_string()) {
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cli_127_the_file_says_who_runs_and_goes_with_them_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("state/daemon.pid");
        fs::create_dir(dir.path().join("state")).expect("a directory");
        fs::write(&path, "999999\n").expect("a stale one");
        let own = PidFile::write(&path).expect("written");
        assert_eq!(fs::read_to_string(&path).expect("read"), std::process::id().to_string());
        assert_eq!(fs::metadata(&path).expect("metadata").permissions().mode() & 0o777, 0o644);
        drop(own);
        assert_eq!(fs::read_dir(dir.path().join("state")).expect("listed").count(), 0);
        let own = PidFile::write(&path).expect("written");
        fs::write(&path, "1").expect("another daemon's");
        drop(own);
        assert_eq!(fs::read_to_string(&path).expect("read"), "1");
    }
}
