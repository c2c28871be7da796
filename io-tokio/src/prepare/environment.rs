//! The complete environment of an agent.
//!
//! Three sources with a rule each (bug 47): what the operator gave the daemon passes, minus marks of an outer session,
//! variables that select a git repository (bug 45) and everything of the daemon's own; what the server gives for the
//! agent passes, minus names that decide identity or load code, in any letter case; what the daemon sets always wins.

use super::job::{Prepared, agent_id};
use crate::secret::Secret;
use crate::wire::task::{Kind, Task};
use longshore_core::id::SlotIndex;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::Path;

/// What an agent's credential begins with. The daemon's own begins otherwise and is never given out (INV-88).
const TASK_TOKEN: &str = "mat_";
/// `PATH` where the daemon itself has none.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Names of the daemon's family: never inherited, never taken from the server.
const OURS: [&str; 2] = ["MULTICA_", "LONGSHORE_"];
/// Marks of an outer claude session, which would make an inner one refuse or report to it. Other `CLAUDE_CODE_…`
/// variables are settings of the operator and pass.
const SESSION: [&str; 5] = [
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_EXECPATH",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_SSE_PORT",
];
/// What git sets for its hooks: it wins over the working directory. Setting it to nothing does not help.
const GIT_SELECTORS: [&str; 15] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];
/// Names that the daemon decides alone.
const RESERVED: [&str; 16] = [
    "CODEX_HOME",
    "CURSOR_DATA_DIR",
    "CURSOR_MCP_AUTH_SOURCE",
    "HOME",
    "OLDPWD",
    "OPENCLAW_CONFIG_PATH",
    "OPENCLAW_INCLUDE_ROOTS",
    "PATH",
    "PWD",
    "REASONIX_STATE_HOME",
    "SHELL",
    "TEMP",
    "TERM",
    "TMP",
    "TMPDIR",
    "USER",
];
/// Names that make a loader, a runtime or a shell run code, or take libraries from elsewhere.
const CODE_LOADING: [&str; 42] = [
    "BASHOPTS",
    "BASH_ENV",
    "CDPATH",
    "CLASSPATH",
    "DOTNET_STARTUP_HOOKS",
    "ENV",
    "GCONV_PATH",
    "GIT_ASKPASS",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_EDITOR",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_TEMPLATE_DIR",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LUA_INIT",
    "NODE_OPTIONS",
    "NODE_PATH",
    "OPENSSL_CONF",
    "PERL5DB",
    "PERL5LIB",
    "PERL5OPT",
    "PERLLIB",
    "PROMPT_COMMAND",
    "PS4",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RUBYLIB",
    "RUBYOPT",
    "SHELLOPTS",
    "SSH_ASKPASS",
    "ZDOTDIR",
    "_JAVA_OPTIONS",
];
/// Beginnings of such names.
const CODE_LOADING_PREFIXES: [&str; 5] =
    ["LD_", "DYLD_", "BASH_FUNC_", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"];

/// Why an agent has no environment and is not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentError {
    /// There is no credential for the agent.
    #[error("the task came without a token for its agent; it is not started with another one")]
    NoToken,
    /// The credential is not one for an agent.
    #[error(
        "the task's token is not one for an agent (it must begin with \"mat_\"); it is not started with it"
    )]
    NotATaskToken,
}

/// What the environment is made of.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'a> {
    /// The task.
    pub task: &'a Task,
    /// Its agent CLI family.
    pub provider: &'a str,
    /// Its directories.
    pub prepared: &'a Prepared,
    /// Its private temporary directory.
    pub temp_dir: &'a Path,
    /// Where all environments are.
    pub workspaces_root: &'a Path,
    /// Base URL of the server over HTTP.
    pub server_url: &'a str,
    /// The port that the daemon's local HTTP surface is really bound to.
    pub daemon_port: u16,
    /// The task's slot.
    pub slot: SlotIndex,
    /// Folder of the `multica` command, where the machine has it.
    pub cli_dir: Option<&'a Path>,
    /// Whether the operator lets the server give names that load code.
    pub allow_dangerous: bool,
}

/// The environment of one agent. It prints names and no values, and cannot be serialised.
#[derive(Clone, Default)]
pub struct Environment {
    vars: BTreeMap<OsString, OsString>,
    /// Names that were given for the agent and do not reach it, in order; no values. Names that cannot be shown are
    /// described.
    pub dropped: Vec<String>,
    /// What else is to be logged.
    pub warnings: Vec<String>,
}

impl Environment {
    /// All variables, in order of name, for a child that starts with a cleared environment.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.vars.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// One of them.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.vars.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// Sets one more, for what a provider's codec needs.
    pub fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.vars.insert(name.into(), value.into());
    }

    /// One line for the log if names were dropped: names only.
    pub fn warning(&self) -> Option<String> {
        if self.dropped.is_empty() {
            return None;
        }
        Some(format!("the agent's environment variables {} are not passed on", self.dropped.join(", ")))
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.vars.keys()).finish()
    }
}

/// Builds the environment from the daemon's own, as in `std::env::vars_os()`, and the sources.
pub fn build(
    inherited: impl IntoIterator<Item = (OsString, OsString)>,
    sources: &Sources<'_>,
) -> Result<Environment, EnvironmentError> {
    let token = sources.task.auth_token.expose();
    if token.is_empty() {
        return Err(EnvironmentError::NoToken);
    }
    if !token.starts_with(TASK_TOKEN) {
        return Err(EnvironmentError::NotATaskToken);
    }
    let mut environment = Environment::default();
    environment.vars.extend(inherited.into_iter().filter(|(name, _)| passes_on(name)));
    let inherited_path = environment.vars.get(OsStr::new("PATH")).map(OsString::as_os_str);
    let path = path(inherited_path, sources.cli_dir, &mut environment.warnings);
    if let Some(agent) = &sources.task.agent {
        given(&mut environment, &agent.custom_env, sources.allow_dangerous);
    }
    environment.set("PATH", path);
    set_ours(&mut environment, sources);
    Ok(environment)
}

pub(crate) fn passes_on(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return true };
    let upper = name.to_ascii_uppercase();
    let is_ours = OURS.iter().any(|prefix| upper.starts_with(prefix));
    let is_session = SESSION.contains(&upper.as_str()) || upper.starts_with("CLAUDECODE_");
    !is_ours && !is_session && !GIT_SELECTORS.contains(&name) && name != "OLDPWD"
}

fn given(environment: &mut Environment, custom: &BTreeMap<String, Secret>, allow_dangerous: bool) {
    for (name, value) in custom {
        let upper = name.to_ascii_uppercase();
        let is_name = !name.is_empty() && !name.chars().any(|c| c == '=' || c.is_control());
        let is_reserved = RESERVED.contains(&upper.as_str())
            || SESSION.contains(&upper.as_str())
            || upper.starts_with("CLAUDECODE_")
            || OURS.iter().any(|prefix| upper.starts_with(prefix));
        let loads_code = CODE_LOADING.contains(&upper.as_str())
            || GIT_SELECTORS.contains(&upper.as_str())
            || CODE_LOADING_PREFIXES.iter().any(|prefix| upper.starts_with(prefix));
        if !is_name {
            environment.dropped.push("(a name that is none)".to_owned());
        } else if is_reserved || value.expose().contains('\0') || (loads_code && !allow_dangerous) {
            environment.dropped.push(name.clone());
        } else {
            environment.set(name, value.expose());
        }
    }
}

/// The search path with the folder of the `multica` command first.
fn path(inherited: Option<&OsStr>, cli_dir: Option<&Path>, warnings: &mut Vec<String>) -> OsString {
    let inherited = inherited.filter(|path| !path.is_empty()).unwrap_or(OsStr::new(DEFAULT_PATH)).to_owned();
    let Some(dir) = cli_dir else { return inherited };
    if dir.as_os_str().to_string_lossy().contains(':') {
        warnings.push(format!(
            "{} cannot be in PATH because of its colon; agents may not find multica",
            dir.display()
        ));
        return inherited;
    }
    let mut path = dir.as_os_str().to_owned();
    path.push(":");
    path.push(inherited);
    path
}

fn set_ours(environment: &mut Environment, sources: &Sources<'_>) {
    let (task, prepared) = (sources.task, sources.prepared);
    environment.set("MULTICA_TOKEN", task.auth_token.expose());
    environment.set("MULTICA_SERVER_URL", sources.server_url);
    environment.set("MULTICA_DAEMON_PORT", sources.daemon_port.to_string());
    let name = task.agent.as_ref().map(|agent| agent.name.as_str()).filter(|name| !name.is_empty());
    for (key, value) in [
        ("MULTICA_WORKSPACE_ID", task.workspace_id.as_str()),
        ("MULTICA_AGENT_ID", agent_id(task)),
        ("MULTICA_AGENT_NAME", name.unwrap_or("agent")),
        ("MULTICA_TASK_ID", task.id.as_str()),
    ] {
        // Nothing can carry a NUL; a process with one in its environment would not start at all.
        environment.set(key, value.replace('\0', ""));
    }
    environment.set("MULTICA_TASK_SLOT", sources.slot.0.to_string());
    environment.set("MULTICA_TASK_CONFIG_ROOT", prepared.cli_config.as_os_str());
    environment.set("MULTICA_TASK_WORKSPACES_ROOT", sources.workspaces_root.as_os_str());
    for name in ["TMPDIR", "TMP", "TEMP"] {
        environment.set(name, sources.temp_dir.as_os_str());
    }
    environment.set("PWD", prepared.workdir.as_os_str());
    if let Some(home) = &prepared.codex_home {
        environment.set("CODEX_HOME", home.as_os_str());
    }
    if sources.provider == "codex" && cfg!(any(target_os = "linux", windows)) {
        environment.set("MULTICA_REPO_CHECKOUT_MODE", "isolated");
    }
    match task.kind() {
        Kind::Autopilot => {
            environment.set("MULTICA_AUTOPILOT_RUN_ID", task.autopilot_run_id.replace('\0', ""));
            environment.set("MULTICA_AUTOPILOT_ID", task.autopilot_id.replace('\0', ""));
        }
        Kind::QuickCreate => {
            environment.set("MULTICA_QUICK_CREATE_TASK_ID", task.id.replace('\0', ""));
            if !task.quick_create_attachment_ids.is_empty() {
                let ids = serde_json::Value::from(task.quick_create_attachment_ids.clone()).to_string();
                environment.set("MULTICA_QUICK_CREATE_ATTACHMENT_IDS", ids);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
#[path = "environment_tests.rs"]
mod tests;
