//! When something was so, and how well that is known.

use crate::time::Instant;
use crate::trace::StepNumber;
use std::time::Duration;

/// A step of a life, and its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct At {
    /// Number of the step in its life.
    pub n: StepNumber,
    /// Time since the start of that daemon. It never goes back from one step to the next.
    pub at: Instant,
}

/// How something began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Begin {
    /// In this step.
    Seen(At),
    /// Before this step, which is the first that knows of it: the trace does not have the beginning.
    Before(At),
}

impl Begin {
    /// The first step that knows of it.
    pub const fn first(self) -> At {
        match self {
            Self::Seen(at) | Self::Before(at) => at,
        }
    }

    /// The step in which it began, if the trace has it.
    pub const fn seen(self) -> Option<At> {
        match self {
            Self::Seen(at) => Some(at),
            Self::Before(_) => None,
        }
    }
}

/// How something ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// In this step.
    Seen(At),
    /// Some time after this step, the last one that knows of it: the trace does not have the end.
    After(At),
    /// It was still so when the records of this life ended.
    Open,
}

impl End {
    /// The step in which it ended, if the trace has it.
    pub const fn seen(self) -> Option<At> {
        match self {
            Self::Seen(at) => Some(at),
            Self::After(_) | Self::Open => None,
        }
    }
}

/// Something that was so for a while, within one life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// Its beginning.
    pub begin: Begin,
    /// Its end.
    pub end: End,
}

impl Span {
    /// Begins in this step.
    pub(super) const fn from(at: At) -> Self {
        Self { begin: Begin::Seen(at), end: End::Open }
    }

    /// Was so already before this step.
    pub(super) const fn before(at: At) -> Self {
        Self { begin: Begin::Before(at), end: End::Open }
    }

    /// Whether it was still so when the records ended.
    pub const fn is_open(&self) -> bool {
        matches!(self.end, End::Open)
    }

    /// How long it was so; `None` if the trace does not have both ends.
    pub const fn duration(&self) -> Option<Duration> {
        match (self.begin, self.end) {
            (Begin::Seen(from), End::Seen(to)) => Some(to.at.since(from.at)),
            _ => None,
        }
    }

    /// The first and the last instant at which it is known to have been so; `until` is the end of the records of its life.
    pub fn known(&self, until: Instant) -> (Instant, Instant) {
        let from = self.begin.first().at;
        let to = match self.end {
            End::Seen(at) | End::After(at) => at.at,
            End::Open => until,
        };
        (from, to.max(from))
    }

    /// Ends it so, if it was not over. What is known to have begun is not lost before that.
    pub(super) fn close(&mut self, end: End) {
        if self.is_open() {
            self.end = match end {
                End::After(at) => End::After(at.max(self.begin.first())),
                End::Seen(_) | End::Open => end,
            };
        }
    }
}
