//! Unpacks what gzip or zstd has packed, which is seen from the first bytes, and says in words for people why it cannot. What was packed twice is
//! unpacked twice.

mod zstd;

use flate2::bufread::MultiGzDecoder;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use thiserror::Error;
use zstd::Zstd;

/// Bytes that are read at once.
const READ_BYTES: usize = 256 * 1024;

/// So often something may have been packed: each layer costs memory for its window.
const MOST_LAYERS: usize = 3;

/// The first bytes of what gzip and zstd pack; none of them can begin a text.
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// How much of the beginning is looked at.
const LOOK: usize = 10;

/// Bytes of a source, unpacked.
pub(crate) type Stream = Box<dyn BufRead + Send>;

/// What has packed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packer {
    Gzip,
    Zstd,
}

impl Packer {
    fn of(first: &[u8]) -> Option<Self> {
        match first {
            first if first.starts_with(&GZIP) => Some(Self::Gzip),
            first if first.starts_with(&ZSTD) => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// Whether this is how something packed begins.
pub(crate) fn is_packed(first: &[u8]) -> bool {
    Packer::of(first).is_some()
}

/// What has packed it, if that is known and cannot be unpacked here.
fn foreign(first: &[u8]) -> Option<&'static str> {
    match first {
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some("xz"),
        // The mark of a block, or that of the end where there is none: a text may begin with the letters.
        [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..]
        | [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72, 0x45, 0x38, 0x50, 0x90, ..] => Some("bzip2"),
        _ => None,
    }
}

/// Unpacks all layers. What is wrong with packed bytes is an error of the stream, behind all that could be unpacked.
///
/// # Errors
/// If `from` cannot be read.
pub(crate) fn unpacked(from: impl Read + Send + 'static) -> io::Result<Stream> {
    let mut from = BufReader::with_capacity(READ_BYTES, from);
    let mut first = Vec::with_capacity(LOOK);
    // A pipe may give them one by one.
    from.by_ref().take(LOOK as u64).read_to_end(&mut first)?;
    let mut packer = Packer::of(&first);
    let mut unknown = foreign(&first);
    let mut stream: Stream = Box::new(Cursor::new(first).chain(from));
    for _ in 0..MOST_LAYERS {
        stream = match packer {
            Some(Packer::Gzip) => {
                Box::new(BufReader::with_capacity(READ_BYTES, Gzip(MultiGzDecoder::new(stream))))
            }
            Some(Packer::Zstd) => Box::new(BufReader::with_capacity(READ_BYTES, Zstd::new(stream))),
            None => {
                return Ok(unknown.map_or(stream, |packer| {
                    fails(&format!("it is packed in a way that is not read ({packer}): unpack it first"))
                }));
            }
        };
        let (first, whole) = peeked(stream, LOOK);
        (packer, unknown, stream) = (Packer::of(&first), foreign(&first), whole);
    }
    if packer.is_some() {
        let why =
            format!("it is packed more than {MOST_LAYERS} times (unpack it first, by gzip -d or zstd -d)");
        stream = fails(&why);
    }
    Ok(stream)
}

/// The first bytes, fewer only if there are not so many, and the stream as it was. An error on the way to them comes from the stream, at its place.
pub(crate) fn peeked(mut stream: Stream, bytes: usize) -> (Vec<u8>, Stream) {
    let mut first = Vec::with_capacity(bytes);
    let failed = stream.by_ref().take(bytes as u64).read_to_end(&mut first).err();
    let whole = Cursor::new(first.clone());
    let whole: Stream = match failed {
        None => Box::new(whole.chain(stream)),
        Some(error) => Box::new(whole.chain(BufReader::new(Fails(Some(error))))),
    };
    (first, whole)
}

/// Of which nothing can be read, and why.
fn fails(why: &str) -> Stream {
    Box::new(BufReader::new(Fails(Some(told(io::ErrorKind::InvalidData, why.to_owned())))))
}

/// Gives an error, and is over.
struct Fails(Option<io::Error>);

impl Read for Fails {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

struct Gzip<R>(MultiGzDecoder<R>);

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.0.read(to).map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => error,
            // The disk's own word, or that of the layer around it.
            _ if error.raw_os_error().is_some() || of_layer(&error).is_some() => error,
            io::ErrorKind::UnexpectedEof => cut_off("gzip"),
            _ => damaged("gzip"),
        })
    }
}

/// What is wrong with a layer, in words: the layer in it passes it on.
#[derive(Clone, Debug, Error)]
#[error("{0}")]
struct Told(String);

fn told(kind: io::ErrorKind, why: String) -> io::Error {
    io::Error::new(kind, Told(why))
}

/// The error again, if it is what a layer said.
fn of_layer(error: &io::Error) -> Option<io::Error> {
    let told = error.get_ref()?.downcast_ref::<Told>()?;
    Some(io::Error::new(error.kind(), told.clone()))
}

/// The packed bytes end too soon.
fn cut_off(packer: &str) -> io::Error {
    let why = format!("the {packer} data is cut off (for the rest, copy the whole file again)");
    told(io::ErrorKind::UnexpectedEof, why)
}

/// The packed bytes are none that the packer writes.
fn damaged(packer: &str) -> io::Error {
    let why =
        format!("the {packer} data is damaged (for the rest, copy the file again from where it is whole)");
    told(io::ErrorKind::InvalidData, why)
}
