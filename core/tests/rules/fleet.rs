//! Workspaces, runtimes and their heartbeats.

use super::harness::{Tamper, broken, cut_short, find, forged, hide, notice, show, started, twice};
use longshore_core::config::Config;
use longshore_core::effect::{ApiCall, Effect, ExitCause, ExitReport};
use longshore_core::event::{ApiReply, Event};
use longshore_core::id::{OpId, WorkspaceId};
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
    ("INV-13", |_, event, fx| {
        *event != Event::stop() && find(fx, "deregister").is_some() && hide(fx, "removed")
    }),
    ("INV-17", |_, _, fx| find(fx, "is gone").is_some() && hide(fx, "register")),
    ("INV-20", |_, _, fx| cut_short(fx, "register")),
    ("INV-21", |_, _, fx| find(fx, "is gone").is_some() && hide(fx, "removed")),
    ("INV-23", |_, _, fx| twice(fx, "workspaces")),
    ("RUNTIME-SET", |_, _, fx| twice(fx, "claimable")),
];

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
