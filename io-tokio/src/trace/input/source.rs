//! One source of a trace or a log, opened and unpacked.

use crate::trace_sink::{SegmentName, in_a_row, odd, segments};
use crate::unpack::{Stream, unpacked};
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

/// A part of a trace.
pub(super) enum Part {
    /// The whole of it, which may be an archive of segments.
    One(Source),
    /// A segment of several.
    Segment(Source),
    /// Segments that are not there between those that are, or what is called as one and cannot be read.
    Absent {
        /// Where they would be, for messages.
        name: String,
        /// Which ones, and what is the matter with them.
        what: String,
    },
}

/// The file, or all segments of a flight recorder's directory, oldest first; relative to `cwd`, and called as they were named.
pub(super) fn files(file: &Path, cwd: &Path) -> io::Result<Vec<Part>> {
    let path = cwd.join(file);
    if !fs::metadata(&path)?.is_dir() {
        return Ok(vec![Part::One(Source::File { path, name: file.display().to_string() })]);
    }
    let (files, odd) = (segments(&path)?, odd(&path)?);
    if files.is_empty() {
        let odd = odd.first().map_or_else(String::new, |(_, what)| format!(" that can be read: {what}"));
        let error = format!("the directory has no segment of a flight recorder{odd}");
        return Err(io::Error::new(io::ErrorKind::NotFound, error));
    }
    let named = |path: PathBuf| {
        let segment = path.file_name()?.to_str()?;
        let number = SegmentName::parse(segment)?.number;
        let name = file.join(segment).display().to_string();
        Some((number, Ok(Source::File { path, name })))
    };
    let odd = odd.into_iter().map(|(number, what)| (number, Err(what)));
    Ok(parts(&file.display().to_string(), files.into_iter().filter_map(named).chain(odd).collect()))
}

/// The number of a segment, and itself or what is the matter with it.
pub(super) type Numbered = (u64, Result<Source, String>);

/// Segments of one directory that is called `dir`, or what is the matter with them, by their numbers.
pub(super) fn parts(dir: &str, all: Vec<Numbered>) -> Vec<Part> {
    let part = |of: Result<Source, String>| match of {
        Ok(source) => Part::Segment(source),
        Err(what) => Part::Absent { name: dir.to_owned(), what },
    };
    in_a_row(all).into_iter().map(part).collect()
}
