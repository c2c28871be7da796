//! How tasks end, and what an end sets off.

use super::row::{State, Task, Text};
use super::run::set;
use super::{Hint, Plane, Refusal, limits};
use crate::id::{RuntimeId, TaskId};
use crate::reason::FailReason;
use crate::time::Now;
use serde::{Deserialize, Serialize};

/// What `complete` brings. Session and directory replace what was pinned, also where they are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Completion {
    /// The agent's answer.
    pub output: Text,
    /// A pull request.
    pub pr_url: Text,
    /// The session to resume from.
    pub session_id: Text,
    /// The directory that was used.
    pub work_dir: Text,
    /// A directory that stays valid when that one is gone.
    pub durable_work_dir: Text,
    /// The branch that holds the work.
    pub branch_name: Text,
    /// Whether there was a session that cannot be resumed.
    pub session_rollout_missing: bool,
    /// A session that this run found to be dead.
    pub retired_session_id: Text,
}

/// What `fail` brings. An empty session or directory leaves what was pinned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Failure {
    /// What went wrong.
    pub error: Text,
    /// The reason in the words of the wire; empty for the plane to say.
    pub failure_reason: Text,
    /// The session to resume from.
    pub session_id: Text,
    /// The directory that was used.
    pub work_dir: Text,
    /// A directory that stays valid when that one is gone.
    pub durable_work_dir: Text,
    /// The branch that holds the work.
    pub branch_name: Text,
    /// Whether there was a session that cannot be resumed.
    pub session_rollout_missing: bool,
    /// A session that this run found to be dead.
    pub retired_session_id: Text,
}

/// What a daemon adds to a cancelled task when its agent is gone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct CancelAck {
    /// The branch that holds the work.
    pub branch_name: Text,
    /// Where unsaved work was kept.
    pub durable_work_dir: Text,
    /// What the user must know of it.
    pub error_message: Text,
    /// The reason for that.
    pub failure_reason: Text,
}

/// What orphan recovery did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Recovered {
    /// Tasks that were failed.
    pub orphaned: usize,
    /// Retries that were made for them.
    pub retried: usize,
}

/// The reasons after which the work is tried again.
const RETRIED: [FailReason; 6] = [
    FailReason::RuntimeOffline,
    FailReason::RuntimeRecovery,
    FailReason::Timeout,
    FailReason::CodexSemanticInactivity,
    FailReason::ProviderNetwork,
    FailReason::SkillBundleUnavailable,
];

/// The reasons of failures that only the plane itself reports.
pub(super) const QUEUED_EXPIRED: &str = "queued_expired";
pub(super) const RECONNECT_TIMEOUT: &str = "runtime_reconnect_timeout";

impl Plane {
    /// The run went well. Only a running task completes; any other is given back as it is, so a call that is repeated
    /// is harmless, and the answer's state tells whether it was taken.
    ///
    /// # Errors
    /// [`Refusal::TaskNotFound`].
    pub fn complete(&mut self, now: Now, id: &TaskId, with: Completion) -> Result<&Task, Refusal> {
        let task = self.row_mut(id)?;
        if task.state == State::Running {
            let text = |given: &Text| (!given.is_empty()).then(|| given.clone());
            task.session_id = if with.session_rollout_missing { None } else { text(&with.session_id) };
            task.work_dir = text(&with.work_dir);
            set(&mut task.durable_work_dir, &with.durable_work_dir);
            set(&mut task.branch_name, &with.branch_name);
            task.result = Some(with);
            self.end(now, id, State::Completed);
        }
        self.row(id)
    }

    /// The run went badly, or could not begin. Only an active task fails; any other is given back as it is. Some
    /// reasons make a retry, which is hinted.
    ///
    /// # Errors
    /// [`Refusal::TaskNotFound`].
    pub fn fail(&mut self, now: Now, id: &TaskId, with: &Failure) -> Result<&Task, Refusal> {
        if self.row(id)?.state.is_active() {
            self.fail_open(now, id, with);
        }
        self.row(id)
    }

    /// Somebody ends a task that has not ended; one that has is given back as it is.
    ///
    /// # Errors
    /// [`Refusal::TaskNotFound`].
    pub fn cancel(&mut self, now: Now, id: &TaskId) -> Result<&Task, Refusal> {
        if !self.row(id)?.state.is_terminal() {
            self.end(now, id, State::Cancelled);
        }
        self.row(id)
    }

    /// The plane itself ends a task that was claimed and cannot be handed out, and says why in the row. One that has ended is given
    /// back as it is.
    ///
    /// # Errors
    /// [`Refusal::TaskNotFound`].
    pub fn withdraw(&mut self, now: Now, id: &TaskId, reason: &str, error: &str) -> Result<&Task, Refusal> {
        let task = self.row_mut(id)?;
        if !task.state.is_terminal() {
            task.failure_reason = Some(reason.into());
            task.error = Some(error.into());
            self.end(now, id, State::Cancelled);
        }
        self.row(id)
    }

    /// The daemon's agent is gone. What it adds is taken for a cancelled task, and replaces nothing.
    ///
    /// # Errors
    /// [`Refusal::TaskNotFound`].
    pub fn ack_cancel(&mut self, id: &TaskId, with: &CancelAck) -> Result<(), Refusal> {
        let task = self.row_mut(id)?;
        if task.state == State::Cancelled {
            task.cancel_acked = true;
            let slots = [
                (&mut task.branch_name, &with.branch_name),
                (&mut task.durable_work_dir, &with.durable_work_dir),
                (&mut task.error, &with.error_message),
                (&mut task.failure_reason, &with.failure_reason),
            ];
            for (slot, given) in slots.into_iter().filter(|(slot, _)| slot.is_none()) {
                set(slot, given);
            }
        }
        Ok(())
    }

    /// Deletes a task with its transcript, as a user can: later calls find nothing. Whether it was there.
    pub fn delete_task(&mut self, id: &TaskId) -> bool {
        let Some(task) = self.tasks.remove(id) else { return false };
        self.open.remove(&task);
        self.ended.retain(|ended| ended != id);
        self.transcripts.forget(id);
        true
    }

    /// A daemon starts anew: every active task of the runtime is failed and, where it can be, tried again.
    ///
    /// # Errors
    /// [`Refusal::RuntimeNotFound`].
    pub fn recover_orphans(&mut self, now: Now, runtime: &RuntimeId) -> Result<Recovered, Refusal> {
        if !self.runtimes.contains_key(runtime) {
            return Err(Refusal::RuntimeNotFound);
        }
        let orphans: Vec<_> = self
            .open
            .of_runtime(runtime)
            .filter(|id| self.tasks.get(*id).is_some_and(|task| task.state.is_active()))
            .cloned()
            .collect();
        let mut done = Recovered::default();
        for id in &orphans {
            done.orphaned += 1;
            let why = FailReason::RuntimeRecovery.as_str();
            done.retried += usize::from(self.fail_as(now, id, why, "the daemon was restarted"));
        }
        Ok(done)
    }

    /// Fails an open task for a reason of the plane's own. Whether it made a retry.
    pub(super) fn fail_as(&mut self, now: Now, id: &TaskId, reason: &str, error: &str) -> bool {
        let with = Failure { error: error.into(), failure_reason: reason.into(), ..Failure::default() };
        self.fail_open(now, id, &with)
    }

    fn fail_open(&mut self, now: Now, id: &TaskId, with: &Failure) -> bool {
        let Some(task) = self.tasks.get_mut(id) else { return false };
        let reason = match &*with.failure_reason {
            "" => FailReason::Unknown.as_str(),
            given => given,
        };
        task.error = Some(with.error.clone());
        task.failure_reason = Some(reason.into());
        set(&mut task.session_id, &with.session_id);
        set(&mut task.work_dir, &with.work_dir);
        set(&mut task.durable_work_dir, &with.durable_work_dir);
        set(&mut task.branch_name, &with.branch_name);
        if with.session_rollout_missing {
            task.session_id = None;
        }
        let retired =
            !with.retired_session_id.is_empty() && Some(&with.retired_session_id) == task.session_id.as_ref();
        let failed = task.clone();
        self.end_quietly(now, id, State::Failed);
        let retry = self.retry_of(now, &failed, retired, with.session_rollout_missing);
        let made = retry.is_some();
        if let Some(child) = retry {
            self.admit(child);
        }
        self.hint(Hint::TaskAvailable { runtime: failed.runtime, task: None });
        made
    }

    /// The next try of the work of `failed`, if its reason and its subject allow one. One more open task takes the
    /// place of the one that ended, so the bound holds.
    fn retry_of(&mut self, now: Now, failed: &Task, retired: bool, missing: bool) -> Option<Task> {
        let reason = failed.failure_reason.as_deref().unwrap_or_default();
        let reason = RETRIED.into_iter().find(|known| known.as_str() == reason)?;
        let network = reason == FailReason::ProviderNetwork && failed.max_attempts >= limits::MAX_ATTEMPTS;
        let ceiling =
            if network { failed.max_attempts.max(limits::MAX_NETWORK_ATTEMPTS) } else { failed.max_attempts };
        if failed.attempt >= ceiling || !failed.subject.is_retried() || self.has_successor(failed) {
            return None;
        }
        let delay = match reason {
            FailReason::RuntimeOffline => Some(limits::OFFLINE_RETRY_DELAY),
            FailReason::ProviderNetwork if failed.attempt + 1 >= limits::MAX_NETWORK_ATTEMPTS => {
                Some(limits::NETWORK_RETRY_DELAY)
            }
            _ => None,
        };
        let fresh = retired || reason == FailReason::CodexSemanticInactivity;
        Some(Task {
            id: TaskId::new(self.ids.fresh()),
            attempt: failed.attempt + 1,
            parent: Some(failed.id.clone()),
            state: if delay.is_some() { State::Deferred } else { State::Queued },
            order: self.enqueued,
            created_at: now,
            due: delay.map(|delay| now.mono.after(delay)),
            dispatched_at: None,
            deliveries: 0,
            lease_until: None,
            wait_reason: None,
            started_at: None,
            ended_at: None,
            ended_order: None,
            prior_session: failed.session_id.clone().filter(|_| !fresh),
            prior_work_dir: failed.work_dir.clone(),
            prior_session_unavailable: missing,
            session_id: None,
            result: None,
            error: None,
            failure_reason: None,
            cancel_acked: false,
            usage: Vec::new(),
            ..failed.clone()
        })
    }

    /// Ends a task and hints its runtime, as the end may have unblocked another one.
    fn end(&mut self, now: Now, id: &TaskId, state: State) {
        self.end_quietly(now, id, state);
        if let Some(runtime) = self.tasks.get(id).map(|task| task.runtime.clone()) {
            self.hint(Hint::TaskAvailable { runtime, task: None });
        }
    }

    fn end_quietly(&mut self, now: Now, id: &TaskId, state: State) {
        let Some(task) = self.tasks.get_mut(id) else { return };
        task.state = state;
        task.ended_at = Some(now);
        task.ended_order = Some(self.ends);
        self.ends += 1;
        task.lease_until = None;
        task.due = None;
        self.open.remove(task);
        self.ended.push_back(id.clone());
        self.forget_ended();
    }

    /// Forgets the tasks that ended first, above the bound. The one that ended last stays: its caller is given its row.
    pub(super) fn forget_ended(&mut self) {
        while self.ended.len() > self.limits.ended_tasks.max(1) {
            if let Some(oldest) = self.ended.pop_front() {
                self.tasks.remove(&oldest);
                self.transcripts.forget(&oldest);
            }
        }
    }
}
