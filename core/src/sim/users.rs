//! What users do: put tasks in the queue, and everything that upsets them there.

use super::fault::Fault;
use super::queue::What;
use super::world::{REMEMBERED, World};
use crate::id::{RuntimeId, TaskId, WorkspaceId};
use crate::plane::{NewTask, Payload, Subject};
use crate::script::Choose;

impl World {
    pub(super) fn users(&mut self) {
        if self.healed_at.is_some() {
            return;
        }
        self.enqueue();
        let now = self.server_now();
        if self.hit(Fault::TaskCancelled)
            && let Some(task) = self.some_task()
        {
            // It may be gone by now.
            let _ = self.plane.cancel(now, &task);
        }
        if self.hit(Fault::TaskDeleted)
            && let Some(task) = self.some_task()
        {
            self.plane.delete_task(&task);
        }
        if self.hit(Fault::Reassigned)
            && let Some(task) = self.some_task()
            && self.plane.cancel(now, &task).is_ok()
        {
            self.enqueue();
        }
        if self.hit(Fault::RuntimeDeleted)
            && let Some(runtime) = self.some_runtime()
        {
            self.plane.delete_runtime(now, &runtime);
        }
        if self.hit(Fault::WorkspaceChanged) {
            self.change_workspace();
        }
        if self.hit(Fault::ProfilesChanged) {
            self.change_profiles();
        }
        if self.hit(Fault::RootVanishes) {
            self.queue.push(self.now, What::Vanish);
        }
        self.push_hints();
        if self.hit(Fault::Stop) {
            self.ask_to_stop();
        }
        if self.hit(Fault::Gate) {
            self.ask_for_gate();
        }
        let every = self.cfg.load.every;
        let wait = 1 + self.below(2 * every);
        // Sometimes a burst, so that slots run out.
        let wait = if self.chance.one_in(4) { wait / 16 } else { wait };
        self.queue.push(self.now + wait, What::Users);
    }

    fn enqueue(&mut self) {
        if self.plane.open_tasks() >= self.cfg.load.open.min(REMEMBERED) {
            return;
        }
        let Some(runtime) = self.some_runtime() else { return };
        let agents = self.cfg.load.agents;
        let agent = format!("agent-{}", self.chance.below(agents));
        self.next_issue += 1;
        let n = self.next_issue;
        let subject = match self.chance.below(6) {
            0 => Subject::Bare,
            1 => Subject::Chat(format!("chat-{}", self.chance.below(3)).into()),
            2 => Subject::Issue(format!("issue-{}", self.chance.below(4)).into()),
            3 => Subject::Autopilot(format!("run-{n}").into()),
            _ => Subject::Issue(format!("issue-{n}").into()),
        };
        let prior = self.chance.one_in(4).then(|| self.some_task()).flatten();
        let mut new = NewTask::new(runtime, agent, subject);
        new.priority = i32::try_from(self.chance.below(3)).unwrap_or(0);
        new.payload = Payload(n);
        new.prior_work_dir = prior.map(|task| super::server::root_of(&task).as_str().into());
        let now = self.server_now();
        // A task of the same issue may wait already.
        if let Ok(task) = self.plane.enqueue(now, new) {
            self.recent.push_back(task);
            if self.recent.len() > REMEMBERED {
                self.recent.pop_front();
            }
        }
    }

    fn some_task(&mut self) -> Option<TaskId> {
        let nth = self.chance.below(self.recent.len() as u32) as usize;
        self.recent.get(nth).cloned()
    }

    fn some_runtime(&mut self) -> Option<RuntimeId> {
        let count = self.plane.runtimes().count() as u32;
        let nth = self.chance.below(count) as usize;
        self.plane.runtimes().nth(nth).map(|row| row.id.clone())
    }

    fn change_workspace(&mut self) {
        let now = self.server_now();
        let count = self.plane.workspaces().count() as u32;
        let nth = self.chance.below(count) as usize;
        let gone = self.plane.workspaces().nth(nth).map(|(id, _)| id.clone());
        if let Some(gone) = gone.filter(|_| count > 1 || self.chance.one_in(2)) {
            self.plane.remove_workspace(now, &gone);
        }
        if count < 4 {
            self.next_workspace += 1;
            let n = self.next_workspace;
            self.add_workspace(n);
        }
    }

    /// The users' last word: there is a workspace, as a daemon without one has nothing to come to rest from.
    pub(super) fn settle_users(&mut self) {
        if self.plane.workspaces().next().is_none() {
            // There are far fewer than the bound.
            let _ = self.plane.add_workspace(WorkspaceId::new("ws-last"), "a workspace");
            self.push_hints();
        }
    }
}
