//! Feeds a recorded history to a core, and compares what it does with what was recorded.

use super::context::{Context, Difference, Divergence};
use super::diff;
use super::format::{Checkpoint, Gap, Header, Record, Step, StepNumber};
use super::reader::{Reader, Torn, TraceError};
use crate::config::ConfigError;
use crate::daemon::{Daemon, RestoreError};
use crate::effect::{Effect, Effects};
use crate::event::Event;
use crate::time::Now;
use std::io::BufRead;
use thiserror::Error;

/// How strict a replay is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Every recorded effect and digest must come out again. After a gap nothing is compared until the next checkpoint.
    Strict,
    /// Only the events are used. After a gap they go on, to a core that does not know what it missed.
    EventsOnly,
}

/// Why a replay ended early.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The core did something else.
    #[error("{0}")]
    Diverged(Box<Divergence>),
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The header's settings are no settings.
    #[error("line {line}: the settings in the header cannot be used: {error}")]
    Config {
        /// Of the header.
        line: u64,
        /// What is wrong.
        error: ConfigError,
    },
    /// A checkpoint is needed and is of no use.
    #[error("line {line}: {error}")]
    Restore {
        /// Of the checkpoint.
        line: u64,
        /// What is wrong.
        error: RestoreError,
    },
    /// A checkpoint does not restore to the state that it was taken of.
    #[error(
        "line {line}: the checkpoint restores to digest {restored:016x}, and says that it is {said:016x}"
    )]
    Checkpoint {
        /// Of the checkpoint.
        line: u64,
        /// What it says.
        said: u64,
        /// What it is.
        restored: u64,
    },
    /// A record is where it cannot be: steps are missing, doubled or out of order, and no gap says so.
    #[error("line {line}: {what} {found} is here, where {expected} must be")]
    Order {
        /// Of the record.
        line: u64,
        /// What kind of record.
        what: &'static str,
        /// The number that must be here.
        expected: StepNumber,
        /// The number that is here.
        found: StepNumber,
    },
    /// Step 0 has an event, or another step has none.
    #[error("line {line}: step {n} must have {}", if *n == 0 { "no event, as it is the creation" } else { "an event" })]
    Event {
        /// Of the step.
        line: u64,
        /// Its number.
        n: StepNumber,
    },
}

/// What a replay came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Headers that were read.
    pub segments: u64,
    /// Lives in the trace, so far.
    pub all_lives: u64,
    /// Lives that were replayed from their beginning.
    pub lives: u64,
    /// Steps in the trace.
    pub steps: u64,
    /// Steps whose effects were compared, and were the same.
    pub compared: u64,
    /// Steps that were not replayed: no state was known to replay them from.
    pub skipped: u64,
    /// Digests of the state that were compared, those of checkpoints and segments included, and were the same.
    pub digests: u64,
    /// Digests of the state that were compared with nothing: no state was known.
    pub digests_skipped: u64,
    /// The step of the checkpoint from which the replay began, if it did not begin with a life.
    pub from_checkpoint: Option<StepNumber>,
    /// Checkpoints from which it went on.
    pub restored: u64,
    /// Gaps, whether said or shown by a missing segment.
    pub gaps: u64,
    /// Steps that are known to be lost in them.
    pub lost: u64,
    /// A last line that was broken off, in the last segment that had one.
    pub torn: Option<Torn>,
    /// Why the recording ended, if it ended in good order.
    pub end: Option<String>,
    /// Version of the core that recorded the last segment.
    pub core: String,
    /// Whether something was imported, see [`IMPORTED`](super::IMPORTED): it is read, and not replayed.
    pub imported: bool,
}

/// A step of a replay, for an observer.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Its number.
    pub n: StepNumber,
    /// When it was.
    pub now: Now,
    /// What happened; `None` for the creation.
    pub event: Option<&'a Event>,
    /// What the core does about it, in the replay.
    pub effects: &'a [Effect],
    /// What the trace says that it did; `None` if nobody recorded that.
    pub recorded: Option<&'a [Effect]>,
    /// The core after it.
    pub daemon: &'a Daemon,
}

/// A replay under way. Segments of the same life are put together if they are given in order.
#[derive(Debug)]
pub struct Replay {
    mode: Mode,
    header: Option<Header>,
    /// `None` while no state is known.
    daemon: Option<Daemon>,
    /// Whether events were lost since the state was known.
    drifted: bool,
    /// The last step that was read, or said to be lost.
    last: Option<StepNumber>,
    /// The last step whose digest was compared.
    sure: Option<StepNumber>,
    out: Effects,
    context: Context,
    report: Report,
}

impl Replay {
    /// A replay of nothing yet.
    pub fn new(mode: Mode) -> Self {
        Self {
            mode,
            header: None,
            daemon: None,
            drifted: false,
            last: None,
            sure: None,
            out: Effects::new(),
            context: Context::default(),
            report: Report::default(),
        }
    }

    /// Replays one trace.
    ///
    /// # Errors
    /// At the first difference, and if the trace cannot be read.
    pub fn run<R: BufRead>(mut self, trace: Reader<R>) -> Result<Report, ReplayError> {
        self.segment(trace, |_| {})?;
        Ok(self.finish())
    }

    /// Replays one segment, and shows each replayed step to an observer.
    ///
    /// # Errors
    /// At the first difference, and if the trace cannot be read.
    pub fn segment<R: BufRead>(
        &mut self,
        mut trace: Reader<R>,
        mut observer: impl FnMut(Seen<'_>),
    ) -> Result<(), ReplayError> {
        self.begin(trace.line(), trace.header().clone())?;
        while let Some(record) = trace.next() {
            self.record(trace.line(), record?, &mut observer)?;
        }
        self.report.torn = trace.torn().or(self.report.torn);
        Ok(())
    }

    /// What has been replayed so far.
    pub const fn report(&self) -> &Report {
        &self.report
    }

    /// The last steps that were replayed.
    pub const fn context(&self) -> &Context {
        &self.context
    }

    /// The last step that was read, or said to be lost; `None` at the beginning of a life.
    pub const fn last(&self) -> Option<StepNumber> {
        self.last
    }

    /// Whether the state after the last step is known.
    pub const fn knows_state(&self) -> bool {
        self.daemon.is_some() && !self.drifted
    }

    /// Forgets the state, as after a gap: what follows is replayed from the next checkpoint on.
    pub fn lose_state(&mut self) {
        self.daemon = None;
        self.context.clear();
        self.sure = None;
    }

    /// Ends the replay.
    pub fn finish(self) -> Report {
        self.report
    }

    fn begin(&mut self, line: u64, header: Header) -> Result<(), ReplayError> {
        self.report.segments += 1;
        self.report.core.clone_from(&header.core);
        self.report.end = None;
        let same_life = self.header.as_ref().is_some_and(|old| old.same_life(&header));
        let (config, seed, start, from) = (header.config.clone(), header.seed, header.start, header.from);
        let imported = header.is_imported();
        self.header = Some(header);
        self.report.all_lives += u64::from(!same_life);
        self.report.imported |= imported;
        if imported {
            // No core went through this: one that is fed with it would only find what it knows nothing of.
            self.daemon = None;
            self.context.clear();
            (self.last, self.sure) = (from.map(|from| from.n), None);
            return Ok(());
        }
        let Some(from) = from else {
            self.out.clear();
            self.context.clear();
            let daemon = Daemon::new(config, seed, start, &mut self.out);
            self.daemon = Some(daemon.map_err(|error| ReplayError::Config { line, error })?);
            (self.last, self.sure, self.drifted) = (None, None, false);
            self.report.lives += 1;
            return Ok(());
        };
        if same_life && self.last == Some(from.n) {
            return self.compare_digest(line, from.n, from.digest, None);
        }
        let lost = match self.last.filter(|_| same_life) {
            Some(last) => from.n.saturating_sub(last),
            None => from.gap().map_or(0, |gap| gap.lost),
        };
        self.report.gaps += u64::from(lost > 0);
        self.report.lost = self.report.lost.saturating_add(lost);
        self.daemon = None;
        self.context.clear();
        (self.last, self.sure) = (Some(from.n), None);
        Ok(())
    }

    /// Replays one record, and shows the step to an observer, if it is one that can be replayed. `line` is for messages. The first record is
    /// a header.
    ///
    /// # Errors
    /// As [`Replay::segment`]. A checkpoint that is of no use changes nothing, so the replay can go on after it.
    pub fn record(
        &mut self,
        line: u64,
        record: Record,
        observer: &mut impl FnMut(Seen<'_>),
    ) -> Result<(), ReplayError> {
        match record {
            Record::Header(header) => self.begin(line, *header),
            Record::Step(step) => self.step(line, step, observer),
            Record::Digest(at) => {
                self.in_place(line, "the digest after step", at.n)?;
                self.compare_digest(line, at.n, at.digest, None)
            }
            Record::Checkpoint(point) => self.checkpoint(line, &point),
            Record::Gap(gap) => self.gap(line, gap),
            Record::Note(_) => Ok(()),
            Record::End(end) => {
                self.report.end = Some(end.why);
                Ok(())
            }
        }
    }

    fn step(
        &mut self,
        line: u64,
        step: Step,
        observer: &mut impl FnMut(Seen<'_>),
    ) -> Result<(), ReplayError> {
        let (n, now) = (step.n, step.now());
        // A trace that was written by hand may leave the creation out.
        if !(self.last.is_none() && n == 1) {
            self.next_in_line(line, "step", n)?;
        }
        if (n == 0) == step.event.is_some() {
            return Err(ReplayError::Event { line, n });
        }
        self.last = Some(n);
        self.report.steps += 1;
        let Some(daemon) = &mut self.daemon else {
            self.report.skipped += 1;
            return Ok(());
        };
        if let Some(event) = &step.event {
            self.out.clear();
            daemon.handle(now, event, &mut self.out);
        }
        let produced = self.out.as_slice();
        let recorded = step.effects.as_deref();
        observer(Seen { n, now, event: step.event.as_ref(), effects: produced, recorded, daemon });
        self.context.push(n, step.mono, step.event, produced.len(), daemon);
        let Some(recorded) = step.effects.filter(|_| self.mode == Mode::Strict) else { return Ok(()) };
        if recorded != produced {
            let produced = produced.to_vec();
            return Err(self.diverged(line, n, Difference::Effects { recorded, produced }));
        }
        self.report.compared += 1;
        Ok(())
    }

    /// `state` is what was recorded, if the whole of it was.
    fn compare_digest(
        &mut self,
        line: u64,
        n: StepNumber,
        recorded: u64,
        state: Option<&str>,
    ) -> Result<(), ReplayError> {
        if self.mode == Mode::EventsOnly {
            return Ok(());
        }
        let Some(daemon) = &self.daemon else {
            self.report.digests_skipped += 1;
            return Ok(());
        };
        let produced = daemon.digest();
        if produced != recorded {
            let since = self.sure;
            let ours = state.and_then(|_| daemon.checkpoint().ok());
            let fields = state.zip(ours).map_or_else(Vec::new, |(theirs, ours)| diff::texts(theirs, &ours));
            return Err(self.diverged(line, n, Difference::Digest { recorded, produced, since, fields }));
        }
        self.sure = Some(n);
        self.report.digests += 1;
        Ok(())
    }

    /// While the state is known, a checkpoint is checked against it; else it becomes the state.
    fn checkpoint(&mut self, line: u64, point: &Checkpoint) -> Result<(), ReplayError> {
        self.in_place(line, "the checkpoint after step", point.n)?;
        if self.daemon.is_some() && !self.drifted {
            if self.mode == Mode::EventsOnly {
                return Ok(());
            }
            self.compare_digest(line, point.n, point.digest, Some(&point.state))?;
        }
        let restored = Daemon::restore(&point.state).map_err(|error| ReplayError::Restore { line, error })?;
        let digest = restored.digest();
        if digest != point.digest {
            return Err(ReplayError::Checkpoint { line, said: point.digest, restored: digest });
        }
        if self.daemon.is_some() && !self.drifted {
            return Ok(());
        }
        if self.report.steps == 0 {
            self.report.from_checkpoint = Some(point.n);
        } else {
            self.report.restored += 1;
        }
        self.out.clear();
        self.daemon = Some(restored);
        (self.drifted, self.sure) = (false, Some(point.n));
        Ok(())
    }

    fn gap(&mut self, line: u64, gap: Gap) -> Result<(), ReplayError> {
        self.next_in_line(line, "the gap from step", gap.n)?;
        self.last = Some(gap.n.saturating_add(gap.lost).saturating_sub(1));
        self.report.gaps += 1;
        self.report.lost = self.report.lost.saturating_add(gap.lost);
        self.drifted = true;
        if self.mode == Mode::Strict {
            self.daemon = None;
            self.context.clear();
        }
        Ok(())
    }

    fn next_in_line(&self, line: u64, what: &'static str, found: StepNumber) -> Result<(), ReplayError> {
        let expected = self.last.map_or(0, |last| last.saturating_add(1));
        if found == expected { Ok(()) } else { Err(ReplayError::Order { line, what, expected, found }) }
    }

    fn in_place(&self, line: u64, what: &'static str, found: StepNumber) -> Result<(), ReplayError> {
        let expected = self.last.unwrap_or(0);
        if found == expected { Ok(()) } else { Err(ReplayError::Order { line, what, expected, found }) }
    }

    fn diverged(&self, line: u64, n: StepNumber, what: Difference) -> ReplayError {
        let other = |header: &&Header| !header.is_of_this_release();
        let recorded_by = self.header.as_ref().filter(other).map(|header| header.core.clone());
        let (life, context) = (self.report.all_lives, self.context.clone());
        ReplayError::Diverged(Box::new(Divergence { life, n, line, what, context, recorded_by }))
    }
}
