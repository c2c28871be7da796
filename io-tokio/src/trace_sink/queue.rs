//! What waits to be written: bytes between the driver, which never waits, and one writing thread, which sleeps while there
//! are none.

use super::tap::Written;
use super::{FLUSH_AFTER, FLUSH_BYTES, QUEUE_BYTES};
use longshore_core::trace::StepNumber;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// Who wants to see what has been written so far.
pub(super) type Asked = oneshot::Sender<io::Result<Written>>;

/// Whole lines, in order.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) bytes: Vec<u8>,
    /// Where new segments begin.
    pub(super) cuts: Vec<Cut>,
    /// The first step that is lost if the bytes before the first cut are.
    pub(super) first: StepNumber,
    /// They are answered when the bytes are written.
    pub(super) asked: Vec<Asked>,
}

impl Batch {
    fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.asked.is_empty()
    }
}

/// A new segment begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    /// At this byte.
    pub(super) at: usize,
    /// The first step that is lost if the bytes of this segment are.
    pub(super) first: StepNumber,
}

/// Lines that were not written.
#[derive(Debug)]
pub(super) struct Failed {
    /// The first step in them; everything after it is lost as well.
    pub(super) from: StepNumber,
    /// Why.
    pub(super) error: String,
    /// Whether it is worth a try at once, and not after a while.
    pub(super) at_once: bool,
}

/// What became of lines that were pushed.
#[derive(Debug)]
pub(super) enum Pushed {
    Taken,
    Full,
    Failed(Failed),
}

#[derive(Debug, Default)]
struct State {
    batch: Batch,
    failed: Option<Failed>,
    closed: bool,
    done: bool,
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// For the writer.
    filled: Condvar,
    /// For who closes.
    done: Condvar,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole between any two statements that change it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds lines. `first` is the first step that is lost with them, `cut` the place in them where a new segment begins. With
    /// `force` they are taken however much waits.
    pub(super) fn push(&self, lines: &[u8], first: StepNumber, cut: Option<Cut>, force: bool) -> Pushed {
        let mut state = self.lock();
        if let Some(failed) = state.failed.take() {
            return Pushed::Failed(failed);
        }
        let before = state.batch.bytes.len();
        // One line or checkpoint may be large: it is taken whenever half of the room is free.
        if !force && before + lines.len() > QUEUE_BYTES && before > QUEUE_BYTES / 2 {
            return Pushed::Full;
        }
        if before == 0 {
            state.batch.first = first;
        }
        state.batch.bytes.extend_from_slice(lines);
        state.batch.cuts.extend(cut.map(|cut| Cut { at: before + cut.at, ..cut }));
        let after = before + lines.len();
        drop(state);
        if before == 0 || (before < FLUSH_BYTES && after >= FLUSH_BYTES) {
            self.filled.notify_one();
        }
        Pushed::Taken
    }

    /// Whether half of the room is free.
    pub(super) fn has_room(&self) -> bool {
        self.lock().batch.bytes.len() <= QUEUE_BYTES / 2
    }

    /// Asks for what is written, once all that waits now is. Nobody answers when the recording is over: the question is dropped.
    pub(super) fn ask(&self, asked: Asked) {
        let mut state = self.lock();
        if !state.done {
            state.batch.asked.push(asked);
            drop(state);
            self.filled.notify_one();
        }
    }

    /// No more lines will come.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_one();
    }

    /// Whether no more lines will come.
    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Waits until everything is written, or could not be. Returns whether that came about in time, and what failed last.
    pub(super) fn wait_done(&self, within: Duration) -> (bool, Option<Failed>) {
        let waited = self.done.wait_timeout_while(self.lock(), within, |state| !state.done);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (state.done, state.failed.take())
    }

    /// For the writer: waits for lines, then a little for more, unless somebody asks for what there is, then takes all. `false`: there will be
    /// none any more.
    pub(super) fn take(&self, into: &mut Batch) -> bool {
        let idle = |state: &mut State| state.batch.is_empty() && !state.closed;
        let waited = self.filled.wait_while(self.lock(), idle).unwrap_or_else(PoisonError::into_inner);
        let few = |state: &mut State| {
            state.batch.bytes.len() < FLUSH_BYTES && state.batch.asked.is_empty() && !state.closed
        };
        let waited = self.filled.wait_timeout_while(waited, FLUSH_AFTER, few);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.batch.is_empty() {
            return false;
        }
        into.bytes.clear();
        into.bytes.shrink_to(QUEUE_BYTES);
        into.cuts.clear();
        std::mem::swap(into, &mut state.batch);
        true
    }

    /// For the writer: lines were not written. What waits behind them is thrown away, as it would follow a hole.
    pub(super) fn fail(&self, failed: Failed) {
        let mut state = self.lock();
        state.batch.bytes.clear();
        state.batch.cuts.clear();
        state.failed = Some(failed);
    }

    /// For the writer: it is over.
    pub(super) fn finish(&self) {
        let mut state = self.lock();
        state.done = true;
        state.batch.asked.clear();
        drop(state);
        self.done.notify_all();
    }
}
