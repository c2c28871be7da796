//! The control connection: once up, everything is looked at again, but not twice within a second, then after it; and one that does not last is dialled
//! less and less often.

use super::Found;
use super::seen::Seen;
use crate::effect::{ApiCall, Effect, Fact, RuntimeChange, WsCmd};
use crate::event::WsEvent;
use crate::id::{ConnGen, OpId, RuntimeId};
use crate::time::Instant;

/// Least part of a backoff that jitter leaves.
const JITTER_LEAVES: (u32, u32) = (4, 5);

#[derive(Clone, Debug, Default)]
pub(super) struct LinkBook {
    dialled: ConnGen,
    up: Option<Instant>,
    /// Connections in a row that did not last.
    failures: u32,
    /// When the last one was lost, until the next is dialled or the set of runtimes changes.
    lost: Option<Instant>,
    reconciled: Option<Instant>,
    /// When everything has to be looked at again at the latest.
    owed: Option<Instant>,
    /// What the last one did not name.
    without: Vec<RuntimeId>,
    listing: Option<OpId>,
}

impl LinkBook {
    pub(super) fn step(&mut self, seen: &Seen<'_>, found: &mut Found) {
        if let Some((op, _)) = seen.ended()
            && self.listing == Some(op)
        {
            self.listing = None;
        }
        if let Some((conn, ws)) = seen.ws() {
            self.ws(seen, conn, ws, found);
        }
        for effect in seen.effects {
            self.effect(seen, effect, found);
        }
        if seen.at.stopping || seen.at.barred {
            self.owed = None;
        }
        let late = self.owed.is_some_and(|owed| seen.at.now >= owed) && !seen.at.due;
        found.require(!late, "INV-60", || "a connection is up, and nobody looks what was missed".into());
    }

    /// Everything is looked at again.
    fn reconciles(&mut self, seen: &Seen<'_>, found: &mut Found) {
        let at = &seen.at;
        found.require(
            self.reconciled.is_none_or(|last| at.now.since(last) >= at.timing.reconcile_gap),
            "INV-61",
            || "everything is looked at twice within a second".into(),
        );
        let lists = seen.sends(|call| *call == ApiCall::Workspaces);
        found.require(lists || self.listing.is_some() || at.stopping, "INV-60", || {
            "everything is to be looked at, and the list is not asked for".into()
        });
        (self.reconciled, self.owed) = (Some(at.now), None);
    }

    fn ws(&mut self, seen: &Seen<'_>, conn: ConnGen, ws: &WsEvent, found: &mut Found) {
        let at = &seen.at;
        match ws {
            WsEvent::Up if conn == self.dialled && self.up.is_none() => {
                let wanted = !seen.wants(|e| matches!(e, Effect::Ws { cmd: WsCmd::Close, .. }));
                self.up = Some(at.now);
                if !wanted || at.stopping || at.barred {
                    return;
                }
                let beats = seen.view.runtime_count() <= self.without.len()
                    || seen.wants(|e| matches!(e, Effect::Ws { cmd: WsCmd::Beat { .. }, .. }));
                found.require(beats, "INV-60", || {
                    "a connection comes up, and no runtime beats over it".into()
                });
                let gap = at.timing.reconcile_gap;
                self.owed = Some(self.reconciled.map_or(at.now, |last| last.after(gap)));
            }
            WsEvent::Down | WsEvent::Refused { .. } => {
                if self.up.take().is_some_and(|since| at.now.since(since) >= at.timing.link_settled) {
                    self.failures = 0;
                }
                self.failures = self.failures.saturating_add(1);
                (self.lost, self.owed) = (Some(at.now), None);
            }
            _ => {}
        }
    }

    fn effect(&mut self, seen: &Seen<'_>, effect: &Effect, found: &mut Found) {
        let at = &seen.at;
        match effect {
            Effect::Api { op, call: ApiCall::Workspaces, .. } => self.listing = Some(*op),
            Effect::Runtime { change: RuntimeChange::Added { .. } | RuntimeChange::Removed, .. } => {
                if self.up.is_some() {
                    self.failures = 0;
                }
                self.lost = None;
            }
            Effect::Ws { cmd: WsCmd::Close, .. } => {
                // One that was up is closed because it is for another set, which resets the backoff.
                if self.up.take().is_some() {
                    self.failures = 0;
                }
                (self.lost, self.owed) = (None, None);
            }
            Effect::Fact { fact: Fact::Woke { .. } } => {
                (self.failures, self.lost, self.reconciled) = (0, None, None);
            }
            Effect::Fact { fact: Fact::Reconciled } => self.reconciles(seen, found),
            Effect::Ws { conn, cmd: WsCmd::Connect { without, .. } } => {
                let another = *without != self.without;
                self.without.clone_from(without);
                if let Some(lost) = self.lost.take().filter(|_| !another) {
                    let shape = at.timing.link_backoff;
                    let doubled =
                        1_u32.checked_shl(self.failures.saturating_sub(1).min(31)).unwrap_or(u32::MAX);
                    let wait = shape.base.saturating_mul(doubled).min(shape.cap.max(shape.base));
                    let least = lost.after(wait * JITTER_LEAVES.0 / JITTER_LEAVES.1);
                    found.require(at.now >= least, "INV-63", || {
                        format!("after {} that did not last, a connection is dialled too soon", self.failures)
                    });
                }
                (self.dialled, self.up) = (*conn, None);
            }
            _ => {}
        }
    }
}
