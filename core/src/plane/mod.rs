//! The control plane as a pure machine: workspaces, runtimes, the queue, and what each daemon call does to a task.
//!
//! Every call gets the time; nothing is read from outside and nothing is done outside. What a server would push
//! to its daemons collects as [`Hint`]s. The embedded server puts this behind HTTP; the simulator calls it directly.
//!
//! What the plane holds can outlive it: see [`Plane::track`] for the rows that each call changed, and [`Plane::restore`] for
//! a plane that is made of them.
//!
//! Texts that must not be seen (environment, instructions, tokens) are not here: a task names them by a [`Payload`]
//! number, which its retries inherit.

mod claim;
mod end;
mod ids;
pub mod limits;
mod open;
mod profile;
mod refusal;
mod registration;
mod row;
mod run;
mod runtime;
mod store;
mod sweep;
mod table;
mod transcript;
mod workspace;

#[cfg(test)]
mod tests;

pub use claim::Claimed;
pub use end::{CancelAck, Completion, Failure, Recovered};
pub use profile::{Profile, ProfileSpec};
pub use refusal::Refusal;
pub use registration::{FailedProfile, Registration, RuntimeEntry};
pub use row::{Hint, NewTask, Payload, State, Subject, Task, Text, Usage};
pub use runtime::{OfflineReason, Repair, Runtime};
pub use store::{Change, Damaged, Rows};
pub use transcript::Message;
pub use workspace::{Repo, Workspace};

use crate::id::{ProfileId, RuntimeId, TaskId, WorkspaceId};
use crate::time::Now;
use ids::Ids;
use limits::Limits;
use open::Open;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use table::Table;
use transcript::Transcripts;

/// The whole state of a control plane. The same calls on the same seed give the same state and the same ids.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Plane {
    limits: Limits,
    ids: Ids,
    workspaces: Table<WorkspaceId, Workspace>,
    profiles: Table<ProfileId, Profile>,
    runtimes: Table<RuntimeId, Runtime>,
    /// Runtimes by what they are the same by.
    runtime_ids: BTreeMap<Text, RuntimeId>,
    agent_caps: Table<Text, usize>,
    tasks: Table<TaskId, Task>,
    open: Open,
    /// Ended tasks, oldest end first.
    ended: VecDeque<TaskId>,
    transcripts: Transcripts,
    /// Statuses that an operator gave to issues, chats and autopilot runs.
    subject_status: Table<Text, (Text, Now)>,
    /// Whether somebody stores the rows.
    #[serde(skip)]
    tracked: bool,
    /// The counters as they were stored last.
    #[serde(skip)]
    stored: Option<store::Counters>,
    enqueued: u64,
    /// How many tasks have ended.
    ends: u64,
    hints: VecDeque<Hint>,
}

impl Plane {
    /// An empty plane with the default bounds. `seed` decides the ids that it makes.
    pub fn new(seed: u64) -> Self {
        Self::with_limits(seed, Limits::default())
    }

    /// An empty plane with other bounds.
    pub fn with_limits(seed: u64, limits: Limits) -> Self {
        Self {
            limits,
            ids: Ids::new(seed),
            workspaces: Table::default(),
            profiles: Table::default(),
            runtimes: Table::default(),
            runtime_ids: BTreeMap::new(),
            agent_caps: Table::default(),
            tasks: Table::default(),
            open: Open::default(),
            ended: VecDeque::new(),
            transcripts: Transcripts::default(),
            subject_status: Table::default(),
            tracked: false,
            stored: None,
            enqueued: 0,
            ends: 0,
            hints: VecDeque::new(),
        }
    }

    /// One task's row.
    pub fn task(&self, id: &TaskId) -> Option<&Task> {
        self.tasks.get(id)
    }

    /// Every task that is remembered, in the order of their ids.
    pub fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.tasks.values()
    }

    /// How many tasks have not ended.
    pub fn open_tasks(&self) -> usize {
        self.open.len()
    }

    /// How many tasks at once `agent` may have dispatched, waiting or running; the default is
    /// [`limits::AGENT_CAP`]. The bound on agents is that of open tasks: at it the call changes nothing.
    pub fn set_agent_cap(&mut self, agent: &str, cap: usize) {
        if self.agent_caps.contains_key(agent) || self.agent_caps.len() < self.limits.open_tasks {
            self.agent_caps.insert(agent.into(), cap);
        }
    }

    /// Says what an issue, a chat or an autopilot run is now, for the garbage collection's questions. The bound is
    /// that of remembered tasks: at it the call changes nothing.
    pub fn set_subject_status(&mut self, now: Now, subject: &str, status: &str) {
        let room = self.subject_status.len() < self.limits.open_tasks + self.limits.ended_tasks;
        if room || self.subject_status.contains_key(subject) {
            self.subject_status.insert(subject.into(), (status.into(), now));
        }
    }

    /// The status that an operator gave to the issue, chat or autopilot run `subject`, and when.
    pub fn subject_status(&self, subject: &str) -> Option<(&str, Now)> {
        self.subject_status.get(subject).map(|(status, at)| (&**status, *at))
    }

    /// What to push to the daemons since the last call, oldest first. Best effort: of more than
    /// [`limits::HINTS`] the oldest are lost.
    pub fn take_hints(&mut self) -> Vec<Hint> {
        self.hints.drain(..).collect()
    }

    fn hint(&mut self, hint: Hint) {
        if self.hints.len() >= limits::HINTS {
            self.hints.pop_front();
        }
        self.hints.push_back(hint);
    }

    fn row_mut(&mut self, id: &TaskId) -> Result<&mut Task, Refusal> {
        self.tasks.get_mut(id).ok_or(Refusal::TaskNotFound)
    }

    fn row(&self, id: &TaskId) -> Result<&Task, Refusal> {
        self.tasks.get(id).ok_or(Refusal::TaskNotFound)
    }
}
