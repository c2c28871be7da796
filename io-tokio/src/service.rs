//! A daemon put together: settings in, a running driver out. What `daemon start`, `demo` and `local` have in common.

mod sweeps;

use crate::cli::{StartRefusal, require_token};
use crate::clock::Clock;
use crate::config::{self, Env, Settings};
use crate::discover::{AGENT_CLIS, Discovery, LookError, Prober, Search};
use crate::driver::{
    CAPABILITIES, Driver, DriverError, GivenUp, Outlook, Parts, Record, Recordings, recover,
};
use crate::health::{BindError, HealthIdentity, HealthListener, HealthSnapshot, ShutdownRequest};
use crate::http::{Client, ClientConfig, ClientError};
use crate::identity::{self, Identity, IdentityError};
use crate::ledger::{Found, LedgerError, Store};
use crate::log::Redactor;
use crate::owner::{Owner, OwnerError};
use crate::prepare::{self, PrepareError};
use crate::signals::log_stop;
use crate::supervise::Launcher;
use crate::supervise::asked::{self, ASKED_VARIABLE};
use longshore_core::config::{ClaimMode, Config};
use longshore_core::effect::ExitReport;
use longshore_core::event::Event;
use longshore_core::id::Provider;
use longshore_core::rng::Seed;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// Warm pairs of supervisor and helper that are kept ready.
const SPARES: usize = 2;

/// What the recording of a daemon without anything to run ends with.
const NO_AGENTS: &str = "no agent program was found";

/// What a daemon is started with.
pub struct Start {
    /// All settings.
    pub settings: Settings,
    /// The environment that agents inherit from.
    pub env: Env,
    /// Where relative paths start.
    pub cwd: PathBuf,
    /// What is recorded of the core's history.
    pub records: Vec<Record>,
    /// Secrets that no log line may show.
    pub redactor: Redactor,
    /// Providers to look for; `None` for all that are known.
    pub only: Option<&'static str>,
}

/// Why a daemon did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// There is no credential.
    #[error(transparent)]
    Refused(#[from] StartRefusal),
    /// The local port cannot be had.
    #[error(transparent)]
    Port(#[from] BindError),
    /// The daemon's id cannot be read or made.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// What earlier processes left cannot be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Another daemon has this identity, or nobody can tell.
    #[error(transparent)]
    Owner(#[from] OwnerError),
    /// The HTTP client cannot be made.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A setting is out of the core's bounds, or nothing can be recorded.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// The workspaces root cannot be used.
    #[error("the workspaces root {} cannot be used: {source}", path.display())]
    Root {
        /// Where it is.
        path: PathBuf,
        /// Why.
        source: PrepareError,
    },
    /// There is nothing to run.
    #[error(
        "no agent program was found on this machine{0}; install one (such as claude or codex), or set its path, e.g. MULTICA_CLAUDE_PATH"
    )]
    NoAgents(String),
    /// There is nothing to run, and nobody on the server has made something either.
    #[error(
        "no agent program was found on this machine{0}, and the server tells of no custom runtime that can be used here; install one (such as claude or codex), or set its path, e.g. MULTICA_CLAUDE_PATH"
    )]
    NoWork(String),
    /// Whether there is something to run is not known.
    #[error(transparent)]
    Look(#[from] LookError),
}

/// A daemon that is about to run.
pub struct Service {
    driver: Driver,
    health: HealthListener,
    health_identity: HealthIdentity,
    snapshots: watch::Receiver<HealthSnapshot>,
    clock: Arc<Clock>,
    temp_base: Option<PathBuf>,
    state: PathBuf,
    found: Found,
    owner: Owner,
    /// Whether custom runtimes are as good as agent programs.
    takes_custom: bool,
}

impl Service {
    /// Takes the identity and the local port, then puts everything together; nobody has been contacted by the time that this fails. Must be
    /// called inside the runtime that will run it.
    ///
    /// # Errors
    /// See [`ServeError`].
    pub fn new(start: Start) -> Result<Self, ServeError> {
        let Start { settings, env, cwd, records, redactor, only } = start;
        let token = require_token(&settings)?;
        let identity = Identity::find(&settings, &identity::host_name())?;
        let owner = Owner::take(&settings, &identity)?;
        let health = HealthListener::bind(settings.health_port)?;
        let client = Client::new(&ClientConfig {
            base_url: settings.server_url.clone(),
            token: token.clone(),
            version: identity.cli_version.clone(),
            capabilities: CAPABILITIES.iter().map(|&name| name.to_owned()).collect(),
            os: std::env::consts::OS.to_owned(),
        })?;
        if let Some(file) = settings.token_file.clone() {
            client.credential().follow(file, redactor.clone());
        }
        let root = &settings.workspaces_root;
        prepare::ensure_root_marker(root)
            .map_err(|source| ServeError::Root { path: root.clone(), source })?;
        // What earlier processes left is read before anybody is contacted.
        let (ledger, found) = Store::open(state_dir(&settings).join("ledger"))?;
        let clock = Arc::new(Clock::start());
        let launcher = Launcher::new(state_dir(&settings).join("runs"), SPARES);
        launcher.warm();
        let health_identity = HealthIdentity::new(&settings, &identity);
        let (health_sender, snapshots) = watch::channel(HealthSnapshot::default());
        let core = core_config(&settings);
        let temp_base = settings.agent_temp_base.clone();
        let state = state_dir(&settings);
        let parts = Parts {
            client,
            launcher,
            ledger,
            identity,
            env: env.iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
            health_port: health.port(),
            cli_dir: cli_dir(&env),
            redactor,
            clock: clock.clone(),
            search: search(&settings, &env, &cwd, only),
            settings,
        };
        let driver = Driver::new(parts, core, seed(), &records, health_sender)?;
        let takes_custom = only.is_none();
        Ok(Self {
            driver,
            health,
            health_identity,
            snapshots,
            clock,
            temp_base,
            state,
            found,
            owner,
            takes_custom,
        })
    }

    /// Something to give the core events with.
    pub fn events(&self) -> mpsc::Sender<Event> {
        self.driver.events()
    }

    /// What becomes of the recordings of whole runs.
    pub fn recordings(&self) -> Recordings {
        self.driver.recordings()
    }

    /// The port of the local HTTP server.
    pub fn health_port(&self) -> u16 {
        self.health.port()
    }

    /// What health answers say, as it changes.
    pub fn snapshots(&self) -> watch::Receiver<HealthSnapshot> {
        self.snapshots.clone()
    }

    /// Runs until the core wants the process to end.
    ///
    /// # Errors
    /// If there is nothing to run on this machine, which is known when the server has told of the custom runtimes.
    pub async fn run(self) -> Result<ExitReport, ServeError> {
        let Self {
            driver,
            health,
            health_identity,
            snapshots,
            clock,
            temp_base,
            state,
            found: left,
            owner,
            takes_custom,
        } = self;
        let (shutdowns, mut wishes) = mpsc::channel::<ShutdownRequest>(4);
        let serving = tokio::spawn(health.serve(health_identity, clock, snapshots, driver.tap(), shutdowns));
        let events = driver.events();
        let wishes = tokio::spawn(async move {
            while let Some(ShutdownRequest { how }) = wishes.recv().await {
                log_stop("the local HTTP port", how);
                drop(events.send(Event::Stop { how }).await);
            }
        });
        let host = driver.host().clone();
        let give_up = async move {
            // The core hears of what was left before it hears of any agent, and so before anything is registered and claimed.
            let kept = recover(&host, left).await;
            let left = host.launcher.end_strays(&kept).await;
            if left > 0 {
                tracing::warn!(
                    runs = left,
                    "agents that an earlier daemon left at work, and that nothing is known of, were ended"
                );
            }
            sweeps::temp_dirs(temp_base);
            sweeps::asked_ones(state);
            host.set_recovered();
            let found = host.prober.first().await;
            if found.is_in_vain() {
                let none = why_none(&found);
                if !takes_custom {
                    return GivenUp { why: ServeError::NoAgents(none), recorded: NO_AGENTS };
                }
                tracing::warn!(
                    "no agent program was found on this machine{none}; the daemon waits for the server to tell of custom runtimes that can be used here"
                );
                if host.settled_outlook().await == Outlook::Nothing {
                    return GivenUp { why: ServeError::NoWork(none), recorded: NO_AGENTS };
                }
            }
            std::future::pending().await
        };
        let outcome = driver.run_unless(give_up).await;
        wishes.abort();
        serving.abort();
        drop(owner);
        outcome
    }
}

/// Whether a daemon with these settings would find what it needs: a workspaces root, and agents. Nothing is started, and nobody but the
/// agents' own `--version` is asked.
///
/// # Errors
/// What a start would fail with.
pub async fn rehearse(settings: &Settings, env: &Env, cwd: &Path) -> Result<(), ServeError> {
    let root = &settings.workspaces_root;
    prepare::ensure_root_marker(root).map_err(|source| ServeError::Root { path: root.clone(), source })?;
    let prober = Prober::new(search(settings, env, cwd, None));
    let found = prober.look_to_the_end().await?;
    if found.agents.is_empty() { Err(ServeError::NoAgents(why_none(&found))) } else { Ok(()) }
}

/// Where agent CLIs are looked for: all of them, or only one.
fn search(settings: &Settings, env: &Env, cwd: &Path, only: Option<&str>) -> Search {
    let mut env = env.clone();
    env.set(ASKED_VARIABLE, asked::mark(&state_dir(settings)));
    Search {
        clis: AGENT_CLIS.iter().filter(|cli| only.is_none_or(|only| cli.provider == only)).collect(),
        settings: settings.agents.clone(),
        env,
        home: settings.dirs.home.clone(),
        cwd: cwd.to_owned(),
        login_shell: true,
    }
}

fn why_none(found: &Discovery) -> String {
    let problems: Vec<String> = found
        .skipped
        .iter()
        .map(|skipped| format!("{}: {}", skipped.cli.provider, skipped.problem))
        .collect();
    if problems.is_empty() { String::new() } else { format!(" ({})", problems.join("; ")) }
}

/// The flight recorder of a daemon with these settings, unless they turn it off.
pub fn flight_recorder(settings: &Settings) -> Option<Record> {
    let dir = state_dir(settings).join("trace");
    settings.trace_budget.map(|budget| Record::Flight { dir, budget })
}

/// Where our own state of a profile is.
pub fn state_dir(settings: &Settings) -> PathBuf {
    settings.dirs.profile.join("longshore")
}

fn core_config(settings: &Settings) -> Config {
    let mut core = Config {
        slots: settings.max_concurrent_tasks,
        claim_mode: match settings.claim_mode {
            config::ClaimMode::Auto => ClaimMode::Auto,
            config::ClaimMode::Batch => ClaimMode::Batch,
            config::ClaimMode::PerRuntime => ClaimMode::PerRuntime,
        },
        ..Config::default()
    };
    let caps = settings.agents.iter().filter_map(|(name, agent)| Some((*name, agent.max_concurrent_tasks?)));
    core.provider_caps = caps.map(|(name, cap)| (Provider::new(name), cap)).collect();
    core.timers.poll = settings.poll_interval;
    core.timers.beat = settings.heartbeat_interval;
    core.timers.prepare = settings.prepare_timeout;
    core.gc = settings.gc.enabled;
    core.timers.gc = settings.gc.interval;
    let watchdogs = &settings.watchdogs;
    core.timers.run_limit = settings.agent_timeout.unwrap_or_default();
    core.timers.idle = watchdogs.idle.unwrap_or_default();
    core.timers.tool_idle = watchdogs.tool.unwrap_or_default();
    let opencode = watchdogs.opencode_idle.map(|window| (Provider::new("opencode"), window));
    core.timers.idle_of = opencode.into_iter().collect();
    core
}

/// Jitter differs from process to process; the trace's header keeps the seed.
fn seed() -> Seed {
    Seed(uuid::Uuid::new_v4().as_u64_pair().0)
}

/// The folder of the `multica` command that agents are to use, if the machine has one.
fn cli_dir(env: &Env) -> Option<PathBuf> {
    let path = env.raw("PATH")?;
    std::env::split_paths(path).find(|dir| dir.is_absolute() && is_program(&dir.join("multica")))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Flags;
    use std::time::Duration;

    fn timers(env: &[(&str, &str)]) -> longshore_core::config::Timing {
        let home = tempfile::tempdir().expect("a directory");
        let place = ("HOME".to_owned(), home.path().display().to_string());
        let given = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let env = Env::from_pairs(given.chain([place]));
        let settings = Settings::load(&Flags::default(), &env, home.path()).expect("settings");
        core_config(&settings).timers
    }

    #[test]
    fn limits_on_silence_and_on_time_reach_the_core() {
        let opencode = Provider::new("opencode");
        let t = timers(&[]);
        let m = Duration::from_mins;
        let of = |t: &longshore_core::config::Timing, tool| {
            (t.silence(None, tool), t.silence(Some(&opencode), tool))
        };
        assert_eq!((of(&t, false), of(&t, true)), ((Some(m(30)), Some(m(10))), (Some(m(120)), Some(m(120)))));
        assert!(t.run_limit.is_zero());

        let t = timers(&[
            ("MULTICA_AGENT_TIMEOUT", "1h"),
            ("MULTICA_AGENT_IDLE_WATCHDOG", "20m"),
            ("MULTICA_AGENT_TOOL_WATCHDOG", "0"),
            ("MULTICA_OPENCODE_IDLE_WATCHDOG", "0"),
        ]);
        assert_eq!((of(&t, false), of(&t, true)), ((Some(m(20)), Some(m(20))), (None, None)));
        assert_eq!(t.run_limit, m(60));

        let t = timers(&[("MULTICA_AGENT_IDLE_WATCHDOG", "0")]);
        assert_eq!((of(&t, false), of(&t, true)), ((None, None), (None, None)), "zero turns all of them off");
    }
}
