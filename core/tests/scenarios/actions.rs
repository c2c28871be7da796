//! What the server asks for in its answers to heartbeats.

use crate::rig::{BAD_REQUEST, Rig, SERVER_ERROR, UNAUTHORIZED, ms, offer, secs, with};
use longshore_core::config::ClaimMode::Batch;
use longshore_core::error::{ApiError, FsError};
use longshore_core::event::{Action, ActionKind, ApiReply, Event, StopKind, WsEvent};
use longshore_core::id::{ActionId, RuntimeId};

fn asks(ids: &[&str]) -> Vec<Action> {
    ids.iter().map(|id| Action { id: ActionId::new(*id), kind: ActionKind::Models }).collect()
}

fn ack(runtime: &str, ids: &[&str]) -> WsEvent {
    WsEvent::Ack { runtime: RuntimeId::new(runtime), gone: false, claims: false, actions: asks(ids) }
}

fn serving() -> Rig {
    Rig::serving(with(4, Batch), &["r-a:claude", "r-b:claude"])
}

#[test]
fn an_action_is_done_once_and_its_result_is_reported() {
    let mut d = serving();
    d.ws(ack("r-a", &["a-1"]));
    // The same over HTTP, and once more over the connection.
    d.ws(WsEvent::PendingWork { runtime: RuntimeId::new("r-a") });
    d.api("beat r-a", Ok(ApiReply::Beaten { gone: false, actions: asks(&["a-1", "a-1"]) }));
    d.ws(ack("r-a", &["a-1"]));
    assert_eq!(d.count("act r-a a-1"), 1);
    d.ok("act r-a a-1");
    d.ok("result a-1");
    d.assert_order(&["act r-a a-1", "result a-1", "is over a-1", "forget-action a-1"]);
    assert_eq!(d.count("forget-action a-1"), 1);
    assert_eq!(d.view().open_actions(), 0);
}

#[test]
fn inv_57_what_a_beat_asks_for_delays_no_beat() {
    let mut d = serving();
    d.ws(WsEvent::Down);
    d.live(secs(20));
    d.clear();
    while !d.is_open("beat r-a") {
        d.pass(ms(100));
    }
    d.api("beat r-a", Ok(ApiReply::Beaten { gone: false, actions: asks(&["a-1", "a-2"]) }));
    d.clear();
    // Nothing of it comes to an end.
    d.live(secs(40));
    assert!(d.is_open("act r-a a-1") && d.is_open("act r-a a-2"));
    assert!(d.count("beat r-a") >= 2 && d.count("beat r-b") >= 2);
    let times = d.times("beat r-a");
    assert_eq!(times[1].since(times[0]), secs(15));
}

#[test]
fn an_action_that_does_not_end_is_told_to_and_reported() {
    let mut d = serving();
    d.ws(ack("r-a", &["a-1"]));
    let begun = d.when("act r-a a-1");
    let act = d.op("act r-a a-1");
    d.live(secs(46));
    let cancel = format!("cancel #{}", act.0);
    assert_eq!(d.when(&cancel).since(begun), secs(45));
    d.fs_err("act r-a a-1", FsError::Cancelled);
    assert!(d.is_open("result a-1"), "the server hears of it");
    d.ok("result a-1");
    d.assert_saw("is over a-1");
}

#[test]
fn inv_59_a_result_is_reported_four_times() {
    let mut d = serving();
    d.ws(ack("r-a", &["a-1"]));
    d.ok("act r-a a-1");
    let first = d.when("result a-1");
    for error in [SERVER_ERROR, ApiError::Throttled { retry_after_ms: None }, ApiError::Unknown] {
        d.err("result a-1", error);
        d.assert_not("forget-action");
        while !d.is_open("result a-1") {
            d.pass(ms(100));
        }
    }
    d.err("result a-1", ApiError::NotSent);
    d.assert_order(&["is over a-1 in vain", "forget-action a-1"]);
    d.live(secs(60));
    let times: Vec<_> = d.times("result a-1").iter().map(|at| at.since(first)).collect();
    assert_eq!(times, [ms(0), ms(500), ms(2500), ms(6500)]);
}

#[test]
fn inv_59_a_refusal_ends_the_reports() {
    for refusal in [BAD_REQUEST, UNAUTHORIZED] {
        let mut d = serving();
        d.ws(ack("r-a", &["a-1"]));
        d.ok("act r-a a-1");
        d.err("result a-1", refusal);
        d.assert_order(&["is over a-1 in vain", "forget-action a-1"]);
        d.live(secs(60));
        assert_eq!(d.count("result a-1"), 1, "{refusal:?}");
    }
}

#[test]
fn w_27_eight_are_at_work_and_what_is_beyond_the_bound_is_dropped() {
    let mut d = serving();
    let names: Vec<String> = (0..80).map(|n| format!("a-{n:02}")).collect();
    let ids: Vec<&str> = names.iter().map(String::as_str).collect();
    d.ws(ack("r-a", &ids));
    assert_eq!((d.count_like("act "), d.count_like("is dropped")), (8, 8));
    assert_eq!(d.count_like("forget-action"), 8, "what is known of them can go");
    d.assert_saw("is dropped a-79");
    d.ok("act r-a a-00");
    assert_eq!(d.count("act r-a a-08"), 1, "the next one in line begins");
    for name in &names[1..72] {
        d.ok(&format!("act r-a {name}"));
    }
    d.settle();
    assert_eq!((d.count_like("forget-action"), d.view().open_actions()), (80, 0));
}

#[test]
fn what_is_asked_of_a_runtime_that_is_not_here_is_dropped() {
    let mut d = serving();
    d.ws(ack("r-z", &["a-1"]));
    d.assert_order(&["is dropped a-1", "forget-action a-1"]);
    d.assert_not("act ");
}

#[test]
fn a_runtime_that_leaves_the_set_does_not_stop_the_report() {
    let mut d = serving();
    d.ws(ack("r-a", &["a-1"]));
    d.ws(WsEvent::Ack { runtime: RuntimeId::new("r-a"), gone: true, claims: false, actions: asks(&["a-2"]) });
    d.assert_saw("removed r-a");
    d.assert_saw("is dropped a-2");
    d.ok("act r-a a-1");
    d.err("result a-1", SERVER_ERROR);
    d.live(ms(500));
    d.ok("result a-1");
    d.assert_saw("is over a-1");
}

#[test]
fn a_stop_ends_what_goes_on_and_begins_nothing() {
    for how in [StopKind::Now, StopKind::Restart] {
        let mut d = serving();
        d.running(&offer(1, "t-1", "r-a"));
        let ids: Vec<String> = (1..=10).map(|n| format!("a-{n:02}")).collect();
        d.ws(ack("r-a", &ids.iter().map(String::as_str).collect::<Vec<_>>()));
        d.ok("act r-a a-01");
        let (acting, reporting) = (d.op("act r-a a-02"), d.op("result a-01"));
        d.clear();
        d.feed(Event::Stop { how });
        for op in [acting, reporting] {
            d.assert_saw(&format!("cancel #{}", op.0));
        }
        d.assert_saw("is dropped a-10");
        if how == StopKind::Now {
            // A restart waits for nothing.
            d.fs_err("act r-a a-02", FsError::Cancelled);
            d.assert_order(&["is over a-02 in vain", "forget-action a-02"]);
        }
        d.assert_not("act ");
        d.assert_not("result ");
    }
}

#[test]
fn a_drain_lets_them_go_on() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-a"));
    d.feed(Event::Stop { how: StopKind::Drain { within_ms: None } });
    d.ws(ack("r-a", &["a-1"]));
    d.ok("act r-a a-1");
    d.ok("result a-1");
    d.assert_saw("is over a-1");
}
