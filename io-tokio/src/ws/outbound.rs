//! Frames on their way out. Until the writer begins one it can be recalled; what was recalled is never written.

use crate::wire::frame::Outgoing;
use crate::wire::json;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use tokio_tungstenite::tungstenite::Utf8Bytes;

/// Most bytes of a frame: the server drops the link for more.
pub const MAX_FRAME: usize = 64 << 10;
/// Least number of frames that may wait.
const MIN_QUEUE: usize = 16;

/// Why a frame was not taken. It is never written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Too many frames wait.
    #[error("{0} frames already wait on the control link")]
    Full(usize),
    /// The link is down.
    #[error("the control link is down")]
    Down,
    /// The server would not take it.
    #[error("a frame of {0} bytes is too large for the control link, which takes {MAX_FRAME}")]
    TooLarge(usize),
    /// It cannot be JSON.
    #[error("the frame cannot be written as JSON")]
    NoJson,
}

/// What became of a frame that was recalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recall {
    /// It was not begun and never will be.
    NotSent,
    /// Some of it may have left.
    Begun,
}

/// A handle on a frame. Dropping it changes nothing.
#[derive(Debug)]
pub struct FrameTicket {
    id: u64,
    queue: Arc<Outbound>,
}

impl FrameTicket {
    /// Takes the frame back if the writer has not begun it. Also answers for frames of a link that is down.
    pub fn recall(self) -> Recall {
        let mut state = self.queue.lock();
        match state.waiting.binary_search_by_key(&self.id, |(id, _)| *id) {
            Ok(at) => {
                state.waiting.remove(at);
                Recall::NotSent
            }
            Err(_) => Recall::Begun,
        }
    }
}

/// Sends frames over a link; any number may exist.
#[derive(Clone, Debug)]
pub struct LinkSender(pub(super) Arc<Outbound>);

impl LinkSender {
    /// Queues a frame. Frames are written in the order in which they were queued.
    pub fn send(&self, frame: &Outgoing<'_>) -> Result<FrameTicket, SendError> {
        let bytes = json::encode(frame).map_err(|_| SendError::NoJson)?;
        if bytes.len() > MAX_FRAME {
            return Err(SendError::TooLarge(bytes.len()));
        }
        let text = Utf8Bytes::try_from(bytes).map_err(|_| SendError::NoJson)?;
        let mut state = self.0.lock();
        if state.down {
            return Err(SendError::Down);
        }
        if state.waiting.len() >= self.0.capacity {
            return Err(SendError::Full(state.waiting.len()));
        }
        let id = state.next;
        state.next += 1;
        state.waiting.push_back((id, text));
        if let Some(writer) = state.writer.take() {
            writer.wake();
        }
        Ok(FrameTicket { id, queue: self.0.clone() })
    }
}

/// The queue between senders and the writer.
#[derive(Debug)]
pub(super) struct Outbound {
    capacity: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By rising id.
    waiting: VecDeque<(u64, Utf8Bytes)>,
    next: u64,
    down: bool,
    writer: Option<Waker>,
}

impl Outbound {
    /// A whole round of heartbeats always fits.
    pub(super) fn new(runtimes: usize) -> Arc<Self> {
        Arc::new(Self { capacity: MIN_QUEUE.max(2 * runtimes), state: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins the next frame: from here on it cannot be recalled. `None` means that the writer is woken when there
    /// is one.
    pub(super) fn begin(&self, cx: &Context<'_>) -> Option<Utf8Bytes> {
        let mut state = self.lock();
        if state.down {
            return None;
        }
        let next = state.waiting.pop_front();
        if next.is_none() {
            state.writer = Some(cx.waker().clone());
        }
        next.map(|(_, text)| text)
    }

    /// No frame begins after this. Those that wait can still be recalled.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.down = true;
        state.writer = None;
    }
}
