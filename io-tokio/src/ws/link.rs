//! A link that is up.

use super::inbound::Inbox;
use super::outbound::{FrameTicket, LinkSender, Outbound, SendError};
use crate::wire::frame::{self, Inbound, Outgoing};
use futures_util::{SinkExt, StreamExt};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::error::{CapacityError, Error, ProtocolError};
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

/// A link over which nothing came for so long is dead. The server pings every 54 s.
pub const READ_DEADLINE: Duration = Duration::from_mins(1);
/// A frame that is not written after so long ends the link.
pub const WRITE_DEADLINE: Duration = Duration::from_secs(10);
/// Most bytes of a message from the server. A smaller bound would lose claims.
pub const MAX_MESSAGE: usize = 64 << 20;
/// What is read from the socket at once.
const READ_BUFFER: usize = 16 << 10;
/// Steps before other tasks get their turn.
const BUDGET: usize = 64;

/// What a link brings.
#[derive(Debug)]
pub enum LinkEvent {
    /// A frame.
    Frame(Inbound),
    /// Hints were thrown away as nobody took them: look at everything once.
    HintsLost,
    /// The link is down. Nothing else comes, and this is said again to whoever asks again.
    Down(DownReason),
}

/// Why a link is down.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DownReason {
    /// The other side ended it. This is how links normally end.
    #[error("the other side ended the control link")]
    Ended,
    /// Nothing came for too long.
    #[error("nothing came over the control link for {} s", READ_DEADLINE.as_secs())]
    Silent,
    /// A frame could not be written in time.
    #[error("a frame could not be written to the control link within {} s", WRITE_DEADLINE.as_secs())]
    Stalled,
    /// The connection failed.
    #[error("the control link failed: {0}")]
    Failed(String),
    /// A message was larger than [`MAX_MESSAGE`].
    #[error("a message of more than {} MiB came over the control link", MAX_MESSAGE >> 20)]
    TooLarge,
    /// Far more answers came than were asked for.
    #[error("more answers came over the control link than were asked for")]
    Flooded,
    /// We dropped it.
    #[error("the control link was closed")]
    Closed,
}

/// A control link. Dropping it closes the socket without a word, as both sides do; frames that were not begun by then
/// never are.
#[derive(Debug)]
pub struct Link {
    out: Arc<Outbound>,
    inbox: Arc<Inbox>,
    task: JoinHandle<()>,
}

/// How long a link may be silent, and a frame may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadlines {
    pub(super) read: Duration,
    pub(super) write: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self { read: READ_DEADLINE, write: WRITE_DEADLINE }
    }
}

impl Link {
    /// Takes over a connection on which the handshake is done.
    pub(super) async fn start<S>(stream: S, runtimes: usize, deadlines: Deadlines) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER)
            .max_message_size(Some(MAX_MESSAGE))
            .max_frame_size(Some(MAX_MESSAGE));
        let socket = WebSocketStream::from_raw_socket(stream, Role::Client, Some(config)).await;
        let (out, inbox) = (Outbound::new(runtimes), Inbox::new(runtimes));
        let task = tokio::spawn({
            let (out, inbox) = (out.clone(), inbox.clone());
            async move {
                let reason = run(socket, &out, &inbox, deadlines).await;
                out.close();
                inbox.close(reason);
            }
        });
        Self { out, inbox, task }
    }

    /// A link over any connection, for the tests of what uses one.
    #[cfg(test)]
    pub(crate) async fn over<S>(stream: S) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        Self::start(stream, 1, Deadlines::default()).await
    }

    /// Queues a frame; see [`LinkSender::send`].
    pub fn send(&self, frame: &Outgoing<'_>) -> Result<FrameTicket, SendError> {
        self.sender().send(frame)
    }

    /// Something to send frames with from elsewhere.
    pub fn sender(&self) -> LinkSender {
        LinkSender(self.out.clone())
    }

    /// The next event. Giving up waiting loses none.
    pub async fn recv(&mut self) -> LinkEvent {
        self.inbox.next().await
    }

    /// How many frames were malformed or unknown.
    pub fn ignored(&self) -> u64 {
        self.inbox.ignored()
    }

    /// Closes the socket and waits until that is done.
    pub async fn close(mut self) {
        self.shut();
        // It was cancelled: that is no failure.
        drop((&mut self.task).await);
    }

    fn shut(&self) {
        self.out.close();
        self.inbox.close(DownReason::Closed);
        self.task.abort();
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.shut();
    }
}

/// Reads and writes at the same time, in one task, so that a pong never waits for a lock, a frame or a consumer.
async fn run<S>(
    mut socket: WebSocketStream<S>,
    out: &Outbound,
    inbox: &Inbox,
    deadlines: Deadlines,
) -> DownReason
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut silence = pin!(sleep(deadlines.read));
    let mut stall = pin!(sleep(deadlines.write));
    let mut writing = false;

    let mut step = |cx: &mut Context<'_>| -> Poll<Result<(), DownReason>> {
        let mut moved = false;
        if !writing && let Some(text) = out.begin(cx) {
            socket.start_send_unpin(Message::Text(text)).map_err(down)?;
            writing = true;
            stall.as_mut().reset(Instant::now() + deadlines.write);
        }
        if writing {
            match socket.poll_flush_unpin(cx) {
                Poll::Ready(flushed) => {
                    flushed.map_err(down)?;
                    writing = false;
                    moved = true;
                }
                Poll::Pending if stall.as_mut().poll(cx).is_ready() => {
                    return Poll::Ready(Err(DownReason::Stalled));
                }
                Poll::Pending => {}
            }
        }
        match socket.poll_next_unpin(cx) {
            Poll::Ready(None) => return Poll::Ready(Err(DownReason::Ended)),
            Poll::Ready(Some(message)) => {
                silence.as_mut().reset(Instant::now() + deadlines.read);
                moved = true;
                match message.map_err(down)? {
                    Message::Text(text) => inbox.push(frame::decode(&text))?,
                    // The socket has the pong ready; flushing sends it.
                    Message::Ping(_) if !writing => {
                        writing = true;
                        stall.as_mut().reset(Instant::now() + deadlines.write);
                    }
                    Message::Ping(_) | Message::Pong(_) => {}
                    Message::Binary(_) | Message::Frame(_) => inbox.push(None)?,
                    // Leaving without another look at the socket keeps it from answering.
                    Message::Close(_) => return Poll::Ready(Err(DownReason::Ended)),
                }
            }
            Poll::Pending if silence.as_mut().poll(cx).is_ready() => {
                return Poll::Ready(Err(DownReason::Silent));
            }
            Poll::Pending => {}
        }
        if moved { Poll::Ready(Ok(())) } else { Poll::Pending }
    };

    std::future::poll_fn(move |cx| {
        for _ in 0..BUDGET {
            match step(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(reason)) => return Poll::Ready(reason),
                Poll::Pending => return Poll::Pending,
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

fn down(error: Error) -> DownReason {
    match error {
        Error::ConnectionClosed
        | Error::AlreadyClosed
        | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => DownReason::Ended,
        Error::Capacity(CapacityError::MessageTooLong { .. }) => DownReason::TooLarge,
        other => DownReason::Failed(other.to_string()),
    }
}
