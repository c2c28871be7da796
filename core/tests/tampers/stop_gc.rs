//! Histories of stops and of the collector that are tampered with.

use super::{Tamper, hide, instead};
use longshore_core::effect::{ApiCall, Effect, Fact, FsCall, StopPhase};
use longshore_core::event::{ApiReply, Event, FsReply, StopKind};
use longshore_core::id::{EnvRoot, OpId, RuntimeId};
use longshore_core::script::effect_label;

/// Shows another kind of stop than was asked for.
fn stops(event: &mut Event, wanted: fn(StopKind) -> bool, other: StopKind) -> bool {
    match event {
        Event::Stop { how } if wanted(*how) => {
            *how = other;
            true
        }
        _ => false,
    }
}

/// Shows a cancellation of the request that was just sent.
fn cancelled(effects: &mut Vec<Effect>, wanted: fn(&ApiCall) -> bool) -> bool {
    let sent = effects.iter().find_map(|effect| match effect {
        Effect::Api { op, call, .. } if wanted(call) => Some(*op),
        _ => None,
    });
    effects.extend(sent.map(|op| Effect::Cancel { op }));
    sent.is_some()
}

const DRAIN: StopKind = StopKind::Drain { within_ms: None };

pub(super) const TAMPERS: &[(&str, Tamper)] = &[
    ("I9", |event, fx| {
        let sent = cancelled(fx, |call| matches!(call, ApiCall::Claim(_) | ApiCall::ClaimOne(_)));
        if sent {
            *event = Event::stop();
        }
        sent
    }),
    ("I11", |event, fx| {
        // A task that waits for one directory is shown with others, which the collector may turn to next.
        let waits = fx.iter().any(|e| effect_label(e).starts_with("is awaitingroot"))
            && !fx.iter().any(|e| effect_label(e).starts_with("prepare"));
        match event {
            Event::Api { r: Ok(ApiReply::Claimed { offers, .. }), .. } if waits && offers.len() == 1 => {
                offers[0].root = EnvRoot::new("ws/p-1");
                offers[0].prior = Some(EnvRoot::new("ws/p-2"));
                true
            }
            _ => false,
        }
    }),
    ("I19", |event, fx| {
        let third = matches!(event, Event::Stop { .. })
            && !fx.iter().any(|e| effect_label(e) == "is stopping claims");
        third && hide(fx, "exit")
    }),
    ("INV-133", |_, fx| {
        let nth = fx.iter().position(|e| effect_label(e) == "is stopping claims");
        let stops = nth.is_some() && !fx.iter().any(|e| effect_label(e) == "is stopping tasks");
        if let Some(nth) = nth.filter(|_| stops) {
            fx.insert(nth + 1, Effect::Fact { fact: Fact::Stopping { phase: StopPhase::Tasks } });
        }
        stops
    }),
    ("INV-136", |event, _| stops(event, |how| how == DRAIN, StopKind::Restart)),
    ("INV-137", |event, _| stops(event, |how| how == StopKind::Now, DRAIN)),
    ("INV-138", |_, fx| {
        let runtimes = fx.iter_mut().find_map(|e| match e {
            Effect::Api { call: ApiCall::Deregister { runtimes }, .. } => Some(runtimes),
            _ => None,
        });
        runtimes.map(|runtimes| runtimes.push(RuntimeId::new("r-never"))).is_some()
    }),
    ("INV-139", |_, fx| {
        cancelled(fx, |call| {
            matches!(call, ApiCall::Complete { .. } | ApiCall::Fail { .. } | ApiCall::CancelAck { .. })
        })
    }),
    ("INV-140", |event, fx| matches!(event, Event::Stop { .. }) && hide(fx, "cancel #")),
    ("INV-142", |_, fx| hide(fx, "kill #")),
    ("DRAIN", |event, _| stops(event, |how| how == StopKind::Now, DRAIN)),
    ("RESTART", |event, _| stops(event, |how| how == StopKind::Now, StopKind::Restart)),
    ("RESTART", |_, fx| {
        fx.iter_mut().any(|effect| match effect {
            Effect::Exit { report } if !report.kept.is_empty() => {
                report.kept.clear();
                true
            }
            _ => false,
        })
    }),
    ("GC-PAUSE", |_, fx| {
        let freed = fx.iter().any(|e| effect_label(e).starts_with("is collected"));
        if freed {
            fx.push(Effect::Fs { op: OpId(9_000_000), call: FsCall::Scan });
        }
        freed
    }),
    ("I23", |event, _| match event {
        Event::Fs { r: Ok(FsReply::Scanned { found }), .. } if !found.is_empty() => {
            found.clear();
            true
        }
        _ => false,
    }),
    ("INV-128", |event, fx| instead(event, fx, "is collected", Event::Tick)),
    ("INV-129", |event, fx| instead(event, fx, "is collected", Event::Tick)),
    ("INV-130", |event, fx| instead(event, fx, "is collected", Event::Tick)),
    ("INV-132", |_, fx| {
        // A task that is given up before anything was prepared for it.
        let given_up = fx.iter().any(|e| effect_label(e).starts_with("is ending"))
            && !fx.iter().any(|e| effect_label(e).starts_with("unwind"));
        given_up && (hide(fx, "fail ") | hide(fx, "cancel-ack"))
    }),
    ("INV-143", |_, fx| hide(fx, "is ready")),
    ("INV-144", |event, fx| instead(event, fx, "scan", Event::stop())),
    ("INV-147", |_, fx| {
        fx.iter().any(|e| effect_label(e).starts_with("is admitted")) && hide(fx, "cancel #")
    }),
];
