//! Feeds the events of a trace to this core although it does something else than was recorded, and records what it does now.
//!
//! This core may number requests otherwise and send others: what an event answers is found by what the request is about
//! ([`Addresses`]). An event that answers nothing any more is left out.

use super::context::{Context, Difference, Divergence};
use super::encode;
use super::format::{Checkpoint, Header, Note, Origin, Record, Step, StepNumber};
use crate::config::ConfigError;
use crate::daemon::Daemon;
use crate::effect::Effects;
use crate::event::{ApiReply, Event, FsReply, Probed, Standing};
use crate::script::Addresses;
use crate::time::Now;
use thiserror::Error;

/// The agent CLIs that a machine is taken to have in a trace that does not tell: before 1.3 nothing did.
const CLIS: [&str; 3] = ["claude", "codex", "opencode"];

/// Why a trace cannot be rebased.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RebaseError {
    /// The header's settings are no settings.
    #[error("line {line}: the settings in the header cannot be used: {error}")]
    Config {
        /// Of the header.
        line: u64,
        /// What is wrong.
        error: ConfigError,
    },
    /// A record cannot be written.
    #[error("a record cannot be written: {0}")]
    Encode(#[from] serde_json::Error),
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Rebased {
    /// Lives that were rebased from their beginning.
    pub lives: u64,
    /// Checkpoints from which it went on.
    pub restored: u64,
    /// Steps of the trace, creations included.
    pub steps: u64,
    /// Steps whose effects are those that were recorded.
    pub same: u64,
    /// Steps whose effects are others.
    pub differ: u64,
    /// Events that answer nothing that this core asks for, and were left out.
    pub left_out: u64,
    /// Answers that were put in, to what no trace of that version tells.
    pub put_in: u64,
    /// Steps that could not be replayed: no state was known to go on from.
    pub skipped: u64,
    /// Checkpoints that this core cannot go on from.
    pub unusable: u64,
    /// The first step whose effects are others.
    pub first: Option<Box<Divergence>>,
}

/// A trace that is being rebased, record by record.
#[derive(Debug, Default)]
pub struct Rebase {
    header: Option<Header>,
    /// Which life it is, from 1.
    life: u64,
    daemon: Option<Daemon>,
    addresses: Addresses,
    out: Effects,
    /// The last step of the trace, and of what is made of it.
    theirs: Option<StepNumber>,
    ours: StepNumber,
    /// Whether a header was written for the life.
    headed: bool,
    /// Steps that are missing since the state was lost.
    lost: u64,
    context: Context,
    report: Rebased,
}

impl Rebase {
    /// What came of it so far.
    pub const fn report(&self) -> &Rebased {
        &self.report
    }

    /// The life that is being read, from 1; 0 before the first.
    pub const fn life(&self) -> u64 {
        self.life
    }

    /// The last step of the trace that was read, or said to be lost.
    pub const fn last(&self) -> Option<StepNumber> {
        self.theirs
    }

    /// Ends it.
    pub fn finish(self) -> Rebased {
        self.report
    }

    /// Takes one record, and appends what is made of it to `to`: whole lines, perhaps none. `line` is for messages.
    ///
    /// # Errors
    /// If the settings of a header are none, or a record cannot be written, which none is known to be.
    pub fn record(&mut self, line: u64, record: Record, to: &mut Vec<u8>) -> Result<(), RebaseError> {
        match record {
            Record::Header(header) => self.begin(line, *header, to)?,
            Record::Step(step) => self.step(line, step, to)?,
            Record::Gap(gap) => {
                self.daemon = None;
                self.theirs = Some(gap.n.saturating_add(gap.lost).saturating_sub(1));
                self.lost = self.lost.saturating_add(gap.lost);
            }
            Record::Checkpoint(point) => self.checkpoint(&point, to)?,
            Record::Digest(_) => {
                if let Some(daemon) = &self.daemon {
                    encode::digest(to, self.ours, daemon.digest())?;
                }
            }
            Record::Note(Note { text, .. }) if self.headed => encode::note(to, self.ours, &text)?,
            Record::End(end) if self.headed => encode::end(to, self.ours, &end.why)?,
            Record::Note(_) | Record::End(_) => {}
        }
        Ok(())
    }

    fn begin(&mut self, line: u64, header: Header, to: &mut Vec<u8>) -> Result<(), RebaseError> {
        let same_life = self.header.as_ref().is_some_and(|old| old.same_life(&header));
        self.life += u64::from(!same_life);
        if let Some(from) = header.from {
            if same_life && self.theirs == Some(from.n) {
                return Ok(());
            }
            let before = self.theirs.filter(|last| same_life && *last < from.n);
            self.lost = before.map_or(0, |last| self.lost.saturating_add(from.n - last));
            if !same_life {
                (self.headed, self.ours) = (false, from.n);
            }
            (self.daemon, self.theirs, self.header) = (None, Some(from.n), Some(header));
            return Ok(());
        }
        self.out.clear();
        self.context.clear();
        let daemon = Daemon::new(header.config.clone(), header.seed, header.start, &mut self.out)
            .map_err(|error| RebaseError::Config { line, error })?;
        (self.addresses, self.theirs, self.ours, self.lost) = (Addresses::new(), None, 0, 0);
        self.addresses.asked_here(self.out.as_slice());
        self.context.push(0, header.start.mono, None, self.out.as_slice().len(), &daemon);
        let new = Header::new(header.source.clone(), header.config.clone(), header.seed, header.start);
        encode::header(to, &new)?;
        encode::start(to, header.start, self.out.as_slice())?;
        let text = format!("rebased; recorded in format {} by core {}", header.format, header.core);
        encode::note(to, 0, &text)?;
        (self.daemon, self.header, self.headed) = (Some(daemon), Some(header), true);
        self.report.lives += 1;
        Ok(())
    }

    fn step(&mut self, line: u64, step: Step, to: &mut Vec<u8>) -> Result<(), RebaseError> {
        self.report.steps += 1;
        self.theirs = Some(step.n);
        let now = step.now();
        if self.daemon.is_none() {
            (self.report.skipped, self.lost) = (self.report.skipped + 1, self.lost.saturating_add(1));
            return Ok(());
        }
        if let Some(mut event) = step.event {
            self.put_in(now, to)?;
            if !self.addresses.translate(&mut event) {
                self.report.left_out += 1;
                self.addresses.asked_there(step.effects.as_deref().unwrap_or_default());
                return Ok(());
            }
            self.feed(now, &event, to)?;
        }
        if let Some(recorded) = step.effects {
            self.addresses.asked_there(&recorded);
            self.compare(line, step.n, recorded);
        }
        Ok(())
    }

    fn feed(&mut self, now: Now, event: &Event, to: &mut Vec<u8>) -> Result<(), RebaseError> {
        let Some(daemon) = &mut self.daemon else { return Ok(()) };
        self.out.clear();
        daemon.handle(now, event, &mut self.out);
        self.ours += 1;
        self.context.push(self.ours, now.mono, Some(event.clone()), self.out.as_slice().len(), daemon);
        self.addresses.asked_here(self.out.as_slice());
        encode::step(to, self.ours, now, event, self.out.as_slice())?;
        Ok(())
    }

    /// Answers looks at agent CLIs and custom runtimes, which traces before 1.3 do not have.
    fn put_in(&mut self, now: Now, to: &mut Vec<u8>) -> Result<(), RebaseError> {
        if self.header.as_ref().is_none_or(|header| header.format.minor >= 3) {
            return Ok(());
        }
        while let Some((op, label)) = self.addresses.take(&["probe", "profiles "]) {
            let works =
                |name: &str| Probed { provider: name.into(), standing: Standing::Works { version: 1 } };
            let event = if label.starts_with("probe") {
                Event::Fs { op, r: Ok(FsReply::Probed { agents: CLIS.map(works).into() }) }
            } else {
                Event::Api { op, r: Ok(ApiReply::Profiles { signature: 1, count: 0 }) }
            };
            self.report.put_in += 1;
            self.feed(now, &event, to)?;
        }
        Ok(())
    }

    fn compare(&mut self, line: u64, n: StepNumber, recorded: Vec<crate::effect::Effect>) {
        if recorded == self.out.as_slice() {
            self.report.same += 1;
            return;
        }
        self.report.differ += 1;
        if self.report.first.is_none() {
            let what = Difference::Effects { recorded, produced: self.out.as_slice().to_vec() };
            let (life, context, recorded_by) = (self.life, self.context.clone(), None);
            self.report.first = Some(Box::new(Divergence { life, n, line, what, context, recorded_by }));
        }
    }

    fn checkpoint(&mut self, point: &Checkpoint, to: &mut Vec<u8>) -> Result<(), RebaseError> {
        if let Some(daemon) = &self.daemon {
            return Ok(encode::checkpoint(to, self.ours, daemon)?);
        }
        let Some(header) = &self.header else { return Ok(()) };
        let Ok(daemon) = Daemon::restore(&point.state) else {
            self.report.unusable += 1;
            return Ok(());
        };
        if self.headed {
            if self.lost > 0 {
                encode::gap(to, self.ours.saturating_add(1), self.lost)?;
                self.ours = self.ours.saturating_add(self.lost);
            }
        } else {
            self.ours = point.n;
            let new = Header::new(header.source.clone(), header.config.clone(), header.seed, header.start);
            let lost = header.from.filter(|from| from.n == point.n).map_or(0, |from| from.lost);
            let from = Some(Origin { n: point.n, digest: daemon.digest(), lost });
            encode::header(to, &Header { from, ..new })?;
        }
        encode::checkpoint(to, self.ours, &daemon)?;
        self.context.clear();
        (self.daemon, self.addresses, self.lost, self.headed) = (Some(daemon), Addresses::middle(), 0, true);
        self.report.restored += 1;
        Ok(())
    }
}
