//! The phases of a task, each with exactly what it holds: there is no way to write down a `/start` without a prepared
//! directory, or a run whose lease still goes on.

use crate::effect::{PhaseName, ReportKind};
use crate::id::OpId;
use crate::task::lease::Lease;
use crate::task::report::Report;
use crate::token::{LeaseStopped, Prepared};
use serde::{Deserialize, Serialize};

/// Where a task is.
#[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum Phase {
    /// Only while a step moves it from one phase to another.
    Moving,
    /// Its directory is being deleted by the collector; a mark is queued.
    AwaitingRoot,
    /// A helper makes its directory.
    Preparing { op: OpId, lease: Lease },
    /// `/start` is being settled with the server.
    Starting { prepared: Prepared, lease: Lease, start: Start },
    /// `/start` was accepted; the last refresh of the lease has to end.
    LeaseEnding { prepared: Prepared, lease: Lease },
    /// The agent runs.
    Running(Running),
    /// The agent has ended, or there was none: the temp dir goes, what it said goes out.
    Settling(Settling),
    /// The terminal report.
    Reporting(Report),
    /// The directory is closed.
    Sealing { op: OpId },
    /// Nothing is left to do but to wait for the end of a post of messages.
    Over,
}

/// `/start`, step by step.
#[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Start {
    pub(super) step: StartStep,
    /// Whether an earlier try may have been accepted.
    pub(super) maybe: bool,
    /// Whether the last try was refused with a 4xx, and by which.
    pub(super) refused: Option<u16>,
    pub(super) failures: crate::backoff::Failures,
}

#[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum StartStep {
    Calling(OpId),
    Asking(OpId),
    /// Until the timer: then ask if something was sent whose fate is not known, else call.
    Waiting {
        ask: bool,
    },
}

/// A run.
#[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Running {
    /// What a second launch needs; none for a run that an earlier process launched, which can only be followed.
    pub(super) proof: Option<(Prepared, LeaseStopped)>,
    pub(super) op: OpId,
    pub(super) stage: RunStage,
    /// Whether this is the second launch, without the session that turned out dead.
    pub(super) fresh: bool,
}

/// How far a run is; it only moves forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) enum RunStage {
    /// It goes on.
    Live,
    /// The result was seen; the process is to end by itself.
    Answered,
    /// It was told to end.
    Ending,
    /// It was killed.
    Killed,
}

/// What is left to do between the end of a run and the report.
#[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Settling {
    /// What will be reported; `None` if the server wants to hear nothing.
    pub(super) verdict: Option<ReportKind>,
    /// Whether an agent was launched.
    pub(super) ran: bool,
    /// Open until temp dir and sidecars are gone.
    pub(super) unwind: Option<OpId>,
    /// Open until the server's last word on the task.
    pub(super) check: Option<OpId>,
    /// The last messages were waited for long enough.
    pub(super) drained: bool,
}

impl Phase {
    /// Its name for people; `None` for what is over within a step.
    pub(super) const fn name(&self) -> Option<PhaseName> {
        Some(match self {
            Self::Moving => return None,
            Self::AwaitingRoot => PhaseName::AwaitingRoot,
            Self::Preparing { .. } => PhaseName::Preparing,
            Self::Starting { .. } | Self::LeaseEnding { .. } => PhaseName::Starting,
            Self::Running(_) => PhaseName::Running,
            Self::Settling(_) => PhaseName::Settling,
            Self::Reporting(_) => PhaseName::Reporting,
            Self::Sealing { .. } | Self::Over => PhaseName::Sealing,
        })
    }
}
