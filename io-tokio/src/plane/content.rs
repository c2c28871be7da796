//! The texts of a task: what a claim carries beside the row that the plane keeps.

use super::skills::Skill;
use crate::agent_double::Step;
use crate::secret::Secret;
use longshore_core::id::{RuntimeId, TaskId, WorkspaceId};
use longshore_core::plane::{Subject, limits};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;

/// What the agent is told and given. Prints no values: some are secret.
#[derive(Clone, Default)]
pub struct Content {
    /// The agent's name; empty for a default one.
    pub agent_name: String,
    /// System-level instructions.
    pub instructions: String,
    /// Title of the work.
    pub thread_name: String,
    /// Model; empty for the CLI's own choice.
    pub model: String,
    /// Extra arguments for the agent CLI.
    pub custom_args: Vec<String>,
    /// Extra environment for the agent CLI.
    pub custom_env: BTreeMap<String, Secret>,
    /// Comments before the one that triggered the work, oldest first.
    pub comments: Vec<Comment>,
    /// More fields of the claim's `agent` object; they replace what is there.
    pub agent_fields: Map<String, Value>,
    /// More fields of the claimed task; they replace what is there, its ids included.
    pub task_fields: Map<String, Value>,
}

/// A comment that a task is to read, too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comment {
    /// Its id.
    pub id: String,
    /// The first comment of its thread; empty for itself.
    pub thread_id: String,
    /// `member` or `agent`.
    pub author_type: String,
    /// Who wrote it.
    pub author_name: String,
    /// What it says.
    pub content: String,
    /// When: RFC 3339.
    pub created_at: String,
}

impl Content {
    /// Whether the task is to work in a worktree of a directory of this daemon's machine.
    pub(super) fn wants_worktree(&self, daemon_id: &str) -> bool {
        let resources = self.task_fields.get("project_resources").and_then(Value::as_array);
        resources.into_iter().flatten().any(|resource| {
            let at = &resource["resource_ref"];
            resource["resource_type"] == "local_directory"
                && at["daemon_id"] == daemon_id
                && at["execution_mode"] == "worktree"
        })
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Content")
            .field("thread_name", &self.thread_name)
            .field("custom_env", &self.custom_env.keys())
            .finish_non_exhaustive()
    }
}

/// A task to enqueue.
#[derive(Clone, Debug)]
pub struct TaskSpec {
    /// Its id; `None` for a new one.
    pub id: Option<TaskId>,
    /// The runtime; `None` for the first one of `provider` in `workspace`, an online one before others.
    pub runtime: Option<RuntimeId>,
    /// Which CLI is to run it, if `runtime` does not say so.
    pub provider: String,
    /// Which workspace it belongs to, if `runtime` does not say so; `None` for any.
    pub workspace: Option<WorkspaceId>,
    /// The agent; `None` for one of its own, so that no other task holds it back.
    pub agent_id: Option<String>,
    /// What it is about; `None` for an issue of its own.
    pub subject: Option<Subject>,
    /// Higher goes first.
    pub priority: i32,
    /// Tries, at least 1.
    pub max_attempts: u32,
    /// An agent session to go on with.
    pub prior_session: Option<String>,
    /// The directory of that session.
    pub prior_work_dir: Option<String>,
    /// Its texts.
    pub content: Content,
    /// What its agent's skills are from now on; `None` leaves them as they are.
    pub skills: Option<Vec<Skill>>,
}

impl TaskSpec {
    /// A task for an agent CLI of the family `provider`, with an agent and an issue of its own.
    pub fn new(provider: &str) -> Self {
        Self {
            id: None,
            runtime: None,
            provider: provider.into(),
            workspace: None,
            agent_id: None,
            subject: None,
            priority: 0,
            max_attempts: limits::MAX_ATTEMPTS,
            prior_session: None,
            prior_work_dir: None,
            content: Content::default(),
            skills: None,
        }
    }

    /// With one more variable in the agent's environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.content.custom_env.insert(name.into(), Secret::new(value));
        self
    }

    /// With a title.
    #[must_use]
    pub fn titled(mut self, title: &str) -> Self {
        self.content.thread_name = title.into();
        self
    }

    /// With one more field in the claimed task.
    #[must_use]
    pub fn field(mut self, name: &str, value: Value) -> Self {
        self.content.task_fields.insert(name.into(), value);
        self
    }

    /// With one more skill of its agent.
    #[must_use]
    pub fn skill(mut self, skill: Skill) -> Self {
        self.skills.get_or_insert_default().push(skill);
        self
    }

    /// For the agent double: what it is to do.
    #[must_use]
    pub fn script(self, steps: &[Step]) -> Self {
        // The double runs no model and obeys nobody but its script, so it needs no other sandbox to be started by root.
        self.env("IS_SANDBOX", "1")
            .env(crate::agent_double::SCRIPT_ENV, &crate::agent_double::script_text(steps))
    }
}
