//! What a recording takes for granted, and what its users do: put into the plane so that the recorded requests mean the same to it.

use super::fixture::{Fixture, Line, World, claimed};
use crate::plane::{Config, Server, State, Subject, TaskSpec};
use crate::secret::Secret;
use longshore_core::id::{RuntimeId, TaskId};
use longshore_core::plane::{Failure, Registration, RuntimeEntry};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Fields of a claimed task that the plane makes itself; all others are texts of its users.
const OWN: [&str; 29] = [
    "id",
    "agent",
    "agent_id",
    "runtime_id",
    "issue_id",
    "workspace_id",
    "kind",
    "status",
    "priority",
    "attempt",
    "max_attempts",
    "created_at",
    "dispatched_at",
    "started_at",
    "completed_at",
    "result",
    "error",
    "failure_reason",
    "delivered_comment_ids",
    "auth_token",
    "leader_role_resolved",
    "parent_task_id",
    "work_dir",
    "relative_work_dir",
    "prior_session_id",
    "prior_work_dir",
    "chat_session_id",
    "autopilot_run_id",
    "thread_name",
];

/// A plane that plays the server of one recording.
pub(super) struct Story<'a> {
    pub(super) server: Server,
    world: &'a World,
    /// Recorded ids of runtimes and retries, and those that our plane made for them.
    ids: BTreeMap<String, String>,
}

fn text(of: &Value) -> String {
    of.as_str().unwrap_or_default().to_owned()
}

impl<'a> Story<'a> {
    pub(super) async fn begin(world: &'a World, fixture: &Fixture) -> Self {
        let token = fixture.lines.iter().flat_map(Line::headers).find(|(name, _)| *name == "Authorization");
        let token = token.map(|(_, value)| Secret::new(value.trim_start_matches("Bearer ")));
        let named = |id: &str| fixture.lines.iter().any(|line| line.path().contains(id) || holds(line, id));
        let workspaces = world.workspaces.iter().filter(|(id, _)| named(id) || id.ends_with("00"));
        let config = Config {
            seed: Some(1),
            token,
            workspaces: workspaces.map(|(id, name)| (id.clone(), name.clone())).collect(),
            ..Config::default()
        };
        let server = Server::start(config).await.expect("a free port");
        let mut story = Self { server, world, ids: BTreeMap::new() };
        story.runtimes_of_before(fixture);
        story.tasks_of_before(fixture);
        story
    }

    /// Registers the runtimes that the recording's daemon has from the start.
    fn runtimes_of_before(&mut self, fixture: &Fixture) {
        let (mut shown, mut before) = (BTreeSet::new(), BTreeSet::new());
        for line in &fixture.lines {
            let said = format!("{} {}", line.path(), line.request());
            before.extend(self.world.runtimes.keys().filter(|id| !shown.contains(*id) && said.contains(*id)));
            before.extend(
                self.world
                    .runtimes
                    .keys()
                    .filter(|id| !shown.contains(*id) && holds(line, id) && !is_registration(line)),
            );
            if is_registration(line) {
                shown.extend(self.world.runtimes.keys().filter(|id| holds(line, id)));
            }
        }
        let before: Vec<_> = before.into_iter().cloned().collect();
        for id in &before {
            self.register(id);
        }
    }

    fn register(&mut self, id: &str) {
        let row = &self.world.runtimes[id];
        let entry = RuntimeEntry {
            name: text(&row["name"]).into(),
            provider: text(&row["provider"]).into(),
            online: true,
            ..RuntimeEntry::default()
        };
        let from = Registration {
            runtimes: vec![entry],
            ..Registration::new(text(&row["workspace_id"]).as_str().into(), text(&row["daemon_id"]))
        };
        let ours = self.server.with_plane(|plane, now| plane.register(now, from)).expect("registered");
        self.ids.insert(id.to_owned(), ours[0].to_string());
    }

    /// Brings the tasks that were claimed before the recording begins to where they are then.
    fn tasks_of_before(&mut self, fixture: &Fixture) {
        let mut shown = BTreeSet::new();
        for line in &fixture.lines {
            for task in claimed(line) {
                let parent = text(&task["parent_task_id"]);
                if !parent.is_empty() && shown.insert(parent.clone()) {
                    self.bring(&parent, true);
                    self.pin(&parent, &task);
                }
                shown.insert(text(&task["id"]));
            }
            if !line.is_from_daemon() {
                continue;
            }
            let Some(id) = self.world.tasks.keys().find(|id| line.path().contains(*id)).cloned() else {
                continue;
            };
            if shown.insert(id.clone()) {
                let prepares = ["/start", "/prepare-lease", "/resolve"];
                let prepares = prepares.iter().any(|end| line.path().ends_with(end));
                let never_started = line.response().get("started_at").is_some_and(Value::is_null);
                self.bring(&id, !prepares && !never_started);
            }
        }
    }

    /// A task that was claimed, and perhaps started; if it is a retry, after the failure of the one before.
    fn bring(&mut self, id: &str, running: bool) {
        let Some(task) = self.world.tasks.get(id).cloned() else { return };
        let runtime = text(&task["runtime_id"]);
        if !self.ids.contains_key(&runtime) {
            self.register(&runtime);
        }
        let parent = text(&task["parent_task_id"]);
        if self.world.tasks.contains_key(&parent) {
            self.bring(&parent, true);
            self.pin(&parent, &task);
            let failed = TaskId::new(self.ours(&parent));
            let with = Failure { failure_reason: "runtime_recovery".into(), ..Failure::default() };
            self.server.with_plane(|plane, now| plane.fail(now, &failed, &with).map(drop)).expect("it runs");
        }
        self.queued(&task);
        let (runtime, id) = (RuntimeId::new(self.ours(&runtime)), TaskId::new(self.ours(id)));
        self.server.with_plane(|plane, now| {
            plane.claim_one(now, &runtime).expect("a live runtime");
            if running {
                plane.start(now, &id).expect("claimed");
            }
        });
    }

    /// The task had told where its work can be taken up, as its retry shows.
    fn pin(&mut self, id: &str, retry: &Value) {
        let (session, dir) = (text(&retry["prior_session_id"]), text(&retry["prior_work_dir"]));
        let id = TaskId::new(self.ours(id));
        if !(session.is_empty() && dir.is_empty()) {
            self.server.with_plane(|plane, _| plane.pin_session(&id, &session, &dir)).expect("there");
        }
    }

    /// Our name for a recorded id.
    pub(super) fn ours(&self, id: &str) -> String {
        self.ids.get(id).cloned().unwrap_or_else(|| id.to_owned())
    }

    /// A recorded text with our names in it.
    pub(super) fn told(&self, text: &str) -> String {
        self.ids.iter().fold(text.to_owned(), |text, (recorded, ours)| text.replace(recorded, ours))
    }

    /// Learns what our plane calls the runtimes of a registration.
    pub(super) fn learn(&mut self, recorded: &Value, ours: &Value) {
        let rows = |of: &Value| of["runtimes"].as_array().cloned().unwrap_or_default();
        for (recorded, ours) in rows(recorded).iter().zip(rows(ours)) {
            self.ids.insert(text(&recorded["id"]), text(&ours["id"]));
        }
    }

    /// What the recording's users must have done before the server could say this.
    pub(super) fn before(&mut self, fixture: &Fixture, at: usize) {
        let line = &fixture.lines[at];
        let answer = line.response();
        if line.is_from_daemon() {
            // All recorded tokens have the same neutral text, also one that the server did not know.
            let unknown = !line.is_spoilt() && line.status() == Some(401);
            let token = if unknown { Secret::new("another") } else { self.server.token().clone() };
            self.server.replace_token(token);
        }
        match (line.method(), line.path()) {
            ("GET", "/api/daemon/workspaces") if line.status() == Some(200) => self.memberships(answer),
            ("GET", path) if path.ends_with("/status") && answer["status"] == "cancelled" => {
                let id = TaskId::new(self.ours(path.rsplit('/').nth(1).unwrap_or_default()));
                self.server.cancel(&id).expect("a task of the story");
            }
            (_, path) if path.ends_with("/issues/gc-check") => self.issues(path, answer),
            ("NOTE", _) => {
                let gone = fixture.lines[at..].iter().map(|line| &line.response()["payload"]);
                let gone =
                    gone.filter(|payload| payload["runtime_gone"] == true).map(|it| text(&it["runtime_id"]));
                if line.request().as_str().is_some_and(|note| note.starts_with("runtime deleted")) {
                    for id in gone.take(1) {
                        let ours = RuntimeId::new(self.ours(&id));
                        self.server.with_plane(|plane, now| plane.delete_runtime(now, &ours));
                    }
                }
            }
            _ => {}
        }
        for task in claimed(line) {
            self.queued(&task);
        }
        // A hint that names a task tells that somebody has just made it.
        let hinted = text(&answer["payload"]["task_id"]);
        if line.is_from_server()
            && !hinted.is_empty()
            && let Some(task) = self.world.tasks.get(&hinted).cloned()
        {
            self.queued(&task);
        }
    }

    /// The task is in the queue, made by a user or by the failure of the one before.
    fn queued(&mut self, task: &Value) {
        let (id, parent) = (text(&task["id"]), TaskId::new(text(&task["parent_task_id"])));
        if self.ids.contains_key(&id) || self.server.task(&TaskId::from(id.as_str())).is_some() {
            return;
        }
        let child = self.server.tasks().into_iter().find(|row| row.parent.as_ref() == Some(&parent));
        match child {
            Some(child) => drop(self.ids.insert(id, child.id.to_string())),
            None => self.enqueue(task),
        }
    }

    fn enqueue(&mut self, task: &Value) {
        let agent = &task["agent"];
        let runtime = self.ours(&text(&task["runtime_id"]));
        let subject = match (text(&task["chat_session_id"]), text(&task["issue_id"])) {
            (chat, _) if !chat.is_empty() => Subject::Chat(chat.into()),
            (_, issue) if !issue.is_empty() => Subject::Issue(issue.into()),
            _ => Subject::Bare,
        };
        let named = agent["skill_refs"].as_array().into_iter().flatten();
        let skills =
            named.filter_map(|it| self.world.skills.get(&(text(&it["source"]), text(&it["id"]))).cloned());
        let given = |field: &str| Some(text(&task[field])).filter(|text| !text.is_empty());
        let mut spec = TaskSpec {
            id: Some(text(&task["id"]).as_str().into()),
            runtime: Some(RuntimeId::new(runtime)),
            agent_id: Some(text(&task["agent_id"])),
            subject: Some(subject),
            prior_session: given("prior_session_id"),
            prior_work_dir: given("prior_work_dir"),
            skills: Some(skills.collect()),
            ..TaskSpec::new("")
        };
        spec.content.agent_name = text(&agent["name"]);
        spec.content.instructions = text(&agent["instructions"]);
        spec.content.thread_name = text(&task["thread_name"]);
        spec.content.model = text(&agent["model"]);
        for (name, value) in agent["custom_env"].as_object().into_iter().flatten() {
            spec.content.custom_env.insert(name.clone(), Secret::new(text(value)));
        }
        for (name, value) in task.as_object().into_iter().flatten() {
            if !OWN.contains(&name.as_str()) {
                spec.content.task_fields.insert(name.clone(), value.clone());
            }
        }
        let made = self.server.enqueue(spec);
        made.unwrap_or_else(|why| panic!("{}: {why}", task["id"]));
    }

    fn memberships(&self, listed: &Value) {
        let wanted: BTreeMap<_, _> = listed
            .as_array()
            .into_iter()
            .flatten()
            .map(|row| (text(&row["id"]), text(&row["name"])))
            .collect();
        self.server.with_plane(|plane, now| {
            let there: Vec<_> = plane.workspaces().map(|(id, _)| id.clone()).collect();
            for id in there.iter().filter(|id| !wanted.contains_key(id.as_str())) {
                plane.remove_workspace(now, id);
            }
            for (id, name) in &wanted {
                plane.add_workspace(id.as_str().into(), name).expect("room");
            }
        });
    }

    /// The issues that were found: a task of ours is about each, and it is what the recorded server says.
    fn issues(&self, path: &str, answer: &Value) {
        let workspace = path.split('/').nth(4).unwrap_or_default();
        let runtime = self.server.runtimes().into_iter().find(|row| row.workspace.as_str() == workspace);
        for row in answer["issues"].as_array().into_iter().flatten().filter(|row| row["found"] == true) {
            let id = text(&row["id"]);
            let subject = Subject::Issue(id.as_str().into());
            if !self.server.tasks().iter().any(|task| task.subject == subject) {
                let runtime = runtime.as_ref().map(|row| row.id.clone());
                let spec = TaskSpec { runtime, subject: Some(subject), ..TaskSpec::new("") };
                let task = self.server.enqueue(spec).expect("a runtime");
                assert_eq!(self.server.cancel(&task), Ok(State::Cancelled));
            }
            let status = text(&row["status"]);
            self.server.with_plane(|plane, now| plane.set_subject_status(now, &id, &status));
        }
    }
}

fn is_registration(line: &Line) -> bool {
    line.path() == "/api/daemon/register"
}

fn holds(line: &Line, id: &str) -> bool {
    line.response().to_string().contains(id)
}
