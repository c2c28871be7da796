//! The adapter inside of the test, for what the binary cannot be told: delays and deadlines of the core.

use crate::home::Home;
use longshore_core::config::Config;
use longshore_core::effect::ExitReport;
use longshore_core::event::{Event, StopKind};
use longshore_core::rng::Seed;
use longshore_io_tokio::clock::{Clock, Sleeper};
use longshore_io_tokio::config::{Env, Flags, Settings};
use longshore_io_tokio::discover::{AGENT_CLIS, Search};
use longshore_io_tokio::driver::{CAPABILITIES, Driver, Host, Parts, Record, recover};
use longshore_io_tokio::health::HealthSnapshot;
use longshore_io_tokio::http::{Client, ClientConfig};
use longshore_io_tokio::identity::Identity;
use longshore_io_tokio::ledger::Store;
use longshore_io_tokio::log::Redactor;
use longshore_io_tokio::prepare;
use longshore_io_tokio::service::state_dir;
use longshore_io_tokio::supervise::Launcher;
use longshore_io_tokio::wire::register::Repos;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// The most time that the end of a driver is waited for.
const END: Duration = Duration::from_secs(45);

/// A running driver. Dropped, it stops where it is, and its runs are ended with the home.
pub struct DriverUnderTest {
    events: mpsc::Sender<Event>,
    sleeper: Sleeper,
    running: Mutex<Option<JoinHandle<ExitReport>>>,
    host: Arc<Host>,
    health: watch::Receiver<HealthSnapshot>,
}

/// The last words of the core.
pub type Finished = ExitReport;

impl DriverUnderTest {
    pub(crate) async fn start(home: &Home, tune: impl FnOnce(&mut Config)) -> Self {
        let env =
            Env::from_pairs(home.environment().iter().map(|(name, value)| (name.clone(), value.clone())));
        let settings = Settings::load(&Flags::default(), &env, home.dir()).expect("settings");
        let identity = Identity::find(&settings, "test-machine").expect("an identity");
        let client = Client::new(&ClientConfig {
            base_url: settings.server_url.clone(),
            token: settings.token.clone(),
            version: identity.cli_version.clone(),
            capabilities: CAPABILITIES.iter().map(|&name| name.to_owned()).collect(),
            os: std::env::consts::OS.to_owned(),
        })
        .expect("a client");
        prepare::ensure_root_marker(&settings.workspaces_root).expect("a workspaces root");
        let mut config = Config { slots: settings.max_concurrent_tasks, ..Config::default() };
        config.timers.poll = settings.poll_interval;
        config.timers.prepare = settings.prepare_timeout;
        config.timers.gc = settings.gc.interval;
        tune(&mut config);
        let search = Search {
            clis: AGENT_CLIS.iter().collect(),
            settings: settings.agents.clone(),
            home: settings.dirs.home.clone(),
            cwd: home.dir().to_owned(),
            login_shell: false,
            env: env.clone(),
        };
        let (ledger, left) = Store::open(state_dir(&settings).join("ledger")).expect("a ledger");
        let (clock, sleeper) = Clock::with_sleeper();
        let parts = Parts {
            client,
            ledger,
            launcher: Launcher::with_executable(home.executable(), state_dir(&settings).join("runs"), 1),
            identity,
            env: env.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            health_port: settings.health_port,
            cli_dir: None,
            redactor: Redactor::default(),
            clock: Arc::new(clock),
            search,
            settings,
        };
        let (health, watched) = watch::channel(HealthSnapshot::default());
        let records: Vec<_> = home.record().map(|file| Record::whole(file, file)).into_iter().collect();
        let driver = Driver::new(parts, config, Seed(1), &records, health).expect("a core");
        let (events, host) = (driver.events(), driver.host().clone());
        let running = tokio::spawn(driver.run());
        recover(&host, left).await;
        host.set_recovered();
        Self { events, sleeper, running: Mutex::new(Some(running)), host, health: watched }
    }

    /// The machine sleeps for so long, as far as the clock of the driver knows.
    pub fn sleep(&self, time: Duration) {
        self.sleeper.sleep(time);
    }

    /// Asks for the end; the second time it hurries.
    pub async fn ask_to_stop(&self) {
        self.ask_to_stop_as(StopKind::Now).await;
    }

    /// The same, in this way.
    pub async fn ask_to_stop_as(&self, how: StopKind) {
        // A driver that has ended needs no asking.
        let _ = self.events.send(Event::Stop { how }).await;
    }

    /// The repositories that it knows of a workspace.
    pub fn repos(&self, workspace: &str) -> Arc<Repos> {
        self.host.repos(&workspace.into())
    }

    /// What health answers say.
    pub fn health(&self) -> HealthSnapshot {
        self.health.borrow().clone()
    }

    fn running(&self) -> Option<JoinHandle<ExitReport>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Asks for the end and waits for it. To be called once.
    pub async fn stop(&self) -> Finished {
        self.ask_to_stop().await;
        self.ended().await
    }

    /// Ends it in a hurry, if it is not ended yet, and waits for that. What it does beside is over then too: dropped, it may still write
    /// into a home that is gone.
    pub async fn leave(&self) {
        let Some(running) = self.running() else { return };
        for _ in 0..2 {
            self.ask_to_stop().await;
        }
        tokio::time::timeout(END, running)
            .await
            .expect("the driver ends in time")
            .expect("it does not panic");
    }

    /// Waits for the end. To be called once.
    pub async fn ended(&self) -> Finished {
        let running = self.running().expect("it was not stopped before");
        let ended = tokio::time::timeout(END, running).await;
        ended.expect("the driver ends in time").expect("it does not panic")
    }
}

impl Drop for DriverUnderTest {
    fn drop(&mut self) {
        if let Some(running) = self.running() {
            running.abort();
        }
    }
}
