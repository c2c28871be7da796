//! What can happen: the inputs of the core, grouped by kind of I/O.

use crate::error::{ApiError, FsError};
use crate::id::{ConnGen, EnvRoot, OpId, Provider, RuntimeId, TaskId, WorkspaceId};
use crate::reason::FailReason;
use serde::{Deserialize, Serialize};

/// One claim of a task, numbered by the adapter: an id that is claimed again after its end is a new life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClaimKey(pub u64);

/// One thing that happened. Any event is allowed at any time; nonsense is counted and ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ev", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// Nothing but time: the clock passed the instant that `next_wakeup` named.
    Tick,
    /// A request to the server ended.
    Api {
        /// Which one.
        op: OpId,
        /// How.
        r: Result<ApiReply, ApiError>,
    },
    /// Work on the disk ended.
    Fs {
        /// Which one.
        op: OpId,
        /// How.
        r: Result<FsReply, FsError>,
    },
    /// Something about a run. `Ended` is the last one.
    Run {
        /// Which one.
        op: OpId,
        /// What.
        run: RunEvent,
    },
    /// Something about the control connection.
    Ws {
        /// Which life of it.
        conn: ConnGen,
        /// What.
        ws: WsEvent,
    },
    /// Somebody wants the daemon to end. The second time it hurries.
    Stop,
}

/// The server's answer to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ApiReply {
    /// It worked, and there is nothing to know.
    Done,
    /// The workspaces that this credential may serve.
    Workspaces {
        /// All of them.
        list: Vec<WorkspaceId>,
        /// Whether the server has only the old route.
        legacy: bool,
    },
    /// The runtimes of a workspace.
    Registered {
        /// All of them.
        runtimes: Vec<Registered>,
    },
    /// A heartbeat was taken.
    Beaten {
        /// Whether the server has no such runtime any more.
        gone: bool,
    },
    /// Tasks, possibly none.
    Claimed {
        /// Those that can be run or failed.
        offers: Vec<Offer>,
        /// How many more were there that cannot even be named to the server.
        unusable: u16,
    },
    /// State of a task, after a request about it.
    Task {
        /// The state.
        status: TaskStatus,
    },
    /// The highest sequence number of a message that the server has; 0 for none.
    Known {
        /// The number.
        upto: u32,
    },
}

/// A runtime as a registration names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registered {
    /// Its id.
    pub id: RuntimeId,
    /// Its agent CLI family.
    pub provider: Provider,
}

/// A claimed task, as far as the core needs to know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// This claim.
    pub claim: ClaimKey,
    /// The task.
    pub task: TaskId,
    /// The runtime it is for.
    pub runtime: RuntimeId,
    /// The directory it will get.
    pub root: EnvRoot,
    /// The directory that it may want to use again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prior: Option<EnvRoot>,
    /// Set if it cannot be run: fail it with this reason, prepare nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<FailReason>,
}

/// State of a task on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskStatus {
    /// Waits for a claim.
    Queued,
    /// Claimed, not started.
    Dispatched,
    /// Claimed, waits for the user's directory.
    WaitingLocalDirectory,
    /// Started.
    Running,
    /// Ended well.
    Completed,
    /// Ended badly.
    Failed,
    /// Ended by somebody.
    Cancelled,
    /// Waits for a time.
    Deferred,
    /// A state that this version does not know.
    Other,
}

impl TaskStatus {
    /// Whether the task has ended.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// What work on the disk brought.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
#[non_exhaustive]
pub enum FsReply {
    /// The task's directory is ready: env root and `workdir` were seen on the disk after the preparation.
    Prepared {
        /// The directory that is really used.
        root: EnvRoot,
    },
    /// It is done.
    Done,
}

/// What happens to a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "run", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunEvent {
    /// The agent's process exists.
    Launched,
    /// The agent said something; one event for each read.
    Progress {
        /// Highest sequence number of a message that waits to be sent or was sent.
        have: u32,
        /// Whether the agent has named its session.
        session: bool,
    },
    /// The protocol's end was seen: nothing more is to come but the process's end.
    Result,
    /// The last process of the run is gone, and all it said was read.
    Ended {
        /// What it came to.
        outcome: RunOutcome,
    },
}

/// What a run came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RunOutcome {
    /// Success only if the agent said so.
    pub end: RunEnd,
    /// Highest sequence number of a message.
    pub have: u32,
    /// Whether tokens were counted.
    pub usage: bool,
    /// Whether the agent was asked to resume a session and refused, before it did anything that shows.
    pub resume_rejected: bool,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunEnd {
    /// The agent said that it is done.
    Completed,
    /// Anything else.
    Failed {
        /// For the report.
        reason: FailReason,
    },
}

/// What happens to the control connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ws", rename_all = "snake_case")]
#[non_exhaustive]
pub enum WsEvent {
    /// It is up.
    Up,
    /// It could not be made, or is gone.
    Down,
    /// Work may be there; or, without a task, a task of the runtime ended.
    TaskAvailable {
        /// For this runtime; for any if `None`.
        runtime: Option<RuntimeId>,
        /// This task.
        task: Option<TaskId>,
    },
    /// Answer to a heartbeat.
    Ack {
        /// Of this runtime.
        runtime: RuntimeId,
        /// Whether the server has no such runtime any more.
        gone: bool,
    },
    /// The workspace list changed.
    WorkspacesChanged,
    /// A runtime has a request for its next heartbeat.
    PendingWork {
        /// This one.
        runtime: RuntimeId,
    },
}
