//! What the core states beside what it wants done: for logs, traces and observers. Nothing acts upon it.

use crate::event::{ClaimKey, Collect, TaskStatus};
use crate::id::{ActionId, EnvRoot, Provider, RuntimeId, SlotIndex, TaskId};
use crate::reason::FailReason;
use serde::{Deserialize, Serialize};

/// Something to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Fact {
    /// The first workspace list is in and every workspace of it was tried.
    Ready,
    /// A task was taken.
    Admitted {
        /// This claim.
        claim: ClaimKey,
        /// The task.
        task: TaskId,
        /// Its runtime.
        runtime: RuntimeId,
        /// Its slot.
        slot: SlotIndex,
    },
    /// A task that an earlier process of this daemon had taken was taken over.
    Recovered {
        /// This claim.
        claim: ClaimKey,
        /// The task.
        task: TaskId,
        /// Its runtime.
        runtime: RuntimeId,
        /// Its slot, if it needs one and there was one left.
        slot: Option<SlotIndex>,
    },
    /// A task waits for the user's directory that it works in, and its slot is free from now on. One that has to wait while as many tasks do so
    /// as there are slots keeps its slot and goes without this, for as long as that is so.
    Parked {
        /// This claim.
        claim: ClaimKey,
        /// The claim that has the directory, or is before it in the line.
        holder: ClaimKey,
    },
    /// A parked task has the directory, and a slot again.
    Unparked {
        /// This claim.
        claim: ClaimKey,
        /// Its slot.
        slot: SlotIndex,
    },
    /// A claim is of unknown fate: it may have brought tasks, so none is sent for a while.
    HeldOff,
    /// A directory was freed by the collector.
    Collected {
        /// Which one.
        root: EnvRoot,
        /// How much of it.
        what: Collect,
        /// Whether it worked.
        ok: bool,
    },
    /// More directories were found than the collector takes in one round; the rest is for the next.
    Uncollected {
        /// How many.
        left: u32,
    },
    /// A task that is already here was offered again, and ignored.
    Duplicate {
        /// The task.
        task: TaskId,
    },
    /// A task is failed back without a run.
    HandedBack {
        /// This claim.
        claim: ClaimKey,
        /// The task.
        task: TaskId,
        /// Why.
        reason: FailReason,
    },
    /// Claimed tasks could not even be named to the server.
    Unusable {
        /// How many.
        count: u16,
    },
    /// A task entered a phase.
    Phase {
        /// Of this claim.
        claim: ClaimKey,
        /// Which one.
        phase: PhaseName,
    },
    /// A task must end before its time.
    Ending {
        /// Of this claim.
        claim: ClaimKey,
        /// Why.
        why: EndReason,
    },
    /// A terminal report was taken.
    Reported {
        /// Of this claim.
        claim: ClaimKey,
        /// Which one.
        report: ReportKind,
        /// How many tries it took.
        tries: u32,
    },
    /// A terminal report goes on being tried in the background; its slot and directory are free.
    ReportLate {
        /// Of this claim.
        claim: ClaimKey,
    },
    /// The server answered the terminal report and did not act upon it, as it has given the task to somebody else: nothing more is reported.
    /// Since trace 1.3.
    ReportSuperseded {
        /// Of this claim.
        claim: ClaimKey,
        /// What the server has for the task.
        status: TaskStatus,
    },
    /// The server will not take the terminal report, ever.
    ReportRefused {
        /// Of this claim.
        claim: ClaimKey,
        /// HTTP status.
        status: u16,
    },
    /// The server will not take some messages, ever; they are skipped.
    MessagesRefused {
        /// Of this claim.
        claim: ClaimKey,
        /// Up to this number.
        upto: u32,
        /// HTTP status.
        status: u16,
    },
    /// The tokens that were used go on being reported in the background; the terminal report does not wait for them. Since trace 1.2.
    UsageLate {
        /// Of this claim.
        claim: ClaimKey,
    },
    /// The server will not take the tokens that were used, ever.
    UsageLost {
        /// Of this claim.
        claim: ClaimKey,
    },
    /// A task is over, and its slot is free.
    Released {
        /// This claim.
        claim: ClaimKey,
        /// Its slot, if it had one.
        slot: Option<SlotIndex>,
    },
    /// The server refuses the credential.
    Unauthorized,
    /// As the server refuses the credential, nothing is asked of it but now and then whether it still does. Since trace 1.3.
    AccessLost,
    /// The server takes the credential again, or there is another one. Since trace 1.3.
    AccessBack,
    /// The control connection is up: whatever may have been missed is looked at again. Since trace 1.3.
    Reconciled,
    /// The machine has slept: everything that is due by the server's time is done at once. Since trace 1.3.
    Woke {
        /// For how many milliseconds.
        slept: u64,
    },
    /// An agent CLI that cannot be used any more was taken off line everywhere, until a look finds that it works. Since trace 1.3.
    Held {
        /// Which one.
        provider: Provider,
    },
    /// An agent CLI that was held back works again. Since trace 1.3.
    Freed {
        /// Which one.
        provider: Provider,
    },
    /// The result of something that the server asked for was taken, or will never be. Since trace 1.3.
    ActionOver {
        /// Which one.
        action: ActionId,
        /// Whether it was taken.
        taken: bool,
    },
    /// Something that the server asks for is left undone, as too much of it waits already. Since trace 1.3.
    ActionDropped {
        /// Which one.
        action: ActionId,
    },
    /// The server has no such runtime any more; it is registered again.
    RuntimeGone {
        /// Which one.
        runtime: RuntimeId,
    },
    /// The server has no batch claim; each runtime asks for itself.
    PerRuntimeClaims,
    /// The daemon is ending.
    Stopping {
        /// What it waits for.
        phase: StopPhase,
    },
    /// An event did not fit: its request is closed, unknown or of another kind.
    Stray {
        /// How many there were.
        total: u64,
    },
}

/// Phases of a task, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PhaseName {
    /// The user's directory that it works in is looked at.
    Resolving,
    /// Another task works in the user's directory.
    AwaitingDirectory,
    /// It has the user's directory, and waits for a slot.
    AwaitingSlot,
    /// Waits for the collector to let its directory go.
    AwaitingRoot,
    /// Its directory is made.
    Preparing,
    /// `/start` is on its way.
    Starting,
    /// The agent runs.
    Running,
    /// The agent has ended; the rest of its output is sent.
    Settling,
    /// The terminal report is on its way.
    Reporting,
    /// The directory is closed.
    Sealing,
}

/// Why a task ends before its time; a later one outranks an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EndReason {
    /// The daemon stops.
    Stop,
    /// The agent was silent for too long.
    Idle,
    /// The agent took too long.
    TooLong,
    /// Preparation took too long.
    PrepareTimeout,
    /// The server has ended or forgotten the task.
    Server,
}

/// The kinds of terminal report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ReportKind {
    /// The agent did it.
    Complete,
    /// It was not done.
    Fail {
        /// Why.
        reason: FailReason,
    },
    /// It was cancelled, and has stopped.
    CancelAck,
}

/// What a stop waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopPhase {
    /// Nothing: the daemon serves.
    Serving,
    /// Claims that are on their way.
    Claims,
    /// Tasks and their reports.
    Tasks,
    /// The deregistration.
    Deregistering,
    /// Nothing any more.
    Exited,
}

/// How the daemon ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitReport {
    /// Why.
    pub cause: ExitCause,
    /// Tasks whose end was not reported.
    pub abandoned: Vec<TaskId>,
    /// Tasks whose runs go on, for the next process of this daemon.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<TaskId>,
}

/// Why the daemon ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ExitCause {
    /// It was asked to.
    Stopped,
    /// It was asked to make room for its next process.
    Restarting,
    /// The server refused the credential at the start.
    Unauthorized,
}

impl ExitCause {
    /// Whether the runs that there are go on, for the next process. A refused credential says nothing about them: somebody logs in again.
    pub const fn leaves_runs(self) -> bool {
        matches!(self, Self::Restarting | Self::Unauthorized)
    }
}
