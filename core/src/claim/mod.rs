//! How tasks are asked for: slots before claims, a gate that can be closed, one poller for all runtimes or one for each.

mod batch;
mod gate;
mod per_runtime;
mod slots;

use crate::config::{ClaimMode, Config};
use crate::effect::{ClaimScope, Fact};
use crate::env::Cx;
use crate::error::{ApiError, Refusal};
use crate::event::{ApiReply, Offer};
use crate::id::{OpId, Provider, RuntimeId, SlotIndex};
use crate::op::{ApiOp, OpKind, Ops};
use crate::runtimes::Runtimes;
use crate::timer::TimerKey;
use crate::token::{ClaimPass, SlotPermit};
use batch::BatchPoller;
use gate::ClaimGate;
use per_runtime::PerRuntimePollers;
use serde::{Deserialize, Serialize};
use slots::Slots;

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
        if self.mode == ClaimMode::Auto && self.active == Active::PerRuntime {
            self.active = Active::Batch;
            self.per_runtime.stop_all(cx);
        }
        self.wake(cx, None);
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
        match self.active {
            Active::Batch => self.batch.feed(cx, &mut self.slots, &mut self.gate, runtimes),
            Active::PerRuntime => self.per_runtime.feed(cx, &mut self.slots, &mut self.gate, runtimes),
        }
    }

    /// A claim for many ended. `fresh` says whether it brought a task that is not here yet.
    pub(crate) fn batch_ended(
        &mut self,
        cx: &mut Cx<'_>,
        runtimes: &Runtimes,
        (hold, pass, scope): (Vec<SlotPermit>, ClaimPass, ClaimScope),
        result: Result<ApiReply, ApiError>,
        fresh: bool,
    ) -> Catch {
        self.gate.exit(pass);
        if let ClaimScope::Only { provider } = &scope {
            self.slots.give_room(provider, u16::try_from(hold.len()).unwrap_or(u16::MAX));
        }
        let mut catch = Catch { offers: Vec::new(), permits: hold, gone: None, unauthorized: false };
        match result {
            Ok(ApiReply::Claimed { offers, unusable }) => {
                self.batch.claimed(cx, &scope, fresh);
                unusable_fact(cx, unusable);
                catch.offers = offers;
            }
            Ok(_) => self.batch.failed(cx, ApiError::Undecodable),
            Err(error) if error.refusal() == Some(Refusal::RouteMissing) && self.mode == ClaimMode::Auto => {
                self.batch.failed(cx, error);
                self.batch.rest();
                cx.disarm(&TimerKey::Poll);
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
        self.slots.give_room(&provider, 1);
        self.per_runtime.answered(op, &runtime);
        match self.active {
            Active::Batch if self.slots.room(&provider).is_some() => self.batch.room(provider),
            Active::Batch => {}
            Active::PerRuntime => self.per_runtime.room(cx, &provider, runtimes),
        }
        let mut catch = Catch { offers: Vec::new(), permits: vec![slot], gone: None, unauthorized: false };
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

    /// A task of this provider runs.
    pub(crate) fn occupy(&mut self, provider: &Provider) {
        self.slots.take_room(provider, 1);
    }

    /// A task of this provider runs since before this process: its own slot if that is free, else another one. None is left if there were
    /// more slots before; the task runs all the same.
    pub(crate) fn occupy_again(&mut self, provider: &Provider, slot: SlotIndex) -> Option<SlotPermit> {
        self.slots.take_room(provider, 1);
        self.slots.try_acquire_at(slot).or_else(|| self.slots.try_acquire())
    }

    /// A slot comes back unused.
    pub(crate) fn release(&mut self, permit: SlotPermit) {
        self.slots.release(permit);
    }

    /// A task ended: its slot, if it had one, is free, and its end may have unblocked another task.
    pub(crate) fn task_ended(
        &mut self,
        cx: &mut Cx<'_>,
        runtimes: &Runtimes,
        permit: Option<SlotPermit>,
        runtime: &RuntimeId,
        provider: &Provider,
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
        if runtimes.provider(runtime).is_some() {
            self.wake(cx, Some(runtime));
        }
    }

    /// No claim from now on; those on their way are waited for.
    pub(crate) fn close(&mut self, cx: &mut Cx<'_>) {
        self.gate.close();
        cx.disarm(&TimerKey::Poll);
    }

    /// Claims on their way.
    pub(crate) fn on_their_way(&self) -> u32 {
        self.gate.out()
    }

    /// Asks for the end of claims that a stop has waited for long enough.
    pub(crate) fn cancel_open(cx: &mut Cx<'_>) {
        let claims =
            |kind: &OpKind| matches!(kind, OpKind::Api(ApiOp::Claim { .. } | ApiOp::ClaimOne { .. }));
        let open: Vec<OpId> = cx.env.ops.iter().filter(|(_, kind)| claims(kind)).map(|(op, _)| op).collect();
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
        let in_claims = ops.iter().flat_map(|(_, kind)| match kind {
            OpKind::Api(ApiOp::Claim { hold, .. }) => hold.iter().map(|p| p.index).collect::<Vec<_>>(),
            OpKind::Api(ApiOp::ClaimOne { slot, .. }) => vec![slot.index],
            _ => Vec::new(),
        });
        self.slots.conserves(in_claims.chain(held))
    }
}

fn unusable_fact(cx: &mut Cx<'_>, count: u16) {
    if count > 0 {
        cx.fact(Fact::Unusable { count });
    }
}
