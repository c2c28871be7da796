//! What the brief is made of: the part of a task that stays the same for all turns of one conversation.

use crate::wire::task::{Kind, Task};
use serde::{Deserialize, Serialize};

/// The kind of work, as far as the brief is concerned: how a turn was triggered is not part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Surface {
    /// An issue, assigned or commented on.
    Issue,
    /// A chat.
    Chat,
    /// A run of an autopilot.
    Autopilot,
    /// One issue is to be made of a text.
    QuickCreate,
    /// None of them.
    #[default]
    Bare,
}

/// Input of the brief. No secret is in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// The kind of work.
    pub surface: Surface,
    /// Id of the agent.
    pub agent_id: String,
    /// Name of the agent.
    pub agent_name: String,
    /// The agent's own instructions.
    pub instructions: String,
    /// The issue, if it is about one.
    pub issue_id: String,
    /// Whether the agent coordinates a squad.
    pub is_leader: bool,
    /// Name of the person whose machine this is.
    pub owner_name: String,
    /// What they say of themselves.
    pub owner_description: String,
    /// The workspace's text for every agent.
    pub workspace_context: String,
    /// Repositories: URL, description, default ref.
    pub repos: Vec<(String, String, String)>,
    /// Title of the project, if there is one.
    pub project_title: String,
    /// Its description.
    pub project_description: String,
    /// Whether there is a file with the project's resources.
    pub has_project: bool,
    /// Statuses of issues: key, name, category, description.
    pub statuses: Vec<(String, String, String, String)>,
}

impl Facts {
    /// Takes them from a task.
    pub fn of(task: &Task) -> Self {
        let agent = task.agent.as_ref();
        Self {
            surface: match task.kind() {
                Kind::Chat => Surface::Chat,
                Kind::Autopilot => Surface::Autopilot,
                Kind::Comment | Kind::Assignment => Surface::Issue,
                Kind::QuickCreate => Surface::QuickCreate,
                Kind::Bare => Surface::Bare,
            },
            agent_id: agent.map_or(&task.agent_id, |agent| &agent.id).clone(),
            agent_name: agent.map(|agent| agent.name.clone()).unwrap_or_default(),
            instructions: agent.map(|agent| agent.instructions.clone()).unwrap_or_default(),
            issue_id: task.issue_id.clone(),
            is_leader: task.is_leader_task,
            owner_name: task.requesting_user_name.clone(),
            owner_description: task.requesting_user_profile_description.clone(),
            workspace_context: task.workspace_context.clone(),
            repos: task
                .repos
                .iter()
                .map(|r| (r.url.clone(), r.description.clone(), r.r#ref.clone()))
                .collect(),
            project_title: task.project_title.clone(),
            project_description: task.project_description.clone(),
            has_project: !task.project_id.is_empty() || !task.project_resources.is_empty(),
            statuses: task
                .issue_statuses
                .iter()
                .map(|s| (s.key.clone(), s.name.clone(), s.category.clone(), s.description.clone()))
                .collect(),
        }
    }
}
