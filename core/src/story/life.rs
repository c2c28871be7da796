//! A life of a daemon: from its creation to its end, as far as it was recorded.

use super::when::{At, Span};
use super::{LifeIx, RuntimeIx, TaskIx};
use crate::effect::{ExitReport, Fact, GateAnswer, KillStep, StopPhase};
use crate::event::{GateOwner, StopKind};
use crate::time::{Instant, Now};
use crate::trace::StepNumber;
use std::time::Duration;

/// One life of a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life {
    /// What kind of program recorded it: `daemon`, `simulator`, …
    pub source: String,
    /// Version of the core that decided.
    pub core: String,
    /// Tasks that may run at once; `None` if the trace was [imported](crate::trace::IMPORTED) from a log that does not say it.
    pub slots: Option<u16>,
    /// Both clocks at its creation.
    pub start: Now,
    /// How much later than the first life of the story it began. Lives never overlap, whatever the wall clock says.
    pub offset: Duration,
    /// Where the records begin.
    pub begins: Begins,
    /// The first step that was recorded; `None` if there is none.
    pub first: Option<At>,
    /// The last one.
    pub last: Option<At>,
    /// How it ended, as far as the trace says.
    pub end: LifeEnd,
    /// Steps that were recorded.
    pub steps: u64,
    /// Those of them whose effects nobody recorded: of what the daemon did in them nothing is known.
    pub without_effects: u64,
    /// Steps that are missing between the first and the last, and those before the first that the trace says are.
    pub gaps: Vec<Gap>,
    /// When every workspace of the first list had been tried.
    pub ready: Option<At>,
    /// When the control connection was up.
    pub linked: Vec<Span>,
    /// When the server refused the credential, so that nothing was asked of it.
    pub barred: Vec<Span>,
    /// What a stop waited for, and from when.
    pub stopping: Vec<(At, StopPhase)>,
}

impl Life {
    /// Whether it was made from the log of another daemon, see [`IMPORTED`](crate::trace::IMPORTED).
    pub fn is_imported(&self) -> bool {
        self.source == crate::trace::IMPORTED
    }

    /// The instant of the last record, or of the creation.
    pub fn until(&self) -> Instant {
        self.last.map_or(self.start.mono, |last| last.at)
    }

    /// How long after the beginning of the story an instant of this life is.
    pub fn since_story(&self, at: Instant) -> Duration {
        self.offset + at.since(self.start.mono)
    }

    /// The first instant that was recorded: the creation, or the first step where the records begin later.
    pub fn from(&self) -> Instant {
        match (self.begins, self.first) {
            (Begins::Created, Some(first)) if first.n > 0 => first.at,
            (Begins::Created, _) | (_, None) => self.start.mono,
            (Begins::Checkpoint(_) | Begins::Middle(_), Some(first)) => first.at,
        }
    }

    /// Steps of it that are known to be missing. A trace may claim more than there can be.
    pub fn missing(&self) -> u64 {
        self.gaps.iter().map(|gap| gap.lost).fold(0, u64::saturating_add)
    }

    /// How long it was recorded, without what is not recorded of its beginning. Gaps count.
    pub fn duration(&self) -> Duration {
        self.until().since(self.from())
    }

    /// Whether a step was recorded: that of a checkpoint at which the records begin was not, and no step of a gap.
    pub fn has_step(&self, n: StepNumber) -> bool {
        let (Some(first), Some(last)) = (self.first, self.last) else { return false };
        let is_lost = |gap: &Gap| n.checked_sub(gap.n).is_some_and(|behind| behind < gap.lost);
        (first.n..=last.n).contains(&n) && !self.gaps.iter().any(is_lost)
    }
}

/// Where the records of a life begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Begins {
    /// With its creation.
    Created,
    /// At a checkpoint, after this step: what was there is known, and not when it began.
    Checkpoint(StepNumber),
    /// In the middle, after this step: what was there is known only where it is named later.
    Middle(StepNumber),
}

/// How a life ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LifeEnd {
    /// The daemon ended itself.
    Exit {
        /// In this step.
        at: At,
        /// Why, and what was left.
        report: ExitReport,
    },
    /// The recording ended in good order, and the daemon may have gone on.
    Recording {
        /// After this step.
        n: StepNumber,
        /// Why.
        why: String,
    },
    /// Nothing says how: the daemon was killed, or still records.
    Unsaid,
}

/// Steps that are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gap {
    /// The first of them.
    pub n: StepNumber,
    /// How many.
    pub lost: u64,
    /// The last step before them; `None` if nothing was recorded before.
    pub after: Option<At>,
    /// The first step after them, if there is one.
    pub until: Option<At>,
    /// Whether a checkpoint says what was there after them.
    pub restored: bool,
}

/// Something that happened at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// In this life.
    pub life: LifeIx,
    /// In this step.
    pub at: At,
    /// It is about this task.
    pub task: Option<TaskIx>,
    /// It is about this runtime.
    pub runtime: Option<RuntimeIx>,
    /// What happened.
    pub what: What,
}

/// What can happen at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum What {
    /// The core stated this. Facts that the story tells elsewhere (phases, slots, runtimes, reports that were taken) are not repeated.
    Fact(Fact),
    /// Somebody wanted the daemon to end.
    Stop(StopKind),
    /// A run was told to end.
    Kill(KillStep),
    /// Somebody asked for the daemon to be idle.
    Gate {
        /// Who.
        owner: GateOwner,
        /// What was answered.
        answer: GateAnswer,
    },
    /// Another credential is in use from here on.
    Credential,
    /// A remark of a person or of the recorder.
    Note(String),
    /// The daemon ended.
    Exit(ExitReport),
}
