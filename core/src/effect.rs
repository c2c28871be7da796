//! What the core wants done: its outputs. An effect with an `op` is a request and gets exactly one completion; the
//! others are fire-and-forget by their type.
//!
//! A request that a rule guards has private fields, and only the machine that holds the proof can make one.

pub use crate::fact::{EndReason, ExitCause, ExitReport, Fact, PhaseName, ReportKind, StopPhase};

use crate::event::{Action, ActionKind, ClaimKey, Collect, GateOwner, Offer};
use crate::id::{
    ActionId, ConnGen, EnvRoot, Generation, OpId, PathKey, ProfileId, Provider, RuntimeId, SlotIndex,
    WorkspaceId,
};
use crate::reason::FailReason;
use crate::time::Instant;
use crate::token::{GcReservation, LeaseStopped, Prepared, SlotPermit};
use serde::{Deserialize, Serialize};

/// One thing to do. Start it and do not wait for it; effects of one step are in causal order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fx", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Effect {
    /// Ask the server. Ends with `Event::Api`.
    Api {
        /// Names it.
        op: OpId,
        /// What to ask.
        call: ApiCall,
        /// The core cancels it then; the adapter's own limit is a back-stop behind it.
        deadline: Instant,
    },
    /// Work on the disk. Ends with `Event::Fs`.
    Fs {
        /// Names it.
        op: OpId,
        /// What to do.
        call: FsCall,
    },
    /// Run an agent. Ends with `RunEvent::Ended`.
    Run {
        /// Names it.
        op: OpId,
        /// What to run.
        call: LaunchCall,
    },
    /// Tell a run to end. Fire-and-forget: what comes of it is the run's own `Ended`.
    Kill {
        /// The run.
        op: OpId,
        /// How.
        step: KillStep,
    },
    /// End a request early. It still gets its one completion.
    Cancel {
        /// Which one.
        op: OpId,
    },
    /// Do something with the control connection. Fire-and-forget.
    Ws {
        /// Which life of it.
        conn: ConnGen,
        /// What.
        cmd: WsCmd,
    },
    /// Tell the server how far a task is, once; nobody minds if it is lost. Fire-and-forget.
    Progress {
        /// Which task.
        claim: ClaimKey,
        /// 1 when the agent is launched, 2 when it has ended; of 2.
        step: u8,
    },
    /// The set of runtimes changed. Fire-and-forget: the adapter keeps the set for `Connect` and `Claim`.
    Runtime {
        /// The set's state from now on.
        set: Generation,
        /// Which runtime.
        runtime: RuntimeId,
        /// What happened to it.
        change: RuntimeChange,
    },
    /// Write down, before any effect that comes after this one is started, what must survive this process. What was written for the
    /// claim before is replaced. Fire-and-forget.
    Keep {
        /// Of this claim.
        claim: ClaimKey,
        /// What.
        entry: Keep,
    },
    /// The answer to `Event::Gate`. Fire-and-forget.
    Gate {
        /// Who asked.
        owner: GateOwner,
        /// What it got.
        answer: GateAnswer,
    },
    /// Nothing more will be asked about this claim: what is kept for it can go. Fire-and-forget.
    Forget {
        /// Which claim.
        claim: ClaimKey,
    },
    /// Nothing more will be asked about this action: its result can go. Fire-and-forget. Since trace 1.3.
    ForgetAction {
        /// Which one.
        action: ActionId,
    },
    /// Connections that idle in the pool are suspect: drop them. Fire-and-forget.
    DropIdleConnections,
    /// Something that a person or an observer may want to know. Never acted upon.
    Fact {
        /// What.
        fact: Fact,
    },
    /// End the process. The last effect.
    Exit {
        /// Why, and what was left.
        report: ExitReport,
    },
}

/// What must survive the process, so that its successor can go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "keep", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Keep {
    /// A task was taken.
    Claimed {
        /// It.
        offer: Offer,
        /// The agent CLI family of its runtime; empty if the runtime is not here.
        provider: Provider,
    },
    /// Its agent is launched.
    Launched {
        /// With this slot.
        slot: SlotIndex,
        /// In this directory of the user, which nobody else may get before the run is over and the directory is tidied up.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<PathKey>,
    },
    /// It is over, and this is owed to the server.
    Ended {
        /// The report; `None` once it is acknowledged, or if the server wants to hear nothing: then only messages may be left.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        report: Option<ReportKind>,
        /// The highest message.
        have: u32,
        /// Whether tokens were counted and not reported yet. It may stay set when they are, as totals can be sent again.
        usage: bool,
        /// Whether its agent was launched.
        #[serde(default, skip_serializing_if = "is_false")]
        ran: bool,
        /// The user's directory that it still has, as that is not tidied up yet.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<PathKey>,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_false(set: &bool) -> bool {
    !*set
}

/// What who asked for the gate got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GateAnswer {
    /// It holds the gate: no claim and no task is about, and none will be before the release.
    Granted,
    /// It does not: tasks are at work, or somebody else holds it.
    Busy,
}

/// What happens to a runtime.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RuntimeChange {
    /// It is in the set.
    Added {
        /// Its workspace.
        workspace: WorkspaceId,
        /// Its agent CLI family.
        provider: Provider,
        /// Set if it is a custom runtime. Since trace 1.3.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        profile: Option<ProfileId>,
    },
    /// Its tasks may be asked for.
    Claimable,
    /// It is not in the set any more.
    Removed,
}

/// A request to the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ApiCall {
    /// Keep the credential alive.
    Renew,
    /// The workspaces to serve.
    Workspaces,
    /// The custom runtimes of a workspace. The adapter keeps what it learns, for `Register`. Since trace 1.3.
    Profiles {
        /// Which one.
        workspace: WorkspaceId,
    },
    /// Name this machine's agents in a workspace.
    Register {
        /// Which one.
        workspace: WorkspaceId,
        /// These agent CLIs. Since trace 1.3.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        agents: Vec<Provider>,
        /// And the custom runtimes that the adapter has learned of with this signature; `None` names none. Since trace 1.3.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        profiles: Option<u64>,
    },
    /// Fail what an earlier process of this daemon left behind.
    RecoverOrphans {
        /// Of this runtime.
        runtime: RuntimeId,
    },
    /// Take runtimes off line.
    Deregister {
        /// These.
        runtimes: Vec<RuntimeId>,
        /// Set if they go because the system refuses to run this agent CLI. Since trace 1.3.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        broken: Option<Provider>,
    },
    /// Say that a runtime lives.
    Beat {
        /// Which one.
        runtime: RuntimeId,
    },
    /// Ask for tasks of many runtimes.
    Claim(ClaimCall),
    /// Ask for tasks of many runtimes over the control connection. Ends with `NotSent` only if the server can never see it.
    ClaimOver {
        /// This life of the connection.
        conn: ConnGen,
        /// What is asked.
        claim: ClaimCall,
    },
    /// Ask for a task of one runtime.
    ClaimOne(ClaimOneCall),
    /// Keep a claim that is being prepared.
    Lease {
        /// Which claim.
        claim: ClaimKey,
    },
    /// Say that a task waits for its user's directory.
    WaitDirectory {
        /// Which claim.
        claim: ClaimKey,
        /// Who has the directory, if that is known.
        holder: Option<ClaimKey>,
    },
    /// Say that a task runs.
    Start(StartCall),
    /// State of a task.
    Status {
        /// Which claim.
        claim: ClaimKey,
    },
    /// Send the messages that come after the last acknowledged one.
    Messages {
        /// Of this claim.
        claim: ClaimKey,
        /// Above this number.
        after: u32,
        /// Up to this number.
        upto: u32,
    },
    /// Which messages the server has.
    MessagesKnown {
        /// Of this claim.
        claim: ClaimKey,
        /// Above this number.
        after: u32,
    },
    /// Send the tokens that were used: totals.
    Usage {
        /// Of this claim.
        claim: ClaimKey,
    },
    /// Say which session and directory a later run can go on with.
    Pin {
        /// Of this claim.
        claim: ClaimKey,
    },
    /// Report success.
    Complete {
        /// Of this claim.
        claim: ClaimKey,
    },
    /// Report failure.
    Fail {
        /// Of this claim.
        claim: ClaimKey,
        /// Why.
        reason: FailReason,
    },
    /// Confirm that a cancelled task has stopped.
    CancelAck {
        /// Of this claim.
        claim: ClaimKey,
    },
    /// What may be done with a directory that nobody works in.
    Collectable {
        /// Which one.
        root: EnvRoot,
    },
    /// Say what came of something that the server asked for. The adapter has the result. Since trace 1.3.
    ActionResult {
        /// Of this runtime.
        runtime: RuntimeId,
        /// Which one.
        action: ActionId,
        /// What it is.
        kind: ActionKind,
    },
}

impl ApiCall {
    /// The claim that it is about, if it is about one.
    pub const fn claim(&self) -> Option<ClaimKey> {
        match self {
            Self::Start(call) => Some(call.claim()),
            Self::Lease { claim }
            | Self::Status { claim }
            | Self::WaitDirectory { claim, .. }
            | Self::Messages { claim, .. }
            | Self::MessagesKnown { claim, .. }
            | Self::Usage { claim }
            | Self::Pin { claim }
            | Self::Complete { claim }
            | Self::Fail { claim, .. }
            | Self::CancelAck { claim } => Some(*claim),
            Self::Renew
            | Self::Workspaces
            | Self::Profiles { .. }
            | Self::Register { .. }
            | Self::RecoverOrphans { .. }
            | Self::Deregister { .. }
            | Self::Beat { .. }
            | Self::Claim(_)
            | Self::ClaimOver { .. }
            | Self::ClaimOne(_)
            | Self::Collectable { .. }
            | Self::ActionResult { .. } => None,
        }
    }
}

/// Which runtimes a claim is for. The adapter keeps the set itself, by generation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "scope", rename_all = "snake_case")]
pub enum ClaimScope {
    /// All that may be claimed for.
    All,
    /// Those of one provider.
    Only {
        /// This one.
        provider: Provider,
    },
    /// Those of all other providers.
    AllBut {
        /// Not these.
        providers: Vec<Provider>,
    },
    /// These, because they were named.
    Named {
        /// In order.
        runtimes: Vec<RuntimeId>,
    },
}

/// A claim for many runtimes. Made only by who holds the slots for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimCall {
    set: Generation,
    scope: ClaimScope,
    max: u16,
}

impl ClaimCall {
    pub(crate) fn new(set: Generation, scope: ClaimScope, hold: &[SlotPermit]) -> Self {
        Self { set, scope, max: u16::try_from(hold.len()).unwrap_or(u16::MAX) }
    }

    /// The state of the runtime set that it is about.
    pub const fn set(&self) -> Generation {
        self.set
    }

    /// Which runtimes of the set.
    pub const fn scope(&self) -> &ClaimScope {
        &self.scope
    }

    /// How many tasks at most: as many as slots are held, at least 1.
    pub const fn max(&self) -> u16 {
        self.max
    }
}

/// A claim for one runtime. Made only by who holds a slot for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimOneCall {
    runtime: RuntimeId,
}

impl ClaimOneCall {
    pub(crate) fn new(runtime: RuntimeId, _slot: &SlotPermit) -> Self {
        Self { runtime }
    }

    /// The runtime.
    pub const fn runtime(&self) -> &RuntimeId {
        &self.runtime
    }
}

/// The one `/start` of a claim. Made only from a prepared directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartCall {
    claim: ClaimKey,
}

impl StartCall {
    pub(crate) fn new(claim: ClaimKey, _proof: &Prepared) -> Self {
        Self { claim }
    }

    /// The claim.
    pub const fn claim(&self) -> ClaimKey {
        self.claim
    }
}

/// Work on the disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case")]
#[non_exhaustive]
pub enum FsCall {
    /// Lock and prepare the task's directory, and make its private temp dir. Whatever does the work must be gone when
    /// this ends, also when it was cancelled.
    Prepare {
        /// For this claim.
        claim: ClaimKey,
        /// The directory that is marked for it.
        root: EnvRoot,
        /// Its number for the agent.
        slot: SlotIndex,
    },
    /// After the run: remove the temp dir and what was put beside the user's files.
    Unwind {
        /// Of this claim.
        claim: ClaimKey,
    },
    /// After the report: write what the collector needs, give the locks back.
    Seal {
        /// Of this claim.
        claim: ClaimKey,
        /// Whether the collector's record is due: only after a report of a run that came to an end.
        record: bool,
    },
    /// Look whether the user's directory of a task exists and can be used, and which one it really is.
    Resolve {
        /// Of this claim.
        claim: ClaimKey,
    },
    /// Look for directories that nobody may need any more.
    Scan,
    /// Free what may be freed of a directory.
    Collect(CollectCall),
    /// Tidy up the caches of repositories; at a cancel, stop at once.
    Maintain,
    /// Look at the agent CLIs of this machine. It ends soon: one that takes its time is called slow, and is waited for beside. Since trace 1.3.
    Probe {
        /// Whether those that are known to work are asked for their version again.
        all: bool,
    },
    /// Do what the server asks a runtime for, and keep the result for `ApiCall::ActionResult`. It ends well also if the result is that it cannot
    /// be done. Since trace 1.3.
    Act {
        /// This runtime.
        runtime: RuntimeId,
        /// What is asked for.
        action: Action,
    },
}

impl FsCall {
    /// The claim that it is about, if it is about one.
    pub const fn claim(&self) -> Option<ClaimKey> {
        match self {
            Self::Prepare { claim, .. }
            | Self::Resolve { claim }
            | Self::Unwind { claim }
            | Self::Seal { claim, .. } => Some(*claim),
            Self::Scan | Self::Collect(_) | Self::Maintain | Self::Probe { .. } | Self::Act { .. } => None,
        }
    }
}

/// Freeing of disk space. Made only by who has reserved the directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectCall {
    root: EnvRoot,
    what: Collect,
}

impl CollectCall {
    pub(crate) fn new(reserved: &GcReservation, what: Collect) -> Self {
        Self { root: reserved.root.clone(), what }
    }

    /// The directory.
    pub const fn root(&self) -> &EnvRoot {
        &self.root
    }

    /// What is freed of it.
    pub const fn what(&self) -> Collect {
        self.what
    }
}

/// The launch of an agent. Made only from a prepared directory and a stopped lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchCall {
    claim: ClaimKey,
    slot: SlotIndex,
    fresh: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attach: Option<u32>,
}

impl LaunchCall {
    pub(crate) fn new(claim: ClaimKey, slot: SlotIndex, fresh: bool, _: &Prepared, _: &LeaseStopped) -> Self {
        Self { claim, slot, fresh, attach: None }
    }

    /// To follow a run that an earlier process of this daemon launched.
    pub(crate) const fn attach(claim: ClaimKey, slot: SlotIndex, acked: u32) -> Self {
        Self { claim, slot, fresh: false, attach: Some(acked) }
    }

    /// Set if the agent was launched by an earlier process of this daemon and is only followed: the highest message that the server is
    /// known to have. Nothing is launched; what was said after that message comes again, then what comes, then how it ended.
    pub const fn attached(&self) -> Option<u32> {
        self.attach
    }

    /// The claim.
    pub const fn claim(&self) -> ClaimKey {
        self.claim
    }

    /// The slot.
    pub const fn slot(&self) -> SlotIndex {
        self.slot
    }

    /// Whether the session to resume turned out dead and the agent starts without it.
    pub const fn fresh(&self) -> bool {
        self.fresh
    }
}

/// How a run is told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
#[non_exhaustive]
pub enum KillStep {
    /// No more input will come.
    CloseInput,
    /// The polite signal, then after a time the other one, until no process is left.
    End {
        /// Milliseconds between them.
        grace_ms: u32,
    },
    /// At once, every process.
    Kill,
}

/// What to do with the control connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cmd", rename_all = "snake_case")]
#[non_exhaustive]
pub enum WsCmd {
    /// Dial, naming the runtimes of this state of the set.
    Connect {
        /// The state.
        set: Generation,
        /// But not these, which the server refuses. Since trace 1.3.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        without: Vec<RuntimeId>,
    },
    /// Send a heartbeat.
    Beat {
        /// Of this runtime.
        runtime: RuntimeId,
    },
    /// Close it, without a word.
    Close,
}

/// The buffer that a step writes its effects to. The caller owns it and reuses it.
#[derive(Debug, Default)]
pub struct Effects {
    buf: Vec<Effect>,
}

impl Effects {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn push(&mut self, effect: Effect) {
        self.buf.push(effect);
    }

    /// What is in it, in order.
    pub fn as_slice(&self) -> &[Effect] {
        &self.buf
    }

    /// Takes everything out, in order.
    pub fn drain(&mut self) -> impl Iterator<Item = Effect> + '_ {
        self.buf.drain(..)
    }

    /// Throws everything away.
    pub fn clear(&mut self) {
        self.buf.clear();
    }
}
