//! The poller that asks for tasks of all runtimes in one request.
//!
//! It holds what is wanted, not when: a wakeup at capacity stays wanted until a slot is free. A provider that is near its own
//! bound is asked for on its own, for no more than its room.

use crate::backoff::{Backoff, Failures};
use crate::claim::gate::ClaimGate;
use crate::claim::pace::Pace;
use crate::claim::slots::Slots;
use crate::claim::transport::Transport;
use crate::effect::ClaimScope;
use crate::env::Cx;
use crate::error::ApiError;
use crate::id::{OpId, Provider, RuntimeId};
use crate::runtimes::Runtimes;
use crate::time::Instant;
use crate::timer::TimerKey;
use crate::token::SlotPermit;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;

/// The poller.
#[derive(Debug, Default, Hash, Serialize, Deserialize)]
pub(crate) struct BatchPoller {
    all: bool,
    providers: BTreeSet<Provider>,
    named: BTreeSet<RuntimeId>,
    open: Option<OpId>,
    failures: Failures,
    /// After a failure, nothing is sent before the poll timer fires, or a wakeup comes.
    waits: bool,
    /// Something was wanted since the last request was sent.
    nudged: bool,
    /// The server asked to be left alone until then; no wakeup shortens that.
    not_before: Option<Instant>,
    #[serde(default)]
    pace: Pace,
}

impl BatchPoller {
    pub(crate) fn want_all(&mut self) {
        self.all = true;
        self.named.clear();
        self.providers.clear();
        self.prompted();
    }

    pub(crate) fn want(&mut self, runtime: RuntimeId) {
        if !self.all {
            self.named.insert(runtime);
        }
        self.prompted();
    }

    /// Room came free at a provider with a bound: a wakeup of any of its runtimes may have found it full.
    pub(crate) fn want_provider(&mut self, provider: Provider) {
        if !self.all {
            self.providers.insert(provider);
        }
        self.prompted();
    }

    /// Room came free at a provider with a bound, and nobody asked for anything.
    pub(crate) fn room(&mut self, provider: Provider) {
        if !self.all {
            self.providers.insert(provider);
        }
    }

    fn prompted(&mut self) {
        self.waits = false;
        self.nudged = true;
        self.failures.reset();
    }

    pub(crate) fn forget(&mut self, runtime: &RuntimeId) {
        self.named.remove(runtime);
    }

    /// The poll timer fired.
    pub(crate) fn due(&mut self) {
        self.all = true;
        self.named.clear();
        self.providers.clear();
        self.waits = false;
    }

    /// Asks, if something is wanted, nothing is on its way, and a slot is free.
    pub(crate) fn feed(
        &mut self,
        cx: &mut Cx<'_>,
        (slots, gate, transport): (&mut Slots, &mut ClaimGate, &mut Transport),
        runtimes: &Runtimes,
    ) {
        if self.open.is_some() || self.waits || slots.available() == 0 || !gate.is_open() {
            return;
        }
        if self.not_before.is_some_and(|at| at > cx.now.mono) {
            return;
        }
        if !self.wants_any() {
            return;
        }
        if let Some(at) = self.pace.wait(cx) {
            cx.arm_at(TimerKey::Pace, at);
            return;
        }
        self.not_before = None;
        let Some((scope, max)) = self.next_scope(slots, runtimes) else { return };
        let Some(pass) = gate.enter() else { return };
        self.nudged = false;
        let hold: Vec<SlotPermit> = (0..max).map_while(|_| slots.try_acquire()).collect();
        if let ClaimScope::Only { provider } = &scope {
            slots.take_room(provider, max);
        }
        self.open = Some(transport.send(cx, runtimes.generation(), (hold, pass, scope)));
    }

    /// Whether anything is wanted.
    fn wants_any(&self) -> bool {
        self.all || !self.named.is_empty() || !self.providers.is_empty()
    }

    /// What to ask for next, and for how many tasks: never zero, never more than free slots.
    fn next_scope(&mut self, slots: &Slots, runtimes: &Runtimes) -> Option<(ClaimScope, u16)> {
        let free = slots.available();
        let near = |provider: &Provider| slots.room(provider).is_some_and(|room| room < free);
        if self.all {
            self.all = false;
            let capped: Vec<Provider> =
                slots.capped().filter(|p| near(p) && runtimes.hosts(p)).cloned().collect();
            self.providers.extend(capped.iter().cloned());
            if capped.is_empty() {
                return runtimes.any_claimable().then_some((ClaimScope::All, free));
            }
            if runtimes.hosts_other_than(&capped) {
                return Some((ClaimScope::AllBut { providers: capped }, free));
            }
        }
        while let Some(provider) = self.providers.pop_first() {
            let room = slots.room(&provider).unwrap_or(free).min(free);
            if room > 0 && runtimes.hosts(&provider) {
                return Some((ClaimScope::Only { provider }, room));
            }
        }
        let mut plain = Vec::new();
        for runtime in std::mem::take(&mut self.named) {
            match runtimes.provider(&runtime).filter(|_| runtimes.is_claimable(&runtime)) {
                Some(provider) if near(provider) => {
                    self.providers.insert(provider.clone());
                }
                Some(_) => plain.push(runtime),
                None => {}
            }
        }
        if plain.is_empty() {
            return if self.providers.is_empty() { None } else { self.next_scope(slots, runtimes) };
        }
        Some((ClaimScope::Named { runtimes: plain }, free))
    }

    /// The same request is on its way again, over HTTP.
    pub(crate) fn resent(&mut self, op: OpId) {
        self.open = Some(op);
    }

    /// The request ended without a word about what it was for. That stays wanted, which is no prompt of its own.
    pub(crate) fn put_back(&mut self, scope: ClaimScope) {
        self.open = None;
        match scope {
            ClaimScope::All | ClaimScope::AllBut { .. } => self.all = true,
            _ if self.all => {}
            ClaimScope::Only { provider } => drop(self.providers.insert(provider)),
            ClaimScope::Named { runtimes } => self.named.extend(runtimes),
        }
    }

    /// What a request that was sent before can still be for, with the slots that it holds; `None` if it cannot be sent as it is: nobody of
    /// it is left, or a provider came near its bound.
    pub(crate) fn still(
        scope: &ClaimScope,
        max: u16,
        slots: &Slots,
        runtimes: &Runtimes,
    ) -> Option<ClaimScope> {
        let near = |provider: &Provider| slots.room(provider).is_some_and(|room| room < max);
        let crowded =
            |but: &[Provider]| slots.capped().any(|p| near(p) && runtimes.hosts(p) && !but.contains(p));
        match scope {
            ClaimScope::All => (runtimes.any_claimable() && !crowded(&[])).then_some(ClaimScope::All),
            ClaimScope::AllBut { providers } => {
                (runtimes.hosts_other_than(providers) && !crowded(providers)).then(|| scope.clone())
            }
            // Its room is still taken.
            ClaimScope::Only { provider } => runtimes.hosts(provider).then(|| scope.clone()),
            ClaimScope::Named { runtimes: named } => {
                let left: Vec<RuntimeId> =
                    named.iter().filter(|runtime| runtimes.is_claimable(runtime)).cloned().collect();
                let fits = !left.is_empty() && !left.iter().filter_map(|r| runtimes.provider(r)).any(near);
                fits.then_some(ClaimScope::Named { runtimes: left })
            }
        }
    }

    /// The request ended. More is asked for at once if it brought something new: a server that only repeats itself would
    /// make that a busy loop.
    pub(crate) fn claimed(&mut self, cx: &mut Cx<'_>, scope: &ClaimScope, fresh: bool) {
        self.open = None;
        self.failures.reset();
        if fresh {
            self.pace.forgive();
            match scope {
                ClaimScope::All | ClaimScope::AllBut { .. } => self.want_all(),
                ClaimScope::Only { provider } => self.want_provider(provider.clone()),
                ClaimScope::Named { runtimes } => runtimes.iter().for_each(|r| self.want(r.clone())),
            }
        } else {
            self.pace.in_vain(cx);
        }
        if matches!(scope, ClaimScope::All | ClaimScope::AllBut { .. })
            || !cx.env.timers.is_armed(&TimerKey::Poll)
        {
            let poll = cx.timing().poll;
            cx.arm(TimerKey::Poll, poll);
        }
    }

    /// The request failed.
    pub(crate) fn failed(&mut self, cx: &mut Cx<'_>, error: ApiError) {
        self.open = None;
        self.pace.in_vain(cx);
        let wait = wait_after(cx, error, &mut self.failures);
        if let ApiError::Throttled { retry_after_ms: Some(_) } = error {
            self.not_before = Some(cx.now.mono.after(wait));
        }
        // A wakeup that came while it was on its way is answered at once.
        self.waits = !self.nudged || error == ApiError::Undecodable;
        cx.arm(TimerKey::Poll, wait);
    }

    /// Whether a claim waits because too many brought nothing.
    pub(crate) fn is_paced(&self, now: Instant) -> bool {
        self.pace.is_waiting(now)
    }

    /// A claim of unknown fate had its time, which was longer than any wait of this kind.
    pub(crate) fn held_off(&mut self) {
        self.pace.forgive();
        self.due();
    }

    /// Ends for good, or until it is wanted again in this mode.
    pub(crate) fn rest(&mut self, cx: &mut Cx<'_>) {
        cx.disarm(&TimerKey::Poll);
        cx.disarm(&TimerKey::Pace);
        self.all = false;
        self.named.clear();
        self.providers.clear();
    }
}

/// How long to wait after a claim that failed.
pub(super) fn wait_after(cx: &mut Cx<'_>, error: ApiError, failures: &mut Failures) -> Duration {
    let timing = &cx.cfg.timers;
    match error {
        ApiError::Undecodable => timing.poll,
        ApiError::Throttled { retry_after_ms: Some(ms) } => {
            // Zero would be a busy loop.
            let least = timing.claim_backoff.base.min(timing.poll).min(timing.retry_after_cap);
            Duration::from_millis(u64::from(ms)).clamp(least, timing.retry_after_cap)
        }
        _ => {
            let shape =
                Backoff { base: timing.claim_backoff.base.min(timing.poll), cap: timing.claim_backoff.cap };
            failures.next_wait(shape, &mut cx.env.rng)
        }
    }
}
