//! The control connection: dialled, kept, and dialled again. It brings hints; nothing depends on it.

use crate::backoff::Failures;
use crate::effect::WsCmd;
use crate::env::Cx;
use crate::id::{ConnGen, Generation};
use crate::time::Instant;
use crate::timer::TimerKey;
use serde::{Deserialize, Serialize};

#[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum State {
    /// Not wanted yet, or not any more.
    Off,
    /// Until the timer fires.
    Waiting,
    Dialing {
        set: Generation,
    },
    Up {
        set: Generation,
        since: Instant,
    },
}

/// The connection.
#[derive(Debug, Hash, Serialize, Deserialize)]
pub(crate) struct Link {
    state: State,
    conn: ConnGen,
    failures: Failures,
    closed: bool,
    /// When everything was last looked at again because a connection came up.
    reconciled: Option<Instant>,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            state: State::Off,
            conn: ConnGen(0),
            failures: Failures::default(),
            closed: false,
            reconciled: None,
        }
    }
}

impl Link {
    pub(crate) const fn is_up(&self) -> bool {
        matches!(self.state, State::Up { .. })
    }

    /// Whether an event of this life counts.
    pub(crate) fn is_current(&self, conn: ConnGen) -> bool {
        conn == self.conn && matches!(self.state, State::Dialing { .. } | State::Up { .. })
    }

    /// Dials, for the first time or after a wait.
    pub(crate) fn dial(&mut self, cx: &mut Cx<'_>, set: Generation) {
        if self.closed || matches!(self.state, State::Dialing { .. } | State::Up { .. }) {
            return;
        }
        cx.disarm(&TimerKey::Link);
        self.conn.0 += 1;
        self.state = State::Dialing { set };
        cx.ws(self.conn, WsCmd::Connect { set, without: Vec::new() });
    }

    /// The set of runtimes changed: a connection is for the set that it named. Returns whether one that was up is gone.
    pub(crate) fn set_changed(&mut self, cx: &mut Cx<'_>, set: Generation) -> bool {
        match self.state {
            State::Up { set: old, .. } if old != set => {
                cx.ws(self.conn, WsCmd::Close);
                self.state = State::Waiting;
                self.failures.reset();
                self.dial(cx, set);
                true
            }
            State::Waiting => {
                self.dial(cx, set);
                false
            }
            State::Off | State::Dialing { .. } | State::Up { .. } => false,
        }
    }

    /// It is up. Returns whether everything should be looked at again: not twice within a second.
    pub(crate) fn up(&mut self, cx: &mut Cx<'_>, set: Generation) -> Up {
        let State::Dialing { set: named } = self.state else { return Up::Ignored };
        if named != set {
            // Not seen while dialling; the server would not send hints for the new ones.
            cx.ws(self.conn, WsCmd::Close);
            self.state = State::Waiting;
            self.dial(cx, set);
            return Up::Ignored;
        }
        self.state = State::Up { set, since: cx.now.mono };
        let gap = cx.timing().reconcile_gap;
        let reconcile = self.reconciled.is_none_or(|at| cx.now.mono.since(at) >= gap);
        if reconcile {
            self.reconciled = Some(cx.now.mono);
        }
        Up::Yes { reconcile }
    }

    /// It is gone, or was never made.
    pub(crate) fn down(&mut self, cx: &mut Cx<'_>) {
        let timing = &cx.cfg.timers;
        if let State::Up { since, .. } = self.state
            && cx.now.mono.since(since) >= timing.link_settled
        {
            self.failures.reset();
        }
        self.state = if self.closed { State::Off } else { State::Waiting };
        if !self.closed {
            let wait = self.failures.next_wait(timing.link_backoff, &mut cx.env.rng);
            cx.arm(TimerKey::Link, wait);
        }
    }

    pub(crate) fn close(&mut self, cx: &mut Cx<'_>) {
        self.closed = true;
        cx.disarm(&TimerKey::Link);
        if matches!(self.state, State::Dialing { .. } | State::Up { .. }) {
            cx.ws(self.conn, WsCmd::Close);
        }
        self.state = State::Off;
    }
}

/// What became of a connection that came up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Up {
    /// It is not the one that is wanted.
    Ignored,
    /// It serves.
    Yes {
        /// Whether statuses and the workspace list are due.
        reconcile: bool,
    },
}
