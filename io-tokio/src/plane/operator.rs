//! The operator's side of the server: what a person does to a real one through its pages.

use super::access::Grant;
use super::content::TaskSpec;
use super::server::{Server, find_runtime};
use super::skills::Skill;
use crate::secret::Secret;
use longshore_core::id::{ProfileId, TaskId, WorkspaceId};
use longshore_core::plane::{Hint, NewTask, ProfileSpec, Refusal, Repo, State, Subject, Text};
use uuid::Uuid;

impl Server {
    /// Puts a task in the queue.
    ///
    /// # Errors
    /// [`Refusal::RuntimeNotFound`] if no runtime fits; see `Plane::enqueue`.
    pub fn enqueue(&self, spec: TaskSpec) -> Result<TaskId, Refusal> {
        self.shared.act(|inner, now| {
            let runtime = match spec.runtime {
                Some(runtime) => runtime,
                None => find_runtime(&inner.plane, &spec.provider, spec.workspace.as_ref())
                    .ok_or(Refusal::RuntimeNotFound)?
                    .id
                    .clone(),
            };
            let unique = || Uuid::new_v4().to_string();
            let agent: Text = spec.agent_id.unwrap_or_else(unique).into();
            if let Some(skills) = spec.skills {
                inner.set_skills(agent.clone(), skills);
            }
            let payload = inner.keep(spec.content);
            let new = NewTask {
                id: spec.id,
                priority: spec.priority,
                max_attempts: spec.max_attempts,
                payload,
                prior_session: spec.prior_session.map(Into::into),
                prior_work_dir: spec.prior_work_dir.map(Into::into),
                ..NewTask::new(
                    runtime,
                    agent,
                    spec.subject.unwrap_or_else(|| Subject::Issue(unique().into())),
                )
            };
            inner.plane.enqueue(now, new)
        })
    }

    /// Cancels a task that has not ended; where it is then.
    ///
    /// # Errors
    /// [`Refusal::TaskNotFound`].
    pub fn cancel(&self, task: &TaskId) -> Result<State, Refusal> {
        self.with_plane(|plane, now| plane.cancel(now, task).map(|row| row.state))
    }

    /// Sets the skills of an agent, for its tasks in the queue too.
    pub fn set_skills(&self, agent: &str, skills: Vec<Skill>) {
        self.shared.act(|inner, _| inner.set_skills(agent.into(), skills));
    }

    /// Adds a runtime profile to a workspace; daemons are hinted.
    ///
    /// # Errors
    /// See [`longshore_core::plane::Plane::add_profile`].
    pub fn add_profile(&self, workspace: &str, spec: ProfileSpec) -> Result<ProfileId, Refusal> {
        self.with_plane(|plane, now| plane.add_profile(now, &workspace.into(), spec))
    }

    /// Changes a runtime profile; daemons are hinted.
    ///
    /// # Errors
    /// See [`longshore_core::plane::Plane::change_profile`].
    pub fn change_profile(
        &self,
        profile: &ProfileId,
        change: impl FnOnce(&mut ProfileSpec),
    ) -> Result<(), Refusal> {
        self.with_plane(|plane, now| {
            let mut spec = plane.profile(profile).ok_or(Refusal::ProfileNotFound)?.spec.clone();
            change(&mut spec);
            plane.change_profile(now, profile, spec)
        })
    }

    /// Removes a runtime profile with its runtimes; daemons are hinted. Whether it was there.
    pub fn remove_profile(&self, profile: &ProfileId) -> bool {
        self.with_plane(|plane, now| plane.remove_profile(now, profile))
    }

    /// Sets the repositories of a workspace.
    ///
    /// # Errors
    /// See [`longshore_core::plane::Plane::set_repos`].
    pub fn set_repos(&self, workspace: &str, repos: Vec<Repo>) -> Result<(), Refusal> {
        self.with_plane(|plane, _| plane.set_repos(&workspace.into(), repos))
    }

    /// Sets the settings of a workspace: a JSON object as text.
    ///
    /// # Errors
    /// See [`longshore_core::plane::Plane::set_settings`].
    pub fn set_settings(&self, workspace: &str, settings: &str) -> Result<(), Refusal> {
        self.with_plane(|plane, _| plane.set_settings(&workspace.into(), settings))
    }

    /// Makes the user a member of the workspace or not; those who are not see it as if it were not theirs.
    pub fn set_member(&self, workspace: &str, member: bool) {
        self.shared.act(|inner, _| {
            inner.tokens.set_member(WorkspaceId::from(workspace), member);
            inner.links.push(&Hint::WorkspacesChanged);
        });
    }

    /// Accepts this token from now on, and no other. What a control channel was opened with stays good for as long as it is open.
    pub fn replace_token(&self, token: Secret) {
        self.shared.act(|inner, _| {
            inner.tokens.revoke_all();
            // There is room for the first one.
            inner.tokens.grant(&token, Grant::user());
        });
    }

    /// Accepts this token too, or changes what it is good for. Whether there was room for one more.
    pub fn grant(&self, token: &Secret, grant: Grant) -> bool {
        self.shared.act(|inner, _| inner.tokens.grant(token, grant))
    }

    /// Has the batch claim or not; without it its route is missing, as on an old server.
    pub fn set_batch_claim(&self, on: bool) {
        self.shared.lock().switches.batch_claim = on;
    }

    /// Has the control channel or not. Those that are open stay.
    pub fn set_websocket(&self, on: bool) {
        self.shared.lock().switches.websocket = on;
    }

    /// Takes claims on the control channel or not.
    pub fn set_rpc(&self, on: bool) {
        self.shared.lock().switches.rpc = on;
    }

    /// Keeps tasks that want a worktree from daemons that do not say that they can, as the real server does, or hands them out all the same.
    pub fn set_worktree_gate(&self, on: bool) {
        self.shared.lock().switches.worktree_gate = on;
    }
}
