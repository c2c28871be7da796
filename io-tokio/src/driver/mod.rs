//! The driver: one task owns the core, gives it every event, and starts what it wants done. It decides nothing.

mod absent;
mod action;
mod apart;
mod api;
mod collect;
mod disk;
mod facts;
mod follow;
mod host;
mod keep;
mod link;
mod local;
mod messages;
mod offers;
mod outlook;
mod over;
mod panics;
mod probe;
mod profiles;
mod program;
mod published;
mod reach;
mod record;
mod recover;
mod register;
mod run;
mod served;
mod silence;
mod skills;
mod space;

pub use host::{CAPABILITIES, Host};
pub use local::LocalDirectory;
pub use outlook::Outlook;
pub use record::{Incomplete, Record, Recordings};
pub use recover::recover;

use crate::alarm::Alarm;
use crate::discover::Prober;
use crate::health::HealthSnapshot;
use crate::http::{Limit, Replaced};
use crate::skills::Library;
use crate::supervise::asked;
use crate::trace_sink::{SinkError, Tap};
use crate::wire::report::ProgressRequest;
use collect::Round;
use host::{Listed, RuntimeSet};
use link::Conn;
use longshore_core::config::{Config, ConfigError};
use longshore_core::daemon::Daemon;
use longshore_core::effect::{Effect, Effects, ExitReport, Fact, KillStep, LaunchCall, WsCmd};
use longshore_core::error::{ApiError, FsError};
use longshore_core::event::{ClaimKey, Event, FsReply, RunEvent};
use longshore_core::id::{ConnGen, OpId};
use longshore_core::reason::FailReason;
use longshore_core::rng::Seed;
use offers::Unusable;
use reach::Reach;
use record::Tapes;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{SetOnce, mpsc, watch};
use tokio_util::sync::CancellationToken;

/// Events that wait for the core; whoever brings more waits too.
const EVENTS: usize = 1024;
/// Events taken in a row before other tasks get their turn.
const BURST: usize = 256;
/// A request's own limit lies this far behind the core's.
const BACKSTOP: Duration = Duration::from_secs(5);
/// At the end, agents that were killed are waited for this long.
const LAST_RUNS: Duration = Duration::from_secs(2);
/// Deadline of a progress note.
const PROGRESS: Duration = Duration::from_secs(30);

/// Why there is no driver.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// A setting is out of the core's bounds.
    #[error(transparent)]
    Settings(#[from] ConfigError),
    /// What was asked to be recorded cannot be.
    #[error(transparent)]
    Record(#[from] SinkError),
}

/// What a host is made of, before the driver runs.
pub struct Parts {
    /// See [`Host`].
    pub client: crate::http::Client,
    /// See [`Host`].
    pub launcher: crate::supervise::Launcher,
    /// See [`Host`].
    pub ledger: crate::ledger::Store,
    /// See [`Host`].
    pub identity: crate::identity::Identity,
    /// See [`Host`].
    pub settings: crate::config::Settings,
    /// See [`Host`].
    pub env: Vec<(std::ffi::OsString, std::ffi::OsString)>,
    /// See [`Host`].
    pub health_port: u16,
    /// See [`Host`].
    pub cli_dir: Option<std::path::PathBuf>,
    /// See [`Host`].
    pub redactor: crate::log::Redactor,
    /// See [`Host`].
    pub clock: Arc<crate::clock::Clock>,
    /// Which agent CLIs are looked for, and where.
    pub search: crate::discover::Search,
}

/// The core with all that serves it.
pub struct Driver {
    host: Arc<Host>,
    events: mpsc::Receiver<Event>,
    daemon: Daemon,
    effects: Effects,
    tapes: Tapes,
    requests: BTreeMap<OpId, CancellationToken>,
    runs: BTreeMap<OpId, mpsc::UnboundedSender<KillStep>>,
    conn: Option<Conn>,
    health: watch::Sender<HealthSnapshot>,
    exit: Option<ExitReport>,
    /// When the ledger tries again what it could not write.
    write_again_at: Option<tokio::time::Instant>,
    /// Tells of another token.
    replaced: Replaced,
    alarm: Alarm,
    access: facts::AccessTold,
}

/// Why a driver does not go on, although its core would.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenUp<E> {
    /// For whoever started it.
    pub why: E,
    /// For the end of what is recorded, where no text of an error belongs.
    pub recorded: &'static str,
}

/// Whoever drops a driver that runs has nothing more to do with it: that is an end too. After a panic there is none.
impl Drop for Driver {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.tapes.close("abandoned", &self.daemon);
        }
    }
}

impl Driver {
    /// Makes the core and carries out what it wants first. Must be called inside the runtime that will drive it.
    ///
    /// # Errors
    /// See [`DriverError`].
    pub fn new(
        parts: Parts,
        config: Config,
        seed: Seed,
        records: &[Record],
        health: watch::Sender<HealthSnapshot>,
    ) -> Result<Self, DriverError> {
        let (sender, events) = mpsc::channel(EVENTS);
        let replaced = parts.client.credential().replaced();
        let host = Arc::new(Host {
            client: parts.client,
            launcher: parts.launcher,
            book: crate::book::Book::new(parts.ledger.clone()),
            actions: crate::actions::Book::default(),
            catalogues: crate::actions::Catalogues::default(),
            ledger: parts.ledger,
            identity: parts.identity,
            skills: Library::new(&parts.settings.workspaces_root),
            round: Round::default(),
            settings: parts.settings,
            timing: config.timers.clone(),
            env: parts.env,
            health_port: parts.health_port,
            cli_dir: parts.cli_dir,
            redactor: parts.redactor,
            clock: parts.clock,
            prober: Prober::new(parts.search),
            recovered: SetOnce::new(),
            events: sender,
            set: Mutex::new(RuntimeSet::default()),
            listed: Mutex::new(Listed::default()),
            served: Mutex::default(),
            directories: Mutex::default(),
            registrations: Mutex::default(),
            reach: Reach::default(),
            unusable: Unusable::default(),
            absent: absent::Absent::default(),
            stopping: CancellationToken::new(),
            over: CancellationToken::new(),
            line: Mutex::default(),
            heard: watch::Sender::new(()),
            has_work: SetOnce::new(),
        });
        let mut effects = Effects::new();
        let now = host.clock.now();
        let daemon = Daemon::new(config.clone(), seed, now, &mut effects)?;
        let tapes = Tapes::start(records, (&config, seed, now), effects.as_slice())?;
        let mut driver = Self {
            host,
            events,
            daemon,
            effects,
            tapes,
            requests: BTreeMap::new(),
            runs: BTreeMap::new(),
            conn: None,
            health,
            exit: None,
            write_again_at: None,
            replaced,
            alarm: Alarm::new(),
            access: facts::AccessTold::default(),
        };
        driver.perform();
        Ok(driver)
    }

    /// Something that events can be given with.
    pub fn events(&self) -> mpsc::Sender<Event> {
        self.host.events.clone()
    }

    /// A way to what the flight recorder has, if there is one.
    pub fn tap(&self) -> Option<Tap> {
        self.tapes.tap()
    }

    /// What becomes of the recordings of whole runs.
    pub fn recordings(&self) -> Recordings {
        self.tapes.recordings()
    }

    /// What is shared.
    pub fn host(&self) -> &Arc<Host> {
        &self.host
    }

    /// Drives the core until it wants the process to end.
    pub async fn run(self) -> ExitReport {
        match self.run_unless(std::future::pending::<GivenUp<std::convert::Infallible>>()).await {
            Ok(report) => report,
            Err(never) => match never {},
        }
    }

    /// Drives the core until it wants the process to end, or until `give_up` says why there is no sense in going on. What was recorded
    /// ends with a reason in both cases.
    ///
    /// # Errors
    /// What `give_up` says.
    pub async fn run_unless<E>(mut self, give_up: impl Future<Output = GivenUp<E>>) -> Result<ExitReport, E> {
        tokio::pin!(give_up);
        let given_up = loop {
            if self.exit.is_some() {
                break None;
            }
            tokio::select! {
                biased;
                given_up = &mut give_up => break Some(given_up),
                () = self.wait() => {}
            }
            for _ in 0..BURST {
                let Ok(event) = self.events.try_recv() else { break };
                self.step(&event);
            }
        };
        // After a restart runs go on without this process: their supervisors do not need it. So they do where the credential is refused, or
        // nothing is found to work with, which somebody will put right.
        if given_up.is_none() && self.exit.as_ref().is_none_or(|report| !report.cause.leaves_runs()) {
            self.end_runs().await;
        } else {
            for entry in self.host.book.all() {
                entry.disk().leave();
            }
        }
        // What is on its way ends with the driver.
        self.conn = None;
        self.host.stopping.cancel();
        for request in self.requests.values() {
            request.cancel();
        }
        self.host.prober.close().await;
        let state = crate::service::state_dir(&self.host.settings);
        // What left the group of a program that was asked.
        let _ = tokio::task::spawn_blocking(move || asked::end_own(&state)).await;
        // Only supervisors that wait for a task are ended.
        self.host.launcher.close().await;
        let ledger = self.host.ledger.clone();
        // It ends with the disk's own time: a disk that hangs is not waited for.
        let settled = tokio::task::spawn_blocking(move || ledger.settle());
        if tokio::time::timeout(LAST_RUNS, settled).await.is_err() {
            tracing::warn!("the disk does not answer: what was written last may not survive a power cut");
        }
        if let Some(GivenUp { why, recorded }) = given_up {
            self.tapes.close(recorded, &self.daemon);
            return Err(why);
        }
        let report = self.exit.take().unwrap_or_else(|| unreachable!("the loop ends with a report"));
        facts::log_exit(&report);
        self.tapes.close(record::last_words(report.cause), &self.daemon);
        Ok(report)
    }

    /// Kills what still runs: the core was hurried, or did not wait any longer. Output that there is no room for stays in the run's directory.
    async fn end_runs(&mut self) {
        for run in self.runs.values() {
            // A run that has just ended takes no more steps.
            let _ = run.send(KillStep::Kill);
        }
        self.host.over.cancel();
        let ended = async {
            while !self.runs.is_empty() {
                let Some(event) = self.events.recv().await else { return };
                if let Event::Run { op, run: RunEvent::Ended { .. } } = event {
                    self.runs.remove(&op);
                }
            }
        };
        if tokio::time::timeout(LAST_RUNS, ended).await.is_err() {
            tracing::error!(runs = self.runs.len(), "agents were killed, but their end was not seen");
        }
    }

    /// Waits for the next event or deadline, and takes it.
    async fn wait(&mut self) {
        let again = self.write_again();
        let deadline = self.daemon.next_wakeup().map(|(at, _)| at);
        let host = self.host.clone();
        tokio::select! {
            biased;
            () = self.replaced.next() => self.step(&Event::Credential),
            event = self.events.recv() => {
                if let Some(event) = event {
                    self.step(&event);
                }
            }
            () = tokio::time::sleep_until(again.unwrap_or_else(tokio::time::Instant::now)), if again.is_some() => {}
            () = self.alarm.until(&host.clock, deadline) => {
                // An alarm may go off early, where the system has none that knows of suspend.
                if deadline.is_some_and(|at| at <= self.host.clock.now().mono) {
                    self.step(&Event::Tick);
                }
            }
        }
    }

    fn step(&mut self, event: &Event) {
        if self.exit.is_some() {
            return;
        }
        match event {
            Event::Api { op, .. } | Event::Fs { op, .. } => drop(self.requests.remove(op)),
            Event::Run { op, run: RunEvent::Ended { .. } } => drop(self.runs.remove(op)),
            Event::Stop { .. } => self.host.stopping.cancel(),
            _ => {}
        }
        if matches!(event, Event::Fs { r: Ok(FsReply::Probed { .. }), .. }) {
            self.publish_agents();
            self.publish_tasks();
            self.host.heard.send_replace(());
        }
        let now = self.host.clock.now();
        self.daemon.handle(now, event, &mut self.effects);
        self.tapes.step(now, event, self.effects.as_slice(), &self.daemon);
        self.perform();
    }

    fn perform(&mut self) {
        let mut effects = std::mem::take(&mut self.effects);
        let (mut stated, mut another_set) = (false, false);
        for effect in effects.drain() {
            stated |= matches!(effect, Effect::Fact { .. });
            another_set |= matches!(effect, Effect::Runtime { .. });
            self.start(effect);
        }
        self.effects = effects;
        // With its first runtime a daemon may turn out to be up.
        if stated || another_set {
            self.publish_tasks();
        }
        if another_set {
            self.publish_runtimes();
        }
    }

    /// Starts one effect; nothing here waits.
    fn start(&mut self, effect: Effect) {
        match effect {
            Effect::Api { op, call, deadline } => {
                let left = deadline.since(self.host.clock.now().mono);
                let cancel = self.request(op);
                let limit = Limit::from(left).left_to_canceller(BACKSTOP).or_when(cancel);
                self.spawn(async move |host| {
                    let r = panics::answered(api::perform(&host, &call, limit), Err(ApiError::Unknown)).await;
                    Event::Api { op, r }
                });
            }
            Effect::Fs { op, call } => {
                let cancel = self.request(op);
                self.spawn(async move |host| {
                    let failed = FsError::Failed { reason: FailReason::Unknown };
                    let r = panics::answered(disk::perform(&host, &call, cancel), Err(failed)).await;
                    Event::Fs { op, r }
                });
            }
            Effect::Run { op, call } => self.launch(op, call),
            Effect::Kill { op, step } => {
                if let Some(run) = self.runs.get(&op) {
                    // A run that has just ended takes no more steps.
                    let _ = run.send(step);
                }
            }
            Effect::Cancel { op } => {
                if let Some(request) = self.requests.get(&op) {
                    request.cancel();
                }
            }
            Effect::Ws { conn, cmd } => self.ws(conn, cmd),
            Effect::Progress { claim, step } => self.progress(claim, step),
            Effect::Runtime { set, runtime, change } => self.host.set().change(set, runtime, change),
            Effect::Keep { claim, .. } => self.keep(claim, &effect),
            Effect::Forget { claim } => self.forget(claim),
            Effect::ForgetAction { action } => self.host.actions.forget(&action),
            Effect::DropIdleConnections => {
                if let Err(error) = self.host.client.drop_idle() {
                    tracing::warn!("the HTTP client could not be renewed: {error}");
                }
            }
            // Nobody asks for it.
            Effect::Gate { .. } => {}
            Effect::Fact { fact } => {
                if let Fact::Ending { claim, why } = &fact {
                    self.note_ending(*claim, *why);
                }
                self.access.log(&fact);
                match fact {
                    Fact::AccessLost => self.host.client.credential().doubt(true),
                    Fact::AccessBack => self.host.client.credential().doubt(false),
                    _ => {}
                }
                facts::log(&self.host.book, &fact);
            }
            Effect::Exit { report } => self.exit = Some(report),
            _ => tracing::error!("the core wants something that this adapter does not know; this is a bug"),
        }
    }

    fn request(&mut self, op: OpId) -> CancellationToken {
        let token = CancellationToken::new();
        self.requests.insert(op, token.clone());
        token
    }

    fn spawn<F>(&self, work: impl FnOnce(Arc<Host>) -> F)
    where
        F: Future<Output = Event> + Send + 'static,
    {
        let host = self.host.clone();
        let work = work(host.clone());
        tokio::spawn(async move {
            let event = work.await;
            host.tell(event).await;
        });
    }

    fn launch(&mut self, op: OpId, call: LaunchCall) {
        let (steps, queue) = mpsc::unbounded_channel();
        self.runs.insert(op, steps);
        tokio::spawn(run::perform(self.host.clone(), op, call, queue));
    }

    fn ws(&mut self, conn: ConnGen, cmd: WsCmd) {
        match cmd {
            WsCmd::Connect { without, .. } => {
                let runtimes =
                    self.host.set().runtimes.keys().filter(|id| !without.contains(id)).cloned().collect();
                self.conn = Some(Conn::dial(self.host.clone(), conn, runtimes));
            }
            WsCmd::Beat { runtime } => {
                if let Some(live) = self.conn.as_ref().filter(|live| live.generation == conn) {
                    live.beat(runtime);
                }
            }
            WsCmd::Close if self.conn.as_ref().is_some_and(|live| live.generation == conn) => {
                self.conn = None;
            }
            _ => {}
        }
    }

    fn progress(&self, claim: ClaimKey, step: u8) {
        let Some(entry) = self.host.book.get(claim) else { return };
        let host = self.host.clone();
        tokio::spawn(async move {
            let summary = match step {
                1 => format!("Launching {}", entry.provider),
                _ => "Finishing task".to_owned(),
            };
            let request = ProgressRequest { summary: &summary, step: u32::from(step), total: 2 };
            if let Err(error) = host.client.progress(&entry.id, &request, PROGRESS).await {
                tracing::debug!(task = %entry.id, %error, "a progress note was not taken");
            }
        });
    }
}
