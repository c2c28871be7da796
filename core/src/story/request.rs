//! Requests: everything that the core asked for and that has one end. To the server, to the disk, and runs.

use super::when::{At, Begin, Span};
use super::{LifeIx, RuntimeIx, TaskIx};
use crate::effect::{ApiCall, FsCall};
use crate::error::{ApiError, FsError};
use crate::event::{RunEnd, RunOutcome};
use crate::id::OpId;
use crate::time::Instant;
use std::fmt;

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// In this life.
    pub life: LifeIx,
    /// Its number in that life.
    pub op: OpId,
    /// What was asked.
    pub kind: RequestKind,
    /// The task that it is about.
    pub task: Option<TaskIx>,
    /// The runtime that it is about.
    pub runtime: Option<RuntimeIx>,
    /// What else it is about: a workspace, a directory, an action.
    pub about: Option<String>,
    /// When it was on its way.
    pub span: Span,
    /// When the core was to cancel it.
    pub deadline: Option<Instant>,
    /// When the core cancelled it.
    pub cancelled: Option<At>,
    /// How it ended.
    pub ending: Option<Ending>,
}

impl Request {
    /// Whether the trace has its beginning.
    pub const fn is_begun(&self) -> bool {
        matches!(self.span.begin, Begin::Seen(_))
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// It worked.
    Done,
    /// The server did not do it, or that is not known.
    Api(ApiError),
    /// The disk did not do it.
    Fs(FsError),
    /// A run is over.
    Run(RunOutcome),
}

impl Ending {
    /// Whether it worked.
    pub const fn is_done(self) -> bool {
        match self {
            Self::Done => true,
            Self::Run(outcome) => matches!(outcome.end, RunEnd::Completed),
            Self::Api(_) | Self::Fs(_) => false,
        }
    }
}

/// A few words, always the same for the same ending.
impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Api(ApiError::NotSent) => f.write_str("server not reached"),
            Self::Api(ApiError::Unknown) => f.write_str("no answer"),
            Self::Api(ApiError::Throttled { .. }) => f.write_str("server asks to wait"),
            Self::Api(ApiError::Server { status }) => write!(f, "server failed with {status}"),
            Self::Api(ApiError::Refused { status, kind }) if kind.is_about_credential() => {
                write!(f, "credential refused with {status}")
            }
            Self::Api(ApiError::Refused { status, .. }) => write!(f, "refused with {status}"),
            Self::Api(ApiError::Undecodable) => f.write_str("answer not readable"),
            Self::Fs(FsError::TimedOut) => f.write_str("timed out"),
            Self::Fs(FsError::Cancelled) => f.write_str("cancelled"),
            Self::Fs(FsError::Failed { reason }) => write!(f, "failed: {}", reason.as_str()),
            Self::Run(RunOutcome { end: RunEnd::Completed, .. }) => f.write_str("completed"),
            Self::Run(RunOutcome { resume_rejected: true, .. }) => f.write_str("session refused"),
            Self::Run(RunOutcome { end: RunEnd::Failed { reason }, .. }) => {
                write!(f, "failed: {}", reason.as_str())
            }
        }
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal in $domain:ident,)*) => {
        /// What a request asks for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum RequestKind { $($(#[$doc])* $name,)* }

        impl RequestKind {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Its name for people and machines.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// Who is asked.
            pub const fn domain(self) -> Domain {
                match self { $(Self::$name => Domain::$domain,)* }
            }
        }
    };
}

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Domain {
    /// The server.
    Server,
    /// The disk of this machine.
    Disk,
    /// An agent.
    Agent,
}

kinds! {
    /// The credential is kept alive.
    Renew = "renew" in Server,
    /// The list of workspaces.
    Workspaces = "workspaces" in Server,
    /// The custom runtimes of a workspace.
    Profiles = "profiles" in Server,
    /// Runtimes are registered.
    Register = "register" in Server,
    /// What an earlier process left is failed.
    RecoverOrphans = "recover orphans" in Server,
    /// Runtimes are taken off line.
    Deregister = "deregister" in Server,
    /// A heartbeat.
    Beat = "beat" in Server,
    /// Tasks of many runtimes.
    Claim = "claim" in Server,
    /// The same over the control connection.
    ClaimOver = "claim over the link" in Server,
    /// A task of one runtime.
    ClaimOne = "claim one" in Server,
    /// The prepare lease of a task is kept.
    Lease = "lease" in Server,
    /// A task waits for its user's directory.
    WaitDirectory = "wait for directory" in Server,
    /// A task runs.
    Start = "start" in Server,
    /// The state of a task.
    Status = "status" in Server,
    /// Messages.
    Messages = "messages" in Server,
    /// Which messages the server has.
    MessagesKnown = "messages known" in Server,
    /// Tokens that were used.
    Usage = "usage" in Server,
    /// The session to go on with.
    Pin = "pin" in Server,
    /// A report of success.
    Complete = "complete" in Server,
    /// A report of failure.
    Fail = "fail" in Server,
    /// A cancelled task has stopped.
    CancelAck = "cancel ack" in Server,
    /// What may be done with a directory.
    Collectable = "collectable" in Server,
    /// The result of something that the server asked for.
    ActionResult = "action result" in Server,
    /// Something of the server; the trace does not have what.
    UnknownApi = "unknown (server)" in Server,
    /// A task's directory is prepared.
    Prepare = "prepare" in Disk,
    /// Its temp dir goes.
    Unwind = "unwind" in Disk,
    /// Its directory is closed.
    Seal = "seal" in Disk,
    /// The user's directory is looked at.
    Resolve = "resolve" in Disk,
    /// Directories that nobody needs are looked for.
    Scan = "scan" in Disk,
    /// One of them is freed.
    Collect = "collect" in Disk,
    /// Caches are tidied up.
    Maintain = "maintain" in Disk,
    /// The agent CLIs are looked at.
    Probe = "probe" in Disk,
    /// Something that the server asked for is done.
    Act = "act" in Disk,
    /// Something of the disk; the trace does not have what.
    UnknownFs = "unknown (disk)" in Disk,
    /// An agent runs.
    Run = "run" in Agent,
}

impl RequestKind {
    /// Whether it asks for tasks.
    pub const fn is_claim(self) -> bool {
        matches!(self, Self::Claim | Self::ClaimOver | Self::ClaimOne)
    }

    /// Whether it is a terminal report.
    pub const fn is_report(self) -> bool {
        matches!(self, Self::Complete | Self::Fail | Self::CancelAck)
    }
}

impl From<&ApiCall> for RequestKind {
    fn from(call: &ApiCall) -> Self {
        match call {
            ApiCall::Renew => Self::Renew,
            ApiCall::Workspaces => Self::Workspaces,
            ApiCall::Profiles { .. } => Self::Profiles,
            ApiCall::Register { .. } => Self::Register,
            ApiCall::RecoverOrphans { .. } => Self::RecoverOrphans,
            ApiCall::Deregister { .. } => Self::Deregister,
            ApiCall::Beat { .. } => Self::Beat,
            ApiCall::Claim(_) => Self::Claim,
            ApiCall::ClaimOver { .. } => Self::ClaimOver,
            ApiCall::ClaimOne(_) => Self::ClaimOne,
            ApiCall::Lease { .. } => Self::Lease,
            ApiCall::WaitDirectory { .. } => Self::WaitDirectory,
            ApiCall::Start(_) => Self::Start,
            ApiCall::Status { .. } => Self::Status,
            ApiCall::Messages { .. } => Self::Messages,
            ApiCall::MessagesKnown { .. } => Self::MessagesKnown,
            ApiCall::Usage { .. } => Self::Usage,
            ApiCall::Pin { .. } => Self::Pin,
            ApiCall::Complete { .. } => Self::Complete,
            ApiCall::Fail { .. } => Self::Fail,
            ApiCall::CancelAck { .. } => Self::CancelAck,
            ApiCall::Collectable { .. } => Self::Collectable,
            ApiCall::ActionResult { .. } => Self::ActionResult,
        }
    }
}

impl From<&FsCall> for RequestKind {
    fn from(call: &FsCall) -> Self {
        match call {
            FsCall::Prepare { .. } => Self::Prepare,
            FsCall::Unwind { .. } => Self::Unwind,
            FsCall::Seal { .. } => Self::Seal,
            FsCall::Resolve { .. } => Self::Resolve,
            FsCall::Scan => Self::Scan,
            FsCall::Collect(_) => Self::Collect,
            FsCall::Maintain => Self::Maintain,
            FsCall::Probe { .. } => Self::Probe,
            FsCall::Act { .. } => Self::Act,
        }
    }
}
