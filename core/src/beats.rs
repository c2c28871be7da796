//! Heartbeats: each runtime on a grid of its own, over the control connection while its answers are fresh, over HTTP else.
//! A beat that hangs delays no other.

use crate::effect::{ApiCall, Effect, WsCmd};
use crate::env::Cx;
use crate::error::{ApiError, Refusal};
use crate::event::ApiReply;
use crate::id::{ConnGen, OpId, RuntimeId};
use crate::op::ApiOp;
use crate::time::Instant;
use crate::timer::TimerKey;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// After this many passing failures in a row, connections in the pool are suspect.
const SUSPECT_AFTER: u32 = 2;
/// Beats that hints ask for are at least this far apart, for each runtime.
const HINT_GAP: Duration = Duration::from_secs(1);

#[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Beat {
    next: Instant,
    in_flight: Option<OpId>,
    /// When the connection that is up last answered for this runtime, or came up.
    fresh: Option<Instant>,
    failures: u32,
    /// A hint asked for a beat over HTTP, which had to wait: for the one on its way, or because it came too soon.
    hinted: bool,
    /// When a hint last had its beat.
    answered_hint: Option<Instant>,
}

/// All heartbeats.
#[derive(Debug, Default, Hash, Serialize, Deserialize)]
pub(crate) struct Beats {
    beats: BTreeMap<RuntimeId, Beat>,
    link: Option<ConnGen>,
    closed: bool,
}

impl Beats {
    /// The first beat comes at a chance moment of the interval, so that a daemon's runtimes do not beat all at once.
    pub(crate) fn add(&mut self, cx: &mut Cx<'_>, runtime: &RuntimeId) {
        let interval = cx.timing().beat;
        let next = cx.now.mono.after(cx.env.rng.below(interval));
        let beat =
            Beat { next, in_flight: None, fresh: None, failures: 0, hinted: false, answered_hint: None };
        self.beats.insert(runtime.clone(), beat);
        cx.arm_at(TimerKey::Beat(runtime.clone()), next);
    }

    pub(crate) fn remove(&mut self, cx: &mut Cx<'_>, runtime: &RuntimeId) {
        if let Some(op) = self.beats.remove(runtime).and_then(|beat| beat.in_flight) {
            cx.cancel(op);
        }
        cx.disarm(&TimerKey::Beat(runtime.clone()));
    }

    /// The connection is up: one runtime beats at once, which brings the server's capabilities; the rest at their times.
    pub(crate) fn link_up(&mut self, cx: &mut Cx<'_>, conn: ConnGen) {
        self.link = Some(conn);
        for beat in self.beats.values_mut() {
            beat.fresh = Some(cx.now.mono);
        }
        if let Some(runtime) = self.beats.keys().next() {
            cx.ws(conn, WsCmd::Beat { runtime: runtime.clone() });
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
        if beat.hinted && beat.next > cx.now.mono {
            // Between two times of the grid: the wait of a hint is over.
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
        if let Some(conn) = self.link {
            cx.ws(conn, WsCmd::Beat { runtime: runtime.clone() });
        }
        let fresh = beat.fresh.is_some_and(|at| cx.now.mono.since(at) < interval * 2);
        if !fresh {
            beat.hinted = false;
            send(cx, runtime, beat);
        }
        answer_hint(cx, runtime, beat);
    }

    /// The server has something for this runtime that only a beat brings.
    pub(crate) fn hint(&mut self, cx: &mut Cx<'_>, runtime: &RuntimeId) {
        let Some(beat) = self.beats.get_mut(runtime).filter(|_| !self.closed) else { return };
        beat.hinted = true;
        answer_hint(cx, runtime, beat);
    }

    /// A beat over HTTP ended. Returns whether the server does not know the runtime.
    pub(crate) fn beaten(
        &mut self,
        cx: &mut Cx<'_>,
        runtime: &RuntimeId,
        op: OpId,
        result: Result<ApiReply, ApiError>,
    ) -> bool {
        let Some(beat) = self.beats.get_mut(runtime).filter(|beat| beat.in_flight == Some(op)) else {
            return false;
        };
        beat.in_flight = None;
        let gone = match result {
            Ok(reply) => {
                beat.failures = 0;
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
                error.refusal() == Some(Refusal::RuntimeGone)
            }
        };
        if !gone && !self.closed {
            answer_hint(cx, runtime, beat);
        }
        gone
    }

    pub(crate) fn close(&mut self, cx: &mut Cx<'_>) {
        self.closed = true;
        for (runtime, beat) in &self.beats {
            cx.env.timers.disarm(&TimerKey::Beat(runtime.clone()));
            if let Some(op) = beat.in_flight {
                cx.cancel(op);
            }
        }
    }
}

/// Sends what a hint asked for, once nothing hinders it.
fn answer_hint(cx: &mut Cx<'_>, runtime: &RuntimeId, beat: &mut Beat) {
    if !beat.hinted || beat.in_flight.is_some() {
        return;
    }
    let floor = beat.answered_hint.map_or(Instant::ZERO, |last| last.after(HINT_GAP));
    if floor <= cx.now.mono {
        beat.hinted = false;
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
