//! The gate: held while this program or its agents are changed, when no claim and no task is about.

use crate::rig::{Rig, offer, secs, with};
use longshore_core::config::ClaimMode::{Batch, PerRuntime};
use longshore_core::error::ApiError;
use longshore_core::event::GateAsk::{Release, Try, Wait};
use longshore_core::event::GateOwner::{Demotion, Reload, SelfUpdate, ServerUpdate};
use longshore_core::event::{Event, GateAsk, GateOwner, WsEvent};
use longshore_core::id::RuntimeId;

fn ask(d: &mut Rig, owner: GateOwner, ask: GateAsk) {
    d.feed(Event::Gate { owner, ask });
}

fn idle() -> Rig {
    Rig::serving(with(4, Batch), &["r-1:claude"])
}

#[test]
fn i10_an_idle_daemon_gives_its_gate_away_and_claims_at_its_release() {
    for (mode, claim) in [(Batch, "claim all 4"), (PerRuntime, "one r-1")] {
        let mut d = Rig::serving(with(4, mode), &["r-1:claude"]);
        d.live(secs(31));
        d.clear();
        ask(&mut d, Reload, Try);
        d.assert_saw("gate reload granted");
        d.hint(None);
        d.live(secs(100));
        d.assert_not("claim");
        d.assert_not("one ");
        ask(&mut d, Reload, Release);
        assert!(d.is_open(claim), "what was nudged meanwhile is asked for at once");
    }
}

#[test]
fn inv_47_the_gate_has_one_holder() {
    let mut d = idle();
    ask(&mut d, SelfUpdate, Try);
    d.clear();
    ask(&mut d, Demotion, Try);
    ask(&mut d, ServerUpdate, Wait);
    assert_eq!((d.count("gate demotion busy"), d.count("gate server update busy")), (1, 1));
    d.hint(None);
    ask(&mut d, Demotion, Release);
    d.assert_saw("is stray");
    d.assert_not("claim");
    ask(&mut d, SelfUpdate, Release);
    assert!(d.is_open("claim all 4"));
}

#[test]
fn a_try_is_refused_while_a_claim_or_a_task_is_about() {
    let mut d = idle();
    d.hint(None);
    ask(&mut d, Reload, Try);
    assert_eq!(d.count("gate reload busy"), 1);
    d.brings("claim all 4", &[offer(1, "t-1", "r-1")]);
    d.ok("claim all 3");
    ask(&mut d, Reload, Try);
    ask(&mut d, ServerUpdate, Wait);
    assert_eq!((d.count("gate reload busy"), d.count("gate server update busy")), (2, 1));
}

#[test]
fn inv_49_incident_r53_an_update_waits_for_the_claims_on_their_way_and_no_new_one_is_sent() {
    let mut d = idle();
    d.hint(None);
    ask(&mut d, ServerUpdate, Wait);
    d.assert_not("gate");
    d.hint(Some("r-1"));
    d.ok("claim all 4");
    d.assert_saw("gate server update granted");
    assert_eq!(d.count_like("claim"), 1);
    ask(&mut d, ServerUpdate, Release);
    assert!(d.is_open("claim named r-1 4"));
}

#[test]
fn inv_41_inv_49_an_update_is_refused_if_a_claim_brings_a_task() {
    let mut d = idle();
    d.hint(None);
    ask(&mut d, ServerUpdate, Wait);
    d.brings("claim all 4", &[offer(1, "t-1", "r-1")]);
    d.assert_saw("gate server update busy");
    assert!(d.is_open("claim all 3"), "the gate is open again");

    // The same if the task is only handed back.
    let mut d = idle();
    d.hint(None);
    ask(&mut d, ServerUpdate, Wait);
    d.brings("claim all 4", &[offer(1, "t-1", "r-unknown")]);
    d.assert_saw("gate server update busy");
}

#[test]
fn who_gives_up_waiting_is_told_so_and_the_gate_is_open() {
    let mut d = idle();
    d.hint(None);
    ask(&mut d, ServerUpdate, Wait);
    ask(&mut d, ServerUpdate, Release);
    assert_eq!(d.count("gate server update busy"), 1);
    d.brings("claim all 4", &[]);
    d.hint(None);
    assert!(d.is_open("claim all 4"));
}

#[test]
fn a_stop_answers_who_waits_and_gives_the_gate_to_nobody() {
    let mut d = idle();
    d.hint(None);
    ask(&mut d, ServerUpdate, Wait);
    d.stop();
    assert_eq!(d.count("gate server update busy"), 1);
    ask(&mut d, Reload, Try);
    d.ok("claim all 4");
    ask(&mut d, Demotion, Wait);
    assert_eq!((d.count_like("gate"), d.count("gate demotion granted")), (3, 0));
}

#[test]
fn a_claim_that_was_not_sent_waits_behind_the_gate() {
    let mut d = idle();
    d.ws(WsEvent::Ack { runtime: RuntimeId::new("r-1"), gone: false, claims: true, actions: Vec::new() });
    d.hint(None);
    ask(&mut d, ServerUpdate, Wait);
    d.err("claim-over all 4", ApiError::NotSent);
    d.assert_saw("gate server update granted");
    d.assert_not("claim all");
    ask(&mut d, ServerUpdate, Release);
    assert!(d.is_open("claim all 4"));
}

#[test]
fn the_hold_off_may_end_while_somebody_has_the_gate() {
    let mut d = idle();
    d.ws(WsEvent::Ack { runtime: RuntimeId::new("r-1"), gone: false, claims: true, actions: Vec::new() });
    d.hint(None);
    d.err("claim-over all 4", ApiError::Unknown);
    ask(&mut d, Reload, Try);
    d.assert_saw("gate reload granted");
    d.pass(secs(8));
    d.assert_not("claim all");
    ask(&mut d, Reload, Release);
    assert!(d.is_open("claim all 4"), "over HTTP still");
}
