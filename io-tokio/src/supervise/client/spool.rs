//! One output of a run as the daemon reads it.

use crate::regular;
use crate::supervise::record::RunDir;
use bytes::Bytes;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The most bytes of one read.
const CHUNK: u64 = 256 * 1024;

pub(super) struct Spool {
    file: Option<File>,
    pub(super) offset: u64,
    /// The final length, once it is known.
    pub(super) end: Option<u64>,
    pub(super) error: Option<io::Error>,
}

impl Spool {
    pub(super) fn open(dir: &RunDir, name: &str, offset: u64) -> Self {
        match regular::open(File::options().read(true), &dir.file(name)) {
            Ok(file) => Self { file: Some(file), offset, end: None, error: None },
            Err(error) => Self { file: None, offset, end: None, error: Some(error) },
        }
    }

    /// The next bytes, if there are any. From the page cache as a rule, so it is done in place.
    pub(super) fn read(&mut self) -> Option<Bytes> {
        let file = self.file.as_ref()?;
        match read_from(file, self.offset, self.end) {
            Ok(bytes) => {
                self.offset += bytes.len() as u64;
                (!bytes.is_empty()).then(|| bytes.into())
            }
            Err(error) => {
                self.error = Some(error);
                self.file = None;
                None
            }
        }
    }
}

fn read_from(file: &File, offset: u64, end: Option<u64>) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    let until = end.map_or(length, |end| end.min(length));
    let count = until.saturating_sub(offset).min(CHUNK);
    let mut bytes = vec![0; usize::try_from(count).expect("a chunk fits memory")];
    let mut done = 0;
    while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(done);
    Ok(bytes)
}
