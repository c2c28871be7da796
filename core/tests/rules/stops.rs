//! Stops of every kind.

use super::harness::{Tamper, broken, cut_short, has, hide, instead, notice, show, started, twice};
use longshore_core::effect::{ApiCall, Effect, Fact, StopPhase};
use longshore_core::event::{Event, StopKind};
use longshore_core::id::RuntimeId;
use longshore_core::observe::Step;
use longshore_core::script::effect_label;
use longshore_core::time::{Instant, Now};
use std::time::Duration;

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

const TAMPERS: &[(&str, Tamper)] = &[
    ("DRAIN", |_, event, _| stops(event, |how| how == StopKind::Now, DRAIN)),
    ("I18", |_, _, fx| twice(fx, "exit")),
    ("I19", |_, event, fx| {
        let third = matches!(event, Event::Stop { .. })
            && !fx.iter().any(|e| effect_label(e) == "is stopping claims");
        third && hide(fx, "exit")
    }),
    ("I9", |_, event, fx| {
        let sent = cancelled(fx, |call| matches!(call, ApiCall::Claim(_) | ApiCall::ClaimOne(_)));
        if sent {
            *event = Event::stop();
        }
        sent
    }),
    ("I9", |_, _, fx| cut_short(fx, "claim ") || cut_short(fx, "one ")),
    ("INV-133", |_, _, fx| {
        let nth = fx.iter().position(|e| effect_label(e) == "is stopping claims");
        let stops = nth.is_some() && !fx.iter().any(|e| effect_label(e) == "is stopping tasks");
        if let Some(nth) = nth.filter(|_| stops) {
            fx.insert(nth + 1, Effect::Fact { fact: Fact::Stopping { phase: StopPhase::Tasks } });
        }
        stops
    }),
    ("INV-134", |_, event, fx| {
        let claims = has(fx, "claim");
        if claims {
            *event = Event::stop();
        }
        claims
    }),
    ("INV-135", |_, event, fx| instead(event, fx, "prepare", Event::stop())),
    ("INV-136", |_, event, _| stops(event, |how| how == DRAIN, StopKind::Restart)),
    ("INV-137", |_, _, fx| {
        let runtimes = fx.iter_mut().find_map(|e| match e {
            Effect::Api { call: ApiCall::Deregister { runtimes, .. }, .. } => Some(runtimes),
            _ => None,
        });
        runtimes.is_some_and(|runtimes| runtimes.pop().is_some())
    }),
    ("INV-137", |_, event, _| stops(event, |how| how == StopKind::Now, DRAIN)),
    ("INV-138", |_, _, fx| {
        let runtimes = fx.iter_mut().find_map(|e| match e {
            Effect::Api { call: ApiCall::Deregister { runtimes, .. }, .. } => Some(runtimes),
            _ => None,
        });
        runtimes.map(|runtimes| runtimes.push(RuntimeId::new("r-never"))).is_some()
    }),
    ("INV-139", |_, _, fx| {
        cancelled(fx, |call| {
            matches!(call, ApiCall::Complete { .. } | ApiCall::Fail { .. } | ApiCall::CancelAck { .. })
        })
    }),
    ("INV-140", |_, event, fx| matches!(event, Event::Stop { .. }) && hide(fx, "cancel #")),
    ("INV-140", |_, event, fx| *event == Event::stop() && hide(fx, "cancel #")),
    ("INV-141", |_, event, fx| instead(event, fx, "beat", Event::stop())),
    ("INV-142", |_, _, fx| hide(fx, "kill #")),
    ("RESTART", |_, event, _| stops(event, |how| how == StopKind::Now, StopKind::Restart)),
    ("RESTART", |_, _, fx| {
        fx.iter_mut().any(|effect| match effect {
            Effect::Exit { report } if !report.kept.is_empty() => {
                report.kept.clear();
                true
            }
            _ => false,
        })
    }),
];

#[test]
fn the_rules_about_stops_notice_what_is_tampered_with() {
    notice(TAMPERS);
}

/// A stop whose exit nobody sees, and then time passes.
fn stopped(times: u32, then: Duration) -> Vec<&'static str> {
    let (mut runner, mut rules) = started(1);
    for _ in 0..times {
        let mut effects = runner.feed(runner.world.now(), Event::stop()).to_vec();
        hide(&mut effects, "exit");
        show(&mut rules, &runner, Some(&Event::stop()), &effects);
    }
    let now = Now::new(Instant::ZERO.after(then), runner.world.now().wall);
    let view = runner.daemon.view();
    rules.observe(&Step { now, event: Some(&Event::Tick), effects: &[], view, wakeup: None });
    broken(&rules)
}

#[test]
fn inv_136_a_stop_without_an_end_is_noticed() {
    assert!(stopped(1, Duration::from_hours(1)).contains(&"INV-136"));
}

#[test]
fn inv_142_a_second_stop_that_does_not_hurry_is_noticed() {
    assert!(stopped(2, Duration::from_secs(20)).contains(&"INV-142"));
}
