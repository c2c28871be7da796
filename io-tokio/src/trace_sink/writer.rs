//! The thread that writes. It is the only one that waits for the disk.

use super::place::{Gone, Place};
use super::queue::{Batch, Failed, Queue};
use super::segments::Segments;
use super::tap::{Refusal, Written};
use crate::remedy::for_directory;
use jiff::Timestamp;
use longshore_core::trace::StepNumber;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use thiserror::Error;

/// Where lines go.
#[derive(Debug)]
pub(super) enum Output {
    /// To the newest segment of a directory; each cut makes a new one.
    Flight(Segments),
    /// To one file, which was made under this name.
    File(PathBuf),
}

#[derive(Debug)]
pub(super) struct Writer {
    output: Output,
    file: Option<File>,
    /// Bytes of whole lines in the file.
    len: u64,
    /// The disk did not take the last lines.
    refusal: Option<Refusal>,
    /// What was written last went away, and nothing could be written since.
    gone: Option<Gone>,
}

/// Why lines were not written.
#[derive(Debug, Error)]
enum WriteError {
    /// The disk refuses.
    #[error(transparent)]
    Disk(#[from] io::Error),
    /// What was written went away under it.
    #[error("{0}")]
    Gone(Gone),
}

impl WriteError {
    /// What a person can do, unless the text says it, or there is nothing to do.
    fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Disk(error) => match error.kind() {
                ErrorKind::AlreadyExists | ErrorKind::NotADirectory | ErrorKind::Other => None,
                _ => Some(for_directory(error)),
            },
            Self::Gone(_) => None,
        }
    }

    /// Whether a line in the log has told of it already, if the last refusal was for `known`.
    fn is_told(&self, known: Option<Gone>) -> bool {
        match self {
            // A disk may have one reason after another, and all are one trouble.
            Self::Disk(_) => known.is_none(),
            Self::Gone(Gone::Segment) => true,
            // That ends it.
            Self::Gone(gone) => known == Some(*gone),
        }
    }
}

/// For the log, of a disk that refuses. `is_last`: nothing more will come that could be written.
const fn warning(is_last: bool) -> &'static str {
    if is_last {
        "the end of the trace cannot be written; the steps from here on are missing in it"
    } else {
        "the trace cannot be written; steps are missing in it from here on, until the disk takes it again"
    }
}

impl Writer {
    pub(super) fn new(output: Output, file: Option<File>) -> Self {
        Self { output, file, len: 0, refusal: None, gone: None }
    }

    /// Where lines go, for messages.
    pub(super) fn place(&self) -> Place {
        match &self.output {
            Output::Flight(segments) => Place::Dir(segments.dir().to_owned()),
            Output::File(path) => Place::File(path.clone()),
        }
    }

    /// Writes until the queue is closed and empty.
    pub(super) fn run(mut self, queue: &Queue) {
        let mut batch = Batch::default();
        while queue.take(&mut batch) {
            if !batch.bytes.is_empty() {
                let written = self.write(&batch);
                self.tell(&written, queue.is_closed());
                if let Err((from, error)) = written {
                    let at_once = matches!(error, WriteError::Gone(Gone::Segment));
                    queue.fail(Failed { from, error: error.to_string(), at_once });
                }
            }
            for asked in batch.asked.drain(..) {
                // Who asked may have gone meanwhile.
                let _ = asked.send(self.written());
            }
        }
        // One that was moved is whole.
        if self.file_gone() == Some(Gone::Removed) {
            let removed = Err((0, WriteError::Gone(Gone::Removed)));
            self.tell(&removed, true);
            queue.fail(Failed { from: 0, error: Gone::Removed.to_string(), at_once: false });
        }
        // Closed before anybody is told, so that who waits finds the file complete.
        drop(self.file.take());
        queue.finish();
    }

    /// What became of the one file that is recorded to, if this is not a flight recorder.
    fn file_gone(&self) -> Option<Gone> {
        match (&self.output, &self.file) {
            (Output::File(path), Some(file)) => Gone::of_file(file, path),
            _ => None,
        }
    }

    /// Says once that the disk refuses, and once that it does not any more: it is tried again every few seconds, unless this is the end.
    fn tell(&mut self, written: &Result<(), (StepNumber, WriteError)>, is_last: bool) {
        let place = self.place();
        let (dir, file) = (place.dir(), place.file());
        let Err((from, error)) = written else {
            self.gone = None;
            if self.refusal.take().is_some() {
                tracing::info!(dir, file, "the trace is written again, with a gap");
            }
            return;
        };
        let known = self.refusal.take();
        let told = known.is_some() && error.is_told(self.gone);
        let since = known.map_or_else(Timestamp::now, |known| known.since);
        let remedy = error.remedy().map(str::to_owned);
        self.refusal = Some(Refusal { since, why: error.to_string(), remedy });
        self.gone = match error {
            WriteError::Gone(gone) => Some(*gone),
            WriteError::Disk(_) => None,
        };
        match error {
            _ if told => {}
            WriteError::Gone(gone) => tracing::warn!(dir, file, from, "{}", gone.warning(is_last)),
            WriteError::Disk(error) => tracing::warn!(%error, dir, file, from, "{}", warning(is_last)),
        }
    }

    /// What has been written.
    fn written(&self) -> io::Result<Written> {
        let Output::Flight(segments) = &self.output else {
            return Ok(Written { pieces: Vec::new(), refusal: self.refusal.clone() });
        };
        let pieces = segments.pieces(self.len)?;
        let refusal = self.refusal.clone().or_else(|| {
            let gone = self.file.as_ref().is_some_and(|file| matches!(segments.is_newest(file), Ok(false)));
            gone.then(|| Refusal { since: Timestamp::now(), why: Gone::Segment.to_string(), remedy: None })
        });
        Ok(Written { pieces, refusal })
    }

    fn write(&mut self, batch: &Batch) -> Result<(), (StepNumber, WriteError)> {
        let (mut at, mut first) = (0, batch.first);
        for cut in &batch.cuts {
            self.append(&batch.bytes[at..cut.at]).map_err(|error| lost_from(first, error))?;
            (at, first) = (cut.at, cut.first);
            if let Output::Flight(segments) = &mut self.output {
                (self.file, self.len) = (None, 0);
                self.file = Some(segments.create().map_err(|error| (first, error.into()))?);
            }
        }
        self.append(&batch.bytes[at..]).map_err(|error| lost_from(first, error))
    }

    /// Adds whole lines, or none.
    fn append(&mut self, lines: &[u8]) -> Result<(), WriteError> {
        let Some(file) = &mut self.file else {
            return match self.output {
                // Nothing can be added to a segment that broke; the next one will show that something is missing.
                Output::Flight(_) => Ok(()),
                Output::File(_) => Err(match self.gone {
                    Some(gone) => WriteError::Gone(gone),
                    None => io::Error::other("a half-written line could not be taken back").into(),
                }),
            };
        };
        // What is written to a file without a name is lost, and no write says so.
        let gone = match &self.output {
            Output::Flight(segments) => (!segments.is_newest(file)?).then_some(Gone::Segment),
            Output::File(path) => Gone::of_file(file, path),
        };
        if let Some(gone) = gone {
            // Closed, so that the disk has its room again.
            self.file = None;
            return Err(WriteError::Gone(gone));
        }
        if let Err(error) = file.write_all(lines) {
            if file.set_len(self.len).is_err() {
                self.file = None;
            }
            if let Output::Flight(segments) = &mut self.output
                && self.len == 0
            {
                self.file = None;
                segments.take_back();
            }
            return Err(error.into());
        }
        self.len += lines.len() as u64;
        Ok(())
    }
}

/// The first step that is missing if lines from `first` on were not written: with a file that was removed goes all that was in it.
fn lost_from(first: StepNumber, error: WriteError) -> (StepNumber, WriteError) {
    let all = matches!(error, WriteError::Gone(Gone::Removed));
    (if all { 0 } else { first }, error)
}

#[cfg(test)]
mod tests;
