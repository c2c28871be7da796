//! Reads a trace, line by line.
//!
//! Whoever recorded may have been killed in the middle of a line, so a last line without its end is no error: the reader
//! says that it is there and stops before it. Fields that it does not know are ignored; kinds of record, of event and of effect
//! that it does not know are errors, because what follows cannot be understood without them.

use super::format::{Checkpoint, FORMAT, Header, Record, StepNumber, Version};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::io::{self, BufRead, Read};
use thiserror::Error;

/// Longest line that is read, in bytes. A checkpoint of 10 000 runtimes with 1 000 tasks is a tenth of it.
pub const MAX_LINE: usize = 64 * 1024 * 1024;

/// A trace that cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The source failed.
    #[error("line {line}: cannot be read: {error}")]
    Io {
        /// At this line, from 1.
        line: u64,
        /// How.
        error: io::Error,
    },
    /// There is not even a whole first line.
    #[error("there is no complete first line: the recording ended before it began")]
    Empty,
    /// The first line is something else.
    #[error("line 1 is not the header of a trace: {error}")]
    NoHeader {
        /// Why it is not.
        error: serde_json::Error,
    },
    /// A version that this reader does not know.
    #[error(
        "line {line}: the trace has format {found}, and this program reads {}.0 to {FORMAT}: use the version that recorded it", FORMAT.major
    )]
    Version {
        /// At this line.
        line: u64,
        /// Version of the file.
        found: Version,
    },
    /// A kind of record that this reader does not know.
    #[error("line {line}: `{kind}` is no kind of record in format {FORMAT}")]
    Kind {
        /// At this line.
        line: u64,
        /// The kind.
        kind: String,
    },
    /// A line that is no record.
    #[error("line {line}: not a record of a trace: {error}")]
    Syntax {
        /// At this line.
        line: u64,
        /// What is wrong with it.
        error: serde_json::Error,
    },
    /// A line that is too long.
    #[error("line {line} is longer than {MAX_LINE} bytes")]
    LongLine {
        /// This one.
        line: u64,
    },
}

/// A last line without its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Torn {
    /// Its number, from 1.
    pub line: u64,
    /// How many bytes of it are there.
    pub bytes: usize,
}

#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(borrow)]
    rec: Cow<'a, str>,
}

#[derive(Deserialize)]
struct CheckpointLine {
    n: StepNumber,
    #[serde(rename = "h", with = "super::format::hex")]
    digest: u64,
    state: Box<RawValue>,
}

/// The records of a trace, after its header. Ends at the first error.
#[derive(Debug)]
pub struct Reader<R> {
    source: R,
    header: Header,
    buf: Vec<u8>,
    line: u64,
    torn: Option<Torn>,
    over: bool,
}

impl<R: BufRead> Reader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// If there is none, or one of a version that cannot be read.
    pub fn new(mut source: R) -> Result<Self, TraceError> {
        let mut buf = Vec::new();
        let whole = read_line(&mut source, &mut buf, 1)?;
        let header = match parse(&buf, 1, Known::Only) {
            Ok(Record::Header(header)) => *header,
            Err(error @ TraceError::Version { .. }) => return Err(error),
            _ if !whole => return Err(TraceError::Empty),
            Err(TraceError::Syntax { error, .. }) => return Err(TraceError::NoHeader { error }),
            _ => {
                return Err(TraceError::NoHeader { error: serde::de::Error::custom("it is another record") });
            }
        };
        Ok(Self { source, header, buf, line: 1, torn: None, over: false })
    }

    /// What the first line says.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Number of the line that was read last, from 1.
    pub const fn line(&self) -> u64 {
        self.line
    }

    /// A last line that was broken off; known after the last record.
    pub const fn torn(&self) -> Option<Torn> {
        self.torn
    }

    fn advance(&mut self) -> Result<Option<Record>, TraceError> {
        loop {
            let whole = read_line(&mut self.source, &mut self.buf, self.line + 1)?;
            if self.buf.is_empty() && !whole {
                return Ok(None);
            }
            self.line += 1;
            if whole && self.buf.trim_ascii().is_empty() {
                continue;
            }
            return match parse(&self.buf, self.line, Known::Only) {
                Ok(record) => Ok(Some(record)),
                Err(TraceError::Syntax { .. }) if !whole => {
                    self.torn = Some(Torn { line: self.line, bytes: self.buf.len() });
                    Ok(None)
                }
                Err(error) => Err(error),
            };
        }
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let next = self.advance().transpose();
        self.over = !matches!(next, Some(Ok(_)));
        next
    }
}

/// Reads up to the next line end; returns whether there is one. The line end is not in `buf`.
fn read_line(source: &mut impl BufRead, buf: &mut Vec<u8>, line: u64) -> Result<bool, TraceError> {
    buf.clear();
    let limit = MAX_LINE as u64 + 1;
    source.take(limit).read_until(b'\n', buf).map_err(|error| TraceError::Io { line, error })?;
    if buf.last() == Some(&b'\n') {
        buf.pop();
        return Ok(true);
    }
    if buf.len() > MAX_LINE {
        return Err(TraceError::LongLine { line });
    }
    Ok(false)
}

/// Which minor versions are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// Those of which everything is known.
    Only,
    /// Newer ones too, as far as they can be.
    AndNewer,
}

/// Reads one line, without its end.
pub(super) fn parse(text: &[u8], line: u64, known: Known) -> Result<Record, TraceError> {
    let syntax = |error| TraceError::Syntax { line, error };
    // Nearly every line, as it is written here: no need to look for its kind.
    if text.starts_with(br#"{"rec":"step","#) {
        return whole(text).map(Record::Step).map_err(syntax);
    }
    let Kind { rec } = serde_json::from_slice(text).map_err(syntax)?;
    Ok(match &*rec {
        "step" => Record::Step(whole(text).map_err(syntax)?),
        "digest" => Record::Digest(whole(text).map_err(syntax)?),
        "note" => Record::Note(whole(text).map_err(syntax)?),
        "gap" => Record::Gap(whole(text).map_err(syntax)?),
        "end" => Record::End(whole(text).map_err(syntax)?),
        "header" => {
            // The version first: a header of another version may look different in everything else.
            #[derive(Deserialize)]
            struct Only {
                format: Version,
            }
            let Only { format } = whole(text).map_err(syntax)?;
            let newer = known == Known::AndNewer && format.major == FORMAT.major;
            if !FORMAT.reads(format) && !newer {
                return Err(TraceError::Version { line, found: format });
            }
            Record::Header(Box::new(whole(text).map_err(syntax)?))
        }
        "checkpoint" => {
            let CheckpointLine { n, digest, state } = whole(text).map_err(syntax)?;
            Record::Checkpoint(Checkpoint { n, digest, state: state.into() })
        }
        _ => return Err(TraceError::Kind { line, kind: rec.into_owned() }),
    })
}

fn whole<T: DeserializeOwned>(text: &[u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(text)
}
