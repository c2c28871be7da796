//! One source of a trace or a log, opened and unpacked.

use super::packed::{Stream, unpacked};
use crate::trace_sink::segments;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// What standard input is called in messages.
pub(super) const STDIN: &str = "standard input";

/// Where bytes come from.
pub(in crate::trace) enum Source {
    Stdin,
    File {
        path: PathBuf,
        /// For messages.
        name: String,
    },
    Reader(String, Box<dyn Read + Send>),
}

impl Source {
    /// For messages.
    pub(in crate::trace) fn name(&self) -> String {
        match self {
            Self::Stdin => STDIN.to_owned(),
            Self::File { name, .. } | Self::Reader(name, _) => name.clone(),
        }
    }

    pub(in crate::trace) fn open(self) -> io::Result<Stream> {
        match self {
            Self::Stdin => unpacked(io::stdin()),
            Self::File { path, .. } => unpacked(File::open(path)?),
            Self::Reader(_, reader) => unpacked(reader),
        }
    }
}

/// The file, or all segments of a flight recorder's directory, oldest first; relative to `cwd`, and called as they were named.
pub(super) fn files(file: &Path, cwd: &Path) -> io::Result<Vec<Source>> {
    let path = cwd.join(file);
    if !fs::metadata(&path)?.is_dir() {
        return Ok(vec![Source::File { path, name: file.display().to_string() }]);
    }
    let files = segments(&path)?;
    if files.is_empty() {
        let error = "the directory has no segment of a flight recorder";
        return Err(io::Error::new(io::ErrorKind::NotFound, error));
    }
    let named = |path: PathBuf| {
        let name = path.strip_prefix(cwd).unwrap_or(&path).display().to_string();
        Source::File { path, name }
    };
    Ok(files.into_iter().map(named).collect())
}
