//! One source of a trace, opened and unpacked.

use super::zstd::Zstd;
use crate::trace_sink::segments;
use flate2::bufread::MultiGzDecoder;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

/// Bytes that are read at once.
const READ_BYTES: usize = 256 * 1024;

/// The first bytes of what gzip and zstd pack; none of them can begin a trace.
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Bytes of a source, unpacked.
pub(super) type Stream = Box<dyn BufRead + Send>;

/// Where bytes come from.
pub(super) enum Source {
    Stdin,
    File {
        path: PathBuf,
        /// For messages.
        name: String,
    },
    Reader(String, Box<dyn Read + Send>),
}

impl Source {
    pub(super) fn name(&self) -> String {
        match self {
            Self::Stdin => "standard input".to_owned(),
            Self::File { name, .. } | Self::Reader(name, _) => name.clone(),
        }
    }

    pub(super) fn open(self) -> io::Result<Stream> {
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

fn unpacked(from: impl Read + Send + 'static) -> io::Result<Stream> {
    let mut from = BufReader::with_capacity(READ_BYTES, from);
    let mut first = Vec::with_capacity(ZSTD.len());
    // A pipe may give them one by one.
    from.by_ref().take(ZSTD.len() as u64).read_to_end(&mut first)?;
    let (gzip, zstd) = (first.starts_with(&GZIP), first.starts_with(&ZSTD));
    let whole = Cursor::new(first).chain(from);
    Ok(if gzip {
        Box::new(BufReader::with_capacity(READ_BYTES, MultiGzDecoder::new(whole)))
    } else if zstd {
        Box::new(BufReader::with_capacity(READ_BYTES, Zstd::new(whole)))
    } else {
        Box::new(whole)
    })
}
