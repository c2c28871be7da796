//! Where traces come from: a file, `-` for standard input, the directory of a flight recorder, or an archive of one, each plain or packed by gzip or
//! zstd. Every command that reads traces reads through here, and `import` unpacks logs by it.
//!
//! Reading goes on past damage: what comes out is in order, and what is missing is a gap. What was wrong is kept with its place, to be told.
//! Memory is bounded by the longest line, and for an archive by what is held of it, whatever the size of the trace.

pub(super) mod archive;
#[cfg(test)]
pub(super) mod archive_tests;
#[cfg(test)]
mod dir_tests;
mod lines;
mod said;
mod source;
#[cfg(test)]
pub(crate) mod tests;

pub(super) use crate::unpack::Stream;
pub(super) use source::Source;

use lines::Lines;
use longshore_core::trace::{Header, Place, Record, Salvage, Troubles};
use source::Part;
use std::io::{self, Read, Write};
use std::path::Path;
use thiserror::Error;

/// Standard input is given out once.
pub(super) const ONCE: &str =
    "standard input can be read only once: save what it gives to a file, and name that as the other one";

/// Whether standard input is named.
pub(super) fn is_stdin(file: &Path) -> bool {
    file == Path::new("-")
}

/// Why nothing of a trace can be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Unreadable {
    /// The file or directory cannot be opened.
    #[error(
        "{name}: {error}. Name a trace file, a flight recorder's directory, a tar archive of one, or - for standard input"
    )]
    Open {
        /// As it was named.
        name: String,
        /// Why not.
        error: io::Error,
    },
    /// It has no trace.
    #[error("{told}")]
    NoTrace {
        /// Each trouble, with its place.
        told: String,
    },
}

/// The records of a trace, in order, the header of each segment included. The first one is a header.
#[derive(Debug)]
pub struct Input {
    lines: Lines,
    salvage: Salvage,
    header: Header,
    /// Whether the first header was not given out yet.
    fresh: bool,
    at: Place,
}

impl Input {
    /// Opens `file`, relative to `cwd`, and reads up to its first header. `-` is standard input.
    ///
    /// # Errors
    /// If it cannot be opened, or has no header of a version that can be read.
    pub fn open(file: &Path, cwd: &Path) -> Result<Self, Unreadable> {
        let parts =
            if is_stdin(file) { Ok(vec![Part::One(Source::Stdin)]) } else { source::files(file, cwd) };
        let named = |error| Unreadable::Open { name: file.display().to_string(), error };
        Self::begin(Lines::new(parts.map_err(named)?))
    }

    /// Reads what `source` gives. `name` is for messages.
    ///
    /// # Errors
    /// If it has no header of a version that can be read.
    pub fn of(name: &str, source: impl Read + Send + 'static) -> Result<Self, Unreadable> {
        Self::begin(Lines::new(vec![Part::One(Source::Reader(name.to_owned(), Box::new(source)))]))
    }

    fn begin(mut lines: Lines) -> Result<Self, Unreadable> {
        let mut salvage = Salvage::default();
        loop {
            if let Some((at, Record::Header(header))) = salvage.next() {
                return Ok(Self { lines, salvage, header: *header, fresh: true, at });
            }
            if !lines.advance(&mut salvage)? {
                return Err(Unreadable::NoTrace { told: said::why_none(&lines, &salvage).join("\n") });
            }
        }
    }

    /// The first header.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Where the record stands that came last.
    pub const fn place(&self) -> Place {
        self.at
    }

    /// The source of that record, for messages: a path, or `standard input`.
    pub fn source(&self) -> &str {
        self.lines.name(self.at)
    }

    /// The source of a place, for messages.
    pub fn name(&self, at: Place) -> &str {
        self.lines.name(at)
    }

    /// What is wrong with the trace, as far as it was read.
    pub const fn troubles(&self) -> &Troubles {
        self.salvage.troubles()
    }

    /// Says what is wrong with the trace as far as it was read, a line each.
    ///
    /// # Errors
    /// If `err` cannot be written to.
    pub fn say(&self, err: &mut (impl Write + ?Sized)) -> io::Result<()> {
        said::warnings(&self.lines, &self.salvage)
            .iter()
            .try_for_each(|line| writeln!(err, "warning: {line}"))
    }
}

impl Iterator for Input {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        if std::mem::take(&mut self.fresh) {
            return Some(Record::Header(Box::new(self.header.clone())));
        }
        loop {
            if let Some((at, record)) = self.salvage.next() {
                self.at = at;
                return Some(record);
            }
            // After its first header a trace can only end.
            if !self.lines.advance(&mut self.salvage).unwrap_or(false) {
                return None;
            }
        }
    }
}
