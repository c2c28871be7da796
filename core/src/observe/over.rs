//! I14, INV-42 to 45: which way a claim for many may go, and what may be sent after one of unknown fate.

use super::fleet::FleetBook;
use super::ops::{Closed, What};
use super::{At, Found, api_end};
use crate::config::{ClaimMode, Config};
use crate::daemon::View;
use crate::effect::{ApiCall, ClaimScope, Effect, Fact, WsCmd};
use crate::error::ApiError;
use crate::event::{ApiReply, WsEvent};
use crate::id::{ConnGen, OpId, RuntimeId};
use crate::time::Instant;

/// A claim that has to be sent again over HTTP, in this step.
#[derive(Clone, Debug)]
struct Fallback {
    runtimes: Vec<RuntimeId>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct OverBook {
    /// The connection over which the server said that it takes claims.
    able: Option<ConnGen>,
    held_off: Option<Instant>,
    /// The claim over the connection that is on its way, and when its end was asked for.
    open: Option<(OpId, Option<Instant>)>,
    /// The hold-off is over: the next claim goes over HTTP, at once.
    http_due: bool,
    fallback: Option<Fallback>,
    /// Whether a claim went out over HTTP in this step.
    sent: bool,
    /// The server has no route for many at once.
    latched: bool,
}

impl OverBook {
    pub(super) fn begin(&mut self, at: &At<'_>) {
        self.sent = false;
        if self.held_off.is_some_and(|until| until <= at.now) {
            (self.held_off, self.http_due) = (None, true);
        }
    }

    pub(super) fn ws(&mut self, conn: ConnGen, ws: &WsEvent, fleet: &FleetBook) {
        match ws {
            // One that is up already does not come up again.
            WsEvent::Up if !fleet.is_up(conn) => (self.able, self.latched) = (None, false),
            WsEvent::Down | WsEvent::Refused { .. } => self.able = None,
            WsEvent::Ack { claims: true, .. } if fleet.is_up(conn) => self.able = Some(conn),
            _ => {}
        }
    }

    /// A claim over the connection ended.
    pub(super) fn closed(&mut self, at: &At<'_>, closed: &Closed<'_>, runtimes: Vec<RuntimeId>) {
        let What::Api(ApiCall::ClaimOver { .. }) = &closed.what else { return };
        let overdue = self.open.take_if(|(op, _)| *op == closed.op).and_then(|(_, overdue)| overdue);
        match api_end(&closed.end) {
            Some(Ok(ApiReply::Claimed { .. })) | None => {}
            Some(Err(
                ApiError::NotSent
                | ApiError::Throttled { .. }
                | ApiError::Server { .. }
                | ApiError::Refused { .. },
            )) => self.fallback = Some(Fallback { runtimes }),
            Some(_) if at.stopping => {}
            Some(_) => {
                // What it was waited for beyond its time counts.
                self.held_off = Some(overdue.unwrap_or(at.now).after(at.timing.claim_hold_off));
            }
        }
    }

    /// Returns whether this is a claim that ended in this step, sent another way.
    pub(super) fn effect(&mut self, at: &At<'_>, cfg: &Config, effect: &Effect, found: &mut Found) -> bool {
        let again = self.fallback.is_some() && matches!(effect, Effect::Api { call: ApiCall::Claim(_), .. });
        match effect {
            Effect::Cancel { op } => {
                if let Some((_, overdue)) = self.open.as_mut().filter(|(open, _)| open == op) {
                    *overdue = Some(at.now);
                }
            }
            Effect::Api { op, call: call @ (ApiCall::Claim(_) | ApiCall::ClaimOver { .. }), .. } => {
                self.may_claim(at, found);
                let many = cfg.claim_mode != ClaimMode::PerRuntime && !self.latched;
                found.require(many, "INV-45", || "a claim for many, for which there is no route".into());
                if let ApiCall::ClaimOver { conn, .. } = call {
                    self.open = Some((*op, None));
                    found.require(self.able == Some(*conn), "INV-44", || {
                        format!("a claim over connection {}, which is not known to take any", conn.0)
                    });
                    found.require(!self.http_due, "INV-43", || {
                        "after a claim of unknown fate the next one goes over the connection again".into()
                    });
                } else {
                    (self.http_due, self.sent) = (false, true);
                    // It may be over in the step that began it.
                    self.held_off.take_if(|until| *until <= at.now);
                }
            }
            Effect::Api { call: ApiCall::ClaimOne(_), .. } => self.may_claim(at, found),
            Effect::Fact { fact: Fact::PerRuntimeClaims } => self.latched = true,
            Effect::Fact { fact: Fact::HeldOff } => {
                found.require(self.held_off.is_some(), "INV-42", || "a hold-off without a reason".into());
            }
            Effect::Ws { cmd: WsCmd::Connect { .. } | WsCmd::Close, .. } => self.able = None,
            _ => {}
        }
        again
    }

    fn may_claim(&self, at: &At<'_>, found: &mut Found) {
        if let Some(until) = self.held_off {
            found.require(until <= at.now, "I14", || {
                format!(
                    "a claim {} ms before one of unknown fate has had its time",
                    until.since(at.now).as_millis()
                )
            });
        }
    }

    /// `idle` says that no claim for many is on its way, and `free` that nothing else keeps one from being sent.
    pub(super) fn settle(
        &mut self,
        at: &At<'_>,
        cfg: &Config,
        (view, fleet): (View<'_>, &FleetBook),
        (idle, free): (bool, bool),
        found: &mut Found,
    ) {
        // A provider's bound may keep its runtimes out of a claim.
        let free = free && !at.due && !at.stopping && !at.barred && cfg.provider_caps.is_empty();
        if let Some(fallback) = self.fallback.take() {
            let any = fallback.runtimes.iter().any(|runtime| fleet.is_claimable(runtime));
            found.require(self.sent || !any || !free, "CLAIM-FALLBACK", || {
                "a claim that the connection did not deliver is not sent over HTTP".into()
            });
        }
        let could = free && idle && view.free_slots() > 0 && fleet.ids().any(|id| fleet.is_claimable(id));
        found.require(!(self.http_due && could), "INV-43", || {
            "a claim of unknown fate has had its time, and none is sent over HTTP".into()
        });
    }
}

/// The runtimes that a claim for many is for.
pub(super) fn resolve(scope: &ClaimScope, fleet: &FleetBook) -> Vec<RuntimeId> {
    let claimable = fleet.ids().filter(|runtime| fleet.is_claimable(runtime));
    let of = |runtime: &RuntimeId, provider| fleet.provider(runtime) == Some(provider);
    match scope {
        ClaimScope::All => claimable.cloned().collect(),
        ClaimScope::Only { provider } => claimable.filter(|r| of(r, provider)).cloned().collect(),
        ClaimScope::AllBut { providers } => {
            claimable.filter(|r| !providers.iter().any(|p| of(r, p))).cloned().collect()
        }
        ClaimScope::Named { runtimes } => runtimes.clone(),
    }
}
