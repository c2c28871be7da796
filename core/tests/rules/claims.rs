//! Slots, claims and the gate.

use super::harness::{FORGED, Tamper, answers, broken, has, hide, notice, show, started, twice};
use longshore_core::effect::{ApiCall, Effect, EndReason, Fact, GateAnswer, RuntimeChange};
use longshore_core::error::ApiError;
use longshore_core::event::{ApiReply, Event, GateAsk, GateOwner, WsEvent};
use longshore_core::id::{OpId, RuntimeId};
use longshore_core::script::effect_label;

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
    ("I1", |_, _, fx| hide(fx, "claim all")),
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
    ("I3", |_, _, fx| twice(fx, "claim ")),
    ("I3", |_, _, fx| twice(fx, "one ")),
    ("INV-33", |_, _, fx| hide(fx, "is admitted")),
    ("INV-33", |_, _, fx| {
        let back = fx.iter().find_map(|effect| match effect {
            Effect::Fact { fact: Fact::HandedBack { claim, .. } } => Some(*claim),
            _ => None,
        });
        let Some(claim) = back else { return false };
        *fx = vec![Effect::Forget { claim }];
        true
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
    ("INV-40", |_, _, fx| {
        let call = fx.iter_mut().find_map(|effect| match effect {
            Effect::Api { call: ApiCall::Claim(call), .. } => Some(call),
            _ => None,
        });
        let none = r#"{"set":1,"scope":{"scope":"named","runtimes":[]},"max":1}"#;
        call.map(|call| *call = serde_json::from_str(none).expect("a claim for nobody")).is_some()
    }),
    ("INV-41", |_, _, fx| hide(fx, "claim")),
    ("INV-42", |past, event, fx| match past.over(event) {
        Some(r) if has(fx, "is held off") => {
            *r = Err(ApiError::NotSent);
            true
        }
        _ => false,
    }),
    ("INV-42", |_, event, fx| {
        fx.iter().any(|e| matches!(e, Effect::Api { call: ApiCall::Claim(_) | ApiCall::ClaimOne(_), .. }))
            && answers(
                event,
                |r| matches!(r, ApiReply::Claimed { offers, .. } if offers.len() == 1),
                Err(ApiError::Server { status: 500 }),
            )
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
        let ending = Fact::Ending { claim: *claim, why: EndReason::Server };
        fx.push(Effect::Fact { fact: ending });
        true
    }),
    ("PROVIDER-CAP", |_, _, fx| twice(fx, "claim only")),
];

#[test]
fn the_rules_about_claims_notice_what_is_tampered_with() {
    notice(TAMPERS);
}

#[test]
fn the_rule_about_their_pace_notices_one_claim_too_many() {
    let (runner, mut rules) = started(1);
    let deadline = runner.world.now().mono;
    let claim = r#"{"call":"claim","set":0,"scope":{"scope":"all"},"max":1}"#;
    let claim: ApiCall = serde_json::from_str(claim).expect("a claim");
    for n in 0..12 {
        assert!(!broken(&rules).contains(&"CLAIM-PACE"), "after {n}");
        let op = OpId(FORGED.0 + n);
        let sent = Effect::Api { op, call: claim.clone(), deadline };
        show(&mut rules, &runner, Some(&Event::Tick), &[sent]);
        let empty = ApiReply::Claimed { offers: Vec::new(), unusable: 0 };
        show(&mut rules, &runner, Some(&Event::Api { op, r: Ok(empty) }), &[]);
    }
    assert!(broken(&rules).contains(&"CLAIM-PACE"), "{:?}", rules.violations());
}
