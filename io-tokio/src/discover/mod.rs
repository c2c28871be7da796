//! Finding the agent CLIs of this machine: where they are, which version they are, and why one cannot be used.

pub(crate) mod capture;
pub(crate) mod dialogue;
mod file_mark;
mod heal;
mod login_shell;
mod lookup;
mod not_executable;
mod places;
mod probe;
mod prober;
mod probes;
pub mod registry;
mod standing;
mod version;

pub use not_executable::Repair;
pub use probe::{PROBES_AT_ONCE, Problem};
pub use prober::{LookError, PATIENCE, Prober};
pub use registry::{AGENT_CLIS, AgentCli, agent_cli};
pub use standing::fingerprint;
pub use version::{MAX_VERSION_LINE, version, version_line};

use crate::config::{AgentSettings, Env};
use longshore_core::id::Provider;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What to look for and where.
#[derive(Clone, Debug)]
pub struct Search {
    /// The agent CLIs to look for.
    pub clis: Vec<&'static AgentCli>,
    /// The settings of agent CLIs, of which the command counts here.
    pub settings: BTreeMap<&'static str, AgentSettings>,
    /// The environment that gives `PATH` and `SHELL` and that programs are started with.
    pub env: Env,
    /// The user's home directory.
    pub home: PathBuf,
    /// Where relative commands start.
    pub cwd: PathBuf,
    /// Whether the user's login shell may be asked for commands that are not on `PATH`.
    pub login_shell: bool,
}

/// An agent CLI that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundAgent {
    /// The entry in the table.
    pub cli: &'static AgentCli,
    /// Its key, as the core names it.
    pub provider: Provider,
    /// The absolute path of its program.
    pub path: PathBuf,
    /// What it says its version is, such as `2.1.197 (Claude Code)`; at most [`MAX_VERSION_LINE`] bytes.
    pub version_line: String,
}

impl FoundAgent {
    /// The name of its runtime on this machine: `Claude (buildbox)`.
    pub fn runtime_name(&self, device_name: &str) -> String {
        format!("{} ({device_name})", self.cli.display)
    }
}

/// An agent CLI that is there, or was asked for, and cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedAgent {
    /// The entry in the table.
    pub cli: &'static AgentCli,
    /// The program, where there is one.
    pub path: Option<PathBuf>,
    /// Why; its text tells a person what to do.
    pub problem: Problem,
}

/// What was found, in the order of the search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Discovery {
    /// What can be used.
    pub agents: Vec<FoundAgent>,
    /// What cannot, or not yet. An agent CLI that is simply not installed is not in it.
    pub skipped: Vec<SkippedAgent>,
}

impl Discovery {
    /// Whether there is nothing that can be used, nor anything that may turn out to be usable.
    pub fn is_in_vain(&self) -> bool {
        self.agents.is_empty() && !self.skipped.iter().any(|skipped| skipped.problem == Problem::Slow)
    }
}

#[cfg(test)]
mod tests;
