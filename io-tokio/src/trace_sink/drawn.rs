//! What a flight recorder has, as one stream of whole lines, while it goes on recording.

use super::segments::pieces;
use crate::unpack::{Stream, unpacked};
use longshore_core::trace::MAX_LINE;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::vec;

/// Bytes that are read at once.
const READ_BYTES: usize = 256 * 1024;

/// How a segment begins.
const HEADER: &[u8] = br#"{"rec":"header","#;

/// A segment that was opened: it can be read also when it has been removed meanwhile.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) file: File,
    /// As far as it was written when it was opened, in bytes. What comes later belongs to a later look.
    pub(super) len: u64,
}

/// The whole lines of segments, oldest first, in pieces of whole lines. A last line without its end, and a segment without a whole header, are left
/// out: so the pieces one after another are a trace. Segments that somebody packed are unpacked; of one that is damaged comes what can be read.
pub struct Drawn {
    pieces: vec::IntoIter<Piece>,
    now: Option<Stream>,
    /// What has been read of a line.
    begun: Vec<u8>,
    /// Whether nothing of the segment has been given out.
    fresh: bool,
}

impl fmt::Debug for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drawn").field("pieces", &self.pieces).finish_non_exhaustive()
    }
}

impl Drawn {
    pub(super) fn new(pieces: Vec<Piece>) -> Self {
        Self { pieces: pieces.into_iter(), now: None, begun: Vec::new(), fresh: true }
    }

    /// What is in the directory of a flight recorder at this moment. A daemon that records to it may be up to
    /// [`FLUSH_AFTER`](super::FLUSH_AFTER) ahead.
    ///
    /// # Errors
    /// If the directory or a segment cannot be read.
    pub fn of_dir(dir: &Path) -> io::Result<Self> {
        Ok(Self::new(pieces(dir, |_, len| len)?))
    }

    /// Reads on. Returns whole lines, or nothing where there are none yet or the segment is over.
    fn read_on(&mut self) -> io::Result<Option<Vec<u8>>> {
        let Some(now) = &mut self.now else { return Ok(None) };
        let over = match now.by_ref().take(READ_BYTES as u64).read_to_end(&mut self.begun) {
            Ok(read) => read == 0,
            // It was damaged since it was packed. Who reads the trace sees what is missing.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) =>
            {
                true
            }
            Err(error) => return Err(error),
        };
        let whole = self.begun.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        // Without its header nothing of it can be understood, and a line of that length is none of a trace.
        let useless = match whole {
            0 => self.begun.len() > MAX_LINE,
            _ => self.fresh && !self.begun.starts_with(HEADER),
        };
        let mut lines = None;
        if whole > 0 && !useless {
            self.fresh = false;
            let rest = self.begun.split_off(whole);
            lines = Some(std::mem::replace(&mut self.begun, rest));
        }
        if over || useless {
            self.now = None;
            self.begun.clear();
        }
        Ok(lines)
    }

    /// Opens the next segment; `None` if there is none.
    fn open_next(&mut self) -> Option<io::Result<()>> {
        let Piece { file, len } = self.pieces.next()?;
        self.fresh = true;
        Some(unpacked(file.take(len)).map(|stream| self.now = Some(stream)))
    }
}

impl Iterator for Drawn {
    type Item = io::Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let read = match &self.now {
                Some(_) => self.read_on(),
                None => self.open_next()?.map(|()| None),
            };
            match read {
                Ok(Some(lines)) => return Some(Ok(lines)),
                Ok(None) => {}
                Err(error) => {
                    (self.now, self.pieces) = (None, Vec::new().into_iter());
                    return Some(Err(error));
                }
            }
        }
    }
}
