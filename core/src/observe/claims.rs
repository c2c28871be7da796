//! I2, I3, INV-34 to 40: slots before claims, one claim at a time, backoff after failures, bounds of providers, and that nobody is forgotten.

use super::fleet::FleetBook;
use super::gate::{About, GateBook};
use super::ops::{Closed, What};
use super::over::{OverBook, resolve};
use super::pace::PaceBook;
use super::rate::RateBook;
use super::tasks::TaskBook;
use super::{At, Found, api_end, is_claim, is_wake};
use crate::claim::first_poll;
use crate::config::{ClaimMode, Config, Timing};
use crate::daemon::View;
use crate::effect::{ApiCall, ClaimCall, ClaimScope, Effect, Fact, RuntimeChange};
use crate::error::{ApiError, Refusal};
use crate::event::{ApiReply, Event, WsEvent};
use crate::id::{ConnGen, OpId, Provider, RuntimeId};
use crate::said::Said;
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
    /// Of a claim for many: the runtimes.
    runtimes: Vec<RuntimeId>,
    /// Whether a wakeup came since it was sent.
    woken: bool,
    /// The same, from the server.
    hinted: bool,
}

/// After a failure, the next claim has to wait.
#[derive(Clone, Copy, Debug)]
struct Hold {
    until: Instant,
    /// The server asked for it: no wakeup ends it.
    hard: bool,
    /// What it belongs to.
    rule: &'static str,
}

/// For whom the server says that work may be there.
#[derive(Clone, Debug)]
enum Hint {
    One(RuntimeId),
    All,
}

#[derive(Clone, Debug, Default)]
pub(super) struct ClaimBook {
    open: BTreeMap<OpId, Open>,
    /// By runtime; `None` is the poller for all.
    holds: BTreeMap<Option<RuntimeId>, Hold>,
    /// Runtimes that were asked for since the daemon is at rest.
    asked: BTreeSet<RuntimeId>,
    pub(super) gate: GateBook,
    over: OverBook,
    rate: RateBook,
    pace: PaceBook,
    /// The hint that came in this step: for one runtime, or for all.
    hint: Option<Hint>,
    /// A runtime whose claim ended in this step, and that must be asked for at once.
    kept_wake: Option<RuntimeId>,
    /// A wakeup came during the claim over the connection that ended in this step.
    carried: bool,
}

impl ClaimBook {
    /// Slots that claims hold.
    pub(super) fn held(&self) -> usize {
        self.open.values().map(|open| usize::from(open.held)).sum()
    }

    pub(super) fn at_rest(&mut self) {
        self.asked.clear();
    }

    /// Claims on their way.
    pub(super) fn count(&self) -> usize {
        self.open.len()
    }

    pub(super) fn begin(&mut self, at: &At<'_>, event: Option<&Event>) {
        (self.hint, self.kept_wake, self.carried) = (None, None, false);
        self.over.begin(at);
        self.pace.begin();
        if let Some(Event::Gate { owner, ask }) = event {
            self.gate.asked(*owner, *ask);
            self.rate.cause(None, 1);
        }
    }

    pub(super) fn ws(&mut self, cfg: &Config, conn: ConnGen, ws: &WsEvent, fleet: &FleetBook) {
        self.over.ws(conn, ws, fleet);
        if let WsEvent::TaskAvailable { runtime, .. } = ws {
            self.hint = Some(runtime.clone().map_or(Hint::All, Hint::One));
            for open in self.open.values_mut() {
                open.hinted |= runtime.is_none() || open.runtime == *runtime;
            }
        }
        match ws {
            WsEvent::TaskAvailable { runtime: Some(runtime), .. } => self.caused(cfg, Some(runtime)),
            ws if is_wake(ws) => self.caused(cfg, None),
            _ => {}
        }
    }

    /// A wakeup: it may be split in as many claims as there are bounds.
    fn caused(&mut self, cfg: &Config, runtime: Option<&RuntimeId>) {
        self.woken(runtime);
        self.rate.cause(runtime, 1 + cfg.provider_caps.len() as u64);
    }

    /// A wakeup ends what the daemon itself decided to wait.
    fn woken(&mut self, runtime: Option<&RuntimeId>) {
        let meant = |of: Option<&RuntimeId>| of.is_none() || runtime.is_none() || of == runtime;
        self.holds.retain(|of, hold| hold.hard || !meant(of.as_ref()));
        for open in self.open.values_mut() {
            open.woken |= meant(open.runtime.as_ref());
        }
    }

    pub(super) fn closed(&mut self, at: &At<'_>, cfg: &Config, closed: &Closed<'_>) {
        let What::Api(call) = &closed.what else { return };
        let Some(result) = api_end(&closed.end).filter(|_| is_claim(call)) else { return };
        let Some(open) = self.open.remove(&closed.op) else { return };
        // A poller that was started anew while its runtime's claim was on its way goes on from the end of that one.
        if self.holds.get(&open.runtime).is_some_and(|hold| hold.rule == "INV-39") {
            self.holds.remove(&open.runtime);
        }
        let brought = match result {
            Ok(ApiReply::Claimed { offers, .. }) => self.rate.brought(at.now, offers),
            // How soon a claim may follow one that failed has rules of its own.
            _ => true,
        };
        if brought {
            self.rate.cause(open.runtime.as_ref(), 2 + cfg.provider_caps.len() as u64);
        }
        let throttled = matches!(result, Err(ApiError::Throttled { retry_after_ms: Some(_) }));
        if open.hinted && !throttled {
            self.kept_wake.clone_from(&open.runtime);
        }
        if let ApiCall::ClaimOver { .. } = call
            && !matches!(result, Ok(ApiReply::Claimed { .. }))
        {
            self.carried = open.woken;
            self.over.closed(at, closed, open.runtimes);
            return;
        }
        self.pace.closed(at, open.runtime.clone());
        match result {
            Ok(ApiReply::Claimed { offers, .. }) => {
                self.holds.remove(&open.runtime);
                // INV-39: a poller that found nothing sleeps for its interval.
                if offers.is_empty() && !open.woken && open.runtime.is_some() {
                    let until = at.now.after(at.timing.poll);
                    self.holds.insert(open.runtime, Hold { until, hard: false, rule: "INV-39" });
                }
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
        self.holds.insert(open.runtime.clone(), Hold { until: at.now.after(wait), hard, rule: "INV-42" });
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
        let again = self.over.effect(at, cfg, effect, found);
        match effect {
            Effect::Gate { owner, answer } => {
                let about = About { claims: self.open.len(), tasks: tasks.active() };
                self.gate.answered(at, (*owner, *answer), about, found);
            }
            Effect::Api {
                op, call: ApiCall::Claim(call) | ApiCall::ClaimOver { claim: call, .. }, ..
            } => {
                self.may_claim(at, None, found);
                if !again {
                    self.pace.sent(at, None, found);
                }
                let many = self.open.values().filter(|open| open.runtime.is_none()).count();
                found.require(many == 0, "I3", || "two claims for many are on their way".into());
                found.require(call.max() >= 1, "INV-40", || "a claim asks for no task".into());
                let runtimes = resolve(call.scope(), fleet);
                found.require(!runtimes.is_empty(), "INV-40", || {
                    format!("a claim of {} at most is for no runtime", call.max())
                });
                Self::named(&runtimes, fleet, found);
                self.room(cfg, call, &runtimes, fleet, tasks, found);
                self.asked.extend(runtimes.iter().cloned());
                let provider = match call.scope() {
                    ClaimScope::Only { provider } => Some(provider.clone()),
                    _ => None,
                };
                let woken = std::mem::take(&mut self.carried);
                let held = call.max();
                self.open.insert(*op, Open { runtime: None, held, provider, runtimes, woken, hinted: false });
            }
            Effect::Api { op, call: ApiCall::ClaimOne(call), .. } => {
                let runtime = call.runtime().clone();
                self.may_claim(at, Some(&runtime), found);
                self.pace.sent(at, Some(&runtime), found);
                let twice = self.open.values().any(|open| open.runtime.as_ref() == Some(&runtime));
                found.require(!twice, "I3", || format!("two claims for {runtime} are on their way"));
                Self::named(std::slice::from_ref(&runtime), fleet, found);
                let provider = fleet.provider(&runtime).cloned();
                if let Some(provider) = &provider {
                    self.within(cfg, provider, 1, tasks, found);
                }
                self.asked.insert(runtime.clone());
                let other = matches!(&self.hint, Some(Hint::One(hinted)) if *hinted != runtime);
                found.require(!other || at.was_due, "INV-36", || {
                    format!("{runtime} is asked for because of a hint for another runtime")
                });
                let (held, runtime) = (1, Some(runtime));
                let runtimes = Vec::new();
                self.open
                    .insert(*op, Open { runtime, held, provider, runtimes, woken: false, hinted: false });
            }
            Effect::Fact { fact: Fact::Released { claim, slot } } => {
                if let Some(task) = tasks.task(*claim) {
                    self.rate.ended(at.now, task);
                }
                if slot.is_some() {
                    self.rate.cause(None, 1);
                }
                // The end of a task may have unblocked another one.
                match tasks.runtime(*claim) {
                    Some(runtime) if fleet.provider(runtime).is_some() => self.woken(Some(&runtime.clone())),
                    _ => {}
                }
                if !cfg.provider_caps.is_empty() {
                    self.woken(None);
                }
            }
            Effect::Fact { fact: Fact::AccessBack | Fact::Woke { .. } } => self.caused(cfg, None),
            Effect::Fact { fact: Fact::Admitted { .. } | Fact::HandedBack { .. } } => self.pace.brought(),
            Effect::Fact { fact: Fact::HeldOff } => self.pace.forgive(None),
            Effect::Fact { fact: Fact::PerRuntimeClaims } => {
                self.pace.forgive_each();
                self.holds.retain(|of, _| of.is_none());
            }
            Effect::Runtime { runtime, change, .. } => match change {
                RuntimeChange::Claimable => {
                    self.caused(cfg, Some(runtime));
                    self.pace.forgive(Some(runtime));
                    // INV-39: its first poll has its own time.
                    let until = at.now.after(first_poll(runtime, at.timing.poll));
                    self.holds.insert(Some(runtime.clone()), Hold { until, hard: false, rule: "INV-39" });
                }
                RuntimeChange::Removed => {
                    for open in self.open.values_mut().filter(|open| open.runtime.as_ref() == Some(runtime)) {
                        open.hinted = false;
                    }
                    self.holds.remove(&Some(runtime.clone()));
                    self.asked.remove(runtime);
                }
                RuntimeChange::Added { .. } => {}
            },
            _ => {}
        }
    }

    fn may_claim(&mut self, at: &At<'_>, runtime: Option<&RuntimeId>, found: &mut Found) {
        found.require(self.gate.is_open(), "I10", || "a claim although somebody has the gate".into());
        self.rate.claimed(at, runtime, found);
        found.require(!at.stopping, "INV-134", || "a claim although the daemon stops".into());
        if let Some(hold) = self.holds.get(&runtime.cloned()) {
            found.require(hold.until <= at.now, hold.rule, || {
                format!("a claim {} ms too early", hold.until.since(at.now).as_millis())
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

    /// After each step: who must be asked for by now is.
    pub(super) fn settle(
        &mut self,
        at: &At<'_>,
        cfg: &Config,
        view: View<'_>,
        fleet: &FleetBook,
        found: &mut Found,
    ) {
        self.gate.settle(self.open.len(), found);
        self.pace.settle(at, view, found);
        self.gate.holds(view.gate_holder(), found);
        let idle = self.open.values().all(|open| open.runtime.is_some());
        let hard = |of: &Option<RuntimeId>| self.holds.get(of).is_some_and(|h| h.hard && h.until > at.now);
        let free = self.gate.is_open() && !hard(&None);
        self.over.settle(at, cfg, (view, fleet), (idle, free), found);
        let plain = cfg.claim_mode == ClaimMode::PerRuntime && cfg.provider_caps.is_empty();
        let hindered = at.stopping || at.due || at.barred || view.free_slots() == 0;
        if !plain || !self.gate.is_open() || hindered {
            return;
        }
        let asked = |runtime: &RuntimeId| {
            hard(&Some(runtime.clone()))
                || view.is_paced(Some(runtime))
                || !fleet.is_claimable(runtime)
                || self.open.values().any(|open| open.runtime.as_ref() == Some(runtime))
        };
        match &self.hint {
            Some(Hint::One(runtime)) => {
                found.require(asked(runtime), "INV-36", || format!("a hint for {runtime} leads to no claim"));
            }
            Some(Hint::All) => {
                let left = fleet.ids().find(|runtime| !asked(runtime));
                found.require(left.is_none(), "INV-37", || {
                    format!("a hint for all leads to no claim for {left}", left = left.said())
                });
            }
            None => {}
        }
        if let Some(runtime) = &self.kept_wake {
            found.require(asked(runtime), "INV-38", || {
                format!("a hint that came during a claim for {runtime} is forgotten")
            });
        }
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
