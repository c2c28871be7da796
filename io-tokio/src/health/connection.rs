//! Bounds what a connection can cost before it has sent a request, and tells when its answer is out.

use super::server::{HealthListener, ShutdownRequest};
use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use longshore_core::event::StopKind;
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{Sleep, sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// A connection must have sent a whole request head this long after it was made.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes that may be read before the head is whole.
pub const HEAD_LIMIT: usize = 64 * 1024;
/// Connections that may be without a request; one more closes the oldest.
pub const MAX_WAITING: usize = 64;

/// One connection, as its requests see it.
#[derive(Clone, Debug)]
pub(super) struct Caller(Arc<State>);

#[derive(Debug)]
struct State {
    peer: SocketAddr,
    local: SocketAddr,
    begun: AtomicBool,
    shutdown: OnceLock<StopKind>,
    evict: CancellationToken,
}

impl Caller {
    /// The head is whole: from here on the connection is not closed for being slow.
    pub(super) fn request_begun(&self) {
        self.0.begun.store(true, Ordering::Relaxed);
    }

    /// Asks the daemon to stop once the answer is out and the connection is closed.
    pub(super) fn shut_down_afterwards(&self, how: StopKind) {
        // A connection has one request.
        let _ = self.0.shutdown.set(how);
    }

    pub(super) fn peer(&self) -> SocketAddr {
        self.0.peer
    }

    pub(super) fn local(&self) -> SocketAddr {
        self.0.local
    }
}

impl Connected<IncomingStream<'_, Connections>> for Caller {
    fn connect_info(stream: IncomingStream<'_, Connections>) -> Self {
        stream.io().caller.clone()
    }
}

/// Accepts connections, and closes the oldest silent one where there are too many.
pub(super) struct Connections {
    listener: TcpListener,
    waiting: VecDeque<Weak<State>>,
    shutdowns: mpsc::Sender<ShutdownRequest>,
}

impl Connections {
    pub(super) fn new(bound: HealthListener, shutdowns: mpsc::Sender<ShutdownRequest>) -> io::Result<Self> {
        let listener = TcpListener::from_std(bound.into_std())?;
        Ok(Self { listener, waiting: VecDeque::new(), shutdowns })
    }

    fn make_room(&mut self) {
        let silent = |state: &Weak<State>| state.upgrade().is_some_and(|s| !s.begun.load(Ordering::Relaxed));
        self.waiting.retain(silent);
        while self.waiting.len() >= MAX_WAITING {
            if let Some(oldest) = self.waiting.pop_front().and_then(|state| state.upgrade()) {
                oldest.evict.cancel();
            }
        }
    }
}

impl Listener for Connections {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let (tcp, peer) = Listener::accept(&mut self.listener).await;
        self.make_room();
        let state = Arc::new(State {
            peer,
            // A socket that has no address any more is not served anyway.
            local: tcp.local_addr().unwrap_or(peer),
            begun: AtomicBool::new(false),
            shutdown: OnceLock::new(),
            evict: CancellationToken::new(),
        });
        self.waiting.push_back(Arc::downgrade(&state));
        let connection = Connection {
            tcp,
            deadline: Box::pin(sleep(HEAD_TIMEOUT)),
            evicted: Box::pin(state.evict.clone().cancelled_owned()),
            head_bytes: 0,
            caller: Caller(state),
            shutdowns: self.shutdowns.clone(),
        };
        (connection, peer)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// The bytes of one connection.
pub(super) struct Connection {
    tcp: TcpStream,
    deadline: Pin<Box<Sleep>>,
    evicted: Pin<Box<WaitForCancellationFutureOwned>>,
    head_bytes: usize,
    caller: Caller,
    shutdowns: mpsc::Sender<ShutdownRequest>,
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let waiting = !self.caller.0.begun.load(Ordering::Relaxed);
        if waiting {
            let late =
                self.deadline.as_mut().poll(cx).is_ready() || self.evicted.as_mut().poll(cx).is_ready();
            if late || self.head_bytes > HEAD_LIMIT {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
        }
        let before = into.filled().len();
        let result = Pin::new(&mut self.tcp).poll_read(cx, into);
        self.head_bytes += into.filled().len() - before;
        result
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tcp).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}

impl Drop for Connection {
    /// The answer has been handed to the system, or its reader is gone. A request that finds the queue full adds
    /// nothing to those that are in it.
    fn drop(&mut self) {
        if let Some(how) = self.caller.0.shutdown.get() {
            let _ = self.shutdowns.try_send(ShutdownRequest { how: *how });
        }
    }
}
