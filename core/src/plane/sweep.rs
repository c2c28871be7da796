//! What time alone does. A server runs it every [`limits::SWEEP_EVERY`].

use super::end::{QUEUED_EXPIRED, RECONNECT_TIMEOUT};
use super::row::{State, Task};
use super::{Plane, limits};
use crate::reason::FailReason;
use crate::time::Now;

impl Plane {
    /// Takes silent runtimes offline, forgets those that are gone for good, and fails the tasks whose time is up:
    /// dispatched and abandoned, queued too long, or with a runtime that did not come back.
    pub fn sweep(&mut self, now: Now) {
        let silent: Vec<_> = self
            .runtimes
            .values()
            .filter(|row| row.online && !row.is_live(now))
            .map(|row| row.id.clone())
            .collect();
        for id in &silent {
            if let Some(row) = self.runtimes.get_mut(id) {
                row.online = false;
            }
        }
        let late: Vec<_> = self
            .open
            .all()
            .filter_map(|id| self.tasks.get(id))
            .filter_map(|task| self.overdue(now, task).map(|(why, text)| (task.id.clone(), why, text)))
            .collect();
        for (id, why, text) in late {
            self.fail_as(now, &id, why, text);
        }
        let gone: Vec<_> = self
            .runtimes
            .values()
            .filter(|row| !row.online && now.mono.since(row.last_seen.mono) > limits::RUNTIME_FORGOTTEN)
            .filter(|row| self.open.of_runtime(&row.id).next().is_none())
            .map(|row| row.id.clone())
            .collect();
        for id in &gone {
            self.forget_runtime(id);
        }
    }

    /// Why the task is to be failed now, if it is.
    fn overdue(&self, now: Now, task: &Task) -> Option<(&'static str, &'static str)> {
        let runtime = self.runtimes.get(&task.runtime);
        let live = runtime.is_some_and(|row| row.is_live(now));
        let lost =
            runtime.is_none_or(|row| now.mono.since(row.last_seen.mono) > limits::RECONNECT_GRACE) && !live;
        let age = |from: Option<Now>| from.map(|from| now.mono.since(from.mono)).unwrap_or_default();
        let timeout = FailReason::Timeout.as_str();
        match task.state {
            State::Dispatched
                if age(task.dispatched_at) > limits::DISPATCHED_TIMEOUT
                    && task.lease_until.is_none_or(|until| until <= now.mono)
                    && (live || lost) =>
            {
                Some((timeout, "the task was claimed and never started"))
            }
            State::Running if age(task.started_at) > limits::RUNNING_TIMEOUT && lost => {
                Some((timeout, "the task ran too long on a runtime that is silent"))
            }
            state if state.is_active() && lost => {
                Some((FailReason::RuntimeOffline.as_str(), "the runtime did not come back"))
            }
            State::Queued
                if age(Some(task.created_at)) > limits::QUEUED_TTL && !self.follows_offline(task) =>
            {
                Some((QUEUED_EXPIRED, "no runtime took the task in time"))
            }
            State::Deferred
                if task.due.is_some_and(|due| now.mono.since(due) > limits::RECONNECT_GRACE)
                    && !live
                    && self.follows_offline(task) =>
            {
                Some((RECONNECT_TIMEOUT, "the runtime did not come back for the next try"))
            }
            _ => None,
        }
    }

    /// Whether the task is the retry of one whose runtime went away.
    fn follows_offline(&self, task: &Task) -> bool {
        let parent = task.parent.as_ref().and_then(|parent| self.tasks.get(parent));
        parent.is_some_and(|row| row.failure_reason.as_deref() == Some(FailReason::RuntimeOffline.as_str()))
    }
}
