//! What is to happen, ordered by time and then by when it was decided.

use crate::effect::ApiCall;
use crate::event::Event;
use crate::id::OpId;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// What becomes of a request that reaches the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Its answer comes back.
    Answered,
    /// Its answer is lost, and the client notices.
    Lost,
    /// Its answer is lost, and nobody notices.
    Hangs,
    /// A proxy answers in its place.
    Gateway,
    /// Its answer cannot be read.
    Garbled,
}

/// Something that is to happen. What is about a life of the daemon that is over does nothing to its successor.
#[derive(Debug)]
pub(super) enum What {
    /// The core wants to be called.
    Tick { life: u32 },
    /// A request reaches the server, whoever sent it.
    Arrive { life: u32, op: OpId, call: ApiCall, fate: Fate },
    /// Something is complete.
    Done { life: u32, op: OpId, event: Event },
    /// Something is to be told that completes nothing.
    Tell { life: u32, event: Event },
    /// Effects that wait are carried out.
    Perform { life: u32 },
    /// An agent goes on.
    Agent(usize),
    /// An agent's last process is gone.
    AgentEnds(usize),
    /// Users do something.
    Users,
    /// The server looks at what time alone does.
    Sweep,
    /// Trouble comes or goes.
    Weather,
    /// The daemon is started again.
    Restart,
    /// A task's directory is removed by somebody.
    Vanish,
    /// The gate is let go.
    Release { life: u32, owner: crate::event::GateOwner },
}

#[derive(Debug)]
struct Due {
    at: u64,
    seq: u64,
    what: What,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.seq == other.seq
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        (Reverse(self.at), Reverse(self.seq)).cmp(&(Reverse(other.at), Reverse(other.seq)))
    }
}

/// All of it.
#[derive(Debug, Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Due>,
    seq: u64,
}

impl Queue {
    pub(super) fn push(&mut self, at: u64, what: What) {
        self.seq += 1;
        self.heap.push(Due { at, seq: self.seq, what });
    }

    /// No disk hangs any more: what it works on is done by `at`.
    pub(super) fn disk_is_done_by(&mut self, at: u64) {
        let hangs = |due: &Due| due.at > at && matches!(due.what, What::Done { event: Event::Fs { .. }, .. });
        let (late, mut rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.heap).into_iter().partition(hangs);
        rest.extend(late.into_iter().map(|due| Due { at, ..due }));
        self.heap = rest.into();
    }

    pub(super) fn pop(&mut self) -> Option<(u64, What)> {
        self.heap.pop().map(|due| (due.at, due.what))
    }
}
