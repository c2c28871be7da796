//! What the daemon of tomorrow has to know of a claim, beside what its core kept: which task, where on this machine, in which words.

use crate::book::{Disk, Ending, Entry};
use crate::driver::LocalDirectory;
use crate::prepare::Prepared;
use crate::wire::task::Task;
use longshore_core::effect::EndReason;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What is in the place of a text that was not kept, where only it matters that there was one.
const NOT_KEPT: &str = "(not kept)";

/// A task without what only its launch needs: no prompt, no credential, no environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskFacts {
    id: String,
    workspace_id: String,
    runtime_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    issue_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    chat_session_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    autopilot_run_id: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    quick_create: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    prior_session_id: String,
}

impl TaskFacts {
    /// What is kept of a task.
    pub fn of(task: &Task) -> Self {
        Self {
            id: task.id.clone(),
            workspace_id: task.workspace_id.clone(),
            runtime_id: task.runtime_id.clone(),
            issue_id: task.issue_id.clone(),
            chat_session_id: task.chat_session_id.clone(),
            autopilot_run_id: task.autopilot_run_id.clone(),
            quick_create: !task.quick_create_prompt.is_empty(),
            prior_session_id: task.prior_session_id.clone(),
        }
    }

    /// The task, with nothing in the fields that were not kept.
    pub fn task(&self) -> Task {
        let facts = self.clone();
        Task {
            id: facts.id,
            workspace_id: facts.workspace_id,
            runtime_id: facts.runtime_id,
            issue_id: facts.issue_id,
            chat_session_id: facts.chat_session_id,
            autopilot_run_id: facts.autopilot_run_id,
            quick_create_prompt: if facts.quick_create { NOT_KEPT.to_owned() } else { String::new() },
            prior_session_id: facts.prior_session_id,
            ..Task::default()
        }
    }

    /// The task's id.
    pub fn id(&self) -> &str {
        &self.id
    }
}

/// What a claim holds on this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Place {
    /// The person's directory that it works in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local: Option<LocalDirectory>,
    /// Its directory, once that is prepared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prepared: Option<Prepared>,
    /// Its private temp dir.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temp: Option<PathBuf>,
}

impl Place {
    /// What it holds now.
    pub fn of(disk: &Disk) -> Self {
        // The brief is for the launch, and as long as a skill library.
        let brief = String::new;
        let prepared =
            disk.prepared.clone().map(|it| Prepared { brief: brief(), warnings: Vec::new(), ..it });
        let temp = disk.temp.as_ref().map(|temp| temp.path().to_owned());
        Self { local: disk.local.clone(), prepared, temp }
    }
}

/// What is said in a report, as far as it does not come from the agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Words {
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retired_session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trouble: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<EndReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<String>,
}

impl Words {
    /// What would be said now.
    pub fn of(ending: &Ending) -> Self {
        Self {
            session: ending.session.clone(),
            retired_session: ending.retired_session.clone(),
            trouble: ending.trouble.clone(),
            why: ending.why,
            hint: ending.hint.clone(),
            refusal: ending.refusal.clone(),
        }
    }

    /// Gives a claim that was taken over its words back.
    pub fn give(self, entry: &Entry) {
        let mut ending = entry.ending();
        ending.session = self.session;
        ending.retired_session = self.retired_session;
        ending.trouble = self.trouble;
        ending.why = self.why;
        ending.hint = self.hint;
        ending.refusal = self.refusal;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prepare::seal::Meta;
    use jiff::Timestamp;

    const TASK: &str = r#"{"id":"t","workspace_id":"w","runtime_id":"r","issue_id":"i","auth_token":"mat_secret",
        "prior_session_id":"s","agent":{"id":"a","instructions":"a long story"}}"#;

    #[test]
    fn nothing_secret_is_kept_of_a_task_and_what_is_kept_comes_back() {
        let task: Task = serde_json::from_str(TASK).expect("a task");
        let text = serde_json::to_string(&TaskFacts::of(&task)).expect("plain data");
        assert!(!text.contains("mat_secret") && !text.contains("story"), "{text}");
        let facts: TaskFacts = serde_json::from_str(&text).expect("it reads what it wrote");
        assert_eq!(facts.id(), "t");
        let back = facts.task();
        assert_eq!((back.prior_session_id.as_str(), back.runtime_id.as_str()), ("s", "r"));
        let meta = |task: &Task| Meta::of(task, false, Timestamp::UNIX_EPOCH);
        assert_eq!(meta(&back), meta(&task));
    }

    #[test]
    fn the_collector_gets_the_same_record_for_every_kind_of_task() {
        for field in ["chat_session_id", "autopilot_run_id", "quick_create_prompt"] {
            let text = format!(r#"{{"id":"t","workspace_id":"w","{field}":"x"}}"#);
            let task: Task = serde_json::from_str(&text).expect("a task");
            let meta =
                |task: &Task| Meta::of(task, true, Timestamp::UNIX_EPOCH).expect("it is about something");
            assert_eq!(meta(&TaskFacts::of(&task).task()), meta(&task), "{field}");
        }
    }
}
