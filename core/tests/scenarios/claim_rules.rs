//! The rules about claims and the gate notice what is tampered with.

use longshore_core::config::{ClaimMode, Config};
use longshore_core::effect::{ApiCall, ClaimCall, Effect, Fact, GateAnswer, RuntimeChange};
use longshore_core::error::ApiError;
use longshore_core::event::{ApiReply, ClaimKey, Event, GateAsk, GateOwner, WsEvent};
use longshore_core::id::{ConnGen, OpId, RuntimeId};
use longshore_core::observe::{Rules, Step};
use longshore_core::rng::Seed;
use longshore_core::script::{Runner, Seeded, World, effect_label};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of the history so far.
#[derive(Default)]
struct Past {
    over: BTreeSet<OpId>,
    held_off: bool,
    per_runtime: bool,
    conn: Option<ConnGen>,
    many: Option<ClaimCall>,
    ones: BTreeMap<OpId, RuntimeId>,
    /// Claims for one that a hint came during.
    hinted: BTreeSet<OpId>,
    admitted: BTreeMap<RuntimeId, ClaimKey>,
}

impl Past {
    fn note(&mut self, event: &Event, effects: &[Effect]) {
        if let Event::Ws { conn, ws: WsEvent::Ack { claims: true, .. } } = event {
            self.conn = Some(*conn);
        }
        if let Event::Ws { ws: WsEvent::TaskAvailable { runtime: Some(runtime), .. }, .. } = event {
            self.hinted.extend(self.ones.iter().filter(|(_, of)| *of == runtime).map(|(op, _)| *op));
        }
        if let Event::Api { op, .. } = event {
            self.ones.remove(op);
        }
        for effect in effects {
            match effect {
                Effect::Api { op, call: ApiCall::ClaimOne(call), .. } => {
                    self.ones.insert(*op, call.runtime().clone());
                }
                Effect::Api { op, call: ApiCall::ClaimOver { .. }, .. } => drop(self.over.insert(*op)),
                Effect::Api { call: ApiCall::Claim(call), .. } => {
                    self.held_off = false;
                    self.many = Some(call.clone());
                }
                Effect::Fact { fact: Fact::HeldOff } => self.held_off = true,
                Effect::Fact { fact: Fact::PerRuntimeClaims } => self.per_runtime = true,
                Effect::Fact { fact: Fact::Admitted { claim, runtime, .. } } => {
                    self.admitted.insert(runtime.clone(), *claim);
                }
                _ => {}
            }
        }
    }

    /// The result of a claim over the connection, if this is one.
    fn over<'a>(&self, event: &'a mut Event) -> Option<&'a mut Result<ApiReply, ApiError>> {
        match event {
            Event::Api { op, r } if self.over.contains(op) => Some(r),
            _ => None,
        }
    }
}

/// What an observer is shown instead of the truth. Returns whether it was changed.
type Tamper = fn(&Past, &mut Event, &mut Vec<Effect>) -> bool;

fn has(effects: &[Effect], prefix: &str) -> bool {
    effects.iter().any(|effect| effect_label(effect).starts_with(prefix))
}

fn hide(effects: &mut Vec<Effect>, prefix: &str) -> bool {
    let before = effects.len();
    effects.retain(|effect| !effect_label(effect).starts_with(prefix));
    effects.len() < before
}

fn call(effects: &mut [Effect], wanted: fn(&ApiCall) -> bool) -> Option<&mut ApiCall> {
    effects.iter_mut().find_map(|effect| match effect {
        Effect::Api { call, .. } if wanted(call) => Some(call),
        _ => None,
    })
}

fn is_many(call: &ApiCall) -> bool {
    matches!(call, ApiCall::Claim(_))
}

fn is_empty(event: &Event) -> bool {
    matches!(event, Event::Api { r: Ok(ApiReply::Claimed { offers, .. }), .. } if offers.is_empty())
}

const TAMPERS: &[(&str, Tamper)] = &[
    ("I10", |_, event, fx| {
        let claims = has(fx, "claim") || has(fx, "one ");
        if claims {
            *event = Event::Gate { owner: GateOwner::Reload, ask: GateAsk::Wait };
        }
        claims
    }),
    ("I10", |_, _, fx| {
        let claims = has(fx, "claim");
        if claims {
            fx.push(Effect::Gate { owner: GateOwner::Reload, answer: GateAnswer::Granted });
        }
        claims
    }),
    ("I14", |past, event, fx| {
        let claims = has(fx, "claim");
        match past.over(event) {
            Some(r) if r.is_ok() && claims => {
                *r = Err(ApiError::Unknown);
                true
            }
            _ => false,
        }
    }),
    ("INV-36", |_, event, fx| match event {
        Event::Ws { ws: WsEvent::TaskAvailable { runtime: Some(runtime), .. }, .. } if has(fx, "one ") => {
            *runtime = RuntimeId::new("another");
            true
        }
        _ => false,
    }),
    ("INV-36", |_, event, fx| {
        matches!(event, Event::Ws { ws: WsEvent::TaskAvailable { runtime: Some(_), .. }, .. })
            && hide(fx, "one ")
    }),
    ("INV-37", |_, event, fx| {
        matches!(event, Event::Ws { ws: WsEvent::TaskAvailable { runtime: None, .. }, .. })
            && hide(fx, "one ")
    }),
    ("INV-38", |past, event, fx| match event {
        Event::Api { op, .. } if past.hinted.contains(op) => is_empty(event) && hide(fx, "one "),
        _ => false,
    }),
    ("INV-39", |_, event, fx| match event {
        Event::Api { r: Ok(ApiReply::Claimed { offers, .. }), .. }
            if !offers.is_empty() && has(fx, "one ") =>
        {
            offers.clear();
            true
        }
        _ => false,
    }),
    ("INV-41", |_, _, fx| hide(fx, "claim")),
    ("INV-42", |past, event, fx| match past.over(event) {
        Some(r) if has(fx, "is held off") => {
            *r = Err(ApiError::NotSent);
            true
        }
        _ => false,
    }),
    ("INV-43", |past, _, fx| match (past.conn, call(fx, is_many)) {
        (Some(conn), Some(call)) if past.held_off => {
            if let ApiCall::Claim(claim) = call.clone() {
                *call = ApiCall::ClaimOver { conn, claim };
            }
            true
        }
        _ => false,
    }),
    // A daemon that only polls on after it.
    ("INV-43", |past, event, fx| match past.over(event) {
        Some(r @ Ok(ApiReply::Claimed { .. })) if !has(fx, "claim") && !has(fx, "is ") => {
            *r = Err(ApiError::Unknown);
            fx.push(Effect::Fact { fact: Fact::HeldOff });
            true
        }
        _ => false,
    }),
    ("INV-44", |_, _, fx| match call(fx, |call| matches!(call, ApiCall::ClaimOver { .. })) {
        Some(ApiCall::ClaimOver { conn, .. }) => {
            conn.0 += 1;
            true
        }
        _ => false,
    }),
    ("INV-45", |past, _, fx| match (&past.many, call(fx, |call| matches!(call, ApiCall::ClaimOne(_)))) {
        (Some(many), Some(call)) if past.per_runtime => {
            *call = ApiCall::Claim(many.clone());
            true
        }
        _ => false,
    }),
    ("INV-47", |_, _, fx| {
        let granted =
            fx.iter().find(|e| matches!(e, Effect::Gate { answer: GateAnswer::Granted, .. })).cloned();
        fx.extend(granted.clone());
        granted.is_some()
    }),
    ("INV-49", |_, _, fx| {
        let answer = fx.iter_mut().find_map(|effect| match effect {
            Effect::Gate { answer, .. } if *answer == GateAnswer::Granted => Some(answer),
            _ => None,
        });
        answer.map(|answer| *answer = GateAnswer::Busy).is_some()
    }),
    ("INV-49", |_, event, fx| matches!(event, Event::Api { .. }) && hide(fx, "gate ")),
    ("INV-50", |past, event, fx| {
        let removed = fx.iter().find_map(|effect| match effect {
            Effect::Runtime { runtime, change: RuntimeChange::Removed, .. } => past.admitted.get(runtime),
            _ => None,
        });
        let Some(claim) = removed.filter(|_| matches!(event, Event::Api { .. })) else { return false };
        let ending = Fact::Ending { claim: *claim, why: longshore_core::effect::EndReason::Server };
        fx.push(Effect::Fact { fact: ending });
        true
    }),
    ("CLAIM-FALLBACK", |past, event, fx| match past.over(event) {
        Some(r @ Ok(ApiReply::Claimed { .. })) if !has(fx, "claim") => {
            *r = Err(ApiError::NotSent);
            true
        }
        _ => false,
    }),
    ("CLAIM-RATE", |_, _, fx| {
        let claim = fx.iter().find(|e| effect_label(e).starts_with("claim")).cloned();
        if let Some(Effect::Api { call, deadline, .. }) = claim {
            fx.extend((0..60).map(|n| Effect::Api { op: OpId(1_000_000 + n), call: call.clone(), deadline }));
            return true;
        }
        false
    }),
    ("GATE-ANSWER", |_, event, fx| matches!(event, Event::Gate { .. }) && hide(fx, "gate ")),
];

fn noticed(tamper: Tamper, wanted: &str) -> bool {
    (0..300).any(|seed| {
        let mut choose = Seeded::new(seed);
        let mut cfg = World::config(&mut choose);
        if seed >= 200 {
            // Where pollers never wait for slots.
            cfg = Config { slots: 40, claim_mode: ClaimMode::PerRuntime, ..Config::default() };
        }
        let mut runner = Runner::new(cfg.clone(), Seed(seed)).expect("a world's settings are in bounds");
        let (mut rules, mut past, mut changed) = (Rules::new(&cfg), Past::default(), false);
        let wakeup = |runner: &Runner| runner.daemon.next_wakeup().map(|(at, _)| at);
        let now = runner.world.now();
        let (view, at) = (runner.daemon.view(), wakeup(&runner));
        rules.observe(&Step { now, event: None, effects: runner.effects(), view, wakeup: at });
        for _ in 0..300 {
            let Some((now, mut event)) = runner.world.next(&mut choose, wakeup(&runner)) else { break };
            let mut effects = runner.feed(now, event.clone()).to_vec();
            let (told, did) = (event.clone(), effects.clone());
            changed |= tamper(&past, &mut event, &mut effects);
            past.note(&told, &did);
            let (view, at) = (runner.daemon.view(), wakeup(&runner));
            rules.observe(&Step { now, event: Some(&event), effects: &effects, view, wakeup: at });
            if !rules.violations().is_empty() {
                break;
            }
        }
        assert!(changed || rules.violations().is_empty(), "{:?}", rules.violations());
        rules.violations().iter().any(|violation| violation.rule == wanted)
    })
}

#[test]
fn the_rules_about_claims_notice_what_is_tampered_with() {
    let blind: Vec<_> = (0..TAMPERS.len())
        .filter(|nth| !noticed(TAMPERS[*nth].1, TAMPERS[*nth].0))
        .map(|nth| (nth, TAMPERS[nth].0))
        .collect();
    assert!(blind.is_empty(), "not noticed: {blind:?}");
}

#[test]
fn the_world_reaches_every_way_to_claim_and_every_answer_of_the_gate() {
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let mut choose = Seeded::new(seed);
        let cfg = World::config(&mut choose);
        let mut runner = Runner::new(cfg, Seed(seed)).expect("a world's settings are in bounds");
        for _ in 0..300 {
            let wakeup = runner.daemon.next_wakeup().map(|(at, _)| at);
            let Some((now, event)) = runner.world.next(&mut choose, wakeup) else { break };
            let labels: Vec<String> = runner.feed(now, event).iter().map(effect_label).collect();
            seen.extend(
                labels.into_iter().map(|l| l.split_once(" ws-").map_or(l.clone(), |(l, _)| l.into())),
            );
        }
    }
    let mut wanted: Vec<&str> = vec!["is held off", "claim-over all 1", "claim-over named"];
    wanted.extend(["gate serverupdate granted", "gate serverupdate busy", "gate demotion granted"]);
    wanted.extend(["gate selfupdate granted", "gate reload granted", "gate reload busy"]);
    let missing: Vec<_> = wanted.iter().filter(|label| !seen.contains(**label)).collect();
    assert!(missing.is_empty(), "never reached: {missing:?}");
}
