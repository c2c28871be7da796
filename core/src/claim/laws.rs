//! Both pollers under the laws, each with the slots, the gate and a set of runtimes.

use super::batch::BatchPoller;
use super::gate::ClaimGate;
use super::per_runtime::PerRuntimePollers;
use super::slots::Slots;
use super::transport::Transport;
use crate::env::{Cx, Env};
use crate::error::ApiError;
use crate::event::ApiReply;
use crate::id::{OpId, Provider, RuntimeId};
use crate::laws::{Machine, holds, serving};
use crate::op::ApiOp;
use crate::runtimes::Runtimes;
use crate::script::Choose;
use crate::timer::TimerKey;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

type Reply = Result<ApiReply, ApiError>;

fn runtime(choose: &mut dyn Choose) -> RuntimeId {
    RuntimeId::new(["r-a", "r-b", "r-c"][choose.below(3) as usize])
}

fn slots() -> Slots {
    Slots::new(2, BTreeMap::from([(Provider::new("claude"), 1)]))
}

#[derive(Hash, Serialize, Deserialize)]
struct Batch {
    poller: BatchPoller,
    slots: Slots,
    gate: ClaimGate,
    transport: Transport,
    runtimes: Runtimes,
}

impl Machine for Batch {
    fn start(cx: &mut Cx<'_>) -> Self {
        let mut poller = BatchPoller::default();
        poller.want_all();
        Self {
            poller,
            slots: slots(),
            gate: ClaimGate::default(),
            transport: Transport::default(),
            runtimes: serving(cx),
        }
    }

    fn poke(&mut self, _: &mut Cx<'_>, choose: &mut dyn Choose) {
        match choose.below(4) {
            0 => self.poller.want_all(),
            1 => self.poller.want_provider(Provider::new("claude")),
            _ => self.poller.want(runtime(choose)),
        }
    }

    fn due(&mut self, _: &mut Cx<'_>, timer: &TimerKey) {
        match timer {
            TimerKey::Poll => self.poller.due(),
            TimerKey::Pace => {}
            other => panic!("{other:?} is not of this machine"),
        }
    }

    fn answered(&mut self, cx: &mut Cx<'_>, _: OpId, kind: ApiOp, r: Reply) {
        let ApiOp::Claim { hold, pass, scope } = kind else { panic!("{kind:?} is not of this machine") };
        self.gate.exit(pass);
        if let crate::effect::ClaimScope::Only { provider } = &scope {
            self.slots.give_room(provider, u16::try_from(hold.len()).expect("few"));
        }
        for permit in hold {
            self.slots.release(permit);
        }
        match r {
            Ok(_) => self.poller.claimed(cx, &scope, false),
            Err(error) => self.poller.failed(cx, error),
        }
    }

    fn settle(&mut self, cx: &mut Cx<'_>) {
        let Self { poller, slots, gate, transport, runtimes } = self;
        poller.feed(cx, (slots, gate, transport), runtimes);
    }

    fn close(&mut self, cx: &mut Cx<'_>) -> bool {
        assert_eq!(self.gate.close(), None, "nobody asks for the gate here");
        cx.disarm(&TimerKey::Poll);
        cx.disarm(&TimerKey::Pace);
        true
    }

    /// It asks again and again, and holds nothing between.
    fn is_at_rest(&self, env: &Env) -> bool {
        self.slots.available() == 2 && self.gate.out() == 0 && env.timers.len() == 1
    }
}

#[derive(Hash, Serialize, Deserialize)]
struct Each {
    pollers: PerRuntimePollers,
    slots: Slots,
    gate: ClaimGate,
    runtimes: Runtimes,
}

impl Machine for Each {
    fn start(cx: &mut Cx<'_>) -> Self {
        let runtimes = serving(cx);
        let mut pollers = PerRuntimePollers::default();
        for id in ["r-a", "r-b", "r-c"] {
            pollers.start(cx, &RuntimeId::new(id), false);
        }
        Self { pollers, slots: slots(), gate: ClaimGate::default(), runtimes }
    }

    fn poke(&mut self, cx: &mut Cx<'_>, choose: &mut dyn Choose) {
        match choose.below(6) {
            0 => self.pollers.wake_all(cx),
            1 => {
                let runtime = runtime(choose);
                self.pollers.stop(cx, &runtime);
                self.pollers.start(cx, &runtime, choose.one_in(2));
            }
            _ => self.pollers.wake(cx, &runtime(choose)),
        }
    }

    fn due(&mut self, cx: &mut Cx<'_>, timer: &TimerKey) {
        let TimerKey::PollOne(runtime) = timer else { panic!("{timer:?} is not of this machine") };
        self.pollers.due(cx, runtime);
    }

    fn answered(&mut self, cx: &mut Cx<'_>, op: OpId, kind: ApiOp, r: Reply) {
        let ApiOp::ClaimOne { slot, pass, runtime, provider } = kind else {
            panic!("{kind:?} is not of this machine")
        };
        self.gate.exit(pass);
        self.slots.give_room(&provider, 1);
        self.slots.release(slot);
        self.pollers.answered(op, &runtime);
        match r {
            Ok(_) => self.pollers.claimed(cx, op, &runtime, false),
            Err(error) => self.pollers.failed(cx, op, &runtime, error),
        }
        self.pollers.room(cx, &provider, &self.runtimes);
    }

    fn settle(&mut self, cx: &mut Cx<'_>) {
        self.pollers.feed(cx, &mut self.slots, &mut self.gate, &self.runtimes);
    }

    fn close(&mut self, _: &mut Cx<'_>) -> bool {
        self.gate.close();
        true
    }

    fn is_at_rest(&self, env: &Env) -> bool {
        self.slots.available() == 2 && self.gate.out() == 0 && env.timers.len() == 3
    }
}

#[test]
fn the_poller_for_all_keeps_the_laws() {
    holds::<Batch>();
}

#[test]
fn pollers_for_each_runtime_keep_the_laws() {
    holds::<Each>();
}
