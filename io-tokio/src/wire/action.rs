//! Results of what the server asks for in its replies to heartbeats.

use super::json;
use serde::{Deserialize, Serialize};

/// What came of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ActionReport {
    /// The models of an agent CLI.
    Models(ModelsReport),
    /// The skills on this machine.
    Skills(SkillsReport),
    /// One of them.
    Skill(SkillReport),
    /// None of these: it could not be done.
    Failed(Failure),
}

impl ActionReport {
    /// It could not be done, and why: for a person to read.
    pub fn failed(why: impl Into<String>) -> Self {
        Self::Failed(Failure { status: Failed::Failed, error: why.into() })
    }
}

/// The one word of a report that went well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Completed {
    /// It did.
    #[default]
    Completed,
}

/// The one word of a report that did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Failed {
    /// It did not.
    Failed,
}

/// Why something could not be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    status: Failed,
    error: String,
}

/// The models of an agent CLI.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ModelsReport {
    /// It went well.
    pub status: Completed,
    /// All of them.
    pub models: Vec<Model>,
    /// Whether a model can be chosen for an agent at all.
    pub supported: bool,
    /// Whether this is a list for want of a better one, as the agent CLI did not say.
    pub fallback: bool,
}

/// A model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Model {
    /// What an agent is configured with.
    pub id: String,
    /// What people read.
    pub label: String,
    /// Whose it is, if that is known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// Whether it is the one that is used if none is chosen.
    #[serde(skip_serializing_if = "json::is_false")]
    pub default: bool,
    /// How hard it can be told to think.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Thinking>,
    /// How fast it can be told to be.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub service_tiers: Vec<ServiceTier>,
}

/// How hard a model can be told to think.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Thinking {
    /// From little to much.
    pub supported_levels: Vec<Level>,
    /// The one that is used if none is chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_level: Option<String>,
}

/// One level.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Level {
    /// What an agent is configured with.
    pub value: String,
    /// What people read.
    pub label: String,
    /// More of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// How fast a model can be told to be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceTier {
    /// What an agent is configured with.
    pub id: String,
    /// What people read.
    #[serde(default)]
    pub name: String,
    /// More of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// The skills on this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SkillsReport {
    /// It went well.
    pub status: Completed,
    /// All of them.
    pub skills: Vec<SkillSummary>,
    /// Whether the agent CLI has skills of its user at all.
    pub supported: bool,
    /// The MCP servers that its user has configured.
    pub mcp_servers: Vec<McpServer>,
    /// Whether it is known where those are configured.
    pub mcp_supported: bool,
}

/// A skill.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SkillSummary {
    /// What an import names it by.
    pub key: String,
    /// What it calls itself.
    pub name: String,
    /// What it is for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Where it is, for people.
    pub source_path: String,
    /// The agent CLI.
    pub provider: String,
    /// Which kind of place it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<SkillRoot>,
    /// The plugin that it is part of.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub plugin: String,
    /// Whether a task can be run without it.
    pub can_disable: bool,
    /// How many files it has, `SKILL.md` included.
    pub file_count: usize,
}

/// Which kind of place a skill is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SkillRoot {
    /// The agent CLI's own.
    Provider,
    /// The one that several agent CLIs read.
    Universal,
    /// A plugin of the agent CLI.
    Plugin,
}

/// An MCP server, without anything that may be secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct McpServer {
    /// Its name.
    pub name: String,
    /// How it is spoken to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<&'static str>,
    /// Where it is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Whether it is in use.
    pub enabled: bool,
}

/// A skill in full.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SkillReport {
    /// It went well.
    pub status: Completed,
    /// The skill.
    pub skill: SkillBundle,
}

/// A skill in full.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SkillBundle {
    /// What it calls itself.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Its `SKILL.md`.
    pub content: String,
    /// Where it was, for people.
    pub source_path: String,
    /// The agent CLI.
    pub provider: String,
    /// Its other files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<SkillFile>,
}

/// A file of a skill.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SkillFile {
    /// Where it is below the skill's folder.
    pub path: String,
    /// What is in it.
    pub content: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json, to_value};

    #[test]
    fn reports_are_what_the_wire_says() {
        let model = Model {
            id: "m".into(),
            label: "M".into(),
            default: true,
            thinking: Some(Thinking {
                supported_levels: vec![Level { value: "low".into(), label: "Low".into(), description: None }],
                default_level: Some("low".into()),
            }),
            ..Model::default()
        };
        let models = ModelsReport { models: vec![model], supported: true, ..ModelsReport::default() };
        let cases: Vec<(ActionReport, Value)> = vec![
            (
                ActionReport::Models(models),
                json!({ "status": "completed", "supported": true, "fallback": false, "models": [{ "id": "m", "label": "M", "default": true,
                    "thinking": { "supported_levels": [{ "value": "low", "label": "Low" }], "default_level": "low" } }] }),
            ),
            (
                ActionReport::Skills(SkillsReport {
                    mcp_servers: vec![McpServer {
                        name: "fs".into(),
                        transport: Some("stdio"),
                        source: None,
                        enabled: true,
                    }],
                    mcp_supported: true,
                    ..SkillsReport::default()
                }),
                json!({ "status": "completed", "skills": [], "supported": false, "mcp_supported": true,
                    "mcp_servers": [{ "name": "fs", "transport": "stdio", "enabled": true }] }),
            ),
            (
                ActionReport::Skill(SkillReport {
                    skill: SkillBundle { name: "n".into(), ..SkillBundle::default() },
                    ..SkillReport::default()
                }),
                json!({ "status": "completed", "skill": { "name": "n", "description": "", "content": "", "source_path": "", "provider": "" } }),
            ),
            (ActionReport::failed("why"), json!({ "status": "failed", "error": "why" })),
        ];
        for (report, wire) in cases {
            assert_eq!(to_value(&report).expect("JSON"), wire);
        }
    }
}
