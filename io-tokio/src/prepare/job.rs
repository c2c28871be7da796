//! What the helper process is asked, and what it answers.

use super::beneath::{Dir, Identity};
use super::error::{At, PrepareError};
use super::reuse::Reuse;
use super::skill::Skill;
use crate::brief::{self, Facts};
use crate::wire::task::{Kind, Task};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::fmt;
use std::path::{Path, PathBuf};

/// Version of the request; the helper refuses another one. It runs the same binary, unless that was exchanged on disk.
const VERSION: u32 = 1;

/// The request to the helper process. It goes over a pipe as JSON and nowhere else: it has secrets in it.
#[derive(Serialize, Deserialize)]
pub struct Job {
    version: u32,
    pub(super) workspaces_root: PathBuf,
    pub(super) workspace_id: String,
    pub(super) task_id: String,
    /// Whether the daemon holds the claim, so that the helper only checks the owner.
    pub(super) claimed: bool,
    pub(super) reuse: Option<Prior>,
    pub(super) local_workdir: Option<PathBuf>,
    pub(super) provider: String,
    pub(super) agent_id: String,
    pub(super) issue_id: String,
    pub(super) chat_session_id: String,
    pub(super) pointer: String,
    pub(super) resources: Option<String>,
    pub(super) facts: Facts,
    pub(super) skills: Vec<Skill>,
    pub(super) hidden_skills: Vec<HiddenSkill>,
    /// The one secret in plain text: `Secret` cannot be serialised, on purpose, but the helper writes it to a 0600 file.
    pub(super) mcp_config: Option<String>,
    pub(super) home: Option<PathBuf>,
    pub(super) codex_home: Option<PathBuf>,
}

/// An earlier environment that is to be used again.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Prior {
    pub(super) workdir: PathBuf,
    pub(super) identity: Identity,
}

/// A locally installed skill that the agent is not to see.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct HiddenSkill {
    pub(super) key: String,
    pub(super) name: String,
    pub(super) plugin: String,
}

/// What the daemon adds to the task.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// Where all environments are; absolute.
    pub workspaces_root: &'a Path,
    /// The agent CLI family, such as `claude`.
    pub provider: &'a str,
    /// The earlier environment, if [`super::reuse::decide`] found one.
    pub reuse: Option<&'a Reuse>,
    /// A person's directory to work in instead of one of ours; absolute.
    pub local_workdir: Option<&'a Path>,
    /// The home directory that the agent is going to have.
    pub home: Option<&'a Path>,
    /// The shared home of codex, see [`super::shared_codex_home`].
    pub codex_home: Option<&'a Path>,
    /// The skills that the claim only names, fetched, in its order.
    pub fetched: &'a [Skill],
}

impl Job {
    /// Makes the request for a task whose env root is claimed.
    pub fn for_task(task: &Task, setup: &Setup<'_>) -> Self {
        let agent = task.agent.as_ref();
        let about_issue = matches!(task.kind(), Kind::Comment | Kind::Assignment);
        Self {
            version: VERSION,
            workspaces_root: setup.workspaces_root.to_owned(),
            workspace_id: task.workspace_id.clone(),
            task_id: task.id.clone(),
            claimed: true,
            reuse: setup
                .reuse
                .map(|reuse| Prior { workdir: reuse.workdir().to_owned(), identity: reuse.identity() }),
            local_workdir: setup.local_workdir.map(Path::to_owned),
            provider: setup.provider.to_owned(),
            agent_id: agent_id(task).to_owned(),
            issue_id: if about_issue { task.issue_id.clone() } else { String::new() },
            chat_session_id: task.chat_session_id.clone(),
            pointer: brief::pointer(task),
            resources: resources(task),
            facts: Facts::of(task),
            skills: match agent {
                Some(agent) if agent.skill_refs.is_empty() => agent.skills.iter().map(Skill::from).collect(),
                _ => setup.fetched.to_vec(),
            },
            hidden_skills: hidden_skills(task, setup.provider),
            mcp_config: agent
                .and_then(|agent| agent.mcp_config.as_ref())
                .map(|secret| secret.expose().to_owned()),
            home: setup.home.map(Path::to_owned),
            codex_home: setup.codex_home.map(Path::to_owned),
        }
    }

    /// The same, to be claimed by the helper itself for as long as it runs: for callers without a daemon.
    #[must_use]
    pub fn unclaimed(mut self) -> Self {
        self.claimed = false;
        self
    }

    /// Whether it is a chat in a person's directory: it does not wait for tasks that work there, and leaves what they put there alone.
    pub(super) fn is_guest(&self) -> bool {
        self.local_workdir.is_some() && !self.chat_session_id.is_empty()
    }

    /// The bytes for the pipe. [`PrepareError::Job`] if a path is no UTF-8.
    pub fn to_bytes(&self) -> Result<Vec<u8>, PrepareError> {
        serde_json::to_vec(self).map_err(|error| PrepareError::Job { reason: error.to_string() })
    }

    /// Reads a request. The reason of a [`PrepareError::Job`] quotes nothing of it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PrepareError> {
        let refuse = |reason: String| PrepareError::Job { reason };
        let job: Self = serde_json::from_slice(bytes).map_err(|error| {
            refuse(format!("not understood at line {} column {}", error.line(), error.column()))
        })?;
        if job.version != VERSION {
            return Err(refuse(format!(
                "version {} was sent, {VERSION} is understood; restart the daemon, its program was exchanged",
                job.version
            )));
        }
        if !job.workspaces_root.is_absolute() {
            return Err(refuse("the workspaces root is no absolute path".to_owned()));
        }
        Ok(job)
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("task_id", &self.task_id)
            .field("provider", &self.provider)
            .finish_non_exhaustive()
    }
}

/// The agent that a task is for: the one that came with it, else the one that its row names.
pub(super) fn agent_id(task: &Task) -> &str {
    task.agent.as_ref().map(|agent| agent.id.as_str()).filter(|id| !id.is_empty()).unwrap_or(&task.agent_id)
}

fn hidden_skills(task: &Task, provider: &str) -> Vec<HiddenSkill> {
    let Some(agent) = &task.agent else { return Vec::new() };
    agent
        .disabled_runtime_skills
        .iter()
        .filter(|skill| skill.runtime_id == task.runtime_id && skill.provider == provider)
        .map(|skill| HiddenSkill {
            key: skill.key.clone(),
            name: skill.name.clone(),
            plugin: skill.plugin.clone(),
        })
        .collect()
}

/// `.multica/project/resources.json`; its presence means that there is a project.
fn resources(task: &Task) -> Option<String> {
    #[derive(Serialize)]
    struct Listing<'a> {
        #[serde(skip_serializing_if = "str::is_empty")]
        project_id: &'a str,
        #[serde(skip_serializing_if = "str::is_empty")]
        project_title: &'a str,
        #[serde(skip_serializing_if = "str::is_empty")]
        project_description: &'a str,
        resources: Vec<Listed<'a>>,
    }
    #[derive(Serialize)]
    struct Listed<'a> {
        id: &'a str,
        resource_type: &'a str,
        resource_ref: &'a RawValue,
        #[serde(skip_serializing_if = "str::is_empty")]
        label: &'a str,
    }
    if task.project_id.is_empty() && task.project_resources.is_empty() {
        return None;
    }
    let empty = RawValue::from_string("{}".to_owned()).ok()?;
    let resources = task.project_resources.iter().map(|resource| Listed {
        id: &resource.id,
        resource_type: &resource.resource_type,
        resource_ref: resource.resource_ref.as_deref().filter(|raw| raw.get() != "null").unwrap_or(&empty),
        label: &resource.label,
    });
    let listing = Listing {
        project_id: &task.project_id,
        project_title: &task.project_title,
        project_description: &task.project_description,
        resources: resources.collect(),
    };
    serde_json::to_string_pretty(&listing).ok()
}

/// A prepared environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepared {
    /// The env root: the task's own, or the earlier one that is used again.
    pub root: PathBuf,
    /// Which directory that is.
    pub identity: Identity,
    /// Where the agent works.
    pub workdir: PathBuf,
    /// Which directory that is.
    pub workdir_identity: Identity,
    /// Whether an earlier environment is used again.
    pub reused: bool,
    /// Whether the work directory is a person's own.
    pub local_directory: bool,
    /// Whether others may be working there at the same time.
    #[serde(default)]
    pub shared_directory: bool,
    /// Value of `MULTICA_TASK_CONFIG_ROOT`.
    pub cli_config: PathBuf,
    /// Value of `CODEX_HOME`, for codex.
    pub codex_home: Option<PathBuf>,
    /// For `--settings` of claude, if skills are to be hidden.
    pub claude_settings: Option<PathBuf>,
    /// For `--mcp-config` of claude, codebuddy and qwen, if the agent has MCP servers. Secret; removed by
    /// [`super::seal::unwind`].
    pub mcp_config: Option<PathBuf>,
    /// The brief, which is also in the work directory if the provider reads it there.
    pub brief: String,
    /// What did not work and was not needed, for the log.
    pub warnings: Vec<String>,
}

impl Prepared {
    /// Checks, after the helper is gone, that both directories are there and are the ones it prepared.
    pub fn verify(&self) -> Result<(), PrepareError> {
        for (path, identity) in [(&self.root, self.identity), (&self.workdir, self.workdir_identity)] {
            let now =
                Dir::open(path).and_then(|dir| dir.identity()).at("find the prepared directory", path)?;
            if now != identity {
                return Err(PrepareError::Changed { path: path.clone() });
            }
        }
        Ok(())
    }
}

/// The answer of the helper process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reply {
    /// It is prepared.
    Prepared(Prepared),
    /// It is not. The text is for readers that do not know the kind.
    Error {
        /// The error with its kind.
        error: Box<RawValue>,
        /// What it says.
        text: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup() -> Setup<'static> {
        Setup {
            workspaces_root: Path::new("/w"),
            provider: "claude",
            reuse: None,
            local_workdir: None,
            home: None,
            codex_home: None,
            fetched: &[],
        }
    }

    #[test]
    fn bug_48_a_request_prints_no_secret_and_its_errors_quote_none() {
        let task: Task =
            serde_json::from_str(r#"{"id":"t","workspace_id":"w","auth_token":"mat_zzz","agent":{"mcp_config":{"zzz":1},"custom_env":{"K":"zzz"}}}"#)
                .expect("a task");
        let job = Job::for_task(&task, &setup());
        assert!(!format!("{job:?}").contains("zzz"));
        let bytes = job.to_bytes().expect("bytes");
        let text = String::from_utf8(bytes.clone()).expect("text");
        assert!(
            text.contains("zzz") && !text.contains("mat_zzz"),
            "MCP config yes, token and environment no"
        );
        let error = Job::from_bytes(&bytes[..bytes.len() - 1]).expect_err("cut");
        assert!(!error.to_string().contains("zzz"));
    }

    #[test]
    fn a_request_of_another_version_is_refused_and_unknown_fields_are_not() {
        let job = Job::for_task(&Task::default(), &setup());
        let text = String::from_utf8(job.to_bytes().expect("bytes")).expect("text");
        let newer = text.replacen("{\"version\":1", "{\"extra\":[],\"version\":1", 1);
        assert!(Job::from_bytes(newer.as_bytes()).is_ok());
        let other = text.replacen("\"version\":1", "\"version\":2", 1);
        assert!(
            Job::from_bytes(other.as_bytes())
                .expect_err("refused")
                .to_string()
                .contains("restart the daemon")
        );
    }

    #[test]
    fn resources_are_an_array_and_references_stay_as_they_came() {
        let task: Task = serde_json::from_str(
            r#"{"project_id":"p","project_resources":[{"id":"r","resource_type":"github_repo","resource_ref":{"url":"u"},"label":"l"},{"id":"q"}]}"#,
        )
        .expect("a task");
        let text = resources(&task).expect("a project");
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value["resources"][0]["resource_ref"]["url"], "u");
        assert_eq!(value["resources"][1]["resource_ref"], serde_json::json!({}));
        assert!(text.starts_with("{\n  \"project_id\": \"p\""));
        assert_eq!(resources(&Task::default()), None);
    }

    #[test]
    fn only_hidden_skills_of_this_runtime_and_provider_count() {
        let task: Task = serde_json::from_str(
            r#"{"runtime_id":"r","agent":{"disabled_runtime_skills":[{"runtime_id":"r","provider":"claude","key":"a"},
                {"runtime_id":"x","provider":"claude","key":"b"},{"runtime_id":"r","provider":"codex","key":"c"}]}}"#,
        )
        .expect("a task");
        let keys: Vec<_> = hidden_skills(&task, "claude").into_iter().map(|skill| skill.key).collect();
        assert_eq!(keys, ["a"]);
    }
}
