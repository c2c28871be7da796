//! How tasks are asked for: slots before claims, a gate that can be closed, one poller for all runtimes or one for each.

mod batch;
mod gate;
#[cfg(test)]
mod laws;
pub(crate) mod pace;
mod per_runtime;
mod recent;
mod slots;
mod transport;

use crate::config::{ClaimMode, Config};
use crate::effect::{ClaimScope, Effect, Fact, GateAnswer};
use crate::env::Cx;
use crate::error::{ApiError, Refusal};
use crate::event::{ApiReply, GateAsk, GateOwner, Offer};
use crate::id::{ConnGen, OpId, Provider, RuntimeId, SlotIndex, TaskId};
use crate::op::{ApiOp, OpKind, Ops};
use crate::runtimes::Runtimes;
use crate::time::Instant;
use crate::timer::TimerKey;
use crate::token::{ClaimPass, ParkPermit, SlotPermit};
use batch::BatchPoller;
use gate::{Asked, ClaimGate};
use per_runtime::PerRuntimePollers;
pub(crate) use per_runtime::first_poll;
use recent::RecentEnds;
use serde::{Deserialize, Serialize};
use slots::Slots;
use transport::{ManyClaim, Transport, Verdict};

/// Which poller is at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Active {
    Batch,
    PerRuntime,
}

/// Everything about asking for tasks.
#[derive(Debug, Hash, Serialize, Deserialize)]
pub(crate) struct Claims {
    slots: Slots,
    gate: ClaimGate,
    mode: ClaimMode,
    active: Active,
    batch: BatchPoller,
    per_runtime: PerRuntimePollers,
    transport: Transport,
    recent: RecentEnds,
}

/// What a claim brought. Permits that are not used for a task go back through `Claims::release`.
#[derive(Debug)]
pub(crate) struct Catch {
    pub(crate) offers: Vec<Offer>,
    pub(crate) permits: Vec<SlotPermit>,
    /// The runtime that the server does not know any more.
    pub(crate) gone: Option<RuntimeId>,
    /// The server refuses the credential.
    pub(crate) unauthorized: bool,
}

impl Catch {
    /// Nothing but slots that come back.
    const fn none(permits: Vec<SlotPermit>) -> Self {
        Self { offers: Vec::new(), permits, gone: None, unauthorized: false }
    }
}

impl Claims {
    pub(crate) fn new(cfg: &Config) -> Self {
        let active = if cfg.claim_mode == ClaimMode::PerRuntime { Active::PerRuntime } else { Active::Batch };
        Self {
            slots: Slots::new(cfg.slots, cfg.provider_caps.clone()),
            gate: ClaimGate::default(),
            mode: cfg.claim_mode,
            active,
            batch: BatchPoller::default(),
            per_runtime: PerRuntimePollers::default(),
            transport: Transport::default(),
            recent: RecentEnds::default(),
        }
    }

    /// Tasks of this runtime may be asked for from now on.
    pub(crate) fn runtime_ready(&mut self, cx: &mut Cx<'_>, runtime: &RuntimeId) {
        match self.active {
            Active::Batch => self.batch.want(runtime.clone()),
            Active::PerRuntime => self.per_runtime.start(cx, runtime, false),
        }
    }

    /// The runtime left the set. Its tasks go on.
    pub(crate) fn runtime_removed(&mut self, cx: &mut Cx<'_>, runtime: &RuntimeId) {
        self.batch.forget(runtime);
        self.per_runtime.stop(cx, runtime);
    }

    /// Work may be there for this runtime, or for any.
    pub(crate) fn wake(&mut self, cx: &mut Cx<'_>, runtime: Option<&RuntimeId>) {
        match (self.active, runtime) {
            (Active::Batch, None) => self.batch.want_all(),
            (Active::Batch, Some(runtime)) => self.batch.want(runtime.clone()),
            (Active::PerRuntime, None) => self.per_runtime.wake_all(cx),
            (Active::PerRuntime, Some(runtime)) => self.per_runtime.wake(cx, runtime),
        }
    }

    /// The control connection is up: the server may be a new one, so its batch route is tried again.
    pub(crate) fn link_up(&mut self, cx: &mut Cx<'_>) {
        self.transport.forget();
        if self.mode == ClaimMode::Auto && self.active == Active::PerRuntime {
            self.active = Active::Batch;
            self.per_runtime.stop_all(cx);
        }
        self.wake(cx, None);
    }

    /// The control connection is gone, and what was known of it.
    pub(crate) fn link_down(&mut self) {
        self.transport.forget();
    }

    /// The server takes claims over this connection, which is up.
    pub(crate) fn takes_claims(&mut self, conn: ConnGen) {
        self.transport.takes_claims(conn);
    }

    /// A request has not been answered in time. One over the connection cannot be called back once its frame was begun, and may yet bring
    /// tasks, which the server counts as handed out: its end is waited for.
    pub(crate) fn overdue(&mut self, cx: &Cx<'_>, op: OpId) {
        if matches!(cx.env.ops.get(op), Some(OpKind::Api(ApiOp::ClaimOver { .. }))) {
            self.transport.is_overdue(cx);
        }
    }

    /// A claim of unknown fate had its time: one is sent over HTTP now.
    pub(crate) fn hold_off_due(&mut self) {
        self.transport.hold_off_ended();
        self.batch.held_off();
    }

    /// Somebody asks for the gate, or releases it. `busy` says whether tasks are about.
    pub(crate) fn ask_gate(&mut self, cx: &mut Cx<'_>, owner: GateOwner, ask: GateAsk, busy: bool) {
        match self.gate.ask(owner, ask, busy) {
            Asked::Answer(answer) => cx.emit(Effect::Gate { owner, answer }),
            Asked::Stray => cx.env.ops.stray(),
            Asked::Later | Asked::Done => {}
        }
    }

    /// Does something for which no claim and no task may be about, if that is so at this moment: the gate is held for as long as it takes.
    pub(crate) fn while_idle<T>(
        &mut self,
        owner: GateOwner,
        busy: bool,
        act: impl FnOnce() -> T,
    ) -> Option<T> {
        if self.gate.ask(owner, GateAsk::Try, busy) != Asked::Answer(GateAnswer::Granted) {
            return None;
        }
        let done = act();
        self.gate.ask(owner, GateAsk::Release, busy);
        Some(done)
    }

    /// Answers who waits for the gate, once it is clear what the claims on their way brought.
    pub(crate) fn settle_gate(&mut self, cx: &mut Cx<'_>, busy: bool) {
        if let Some((owner, answer)) = self.gate.settle(busy) {
            cx.emit(Effect::Gate { owner, answer });
        }
    }

    /// Whether this task ended here a moment ago.
    pub(crate) fn is_repeat(&self, now: Instant, task: &TaskId) -> bool {
        self.recent.has(now, task)
    }

    pub(crate) fn poll_due(&mut self) {
        if self.active == Active::Batch {
            self.batch.due();
        }
    }

    pub(crate) fn poll_one_due(&mut self, cx: &mut Cx<'_>, runtime: &RuntimeId) {
        self.per_runtime.due(cx, runtime);
    }

    /// Sends what is wanted, as far as slots are free. Called at the end of each step.
    pub(crate) fn feed(&mut self, cx: &mut Cx<'_>, runtimes: &Runtimes) {
        if self.transport.is_held_off() {
            return;
        }
        match self.active {
            Active::Batch => {
                let Self { slots, gate, transport, .. } = self;
                self.batch.feed(cx, (slots, gate, transport), runtimes);
            }
            Active::PerRuntime => self.per_runtime.feed(cx, &mut self.slots, &mut self.gate, runtimes),
        }
    }

    /// A claim over the control connection ended; `fresh` as below. A connection that died meanwhile changes nothing about what it brought.
    pub(crate) fn over_ended(
        &mut self,
        cx: &mut Cx<'_>,
        runtimes: &Runtimes,
        claim: ManyClaim,
        result: Result<ApiReply, ApiError>,
        fresh: bool,
    ) -> Catch {
        let verdict = Verdict::of(&result);
        if verdict == Verdict::Taken {
            return self.batch_ended(cx, runtimes, claim, result, fresh);
        }
        let (hold, pass, scope) = claim;
        let max = u16::try_from(hold.len()).unwrap_or(u16::MAX);
        let again = (verdict == Verdict::OverHttp && self.gate.is_open() && !cx.is_barred())
            .then(|| BatchPoller::still(&scope, max, &self.slots, runtimes))
            .flatten();
        if let Some(scope) = again {
            let op = Transport::send_http(cx, runtimes.generation(), (hold, pass, scope));
            self.batch.resent(op);
            return Catch::none(Vec::new());
        }
        self.leave(pass, &hold, &scope);
        self.batch.put_back(scope);
        if verdict == Verdict::OverHttp {
            self.transport.prefer_http();
        } else if !self.gate.is_closed() {
            self.transport.hold_off(cx);
        }
        Catch::none(hold)
    }

    /// A claim for many is not on its way any more.
    fn leave(&mut self, pass: ClaimPass, hold: &[SlotPermit], scope: &ClaimScope) {
        self.gate.exit(pass);
        if let ClaimScope::Only { provider } = scope {
            self.slots.give_room(provider, u16::try_from(hold.len()).unwrap_or(u16::MAX));
        }
    }

    /// A claim for many ended. `fresh` says whether it brought a task that is not here yet.
    pub(crate) fn batch_ended(
        &mut self,
        cx: &mut Cx<'_>,
        runtimes: &Runtimes,
        (hold, pass, scope): ManyClaim,
        result: Result<ApiReply, ApiError>,
        fresh: bool,
    ) -> Catch {
        self.leave(pass, &hold, &scope);
        let mut catch = Catch::none(hold);
        match result {
            Ok(ApiReply::Claimed { offers, unusable }) => {
                self.batch.claimed(cx, &scope, fresh);
                unusable_fact(cx, unusable);
                catch.offers = offers;
            }
            Ok(_) => self.batch.failed(cx, ApiError::Undecodable),
            Err(error) if error.refusal() == Some(Refusal::RouteMissing) && self.mode == ClaimMode::Auto => {
                self.batch.failed(cx, error);
                self.batch.rest(cx);
                cx.fact(Fact::PerRuntimeClaims);
                self.active = Active::PerRuntime;
                for runtime in runtimes.claimable() {
                    self.per_runtime.start(cx, runtime, true);
                }
            }
            Err(error) => {
                catch.unauthorized = error.refusal() == Some(Refusal::Unauthorized);
                self.batch.failed(cx, error);
            }
        }
        catch
    }

    /// A claim for one ended; `fresh` as above.
    pub(crate) fn one_ended(
        &mut self,
        cx: &mut Cx<'_>,
        runtimes: &Runtimes,
        (op, slot, pass, runtime, provider): (OpId, SlotPermit, ClaimPass, RuntimeId, Provider),
        result: Result<ApiReply, ApiError>,
        fresh: bool,
    ) -> Catch {
        self.gate.exit(pass);
        self.per_runtime.answered(op, &runtime);
        self.room_came_free(cx, runtimes, &provider);
        let mut catch = Catch::none(vec![slot]);
        match result {
            Ok(ApiReply::Claimed { offers, unusable }) => {
                self.per_runtime.claimed(cx, op, &runtime, fresh);
                unusable_fact(cx, unusable);
                catch.offers = offers;
            }
            Ok(_) => self.per_runtime.failed(cx, op, &runtime, ApiError::Undecodable),
            Err(error) => {
                catch.unauthorized = error.refusal() == Some(Refusal::Unauthorized);
                self.per_runtime.failed(cx, op, &runtime, error);
                if error.refusal() == Some(Refusal::RuntimeGone) {
                    catch.gone = Some(runtime);
                }
            }
        }
        catch
    }

    /// A task of this provider has a slot that a claim held.
    pub(crate) fn occupy(&mut self, provider: &Provider) {
        self.slots.take_room(provider, 1);
    }

    /// Lets a task wait for a user's directory without a slot, if fewer tasks do so than there are slots.
    pub(crate) fn let_park(&mut self) -> Option<ParkPermit> {
        self.slots.let_park()
    }

    /// A task waits for a user's directory: its slot is free, and so is its room at its provider.
    pub(crate) fn parked(
        &mut self,
        cx: &mut Cx<'_>,
        runtimes: &Runtimes,
        permit: SlotPermit,
        provider: &Provider,
    ) {
        self.slots.release(permit);
        self.room_came_free(cx, runtimes, provider);
    }

    /// A provider has room for one more, and nobody asked for anything: those that found it full may try again.
    fn room_came_free(&mut self, cx: &mut Cx<'_>, runtimes: &Runtimes, provider: &Provider) {
        self.slots.give_room(provider, 1);
        if self.slots.room(provider).is_some() {
            match self.active {
                Active::Batch => self.batch.room(provider.clone()),
                Active::PerRuntime => self.per_runtime.room(cx, provider, runtimes),
            }
        }
    }

    /// Whether a slot is free for a task that is here already.
    pub(crate) fn has_free_slot(&self) -> bool {
        self.slots.available() > 0
    }

    /// Whether one more task of this provider may run.
    pub(crate) fn has_room(&self, provider: &Provider) -> bool {
        self.slots.room(provider) != Some(0)
    }

    /// A slot for a parked task of this provider.
    pub(crate) fn slot_for_parked(&mut self, provider: &Provider) -> Option<SlotPermit> {
        let permit = self.slots.try_acquire()?;
        self.slots.take_room(provider, 1);
        Some(permit)
    }

    /// The parked task needs no slot.
    pub(crate) fn refuse_slot(&mut self, permit: SlotPermit, provider: &Provider) {
        self.slots.release(permit);
        self.slots.give_room(provider, 1);
    }

    /// A task is not parked any more.
    pub(crate) fn unpark(&mut self, permit: ParkPermit) {
        self.slots.unpark(permit);
    }

    /// Tasks that are parked.
    pub(crate) const fn parked_now(&self) -> u16 {
        self.slots.parked()
    }

    /// A task of this provider runs since before this process: its own slot if that is free, else another one. None is left if there were
    /// more slots before; the task runs all the same.
    pub(crate) fn occupy_again(&mut self, provider: &Provider, slot: SlotIndex) -> Option<SlotPermit> {
        self.slots.take_room(provider, 1);
        self.slots.take_free_at(slot).or_else(|| self.slots.try_acquire())
    }

    /// A slot comes back unused.
    pub(crate) fn release(&mut self, permit: SlotPermit) {
        self.slots.release(permit);
    }

    /// A task is over. Returns whether its end is news: not if it has ended a moment ago already, and was handed out again at once.
    pub(crate) fn ended(&mut self, now: Instant, task: &TaskId) -> bool {
        let news = !self.recent.has(now, task);
        self.recent.add(now, task);
        news
    }

    /// A task is over: its slot, if it had one, is free, and if its end is news, that may have unblocked another task.
    pub(crate) fn task_ended(
        &mut self,
        cx: &mut Cx<'_>,
        runtimes: &Runtimes,
        permit: Option<SlotPermit>,
        (runtime, provider): (&RuntimeId, &Provider),
        news: bool,
    ) {
        if let Some(permit) = permit {
            self.slots.release(permit);
        }
        self.slots.give_room(provider, 1);
        if self.slots.room(provider).is_some() {
            match self.active {
                Active::Batch => self.batch.want_provider(provider.clone()),
                Active::PerRuntime => self.per_runtime.room(cx, provider, runtimes),
            }
        }
        if news && runtimes.provider(runtime).is_some() {
            self.wake(cx, Some(runtime));
        }
    }

    /// No claim from now on; those on their way are waited for.
    pub(crate) fn close(&mut self, cx: &mut Cx<'_>) {
        if let Some(owner) = self.gate.close() {
            cx.emit(Effect::Gate { owner, answer: GateAnswer::Busy });
        }
        self.transport.close(cx);
        cx.disarm(&TimerKey::Poll);
        cx.disarm(&TimerKey::Pace);
    }

    /// Who has the gate.
    pub(crate) const fn gate_holder(&self) -> Option<GateOwner> {
        self.gate.holder()
    }

    /// Whether a claim waits because too many brought nothing: one of this runtime, or one for all.
    pub(crate) fn is_paced(&self, runtime: Option<&RuntimeId>, now: Instant) -> bool {
        match runtime {
            Some(runtime) => self.per_runtime.is_paced(runtime, now),
            None => self.batch.is_paced(now),
        }
    }

    /// Claims on their way.
    pub(crate) fn on_their_way(&self) -> u32 {
        self.gate.out()
    }

    /// Asks for the end of claims that a stop has waited for long enough.
    pub(crate) fn cancel_open(cx: &mut Cx<'_>) {
        let open: Vec<OpId> =
            cx.env.ops.iter().filter(|(_, kind)| kind.is_claim()).map(|(op, _)| op).collect();
        for op in open {
            cx.cancel(op);
        }
    }

    pub(crate) fn free_slots(&self) -> u16 {
        self.slots.available()
    }

    pub(crate) const fn total_slots(&self) -> u16 {
        self.slots.total()
    }

    /// Whether every slot is free, held by a claim, or in `held` by a task: each exactly once.
    pub(crate) fn conserves_slots(&self, ops: &Ops, held: impl Iterator<Item = SlotIndex>) -> bool {
        let in_claims: Vec<SlotIndex> = ops
            .iter()
            .flat_map(|(_, kind)| match kind {
                OpKind::Api(ApiOp::Claim { hold, .. } | ApiOp::ClaimOver { hold, .. }) => {
                    hold.iter().map(|p| p.index).collect::<Vec<_>>()
                }
                OpKind::Api(ApiOp::ClaimOne { slot, .. }) => vec![slot.index],
                _ => Vec::new(),
            })
            .collect();
        self.slots.conserves(in_claims.into_iter().chain(held))
    }
}

fn unusable_fact(cx: &mut Cx<'_>, count: u16) {
    if count > 0 {
        cx.fact(Fact::Unusable { count });
    }
}
