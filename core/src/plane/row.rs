//! What the plane remembers of a task.

use super::end::Completion;
use crate::id::{ProfileId, RuntimeId, TaskId, WorkspaceId};
use crate::time::{Instant, Now};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A text that is cheap to clone.
pub type Text = Arc<str>;

/// Where a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// A retry that waits for its time; a claim promotes it.
    Deferred,
    /// To be claimed.
    Queued,
    /// Claimed; the daemon prepares it under a lease.
    Dispatched,
    /// Claimed; the daemon waits for a directory under a lease.
    WaitingLocalDirectory,
    /// The agent works.
    Running,
    /// Ended well.
    Completed,
    /// Ended badly.
    Failed,
    /// Ended by somebody.
    Cancelled,
}

impl State {
    /// The text of the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Deferred => "deferred",
            Self::Queued => "queued",
            Self::Dispatched => "dispatched",
            Self::WaitingLocalDirectory => "waiting_local_directory",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether it never changes again.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// Whether it is claimed and has not started.
    pub const fn is_preparing(self) -> bool {
        matches!(self, Self::Dispatched | Self::WaitingLocalDirectory)
    }

    /// Whether a daemon has it.
    pub const fn is_active(self) -> bool {
        self.is_preparing() || matches!(self, Self::Running)
    }
}

/// What a task is about; decides its kind, what it must not run beside, and whether it is tried again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// An issue: one task at a time for each agent.
    Issue(Text),
    /// A chat session: one task at a time.
    Chat(Text),
    /// A run of an autopilot; never tried again.
    Autopilot(Text),
    /// Making one issue of a text: one at a time for each agent; never tried again.
    QuickCreate,
    /// Nothing; never tried again.
    Bare,
}

impl Subject {
    /// The id of the issue, chat or autopilot run; empty if there is none.
    pub fn id(&self) -> &str {
        match self {
            Self::Issue(id) | Self::Chat(id) | Self::Autopilot(id) => id,
            Self::QuickCreate | Self::Bare => "",
        }
    }

    /// Whether a failed task about it may have a retry.
    pub(super) const fn is_retried(&self) -> bool {
        matches!(self, Self::Issue(_) | Self::Chat(_))
    }
}

/// Names the texts of a task that are kept outside of the plane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Payload(pub u64);

/// A task to be put in the queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NewTask {
    /// Its id; `None` for one that the plane makes.
    pub id: Option<TaskId>,
    /// The runtime that is to run it; decides the workspace.
    pub runtime: RuntimeId,
    /// The agent.
    pub agent: Text,
    /// What it is about.
    pub subject: Subject,
    /// Higher goes first.
    pub priority: i32,
    /// Tries, this one included; at least 1.
    pub max_attempts: u32,
    /// Where its texts are.
    pub payload: Payload,
    /// An agent session to go on with.
    pub prior_session: Option<Text>,
    /// The directory of that session.
    pub prior_work_dir: Option<Text>,
}

impl NewTask {
    /// A task with priority 0, the default number of tries, and nothing to go on with.
    pub fn new(runtime: RuntimeId, agent: impl Into<Text>, subject: Subject) -> Self {
        Self {
            id: None,
            runtime,
            agent: agent.into(),
            subject,
            priority: 0,
            max_attempts: super::limits::MAX_ATTEMPTS,
            payload: Payload::default(),
            prior_session: None,
            prior_work_dir: None,
        }
    }
}

/// One task's row.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Task {
    /// Its id.
    pub id: TaskId,
    /// The runtime that it is for.
    pub runtime: RuntimeId,
    /// The runtime's workspace.
    pub workspace: WorkspaceId,
    /// The agent.
    pub agent: Text,
    /// What it is about.
    pub subject: Subject,
    /// Higher goes first.
    pub priority: i32,
    /// Which try of the work this is, from 1.
    pub attempt: u32,
    /// Tries of the work in all.
    pub max_attempts: u32,
    /// The try before, if it was that one's failure that made this task.
    pub parent: Option<TaskId>,
    /// Where its texts are.
    pub payload: Payload,
    /// Where it is.
    pub state: State,
    /// Place in the order of arrival.
    pub order: u64,
    /// When it was put in the queue.
    pub created_at: Now,
    /// From when on a deferred task may be promoted.
    pub due: Option<Instant>,
    /// When it was claimed last.
    pub dispatched_at: Option<Now>,
    /// How often a claim handed it out.
    pub deliveries: u32,
    /// Until when its daemon is trusted to be preparing it.
    pub lease_until: Option<Instant>,
    /// The directory that it waits for, in the daemon's words.
    pub wait_reason: Option<Text>,
    /// When its agent started.
    pub started_at: Option<Now>,
    /// When it ended.
    pub ended_at: Option<Now>,
    /// Place in the order of ends.
    #[serde(default)]
    pub ended_order: Option<u64>,
    /// An agent session to go on with.
    pub prior_session: Option<Text>,
    /// The directory of that session.
    pub prior_work_dir: Option<Text>,
    /// Whether the newest session of the work cannot be resumed.
    pub prior_session_unavailable: bool,
    /// The session that the daemon pinned or reported.
    pub session_id: Option<Text>,
    /// The directory that the daemon pinned or reported.
    pub work_dir: Option<Text>,
    /// A directory that stays valid when the work directory is gone.
    pub durable_work_dir: Option<Text>,
    /// The branch that holds the work.
    pub branch_name: Option<Text>,
    /// What `complete` brought, if it was that which ended the task.
    pub result: Option<Completion>,
    /// What went wrong.
    pub error: Option<Text>,
    /// Why it failed, in the words of the wire.
    pub failure_reason: Option<Text>,
    /// Whether the daemon has acknowledged the cancellation.
    pub cancel_acked: bool,
    /// What it used, one row per provider and model.
    pub usage: Vec<Usage>,
}

impl Task {
    /// Whether `other` must not be active while this one is.
    pub(super) fn excludes(&self, other: &Self) -> bool {
        self.excludes_work(&other.agent, &other.subject)
    }

    /// The same for work of `agent` about `subject`.
    pub(super) fn excludes_work(&self, agent: &Text, subject: &Subject) -> bool {
        match (&self.subject, subject) {
            (Subject::Issue(a), Subject::Issue(b)) => a == b && self.agent == *agent,
            (Subject::Chat(a), Subject::Chat(b)) => a == b,
            (Subject::QuickCreate, Subject::QuickCreate) => self.agent == *agent,
            _ => false,
        }
    }
}

/// Totals of one provider and model; not increments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// In lower case; empty for the runtime's.
    pub provider: Text,
    /// The model.
    pub model: Text,
    /// Tokens read.
    pub input_tokens: i64,
    /// Tokens written.
    pub output_tokens: i64,
    /// Tokens read from a cache.
    pub cache_read_tokens: i64,
    /// Tokens put in a cache.
    pub cache_write_tokens: i64,
    /// Price in 1e-10 USD, where the provider names one.
    pub cost_usd_ticks: Option<i64>,
}

/// Something to push to daemons. Advisory: it may be lost.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hint {
    /// A claim for this runtime may bring something.
    TaskAvailable {
        /// The runtime.
        runtime: RuntimeId,
        /// The task, if it is a new one and not the end of one.
        task: Option<TaskId>,
    },
    /// The list of workspaces is another one.
    WorkspacesChanged,
    /// A runtime profile was added, changed or removed.
    ProfilesChanged {
        /// The workspace that defines it.
        workspace: WorkspaceId,
        /// The profile.
        profile: ProfileId,
    },
}
