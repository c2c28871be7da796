//! Workspaces, runtimes and their heartbeats.

use super::harness::{Tamper, broken, cut_short, find, forged, hide, notice, show, started, twice};
use longshore_core::config::Config;
use longshore_core::effect::{ApiCall, Effect, ExitCause, ExitReport, Fact};
use longshore_core::event::{ApiReply, Event, FsReply, GateAsk};
use longshore_core::id::{OpId, Provider, RuntimeId, WorkspaceId};
use longshore_core::observe::Rules;
use longshore_core::rng::Seed;
use longshore_core::script::Runner;

/// The credential is renewed by the very first request.
const RENEWAL: OpId = OpId(1);

const TAMPERS: &[(&str, Tamper)] = &[
    ("I15", |_, _, fx| hide(fx, "ws-beat") | hide(fx, "beat")),
    ("I16", |_, _, fx| twice(fx, "register")),
    ("INV-04", |_, event, fx| {
        let renewed = matches!(event, Event::Api { op, .. } if *op == RENEWAL);
        if renewed {
            let report =
                ExitReport { cause: ExitCause::Unauthorized, abandoned: Vec::new(), kept: Vec::new() };
            fx.push(Effect::Exit { report });
        }
        renewed
    }),
    ("INV-05", |_, _, fx| twice(fx, "is ready")),
    ("INV-06", |_, event, _| match event {
        Event::Api { r: Ok(ApiReply::Workspaces { list, .. }), .. } => {
            list.clear();
            true
        }
        _ => false,
    }),
    ("INV-07", |_, event, fx| {
        if *event == Event::stop() {
            return false;
        }
        let Some(Effect::Api { call: ApiCall::Deregister { runtimes, .. }, .. }) = find(fx, "deregister")
        else {
            return false;
        };
        let workspace = WorkspaceId::new(&runtimes[0].as_str()[..4]);
        fx.push(forged(ApiCall::Register { workspace, agents: Vec::new(), profiles: None }));
        true
    }),
    ("HELD-CONFIRMED", |_, event, fx| match event {
        Event::Fs { r: Ok(FsReply::Probed { agents }), .. } if holds_back(fx) => {
            agents.clear();
            true
        }
        _ => false,
    }),
    ("INV-11", |_, _, fx| {
        let own = |id: &RuntimeId| !id.as_str().contains("-p");
        fx.iter().any(|e| matches!(e, Effect::Fact { fact: Fact::RuntimeGone { runtime } } if own(runtime)))
            && hide(fx, "is gone")
    }),
    ("INV-12", |_, event, fx| {
        let looked = matches!(event, Event::Fs { r: Ok(FsReply::Probed { .. }), .. });
        if looked {
            fx.push(Effect::Fact { fact: Fact::Freed { provider: Provider::new("claude") } });
        }
        looked
    }),
    ("INV-12", |_, _, fx| holds_back(fx) && hide(fx, "removed")),
    ("INV-14", |past, _, fx| {
        let Some(call) = past.many.clone().filter(|_| holds_back(fx)) else { return false };
        fx.insert(0, forged(ApiCall::Claim(call)));
        true
    }),
    ("INV-15", |_, _, fx| twice(fx, "probe")),
    ("INV-22", |_, _, fx| twice(fx, "profiles")),
    ("INV-25", |_, _, fx| {
        let custom = |id: &RuntimeId| id.as_str().contains("-p");
        fx.iter()
            .any(|e| matches!(e, Effect::Fact { fact: Fact::RuntimeGone { runtime } } if custom(runtime)))
            && hide(fx, "is gone")
    }),
    ("INV-25", |_, _, fx| {
        fx.iter_mut().any(|effect| match effect {
            Effect::Api { call: ApiCall::Register { profiles: Some(signature), .. }, .. } => {
                *signature += 1;
                true
            }
            _ => false,
        })
    }),
    // Its holder is not told to have let it go.
    ("INV-48", |_, event, fx| {
        let released = matches!(event, Event::Gate { ask: GateAsk::Release, .. })
            && find(fx, "is stray").is_none()
            && find(fx, "gate ").is_none();
        if released {
            *event = Event::Tick;
        }
        released
    }),
    ("INV-13", |_, event, fx| {
        *event != Event::stop() && find(fx, "deregister").is_some() && hide(fx, "removed")
    }),
    ("INV-17", |_, _, fx| find(fx, "is gone").is_some() && hide(fx, "register")),
    ("INV-20", |_, _, fx| cut_short(fx, "register")),
    ("INV-21", |_, _, fx| find(fx, "is gone").is_some() && hide(fx, "removed")),
    ("INV-23", |_, _, fx| twice(fx, "workspaces")),
    ("RUNTIME-SET", |_, _, fx| twice(fx, "claimable")),
];

/// Whether an agent CLI is taken off line.
fn holds_back(fx: &[Effect]) -> bool {
    fx.iter().any(|effect| matches!(effect, Effect::Fact { fact: Fact::Held { .. } }))
}

#[test]
fn the_rules_about_the_fleet_notice_what_is_tampered_with() {
    notice(TAMPERS);
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
