//! A control plane and a daemon that works for it, both in this process, talking over loopback HTTP and WebSocket.

use super::interrupts::Interrupts;
use super::place::Place;
use crate::config::{Env, Settings};
use crate::driver::{Record, Recordings};
use crate::log::{Redactor, Registration};
use crate::plane::{Config, Refusal, Server, StartError};
use crate::service::{ServeError, Service, Start};
use longshore_core::effect::ExitReport;
use longshore_core::event::Event;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Instant, sleep_until};

/// The agent CLI that is used.
pub(crate) const PROVIDER: &str = "claude";
/// From the start of the daemon to its first runtime. The agent CLI may take 10 s to say its version, the login shell 3 s to find it.
const READY: Duration = Duration::from_secs(40);
/// The daemon's wait between two claims, if no hint comes.
const POLL: Duration = Duration::from_secs(2);
/// From the second request to stop to the daemon's end.
const FORCED: Duration = Duration::from_secs(5);

/// Why a control plane with a daemon did not come up, or ended by itself.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EmbeddedError {
    /// The directory of the run cannot be made.
    #[error("{} cannot be made: {source}", path.display())]
    Directory {
        /// What cannot be made.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The log of the run cannot be written.
    #[error("the log {} cannot be written: {source}", path.display())]
    Log {
        /// Where it is.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The control plane did not start.
    #[error(transparent)]
    Plane(#[from] StartError),
    /// The daemon did not start.
    #[error(transparent)]
    Daemon(#[from] ServeError),
    /// The daemon did not register in time.
    #[error("the daemon did not register with its control plane within {0:?}; its log says more")]
    NotReady(Duration),
    /// The daemon ended, and nobody had asked it to.
    #[error("the daemon ended by itself; its log says more")]
    Ended,
    /// The daemon broke.
    #[error("the daemon broke ({0}); this is a bug")]
    Broke(JoinError),
    /// The daemon does not end.
    #[error("the daemon did not end within {0:?} and is left to the end of this program")]
    Stuck(Duration),
    /// The task is not on the disk.
    #[error("the task cannot be kept: {0}")]
    NotKept(String),
    /// The control plane did not take a task.
    #[error("the embedded control plane did not take the task: {0}")]
    Enqueue(#[from] Refusal),
}

/// Both of them.
pub(crate) struct Embedded {
    pub(crate) server: Server,
    pub(crate) daemon: Daemon,
    /// What becomes of what is recorded.
    pub(crate) recordings: Recordings,
}

/// The daemon.
pub(crate) struct Daemon {
    events: mpsc::Sender<Event>,
    run: JoinHandle<Result<ExitReport, ServeError>>,
    /// Keeps the token out of the log.
    _token: Registration,
}

/// What a pair is started with.
pub(crate) struct Wanted<'a> {
    /// Settled in the place already, see [`Place::settle`].
    pub(crate) settings: Settings,
    pub(crate) place: &'a Place,
    /// What the agents inherit.
    pub(crate) env: &'a Env,
    /// Id and name of the only workspace.
    pub(crate) workspace: (&'a str, &'a str),
    /// The file that the control plane is kept in; `None` for memory alone.
    pub(crate) database: Option<PathBuf>,
    pub(crate) records: Vec<Record>,
    pub(crate) redactor: Redactor,
}

impl Embedded {
    /// Starts both; the daemon looks for its agent CLI and registers while this returns.
    pub(crate) async fn start(wanted: Wanted<'_>) -> Result<Self, EmbeddedError> {
        let Wanted { mut settings, place, env, workspace: (id, name), database, records, redactor } = wanted;
        let workspaces = vec![(id.to_owned(), name.to_owned())];
        let server = Server::start(Config { workspaces, database, ..Config::default() }).await?;
        settings.server_url = server.url();
        settings.token = server.token().clone();
        settings.token_file = None;
        // Any free port, so that several can run at the same time.
        settings.health_port = 0;
        settings.poll_interval = POLL;
        let token = redactor.register(&settings.token);
        let start = Start {
            settings,
            env: env.clone(),
            cwd: place.dir().to_owned(),
            records,
            redactor,
            only: Some(PROVIDER),
        };
        let service = Service::new(start)?;
        let (events, recordings) = (service.events(), service.recordings());
        let daemon = Daemon { events, run: tokio::spawn(service.run()), _token: token };
        Ok(Self { server, daemon, recordings })
    }

    /// Waits until the daemon can take tasks.
    pub(crate) async fn ready(&mut self) -> Result<(), EmbeddedError> {
        tokio::select! {
            biased;
            why = self.daemon.died() => Err(why),
            online = self.server.wait_for_runtime(PROVIDER, READY) => {
                online.map(drop).map_err(|_| EmbeddedError::NotReady(READY))
            }
        }
    }
}

impl Daemon {
    /// Waits for an end that nobody asked for.
    pub(crate) async fn died(&mut self) -> EmbeddedError {
        match (&mut self.run).await {
            Ok(Ok(_)) => EmbeddedError::Ended,
            Ok(Err(error)) => error.into(),
            Err(error) => EmbeddedError::Broke(error),
        }
    }

    /// Has it end: its runs are ended and reported first. After `patience`, or at a signal, it is hurried.
    pub(crate) async fn stop(
        mut self,
        patience: Duration,
        interrupts: &mut Interrupts,
    ) -> Result<ExitReport, EmbeddedError> {
        let begun = Instant::now();
        let mut hurried = false;
        // A daemon that has ended takes no wish, and its end is seen below.
        let _ = self.events.send(Event::stop()).await;
        loop {
            let until = begun + if hurried { patience + FORCED } else { patience };
            tokio::select! {
                biased;
                ended = &mut self.run => {
                    return ended.map_err(EmbeddedError::Broke)?.map_err(EmbeddedError::from);
                }
                () = interrupts.next() => {}
                () = sleep_until(until) => {
                    if std::mem::replace(&mut hurried, true) {
                        return Err(EmbeddedError::Stuck(begun.elapsed()));
                    }
                }
            }
            let _ = self.events.send(Event::stop()).await;
        }
    }
}
