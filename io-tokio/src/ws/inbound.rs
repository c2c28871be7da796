//! Frames on their way in, between the link and a consumer that may be slow.
//!
//! The link never waits for its consumer, so that pings are answered in time. Hints beyond a bound are thrown away, and
//! the consumer is told to look at everything once. Answers are never thrown away, as they may hold claimed tasks: a
//! server that sends far more of them than it was asked for loses the link.

use super::link::{DownReason, LinkEvent};
use crate::wire::frame::Inbound;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Most hints that wait.
pub const MAX_QUEUED_HINTS: usize = 1024;
/// Most bytes of answers that wait.
pub const MAX_QUEUED_BYTES: usize = 128 << 20;
/// Least bound on the number of answers that wait.
const MIN_ANSWERS: usize = 1024;

#[derive(Debug)]
pub(super) struct Inbox {
    max_answers: usize,
    state: Mutex<State>,
    news: Notify,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Inbound>,
    hints: usize,
    answer_bytes: usize,
    hints_lost: bool,
    ignored: u64,
    down: Option<DownReason>,
}

fn answer_bytes(frame: &Inbound) -> usize {
    match frame {
        Inbound::Rpc(response) => response.size(),
        _ => 0,
    }
}

impl Inbox {
    pub(super) fn new(runtimes: usize) -> Arc<Self> {
        let max_answers = MIN_ANSWERS.max(4 * runtimes);
        Arc::new(Self { max_answers, state: Mutex::default(), news: Notify::new() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a frame; `None` is one that was not understood.
    pub(super) fn push(&self, frame: Option<Inbound>) -> Result<(), DownReason> {
        let mut state = self.lock();
        let Some(frame) = frame else {
            state.ignored += 1;
            return Ok(());
        };
        if frame.is_hint() {
            if state.hints >= MAX_QUEUED_HINTS {
                state.hints_lost = true;
                return Ok(());
            }
            state.hints += 1;
        } else {
            let bytes = state.answer_bytes + answer_bytes(&frame);
            if state.waiting.len() - state.hints >= self.max_answers || bytes > MAX_QUEUED_BYTES {
                return Err(DownReason::Flooded);
            }
            state.answer_bytes = bytes;
        }
        state.waiting.push_back(frame);
        self.news.notify_one();
        Ok(())
    }

    /// Nothing comes after this.
    pub(super) fn close(&self, reason: DownReason) {
        self.lock().down.get_or_insert(reason);
        self.news.notify_one();
    }

    pub(super) fn ignored(&self) -> u64 {
        self.lock().ignored
    }

    pub(super) async fn next(&self) -> LinkEvent {
        loop {
            if let Some(event) = self.pop() {
                return event;
            }
            self.news.notified().await;
        }
    }

    fn pop(&self) -> Option<LinkEvent> {
        let mut state = self.lock();
        if std::mem::take(&mut state.hints_lost) {
            return Some(LinkEvent::HintsLost);
        }
        let Some(frame) = state.waiting.pop_front() else {
            return state.down.clone().map(LinkEvent::Down);
        };
        if frame.is_hint() {
            state.hints -= 1;
        } else {
            state.answer_bytes -= answer_bytes(&frame);
        }
        Some(LinkEvent::Frame(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::frame;

    fn ack() -> Option<Inbound> {
        frame::decode(r#"{"type":"daemon:heartbeat_ack","payload":{"runtime_id":"r"}}"#)
    }

    #[tokio::test]
    async fn hints_beyond_the_bound_become_one_note_and_answers_stay() {
        let inbox = Inbox::new(1);
        for _ in 0..MAX_QUEUED_HINTS + 5 {
            inbox.push(Some(Inbound::WorkspacesChanged)).expect("taken");
        }
        inbox.push(ack()).expect("taken");
        assert!(matches!(inbox.next().await, LinkEvent::HintsLost));
        for _ in 0..MAX_QUEUED_HINTS {
            assert!(matches!(inbox.next().await, LinkEvent::Frame(Inbound::WorkspacesChanged)));
        }
        assert!(matches!(inbox.next().await, LinkEvent::Frame(Inbound::HeartbeatAck(_))));
        inbox.push(Some(Inbound::WorkspacesChanged)).expect("there is room again");
        assert!(matches!(inbox.next().await, LinkEvent::Frame(Inbound::WorkspacesChanged)));
    }

    #[tokio::test]
    async fn a_flood_of_answers_ends_the_link_and_loses_none() {
        let inbox = Inbox::new(1);
        for _ in 0..MIN_ANSWERS {
            inbox.push(ack()).expect("taken");
        }
        assert_eq!(inbox.push(ack()), Err(DownReason::Flooded));
        inbox.close(DownReason::Flooded);
        for _ in 0..MIN_ANSWERS {
            assert!(matches!(inbox.next().await, LinkEvent::Frame(_)));
        }
        for _ in 0..2 {
            assert!(matches!(inbox.next().await, LinkEvent::Down(DownReason::Flooded)));
        }
    }

    #[test]
    fn what_is_not_understood_is_counted() {
        let inbox = Inbox::new(1);
        inbox.push(frame::decode("nonsense")).expect("ignored");
        assert_eq!(inbox.ignored(), 1);
    }
}
