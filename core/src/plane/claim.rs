//! Into the queue, and out of it to a daemon.

use super::row::{State, Subject, Task, Text};
use super::{Hint, NewTask, Plane, Refusal, limits};
use crate::id::{RuntimeId, TaskId};
use crate::time::Now;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// A task that a claim hands out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claimed {
    /// The task.
    pub task: TaskId,
    /// Whether an earlier claim handed it out too, and nothing was heard of it.
    pub again: bool,
}

impl Plane {
    /// Puts a task in the queue and hints its runtime.
    ///
    /// # Errors
    /// [`Refusal::RuntimeNotFound`]; [`Refusal::Unusable`] if the runtime is offline for a reason that its daemon gave;
    /// [`Refusal::Conflict`] if the id is taken, or a task of the same issue and agent
    /// has not started yet; [`Refusal::Invalid`] without agent or tries; [`Refusal::Full`].
    pub fn enqueue(&mut self, now: Now, new: NewTask) -> Result<TaskId, Refusal> {
        let runtime = self.runtimes.get(&new.runtime).ok_or(Refusal::RuntimeNotFound)?;
        if let Some(why) = runtime.offline_reason.as_ref().filter(|_| !runtime.online) {
            return Err(Refusal::Unusable(why.to_string()));
        }
        let workspace = runtime.workspace.clone();
        if new.agent.is_empty() || new.max_attempts == 0 {
            return Err(Refusal::Invalid("a task needs an agent and at least one try".into()));
        }
        if new.id.as_ref().is_some_and(|id| self.tasks.contains_key(id)) {
            return Err(Refusal::Conflict("a task of this id is there already"));
        }
        let task = Task {
            id: new.id.unwrap_or_else(|| TaskId::new(self.ids.fresh())),
            runtime: new.runtime,
            workspace,
            agent: new.agent,
            subject: new.subject,
            priority: new.priority,
            attempt: 1,
            max_attempts: new.max_attempts,
            parent: None,
            payload: new.payload,
            state: State::Queued,
            order: self.enqueued,
            created_at: now,
            due: None,
            dispatched_at: None,
            deliveries: 0,
            lease_until: None,
            wait_reason: None,
            started_at: None,
            ended_at: None,
            ended_order: None,
            prior_session: new.prior_session,
            prior_work_dir: new.prior_work_dir,
            prior_session_unavailable: false,
            session_id: None,
            work_dir: None,
            durable_work_dir: None,
            branch_name: None,
            result: None,
            error: None,
            failure_reason: None,
            cancel_acked: false,
            usage: Vec::new(),
        };
        if self.has_successor(&task) {
            return Err(Refusal::Conflict("a task of this issue and agent waits to be started already"));
        }
        if self.open.len() >= self.limits.open_tasks {
            return Err(Refusal::Full("open tasks"));
        }
        let id = task.id.clone();
        self.admit(task);
        Ok(id)
    }

    /// Takes a task in: the one place where rows are added.
    pub(super) fn admit(&mut self, task: Task) {
        self.enqueued += 1;
        self.open.insert(&task);
        if task.state == State::Queued {
            self.hint(Hint::TaskAvailable { runtime: task.runtime.clone(), task: Some(task.id.clone()) });
        }
        self.tasks.insert(task.id.clone(), task);
    }

    /// Whether another task of the same issue and agent has yet to start.
    pub(super) fn has_successor(&self, task: &Task) -> bool {
        matches!(task.subject, Subject::Issue(_))
            && self
                .open_of_agent(&task.agent)
                .any(|other| other.id != task.id && other.state != State::Running && task.excludes(other))
    }

    /// Claims up to `max` tasks (at most [`limits::CLAIM_BATCH`]) for those of `runtimes` that belong to `daemon` and
    /// are live; other ids are skipped. Due retries are promoted first, lost claims are delivered again, and of queued
    /// tasks the claim takes at most one for each agent, higher priority and then older ones first.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] without a daemon id.
    pub fn claim(
        &mut self,
        now: Now,
        daemon: &str,
        runtimes: &[RuntimeId],
        max: usize,
    ) -> Result<Vec<Claimed>, Refusal> {
        if daemon.trim().is_empty() {
            return Err(Refusal::Invalid("daemon_id is required".into()));
        }
        let live = runtimes
            .iter()
            .filter(|id| {
                self.runtimes.get(id).is_some_and(|row| *row.daemon_id == *daemon.trim() && row.is_live(now))
            })
            .cloned()
            .collect();
        Ok(self.hand_out(now, &live, max.min(limits::CLAIM_BATCH)))
    }

    /// Claims one task for one runtime, whoever asks.
    ///
    /// # Errors
    /// [`Refusal::RuntimeNotFound`].
    pub fn claim_one(&mut self, now: Now, runtime: &RuntimeId) -> Result<Option<Claimed>, Refusal> {
        let row = self.runtimes.get(runtime).ok_or(Refusal::RuntimeNotFound)?;
        let live = row.is_live(now).then(|| runtime.clone()).into_iter().collect();
        Ok(self.hand_out(now, &live, 1).pop())
    }

    fn hand_out(&mut self, now: Now, live: &BTreeSet<RuntimeId>, max: usize) -> Vec<Claimed> {
        let mut out = Vec::new();
        if max == 0 {
            return out;
        }
        self.promote_due(now, live);
        let mut open: Vec<&Task> = live
            .iter()
            .flat_map(|runtime| self.open.of_runtime(runtime))
            .filter_map(|id| self.tasks.get(id))
            .filter(|task| matches!(task.state, State::Queued | State::Dispatched))
            .collect();
        open.sort_unstable_by_key(|task| (Reverse(task.priority), task.order));
        let lost: Vec<_> =
            open.iter().filter(|task| is_lost(task, now)).map(|task| task.id.clone()).collect();
        let queued: Vec<_> =
            open.iter().filter(|task| task.state == State::Queued).map(|task| task.id.clone()).collect();
        for task in lost.into_iter().take(max) {
            self.dispatch(now, &task);
            out.push(Claimed { task, again: true });
        }
        if queued.is_empty() || out.len() >= max {
            return out;
        }
        let mut active = self.active_work();
        // Agents that get no more tasks from this claim.
        let mut served = BTreeSet::new();
        for task in queued {
            if out.len() >= max {
                break;
            }
            let Some(row) = self.tasks.get(&task) else { continue };
            if served.contains(&row.agent) {
                continue;
            }
            let cap = self.agent_caps.get(&row.agent).copied().unwrap_or(limits::AGENT_CAP);
            if active.iter().filter(|(agent, _)| *agent == row.agent).count() >= cap {
                served.insert(row.agent.clone());
                continue;
            }
            if active.iter().any(|(agent, subject)| row.excludes_work(agent, subject)) {
                continue;
            }
            served.insert(row.agent.clone());
            active.push((row.agent.clone(), row.subject.clone()));
            self.dispatch(now, &task);
            out.push(Claimed { task, again: false });
        }
        out
    }

    /// Who works on what.
    fn active_work(&self) -> Vec<(Text, Subject)> {
        let open = self.open.all().filter_map(|id| self.tasks.get(id));
        let active = open.filter(|task| task.state.is_active());
        active.map(|task| (task.agent.clone(), task.subject.clone())).collect()
    }

    fn dispatch(&mut self, now: Now, id: &TaskId) {
        if let Some(task) = self.tasks.get_mut(id) {
            task.state = State::Dispatched;
            task.dispatched_at = Some(now);
            task.deliveries += 1;
            task.lease_until = Some(now.mono.after(limits::PREPARE_LEASE));
        }
    }

    fn promote_due(&mut self, now: Now, live: &BTreeSet<RuntimeId>) {
        let due: Vec<_> = live
            .iter()
            .flat_map(|runtime| self.open.of_runtime(runtime))
            .filter_map(|id| self.tasks.get(id))
            .filter(|task| task.state == State::Deferred && task.due.is_none_or(|due| due <= now.mono))
            .map(|task| task.id.clone())
            .collect();
        for id in due {
            let Some(task) = self.tasks.get_mut(&id) else { continue };
            task.state = State::Queued;
            task.due = None;
            let runtime = task.runtime.clone();
            self.hint(Hint::TaskAvailable { runtime, task: Some(id) });
        }
    }

    pub(super) fn open_of_agent(&self, agent: &str) -> impl Iterator<Item = &Task> {
        self.open.of_agent(agent).filter_map(|id| self.tasks.get(id))
    }
}

/// Whether a claim's answer was lost, as far as the plane can tell.
fn is_lost(task: &Task, now: Now) -> bool {
    task.state == State::Dispatched
        && task.dispatched_at.is_some_and(|at| now.mono.since(at.mono) >= limits::REDELIVER_AFTER)
        && task.lease_until.is_none_or(|until| until <= now.mono)
}
