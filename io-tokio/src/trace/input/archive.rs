//! The segments of a flight recorder in a tar archive.
//!
//! An archive has them in any order, and standard input is given out once: so they are held in memory, packed, until all are known. Nothing is ever
//! unpacked to the disk: of a path only the name at its end counts, and the rest is for messages.

use super::source::{Numbered, Part, Source, parts};
use crate::trace_sink::SegmentName;
use crate::unpack::{Stream, is_packed};
use flate2::Compression;
use flate2::write::GzEncoder;
use longshore_core::trace::Damage;
use std::collections::BTreeMap;
use std::io::{self, Cursor, Read, Write};
use tar::{Archive, Entry, EntryType, Header, PaxExtensions};
use thiserror::Error;

/// An archive is made of blocks of so many bytes.
pub(in crate::trace) const BLOCK: usize = 512;

/// Packed bytes that are held at most. It is what a recorder with a budget of some GiB leaves. With what the allocator needs on top, a process takes
/// up to twice as much.
pub(super) const MOST_HELD: usize = 256 * 1024 * 1024;

/// Longest path, in bytes, and longest of what else may stand before an entry. More of it is not read.
const LONGEST_EXTENSION: u64 = 64 * 1024;

/// Zeros behind the last entry that are looked at, in bytes: programs fill up a record of a tape, usually of 10 KiB.
const LONGEST_END: u64 = 1024 * 1024;

/// Longest name of another file in a message, in characters.
const LONGEST_NAME: usize = 100;

/// Most segments: a recorder leaves 64, and an archive may be of several.
const MOST_SEGMENTS: usize = 4096;

/// Whether an archive begins with these bytes.
pub(in crate::trace) fn is_one(first: &[u8]) -> bool {
    let Ok(block) = <&[u8; BLOCK]>::try_from(first) else { return false };
    let sum = Header::from_byte_slice(block).cksum();
    // One that is damaged has the mark nevertheless, and one of the oldest kind has only the sum.
    let marked = block[257..].starts_with(b"ustar") && block[0] != b'{';
    marked || (block[0] != 0 && sum.is_ok_and(|sum| sum == sum_of(block)))
}

/// The sum of a header, in which the sum itself counts as blanks.
fn sum_of(block: &[u8; BLOCK]) -> u32 {
    let (before, after) = (&block[..148], &block[156..]);
    before.iter().chain(after).map(|byte| u32::from(*byte)).sum::<u32>() + 8 * u32::from(b' ')
}

/// What an archive has.
pub(super) struct Found {
    /// In the order in which they were recorded.
    pub(super) parts: Vec<Part>,
    pub(super) troubles: Vec<Damage>,
}

/// Why not all of an archive is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
enum Full {
    #[error("the archive has more than can be held in memory (unpack it, and name the directory)")]
    Bytes,
    #[error("the archive has more than {MOST_SEGMENTS} segments (unpack it, and name one directory of it)")]
    Segments,
    #[error("the archive has more than {MOST_SEGMENTS} entries that cannot be used")]
    Odd,
}

impl From<Full> for io::Error {
    fn from(full: Full) -> Self {
        Self::other(full)
    }
}

/// Reads all of an archive that is called `name`. At most `most` bytes are held, packed; usually [`MOST_HELD`].
pub(super) fn segments(name: &str, stream: Stream, most: usize) -> Found {
    let mut reading = Reading { room: most, ..Reading::default() };
    let ended = reading.entries(stream);
    let Reading { held, mut troubles, other, .. } = reading;
    let is_whole = ended.is_ok();
    if let Err(error) = ended {
        let full = error.get_ref().and_then(|error| error.downcast_ref::<Full>()).is_some();
        let why =
            if full { error.to_string() } else { format!("the archive cannot be read to its end: {error}") };
        troubles.push(Damage::Archive { why });
    } else if held.is_empty() && troubles.is_empty() {
        let other = other.map_or_else(String::new, |other| {
            format!(", but for example {other} (unpack it, and name the file that is the trace)")
        });
        let why = format!("the archive has no segment of a flight recorder{other}");
        troubles.push(Damage::Source { why });
    }
    let mut dirs: BTreeMap<String, Vec<Numbered>> = BTreeMap::new();
    for ((dir, segment), bytes) in held {
        let called = match dir.as_str() {
            "" => format!("{name}: {segment}"),
            dir => format!("{name}: {dir}/{segment}"),
        };
        let of_dir = dirs.entry(dir).or_default();
        // Of one that is there twice the plain one is taken, which comes first.
        if of_dir.last().is_none_or(|(before, _)| *before != segment.number) {
            of_dir.push((segment.number, Ok(Source::Reader(called, Box::new(Cursor::new(bytes))))));
        }
    }
    let called = |dir: &str| if dir.is_empty() { name.to_owned() } else { format!("{name}: {dir}") };
    let mut all: Vec<Part> = dirs.into_iter().flat_map(|(dir, all)| parts(&called(&dir), all)).collect();
    if !is_whole {
        // They may be in what was not read.
        all.retain(|part| !matches!(part, Part::Absent { .. }));
    }
    Found { parts: all, troubles }
}

/// What was found so far.
#[derive(Default)]
struct Reading {
    /// By directory and number. Of two of one path the later one counts, as for everybody who unpacks an archive.
    held: BTreeMap<(String, SegmentName), Vec<u8>>,
    /// Bytes that may still be held.
    room: usize,
    /// A file that is no segment.
    other: Option<String>,
    troubles: Vec<Damage>,
}

/// What stood before an entry about it.
#[derive(Default)]
struct Extended {
    path: Option<Vec<u8>>,
    size: Option<u64>,
}

/// A stream that knows whether it was read to its end.
struct Watched {
    stream: Stream,
    ended: bool,
}

impl Read for Watched {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read(to)?;
        self.ended |= count == 0 && !to.is_empty();
        Ok(count)
    }
}

impl Watched {
    /// Behind the last entry there are zeros, and nothing else. An archive that is cut off between two entries has none, and one in which a block
    /// was lost goes on behind them.
    fn behind(self) -> io::Result<()> {
        if self.ended {
            return Err(io::Error::other("it ends without a mark of its end, as one that is cut off"));
        }
        let mut block = Vec::with_capacity(BLOCK);
        let mut rest = self.stream.take(LONGEST_END);
        while rest.by_ref().take(BLOCK as u64).read_to_end(&mut block)? > 0 {
            if block.iter().any(|byte| *byte != 0) {
                return Err(io::Error::other("it goes on behind the mark of its end"));
            }
            block.clear();
        }
        Ok(())
    }
}

impl Reading {
    fn entries(&mut self, stream: Stream) -> io::Result<()> {
        let mut archive = Archive::new(Watched { stream, ended: false });
        let mut extended = Extended::default();
        // As they are: otherwise a path is read into memory however long it is.
        for entry in archive.entries()?.raw(true) {
            let mut entry = entry?;
            match entry.header().entry_type() {
                EntryType::GNULongName => {
                    let path = extension(&mut entry)?;
                    extended.path = path.split(|byte| *byte == 0).next().map(<[u8]>::to_vec);
                }
                EntryType::XHeader => {
                    let all = extension(&mut entry)?;
                    for said in PaxExtensions::new(&all).flatten() {
                        match said.key_bytes() {
                            b"path" => extended.path = Some(said.value_bytes().to_vec()),
                            b"size" => extended.size = said.value().ok().and_then(|size| size.parse().ok()),
                            _ => {}
                        }
                    }
                }
                EntryType::GNULongLink | EntryType::XGlobalHeader => {}
                kind => self.entry(kind, std::mem::take(&mut extended), &mut entry)?,
            }
        }
        archive.into_inner().behind()
    }

    fn entry(
        &mut self,
        kind: EntryType,
        extended: Extended,
        entry: &mut Entry<'_, impl Read>,
    ) -> io::Result<()> {
        let size = entry.header().entry_size()?;
        if extended.size.is_some_and(|said| said != size) {
            // What comes next is not where the header says.
            return Err(io::Error::other("an entry is larger than any segment"));
        }
        let path = extended.path.unwrap_or_else(|| entry.path_bytes().into_owned());
        let path = String::from_utf8_lossy(&path);
        let (dir, file) = path.rsplit_once('/').unwrap_or(("", &path));
        let Some(segment) = SegmentName::parse(file) else {
            if self.other.is_none() && kind.is_file() {
                self.other = Some(file.chars().take(LONGEST_NAME).collect());
            }
            return Ok(());
        };
        if !matches!(kind, EntryType::Regular | EntryType::Continuous) {
            return self.odd(kind, &segment);
        }
        let key = (if dir == "." { String::new() } else { dir.to_owned() }, segment);
        let before = self.held.remove(&key).map_or(0, |bytes| bytes.len() + key.0.len());
        self.room += before;
        if self.held.len() >= MOST_SEGMENTS {
            return Err(Full::Segments.into());
        }
        let room = self.room.checked_sub(key.0.len()).ok_or(Full::Bytes)?;
        let (bytes, ended) = held(entry, size, room);
        if let Some(bytes) = bytes {
            self.room = room - bytes.len();
            self.held.insert(key, bytes);
        }
        ended
    }

    /// A segment that is no file.
    fn odd(&mut self, kind: EntryType, segment: &SegmentName) -> io::Result<()> {
        if self.troubles.len() >= MOST_SEGMENTS {
            return Err(Full::Odd.into());
        }
        let what = match kind {
            EntryType::Link | EntryType::Symlink => "a link, which is not followed",
            EntryType::GNUSparse => "a file with holes (pack it without --sparse)",
            _ => "no file",
        };
        self.troubles.push(Damage::Absent { what: format!("{segment} is {what} in the archive") });
        Ok(())
    }
}

/// What stands before an entry about it.
fn extension(entry: &mut Entry<'_, impl Read>) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    entry.take(LONGEST_EXTENSION).read_to_end(&mut all)?;
    Ok(all)
}

/// Bytes up to a bound.
struct Bounded {
    bytes: Vec<u8>,
    room: usize,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.room {
            return Err(Full::Bytes.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The bytes of an entry, packed, as far as they can be read, and why they end before the entry does.
fn held(entry: &mut impl Read, size: u64, room: usize) -> (Option<Vec<u8>>, io::Result<()>) {
    let mut to = Bounded { bytes: Vec::new(), room };
    let mut first = Vec::new();
    if let Err(error) = entry.by_ref().take(4).read_to_end(&mut first) {
        return (None, Err(error));
    }
    let mut from = Cursor::new(&first).chain(entry);
    let (copied, finished) = if is_packed(&first) {
        (io::copy(&mut from, &mut to), Ok(to))
    } else {
        let mut packer = GzEncoder::new(to, Compression::fast());
        (io::copy(&mut from, &mut packer), packer.finish())
    };
    let ended = match copied {
        Ok(copied) if copied < size => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it is cut off")),
        copied => copied.map(drop),
    };
    match finished {
        Ok(mut to) => {
            to.bytes.shrink_to_fit();
            (Some(to.bytes), ended)
        }
        // It is what stopped the copy, if that was.
        Err(error) => (None, ended.and(Err(error))),
    }
}
