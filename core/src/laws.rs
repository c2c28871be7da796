//! The laws of the boundary, for each machine on its own: what a machine does by itself it does at its deadlines (L1), a deadline that passed
//! moves on (L2), an early look changes nothing (L3), an answer counts once (L5), after its close nothing is asked (L6), and without input it
//! comes to rest (L7). One `Machine` for each of them; the inputs are chance.

mod machines;

pub(crate) use machines::serving;

use crate::config::Config;
use crate::digest::Digest;
use crate::effect::{Effect, Effects, WsCmd};
use crate::env::{Cx, Env};
use crate::error::ApiError;
use crate::event::ApiReply;
use crate::id::OpId;
use crate::op::{ApiOp, OpKind, Ops};
use crate::rng::{Rng, Seed};
use crate::script::{Choose, Seeded};
use crate::time::{Instant, Now, UnixMillis};
use crate::timer::{TimerKey, Timers};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::hash::{Hash, Hasher};

/// Histories of one machine.
const SEEDS: u64 = 20;
/// Inputs of one history.
const STEPS: usize = 45;
/// Without input, a machine is at rest after so many deadlines and answers.
const MOST_TO_REST: usize = 2_000;

/// A machine that can be driven alone.
pub(crate) trait Machine: Sized + Hash + Serialize + DeserializeOwned {
    /// A machine at its start.
    fn start(cx: &mut Cx<'_>) -> Self;
    /// Something that another machine, or the world, may tell it.
    fn poke(&mut self, cx: &mut Cx<'_>, choose: &mut dyn Choose);
    /// A deadline of it passed.
    fn due(&mut self, cx: &mut Cx<'_>, timer: &TimerKey);
    /// A request of it ended, of this kind.
    fn answered(&mut self, cx: &mut Cx<'_>, op: OpId, kind: ApiOp, r: Result<ApiReply, ApiError>);
    /// Its look at the agent CLIs ended, well or not.
    fn looked(&mut self, _cx: &mut Cx<'_>, _op: OpId, _well: bool) {}
    /// What it does at the end of each step.
    fn settle(&mut self, _cx: &mut Cx<'_>) {}
    /// Ends it. Returns whether it has such an end.
    fn close(&mut self, _cx: &mut Cx<'_>) -> bool {
        false
    }
    /// Whether it has nothing left to do. A machine with a period of its own is at rest while only that is armed.
    fn is_at_rest(&self, env: &Env) -> bool;
    /// An answer that a healthy world gives.
    fn well(_kind: &ApiOp) -> ApiReply {
        ApiReply::Done
    }
}

/// A machine, and what it shares with others.
struct Bench<M> {
    cfg: Config,
    now: Now,
    env: Env,
    machine: M,
    out: Effects,
    /// How many requests it has ever sent and connections it has dialled.
    opened: usize,
}

impl<M: Machine> Bench<M> {
    fn new(seed: u64) -> Self {
        let cfg = Config { slots: 2, ..Config::default() };
        let now = Now::new(Instant::from_millis(5), UnixMillis(0));
        let mut env = Env { ops: Ops::default(), timers: Timers::default(), rng: Rng::new(Seed(seed)) };
        let mut out = Effects::new();
        let machine = M::start(&mut Cx { now, cfg: &cfg, env: &mut env, out: &mut out });
        let mut bench = Self { cfg, now, env, machine, out, opened: 0 };
        bench.end_step();
        bench
    }

    /// The same machine a second time.
    fn fork(&self) -> Self {
        fn copy<T: Serialize + DeserializeOwned>(it: &T) -> T {
            let text = serde_json::to_string(it).expect("a state can be written down");
            serde_json::from_str(&text).expect("what was written can be read")
        }
        let (machine, env) = (copy(&self.machine), copy(&self.env));
        let (cfg, now, opened) = (self.cfg.clone(), self.now, self.opened);
        Self { cfg, now, env, machine, out: Effects::new(), opened }
    }

    fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        (&self.machine, &self.env).hash(&mut digest);
        digest.finish()
    }

    fn with<T>(&mut self, act: impl FnOnce(&mut M, &mut Cx<'_>) -> T) -> T {
        let mut cx = Cx { now: self.now, cfg: &self.cfg, env: &mut self.env, out: &mut self.out };
        act(&mut self.machine, &mut cx)
    }

    /// What follows at the end of a step: deadlines that have passed, then what the state asks for. Returns what was wanted.
    fn end_step(&mut self) -> Vec<Effect> {
        while let Some(timer) = self.env.timers.pop_due(self.now.mono) {
            match timer {
                TimerKey::Op(op) => self.with(|_, cx| cx.cancel(op)),
                timer => self.with(|machine, cx| machine.due(cx, &timer)),
            }
        }
        self.with(Machine::settle);
        let wanted: Vec<Effect> = self.out.drain().collect();
        let opens = |effect: &&Effect| {
            matches!(
                effect,
                Effect::Api { .. } | Effect::Ws { cmd: WsCmd::Connect { .. } | WsCmd::Beat { .. }, .. }
            )
        };
        self.opened += wanted.iter().filter(opens).count();
        wanted
    }

    fn tick(&mut self, at: Instant) -> Vec<Effect> {
        self.now.mono = self.now.mono.max(at);
        self.end_step()
    }

    fn poke(&mut self, choose: &mut dyn Choose) -> Vec<Effect> {
        self.with(|machine, cx| machine.poke(cx, choose));
        self.end_step()
    }

    /// Answers a request; nothing if there is none of this number.
    fn answer(&mut self, op: OpId, r: Option<Result<ApiReply, ApiError>>) -> Vec<Effect> {
        if self.env.ops.iter().any(|(of, kind)| of == op && *kind == OpKind::Probe) {
            self.env.ops.close_fs(op);
            self.with(|_, cx| cx.disarm(&TimerKey::Op(op)));
            self.with(|machine, cx| machine.looked(cx, op, r.is_none_or(|r| r.is_ok())));
        } else if let Some(kind) = self.env.ops.close_api(op) {
            self.with(|_, cx| cx.disarm(&TimerKey::Op(op)));
            let r = r.unwrap_or_else(|| Ok(M::well(&kind)));
            self.with(|machine, cx| machine.answered(cx, op, kind, r));
        }
        self.end_step()
    }

    fn open(&self) -> Vec<OpId> {
        self.env.ops.iter().map(|(op, _)| op).collect()
    }

    fn wakeup(&self) -> Option<Instant> {
        self.env.timers.next().map(|(at, _)| at)
    }

    /// One step of a history: an input, an answer, well or badly, or time.
    fn step(&mut self, choose: &mut dyn Choose) {
        let open = self.open();
        match choose.below(10) {
            0..4 if !open.is_empty() => {
                let op = open[choose.below(u32::try_from(open.len()).expect("few")) as usize];
                let bad = [
                    ApiError::NotSent,
                    ApiError::Unknown,
                    ApiError::Server { status: 500 },
                    ApiError::Undecodable,
                    ApiError::Throttled { retry_after_ms: Some(2_500) },
                ];
                let r = choose.one_in(3).then(|| Err(bad[choose.below(5) as usize]));
                self.answer(op, r);
            }
            0..7 => {
                self.poke(choose);
            }
            7 => {
                let ahead = u64::from(choose.below(3_000));
                self.tick(Instant::from_millis(self.now.mono.as_millis() + ahead));
            }
            _ => {
                if let Some(at) = self.wakeup() {
                    self.tick(at);
                }
            }
        }
    }
}

/// All laws, over chance histories of one machine.
pub(crate) fn holds<M: Machine>() {
    for seed in 0..SEEDS {
        let mut choose = Seeded::new(seed);
        let mut bench = Bench::<M>::new(seed);
        for nth in 0..STEPS {
            bench.step(&mut choose);
            if nth % 5 == 0 {
                deadlines(&bench, seed);
                once(&bench, seed);
            }
            if nth % 15 == 0 {
                closed(&bench, seed);
                rests(bench.fork(), seed);
            }
        }
    }
}

/// L1, L2, L3.
fn deadlines<M: Machine>(bench: &Bench<M>, seed: u64) {
    let Some(at) = bench.wakeup() else { return };
    let (mut slept, mut looked) = (bench.fork(), bench.fork());
    let (from, to) = (bench.now.mono.as_millis(), at.as_millis());
    // Each millisecond of a wait of minutes would take too long: the first and the last ones, and some between.
    let part = usize::try_from((to - from) / 20 + 1).expect("a wait of a test");
    let mut early: Vec<u64> = (from..to).take(15).chain((from..to).step_by(part)).collect();
    early.extend(to.saturating_sub(15).max(from)..to);
    early.sort_unstable();
    for ms in early {
        let before = looked.digest();
        assert_eq!(
            looked.tick(Instant::from_millis(ms)),
            [],
            "L1, seed {seed}: something at {ms}, due at {to}"
        );
        assert_eq!(looked.digest(), before, "L3, seed {seed}: a look at {ms} changed it");
    }
    assert_eq!(slept.tick(at), looked.tick(at), "L1, seed {seed}");
    assert_eq!(slept.digest(), looked.digest(), "L1, seed {seed}");
    assert!(slept.wakeup().is_none_or(|next| next > at), "L2, seed {seed}: still due");
}

/// L5.
fn once<M: Machine>(bench: &Bench<M>, seed: u64) {
    for op in bench.open() {
        let mut twice = bench.fork();
        twice.answer(op, None);
        let (strays, before) = (twice.env.ops.strays(), twice.open());
        assert_eq!(twice.answer(op, None), [], "L5, seed {seed}: an answer counted twice");
        assert_eq!((twice.env.ops.strays(), twice.open()), (strays + 1, before), "L5, seed {seed}");
    }
}

/// L6.
fn closed<M: Machine>(bench: &Bench<M>, seed: u64) {
    let mut bench = bench.fork();
    if !bench.with(Machine::close) {
        return;
    }
    bench.end_step();
    let known = bench.opened;
    let mut choose = Seeded::new(seed);
    for _ in 0..STEPS {
        bench.step(&mut choose);
    }
    assert_eq!(bench.opened, known, "L6, seed {seed}: something was asked for after the end");
}

/// L7.
fn rests<M: Machine>(mut bench: Bench<M>, seed: u64) {
    for _ in 0..MOST_TO_REST {
        if bench.open().is_empty() && bench.machine.is_at_rest(&bench.env) {
            return;
        }
        if let Some(op) = bench.open().first() {
            bench.answer(*op, None);
        } else {
            let at =
                bench.wakeup().unwrap_or_else(|| panic!("L7, seed {seed}: nothing to wait for, and no rest"));
            bench.tick(at);
        }
    }
    panic!("L7, seed {seed}: no rest, {} on their way", bench.open().len());
}

mod tests {
    use super::*;
    use serde::Deserialize;

    /// A machine that breaks one law.
    #[derive(Default, Hash, Serialize, Deserialize)]
    struct Faulty<const LAW: u8> {
        looks: u32,
    }

    fn ask(cx: &mut Cx<'_>) {
        let within = cx.timing().request;
        cx.api(ApiOp::Renew, crate::effect::ApiCall::Renew, within);
    }

    impl<const LAW: u8> Machine for Faulty<LAW> {
        fn start(cx: &mut Cx<'_>) -> Self {
            cx.arm(TimerKey::Renew, std::time::Duration::from_secs(5));
            Self::default()
        }

        fn poke(&mut self, cx: &mut Cx<'_>, _: &mut dyn Choose) {
            ask(cx);
        }

        fn due(&mut self, cx: &mut Cx<'_>, timer: &TimerKey) {
            if *timer != TimerKey::Late {
                cx.arm(timer.clone(), std::time::Duration::from_secs(5));
            }
        }

        fn answered(&mut self, cx: &mut Cx<'_>, _: OpId, _: ApiOp, _: Result<ApiReply, ApiError>) {
            if LAW == 7 {
                ask(cx);
            }
        }

        fn settle(&mut self, cx: &mut Cx<'_>) {
            match LAW {
                1 if cx.now.mono.as_millis() % 7 == 3 => ask(cx),
                2 if !cx.env.timers.is_armed(&TimerKey::Late) => cx.arm_at(TimerKey::Late, cx.now.mono),
                3 => self.looks += 1,
                _ => {}
            }
        }

        fn close(&mut self, _: &mut Cx<'_>) -> bool {
            LAW == 6
        }

        fn is_at_rest(&self, _: &Env) -> bool {
            true
        }
    }

    #[test]
    #[should_panic(expected = "L1")]
    fn what_is_done_before_a_deadline_is_noticed() {
        holds::<Faulty<1>>();
    }

    #[test]
    #[should_panic(expected = "L2")]
    fn a_deadline_that_stays_due_is_noticed() {
        holds::<Faulty<2>>();
    }

    #[test]
    #[should_panic(expected = "L3")]
    fn a_look_that_changes_something_is_noticed() {
        holds::<Faulty<3>>();
    }

    #[test]
    #[should_panic(expected = "L6")]
    fn what_is_asked_after_the_end_is_noticed() {
        holds::<Faulty<6>>();
    }

    #[test]
    #[should_panic(expected = "L7")]
    fn a_machine_without_rest_is_noticed() {
        holds::<Faulty<7>>();
    }
}
