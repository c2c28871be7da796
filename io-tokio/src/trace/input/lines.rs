//! The lines of all sources, one after another, with their places.

use super::source::Part;
use super::{Unreadable, archive};
use crate::unpack::{Stream, peeked};
use longshore_core::trace::{Damage, MAX_LINE, Place, Salvage};
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, BufRead, Read};

pub(super) struct Lines {
    parts: VecDeque<Part>,
    /// Of those that were begun.
    names: Vec<String>,
    /// Whether there is more than one source: then each of them may be missing.
    many: bool,
    open: Option<Stream>,
    /// Of the line that is read next.
    place: Place,
    line: Vec<u8>,
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines")
            .field("names", &self.names)
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

/// What some editors put at the beginning of a text.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// What was read.
enum Got {
    Whole,
    Torn,
    Long,
    End,
}

impl Lines {
    pub(super) fn new(parts: Vec<Part>) -> Self {
        let many = parts.len() > 1;
        let place = Place::default();
        Self { parts: parts.into(), names: Vec::new(), many, open: None, place, line: Vec::new() }
    }

    /// The name of the source of a place.
    pub(super) fn name(&self, at: Place) -> &str {
        self.names.get(at.source).map_or("", String::as_str)
    }

    /// What is said when all was read, nothing came of it, and nothing was wrong with it.
    pub(super) fn nothing(&self) -> String {
        match self.names.as_slice() {
            [] => "the flight recorder has removed what was there; try it again".to_owned(),
            names => format!("{}: there are only blank lines, and no trace", names.join(", ")),
        }
    }

    /// Hands the next line over. Returns whether there may be more.
    pub(super) fn advance(&mut self, to: &mut Salvage) -> Result<bool, Unreadable> {
        let Some(stream) = &mut self.open else { return self.begin(to) };
        let mut count = 0;
        let got = read(stream, &mut self.line, &mut count);
        if self.place.byte == 0 && self.line.starts_with(BYTE_ORDER_MARK) {
            self.line.drain(..BYTE_ORDER_MARK.len());
        }
        match got {
            Ok(Got::Whole) => to.line(self.place, &self.line),
            // An archive ends with blocks of zeros, and one of nothing has only these.
            Ok(Got::Torn) if self.place.byte == 0 && is_zeros(&self.line) => {
                let why =
                    "it has nothing but zeros, as an archive of no file has (or the disk lost what it had)";
                to.trouble(self.place, Damage::Source { why: why.to_owned() });
            }
            Ok(Got::Torn) => to.torn(self.place, &self.line),
            Ok(Got::Long) => to.trouble(self.place, Damage::Long),
            Ok(Got::End) => {
                if self.place.byte == 0 {
                    to.trouble(self.place, Damage::Empty);
                }
                self.open = None;
            }
            Err(error) => {
                // What came before the failure may be a whole record.
                if !self.line.is_empty() {
                    to.torn(self.place, &self.line);
                    if to.has_more() {
                        self.place.line += 1;
                    }
                }
                to.trouble(self.place, Damage::Source { why: error.to_string() });
                self.open = None;
            }
        }
        self.place.line += 1;
        self.place.byte += count;
        Ok(true)
    }

    fn begin(&mut self, to: &mut Salvage) -> Result<bool, Unreadable> {
        let (source, is_segment) = match self.parts.pop_front() {
            Some(Part::One(source)) => (source, false),
            Some(Part::Segment(source)) => (source, true),
            Some(Part::Absent { name, what }) => {
                self.trouble(name, Damage::Absent { what }, to);
                return Ok(true);
            }
            None => {
                to.finish();
                // What was held back may have come out now; the next call finds nothing to do.
                return Ok(to.has_more());
            }
        };
        let name = source.name();
        match source.open() {
            Ok(stream) => {
                let (first, stream) = peeked(stream, archive::BLOCK);
                // One within another is none that anybody makes, and could be made to have no end.
                if !is_segment && archive::is_one(&first) {
                    self.unfold(name, stream, to);
                    return Ok(true);
                }
                self.place = Place { source: self.names.len(), line: 1, byte: 0 };
                self.names.push(name);
                self.open = Some(stream);
                to.begin();
                Ok(true)
            }
            // The daemon that records has made room in the meantime.
            Err(error) if self.many && error.kind() == io::ErrorKind::NotFound => Ok(true),
            Err(error) if self.many => {
                self.trouble(name, Damage::Source { why: error.to_string() }, to);
                Ok(true)
            }
            Err(error) => Err(Unreadable::Open { name, error }),
        }
    }

    /// Puts the segments of an archive in its place.
    fn unfold(&mut self, name: String, stream: Stream, to: &mut Salvage) {
        let found = archive::segments(&name, stream, archive::MOST_HELD);
        for what in found.troubles {
            self.trouble(name.clone(), what, to);
        }
        self.many = true;
        for part in found.parts.into_iter().rev() {
            self.parts.push_front(part);
        }
    }

    /// Something is wrong with a source as a whole.
    fn trouble(&mut self, name: String, what: Damage, to: &mut Salvage) {
        let at = Place { source: self.names.len(), line: 1, byte: 0 };
        self.names.push(name);
        to.trouble(at, what);
    }
}

/// Whether there is something, and nothing but zeros.
fn is_zeros(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|byte| *byte == 0)
}

/// Reads a line without its end into `line`, and counts its bytes, the end included.
fn read(stream: &mut Stream, line: &mut Vec<u8>, count: &mut u64) -> io::Result<Got> {
    line.clear();
    let limit = MAX_LINE as u64 + 1;
    let read = stream.by_ref().take(limit).read_until(b'\n', line);
    *count += line.len() as u64;
    read?;
    if line.last() == Some(&b'\n') {
        line.pop();
        return Ok(Got::Whole);
    }
    if line.len() <= MAX_LINE {
        return Ok(if line.is_empty() { Got::End } else { Got::Torn });
    }
    line.clear();
    loop {
        let some = stream.fill_buf()?;
        let end = some.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(some.len(), |at| at + 1);
        let over = end.is_some() || some.is_empty();
        stream.consume(length);
        *count += length as u64;
        if over {
            return Ok(Got::Long);
        }
    }
}
