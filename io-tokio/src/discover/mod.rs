//! Finding the agent CLIs of this machine: where they are, which version they are, and why one cannot be used.

pub(crate) mod capture;
pub(crate) mod dialogue;
mod login_shell;
mod lookup;
mod not_executable;
mod probe;
pub mod registry;
mod version;

pub use not_executable::Repair;
pub use probe::{PROBES_AT_ONCE, Problem};
pub use registry::{AGENT_CLIS, AgentCli, agent_cli};
pub use version::{MAX_VERSION_LINE, version, version_line};

use crate::config::{AgentSettings, Env};
use futures_util::{StreamExt, stream};
use longshore_core::id::Provider;
use lookup::Lookup;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// When the login shell is asked for commands that are not on `PATH`. It takes up to 3 s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginShell {
    /// Only if `PATH` has no agent CLI at all: for a fast start.
    IfNothingFound,
    /// For each one that is not on `PATH`: for later looks.
    ForMissing,
    /// Not at all.
    Never,
}

/// What to look for and where.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    /// The agent CLIs to look for; those that the daemon can talk to.
    pub clis: &'a [&'static AgentCli],
    /// The settings of agent CLIs, of which the command counts here.
    pub settings: &'a BTreeMap<&'static str, AgentSettings>,
    /// The environment that gives `PATH` and `SHELL` and that programs are started with.
    pub env: &'a Env,
    /// The user's home directory.
    pub home: &'a Path,
    /// Where relative commands start.
    pub cwd: &'a Path,
    /// Whether the login shell is asked.
    pub login_shell: LoginShell,
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
#[derive(Debug)]
pub struct SkippedAgent {
    /// The entry in the table.
    pub cli: &'static AgentCli,
    /// The program, where there is one.
    pub path: Option<PathBuf>,
    /// Why; its text tells a person what to do.
    pub problem: Problem,
}

/// What was found, in the order of the search.
#[derive(Debug, Default)]
pub struct Discovery {
    /// What can be used.
    pub agents: Vec<FoundAgent>,
    /// What cannot. An agent CLI that is simply not installed is not in it.
    pub skipped: Vec<SkippedAgent>,
}

impl Search<'_> {
    /// Looks for the programs and asks each one for its version, [`PROBES_AT_ONCE`] at a time. Takes about as long
    /// as the slowest of them; never fails.
    pub async fn run(&self) -> Discovery {
        let lookup = Lookup::new(self.env, self.home, self.cwd);
        let mut places: BTreeMap<usize, PathBuf> = BTreeMap::new();
        let mut missing: BTreeMap<usize, &str> = BTreeMap::new();
        let mut done = Vec::new();
        for (i, cli) in self.clis.iter().enumerate() {
            let configured = self.configured(cli);
            let place = match configured {
                Some(command) => lookup.find(command),
                None => lookup.find(OsStr::new(cli.command)).or_else(|| in_app_bundle(cli, self.home)),
            };
            if let Some(path) = place {
                places.insert(i, path);
            } else if let Some(command) = configured {
                let problem = Problem::Missing { command: command.clone(), variable: cli.path_var };
                done.push((i, Err(SkippedAgent { cli, path: None, problem })));
            } else {
                missing.insert(i, cli.command);
            }
        }
        let ask = match self.login_shell {
            LoginShell::IfNothingFound => places.is_empty(),
            LoginShell::ForMissing => true,
            LoginShell::Never => false,
        };
        if ask {
            let names: Vec<&str> = missing.values().copied().collect();
            let found = login_shell::find(self.env, &lookup, &names).await;
            places.extend(missing.iter().filter_map(|(i, name)| Some((*i, found.get(*name)?.clone()))));
        }
        let probes = places.into_iter().map(|(i, path)| {
            let cli = self.clis[i];
            async move { (i, probe::agent(cli, path, self.env).await) }
        });
        done.extend(stream::iter(probes).buffer_unordered(PROBES_AT_ONCE).collect::<Vec<_>>().await);
        done.sort_by_key(|(i, _)| *i);
        let mut all = Discovery::default();
        for (_, outcome) in done {
            match outcome {
                Ok(agent) => all.agents.push(agent),
                Err(skipped) => all.skipped.push(skipped),
            }
        }
        all
    }

    fn configured(&self, cli: &AgentCli) -> Option<&OsString> {
        self.settings.get(cli.provider)?.command.as_ref()
    }
}

/// On macOS the Codex CLI also comes inside of apps.
fn in_app_bundle(cli: &AgentCli, home: &Path) -> Option<PathBuf> {
    if !cfg!(target_os = "macos") || cli.provider != "codex" {
        return None;
    }
    let roots = [PathBuf::from("/Applications"), home.join("Applications")];
    let apps = roots.iter().flat_map(|root| ["ChatGPT.app", "Codex.app"].map(|app| root.join(app)));
    apps.map(|app| app.join("Contents/Resources/codex")).find(|path| lookup::is_executable(path))
}

#[cfg(test)]
mod tests;
