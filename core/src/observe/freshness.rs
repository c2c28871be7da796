//! Heartbeats over HTTP: none while the control connection answers for the runtime, each interval while it does not; what the server has
//! forgotten leaves at once; and a pool whose connections hang is dropped.

use super::seen::Seen;
use super::{Found, api_end};
use crate::effect::{ApiCall, Effect, Fact, RuntimeChange, WsCmd};
use crate::error::Refusal;
use crate::event::{ApiReply, WsEvent};
use crate::id::{ConnGen, OpId, RuntimeId};
use crate::time::Instant;
use std::collections::BTreeMap;

/// Idle connections are dropped at this failure in a row.
const SUSPECT_AT: u32 = 2;

#[derive(Clone, Debug)]
struct Beat {
    /// When it joined, beat over HTTP, had its answer, or lost the connection: the latest of them.
    since: Instant,
    /// When the connection last answered for it, or came up.
    fresh: Option<Instant>,
    hinted: bool,
    failures: u32,
    open: Option<OpId>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct FreshnessBook {
    beats: BTreeMap<RuntimeId, Beat>,
    dialled: ConnGen,
    /// What the connection does not name.
    without: Vec<RuntimeId>,
    up: bool,
}

impl FreshnessBook {
    pub(super) fn step(&mut self, seen: &Seen<'_>, found: &mut Found) {
        let suspect = self.ended(seen, found);
        let drops = seen.wants(|effect| matches!(effect, Effect::DropIdleConnections));
        let fits = drops == suspect || (seen.at.stopping && !drops);
        found.require(fits, "INV-56", || {
            format!("idle connections are {}dropped at this failure", if drops { "" } else { "not " })
        });
        if let Some((conn, ws)) = seen.ws() {
            self.ws(seen, conn, ws, found);
        }
        for effect in seen.effects {
            self.effect(seen, effect, found);
        }
        if seen.at.barred {
            self.beats.values_mut().for_each(|beat| beat.since = seen.at.now);
        }
        if seen.excuses() {
            return;
        }
        // One that the connection does not name has none.
        let alone = |runtime: &RuntimeId| !self.up || self.without.contains(runtime);
        for (runtime, beat) in self.beats.iter().filter(|(id, beat)| beat.open.is_none() && alone(id)) {
            let silent = seen.at.now.since(beat.since);
            found.require(silent <= seen.at.timing.beat, "INV-55", || {
                format!(
                    "{runtime} has not beaten over HTTP for {} ms without a connection",
                    silent.as_millis()
                )
            });
        }
    }

    /// Books an answer. Returns whether it is the one at which the pool is suspect.
    fn ended(&mut self, seen: &Seen<'_>, found: &mut Found) -> bool {
        let Some((op, ApiCall::Beat { runtime })) = seen.ended() else { return false };
        let Some(beat) = self.beats.get_mut(runtime).filter(|beat| beat.open == Some(op)) else {
            return false;
        };
        let Some(result) = seen.closed.and_then(|closed| api_end(&closed.end)) else { return false };
        (beat.open, beat.since) = (None, seen.at.now);
        let gone = match result {
            Ok(reply) => matches!(reply, ApiReply::Beaten { gone: true, .. }),
            Err(error) => error.refusal() == Some(Refusal::RuntimeGone),
        };
        beat.failures =
            if result.as_ref().is_err_and(|error| error.is_passing()) { beat.failures + 1 } else { 0 };
        let suspect = beat.failures == SUSPECT_AT;
        if gone {
            leaves(seen, runtime, found);
        }
        suspect
    }

    fn ws(&mut self, seen: &Seen<'_>, conn: ConnGen, ws: &WsEvent, found: &mut Found) {
        let now = seen.at.now;
        match ws {
            WsEvent::Up if conn == self.dialled && !self.up => {
                self.up = true;
                let named = self.beats.iter_mut().filter(|(id, _)| !self.without.contains(id));
                named.for_each(|(_, beat)| beat.fresh = Some(now));
            }
            WsEvent::Down => self.lost(now),
            WsEvent::Refused { .. } => {
                self.lost(now);
                self.all_wanted();
            }
            WsEvent::Ack { runtime, gone, .. } => {
                let Some(beat) = self.beats.get_mut(runtime) else { return };
                if *gone {
                    leaves(seen, runtime, found);
                } else if self.up {
                    (beat.fresh, beat.failures) = (Some(now), 0);
                }
            }
            WsEvent::PendingWork { runtime } => {
                if let Some(beat) = self.beats.get_mut(runtime) {
                    beat.hinted = true;
                }
            }
            _ => {}
        }
    }

    /// Something has each of them beat over HTTP, once.
    fn all_wanted(&mut self) {
        self.beats.values_mut().for_each(|beat| beat.hinted = true);
    }

    fn lost(&mut self, now: Instant) {
        self.up = false;
        for beat in self.beats.values_mut() {
            (beat.fresh, beat.since) = (None, now);
        }
    }

    fn effect(&mut self, seen: &Seen<'_>, effect: &Effect, found: &mut Found) {
        let now = seen.at.now;
        match effect {
            Effect::Runtime { runtime, change: RuntimeChange::Added { .. }, .. } => {
                let beat = Beat { since: now, fresh: None, hinted: false, failures: 0, open: None };
                self.beats.insert(runtime.clone(), beat);
            }
            Effect::Runtime { runtime, change: RuntimeChange::Removed, .. } => {
                self.beats.remove(runtime);
            }
            Effect::Api { op, call: ApiCall::Beat { runtime }, .. } => {
                let Some(beat) = self.beats.get_mut(runtime) else { return };
                let fresh = beat.fresh.is_some_and(|at| now.since(at) < seen.at.timing.beat * 2);
                found.require(beat.hinted || !(self.up && fresh), "INV-54", || {
                    format!("{runtime} beats over HTTP although the connection answers for it")
                });
                (beat.hinted, beat.open, beat.since) = (false, Some(*op), now);
            }
            Effect::Ws { conn, cmd: WsCmd::Connect { without, .. } } => {
                self.lost(now);
                self.without.clone_from(without);
                self.dialled = *conn;
            }
            Effect::Ws { cmd: WsCmd::Close, .. } => self.lost(now),
            Effect::Fact { fact: Fact::AccessBack | Fact::Woke { .. } } => self.all_wanted(),
            _ => {}
        }
    }
}

/// INV-21: a runtime that the server has forgotten leaves the set in this step, and is not taken for a live one.
fn leaves(seen: &Seen<'_>, runtime: &RuntimeId, found: &mut Found) {
    let removed = |effect: &Effect| matches!(effect, Effect::Runtime { runtime: of, change: RuntimeChange::Removed, .. } if of == runtime);
    found.require(seen.at.stopping || seen.wants(removed), "INV-21", || {
        format!("{runtime} stays although the server has forgotten it")
    });
}
