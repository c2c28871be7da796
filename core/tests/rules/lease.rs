//! The prepare lease.

use super::harness::{FORGED, Tamper, broken, find, forged, hide, notice, show, started, twice};
use longshore_core::effect::{ApiCall, Effect, EndReason, Fact};
use longshore_core::event::{ApiReply, ClaimKey, Event};
use longshore_core::observe::Step;
use longshore_core::script::Seeded;
use longshore_core::time::Now;
use std::time::Duration;

const TAMPERS: &[(&str, Tamper)] = &[
    ("INV-117", |_, _, fx| hide(fx, "lease")),
    ("INV-119", |_, _, fx| match find(fx, "run ") {
        Some(Effect::Run { call, .. }) => {
            fx.push(forged(ApiCall::Lease { claim: call.claim() }));
            true
        }
        _ => false,
    }),
    ("INV-120", |_, _, fx| twice(fx, "lease")),
    ("INV-121", |_, event, fx| {
        let done = matches!(event, Event::Api { op, r: Ok(ApiReply::Done) } if op.0 > 12 && *op != FORGED);
        let quiet = done && fx.is_empty();
        if quiet {
            let why = EndReason::Server;
            fx.extend((1..40).map(|n| Effect::Fact { fact: Fact::Ending { claim: ClaimKey(n), why } }));
        }
        quiet
    }),
];

#[test]
fn the_rules_about_leases_notice_what_is_tampered_with() {
    notice(TAMPERS);
}

/// The refreshes that make a gap are missed long before it; so time has to leap over them.
#[test]
fn inv_123_a_gap_between_grants_is_noticed() {
    let noticed = (0..40).any(|seed| {
        let (mut runner, mut rules) = started(seed);
        let mut choose = Seeded::new(seed);
        for _ in 0..200 {
            let wakeup = runner.daemon.next_wakeup().map(|(at, _)| at);
            let Some((now, event)) = runner.world.next(&mut choose, wakeup) else { break };
            let effects = runner.feed(now, event.clone()).to_vec();
            show(&mut rules, &runner, Some(&event), &effects);
            if find(&effects, "prepare").is_some() {
                let late = Now::new(now.mono.after(Duration::from_secs(31)), now.wall);
                let view = runner.daemon.view();
                assert!(rules.violations().is_empty(), "{:?}", rules.violations());
                rules.observe(&Step {
                    now: late,
                    event: Some(&Event::Tick),
                    effects: &[],
                    view,
                    wakeup: None,
                });
                return broken(&rules).contains(&"INV-123");
            }
        }
        false
    });
    assert!(noticed);
}
