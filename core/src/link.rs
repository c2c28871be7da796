//! The control connection: dialled, kept, and dialled again. It brings hints; nothing depends on it.
//!
//! It names the runtimes of the set, and a server refuses it as a whole because of a single one that it does not know. So after such a refusal
//! the next dial waits until each runtime has beaten, and leaves out those that are refused. While the server refuses the credential nothing is
//! dialled, and a connection that is up is left as it is.

use crate::backoff::Failures;
use crate::effect::{Fact, WsCmd};
use crate::env::Cx;
use crate::id::{ConnGen, Generation, RuntimeId};
use crate::time::Instant;
use crate::timer::TimerKey;
use serde::{Deserialize, Serialize};

/// What a connection is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Named {
    /// The runtimes of the set in this state,
    pub(crate) set: Generation,
    /// but not these.
    pub(crate) without: Vec<RuntimeId>,
}

#[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum State {
    /// Not wanted yet, or not any more.
    Off,
    /// Until the timer fires; or, if that is over already, until nothing else hinders it.
    Waiting {
        due: bool,
    },
    Dialing {
        named: Named,
    },
    Up {
        named: Named,
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
    /// The set when the server refused a connection, and what that left out, until it is known which runtime it means.
    refused: Option<Named>,
    /// The stretch of time, as to the credential, in which the last one was dialled.
    epoch: u32,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            state: State::Off,
            conn: ConnGen(0),
            failures: Failures::default(),
            closed: false,
            reconciled: None,
            refused: None,
            epoch: 0,
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

    /// Whether it waits until it is known why the server has refused it.
    pub(crate) const fn is_asking(&self) -> bool {
        self.refused.is_some()
    }

    /// In which stretch of time, as to the credential, it was dialled.
    pub(crate) const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Dials, for the first time or after a wait.
    pub(crate) fn dial(&mut self, cx: &mut Cx<'_>, named: Named) {
        if self.closed || matches!(self.state, State::Dialing { .. } | State::Up { .. }) {
            return;
        }
        cx.disarm(&TimerKey::Link);
        if self.is_asking() || cx.is_barred() {
            self.state = State::Waiting { due: true };
            return;
        }
        self.conn.0 += 1;
        self.epoch = cx.env.access.epoch();
        self.state = State::Dialing { named: named.clone() };
        cx.ws(self.conn, WsCmd::Connect { set: named.set, without: named.without });
    }

    /// Dials if that is due and was hindered until now.
    pub(crate) fn dial_if_due(&mut self, cx: &mut Cx<'_>, named: Named) {
        if self.state == (State::Waiting { due: true }) {
            self.dial(cx, named);
        }
    }

    /// Closes one that is up or being made, and dials at once.
    fn dial_anew(&mut self, cx: &mut Cx<'_>, named: Named) {
        if matches!(self.state, State::Dialing { .. } | State::Up { .. }) {
            cx.ws(self.conn, WsCmd::Close);
            self.state = State::Waiting { due: true };
        }
        self.dial(cx, named);
    }

    /// The set of runtimes changed, or which of them are left out: a connection is for what it named. Returns whether one that was up is gone.
    pub(crate) fn set_changed(&mut self, cx: &mut Cx<'_>, named: Named) -> bool {
        match &self.state {
            State::Up { named: old, .. } if *old != named => {
                self.failures.reset();
                self.dial_anew(cx, named);
                true
            }
            // What is known by then is looked at once it is known why the last one was refused.
            State::Waiting { .. } if !self.is_asking() => {
                self.dial(cx, named);
                false
            }
            State::Waiting { .. } | State::Off | State::Dialing { .. } | State::Up { .. } => false,
        }
    }

    /// It is up. Returns whether everything should be looked at again: not twice within a second, but then after it.
    pub(crate) fn up(&mut self, cx: &mut Cx<'_>, named: Named) -> Up {
        let State::Dialing { named: old } = &self.state else { return Up::Ignored };
        if *old != named {
            // Not seen while dialling; the server would not send hints for the new ones.
            self.dial_anew(cx, named);
            return Up::Ignored;
        }
        self.state = State::Up { named, since: cx.now.mono };
        let gap = cx.timing().reconcile_gap;
        if let Some(due) = self.reconciled.map(|at| at.after(gap)).filter(|due| *due > cx.now.mono) {
            cx.arm_at(TimerKey::Reconcile, due);
            return Up::Yes { reconcile: false };
        }
        Up::Yes { reconcile: self.reconcile(cx) }
    }

    /// Whether everything is to be looked at again now. While the credential is refused nothing can be; it is when that is over.
    pub(crate) fn reconcile(&mut self, cx: &mut Cx<'_>) -> bool {
        cx.disarm(&TimerKey::Reconcile);
        if !self.is_up() || cx.is_barred() {
            return false;
        }
        self.reconciled = Some(cx.now.mono);
        cx.fact(Fact::Reconciled);
        true
    }

    /// It is gone, or was never made.
    pub(crate) fn down(&mut self, cx: &mut Cx<'_>) {
        let timing = &cx.cfg.timers;
        if let State::Up { since, .. } = self.state
            && cx.now.mono.since(since) >= timing.link_settled
        {
            self.failures.reset();
        }
        self.state = if self.closed { State::Off } else { State::Waiting { due: false } };
        if !self.closed {
            let wait = self.failures.next_wait(timing.link_backoff, &mut cx.env.rng);
            cx.arm(TimerKey::Link, wait);
        }
    }

    /// The server refused to make it because of a runtime that it names. Returns whether it is to be found out which.
    pub(crate) fn refused(&mut self, cx: &mut Cx<'_>, named: Named) -> bool {
        let without = match &self.state {
            State::Dialing { named } if !self.closed => Some(named.without.clone()),
            _ => None,
        };
        self.down(cx);
        // A set that has changed by now is dialled after the wait, as it is after any other failure.
        self.refused = without.map(|without| Named { set: named.set, without });
        self.is_asking()
    }

    /// It is known why it was refused, as far as the server says: if that has changed what is named, it is dialled at once.
    pub(crate) fn told_why(&mut self, cx: &mut Cx<'_>, named: Named) {
        let Some(refused) = self.refused.take() else { return };
        if refused == named {
            self.dial_if_due(cx, named);
        } else if matches!(self.state, State::Waiting { .. }) {
            self.dial(cx, named);
        }
    }

    /// The machine has slept: whatever there was is dead, and nobody may notice for a minute.
    pub(crate) fn woke(&mut self, cx: &mut Cx<'_>, named: Named) {
        if self.state != State::Off && !cx.is_barred() {
            self.failures.reset();
            (self.refused, self.reconciled) = (None, None);
            self.dial_anew(cx, named);
        }
    }

    pub(crate) fn close(&mut self, cx: &mut Cx<'_>) {
        self.closed = true;
        cx.disarm(&TimerKey::Link);
        cx.disarm(&TimerKey::Reconcile);
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
