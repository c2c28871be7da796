//! The server's handle: start, stop, what is looked at and waited for, and faults. The operator's side is in [`super::operator`].

use super::database::OpenError;
use super::door::{Door, DoorHandle, Line};
use super::faults::{Fault, Rule};
use super::log::{Log, Request};
use super::restored::Restored;
use super::shape::random_hex;
use super::shared::{Shared, Switches};
use super::waiting::WaitError;
use super::{pass, routes};
use crate::secret::Secret;
use axum::extract::ws::Message as Frame;
use axum::middleware::from_fn_with_state;
use longshore_core::id::{RuntimeId, TaskId, WorkspaceId};
use longshore_core::plane::{Hint, Message, Plane, Refusal, Runtime, State, Task, limits};
use longshore_core::time::Now;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::task::JoinSet;
use uuid::Uuid;

/// How the server is to be.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen: a loopback address. Port 0 takes a free one.
    pub addr: SocketAddr,
    /// The token that daemons must show; `None` for a new one.
    pub token: Option<Secret>,
    /// Workspaces as id and name.
    pub workspaces: Vec<(String, String)>,
    /// Whether there is a batch claim.
    pub batch_claim: bool,
    /// Whether there is a control channel.
    pub websocket: bool,
    /// Whether claims are taken on it.
    pub rpc: bool,
    /// Decides the ids that are made; `None` for random ones.
    pub seed: Option<u64>,
    /// How many requests the log remembers.
    pub keep_requests: usize,
    /// Time between two pings on a control channel.
    pub ping_every: Duration,
    /// The file that everything is kept in; `None` for memory alone.
    pub database: Option<PathBuf>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            addr: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            token: None,
            workspaces: vec![("ws-1".into(), "Local".into())],
            batch_claim: true,
            websocket: true,
            rpc: true,
            seed: None,
            keep_requests: 50_000,
            ping_every: Duration::from_secs(54),
            database: None,
        }
    }
}

/// The server did not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// It would be seen from outside.
    #[error("the embedded control plane listens on loopback only, not on {0}: use 127.0.0.1 or ::1")]
    NotLoopback(SocketAddr),
    /// The address cannot be had.
    #[error("cannot listen on {addr}: {source}")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The database cannot be used.
    #[error(transparent)]
    Database(#[from] OpenError),
    /// The plane does not take the workspaces.
    #[error("cannot take the workspaces: {0}")]
    Workspaces(#[from] Refusal),
}

/// A running control plane. It ends with [`Server::stop`] or when it is dropped.
pub struct Server {
    pub(super) shared: Arc<Shared>,
    door: DoorHandle,
    addr: SocketAddr,
    tasks: JoinSet<()>,
}

impl Server {
    /// Starts to serve; must be called inside a tokio runtime.
    ///
    /// # Errors
    /// See [`StartError`].
    #[expect(
        clippy::unused_async,
        reason = "says that a runtime is needed, and leaves room to await one day"
    )]
    pub async fn start(config: Config) -> Result<Self, StartError> {
        if !config.addr.ip().is_loopback() {
            return Err(StartError::NotLoopback(config.addr));
        }
        let seed = config.seed.unwrap_or_else(|| Uuid::new_v4().as_u64_pair().0);
        let (mut restored, writer) = match &config.database {
            None => (Restored::new(seed), None),
            Some(path) => {
                let (restored, writer) = Restored::open(path, seed)?;
                (restored, Some(writer))
            }
        };
        for (id, name) in &config.workspaces {
            restored.plane.add_workspace(WorkspaceId::from(id.as_str()), name)?;
        }
        restored.plane.take_hints();
        let token = config.token.unwrap_or_else(|| Secret::new(format!("mul_{}", random_hex())));
        let switches = Switches {
            batch_claim: config.batch_claim,
            websocket: config.websocket,
            rpc: config.rpc,
            worktree_gate: true,
        };
        let log = Log::new(config.keep_requests);
        let shared = Arc::new(Shared::new(token, config.ping_every, restored, writer, log, switches));
        let (door, handle) =
            Door::bind(config.addr).map_err(|source| StartError::Listen { addr: config.addr, source })?;
        let addr = door.addr();
        let app = routes::router(Arc::clone(&shared))
            .layer(from_fn_with_state(Arc::clone(&shared), pass::watched))
            .into_make_service_with_connect_info::<Line>();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            // Accepting never fails: the door retries.
            let _ = axum::serve(door, app).await;
        });
        let sweeper = Arc::clone(&shared);
        tasks.spawn(async move {
            loop {
                tokio::time::sleep(limits::SWEEP_EVERY).await;
                sweeper.act(|inner, now| inner.plane.sweep(now));
            }
        });
        Ok(Self { shared, door: handle, addr, tasks })
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// The base URL, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The token that daemons must show, as it was at the start.
    pub fn token(&self) -> &Secret {
        &self.shared.token
    }

    /// One task's row.
    pub fn task(&self, task: &TaskId) -> Option<Task> {
        self.shared.lock().plane.task(task).cloned()
    }

    /// Every task's row, in the order of their ids.
    pub fn tasks(&self) -> Vec<Task> {
        self.shared.lock().plane.tasks().cloned().collect()
    }

    /// What a task's agent said, in the order of arrival.
    pub fn transcript(&self, task: &TaskId) -> Vec<Message> {
        self.shared.lock().plane.transcript(task).to_vec()
    }

    /// Every runtime's row.
    pub fn runtimes(&self) -> Vec<Runtime> {
        self.shared.lock().plane.runtimes().cloned().collect()
    }

    /// Does anything with the plane at the present time; its hints are passed on, and those who wait look again.
    pub fn with_plane<T>(&self, with: impl FnOnce(&mut Plane, Now) -> T) -> T {
        self.shared.act(|inner, now| with(&mut inner.plane, now))
    }

    /// Moves the plane's clock on, as if that time had passed, and lets it sweep.
    pub fn advance(&self, by: Duration) {
        self.shared.act(|inner, now| inner.advance(by, now));
    }

    /// Waits until a runtime of `provider` is online.
    ///
    /// # Errors
    /// [`WaitError::TimedOut`].
    pub async fn wait_for_runtime(&self, provider: &str, within: Duration) -> Result<RuntimeId, WaitError> {
        let look = |plane: &Plane| {
            find_runtime(plane, provider, None).filter(|row| row.online).map(|row| row.id.clone())
        };
        self.wait_until(within, look).await
    }

    /// Waits until the task is at `state`.
    ///
    /// # Errors
    /// [`WaitError::EndedOtherwise`] as soon as it cannot come to that any more; [`WaitError::TimedOut`].
    pub async fn wait_for(&self, task: &TaskId, state: State, within: Duration) -> Result<Task, WaitError> {
        let row = self
            .wait_until(within, |plane| {
                plane.task(task).filter(|row| row.state == state || row.state.is_terminal()).cloned()
            })
            .await?;
        if row.state == state {
            return Ok(row);
        }
        let said = |text: &Option<_>| text.as_deref().unwrap_or("nothing said").to_owned();
        Err(WaitError::EndedOtherwise {
            task: task.clone(),
            state: row.state.as_str(),
            detail: format!("{}: {}", said(&row.failure_reason), said(&row.error)),
            recent: self.shared.lock().recent(),
        })
    }

    /// Waits until `look` finds something in the plane.
    ///
    /// # Errors
    /// [`WaitError::TimedOut`].
    pub async fn wait_until<T>(
        &self,
        within: Duration,
        mut look: impl FnMut(&Plane) -> Option<T>,
    ) -> Result<T, WaitError> {
        self.shared.until(within, |inner| look(&inner.plane)).await
    }

    /// The requests so far, oldest first.
    pub fn requests(&self) -> Vec<Request> {
        self.requests_where(|_| true)
    }

    /// Those of the requests so far that `wanted` is true for.
    pub fn requests_where(&self, mut wanted: impl FnMut(&Request) -> bool) -> Vec<Request> {
        self.shared.lock().log.iter().filter(|request| wanted(request)).cloned().collect()
    }

    /// Waits for a request, also one that has come already. It is looked at when it arrives and when it is answered.
    ///
    /// # Errors
    /// [`WaitError::TimedOut`].
    pub async fn wait_for_request(
        &self,
        within: Duration,
        mut wanted: impl FnMut(&Request) -> bool,
    ) -> Result<Request, WaitError> {
        self.shared.until(within, |inner| inner.log.iter().find(|request| wanted(request)).cloned()).await
    }

    /// Waits until `count` requests came for which `wanted` is true; the last of them.
    ///
    /// # Errors
    /// [`WaitError::TimedOut`].
    pub async fn wait_for_requests(
        &self,
        count: usize,
        within: Duration,
        mut wanted: impl FnMut(&Request) -> bool,
    ) -> Result<Request, WaitError> {
        let nth = count.saturating_sub(1);
        self.shared
            .until(within, |inner| inner.log.iter().filter(|request| wanted(request)).nth(nth).cloned())
            .await
    }

    /// Puts a fault in force; of several that are for a request, the first one acts.
    pub fn fault(&self, rule: Rule) -> Fault {
        let fault = Fault::new(rule);
        self.shared.lock().add_fault(fault.clone());
        fault
    }

    /// Pushes a hint, whatever the plane thinks. One for the runtime with the empty id goes to every control channel.
    pub fn push(&self, hint: &Hint) {
        self.shared.lock().links.push(hint);
    }

    /// Sends a frame of these very words on every control channel.
    pub fn push_text(&self, text: &str) {
        self.shared.lock().links.send(&Frame::Text(text.into()));
    }

    /// Says goodbye on every control channel: the daemon sees a close frame, and then the end.
    pub fn close_links(&self) {
        self.shared.lock().links.send(&Frame::Close(None));
    }

    /// Has all control channels, those to come included, hang: nothing is read from them and nothing written to them. Or has
    /// them go on.
    pub fn stall_links(&self, on: bool) {
        self.shared.lock().links.stalled.send_replace(on);
    }

    /// How many control channels are open.
    pub fn links(&self) -> usize {
        self.shared.lock().links.len()
    }

    /// Waits until so many control channels are open.
    ///
    /// # Errors
    /// [`WaitError::TimedOut`].
    pub async fn wait_for_links(&self, count: usize, within: Duration) -> Result<(), WaitError> {
        self.shared.until(within, |inner| (inner.links.len() == count).then_some(())).await
    }

    /// Cuts every connection, control channels included; new ones are taken. They are gone when this returns.
    pub async fn cut_connections(&self) {
        self.door.cut_all().wait().await;
    }

    /// An outage: every connection is cut and new ones are refused. The state stays.
    pub async fn pause(&self) {
        self.door.close().await;
    }

    /// The end of an outage: connections are taken again on the same port.
    pub async fn resume(&self) {
        self.door.open().await;
    }

    /// Waits until everything that was done so far is in the database; without one there is nothing to wait for. What daemons do is not
    /// answered before it is.
    ///
    /// # Errors
    /// A text that says why it is not there; it is tried again without being asked for.
    pub async fn stored(&self) -> Result<(), String> {
        self.shared.stored().await.map_err(|why| why.to_string())
    }

    /// Ends it: no connection is left when this returns, and the database is closed.
    pub async fn stop(mut self) {
        self.door.close().await;
        self.tasks.shutdown().await;
        let shared = Arc::clone(&self.shared);
        // The last write waits for the disk. A runtime that ends has no use for it.
        let _ = tokio::task::spawn_blocking(move || shared.close()).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.door.cut_all();
    }
}

pub(super) fn find_runtime<'a>(
    plane: &'a Plane,
    provider: &str,
    workspace: Option<&WorkspaceId>,
) -> Option<&'a Runtime> {
    let fits = |row: &&Runtime| {
        row.provider.as_str() == provider && workspace.is_none_or(|workspace| row.workspace == *workspace)
    };
    plane.runtimes().filter(fits).max_by_key(|row| row.online)
}
