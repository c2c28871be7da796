//! Settings of single agent CLIs.

use super::duration::{self, Days};
use super::error::{ConfigError, Source};
use super::gc::loose_bool;
use super::layers::{Layers, Said, parse_count};
use super::shell_words;
use crate::discover::registry::{AGENT_CLIS, AgentCli, agent_cli};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::time::Duration;

/// How one agent CLI is to be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentSettings {
    /// A command name or a path to use instead of the default command.
    pub command: Option<OsString>,
    /// The model used when neither the task nor the agent names one.
    pub model: Option<String>,
    /// Arguments for every run, before those of the task.
    pub args: Vec<String>,
    /// The most tasks of this provider at a time; `None` leaves only the global limit.
    pub max_concurrent_tasks: Option<u16>,
}

/// Settings that only OpenClaw has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenclawSettings {
    /// How long one call of its command line may take, 1 s to 60 s.
    pub cli_timeout: Duration,
    /// `OPENCLAW_STATE_DIR` for its processes where the daemon's environment does not have that variable.
    pub state_dir: Option<String>,
}

/// Settings that only Codex has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodexFeatures {
    /// Whether its own memory stays on in tasks.
    pub memory: bool,
    /// Whether its own multi-agent mode stays on in tasks.
    pub multi_agent: bool,
}

const OPENCLAW_TIMEOUT: &str = "MULTICA_OPENCLAW_CLI_TIMEOUT";
const OPENCLAW_TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);
const OPENCLAW_TIMEOUT_BOUNDS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));

pub(super) fn load(
    layers: &Layers<'_>,
    warnings: &mut Vec<String>,
) -> Result<BTreeMap<&'static str, AgentSettings>, ConfigError> {
    let mut all = BTreeMap::new();
    for cli in AGENT_CLIS {
        let settings = one(layers, cli)?;
        if settings != AgentSettings::default() {
            all.insert(cli.provider, settings);
        }
    }
    for name in layers.file.object("providers")?.keys() {
        if agent_cli(name).is_none() {
            let known: Vec<_> = AGENT_CLIS.iter().map(|cli| cli.provider).collect();
            let place = layers.file.place(&format!("providers.{name}"));
            warnings.push(format!("{place}: no such provider, ignored; known are {}", known.join(", ")));
        }
    }
    Ok(all)
}

fn one(layers: &Layers<'_>, cli: &AgentCli) -> Result<AgentSettings, ConfigError> {
    let env = layers.env;
    let mut command = env.path(cli.path_var).map(OsString::from);
    // What counts for the OpenClaw keys is whether the variable is there, not what is in it.
    if cli.provider == "openclaw" && env.raw(cli.path_var).is_none() {
        command = layers.file.text("backends.openclaw.binary_path")?.map(OsString::from);
    }
    let model = match cli.model_var {
        Some(name) => env.text(name)?.map(str::to_owned),
        None => None,
    };
    let args = match cli.args_var {
        Some(name) => match env.text(name)? {
            Some(text) => shell_words::split(text).map_err(|problem| {
                ConfigError::env(name, problem, "arguments quoted as for a POSIX shell")
            })?,
            None => Vec::new(),
        },
        None => Vec::new(),
    };
    let key = format!("providers.{}.max_concurrent_tasks", cli.provider);
    let max_concurrent_tasks = match layers.file.text_or_number(&key)? {
        None => None,
        Some(text) => Some(parse_count(&Said { text, place: layers.file.place(&key) })?).filter(|n| *n > 0),
    };
    Ok(AgentSettings { command, model, args, max_concurrent_tasks })
}

pub(super) fn openclaw(
    layers: &Layers<'_>,
    warnings: &mut Vec<String>,
) -> Result<OpenclawSettings, ConfigError> {
    let (env, file) = (layers.env, layers.file);
    let said = if env.raw(OPENCLAW_TIMEOUT).is_some() {
        env.text(OPENCLAW_TIMEOUT)?.map(|t| (t.to_owned(), Source::Env(OPENCLAW_TIMEOUT.into())))
    } else {
        let key = "backends.openclaw.cli_timeout";
        file.text_or_number(key)?.map(|t| (t, file.place(key)))
    };
    let mut cli_timeout = OPENCLAW_TIMEOUT_DEFAULT;
    if let Some((text, place)) = said {
        let seconds = text.parse::<u64>().ok().map(Duration::from_secs);
        let parsed = seconds.or_else(|| duration::parse(&text, Days::Refused).ok()?.non_negative());
        match parsed {
            Some(d) => cli_timeout = d.clamp(OPENCLAW_TIMEOUT_BOUNDS.0, OPENCLAW_TIMEOUT_BOUNDS.1),
            None => warnings.push(format!("{place} ({text:?}): no duration and no seconds, 30s is used")),
        }
    }
    let state_dir = match env.raw("OPENCLAW_STATE_DIR") {
        Some(_) => None,
        None => file.text("backends.openclaw.state_dir")?.map(str::to_owned),
    };
    Ok(OpenclawSettings { cli_timeout, state_dir })
}

pub(super) fn codex_features(layers: &Layers<'_>) -> Result<CodexFeatures, ConfigError> {
    let on = |name| Ok::<_, ConfigError>(loose_bool(layers.env.text(name)?).unwrap_or(false));
    Ok(CodexFeatures { memory: on("MULTICA_CODEX_MEMORY")?, multi_agent: on("MULTICA_CODEX_MULTI_AGENT")? })
}

/// Executables that this machine's user set for runtime profiles: profile id to path; blank ones are ignored.
pub(super) fn profile_commands(layers: &Layers<'_>) -> Result<BTreeMap<String, OsString>, ConfigError> {
    let mut all = BTreeMap::new();
    for (id, path) in layers.file.object("profile_command_overrides")? {
        let key = format!("profile_command_overrides.{id}");
        let path = path.as_str().ok_or_else(|| {
            ConfigError::value(layers.file.place(&key), None, "it is no string", "the path of an executable")
        })?;
        if !path.trim().is_empty() {
            all.insert(id, OsStr::new(path.trim()).to_owned());
        }
    }
    Ok(all)
}
