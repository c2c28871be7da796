//! What a run asks of an agent, and the arguments that come of it.

use serde::{Deserialize, Serialize};

/// What a run asks of an agent CLI. An empty text is "not set".
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// The arguments of a custom runtime, before all others.
    pub launch_prefix: Vec<String>,
    /// The model; the CLI's own default if not set.
    pub model: String,
    /// How hard the model is to think.
    pub thinking_level: String,
    /// How many turns the agent may take; 0 for no limit.
    pub max_turns: u32,
    /// The session to go on with.
    pub resume_session: String,
    /// A file with the MCP servers that the agent is to have, and no others; not set: what the user configured.
    pub mcp_config_path: String,
    /// A settings file for this task.
    pub settings_path: String,
    /// The daemon's arguments for every run of this agent.
    pub extra_args: Vec<String>,
    /// The agent's own arguments, from the server.
    pub custom_args: Vec<String>,
}

/// Arguments for an agent CLI, without the program itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Args {
    /// One argument each, none with a NUL in it.
    pub args: Vec<String>,
    /// What was left out and why; values are not repeated in it.
    pub warnings: Vec<String>,
}

impl Args {
    /// Adds `fixed`.
    pub fn fixed(&mut self, fixed: &[&str]) {
        self.args.extend(fixed.iter().map(|arg| (*arg).to_owned()));
    }

    /// Adds `flag` and its value, if the value is set. One with a NUL in it cannot be passed and is left out.
    pub fn value(&mut self, flag: &str, value: &str) {
        if value.contains('\0') {
            self.warnings.push(format!("{flag} was left out: its value has a NUL character in it"));
        } else if !value.is_empty() {
            self.args.extend([flag.to_owned(), value.to_owned()]);
        }
    }
}
