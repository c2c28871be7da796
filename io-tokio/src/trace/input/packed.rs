//! Unpacks what gzip or zstd has packed, which is seen from the first bytes, and says in words for people why it cannot.

use super::zstd::Zstd;
use flate2::bufread::MultiGzDecoder;
use std::io::{self, BufRead, BufReader, Cursor, Read};

/// Bytes that are read at once.
const READ_BYTES: usize = 256 * 1024;

/// The first bytes of what gzip and zstd pack; none of them can begin a text.
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Bytes of a source, unpacked.
pub(in crate::trace) type Stream = Box<dyn BufRead + Send>;

pub(super) fn unpacked(from: impl Read + Send + 'static) -> io::Result<Stream> {
    let mut from = BufReader::with_capacity(READ_BYTES, from);
    let mut first = Vec::with_capacity(ZSTD.len());
    // A pipe may give them one by one.
    from.by_ref().take(ZSTD.len() as u64).read_to_end(&mut first)?;
    let (gzip, zstd) = (first.starts_with(&GZIP), first.starts_with(&ZSTD));
    let whole = Cursor::new(first).chain(from);
    Ok(if gzip {
        Box::new(BufReader::with_capacity(READ_BYTES, Gzip(MultiGzDecoder::new(whole))))
    } else if zstd {
        Box::new(BufReader::with_capacity(READ_BYTES, Zstd::new(whole)))
    } else {
        Box::new(whole)
    })
}

struct Gzip<R>(MultiGzDecoder<R>);

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.0.read(to).map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => error,
            // The disk's own word.
            _ if error.raw_os_error().is_some() => error,
            io::ErrorKind::UnexpectedEof => cut_off("gzip"),
            _ => damaged("gzip"),
        })
    }
}

/// The packed bytes end too soon.
pub(super) fn cut_off(packer: &str) -> io::Error {
    let why = format!("the {packer} data is cut off (for the rest, copy the whole file again)");
    io::Error::new(io::ErrorKind::UnexpectedEof, why)
}

/// The packed bytes are none that the packer writes.
pub(super) fn damaged(packer: &str) -> io::Error {
    let why =
        format!("the {packer} data is damaged (for the rest, copy the file again from where it is whole)");
    io::Error::new(io::ErrorKind::InvalidData, why)
}
