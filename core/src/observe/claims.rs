//! Slots before claims, one claim at a time, backoff after failures, bounds of providers, and that nobody is forgotten.

use super::fleet::FleetBook;
use super::ops::{Closed, What};
use super::tasks::TaskBook;
use super::{At, Found, api_end, is_claim, is_wake};
use crate::config::{Config, Timing};
use crate::effect::{ApiCall, ClaimCall, ClaimScope, Effect, Fact, RuntimeChange};
use crate::error::{ApiError, Refusal};
use crate::event::{ApiReply, WsEvent};
use crate::id::{OpId, Provider, RuntimeId};
use crate::time::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Least part of a backoff that jitter leaves.
const JITTER_LEAVES: (u32, u32) = (4, 5);

#[derive(Clone, Debug)]
struct Open {
    /// `None` for a claim for many.
    runtime: Option<RuntimeId>,
    held: u16,
    /// Of which the claim is for no other.
    provider: Option<Provider>,
    /// Whether a wakeup came since it was sent.
    woken: bool,
}

/// After a failure, the next claim has to wait.
#[derive(Clone, Copy, Debug)]
struct Hold {
    until: Instant,
    /// The server asked for it: no wakeup ends it.
    hard: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct ClaimBook {
    open: BTreeMap<OpId, Open>,
    /// By runtime; `None` is the poller for all.
    holds: BTreeMap<Option<RuntimeId>, Hold>,
    /// Runtimes that were asked for since the daemon is at rest.
    asked: BTreeSet<RuntimeId>,
}

impl ClaimBook {
    /// Slots that claims hold.
    pub(super) fn held(&self) -> usize {
        self.open.values().map(|open| usize::from(open.held)).sum()
    }

    pub(super) fn at_rest(&mut self) {
        self.asked.clear();
    }

    pub(super) fn ws(&mut self, ws: &WsEvent) {
        match ws {
            WsEvent::TaskAvailable { runtime: Some(runtime), .. } => self.woken(Some(runtime)),
            ws if is_wake(ws) => self.woken(None),
            _ => {}
        }
    }

    /// A wakeup ends what the daemon itself decided to wait.
    fn woken(&mut self, runtime: Option<&RuntimeId>) {
        let meant = |of: Option<&RuntimeId>| of.is_none() || runtime.is_none() || of == runtime;
        self.holds.retain(|of, hold| hold.hard || !meant(of.as_ref()));
        for open in self.open.values_mut() {
            open.woken |= meant(open.runtime.as_ref());
        }
    }

    pub(super) fn closed(&mut self, at: &At<'_>, closed: &Closed<'_>) {
        let What::Api(call) = &closed.what else { return };
        let Some(result) = api_end(&closed.end).filter(|_| is_claim(call)) else { return };
        let Some(open) = self.open.remove(&closed.op) else { return };
        match result {
            Ok(ApiReply::Claimed { .. }) => {
                self.holds.remove(&open.runtime);
            }
            Ok(_) => self.hold(at, &open, ApiError::Undecodable),
            Err(error) => self.hold(at, &open, *error),
        }
    }

    fn hold(&mut self, at: &At<'_>, open: &Open, error: ApiError) {
        let (wait, hard) = least_wait(at.timing, error);
        // A runtime that is not known any more is not asked for until it is registered again, which is no wait.
        let gone = error.refusal() == Some(Refusal::RuntimeGone);
        if (open.woken && !hard) || (gone && open.runtime.is_some()) {
            return;
        }
        self.holds.insert(open.runtime.clone(), Hold { until: at.now.after(wait), hard });
    }

    pub(super) fn effect(
        &mut self,
        at: &At<'_>,
        cfg: &Config,
        effect: &Effect,
        fleet: &FleetBook,
        tasks: &TaskBook,
        found: &mut Found,
    ) {
        match effect {
            Effect::Api { op, call: ApiCall::Claim(call), .. } => {
                self.may_claim(at, None, found);
                let many = self.open.values().filter(|open| open.runtime.is_none()).count();
                found.require(many == 0, "I3", || "two claims for many are on their way".into());
                found.require(call.max() >= 1, "INV-40", || "a claim asks for no task".into());
                let runtimes = resolve(call.scope(), fleet);
                found.require(!runtimes.is_empty(), "INV-40", || format!("{call:?} is for no runtime"));
                Self::named(&runtimes, fleet, found);
                self.room(cfg, call, &runtimes, fleet, tasks, found);
                self.asked.extend(runtimes);
                let provider = match call.scope() {
                    ClaimScope::Only { provider } => Some(provider.clone()),
                    _ => None,
                };
                self.open.insert(*op, Open { runtime: None, held: call.max(), provider, woken: false });
            }
            Effect::Api { op, call: ApiCall::ClaimOne(call), .. } => {
                let runtime = call.runtime().clone();
                self.may_claim(at, Some(&runtime), found);
                let twice = self.open.values().any(|open| open.runtime.as_ref() == Some(&runtime));
                found.require(!twice, "I3", || format!("two claims for {runtime} are on their way"));
                Self::named(std::slice::from_ref(&runtime), fleet, found);
                let provider = fleet.provider(&runtime).cloned();
                if let Some(provider) = &provider {
                    self.within(cfg, provider, 1, tasks, found);
                }
                self.asked.insert(runtime.clone());
                self.open.insert(*op, Open { runtime: Some(runtime), held: 1, provider, woken: false });
            }
            Effect::Fact { fact: Fact::Released { claim, .. } } => {
                // The end of a task may have unblocked another one.
                match tasks.runtime(*claim) {
                    Some(runtime) if fleet.provider(runtime).is_some() => self.woken(Some(&runtime.clone())),
                    _ => {}
                }
                if !cfg.provider_caps.is_empty() {
                    self.woken(None);
                }
            }
            Effect::Fact { fact: Fact::PerRuntimeClaims } => self.holds.retain(|of, _| of.is_none()),
            Effect::Runtime { runtime, change, .. } => match change {
                RuntimeChange::Claimable => {
                    self.holds.remove(&Some(runtime.clone()));
                    self.woken(Some(runtime));
                }
                RuntimeChange::Removed => {
                    self.holds.remove(&Some(runtime.clone()));
                    self.asked.remove(runtime);
                }
                RuntimeChange::Added { .. } => {}
            },
            _ => {}
        }
    }

    fn may_claim(&self, at: &At<'_>, runtime: Option<&RuntimeId>, found: &mut Found) {
        found.require(!at.stopping, "INV-134", || "a claim although the daemon stops".into());
        if let Some(hold) = self.holds.get(&runtime.cloned()) {
            found.require(hold.until <= at.now, "INV-42", || {
                format!("a claim {} ms too early after a failure", hold.until.since(at.now).as_millis())
            });
        }
    }

    /// A runtime is asked for only once its leftovers are dealt with.
    fn named(runtimes: &[RuntimeId], fleet: &FleetBook, found: &mut Found) {
        for runtime in runtimes {
            found.require(fleet.is_claimable(runtime), "ORPHANS-FIRST", || {
                format!("{runtime} is asked for before its leftovers are dealt with")
            });
        }
    }

    fn room(
        &self,
        cfg: &Config,
        call: &ClaimCall,
        runtimes: &[RuntimeId],
        fleet: &FleetBook,
        tasks: &TaskBook,
        found: &mut Found,
    ) {
        let providers: BTreeSet<&Provider> = runtimes.iter().filter_map(|r| fleet.provider(r)).collect();
        for provider in providers {
            self.within(cfg, provider, usize::from(call.max()), tasks, found);
        }
    }

    /// Slots of a provider that its tasks hold, and claims that are for no other.
    fn used(&self, provider: &Provider, tasks: &TaskBook) -> usize {
        let for_it = self.open.values().filter(|open| open.provider.as_ref() == Some(provider));
        tasks.of_provider(provider) + for_it.map(|open| usize::from(open.held)).sum::<usize>()
    }

    /// Whether one more task of a provider may run.
    pub(super) fn has_room(&self, cfg: &Config, provider: &Provider, tasks: &TaskBook) -> bool {
        cfg.provider_caps.get(provider).is_none_or(|cap| self.used(provider, tasks) < usize::from(*cap))
    }

    /// A claim can bring no more tasks of a provider than its bound leaves room for.
    fn within(&self, cfg: &Config, provider: &Provider, more: usize, tasks: &TaskBook, found: &mut Found) {
        let Some(cap) = cfg.provider_caps.get(provider) else { return };
        let used = self.used(provider, tasks);
        found.require(used + more <= usize::from(*cap), "PROVIDER-CAP", || {
            format!("{provider} may run {cap} tasks, has {used}, and up to {more} more are asked for")
        });
    }

    /// Every runtime was asked for while nothing hindered it.
    pub(super) fn finish(&self, fleet: &FleetBook, found: &mut Found) {
        for runtime in fleet.ids().filter(|runtime| fleet.is_claimable(runtime)) {
            found.require(self.asked.contains(runtime), "INV-34", || {
                format!("{runtime} is never asked for any more")
            });
        }
    }
}

fn resolve(scope: &ClaimScope, fleet: &FleetBook) -> Vec<RuntimeId> {
    let claimable = fleet.ids().filter(|runtime| fleet.is_claimable(runtime));
    let of = |runtime: &RuntimeId, provider: &Provider| fleet.provider(runtime) == Some(provider);
    match scope {
        ClaimScope::All => claimable.cloned().collect(),
        ClaimScope::Only { provider } => claimable.filter(|r| of(r, provider)).cloned().collect(),
        ClaimScope::AllBut { providers } => {
            claimable.filter(|r| !providers.iter().any(|p| of(r, p))).cloned().collect()
        }
        ClaimScope::Named { runtimes } => runtimes.clone(),
    }
}

/// The least that must pass after a failure, and whether the server asked for it.
fn least_wait(timing: &Timing, error: ApiError) -> (Duration, bool) {
    let base = timing.claim_backoff.base.min(timing.poll);
    match error {
        ApiError::Undecodable => (timing.poll, false),
        ApiError::Throttled { retry_after_ms: Some(ms) } => {
            let asked = Duration::from_millis(u64::from(ms));
            (asked.min(timing.retry_after_cap).max(base.min(timing.retry_after_cap)), true)
        }
        _ => (base * JITTER_LEAVES.0 / JITTER_LEAVES.1, false),
    }
}
