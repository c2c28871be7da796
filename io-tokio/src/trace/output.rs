//! A file that a trace command writes: there is nothing of it, or all of it, and it never replaces another.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use thiserror::Error;

/// Why a file cannot be written.
#[derive(Debug, Error)]
#[error("{} cannot be written: {error}", path.display())]
pub(super) struct Unwritten {
    path: PathBuf,
    error: io::Error,
}

/// A file under another name, until it is kept. Its mode is 0600.
#[derive(Debug)]
pub(super) struct NewFile {
    path: PathBuf,
    file: BufWriter<NamedTempFile>,
}

impl NewFile {
    /// Begins a file that is not there yet.
    pub(super) fn create(path: &Path) -> Result<Self, Unwritten> {
        let failed = |error| Unwritten { path: path.to_owned(), error };
        if fs::symlink_metadata(path).is_ok() {
            return Err(failed(taken()));
        }
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let file = NamedTempFile::new_in(dir).map_err(failed)?;
        Ok(Self { path: path.to_owned(), file: BufWriter::new(file) })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Unwritten> {
        self.file.write_all(bytes).map_err(|error| Unwritten { path: self.path.clone(), error })
    }

    /// Gives it its name.
    pub(super) fn keep(self) -> Result<PathBuf, Unwritten> {
        let path = self.path;
        let kept = self.file.into_inner().map_err(io::IntoInnerError::into_error).and_then(|file| {
            file.persist_noclobber(&path).map_err(|error| match error.error.kind() {
                io::ErrorKind::AlreadyExists => taken(),
                _ => error.error,
            })
        });
        match kept {
            Ok(_) => Ok(path),
            Err(error) => Err(Unwritten { path, error }),
        }
    }
}

fn taken() -> io::Error {
    io::Error::new(
        io::ErrorKind::AlreadyExists,
        "it exists already; name a file that does not, or move it away",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    #[test]
    fn a_file_that_is_there_stays_as_it_is() {
        let dir = TempDir::new().expect("temp");
        let path = dir.path().join("x");
        let mut new = NewFile::create(&path).expect("begins");
        new.write(b"new").expect("writes");
        assert!(!path.exists(), "it is not there before it is whole");
        fs::write(&path, "other").expect("writes");
        let error = new.keep().expect_err("somebody was faster").to_string();
        assert!(error.ends_with("name a file that does not, or move it away"), "{error}");
        NewFile::create(&path).expect_err("it is there");
        assert_eq!(fs::read_to_string(&path).expect("reads"), "other");
        assert_eq!(fs::read_dir(dir.path()).expect("lists").count(), 1, "nothing is left behind");
    }
}
