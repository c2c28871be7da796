//! The routes, and the port that they are served on.

use super::connection::{Caller, Connections};
use super::guard;
use super::report::{HealthIdentity, HealthSnapshot, render};
use super::socket_owner;
use super::trace::{self, Recording};
use crate::clock::Clock;
use crate::config::duration::{self, Days, SignedNanos};
use crate::trace_sink::Tap;
use axum::extract::{ConnectInfo, RawQuery, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, get, on, post};
use axum::{Router, middleware};
use longshore_core::event::StopKind;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use thiserror::Error;
use tokio::sync::{mpsc, watch};

/// Somebody asked for the daemon's end with `POST /shutdown`, and has the answer already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShutdownRequest {
    /// What becomes of the runs.
    pub how: StopKind,
}

/// The local port cannot be had.
#[derive(Debug, Error)]
pub enum BindError {
    /// Somebody else listens there.
    #[error(
        "address 127.0.0.1:{port} is already in use{}: if a daemon of this profile runs, stop it first; \
         else choose another --profile or --health-port", owner(*owner_id)
    )]
    InUse {
        /// The port.
        port: u16,
        /// The id of the user whose program has it, where the system tells.
        owner_id: Option<u32>,
    },
    /// Any other reason.
    #[error("cannot listen on 127.0.0.1:{port}: {source}; choose another port with --health-port")]
    Other {
        /// The port.
        port: u16,
        /// Why.
        source: io::Error,
    },
}

fn owner(id: Option<u32>) -> String {
    id.map(|id| format!(" by a program of user id {id}")).unwrap_or_default()
}

/// The port, taken but not served yet: who connects waits.
#[derive(Debug)]
pub struct HealthListener {
    listener: TcpListener,
    port: u16,
}

impl HealthListener {
    /// Takes a port of 127.0.0.1; 0 takes any that is free.
    ///
    /// # Errors
    /// The port is in use, or may not be used.
    pub fn bind(port: u16) -> Result<Self, BindError> {
        let at = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        let bound = TcpListener::bind(at).and_then(|listener| {
            listener.set_nonblocking(true)?;
            let port = listener.local_addr()?.port();
            Ok(Self { listener, port })
        });
        bound.map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => BindError::InUse { port, owner_id: socket_owner::of_listener(at) },
            _ => BindError::Other { port, source },
        })
    }

    /// The port that was taken.
    pub fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn into_std(self) -> TcpListener {
        self.listener
    }

    /// Answers requests until the sender of the snapshots is dropped. Who may control the daemon gets what its flight recorder has from
    /// `recorder`. Wishes for the daemon's end go to `shutdowns` after they are answered; one of them is enough.
    ///
    /// # Errors
    /// The listener cannot be used by this runtime.
    pub async fn serve(
        self,
        identity: HealthIdentity,
        clock: Arc<Clock>,
        snapshots: watch::Receiver<HealthSnapshot>,
        recorder: Option<Tap>,
        shutdowns: mpsc::Sender<ShutdownRequest>,
    ) -> io::Result<()> {
        let connections = Connections::new(self, shutdowns)?;
        let mut until = snapshots.clone();
        let daemon = Arc::new(Daemon {
            identity,
            clock,
            snapshots,
            recording: Recording::new(recorder),
            asked: AtomicBool::new(false),
        });
        let service = routes(daemon).into_make_service_with_connect_info::<Caller>();
        let ended = async move { while until.changed().await.is_ok() {} };
        axum::serve(connections, service).with_graceful_shutdown(ended).await
    }
}

struct Daemon {
    identity: HealthIdentity,
    clock: Arc<Clock>,
    snapshots: watch::Receiver<HealthSnapshot>,
    recording: Recording,
    /// Whether the end was asked for here, which the snapshots show a little later.
    asked: AtomicBool,
}

fn routes(daemon: Arc<Daemon>) -> Router {
    // HEAD comes with GET. Clients of today may ask with POST and PUT as well.
    let readable = MethodFilter::GET.or(MethodFilter::POST).or(MethodFilter::PUT);
    Router::new()
        .route("/health", on(readable, health))
        .route("/shutdown", post(shutdown))
        .route(trace::PATH, get(async |State(daemon): State<Arc<Daemon>>| daemon.recording.answer().await))
        .fallback(async || plain(StatusCode::NOT_FOUND, "not found"))
        .method_not_allowed_fallback(async || plain(StatusCode::METHOD_NOT_ALLOWED, "method not allowed"))
        .layer(middleware::from_fn(guard::check))
        .layer(middleware::map_response(one_request_a_connection))
        .with_state(daemon)
}

async fn health(State(daemon): State<Arc<Daemon>>) -> Response {
    let now = daemon.snapshots.borrow().clone();
    json(render(&daemon.identity, &now, daemon.clock.now().mono))
}

async fn shutdown(
    State(daemon): State<Arc<Daemon>>,
    ConnectInfo(caller): ConnectInfo<Caller>,
    RawQuery(query): RawQuery,
) -> Response {
    let how = match asked_for(query.as_deref().unwrap_or_default()) {
        Ok(how) => how,
        Err(problem) => return plain(StatusCode::BAD_REQUEST, problem),
    };
    // A second request hurries. Whoever asks for runs to be waited for does not want that.
    let again = daemon.asked.swap(true, Ordering::Relaxed) || daemon.snapshots.borrow().state.is_ending();
    if how == StopKind::Now || !again {
        caller.shut_down_afterwards(how);
    }
    json("{\"status\":\"shutting down\"}\n".to_owned())
}

/// What kind of stop a query such as `how=drain&within=30m` asks for.
fn asked_for(query: &str) -> Result<StopKind, &'static str> {
    let (mut how, mut within) = (None, None);
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "how" => how = Some(value),
            "within" => within = Some(value),
            _ => {}
        }
    }
    match (how.as_deref(), within) {
        (None | Some("stop"), None) => Ok(StopKind::Now),
        (Some("restart"), None) => Ok(StopKind::Restart),
        (Some("drain"), within) => {
            let within_ms = within.map(|text| drain_time(&text)).transpose()?;
            Ok(StopKind::Drain { within_ms })
        }
        (None | Some("stop" | "restart"), Some(_)) => Err("`within` goes with how=drain"),
        (Some(_), _) => Err("`how` is stop, drain or restart"),
    }
}

/// A bound of a drain in milliseconds, from a text such as `30m`.
fn drain_time(text: &str) -> Result<u64, &'static str> {
    let time = duration::parse(text, Days::Refused).ok().and_then(SignedNanos::non_negative);
    let time = time.ok_or("`within` is a duration such as 90s or 30m")?;
    u64::try_from(time.as_millis()).map_err(|_| "`within` is too long")
}

/// Then an idle connection is one without a request, and those are bounded.
async fn one_request_a_connection(mut response: Response) -> Response {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

fn json(body: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// An answer for people: one line.
pub(super) fn plain(status: StatusCode, text: &'static str) -> Response {
    let headers =
        [(header::CONTENT_TYPE, "text/plain; charset=utf-8"), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")];
    (status, headers, format!("{text}\n")).into_response()
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
