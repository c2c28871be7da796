//! Records the core's history to disk: always as a flight recorder within a byte budget, and whole if somebody asks for it.
//!
//! Recording never makes the driver wait. A step is encoded (about a microsecond) and handed to a writing thread; if that
//! cannot keep up, or the disk refuses, steps are left out, a gap says how many, and a checkpoint behind it makes what follows
//! replayable again. What waits in memory when the process is killed is lost: at most the last [`FLUSH_AFTER`].

mod closed;
mod drawn;
mod error;
mod names;
mod place;
mod queue;
mod segments;
mod shares;
mod tap;
#[cfg(test)]
mod tap_tests;
#[cfg(test)]
pub(crate) mod tests;
mod writer;

pub use closed::{Causes, Closed};
pub use drawn::Drawn;
pub use error::SinkError;
pub use names::{Hole, SegmentName, in_a_row};
pub use place::Place;
pub use segments::{Absent, absent, odd, segments};
pub use tap::{Refusal, Tap};

use longshore_core::daemon::Daemon;
use longshore_core::effect::Effect;
use longshore_core::event::Event;
use longshore_core::time::{Instant, Now};
use longshore_core::trace::{Header, Origin, StepNumber, encode};
use queue::{Cut, Pushed, Queue};
use segments::Segments;
use shares::Shares;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use writer::{Output, Writer};

/// What the flight recorder may take on the disk if nobody says otherwise, in bytes.
pub const DEFAULT_BUDGET: u64 = 64 * 1024 * 1024;

/// Least budget of a flight recorder, in bytes.
pub const MIN_BUDGET: u64 = 1024 * 1024;

/// A line waits at most this long in memory.
pub const FLUSH_AFTER: Duration = Duration::from_millis(200);

/// As many bytes are written without waiting for more.
const FLUSH_BYTES: usize = 256 * 1024;

/// Bytes that wait for the disk; beyond it steps are left out.
const QUEUE_BYTES: usize = 4 * 1024 * 1024;

/// A digest is written this often, and after the 1st, 2nd, 4th, 8th … step: short traces have some too.
const DIGEST_EVERY: StepNumber = 1000;

/// After the disk refused, it is tried again this much later.
const RETRY: Duration = Duration::from_secs(10);

/// Longest remark, in bytes; the rest of it is cut off.
const LONGEST_NOTE: usize = 4096;

/// The end of a recording waits at most this long for the disk.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);

/// Steps are being left out.
#[derive(Clone, Copy, Debug)]
struct Lost {
    /// The first of them.
    from: StepNumber,
    /// Not to be tried again before.
    retry: Instant,
}

/// Records one life of a daemon. Close it with [`Sink::close`]; one that is dropped writes what it has, without an end.
#[derive(Debug)]
pub struct Sink {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
    place: Place,
    header: Header,
    /// `None` for a single file.
    shares: Option<Shares>,
    /// The last step, and when it was.
    n: StepNumber,
    now: Instant,
    /// Bytes of steps in the segment.
    filled: u64,
    lost: Option<Lost>,
    /// The last gap that was said: its first step, and how many.
    gap: Option<(StepNumber, u64)>,
    /// Steps in all gaps that were said.
    lost_before: u64,
    error: Option<Causes>,
    /// Whether the log has heard of a gap.
    told: bool,
    line: Vec<u8>,
}

impl Sink {
    /// Starts a flight recorder: segments in `dir` (made whenever it is not there, mode 0700) that together take at most `budget`
    /// bytes. `header` says how the daemon was created, `first` are the effects of its creation. A directory that cannot be used is
    /// tried again like a disk that refuses.
    ///
    /// # Errors
    /// If the budget is below [`MIN_BUDGET`], or there can be no thread.
    pub fn flight(dir: &Path, budget: u64, header: Header, first: &[Effect]) -> Result<Self, SinkError> {
        if budget < MIN_BUDGET {
            return Err(SinkError::Budget { got: budget });
        }
        let shares = Shares { segment: budget / 4 };
        let segments = Segments::new(dir, budget, shares.segment);
        Self::start(Writer::new(Output::Flight(segments), None), Some(shares), header, first)
    }

    /// Starts a recording of everything to one new file, mode 0600. `header` says how the daemon was created, `first` are
    /// the effects of its creation.
    ///
    /// # Errors
    /// If the file exists or cannot be made.
    pub fn file(path: &Path, header: Header, first: &[Effect]) -> Result<Self, SinkError> {
        let made = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path);
        let file = made.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => SinkError::Exists { path: path.to_owned() },
            _ => SinkError::File { path: path.to_owned(), error },
        })?;
        Self::start(Writer::new(Output::File(path.to_owned()), Some(file)), None, header, first)
    }

    fn start(
        writer: Writer,
        shares: Option<Shares>,
        header: Header,
        first: &[Effect],
    ) -> Result<Self, SinkError> {
        let queue = Arc::new(Queue::default());
        let (theirs, builder) = (Arc::clone(&queue), std::thread::Builder::new().name("trace".to_owned()));
        let place = writer.place();
        let thread = builder.spawn(move || writer.run(&theirs)).map_err(SinkError::Thread)?;
        let mut sink = Self {
            queue,
            thread: Some(thread),
            place,
            now: header.start.mono,
            header,
            shares,
            n: 0,
            filled: 0,
            lost: None,
            gap: None,
            lost_before: 0,
            error: None,
            told: false,
            line: Vec::with_capacity(4096),
        };
        let start = sink.header.start;
        let encoded = encode::header(&mut sink.line, &sink.header)
            .and_then(|()| encode::start(&mut sink.line, start, first));
        let cut = shares.map(|_| Cut { at: 0, first: 0 });
        sink.hand_over(0, encoded.map(|()| cut), false);
        Ok(sink)
    }

    /// Records one step: the arguments and the effects of [`Daemon::handle`], and the daemon after it. Never blocks and never
    /// fails. O(1) but for a digest, and for a checkpoint at the end of a segment and after a gap.
    pub fn step(&mut self, now: Now, event: &Event, effects: &[Effect], after: &Daemon) {
        (self.n, self.now) = (self.n + 1, now.mono);
        if self.lost.is_some() {
            self.resume(after, false);
            return;
        }
        self.line.clear();
        let mut encoded = encode::step(&mut self.line, self.n, now, event, effects);
        if self.shares.is_some_and(|shares| self.line.len() as u64 > shares.line()) {
            let error = format!("step {} is too long for the flight recorder's budget", self.n);
            self.failed(self.n, self.now, error);
            self.tell_once(self.n);
            self.resume(after, false);
            return;
        }
        if self.n.is_multiple_of(DIGEST_EVERY) || self.n.is_power_of_two() {
            encoded = encoded.and_then(|()| encode::digest(&mut self.line, self.n, after.digest()));
        }
        self.hand_over(self.n, encoded.map(|()| None), false);
        self.rotate_if_full(after);
    }

    /// Records a remark of at most 4 KiB, after the last step. It is left out while steps are.
    pub fn note(&mut self, text: &str, after: &Daemon) {
        if self.lost.is_none() {
            self.line.clear();
            let text = &text[..text.floor_char_boundary(LONGEST_NOTE)];
            let encoded = encode::note(&mut self.line, self.n, text);
            self.hand_over(self.n + 1, encoded.map(|()| None), false);
            self.rotate_if_full(after);
        }
    }

    /// Where it is recorded to.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// A way to what is recorded, if this is a flight recorder.
    pub fn tap(&self) -> Option<Tap> {
        self.shares.map(|_| Tap::new(Arc::clone(&self.queue)))
    }

    /// Ends the recording with a digest and a reason, and waits at most 5 s for the disk.
    pub fn close(mut self, why: &str, after: &Daemon) -> Closed {
        // What could not be written may be known only now: then it is tried once more.
        for _ in 0..2 {
            self.resume(after, true);
            if self.lost.is_none() {
                self.line.clear();
                let encoded = encode::digest(&mut self.line, self.n, after.digest())
                    .and_then(|()| encode::end(&mut self.line, self.n, why));
                self.hand_over(self.n + 1, encoded.map(|()| None), true);
            }
            if self.lost.is_none() {
                break;
            }
        }
        self.finish();
        let missing = self.lost.map_or(0, |lost| (self.n + 1).saturating_sub(lost.from));
        Closed { steps: self.n, lost: self.lost_before + missing, error: self.error.take() }
    }

    fn finish(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.queue.close();
        let (done, failed) = self.queue.wait_done(CLOSE_WITHIN);
        if let Some(failed) = failed {
            self.failed(failed.from, self.now, failed.error);
        }
        if done {
            // It has nothing left to do in which it could fail.
            let _ = thread.join();
        } else {
            let error = "the disk did not take the end of the trace in time".to_owned();
            Causes::add(&mut self.error, error);
        }
    }

    /// Gives what is in `self.line` to the writer, unless it could not be encoded; `first` is the first step that is lost if
    /// it is not written.
    fn hand_over(&mut self, first: StepNumber, encoded: serde_json::Result<Option<Cut>>, force: bool) {
        let later = self.now.after(RETRY);
        let cut = match encoded {
            Ok(cut) => cut,
            Err(error) => return self.failed(first, later, error.to_string()),
        };
        match self.queue.push(&self.line, first, cut, force) {
            Pushed::Taken => self.filled += self.line.len() as u64,
            Pushed::Full => {
                self.failed(first, self.now, "the disk is too slow for the trace".to_owned());
                self.tell_once(first);
            }
            Pushed::Failed(failed) => {
                let retry = if failed.at_once { self.now } else { later };
                self.failed(failed.from, retry, failed.error);
            }
        }
        if cut.is_some() {
            self.filled = 0;
        }
    }

    fn failed(&mut self, from: StepNumber, retry: Instant, error: String) {
        if let Some((_, count)) = self.gap.take_if(|(start, _)| from <= *start) {
            // The gap was not written either: it is part of this one.
            self.lost_before -= count;
        }
        let from = self.lost.map_or(from, |lost| lost.from.min(from));
        self.lost = Some(Lost { from, retry });
        Causes::add(&mut self.error, error);
    }

    /// That steps are left out although the disk takes what it gets is logged once; a disk that refuses is told of by the writer.
    fn tell_once(&mut self, from: StepNumber) {
        if !std::mem::replace(&mut self.told, true) {
            tracing::warn!(
                error = self.error.as_ref().map(|causes| causes.last.as_str()),
                dir = self.place.dir(),
                file = self.place.file(),
                from,
                "steps are missing in the trace; later gaps are not told"
            );
        }
    }

    /// Tries to record again: says what was left out, and begins anew from the state as it is now.
    fn resume(&mut self, after: &Daemon, force: bool) {
        let Some(lost) = self.lost else { return };
        if !force && (self.now < lost.retry || !self.queue.has_room()) {
            return;
        }
        let count = (self.n + 1).saturating_sub(lost.from);
        self.line.clear();
        let encoded = match self.shares {
            // Not even the header was taken: this is the beginning.
            _ if lost.from == 0 => self.late_beginning(count, after),
            Some(_) => self
                .gap_before(lost.from, count)
                .and_then(|()| self.rotation(after, count))
                .and_then(|cut| self.note_why(lost.from).map(|()| Some(Cut { first: lost.from, ..cut }))),
            None => self
                .gap_before(lost.from, count)
                .and_then(|()| encode::checkpoint(&mut self.line, self.n, after))
                .map(|()| None),
        };
        self.lost = None;
        self.gap = Some((lost.from, count));
        self.lost_before += count;
        self.hand_over(lost.from, encoded, force);
    }

    fn gap_before(&mut self, from: StepNumber, count: u64) -> serde_json::Result<()> {
        if count > 0 { encode::gap(&mut self.line, from, count) } else { Ok(()) }
    }

    /// Says in the new segment why steps are missing before it.
    fn note_why(&mut self, from: StepNumber) -> serde_json::Result<()> {
        let why = self.error.as_ref().map_or("nobody knows why", |causes| causes.last.as_str());
        let told = if from == self.n {
            format!("step {from} is missing: {why}")
        } else {
            format!("the steps from {from} to {} are missing: {why}", self.n)
        };
        encode::note(&mut self.line, self.n, &told)
    }

    /// Begins as in the middle of a life, of which so many steps could not be kept.
    fn late_beginning(&mut self, missing: u64, after: &Daemon) -> serde_json::Result<Option<Cut>> {
        self.segment(after, missing)?;
        let told = format!("the disk did not take the first {missing} steps of this life");
        encode::note(&mut self.line, self.n, &told)?;
        Ok(self.shares.map(|_| Cut { at: 0, first: 0 }))
    }

    fn rotate_if_full(&mut self, after: &Daemon) {
        if self.lost.is_some() || self.shares.is_none_or(|shares| self.filled <= shares.steps()) {
            return;
        }
        self.line.clear();
        let rotated = self.rotation(after, 0);
        self.hand_over(self.n + 1, rotated.map(Some), false);
    }

    /// Appends the end of a segment and the beginning of the next to the line. So many steps before that are `lost`: the gap that says so in the
    /// segment before may not be written, as that one may be what is broken or gone.
    fn rotation(&mut self, after: &Daemon, lost: u64) -> serde_json::Result<Cut> {
        encode::end(&mut self.line, self.n, "rotated")?;
        let at = self.line.len();
        self.segment(after, lost)?;
        Ok(Cut { at, first: self.n + 1 })
    }

    /// Appends a beginning in the middle of the life to the line: a header and a checkpoint, if there is room for one.
    fn segment(&mut self, after: &Daemon, lost: u64) -> serde_json::Result<()> {
        self.header.from = Some(Origin { n: self.n, digest: after.digest(), lost });
        encode::header(&mut self.line, &self.header)?;
        let before = self.line.len();
        encode::checkpoint(&mut self.line, self.n, after)?;
        let taken = (self.line.len() - before) as u64;
        if self.shares.is_some_and(|shares| taken > shares.checkpoint()) {
            self.line.truncate(before);
            encode::note(
                &mut self.line,
                self.n,
                "the state is too large for a checkpoint within the budget",
            )?;
        }
        Ok(())
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.finish();
    }
}
