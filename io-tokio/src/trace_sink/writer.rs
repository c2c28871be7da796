//! The thread that writes. It is the only one that waits for the disk.

use super::queue::{Batch, Failed, Queue};
use super::segments::Segments;
use super::tap::{Refusal, Written};
use jiff::Timestamp;
use longshore_core::trace::StepNumber;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use thiserror::Error;

/// Where lines go.
#[derive(Debug)]
pub(super) enum Output {
    /// To the newest segment of a directory; each cut makes a new one.
    Flight(Segments),
    /// To one file.
    File,
}

#[derive(Debug)]
pub(super) struct Writer {
    output: Output,
    file: Option<File>,
    /// Bytes of whole lines in the file.
    len: u64,
    /// The disk did not take the last lines.
    refusal: Option<Refusal>,
}

/// Why lines were not written.
#[derive(Debug, Error)]
enum WriteError {
    /// The disk refuses.
    #[error(transparent)]
    Disk(#[from] io::Error),
    /// What was written went away under it.
    #[error("{GONE}")]
    Gone,
}

/// For the log: whether the disk refuses, or what was written is gone, and whether nothing more will come that could be written.
const fn warning(refuses: bool, is_last: bool) -> &'static str {
    match (refuses, is_last) {
        (true, false) => {
            "the trace cannot be written; steps are missing in it from here on, until the disk takes it again"
        }
        (true, true) => "the end of the trace cannot be written; the steps from here on are missing in it",
        (false, false) => {
            "the segment that was written, or the flight recorder's directory, was removed or moved away; recording begins anew with the next step"
        }
        (false, true) => {
            "the segment that was written, or the flight recorder's directory, was removed or moved away; the end of the recording is missing"
        }
    }
}

const GONE: &str =
    "the segment that was written, or the flight recorder's directory, was removed or moved away";

impl Writer {
    pub(super) fn new(output: Output, file: Option<File>) -> Self {
        Self { output, file, len: 0, refusal: None }
    }

    /// Writes until the queue is closed and empty.
    pub(super) fn run(mut self, queue: &Queue) {
        let mut batch = Batch::default();
        while queue.take(&mut batch) {
            if !batch.bytes.is_empty() {
                let written = self.write(&batch);
                self.tell(&written, queue.is_closed());
                if let Err((from, error)) = written {
                    let at_once = matches!(error, WriteError::Gone);
                    queue.fail(Failed { from, error: error.to_string(), at_once });
                }
            }
            for asked in batch.asked.drain(..) {
                // Who asked may have gone meanwhile.
                let _ = asked.send(self.written());
            }
        }
        if self.is_removed() {
            let error = "the file was removed while it was recorded to".to_owned();
            queue.fail(Failed { from: 0, error, at_once: false });
        }
        // Closed before anybody is told, so that who waits finds the file complete.
        drop(self.file.take());
        queue.finish();
    }

    /// Whether the one file that is recorded to has no name any more: nobody will ever read it.
    fn is_removed(&self) -> bool {
        let removed = |file: &File| file.metadata().is_ok_and(|meta| meta.nlink() == 0 && meta.is_file());
        matches!(self.output, Output::File) && self.file.as_ref().is_some_and(removed)
    }

    /// Says once that the disk refuses, and once that it does not any more: it is tried again every few seconds, unless this is the end.
    fn tell(&mut self, written: &Result<(), (StepNumber, WriteError)>, is_last: bool) {
        match written {
            Err((from, error)) => {
                let why = error.to_string();
                let known = self.refusal.take();
                // A disk may have one reason after another, and all are one trouble.
                let told = known.as_ref().is_some_and(|known| known.why != GONE || why == GONE);
                let since = known.map_or_else(Timestamp::now, |known| known.since);
                self.refusal = Some(Refusal { since, why });
                if told {
                    return;
                }
                let dir = match &self.output {
                    Output::Flight(segments) => Some(segments.dir().display()),
                    Output::File => None,
                };
                let dir = dir.map(tracing::field::display);
                let error = match error {
                    WriteError::Gone => None,
                    WriteError::Disk(error) => Some(tracing::field::display(error)),
                };
                tracing::warn!(error, dir, from, "{}", warning(error.is_some(), is_last));
            }
            Ok(()) => {
                if self.refusal.take().is_some() {
                    tracing::info!("the trace is written again, with a gap");
                }
            }
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
            gone.then(|| Refusal { since: Timestamp::now(), why: GONE.to_owned() })
        });
        Ok(Written { pieces, refusal })
    }

    fn write(&mut self, batch: &Batch) -> Result<(), (StepNumber, WriteError)> {
        let (mut at, mut first) = (0, batch.first);
        for cut in &batch.cuts {
            self.append(&batch.bytes[at..cut.at]).map_err(|error| (first, error))?;
            (at, first) = (cut.at, cut.first);
            if let Output::Flight(segments) = &mut self.output {
                (self.file, self.len) = (None, 0);
                self.file = Some(segments.create().map_err(|error| (first, error.into()))?);
            }
        }
        self.append(&batch.bytes[at..]).map_err(|error| (first, error))
    }

    /// Adds whole lines, or none.
    fn append(&mut self, lines: &[u8]) -> Result<(), WriteError> {
        let Some(file) = &mut self.file else {
            return match self.output {
                // Nothing can be added to a segment that broke; the next one will show that something is missing.
                Output::Flight(_) => Ok(()),
                Output::File => Err(io::Error::other("a half-written line could not be taken back").into()),
            };
        };
        // What is written to a file without a name is lost, and no write says so.
        if let Output::Flight(segments) = &self.output
            && !segments.is_newest(file)?
        {
            self.file = None;
            return Err(WriteError::Gone);
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
