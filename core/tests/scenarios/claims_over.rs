//! Claims over the control connection, and what follows one of unknown fate.

use crate::rig::{FORBIDDEN, NO_ROUTE, Rig, SERVER_ERROR, ms, offer, secs, with};
use longshore_core::config::ClaimMode::{Auto, Batch, PerRuntime};
use longshore_core::error::ApiError;
use longshore_core::event::WsEvent;
use longshore_core::id::RuntimeId;

fn ack(d: &mut Rig, claims: bool) {
    d.ws(WsEvent::Ack { runtime: RuntimeId::new("r-1"), gone: false, claims, actions: Vec::new() });
}

/// A daemon whose connection takes claims, with four slots and one runtime.
fn over() -> Rig {
    let mut d = Rig::serving(with(4, Auto), &["r-1:claude"]);
    ack(&mut d, true);
    d.clear();
    d
}

fn reconnect(d: &mut Rig) {
    d.ws(WsEvent::Down);
    d.pass(secs(2));
    d.ws(WsEvent::Up);
}

#[test]
fn inv_44_incident_r17_a_connection_takes_claims_once_it_said_so_itself() {
    let mut d = Rig::serving(with(4, Auto), &["r-1:claude"]);
    d.hint(None);
    d.ok("claim all 4");
    ack(&mut d, false);
    d.hint(None);
    d.ok("claim all 4");
    ack(&mut d, true);
    d.hint(None);
    d.ok("claim-over all 4");
    ack(&mut d, false);
    d.hint(Some("r-1"));
    d.ok("claim-over named r-1 4");
    reconnect(&mut d);
    assert!(d.is_open("claim all 4"), "nothing is known of the new connection");
    d.ok("claim all 4");
    ack(&mut d, true);
    d.hint(None);
    assert!(d.is_open("claim-over all 4"));
}

#[test]
fn inv_44_an_answer_before_the_connection_is_up_does_not_count() {
    let mut d = over();
    d.ws(WsEvent::Down);
    d.pass(secs(2));
    ack(&mut d, true);
    d.ws(WsEvent::Up);
    assert!(d.is_open("claim all 4"));
}

#[test]
fn single_claims_never_go_over_the_connection() {
    let mut d = Rig::serving(with(4, PerRuntime), &["r-1:claude"]);
    ack(&mut d, true);
    d.clear();
    d.hint(None);
    assert!(d.is_open("one r-1"));
}

#[test]
fn incident_r13_a_claim_that_was_not_sent_or_was_refused_goes_over_http_at_once() {
    for error in [
        ApiError::NotSent,
        SERVER_ERROR,
        FORBIDDEN,
        NO_ROUTE,
        ApiError::Throttled { retry_after_ms: Some(60_000) },
    ] {
        let mut d = over();
        d.hint(Some("r-1"));
        d.err("claim-over named r-1 4", error);
        assert!(d.is_open("claim named r-1 4"), "{error:?}: the same claim");
        assert_eq!((d.view().free_slots(), d.view().claims()), (0, 1), "with the same slots");
        d.assert_not("is held off");
        d.brings("claim named r-1 4", &[offer(1, "t-1", "r-1")]);
        d.assert_saw("is admitted 1 slot 0");
        assert!(d.is_open("claim-over named r-1 3"), "the next one goes over the connection again");
    }
}

#[test]
fn i14_inv_42_inv_43_incident_r16_after_a_claim_of_unknown_fate_one_goes_over_http_when_it_has_had_its_time()
{
    for error in [ApiError::Unknown, ApiError::Undecodable] {
        let mut d = over();
        d.hint(None);
        d.err("claim-over all 4", error);
        d.assert_saw("is held off");
        assert_eq!(d.view().free_slots(), 4, "the slots are back");
        d.clear();
        d.hint(Some("r-1"));
        d.hint(None);
        reconnect(&mut d);
        ack(&mut d, true);
        d.pass(ms(4_999));
        d.assert_not("claim");
        d.pass(ms(1));
        assert!(d.is_open("claim all 4"), "{error:?}: over HTTP, although the connection takes claims");
        d.ok("claim all 4");
        assert_eq!(d.count_like("claim"), 1, "and only one");
        d.hint(None);
        assert!(d.is_open("claim-over all 4"));
    }
}

#[test]
fn inv_42_during_the_hold_off_no_runtime_is_asked_for_on_its_own_either() {
    let mut d = over();
    d.hint(None);
    d.err("claim-over all 4", ApiError::Unknown);
    d.pass(secs(7));
    d.err("claim all 4", NO_ROUTE);
    assert!(d.is_open("one r-1"), "only when it is over, and the server has no other route");
    assert_eq!(d.count_like("claim"), 2);
}

#[test]
fn a_claim_over_the_connection_has_seven_seconds() {
    let mut d = over();
    d.hint(None);
    let op = d.op("claim-over all 4");
    d.pass(ms(6_999));
    d.assert_not("cancel");
    d.pass(ms(1));
    d.assert_saw(&format!("cancel #{}", op.0));
    assert!(d.is_open("claim-over all 4") && d.view().claims() == 1, "its end decides");
    d.err("claim-over all 4", ApiError::NotSent);
    assert!(d.is_open("claim all 4"));
}

#[test]
fn what_a_claim_brings_over_a_connection_that_died_is_taken() {
    let mut d = over();
    d.hint(None);
    d.ws(WsEvent::Down);
    d.brings("claim-over all 4", &[offer(1, "t-1", "r-1")]);
    d.assert_saw("is admitted 1 slot 0");
    assert!(d.is_open("claim all 3"), "the next one has no connection to go over");
}

#[test]
fn a_claim_that_comes_back_in_a_stop_is_not_sent_again() {
    for error in [ApiError::NotSent, ApiError::Unknown] {
        let mut d = over();
        d.hint(None);
        d.stop();
        d.pass(secs(2));
        d.err("claim-over all 4", error);
        d.assert_not("claim all");
        d.assert_not("is held off");
        assert_eq!(d.view().free_slots(), 4);
    }
}

#[test]
fn a_runtime_that_left_meanwhile_is_not_asked_for_again() {
    let mut d = over();
    d.hint(Some("r-1"));
    d.ws(WsEvent::Ack { runtime: RuntimeId::new("r-1"), gone: true, claims: false, actions: Vec::new() });
    d.assert_saw("removed r-1");
    d.err("claim-over named r-1 4", ApiError::NotSent);
    d.assert_not("claim named");
    assert_eq!(d.view().free_slots(), 4);
}

#[test]
fn a_poll_that_falls_into_the_hold_off_is_made_good_at_its_end() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    ack(&mut d, true);
    d.pass(secs(27));
    d.hint(None);
    d.err("claim-over all 4", ApiError::Unknown);
    d.clear();
    d.pass(ms(6_999));
    d.assert_not("claim");
    d.pass(ms(1));
    d.ok("claim all 4");
    d.clear();
    d.pass(secs(30));
    assert_eq!(d.count("claim-over all 4"), 1, "and polling goes on");
}

#[test]
fn what_a_claim_over_the_connection_brings_after_its_time_is_taken() {
    let mut d = over();
    d.hint(None);
    d.pass(secs(7));
    d.clear();
    d.hint(Some("r-1"));
    d.pass(secs(6));
    d.assert_not("claim");
    assert_eq!((d.view().free_slots(), d.view().claims()), (0, 1), "its slots are held for what may come");
    d.brings("claim-over all 4", &[offer(1, "t-1", "r-1")]);
    d.assert_saw("is admitted 1 slot 0");
    d.assert_not("is held off");
    assert!(d.is_open("claim-over all 3"));
}

#[test]
fn inv_43_what_a_claim_was_waited_for_beyond_its_time_counts_as_hold_off() {
    for (beyond, left) in [(0, 7_000), (5_000, 2_000), (7_000, 0), (9_000, 0)] {
        let mut d = over();
        d.hint(None);
        d.pass(secs(7));
        d.pass(ms(beyond));
        d.err("claim-over all 4", ApiError::Unknown);
        d.assert_saw("is held off");
        d.clear();
        if left > 0 {
            d.pass(ms(left - 1));
            d.assert_not("claim");
            d.pass(ms(1));
        }
        d.pass(ms(0));
        assert!(d.is_open("claim all 4"), "{beyond} ms beyond its time");
    }
}
