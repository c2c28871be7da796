//! The listening socket, which can be closed and opened again on the same port, and connections that can be cut.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1024;
/// The pause before the socket is tried again after the system refused it.
const RETRY: Duration = Duration::from_millis(20);

/// One connection's off switch.
#[derive(Clone, Debug)]
pub(super) struct Line {
    cut: CancellationToken,
    reset: Arc<AtomicBool>,
}

impl Line {
    /// From now on nothing is read and nothing is written: the peer sees the connection end.
    pub(super) fn cut(&self) {
        self.cut.cancel();
    }

    /// The same, and the peer is told at once that what it was sent counts for nothing.
    pub(super) fn reset(&self) {
        self.reset.store(true, Ordering::Release);
        self.cut();
    }
}

impl axum::extract::connect_info::Connected<axum::serve::IncomingStream<'_, Door>> for Line {
    fn connect_info(stream: axum::serve::IncomingStream<'_, Door>) -> Self {
        stream.io().line.clone()
    }
}

/// The connections between two cuts.
#[derive(Clone, Debug, Default)]
struct Era {
    cut: CancellationToken,
    open: TaskTracker,
}

/// Whether the door is to be open, and whether it is; all lines of the present.
#[derive(Clone, Debug)]
pub(super) struct DoorHandle {
    wanted: watch::Sender<bool>,
    is_open: watch::Receiver<bool>,
    era: Arc<Mutex<Era>>,
}

impl DoorHandle {
    /// Refuses new connections and cuts all there are; none is left when this returns.
    pub(super) async fn close(&self) {
        self.wanted.send_replace(false);
        // An error means that the door is gone, which is closed too.
        let _ = self.is_open.clone().wait_for(|open| !open).await;
        self.cut_all().wait().await;
    }

    /// Takes connections again, on the same port.
    pub(super) async fn open(&self) {
        self.wanted.send_replace(true);
        let _ = self.is_open.clone().wait_for(|open| *open).await;
    }

    /// Cuts all connections there are; what is given back tells when they are gone.
    pub(super) fn cut_all(&self) -> TaskTracker {
        let mut era = self.era.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = std::mem::take(&mut *era);
        ended.cut.cancel();
        ended.open.close();
        ended.open
    }
}

/// What axum accepts connections from.
pub(super) struct Door {
    addr: SocketAddr,
    /// Bound and never listening: it keeps the port ours while the listener is away.
    _port: TcpSocket,
    listener: Option<TcpListener>,
    wanted: watch::Receiver<bool>,
    is_open: watch::Sender<bool>,
    era: Arc<Mutex<Era>>,
}

impl Door {
    /// Binds `addr` and listens.
    pub(super) fn bind(addr: SocketAddr) -> io::Result<(Self, DoorHandle)> {
        let port = socket(addr)?;
        let addr = port.local_addr()?;
        let listener = socket(addr)?.listen(BACKLOG)?;
        let (wanted, wanted_rx) = watch::channel(true);
        let (is_open, is_open_rx) = watch::channel(true);
        let era = Arc::default();
        let handle = DoorHandle { wanted, is_open: is_open_rx, era: Arc::clone(&era) };
        let door = Self { addr, _port: port, listener: Some(listener), wanted: wanted_rx, is_open, era };
        Ok((door, handle))
    }

    pub(super) fn addr(&self) -> SocketAddr {
        self.addr
    }

    fn admit(&self, stream: TcpStream) -> Wire {
        // A stream whose peer is gone already refuses this, and the first read tells so.
        let _ = stream.set_nodelay(true);
        let era = self.era.lock().unwrap_or_else(PoisonError::into_inner);
        let cut = era.cut.child_token();
        Wire {
            stream,
            gone: Box::pin(cut.clone().cancelled_owned()),
            line: Line { cut, reset: Arc::default() },
            _open: era.open.token(),
        }
    }
}

fn socket(addr: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if addr.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    Ok(socket)
}

impl axum::serve::Listener for Door {
    type Io = Wire;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Wire, SocketAddr) {
        loop {
            if !*self.wanted.borrow_and_update() {
                self.listener = None;
                self.is_open.send_replace(false);
                if self.wanted.changed().await.is_err() {
                    // Nobody can open it again.
                    return std::future::pending().await;
                }
                continue;
            }
            let Some(listener) = &self.listener else {
                match socket(self.addr).and_then(|socket| socket.listen(BACKLOG)) {
                    Ok(listener) => {
                        self.listener = Some(listener);
                        self.is_open.send_replace(true);
                    }
                    Err(_) => tokio::time::sleep(RETRY).await,
                }
                continue;
            };
            tokio::select! {
                biased;
                changed = self.wanted.changed() => if changed.is_err() {
                    return std::future::pending().await;
                },
                accepted = listener.accept() => match accepted {
                    Ok((stream, peer)) => return (self.admit(stream), peer),
                    // Out of descriptors, or a peer that left: neither ends the server.
                    Err(_) => tokio::time::sleep(RETRY).await,
                },
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.addr)
    }
}

/// A connection that ends when its line is cut.
pub(super) struct Wire {
    stream: TcpStream,
    gone: Pin<Box<WaitForCancellationFutureOwned>>,
    line: Line,
    _open: TaskTrackerToken,
}

impl Drop for Wire {
    fn drop(&mut self) {
        if self.line.reset.load(Ordering::Acquire) {
            // A stream that is gone already needs no reset.
            let _ = self.stream.set_zero_linger();
        }
    }
}

fn was_cut() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "the connection was cut on purpose")
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.gone.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(was_cut()));
        }
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        if self.line.cut.is_cancelled() {
            return Poll::Ready(Err(was_cut()));
        }
        Pin::new(&mut self.stream).poll_write(cx, from)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
