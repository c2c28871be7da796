//! The rules themselves, further ones: each notices the history that it is there for.

mod tamper;

use longshore_core::config::Config;
use longshore_core::effect::{ApiCall, Effect, EndReason, Fact, WsCmd};
use longshore_core::event::{ApiReply, ClaimKey, Event, WsEvent};
use longshore_core::id::{ConnGen, Generation, OpId, WorkspaceId};
use longshore_core::observe::{Rules, Step};
use longshore_core::rng::Seed;
use longshore_core::script::{Runner, Seeded, World};
use longshore_core::time::{Instant, Now};
use std::time::Duration;
use tamper::{FORGED, Tamper, cut_short, find, forged, hide, noticed, show, twice};

/// The credential is renewed by the very first request.
const RENEWAL: OpId = OpId(1);

/// Dials again at once when a connection is lost.
fn dials_at_once(event: &Event, effects: &mut Vec<Effect>) -> bool {
    let Event::Ws { conn, ws: WsEvent::Down } = event else { return false };
    let set = Generation(0);
    effects.push(Effect::Ws { conn: ConnGen(conn.0 + 1), cmd: WsCmd::Connect { set } });
    true
}

fn is_up(event: &Event) -> bool {
    matches!(event, Event::Ws { ws: WsEvent::Up, .. })
}

const TAMPERS: &[(&str, Tamper)] = &[
    ("DEADLINE", |_, fx| hide(fx, "cancel #")),
    ("I9", |_, fx| cut_short(fx, "claim ") || cut_short(fx, "one ")),
    ("INV-04", |event, fx| {
        let renewed = matches!(event, Event::Api { op, .. } if *op == RENEWAL);
        if renewed {
            let report = longshore_core::effect::ExitReport {
                cause: longshore_core::effect::ExitCause::Unauthorized,
                abandoned: Vec::new(),
                kept: Vec::new(),
            };
            fx.push(Effect::Exit { report });
        }
        renewed
    }),
    ("INV-05", |_, fx| twice(fx, "is ready")),
    ("INV-06", |event, _| match event {
        Event::Api { r: Ok(ApiReply::Workspaces { list, .. }), .. } => {
            list.clear();
            true
        }
        _ => false,
    }),
    ("INV-07", |event, fx| {
        if *event == Event::stop() {
            return false;
        }
        let Some(Effect::Api { call: ApiCall::Deregister { runtimes }, .. }) = find(fx, "deregister") else {
            return false;
        };
        let workspace = WorkspaceId::new(&runtimes[0].as_str()[..4]);
        fx.push(forged(ApiCall::Register { workspace }));
        true
    }),
    ("INV-13", |event, fx| {
        *event != Event::stop() && find(fx, "deregister").is_some() && hide(fx, "removed")
    }),
    ("INV-17", |_, fx| find(fx, "is gone").is_some() && hide(fx, "register")),
    ("INV-20", |_, fx| cut_short(fx, "register")),
    ("INV-21", |_, fx| find(fx, "is gone").is_some() && hide(fx, "removed")),
    ("INV-23", |_, fx| twice(fx, "workspaces")),
    ("INV-40", |_, fx| {
        let call = fx.iter_mut().find_map(|effect| match effect {
            Effect::Api { call: ApiCall::Claim(call), .. } => Some(call),
            _ => None,
        });
        let none = r#"{"set":1,"scope":{"scope":"named","runtimes":[]},"max":1}"#;
        call.map(|call| *call = serde_json::from_str(none).expect("a claim for nobody")).is_some()
    }),
    ("INV-54", |event, fx| match event {
        Event::Ws { ws: WsEvent::Ack { runtime, gone: false, .. }, .. } => {
            fx.push(forged(ApiCall::Beat { runtime: runtime.clone() }));
            true
        }
        _ => false,
    }),
    ("INV-55", |_, fx| hide(fx, "beat ")),
    ("INV-56", |event, fx| {
        if *event != Event::Tick {
            return false;
        }
        fx.push(Effect::DropIdleConnections);
        true
    }),
    ("INV-58", |_, fx| {
        let beat = find(fx, "beat ");
        fx.extend(beat.iter().cloned());
        fx.extend(beat.iter().cloned());
        beat.is_some()
    }),
    ("INV-60", |event, fx| is_up(event) && hide(fx, "workspaces")),
    ("INV-61", |event, fx| {
        let quiet = is_up(event) && find(fx, "workspaces").is_none() && find(fx, "ws-beat").is_some();
        if quiet {
            fx.push(forged(ApiCall::Workspaces));
        }
        quiet
    }),
    ("INV-62", |event, fx| dials_at_once(event, fx)),
    ("INV-63", |event, fx| dials_at_once(event, fx)),
    ("INV-72", |_, fx| {
        fx.push(Effect::Progress { claim: ClaimKey(999_999), step: 1 });
        true
    }),
    ("INV-79", |_, fx| match find(fx, "start") {
        Some(Effect::Api { call: ApiCall::Start(call), .. }) => {
            let why = EndReason::PrepareTimeout;
            fx.insert(0, Effect::Fact { fact: Fact::Ending { claim: call.claim(), why } });
            true
        }
        _ => false,
    }),
    ("INV-80", |_, fx| twice(fx, "unwind")),
    ("INV-95", |_, fx| hide(fx, "status")),
    ("INV-96", |_, fx| twice(fx, "is settling")),
    ("INV-109", |_, fx| cut_short(fx, "complete") || cut_short(fx, "fail")),
    ("INV-119", |_, fx| match find(fx, "run ") {
        Some(Effect::Run { call, .. }) => {
            fx.push(forged(ApiCall::Lease { claim: call.claim() }));
            true
        }
        _ => false,
    }),
    ("INV-121", |event, fx| {
        let done = matches!(event, Event::Api { op, r: Ok(ApiReply::Done) } if op.0 > 12 && *op != FORGED);
        let quiet = done && fx.is_empty();
        if quiet {
            let why = EndReason::Server;
            fx.extend((1..40).map(|n| Effect::Fact { fact: Fact::Ending { claim: ClaimKey(n), why } }));
        }
        quiet
    }),
    ("INV-125", |_, fx| match find(fx, "run ") {
        Some(Effect::Run { call, .. }) => {
            fx.push(Effect::Fact { fact: Fact::Released { claim: call.claim(), slot: Some(call.slot()) } });
            true
        }
        _ => false,
    }),
    ("INV-140", |event, fx| *event == Event::stop() && hide(fx, "cancel #")),
    ("ORPHANS-BUSY", |_, fx| match find(fx, "is admitted") {
        Some(Effect::Fact { fact: Fact::Admitted { runtime, .. } }) => {
            fx.push(forged(ApiCall::RecoverOrphans { runtime }));
            true
        }
        _ => false,
    }),
];

#[test]
fn each_of_these_rules_notices_what_it_is_there_for() {
    let blind: Vec<&str> =
        TAMPERS.iter().filter(|(rule, tamper)| !noticed(*tamper, rule)).map(|(rule, _)| *rule).collect();
    assert!(blind.is_empty(), "not noticed: {blind:?}");
}

fn started(seed: u64) -> (Runner, Rules) {
    let cfg = World::config(&mut Seeded::new(seed));
    let runner = Runner::new(cfg.clone(), Seed(seed)).expect("settings are in bounds");
    let mut rules = Rules::new(&cfg);
    show(&mut rules, &runner, None, runner.effects());
    (runner, rules)
}

fn broken(rules: &Rules) -> Vec<&'static str> {
    rules.violations().iter().map(|violation| violation.rule).collect()
}

#[test]
fn inv_03_a_list_before_the_renewal_is_noticed() {
    let runner = Runner::new(Config::default(), Seed(1)).expect("settings are in bounds");
    let mut rules = Rules::new(&Config::default());
    let turned: Vec<Effect> = runner.effects().iter().rev().cloned().collect();
    show(&mut rules, &runner, None, &turned);
    assert!(broken(&rules).contains(&"INV-03"), "{:?}", broken(&rules));
}

#[test]
fn inv_34_a_runtime_that_is_never_asked_for_again_is_noticed() {
    let (mut runner, _) = started(1);
    runner.heal();
    assert!(runner.violations().is_empty(), "it is asked for");
    runner.rules.at_rest();
    runner.rules.finish(runner.daemon.view(), true);
    assert!(broken(&runner.rules).contains(&"INV-34"), "{:?}", broken(&runner.rules));
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
