//! A task in one life of a daemon: from its claim to the moment when nothing about it is left to do.

use super::request::Ending;
use super::when::{At, Span};
use super::{ClaimIx, LifeIx, RequestIx, RuntimeIx, TaskIx};
use crate::effect::{EndReason, PhaseName, ReportKind};
use crate::event::{ClaimKey, Recovered, RunOutcome, TaskStatus};
use crate::id::{EnvRoot, Provider, SlotIndex, TaskId};
use crate::reason::FailReason;

/// One claim of a task, in one life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The life.
    pub life: LifeIx,
    /// Number of the claim, unique in its life; a claim that is taken over keeps it.
    pub claim: ClaimKey,
    /// The task's id; `None` if the trace names only the claim.
    pub id: Option<TaskId>,
    /// Its runtime.
    pub runtime: Option<RuntimeIx>,
    /// Its agent CLI family.
    pub provider: Option<Provider>,
    /// The directory that it was to get.
    pub root: Option<EnvRoot>,
    /// Whether it works in a directory of the user.
    pub in_place: Option<bool>,
    /// How it came here.
    pub origin: Origin,
    /// The same claim in an earlier life of this story.
    pub before: Option<TaskIx>,
    /// How long it was here: until its slot and its directory were given back. One that may have been over when the trace first names it is here
    /// for no time, unless something says that it is.
    pub here: Span,
    /// Its phases, in order. They do not overlap, and each begins where the one before it ends if both are seen.
    pub phases: Vec<Phase>,
    /// What it waited for, in the order in which that began. Waits for different things may overlap.
    pub waits: Vec<Wait>,
    /// Launches of its agent, in order.
    pub launches: Vec<Launch>,
    /// How its prepare lease was kept.
    pub lease: Lease,
    /// Why it was to end before its time; a later reason outranks an earlier one.
    pub endings: Vec<(At, EndReason)>,
    /// What was to be reported, as it was written down last.
    pub verdict: Option<ReportKind>,
    /// What became of its report.
    pub fate: Fate,
    /// How long the report, messages or usage were tried in the background after it was over.
    pub late: Option<Span>,
    /// Highest number of a message that the agent is known to have said.
    pub messages: u32,
    /// Requests about it, in order.
    pub requests: Vec<RequestIx>,
    /// When nothing about it was left to do.
    pub forgotten: Option<At>,
}

impl Task {
    /// Whether a phase of it, by its place, is the rest of one that began in an earlier process: what is seen here is only a part of it.
    pub fn goes_on_in(&self, phase: usize) -> bool {
        let Some(Phase { name, .. }) = self.phases.get(phase) else { return false };
        match self.origin {
            // Its agent is followed.
            Origin::Recovered(Some(Recovered::Launched { .. })) => *name == PhaseName::Running,
            // Its end is told on.
            Origin::Recovered(Some(Recovered::Ended { .. })) => *name < PhaseName::Sealing,
            Origin::Recovered(None) => phase == 0,
            // One that was only claimed is failed back, all of which is new.
            Origin::Recovered(Some(Recovered::Claimed))
            | Origin::Admitted(_)
            | Origin::HandedBack(..)
            | Origin::Offered(_)
            | Origin::Unknown => false,
        }
    }
}

/// How a task came to be here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// This claim brought it, and it was taken.
    Admitted(Option<ClaimIx>),
    /// This claim brought it, and it was failed back without a run.
    HandedBack(Option<ClaimIx>, FailReason),
    /// An earlier process of this daemon had it, and it was so far; `None` if the trace does not have that.
    Recovered(Option<Recovered>),
    /// This claim offered it, and nobody recorded what the daemon did about it: if it took the task, then in that step.
    Offered(Option<ClaimIx>),
    /// It was here before the records begin, or came while steps were lost.
    Unknown,
}

impl Origin {
    /// The claim that brought it.
    pub const fn claim(self) -> Option<ClaimIx> {
        match self {
            Self::Admitted(claim) | Self::HandedBack(claim, _) | Self::Offered(claim) => claim,
            Self::Recovered(_) | Self::Unknown => None,
        }
    }
}

/// One phase of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Phase {
    /// Which one.
    pub name: PhaseName,
    /// When.
    pub span: Span,
}

/// A time in which a task could not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wait {
    /// When.
    pub span: Span,
    /// For what.
    pub reason: WaitReason,
}

/// Why something waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitReason {
    /// No slot is free.
    Slot,
    /// Another task works in the user's directory that this one is to work in.
    Directory {
        /// That one, if it is known.
        holder: Option<TaskIx>,
        /// Whether this one gave its slot to others meanwhile.
        parked: bool,
    },
    /// The collector frees the directory that it is to get.
    Collector,
    /// `/start` is accepted, and the last refresh of the lease has to end before the agent is launched.
    LeaseEnd,
    /// A request did not succeed, and the next try of its kind has to wait.
    Retry {
        /// That one.
        request: RequestIx,
        /// How it ended.
        after: Ending,
    },
    /// A claim is on its way already.
    ClaimOnItsWay,
    /// A claim of unknown fate may have brought tasks: none is sent for a while.
    HeldOff,
    /// The server refuses the credential.
    Credential,
    /// The daemon stops, or somebody holds the gate: nothing is claimed.
    Closed,
    /// The trace does not tell; or the end was told in an earlier process, whose life says what became of it.
    Unknown,
}

/// One launch of an agent, or the beginning of following one that an earlier process launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Launch {
    /// The request.
    pub request: RequestIx,
    /// The agent's number.
    pub slot: Option<SlotIndex>,
    /// Whether the session to resume is known to have turned out dead, so that the agent starts without it.
    pub fresh: bool,
    /// Whether it is known to be only followed.
    pub attached: bool,
    /// When.
    pub span: Span,
    /// When the process was there.
    pub launched: Option<At>,
    /// When it first said something.
    pub spoke: Option<At>,
    /// When its result was seen.
    pub answered: Option<At>,
    /// What it came to.
    pub outcome: Option<RunOutcome>,
}

/// A prepare lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lease {
    /// Each time that the server granted it, the claim itself included.
    pub grants: Vec<Grant>,
    /// When it was not needed any more: `/start` was accepted, or the task was to end; and how long before its expiry that was, in
    /// milliseconds: negative if the lease had run out.
    pub over: Option<(At, Option<i64>)>,
}

impl Lease {
    /// All margins that are known, in milliseconds: how long before the expiry of the lease it was granted anew, or not needed any more.
    pub fn margins(&self) -> impl Iterator<Item = i64> + '_ {
        let last = self.over.and_then(|(_, margin)| margin);
        self.grants.iter().filter_map(|grant| grant.margin_ms).chain(last)
    }
}

/// A grant of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grant {
    /// When the answer came.
    pub at: At,
    /// The request that brought it, if the trace has it.
    pub by: Option<RequestIx>,
    /// How long before the expiry of the grant before it that was, in milliseconds: negative if the lease had run out. The lease counts from
    /// the moment when its request was sent, so that it is never taken to be longer than it is. `None` for the first, and where it is not
    /// known.
    pub margin_ms: Option<i64>,
}

/// What became of the terminal report of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// Nothing yet.
    Open,
    /// It was taken.
    Reported {
        /// When.
        at: At,
        /// Which one.
        report: ReportKind,
        /// How many tries it took.
        tries: u32,
    },
    /// The server had given the task to somebody else.
    Superseded {
        /// When that was said.
        at: At,
        /// What the server had for the task.
        status: TaskStatus,
    },
    /// The server will not take it, ever.
    Refused {
        /// When that was said.
        at: At,
        /// HTTP status.
        status: u16,
    },
    /// The server wanted to hear nothing: the task was not this claim's any more.
    Silent,
    /// The daemon ended, and nothing was reported.
    Abandoned,
    /// The daemon ended, and its run went on for the next process.
    Kept,
    /// The trace does not tell.
    Unknown,
}
