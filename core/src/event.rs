//! What can happen: the inputs of the core, grouped by kind of I/O.

use crate::error::{ApiError, FsError, Refusal};
use crate::fact::ReportKind;
use crate::id::{
    ActionId, ConnGen, EnvRoot, OpId, PathKey, ProfileId, Provider, RuntimeId, SlotIndex, TaskId, WorkspaceId,
};
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
    /// Somebody wants the daemon to end. The second time it hurries, whatever the two ask for.
    Stop {
        /// How.
        #[serde(default, skip_serializing_if = "StopKind::is_plain")]
        how: StopKind,
    },
    /// At the start: what an earlier process of this daemon wrote down about a claim and did not take back.
    Recovered {
        /// The claim, as it was taken.
        offer: Offer,
        /// The agent CLI family of its runtime, which is not registered yet; empty if it is not known.
        provider: Provider,
        /// How far it was.
        was: Recovered,
        /// The user's directory that it has, if it was launched in one and that is not tidied up yet: by the name that this process has for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<PathKey>,
    },
    /// Somebody wants to change this program or its agent CLIs, for which no claim and no task may be about.
    Gate {
        /// Who.
        owner: GateOwner,
        /// What is asked for.
        ask: GateAsk,
    },
    /// Another credential is in use from now on. Since trace 1.3.
    Credential,
}

impl Event {
    /// The plain stop.
    pub const fn stop() -> Self {
        Self::Stop { how: StopKind::Now }
    }
}

/// How the daemon is to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "stop", rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopKind {
    /// Runs are ended and reported as retryable.
    #[default]
    Now,
    /// No claim any more; runs end by themselves, then the daemon goes.
    Drain {
        /// After so many milliseconds the runs that are left are ended as by `Now`; `None` waits for as long as it takes.
        within_ms: Option<u64>,
    },
    /// Runs go on without the daemon, and its next process takes them over: nothing is cancelled or deregistered.
    Restart,
}

impl StopKind {
    /// Whether it is the plain stop.
    pub const fn is_plain(&self) -> bool {
        matches!(self, Self::Now)
    }
}

/// How far a claim was when the process before this one ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "was", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Recovered {
    /// Taken, never launched.
    Claimed,
    /// Launched, perhaps over by now: the run's own record tells.
    Launched {
        /// Its slot.
        slot: SlotIndex,
        /// The highest message that the server is known to have.
        acked: u32,
    },
    /// Over, and something about it is still owed to the server.
    Ended {
        /// What is to be reported; `None` once that is acknowledged, or if the server wants to hear nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        report: Option<ReportKind>,
        /// The highest message that the server is known to have.
        acked: u32,
        /// The highest message.
        have: u32,
        /// Whether tokens were counted and may not be reported yet.
        usage: bool,
        /// Whether its agent was launched.
        #[serde(default, skip_serializing_if = "is_false")]
        ran: bool,
    },
}

/// Who wants the daemon idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GateOwner {
    /// The server, for an update.
    ServerUpdate,
    /// The daemon itself, for an update.
    SelfUpdate,
    /// The daemon itself, because another version of it is installed.
    Reload,
    /// The daemon itself, to take an agent CLI off line that cannot work.
    Demotion,
}

/// What is asked of the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GateAsk {
    /// To hold it, if the daemon is idle at this moment.
    Try,
    /// To hold it once the claims on their way have ended, if they bring nothing: no new claim is sent from now on.
    Wait,
    /// To let it go.
    Release,
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
    /// The custom runtimes of a workspace are known. Since trace 1.3.
    Profiles {
        /// Stands for all that matters of them: the same for the same ones.
        signature: u64,
        /// How many there are.
        count: u16,
    },
    /// A heartbeat was taken.
    Beaten {
        /// Whether the server has no such runtime any more.
        gone: bool,
        /// What the server asks this runtime for. Since trace 1.3.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        actions: Vec<Action>,
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
    /// What may be done with a directory that nobody works in.
    Collectable {
        /// That.
        what: Collect,
    },
}

/// What may be done with a directory that nobody works in; a later one frees more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Collect {
    /// Nothing.
    Keep,
    /// What can be made again is removed.
    Artifacts,
    /// All of it is removed.
    All,
}

/// A directory that a scan found.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Found {
    /// Which one.
    pub root: EnvRoot,
    /// What may be done with it; `None` if the server must be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<Collect>,
}

/// A runtime as a registration names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registered {
    /// Its id.
    pub id: RuntimeId,
    /// Its agent CLI family.
    pub provider: Provider,
    /// Set if it is a custom runtime, which people have made. Since trace 1.3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileId>,
}

/// Something that the server asks for in its answer to a heartbeat. It is handed out once: whoever loses it loses it for good.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Action {
    /// This one. What else is known of it stays with the adapter.
    pub id: ActionId,
    /// What is asked for.
    pub kind: ActionKind,
}

/// What a server can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ActionKind {
    /// Another version of this program.
    Update,
    /// The models that the runtime's agent CLI has.
    Models,
    /// The skills that are installed for it on this machine.
    LocalSkills,
    /// One of those skills, in full.
    ImportSkill,
}

/// An agent CLI of this machine, as a look at it found it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probed {
    /// Which one.
    pub provider: Provider,
    /// How it is.
    pub standing: Standing,
}

/// How an agent CLI is. One that is not installed is not spoken of at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Standing {
    /// It works.
    Works {
        /// Stands for its version: the same for the same one.
        version: u64,
    },
    /// It has not answered yet; the next look has its answer, or goes on waiting.
    Slow,
    /// It does not say its version, or says something that is none.
    Unreadable,
    /// Its version is too old to be used.
    TooOld,
    /// The file is there, and the system refuses to run it.
    NotExecutable,
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
    /// Whether it works in a directory of the user, one task at a time.
    #[serde(default, skip_serializing_if = "is_false")]
    pub in_place: bool,
}

impl Offer {
    /// The directories that are marked for it: the one it will get, and the one that it may want to use again.
    pub(crate) fn roots(&self) -> impl Iterator<Item = &EnvRoot> {
        std::iter::once(&self.root).chain(&self.prior)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_false(set: &bool) -> bool {
    !*set
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
    /// The user's directory is fit for use.
    Resolved {
        /// Which one it really is.
        path: PathKey,
    },
    /// The agent CLIs of this machine were looked at. Since trace 1.3.
    Probed {
        /// All that are installed.
        agents: Vec<Probed>,
    },
    /// What is there that nobody may need any more.
    Scanned {
        /// All of it, at most 100 000.
        found: Vec<Found>,
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
    /// The agent said something, thought something, or called a tool or got its result: one event for each read with any of it in it. Pings
    /// are none, so this is a sign that the agent gets on.
    Progress {
        /// Highest sequence number of a message that waits to be sent or was sent.
        have: u32,
        /// Whether the agent has named its session.
        session: bool,
        /// How many of its tools are at work.
        #[serde(default, skip_serializing_if = "is_none_at_work")]
        tools: u32,
    },
    /// The protocol's end was seen: nothing more is to come but the process's end.
    Result,
    /// The last process of the run is gone, and all it said was read.
    Ended {
        /// What it came to.
        outcome: RunOutcome,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_none_at_work(tools: &u32) -> bool {
    *tools == 0
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
    /// The server refused to make it: the end of it, as `Down` is. Since trace 1.3.
    Refused {
        /// HTTP status.
        status: u16,
        /// What it is about.
        kind: Refusal,
    },
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
        /// Whether the server takes claims over this connection.
        #[serde(default, skip_serializing_if = "is_false")]
        claims: bool,
        /// What the server asks this runtime for. Since trace 1.3.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        actions: Vec<Action>,
    },
    /// The workspace list changed.
    WorkspacesChanged,
    /// The custom runtimes of a workspace changed. Since trace 1.3.
    ProfilesChanged {
        /// Which workspace.
        workspace: WorkspaceId,
    },
    /// A runtime has a request for its next heartbeat.
    PendingWork {
        /// This one.
        runtime: RuntimeId,
    },
}
