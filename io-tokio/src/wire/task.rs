//! A task as a claim brings it. Only what a daemon acts on is here; every other field is ignored.
//!
//! Each field is read leniently: a wrong type is as good as absent. The three ids that decide where a task goes are
//! checked by whoever takes the claim, not here.

use super::lenient;
use super::skill::SkillRef;
use crate::secret::Secret;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// A claimed task with all that its run needs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Task {
    /// Task id; empty if it was missing or no string.
    #[serde(deserialize_with = "lenient::field")]
    pub id: String,
    /// The agent that the row names; may be empty.
    #[serde(deserialize_with = "lenient::field")]
    pub agent_id: String,
    /// The runtime it was queued for.
    #[serde(deserialize_with = "lenient::field")]
    pub runtime_id: String,
    /// The issue, empty for chat, autopilot and quick-create.
    #[serde(deserialize_with = "lenient::field")]
    pub issue_id: String,
    /// The workspace.
    #[serde(deserialize_with = "lenient::field")]
    pub workspace_id: String,
    /// The agent's own credential, `mat_…`.
    #[serde(deserialize_with = "lenient::field")]
    pub auth_token: Secret,
    /// Title for the agent's session history.
    #[serde(deserialize_with = "lenient::field")]
    pub thread_name: String,
    /// Which try of the work this is, from 1.
    #[serde(deserialize_with = "lenient::field")]
    pub attempt: u32,
    /// The agent; `None` if null, missing or no object.
    #[serde(deserialize_with = "lenient::field")]
    pub agent: Option<Agent>,
    /// Workspace-wide text for every agent.
    #[serde(deserialize_with = "lenient::field")]
    pub workspace_context: String,
    /// Repositories that the agent may check out.
    #[serde(deserialize_with = "lenient::list")]
    pub repos: Vec<Repo>,
    /// The project, if any.
    #[serde(deserialize_with = "lenient::field")]
    pub project_id: String,
    /// The project's title.
    #[serde(deserialize_with = "lenient::field")]
    pub project_title: String,
    /// The project's description.
    #[serde(deserialize_with = "lenient::field")]
    pub project_description: String,
    /// Resources of the project.
    #[serde(deserialize_with = "lenient::list")]
    pub project_resources: Vec<ProjectResource>,
    /// Custom issue statuses, in catalogue order.
    #[serde(deserialize_with = "lenient::list")]
    pub issue_statuses: Vec<IssueStatus>,
    /// Other runs of the same agent that are in flight.
    #[serde(deserialize_with = "lenient::list")]
    pub active_sibling_runs: Vec<SiblingRun>,
    /// Owner of the runtime.
    #[serde(deserialize_with = "lenient::field")]
    pub requesting_user_name: String,
    /// What the owner says of themselves.
    #[serde(deserialize_with = "lenient::field")]
    pub requesting_user_profile_description: String,
    /// Who set this run off: `member` or `agent`; empty if nobody is named.
    #[serde(deserialize_with = "lenient::field")]
    pub initiator_type: String,
    /// Their id.
    #[serde(deserialize_with = "lenient::field")]
    pub initiator_id: String,
    /// Their name.
    #[serde(deserialize_with = "lenient::field")]
    pub initiator_name: String,
    /// Their address, members only.
    #[serde(deserialize_with = "lenient::field")]
    pub initiator_email: String,
    /// Apps that the agent finds as MCP servers.
    #[serde(deserialize_with = "lenient::list")]
    pub connected_apps: Vec<ConnectedApp>,
    /// The agent session to go on with.
    #[serde(deserialize_with = "lenient::field")]
    pub prior_session_id: String,
    /// The directory of that session.
    #[serde(deserialize_with = "lenient::field")]
    pub prior_work_dir: String,
    /// Whether the newest session was withheld, so that context may be missing.
    #[serde(deserialize_with = "lenient::field")]
    pub prior_session_resume_unavailable: bool,
    /// The comment that caused the run.
    #[serde(deserialize_with = "lenient::field")]
    pub trigger_comment_id: String,
    /// Root of its thread.
    #[serde(deserialize_with = "lenient::field")]
    pub trigger_thread_id: String,
    /// Its text.
    #[serde(deserialize_with = "lenient::field")]
    pub trigger_comment_content: String,
    /// `member` or `agent`.
    #[serde(deserialize_with = "lenient::field")]
    pub trigger_author_type: String,
    /// Name of the comment's author.
    #[serde(deserialize_with = "lenient::field")]
    pub trigger_author_name: String,
    /// Earlier comments that the server counts as delivered with this run.
    #[serde(deserialize_with = "lenient::list")]
    pub coalesced_comments: Vec<Comment>,
    /// How many comments came since `new_comments_since`.
    #[serde(deserialize_with = "lenient::field")]
    pub new_comment_count: u32,
    /// RFC 3339.
    #[serde(deserialize_with = "lenient::field")]
    pub new_comments_since: String,
    /// Instruction written by the assigner.
    #[serde(deserialize_with = "lenient::field")]
    pub handoff_note: String,
    /// Whether this is a squad coordinator's run.
    #[serde(deserialize_with = "lenient::field")]
    pub is_leader_task: bool,
    /// Whether `is_leader_task` is authoritative.
    #[serde(deserialize_with = "lenient::field")]
    pub leader_role_resolved: bool,
    /// The chat session; non-empty makes this a chat task.
    #[serde(deserialize_with = "lenient::field")]
    pub chat_session_id: String,
    /// The unanswered user input.
    #[serde(deserialize_with = "lenient::field")]
    pub chat_message: String,
    /// Files that came with it.
    #[serde(deserialize_with = "lenient::list")]
    pub chat_message_attachments: Vec<Attachment>,
    /// Messenger behind the chat; empty for the web.
    #[serde(deserialize_with = "lenient::field")]
    pub chat_channel_type: String,
    /// `group` or `p2p`.
    #[serde(deserialize_with = "lenient::field")]
    pub chat_type: String,
    /// Whether the chat is inside a thread.
    #[serde(deserialize_with = "lenient::field")]
    pub chat_in_thread: bool,
    /// Whether the server can deliver files to the channel.
    #[serde(deserialize_with = "lenient::field")]
    pub chat_channel_delivers_files: bool,
    /// Whether this is the agent's self-introduction.
    #[serde(deserialize_with = "lenient::field")]
    pub chat_intro: bool,
    /// A retired feature of old servers: complete with empty output, run nothing.
    #[serde(deserialize_with = "lenient::field")]
    pub regenerate_quick_actions_for: String,
    /// The autopilot run; non-empty makes this an autopilot task.
    #[serde(deserialize_with = "lenient::field")]
    pub autopilot_run_id: String,
    /// The autopilot.
    #[serde(deserialize_with = "lenient::field")]
    pub autopilot_id: String,
    /// Its title.
    #[serde(deserialize_with = "lenient::field")]
    pub autopilot_title: String,
    /// Its prompt.
    #[serde(deserialize_with = "lenient::field")]
    pub autopilot_description: String,
    /// `manual`, `schedule`, `webhook` or `api`.
    #[serde(deserialize_with = "lenient::field")]
    pub autopilot_source: String,
    /// What the trigger brought.
    #[serde(deserialize_with = "lenient::field")]
    pub autopilot_trigger_payload: Option<Box<RawValue>>,
    /// User text of which the agent makes one issue; non-empty makes this a quick-create task.
    #[serde(deserialize_with = "lenient::field")]
    pub quick_create_prompt: String,
    /// Priority for the new issue.
    #[serde(deserialize_with = "lenient::field")]
    pub quick_create_priority: String,
    /// Due date for the new issue.
    #[serde(deserialize_with = "lenient::field")]
    pub quick_create_due_date: String,
    /// Files for the new issue.
    #[serde(deserialize_with = "lenient::list")]
    pub quick_create_attachment_ids: Vec<String>,
    /// Default assignee squad of the new issue.
    #[serde(deserialize_with = "lenient::field")]
    pub squad_id: String,
    /// Its name.
    #[serde(deserialize_with = "lenient::field")]
    pub squad_name: String,
    /// Parent of the new issue.
    #[serde(deserialize_with = "lenient::field")]
    pub parent_issue_id: String,
    /// Its readable key.
    #[serde(deserialize_with = "lenient::field")]
    pub parent_issue_identifier: String,
}

/// Which shape of work a task is, by its discriminating fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `chat_session_id` is set.
    Chat,
    /// `autopilot_run_id` is set.
    Autopilot,
    /// `issue_id` and `trigger_comment_id` are set.
    Comment,
    /// `issue_id` is set.
    Assignment,
    /// `quick_create_prompt` is set.
    QuickCreate,
    /// None of them: run with what there is.
    Bare,
}

impl Task {
    /// The kind, by first match in the server's order.
    pub fn kind(&self) -> Kind {
        if !self.chat_session_id.is_empty() {
            Kind::Chat
        } else if !self.autopilot_run_id.is_empty() {
            Kind::Autopilot
        } else if !self.issue_id.is_empty() {
            if self.trigger_comment_id.is_empty() { Kind::Assignment } else { Kind::Comment }
        } else if self.quick_create_prompt.is_empty() {
            Kind::Bare
        } else {
            Kind::QuickCreate
        }
    }
}

/// The agent that a task is for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Agent {
    /// Agent id; may be empty.
    #[serde(deserialize_with = "lenient::field")]
    pub id: String,
    /// Its name.
    #[serde(deserialize_with = "lenient::field")]
    pub name: String,
    /// System-level instructions.
    #[serde(deserialize_with = "lenient::field")]
    pub instructions: String,
    /// Skills, inlined: from servers that were not told that we fetch them.
    #[serde(deserialize_with = "lenient::list")]
    pub skills: Vec<Skill>,
    /// Skills by name, to be fetched. If there are any, `skills` counts for nothing.
    #[serde(deserialize_with = "lenient::list")]
    pub skill_refs: Vec<SkillRef>,
    /// Extra environment; values are secret.
    #[serde(deserialize_with = "lenient::field")]
    pub custom_env: BTreeMap<String, Secret>,
    /// Extra command-line arguments.
    #[serde(deserialize_with = "lenient::list")]
    pub custom_args: Vec<String>,
    /// MCP servers as JSON; secret. `None` leaves the CLI's own inheritance alone.
    #[serde(deserialize_with = "mcp_config")]
    pub mcp_config: Option<Secret>,
    /// Model; empty for the default.
    #[serde(deserialize_with = "lenient::field")]
    pub model: String,
    /// Reasoning effort; empty for the default.
    #[serde(deserialize_with = "lenient::field")]
    pub thinking_level: String,
    /// Service tier; empty for the default.
    #[serde(deserialize_with = "lenient::field")]
    pub service_tier: String,
    /// Locally installed skills to hide.
    #[serde(deserialize_with = "lenient::list")]
    pub disabled_runtime_skills: Vec<DisabledSkill>,
}

fn mcp_config<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Secret>, D::Error> {
    let raw: Option<Box<RawValue>> = lenient::field(from)?;
    Ok(raw.filter(|raw| raw.get().trim() != "null").map(|raw| Secret::new(raw.get())))
}

/// A skill with its files.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Skill {
    /// Skill id; may be empty.
    #[serde(deserialize_with = "lenient::field")]
    pub id: String,
    /// Name, from which its folder's name is made.
    #[serde(deserialize_with = "lenient::field")]
    pub name: String,
    /// One line on what it is for.
    #[serde(deserialize_with = "lenient::field")]
    pub description: String,
    /// `SKILL.md`.
    #[serde(deserialize_with = "lenient::field")]
    pub content: String,
    /// Its other files.
    #[serde(deserialize_with = "lenient::list")]
    pub files: Vec<SkillFile>,
}

/// One file of a skill.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SkillFile {
    /// Relative path.
    #[serde(deserialize_with = "lenient::field")]
    pub path: String,
    /// Text.
    #[serde(deserialize_with = "lenient::field")]
    pub content: String,
}

macro_rules! records {
    ($($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(default)]
        pub struct $name {
            $($(#[$fdoc])* #[serde(deserialize_with = "lenient::field")] pub $field: String,)*
        }
    )*};
}

records! {
    /// A repository that may be checked out.
    Repo {
        /// Where from.
        url,
        /// What it is.
        description,
        /// Default branch or ref.
        r#ref,
    }
    /// A custom issue status.
    IssueStatus {
        /// Key for commands.
        key,
        /// Shown name.
        name,
        /// Built-in category.
        category,
        /// What it means.
        description,
    }
    /// Another run of the same agent.
    SiblingRun {
        /// Its task.
        task_id,
        /// Its issue.
        issue_id,
        /// Readable key of the issue.
        issue_identifier,
        /// Title of the issue.
        issue_title,
        /// State of the run.
        status,
        /// RFC 3339.
        created_at,
        /// RFC 3339; empty before it runs.
        started_at,
    }
    /// An app that the agent finds as an MCP server.
    ConnectedApp {
        /// Who provides it.
        provider,
        /// Name of the MCP server.
        server_name,
        /// Key of the toolkit.
        toolkit_slug,
        /// Shown name of the toolkit.
        toolkit_name,
    }
    /// A comment that came before the trigger.
    Comment {
        /// Its id.
        id,
        /// Root of its thread.
        thread_id,
        /// `member` or `agent`.
        author_type,
        /// Who wrote it.
        author_name,
        /// Its text.
        content,
        /// RFC 3339.
        created_at,
    }
    /// A file in a chat.
    Attachment {
        /// By which the agent fetches it.
        id,
        /// Its name.
        filename,
        /// Its MIME type.
        content_type,
    }
    /// A locally installed skill to hide.
    DisabledSkill {
        /// The runtime it is about.
        runtime_id,
        /// The provider it is about.
        provider,
        /// Where it is installed.
        root,
        /// Its folder's name.
        key,
        /// Its shown name.
        name,
        /// The plugin that brought it.
        plugin,
    }
}

/// Something that belongs to the project.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ProjectResource {
    /// Its id.
    #[serde(deserialize_with = "lenient::field")]
    pub id: String,
    /// `github_repo`, `local_directory` or another that is passed on as it is.
    #[serde(deserialize_with = "lenient::field")]
    pub resource_type: String,
    /// What it points to.
    #[serde(deserialize_with = "lenient::field")]
    pub resource_ref: Option<Box<RawValue>>,
    /// Shown name.
    #[serde(deserialize_with = "lenient::field")]
    pub label: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_types_of_optional_fields_are_as_good_as_absent() {
        let task: Task = serde_json::from_str(
            r#"{"id":"t","agent_id":7,"agent":{"id":"a","custom_env":{"A":"x"},"custom_args":["-v",3],"mcp_config":null},
                "repos":"no","coalesced_comments":[null,{"content":"c"}],"is_leader_task":"yes","unknown":{"a":[1]}}"#,
        )
        .expect("lenient");
        assert_eq!((task.id.as_str(), task.agent_id.as_str()), ("t", ""));
        let agent = task.agent.expect("an agent");
        assert_eq!(agent.custom_args, ["-v"]);
        assert_eq!(agent.custom_env["A"].expose(), "x");
        assert!(agent.mcp_config.is_none());
        assert!(task.repos.is_empty());
        assert_eq!(task.coalesced_comments.len(), 1);
        assert!(!task.is_leader_task);
    }

    #[test]
    fn a_null_agent_is_none() {
        let task: Task = serde_json::from_str(r#"{"id":"t","agent":null}"#).expect("lenient");
        assert!(task.agent.is_none());
    }

    #[test]
    fn debug_shows_no_secret() {
        let task: Task = serde_json::from_str(
            r#"{"auth_token":"mat_zzz","agent":{"custom_env":{"K":"zzz"},"mcp_config":{"mcpServers":{"zzz":{}}}}}"#,
        )
        .expect("lenient");
        assert!(!format!("{task:?}").contains("zzz"));
    }
}
