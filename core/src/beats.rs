//! Heartbeats: each runtime on a grid of its own, over the control connection while its answers are fresh, over HTTP else.
//! A beat that hangs delays no other.
//!
//! While the server refuses the credential none is sent; the grid goes on. Where it refuses a connection because of a runtime that is named
//! for it, a beat of each tells which: one that is refused is left out of the next connection until a beat of it is taken.

use crate::effect::{ApiCall, Effect, WsCmd};
use crate::env::Cx;
use crate::error::{ApiError, Refusal};
use crate::event::ApiReply;
use crate::id::{ConnGen, OpId, RuntimeId};
use crate::op::ApiOp;
use crate::time::Instant;
use crate::timer::TimerKey;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// After this many passing failures in a row, connections in the pool are suspect.
const SUSPECT_AFTER: u32 = 2;
/// Beats that hints ask for are at least this far apart, for each runtime.
const HINT_GAP: Duration = Duration::from_secs(1);
/// So many beats are sent at once where each runtime has to beat; the others follow within `SPREAD`.
const AT_ONCE: usize = 64;
/// In which those beats follow.
const SPREAD: Duration = Duration::from_secs(1);

#[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Beat {
    next: Instant,
    in_flight: Option<OpId>,
    /// When the connection that is up last answered for this runtime, or came up.
    fresh: Option<Instant>,
    failures: u32,
    /// From when on a beat over HTTP is wanted, which has to wait: for the one on its way, because it came too soon, or for the credential.
    wanted: Option<Instant>,
    /// When one that was wanted was last sent.
    answered_hint: Option<Instant>,
}

/// What a beat over HTTP brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Beaten {
    /// The server does not know the runtime.
    pub(crate) gone: bool,
    /// Other runtimes are left out of connections than before.
    pub(crate) another_set: bool,
}

/// All heartbeats.
#[derive(Debug, Default, Hash, Serialize, Deserialize)]
pub(crate) struct Beats {
    beats: BTreeMap<RuntimeId, Beat>,
    link: Option<ConnGen>,
    /// A connection was refused, and the next beat of these tells whether because of them.
    asked: BTreeSet<RuntimeId>,
    /// Those that the server refuses, so that no connection names them.
    left_out: BTreeSet<RuntimeId>,
    closed: bool,
}

impl Beats {
    /// The first beat comes at a chance moment of the interval, so that a daemon's runtimes do not beat all at once.
    pub(crate) fn add(&mut self, cx: &mut Cx<'_>, runtime: &RuntimeId) {
        let interval = cx.timing().beat;
        let next = cx.now.mono.after(cx.env.rng.below(interval));
        let beat =
            Beat { next, in_flight: None, fresh: None, failures: 0, wanted: None, answered_hint: None };
        self.beats.insert(runtime.clone(), beat);
        cx.arm_at(TimerKey::Beat(runtime.clone()), next);
    }

    pub(crate) fn remove(&mut self, cx: &mut Cx<'_>, runtime: &RuntimeId) {
        self.asked.remove(runtime);
        self.left_out.remove(runtime);
        if let Some(op) = self.beats.remove(runtime).and_then(|beat| beat.in_flight) {
            cx.cancel(op);
        }
        cx.disarm(&TimerKey::Beat(runtime.clone()));
    }

    /// The connection is up: one runtime beats at once, which brings the server's capabilities; the rest at their times.
    pub(crate) fn link_up(&mut self, cx: &mut Cx<'_>, conn: ConnGen) {
        self.link = Some(conn);
        let mut named = self.beats.iter_mut().filter(|(runtime, _)| !self.left_out.contains(*runtime));
        if let Some((runtime, beat)) = named.next() {
            beat.fresh = Some(cx.now.mono);
            if !cx.is_barred() {
                cx.ws(conn, WsCmd::Beat { runtime: runtime.clone() });
            }
        }
        named.for_each(|(_, beat)| beat.fresh = Some(cx.now.mono));
    }

    /// The runtimes that no connection names, as the server refuses them.
    pub(crate) fn left_out(&self) -> Vec<RuntimeId> {
        self.left_out.iter().cloned().collect()
    }

    /// The server refused a connection because of a runtime that it names: each beats over HTTP at once, which tells which.
    pub(crate) fn ask_all(&mut self, cx: &mut Cx<'_>) {
        if !self.closed {
            self.asked.extend(self.beats.keys().cloned());
            self.all_now(cx);
        }
    }

    /// Whether it is still open why a connection was refused.
    pub(crate) fn is_asking(&self) -> bool {
        !self.asked.is_empty()
    }

    /// All are due, unless the credential is refused: the server may have waited for them. Those for which the connection answers beat over it, the others over HTTP.
    pub(crate) fn all_now(&mut self, cx: &mut Cx<'_>) {
        if self.closed || cx.is_barred() {
            return;
        }
        let interval = cx.timing().beat;
        let rest = u32::try_from(self.beats.len().saturating_sub(AT_ONCE)).unwrap_or(u32::MAX);
        for (nth, (runtime, beat)) in self.beats.iter_mut().enumerate() {
            let fresh = beat.fresh.is_some_and(|at| cx.now.mono.since(at) < interval * 2);
            if let Some(conn) = self.link.filter(|_| fresh) {
                cx.ws(conn, WsCmd::Beat { runtime: runtime.clone() });
            } else if beat.in_flight.is_none() {
                let later = u32::try_from((nth + 1).saturating_sub(AT_ONCE)).unwrap_or(u32::MAX);
                let at = cx.now.mono.after(SPREAD * later / rest.max(1));
                beat.wanted = Some(beat.wanted.map_or(at, |wanted| wanted.min(at)));
                answer_hint(cx, runtime, beat);
            }
        }
    }

    /// The connection is gone: its answers count no more.
    pub(crate) fn link_down(&mut self) {
        self.link = None;
        for beat in self.beats.values_mut() {
            beat.fresh = None;
        }
    }

    /// The connection answered for a runtime.
    pub(crate) fn acked(&mut self, cx: &Cx<'_>, runtime: &RuntimeId) {
        // An answer before the connection is up would silence the beats over HTTP while there are none over it.
        if let Some(beat) = self.beats.get_mut(runtime).filter(|_| self.link.is_some()) {
            beat.fresh = Some(cx.now.mono);
            beat.failures = 0;
        }
    }

    /// A runtime's time has come.
    pub(crate) fn due(&mut self, cx: &mut Cx<'_>, runtime: &RuntimeId) {
        let interval = cx.timing().beat;
        let Some(beat) = self.beats.get_mut(runtime).filter(|_| !self.closed) else { return };
        if beat.wanted.is_some() && beat.next > cx.now.mono {
            // Between two times of the grid: the wait for one that is wanted is over.
            cx.env.timers.arm(TimerKey::Beat(runtime.clone()), beat.next);
            answer_hint(cx, runtime, beat);
            return;
        }
        // On the grid; times that were slept through collapse to one.
        beat.next = beat.next.after(interval);
        if beat.next <= cx.now.mono {
            beat.next = cx.now.mono.after(interval);
        }
        cx.env.timers.arm(TimerKey::Beat(runtime.clone()), beat.next);
        if cx.is_barred() {
            return;
        }
        if let Some(conn) = self.link.filter(|_| !self.left_out.contains(runtime)) {
            cx.ws(conn, WsCmd::Beat { runtime: runtime.clone() });
        }
        let fresh = beat.fresh.is_some_and(|at| cx.now.mono.since(at) < interval * 2);
        if !fresh && beat.in_flight.is_none() {
            beat.wanted = None;
            send(cx, runtime, beat);
        }
        answer_hint(cx, runtime, beat);
    }

    /// The server has something for this runtime that only a beat brings.
    pub(crate) fn hint(&mut self, cx: &mut Cx<'_>, runtime: &RuntimeId) {
        let Some(beat) = self.beats.get_mut(runtime).filter(|_| !self.closed) else { return };
        beat.wanted = Some(cx.now.mono);
        answer_hint(cx, runtime, beat);
    }

    /// A beat over HTTP ended.
    pub(crate) fn beaten(
        &mut self,
        cx: &mut Cx<'_>,
        runtime: &RuntimeId,
        op: OpId,
        result: Result<ApiReply, ApiError>,
    ) -> Beaten {
        let Some(beat) = self.beats.get_mut(runtime).filter(|beat| beat.in_flight == Some(op)) else {
            return Beaten::default();
        };
        beat.in_flight = None;
        let asked = self.asked.remove(runtime);
        let mut another_set = false;
        let gone = match result {
            Ok(reply) => {
                beat.failures = 0;
                another_set = self.left_out.remove(runtime);
                matches!(reply, ApiReply::Beaten { gone: true, .. })
            }
            Err(error) if error.is_passing() => {
                beat.failures += 1;
                if beat.failures == SUSPECT_AFTER {
                    cx.emit(Effect::DropIdleConnections);
                }
                false
            }
            Err(error) => {
                beat.failures = 0;
                let gone = error.refusal() == Some(Refusal::RuntimeGone);
                if asked && !gone {
                    another_set = self.left_out.insert(runtime.clone());
                }
                gone
            }
        };
        if !gone && !self.closed {
            answer_hint(cx, runtime, beat);
        }
        Beaten { gone, another_set }
    }

    pub(crate) fn close(&mut self, cx: &mut Cx<'_>) {
        self.closed = true;
        self.asked.clear();
        for (runtime, beat) in &self.beats {
            cx.env.timers.disarm(&TimerKey::Beat(runtime.clone()));
            if let Some(op) = beat.in_flight {
                cx.cancel(op);
            }
        }
    }
}

/// Sends what is wanted beside the grid, once nothing hinders it.
fn answer_hint(cx: &mut Cx<'_>, runtime: &RuntimeId, beat: &mut Beat) {
    let Some(wanted) = beat.wanted.filter(|_| beat.in_flight.is_none() && !cx.is_barred()) else { return };
    let floor = beat.answered_hint.map_or(wanted, |last| last.after(HINT_GAP).max(wanted));
    if floor <= cx.now.mono {
        beat.wanted = None;
        beat.answered_hint = Some(cx.now.mono);
        send(cx, runtime, beat);
    } else if floor < beat.next {
        cx.arm_at(TimerKey::Beat(runtime.clone()), floor);
    }
}

fn send(cx: &mut Cx<'_>, runtime: &RuntimeId, beat: &mut Beat) {
    if beat.in_flight.is_none() {
        let call = ApiCall::Beat { runtime: runtime.clone() };
        let within = cx.timing().request;
        beat.in_flight = Some(cx.api(ApiOp::Beat(runtime.clone()), call, within));
    }
}
