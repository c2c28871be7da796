//! The story of a trace file, for the commands that tell of it.

use longshore_core::story::{Builder, Story};
use longshore_core::trace::{Reader, Record, TraceError};
use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::Path;
use thiserror::Error;

/// Bytes that are read at once.
const READ_BYTES: usize = 256 * 1024;

/// Why nothing of a trace can be told.
#[derive(Debug, Error)]
enum Unreadable {
    #[error("{error}; name a trace file")]
    Open { error: io::Error },
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// The story of what records tell, in their order. The first one is a header.
pub(super) fn story(records: impl IntoIterator<Item = Record>) -> Story {
    let mut builder = Builder::default();
    records.into_iter().for_each(|record| builder.record(&record));
    builder.finish()
}

/// The story of a file; relative paths are below `cwd`. If it cannot be read, `err` says why. Of one that is damaged, what comes before the
/// damage is told, and `err` says where that is.
///
/// # Errors
/// If `err` cannot be written to.
pub(super) fn read(file: &Path, cwd: &Path, err: &mut dyn Write) -> io::Result<Option<Story>> {
    let name = file.display();
    let mut reader = match open(&cwd.join(file)) {
        Ok(reader) => reader,
        Err(error) => {
            writeln!(err, "error: {name}: {error}")?;
            return Ok(None);
        }
    };
    let header = Record::Header(Box::new(reader.header().clone()));
    let mut broken = None;
    let sound = reader.by_ref().map_while(|record| record.map_err(|error| broken = Some(error)).ok());
    let story = story(std::iter::once(header).chain(sound));
    if let Some(error) = broken {
        writeln!(err, "warning: {name}: {error}; what comes after that is left out")?;
    }
    if let Some(torn) = reader.torn() {
        writeln!(err, "warning: {name}: line {} is incomplete and was left out", torn.line)?;
    }
    Ok(Some(story))
}

fn open(path: &Path) -> Result<Reader<BufReader<File>>, Unreadable> {
    let file = File::open(path).map_err(|error| Unreadable::Open { error })?;
    Ok(Reader::new(BufReader::with_capacity(READ_BYTES, file))?)
}
