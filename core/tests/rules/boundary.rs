//! Between the core and its adapter: requests, their ends, and the size of a step.

use super::harness::{Tamper, hide, instead, notice, twice};
use longshore_core::effect::{Effect, Fact};
use longshore_core::event::{ApiReply, Event};
use longshore_core::id::OpId;
use longshore_core::rng::Seed;
use longshore_core::script::{Runner, Seeded, World};

const TAMPERS: &[(&str, Tamper)] = &[
    ("DEADLINE", |_, _, fx| hide(fx, "cancel #")),
    ("I17", |_, event, fx| {
        instead(event, fx, "prepare", Event::Api { op: OpId(9_000_000), r: Ok(ApiReply::Done) })
    }),
    ("I24", |_, _, fx| {
        fx.extend((0..2000).map(|_| Effect::Fact { fact: Fact::Unauthorized }));
        true
    }),
    ("I4", |_, _, fx| twice(fx, "cancel #")),
];

#[test]
fn the_rules_about_the_boundary_notice_what_is_tampered_with() {
    notice(TAMPERS);
}

#[test]
fn i26_a_daemon_that_does_not_come_to_rest_is_noticed() {
    let mut runner =
        Runner::new(World::config(&mut Seeded::new(1)), Seed(1)).expect("settings are in bounds");
    runner.heal();
    assert!(runner.violations().is_empty(), "it does");
    runner.rules.finish(runner.daemon.view(), false);
    assert_eq!(runner.violations()[0].rule, "I26");
}
