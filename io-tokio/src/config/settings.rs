//! All settings in one plain struct, and how they are put together.

use super::agents::{self, AgentSettings, CodexFeatures, OpenclawSettings};
use super::env::Env;
use super::error::{ConfigError, Source};
use super::file::ConfigFile;
use super::flags::Flags;
use super::gc::{self, GcSettings, loose_bool};
use super::layers::{Layers, Places, Zero};
use super::modes::{ClaimMode, OnSigterm};
use super::profile::{Profile, StateDirs};
use super::server_url::{self, DEFAULT_SERVER_URL};
use super::size;
use super::token_file::TokenFile;
use crate::log::{LogFormat, LogLevel};
use crate::secret::Secret;
use crate::trace_sink::{DEFAULT_BUDGET, MIN_BUDGET};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

const HOSTED: &str = "api.multica.ai";

const POLL_INTERVAL: Duration = Duration::from_secs(30);
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);
const MAX_CONCURRENT_TASKS: u16 = 20;
const IDLE_WATCHDOG: Duration = Duration::from_mins(30);
const TOOL_WATCHDOG: Duration = Duration::from_hours(2);
const OPENCODE_IDLE_WATCHDOG: Duration = Duration::from_mins(10);
const CODEX_INACTIVITY: Duration = Duration::from_mins(10);
const CODEX_HANDSHAKE: Duration = Duration::from_secs(30);
const AUTO_UPDATE_INTERVAL: Duration = Duration::from_hours(6);
const PREPARE_TIMEOUT: Duration = Duration::from_mins(5);
const DISK_BUDGET: u64 = 4 << 30;
const MIN_FREE_SPACE: u64 = 256 << 20;

/// How long an agent may be silent; `None` is "for ever".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watchdogs {
    /// With no tool in flight. `None` turns the tool watchdog off as well.
    pub idle: Option<Duration>,
    /// Inside one tool call.
    pub tool: Option<Duration>,
    /// As `idle` for OpenCode, which can only shorten it.
    pub opencode_idle: Option<Duration>,
    /// Without semantic progress of Codex.
    pub codex_semantic_inactivity: Duration,
    /// Until the first progress of a Codex turn; `None` leaves it to the protocol's own rule.
    pub codex_first_turn: Option<Duration>,
    /// For the calls that start a Codex session.
    pub codex_handshake: Duration,
}

/// What the user wants of self-updates. longshore does not replace itself; the values are read so that a shared
/// configuration is checked and shown in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateSettings {
    /// Whether releases are looked for.
    pub auto_update: bool,
    /// How often.
    pub interval: Duration,
    /// Whether a binary replaced on disk is followed.
    pub auto_reload: bool,
}

/// When log files are rotated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRotation {
    /// Size in MiB at which a file is put aside.
    pub max_size_mib: u32,
    /// Files kept beside the one written.
    pub max_backups: u32,
    /// Days that they are kept.
    pub max_age_days: u32,
}

/// All settings of a daemon.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The profile.
    pub profile: Profile,
    /// Where state is kept.
    pub dirs: StateDirs,
    /// The server's address: `http` or `https`, no trailing slash.
    pub server_url: String,
    /// The daemon's credential; empty if nobody has logged in.
    pub token: Secret,
    /// The file that the token is from, where another one may be written; `None` if it is from nowhere else.
    pub token_file: Option<TokenFile>,
    /// The daemon id given by flag or environment, in place of the one in the state directory.
    pub daemon_id: Option<String>,
    /// The label of this machine; `None` takes the host name.
    pub device_name: Option<String>,
    /// Who started the daemon, as `MULTICA_LAUNCHED_BY` has it; empty if nobody says.
    pub launched_by: String,
    /// The directory below which tasks get theirs; absolute.
    pub workspaces_root: PathBuf,
    /// The port of the local HTTP server.
    pub health_port: u16,
    /// Time between two claims of an idle daemon, more than zero.
    pub poll_interval: Duration,
    /// Time between two heartbeats of a runtime, more than zero.
    pub heartbeat_interval: Duration,
    /// Execution slots, 1 to 1000.
    pub max_concurrent_tasks: u16,
    /// How tasks are claimed.
    pub claim_mode: ClaimMode,
    /// The most time a run may take; `None` is no limit.
    pub agent_timeout: Option<Duration>,
    /// The most time from the begin of a task's preparation to its accepted start.
    pub prepare_timeout: Duration,
    /// Limits on silence.
    pub watchdogs: Watchdogs,
    /// Whether a task's directory stays after its end.
    pub keep_env_after_task: bool,
    /// The parent of tasks' temporary directories, as given; a bad one fails each task, not the start.
    pub agent_temp_base: Option<PathBuf>,
    /// Bytes that state of our own may take; `None` is no limit.
    pub disk_budget: Option<u64>,
    /// Bytes that the flight recorder may take, at least 1 MiB and no more than the disk budget; `None` is no recorder.
    pub trace_budget: Option<u64>,
    /// Bytes that must be free for a task to be claimed; `None` is no limit.
    pub min_free_space: Option<u64>,
    /// What SIGTERM does.
    pub on_sigterm: OnSigterm,
    /// Whether tasks may set variables that change how programs are loaded.
    pub allow_dangerous_env: bool,
    /// Settings of agent CLIs, by provider; one without any is not in it.
    pub agents: BTreeMap<&'static str, AgentSettings>,
    /// OpenClaw's own settings.
    pub openclaw: OpenclawSettings,
    /// Codex's own settings.
    pub codex: CodexFeatures,
    /// Executables for runtime profiles on this machine, by profile id.
    pub profile_commands: BTreeMap<String, OsString>,
    /// Garbage collection.
    pub gc: GcSettings,
    /// Self-updates.
    pub update: UpdateSettings,
    /// The least important level that is logged.
    pub log_level: LogLevel,
    /// How log lines look.
    pub log_format: LogFormat,
    /// When log files are rotated.
    pub log_rotation: LogRotation,
    /// What the operator should know and what does not stop the start; to be logged once.
    pub warnings: Vec<String>,
    sources: BTreeMap<&'static str, Source>,
}

impl Settings {
    /// Puts the settings together. Relative paths are taken from `cwd`. Reads `config.json` of the profile (and
    /// tightens its mode, see [`ConfigFile::load`]); creates nothing.
    ///
    /// # Errors
    /// The first value that cannot be used, with its place.
    pub fn load(flags: &Flags, env: &Env, cwd: &Path) -> Result<Self, ConfigError> {
        let profile = Profile::new(&flags.profile)?;
        let dirs = StateDirs::find(env, &profile)?;
        let mut warnings = Vec::new();
        let path = dirs.profile.join("config.json");
        let file = ConfigFile::load(&path, &mut warnings)?;
        let settings = Self::assemble(flags, env, &file, cwd, profile, dirs, warnings)?;
        Ok(Self { token_file: Some(TokenFile::new(&path, &file)), ..settings })
    }

    fn assemble(
        flags: &Flags,
        env: &Env,
        file: &ConfigFile,
        cwd: &Path,
        profile: Profile,
        dirs: StateDirs,
        mut warnings: Vec<String>,
    ) -> Result<Self, ConfigError> {
        let mut l = Layers { env, file, sources: BTreeMap::new() };
        let server_url = server_url(&mut l, flags)?;
        let hosted = server_url::host(&server_url).as_deref() == Some(HOSTED);
        let agents = agents::load(&l, &mut warnings)?;
        let openclaw = agents::openclaw(&l, &mut warnings)?;
        let watchdogs = watchdogs(&mut l, flags, &mut warnings)?;
        let poll = at(
            flag("--poll-interval", flags.poll_interval.as_ref()),
            "MULTICA_DAEMON_POLL_INTERVAL",
            "poll_interval",
        );
        let beat = at(
            flag("--heartbeat-interval", flags.heartbeat_interval.as_ref()),
            "MULTICA_DAEMON_HEARTBEAT_INTERVAL",
            "heartbeat_interval",
        );
        let slots = at(
            flag("--max-concurrent-tasks", flags.max_concurrent_tasks.as_ref()),
            "MULTICA_DAEMON_MAX_CONCURRENT_TASKS",
            "max_concurrent_tasks",
        );
        let port = at(
            flag("--health-port", flags.health_port.as_ref()),
            "MULTICA_DAEMON_HEALTH_PORT",
            "health_port",
        );
        let daemon_id = at(flag("--daemon-id", flags.daemon_id.as_ref()), "MULTICA_DAEMON_ID", "");
        let device = at(
            flag("--device-name", flags.device_name.as_ref()),
            "MULTICA_DAEMON_DEVICE_NAME",
            "device_name",
        );
        let timeout = at(
            flag("--agent-timeout", flags.agent_timeout.as_ref()),
            "MULTICA_AGENT_TIMEOUT",
            "agent_timeout",
        );
        let prepare = at(None, "LONGSHORE_PREPARE_TIMEOUT", "");
        let claim_mode = at(flag("--claim-mode", flags.claim_mode.as_ref()), "", "claim_mode");
        let budget = at(flag("--disk-budget", flags.disk_budget.as_ref()), "", "disk_budget");
        let disk_budget = l.size("disk_budget", budget, Some(DISK_BUDGET))?;
        let trace =
            at(flag("--trace-budget", flags.trace_budget.as_ref()), "LONGSHORE_TRACE_BUDGET", "trace_budget");
        let free = at(flag("--min-free-space", flags.min_free_space.as_ref()), "", "min_free_space");
        let sigterm =
            at(flag("--on-sigterm", flags.on_sigterm.as_ref()), "LONGSHORE_ON_SIGTERM", "on_sigterm");
        Ok(Self {
            token: file.token()?,
            token_file: None,
            daemon_id: l.text("daemon_id", daemon_id)?.map(|s| s.text),
            device_name: l.text("device_name", device)?.map(|s| s.text),
            launched_by: env.raw("MULTICA_LAUNCHED_BY").unwrap_or_default().to_string_lossy().into_owned(),
            workspaces_root: workspaces_root(&mut l, flags, cwd)?
                .unwrap_or_else(|| profile.default_workspaces_root(&dirs.home)),
            health_port: l.count("health_port", port, profile.health_port())?,
            poll_interval: l.positive("poll_interval", poll, Zero::Refused, POLL_INTERVAL)?,
            heartbeat_interval: l.positive("heartbeat_interval", beat, Zero::Refused, HEARTBEAT_INTERVAL)?,
            max_concurrent_tasks: slots_of(&mut l, slots)?,
            claim_mode: l.word("claim_mode", claim_mode)?,
            agent_timeout: l.or_off("agent_timeout", timeout, None)?,
            prepare_timeout: l.positive("prepare_timeout", prepare, Zero::Refused, PREPARE_TIMEOUT)?,
            keep_env_after_task: matches!(env.text("MULTICA_KEEP_ENV_AFTER_TASK")?, Some("true" | "1")),
            agent_temp_base: env.path("MULTICA_AGENT_TEMP_BASE"),
            disk_budget,
            trace_budget: trace_budget(&mut l, trace, disk_budget)?,
            min_free_space: l.size("min_free_space", free, Some(MIN_FREE_SPACE))?,
            on_sigterm: l.word("on_sigterm", sigterm)?,
            allow_dangerous_env: file.bool("allow_dangerous_env")?.unwrap_or(false),
            codex: agents::codex_features(&l)?,
            profile_commands: agents::profile_commands(&l)?,
            gc: gc::load(&mut l, hosted)?,
            update: update(&mut l, flags, hosted)?,
            log_level: log_level(flags, env)?,
            log_format: l.word(
                "log_format",
                at(flag("--log-format", flags.log_format.as_ref()), "MULTICA_LOG_FORMAT", ""),
            )?,
            log_rotation: log_rotation(env)?,
            profile,
            dirs,
            server_url,
            agents,
            openclaw,
            watchdogs,
            warnings,
            sources: l.sources,
        })
    }

    /// Where the value of a setting came from, by the name of its field (`poll_interval`, `gc.interval`).
    pub fn source(&self, setting: &str) -> &Source {
        self.sources.get(setting).unwrap_or(&Source::Default)
    }
}

fn at<'a>(flag: Option<(&'static str, &'a str)>, env: &'static str, key: &'static str) -> Places<'a> {
    Places { flag, env, key }
}

fn flag<'a>(name: &'static str, value: Option<&'a String>) -> Option<(&'static str, &'a str)> {
    value.map(|v| (name, v.as_str()))
}

fn server_url(l: &mut Layers<'_>, flags: &Flags) -> Result<String, ConfigError> {
    let places = at(flag("--server-url", flags.server_url.as_ref()), "MULTICA_SERVER_URL", "server_url");
    let said = l.text("server_url", places)?;
    let text = said.as_ref().map_or(DEFAULT_SERVER_URL, |s| &s.text);
    server_url::normalise(text).map_err(|problem| {
        // The address may carry a password, so it is named and not shown.
        let place = said.map_or(Source::Default, |s| s.place);
        ConfigError::value(place, None, problem, "an address such as https://host or ws://host:8080/ws")
    })
}

fn workspaces_root(l: &mut Layers<'_>, flags: &Flags, cwd: &Path) -> Result<Option<PathBuf>, ConfigError> {
    const ENV: &str = "MULTICA_WORKSPACES_ROOT";
    const FLAG: &str = "--workspaces-root";
    let given = flags.workspaces_root.clone().filter(|p| !p.as_os_str().is_empty());
    let (path, place) = if let Some(path) = given {
        (path, Source::Flag(FLAG))
    } else if let Some(path) = l.env.path(ENV) {
        (path, Source::Env(ENV.into()))
    } else if let Some(text) = l.file.text("workspaces_root")? {
        (PathBuf::from(text), l.file.place("workspaces_root"))
    } else {
        return Ok(None);
    };
    let path = clean(&cwd.join(path));
    if path.parent().is_none() {
        // Its marker would say of the whole machine that it belongs to a task, and no daemon would start there again.
        return Err(ConfigError::value(
            place,
            None,
            "it is the root of the file system",
            "a directory below it",
        ));
    }
    l.sources.insert("workspaces_root", place);
    Ok(Some(path))
}

/// As many tasks at once as the core can have.
fn slots_of(l: &mut Layers<'_>, at: Places<'_>) -> Result<u16, ConfigError> {
    let slots = l.count("max_concurrent_tasks", at, MAX_CONCURRENT_TASKS)?;
    let most = longshore_core::config::Config::MAX_SLOTS;
    match l.sources.get("max_concurrent_tasks") {
        Some(place) if slots > most => {
            let (value, expected) = (slots.to_string(), "a whole number from 1 to 1000");
            Err(ConfigError::value(place.clone(), Some(&value), "it is too large", expected))
        }
        _ => Ok(slots),
    }
}

/// What the flight recorder may take: a sixteenth of the disk budget and no more than 64 MiB, unless somebody says otherwise.
fn trace_budget(l: &mut Layers<'_>, at: Places<'_>, disk: Option<u64>) -> Result<Option<u64>, ConfigError> {
    let share = disk.map_or(DEFAULT_BUDGET, |all| (all / 16).min(DEFAULT_BUDGET)).max(MIN_BUDGET);
    let Some(said) = l.text("trace_budget", at)? else { return Ok(Some(share)) };
    let expected = "a size from 1MiB up to the disk budget; 0 turns the flight recorder off";
    let bytes = size::parse(&said.text).map_err(|problem| said.wrong(problem, expected))?;
    match bytes {
        0 => Ok(None),
        bytes if bytes < MIN_BUDGET => Err(said.wrong("it is too small to record anything of use", expected)),
        bytes if disk.is_some_and(|disk| bytes > disk) => {
            Err(said.wrong("it is more than the whole disk budget", expected))
        }
        bytes => Ok(Some(bytes)),
    }
}

/// The path without `.` and `..`, by its text alone.
fn clean(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            kept => out.push(kept),
        }
    }
    out
}

fn watchdogs(
    l: &mut Layers<'_>,
    flags: &Flags,
    warnings: &mut Vec<String>,
) -> Result<Watchdogs, ConfigError> {
    let semantic = at(
        flag("--codex-semantic-inactivity-timeout", flags.codex_semantic_inactivity_timeout.as_ref()),
        "MULTICA_CODEX_SEMANTIC_INACTIVITY_TIMEOUT",
        "codex_semantic_inactivity_timeout",
    );
    let handshake = at(
        flag("--codex-handshake-timeout", flags.codex_handshake_timeout.as_ref()),
        "MULTICA_CODEX_HANDSHAKE_TIMEOUT",
        "codex_handshake_timeout",
    );
    let env = |name| at(None, name, "");
    let all = Watchdogs {
        idle: l.or_off("watchdogs.idle", env("MULTICA_AGENT_IDLE_WATCHDOG"), Some(IDLE_WATCHDOG))?,
        tool: l.or_off("watchdogs.tool", env("MULTICA_AGENT_TOOL_WATCHDOG"), Some(TOOL_WATCHDOG))?,
        opencode_idle: l.or_off(
            "watchdogs.opencode_idle",
            env("MULTICA_OPENCODE_IDLE_WATCHDOG"),
            Some(OPENCODE_IDLE_WATCHDOG),
        )?,
        codex_semantic_inactivity: l.positive(
            "watchdogs.codex_semantic_inactivity",
            semantic,
            Zero::Refused,
            CODEX_INACTIVITY,
        )?,
        codex_first_turn: l.or_off(
            "watchdogs.codex_first_turn",
            env("MULTICA_CODEX_FIRST_TURN_TIMEOUT"),
            None,
        )?,
        codex_handshake: l.positive("watchdogs.codex_handshake", handshake, Zero::Unset, CODEX_HANDSHAKE)?,
    };
    if all.codex_first_turn.is_some_and(|first| first >= all.codex_semantic_inactivity) {
        warnings.push(
            "MULTICA_CODEX_FIRST_TURN_TIMEOUT is not shorter than the Codex inactivity timeout, so it has no effect"
                .to_owned(),
        );
    }
    Ok(all)
}

fn update(l: &mut Layers<'_>, flags: &Flags, hosted: bool) -> Result<UpdateSettings, ConfigError> {
    let interval = at(
        flag("--auto-update-interval", flags.auto_update_interval.as_ref()),
        "MULTICA_DAEMON_AUTO_UPDATE_INTERVAL",
        "auto_update_interval",
    );
    // A flag or the file can only switch off; the environment, where it says something, decides alone.
    let switch = |off: bool, env: &'static str, key: &str, default: bool| {
        Ok::<_, ConfigError>(match l.env.text(env)? {
            _ if off => false,
            Some(text) => loose_bool(Some(text)).unwrap_or(default),
            None => default && !l.file.bool(key)?.unwrap_or(false),
        })
    };
    Ok(UpdateSettings {
        auto_update: switch(
            flags.no_auto_update,
            "MULTICA_DAEMON_AUTO_UPDATE",
            "disable_auto_update",
            hosted,
        )?,
        auto_reload: switch(flags.no_auto_reload, "MULTICA_DAEMON_AUTO_RELOAD", "disable_auto_reload", true)?,
        interval: l.positive("update.interval", interval, Zero::Refused, AUTO_UPDATE_INTERVAL)?,
    })
}

fn log_level(flags: &Flags, env: &Env) -> Result<LogLevel, ConfigError> {
    match flags.log_level.as_deref().map(str::trim).filter(|t| !t.is_empty()) {
        Some(text) => text.parse().map_err(|expected| {
            ConfigError::value(Source::Flag("--log-level"), Some(text), "it is none of the choices", expected)
        }),
        // In the environment an unknown word means "debug", as users of the variable know it.
        None => Ok(env.text("LOG_LEVEL")?.and_then(|t| t.parse().ok()).unwrap_or_default()),
    }
}

fn log_rotation(env: &Env) -> Result<LogRotation, ConfigError> {
    let n = |name, default| {
        let parsed = env.text(name)?.and_then(|t| t.parse::<u32>().ok()).filter(|n| *n > 0);
        Ok::<_, ConfigError>(parsed.unwrap_or(default))
    };
    Ok(LogRotation {
        max_size_mib: n("MULTICA_DAEMON_LOG_MAX_SIZE_MB", 20)?,
        max_backups: n("MULTICA_DAEMON_LOG_MAX_BACKUPS", 5)?,
        max_age_days: n("MULTICA_DAEMON_LOG_MAX_AGE_DAYS", 30)?,
    })
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
