//! The thread that writes. It is the only one that waits for the disk.

use super::drawn::Piece;
use super::queue::{Batch, Failed, Queue};
use super::segments::Segments;
use longshore_core::trace::StepNumber;
use std::fs::File;
use std::io::{self, Write};

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
    /// Whether the disk did not take the last lines.
    refused: bool,
}

impl Writer {
    pub(super) fn new(output: Output, file: Option<File>) -> Self {
        Self { output, file, len: 0, refused: false }
    }

    /// Writes until the queue is closed and empty.
    pub(super) fn run(mut self, queue: &Queue) {
        let mut batch = Batch::default();
        while queue.take(&mut batch) {
            if !batch.bytes.is_empty() {
                let written = self.write(&batch);
                self.tell(&written);
                if let Err((from, error)) = written {
                    queue.fail(Failed { from, error: error.to_string() });
                }
            }
            for asked in batch.asked.drain(..) {
                // Who asked may have gone meanwhile.
                let _ = asked.send(self.pieces());
            }
        }
        // Closed before anybody is told, so that who waits finds the file complete.
        drop(self.file.take());
        queue.finish();
    }

    /// Says once that the disk refuses, and once that it does not any more: it is tried again every few seconds.
    fn tell(&mut self, written: &Result<(), (StepNumber, io::Error)>) {
        match written {
            Err((from, error)) if !self.refused => {
                self.refused = true;
                tracing::warn!(%error, from, "the trace cannot be written; steps are missing in it from here on");
            }
            Ok(()) if self.refused => {
                self.refused = false;
                tracing::info!("the trace is written again, with a gap");
            }
            _ => {}
        }
    }

    /// What has been written.
    fn pieces(&self) -> io::Result<Vec<Piece>> {
        match &self.output {
            Output::Flight(segments) => segments.pieces(self.len),
            Output::File => Ok(Vec::new()),
        }
    }

    fn write(&mut self, batch: &Batch) -> Result<(), (StepNumber, io::Error)> {
        let (mut at, mut first) = (0, batch.first);
        for cut in &batch.cuts {
            self.append(&batch.bytes[at..cut.at]).map_err(|error| (first, error))?;
            (at, first) = (cut.at, cut.first);
            if let Output::Flight(segments) = &mut self.output {
                (self.file, self.len) = (None, 0);
                self.file = Some(segments.create().map_err(|error| (first, error))?);
            }
        }
        self.append(&batch.bytes[at..]).map_err(|error| (first, error))
    }

    /// Adds whole lines, or none.
    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return match self.output {
                // Nothing can be added to a segment that broke; the next one will show that something is missing.
                Output::Flight(_) => Ok(()),
                Output::File => Err(io::Error::other("a half-written line could not be taken back")),
            };
        };
        if let Err(error) = file.write_all(lines) {
            if file.set_len(self.len).is_err() {
                self.file = None;
            }
            return Err(error);
        }
        self.len += lines.len() as u64;
        Ok(())
    }
}
