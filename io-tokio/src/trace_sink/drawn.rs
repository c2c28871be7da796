//! What a flight recorder has, as one stream of whole lines, while it goes on recording.

use super::segments::segments;
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
/// out: so the pieces one after another are a trace.
#[derive(Debug)]
pub struct Drawn {
    pieces: vec::IntoIter<Piece>,
    now: Option<io::Take<File>>,
    /// What has been read of a line.
    begun: Vec<u8>,
    /// Whether nothing of the segment has been given out.
    fresh: bool,
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
        let mut pieces = Vec::new();
        for path in segments(dir)? {
            match File::open(path) {
                Ok(file) => pieces.push(Piece { len: file.metadata()?.len(), file }),
                // It had to make room for a newer one.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self::new(pieces))
    }

    /// Reads on. Returns whole lines, or nothing where there are none yet or the segment is over.
    fn read_on(&mut self) -> io::Result<Option<Vec<u8>>> {
        let Some(now) = &mut self.now else { return Ok(None) };
        let read = now.by_ref().take(READ_BYTES as u64).read_to_end(&mut self.begun)?;
        let whole = self.begun.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if self.fresh && whole > 0 && !self.begun.starts_with(HEADER) {
            // Without its header nothing of it can be understood.
            self.now = None;
        }
        if read == 0 {
            self.now = None;
        }
        if self.now.is_none() {
            self.begun.clear();
            return Ok(None);
        }
        if whole == 0 {
            return Ok(None);
        }
        self.fresh = false;
        let rest = self.begun.split_off(whole);
        Ok(Some(std::mem::replace(&mut self.begun, rest)))
    }
}

impl Iterator for Drawn {
    type Item = io::Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.now.is_none() {
                let Piece { file, len } = self.pieces.next()?;
                (self.now, self.fresh) = (Some(file.take(len)), true);
            }
            match self.read_on() {
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
