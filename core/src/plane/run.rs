//! What a daemon tells of a task between claim and end.

use super::row::{State, Task, Text, Usage};
use super::{Plane, Refusal, limits};
use crate::id::{RuntimeId, TaskId};
use crate::time::Now;

impl Plane {
    /// The agent starts: once, from dispatched or waiting.
    ///
    /// # Errors
    /// [`Refusal::TaskNotFound`]; [`Refusal::WrongState`] from anywhere else, running included.
    pub fn start(&mut self, now: Now, id: &TaskId) -> Result<&Task, Refusal> {
        let task = self.row_mut(id)?;
        if !task.state.is_preparing() {
            let needs = "dispatched or waiting_local_directory";
            return Err(Refusal::WrongState { call: "start task", state: task.state, needs });
        }
        task.state = State::Running;
        task.started_at = Some(now);
        task.lease_until = None;
        task.wait_reason = None;
        Ok(task)
    }

    /// The daemon still prepares: the lease is counted from now.
    ///
    /// # Errors
    /// [`Refusal::RuntimeNotFound`]; [`Refusal::TaskNotFound`], also if the task is another runtime's;
    /// [`Refusal::WrongState`] unless dispatched or waiting.
    pub fn prepare_lease(&mut self, now: Now, runtime: &RuntimeId, id: &TaskId) -> Result<&Task, Refusal> {
        if !self.runtimes.contains_key(runtime) {
            return Err(Refusal::RuntimeNotFound);
        }
        let task = self.row_mut(id)?;
        if task.runtime != *runtime {
            return Err(Refusal::TaskNotFound);
        }
        if !task.state.is_preparing() {
            let needs = "dispatched or waiting_local_directory";
            return Err(Refusal::WrongState { call: "extend prepare lease", state: task.state, needs });
        }
        task.lease_until = Some(now.mono.after(limits::PREPARE_LEASE));
        Ok(task)
    }

    /// A claimed task whose daemon may ask for the skills of its agent.
    ///
    /// # Errors
    /// [`Refusal::RuntimeNotFound`]; [`Refusal::TaskNotFound`], also if the task is another runtime's;
    /// [`Refusal::NotPreparing`] unless dispatched or waiting.
    pub fn preparing(&self, runtime: &RuntimeId, id: &TaskId) -> Result<&Task, Refusal> {
        if !self.runtimes.contains_key(runtime) {
            return Err(Refusal::RuntimeNotFound);
        }
        let task = self.row(id)?;
        if task.runtime != *runtime {
            return Err(Refusal::TaskNotFound);
        }
        if task.state.is_preparing() { Ok(task) } else { Err(Refusal::NotPreparing(task.state)) }
    }

    /// The daemon waits for a directory that another run holds.
    ///
    /// # Errors
    /// [`Refusal::TaskNotFound`]; [`Refusal::WrongState`] unless dispatched.
    pub fn wait_local_directory(&mut self, now: Now, id: &TaskId, reason: &str) -> Result<&Task, Refusal> {
        let task = self.row_mut(id)?;
        if task.state != State::Dispatched {
            let call = "wait for a local directory";
            return Err(Refusal::WrongState { call, state: task.state, needs: "dispatched" });
        }
        task.state = State::WaitingLocalDirectory;
        task.lease_until = Some(now.mono.after(limits::PREPARE_LEASE));
        task.wait_reason = Some(reason.into());
        Ok(task)
    }

    /// Pins the session or the directory to resume from. Taken while dispatched, waiting or running, and for a
    /// cancelled task that has no session yet; otherwise it changes nothing.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] if both are empty; [`Refusal::TaskNotFound`].
    pub fn pin_session(&mut self, id: &TaskId, session: &str, work_dir: &str) -> Result<(), Refusal> {
        if session.is_empty() && work_dir.is_empty() {
            return Err(Refusal::Invalid("session_id or work_dir is required".into()));
        }
        let task = self.row_mut(id)?;
        let late = task.state == State::Cancelled && task.session_id.is_none();
        if task.state.is_active() || late {
            set(&mut task.session_id, session);
            set(&mut task.work_dir, work_dir);
        }
        Ok(())
    }

    /// Takes totals per provider and model, in any state; a row that is there is replaced. Rows above the bound are
    /// left out.
    ///
    /// # Errors
    /// [`Refusal::TaskNotFound`].
    pub fn report_usage(&mut self, id: &TaskId, usage: Vec<Usage>) -> Result<(), Refusal> {
        let bound = self.limits.task_usage;
        let task = self.tasks.get_mut(id).ok_or(Refusal::TaskNotFound)?;
        for mut row in usage {
            row.provider = match row.provider.trim() {
                "" => self.runtimes.get(&task.runtime).map_or("".into(), |it| it.provider.as_str().into()),
                given => given.to_lowercase().into(),
            };
            let same = |it: &Usage| (&it.provider, &it.model) == (&row.provider, &row.model);
            match task.usage.iter().position(same) {
                Some(at) => task.usage[at] = row,
                None if task.usage.len() < bound => task.usage.push(row),
                None => {}
            }
        }
        Ok(())
    }

    /// Where the task is.
    ///
    /// # Errors
    /// [`Refusal::TaskNotFound`].
    pub fn status(&self, id: &TaskId) -> Result<State, Refusal> {
        self.row(id).map(|task| task.state)
    }
}

/// A given text replaces; an empty one leaves what there is.
pub(super) fn set(slot: &mut Option<Text>, given: &str) {
    if !given.is_empty() {
        *slot = Some(given.into());
    }
}
