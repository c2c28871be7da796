//! A credential that the server refuses: nothing new is asked, work in hand goes on, and everything is made up for once it is taken again.

use crate::rig::{
    CLOCK_SKEW, FORBIDDEN, RUNTIME_GONE, Rig, SERVER_ERROR, UNAUTHORIZED, ended, ms, offer, registered, secs,
    with, workspaces,
};
use longshore_core::config::ClaimMode::{Batch, PerRuntime};
use longshore_core::error::{ApiError, Refusal};
use longshore_core::event::{ApiReply, Event, RunEnd, TaskStatus, WsEvent};
use longshore_core::id::RuntimeId;
use std::time::Duration;

fn serving() -> Rig {
    Rig::serving(with(4, Batch), &["r-1:claude", "r-2:codex"])
}

/// Without a connection, and with everything refused.
fn refused() -> Rig {
    let mut d = serving();
    d.ws(WsEvent::Down);
    d.clear();
    while d.count("is refused access") == 0 {
        d.pass(ms(100));
        refuse_all(&mut d);
    }
    d
}

fn refuse_all(d: &mut Rig) {
    while let Some(label) = d.open_api() {
        d.err(&label, UNAUTHORIZED);
    }
}

/// Time passes, and every request is refused.
fn refuse_for(d: &mut Rig, time: Duration) {
    let end = d.now().after(time);
    while d.now() < end {
        d.pass(ms(500));
        refuse_all(d);
    }
}

fn ack(runtime: &str, gone: bool) -> WsEvent {
    WsEvent::Ack { runtime: RuntimeId::new(runtime), gone, claims: false, actions: Vec::new() }
}

#[test]
fn bug_27_a_while_the_credential_is_refused_the_list_is_asked_for_twice_a_minute_and_nothing_else() {
    let mut d = refused();
    d.clear();
    refuse_for(&mut d, secs(600));
    for never in ["claim", "beat", "ws-beat", "register", "connect", "renew", "orphans"] {
        d.assert_not(never);
    }
    let times = d.times("workspaces");
    assert!((16..=20).contains(&times.len()), "{times:?}");
    assert!(times.windows(2).all(|pair| pair[1].since(pair[0]) >= secs(30)), "{times:?}");
    d.assert_not("is refused access");
    d.assert_not("has access again");
}

#[test]
fn bug_27_a_another_credential_has_everything_done_at_once() {
    let mut d = refused();
    refuse_for(&mut d, secs(100));
    d.clear();
    d.feed(Event::Credential);
    d.assert_saw("has access again");
    for at_once in ["workspaces", "claim all 4", "beat r-1", "beat r-2"] {
        assert!(d.is_open(at_once), "{at_once}");
    }
    assert_eq!(d.count_like("connect"), 1, "its wait was over long ago");
}

#[test]
fn what_was_sent_with_the_old_credential_says_nothing_of_the_new_one() {
    let mut d = refused();
    d.pass(secs(36));
    assert!(d.is_open("workspaces"));
    d.feed(Event::Credential);
    d.clear();
    d.err("workspaces", UNAUTHORIZED);
    d.assert_not("is refused access");
    assert!(d.is_open("workspaces"), "the list of the new credential is asked for");
    d.err("claim all 4", UNAUTHORIZED);
    d.assert_saw("is refused access");
}

#[test]
fn whatever_the_server_takes_brings_access_back() {
    let mut d = refused();
    d.pass(secs(36));
    d.clear();
    d.api("workspaces", Ok(workspaces(&["ws-1"])));
    d.assert_saw("has access again");
    assert!(d.is_open("claim all 4") && d.is_open("beat r-1") && d.is_open("beat r-2"));
    assert_eq!(d.count("workspaces"), 0, "the list is there already");
    d.settle();
    d.live(secs(60));
    d.assert_not("is refused access");
}

#[test]
fn an_answer_to_a_request_of_before_does_not_bring_it_back() {
    let mut d = serving();
    d.ws(WsEvent::Down);
    while !(d.is_open("beat r-1") && d.is_open("beat r-2")) {
        d.pass(ms(100));
    }
    d.err("beat r-1", UNAUTHORIZED);
    d.assert_saw("is refused access");
    d.clear();
    d.ok("beat r-2");
    d.assert_not("has access again");
}

#[test]
fn a_connection_that_is_up_is_left_alone_and_its_answers_count_after_a_while() {
    let mut d = serving();
    d.hint(None);
    d.err("claim all 4", UNAUTHORIZED);
    d.assert_saw("is refused access");
    d.clear();
    d.ws(ack("r-1", false));
    d.assert_not("has access again");
    refuse_for(&mut d, secs(31));
    d.assert_not("close");
    d.assert_not("ws-beat");
    d.ws(ack("r-1", false));
    d.assert_saw("has access again");
    d.assert_not("connect");
}

#[test]
fn a_claim_that_is_forbidden_is_a_matter_of_claims() {
    for (mode, claim) in [(Batch, "claim all 4"), (PerRuntime, "one r-1")] {
        let mut d = Rig::serving(with(4, mode), &["r-1:claude"]);
        d.hint(None);
        d.err(claim, FORBIDDEN);
        d.assert_not("is refused access");
        d.live(secs(3));
        assert!(d.count(claim) > 1, "it is tried again after a wait");
    }
    let mut d = serving();
    d.ws(WsEvent::WorkspacesChanged);
    d.err("workspaces", FORBIDDEN);
    d.assert_saw("is refused access");
}

#[test]
fn a_renewal_that_is_refused_is_only_a_reason_to_ask() {
    let mut d = serving();
    d.live(secs(3 * 24 * 3600));
    d.clear();
    d.err("renew", UNAUTHORIZED);
    d.assert_not("is refused access");
    assert!(d.is_open("workspaces"));
}

#[test]
fn bug_26_a_start_by_a_wrong_clock_goes_on_until_the_clock_is_set() {
    let mut d = Rig::new(with(4, Batch));
    d.err("renew", CLOCK_SKEW);
    let begun = d.now();
    let mut gaps = Vec::new();
    let mut last = begun;
    while d.now().since(begun) < secs(600) {
        d.err("workspaces", CLOCK_SKEW);
        while !d.is_open("workspaces") {
            d.pass(secs(1));
        }
        gaps.push(d.now().since(last));
        last = d.now();
    }
    d.assert_not("exit");
    assert!(gaps.windows(2).all(|pair| pair[1] + secs(40) >= pair[0] && pair[1] <= secs(361)), "{gaps:?}");
    d.api("workspaces", Ok(workspaces(&["ws-1"])));
    assert!(d.is_open("register ws-1"), "in the step of the first list that is taken");
}

#[test]
fn bug_26_a_registration_by_a_wrong_clock_is_tried_with_each_look() {
    let mut d = Rig::new(with(4, Batch));
    d.ok("renew");
    d.api("workspaces", Ok(workspaces(&["ws-1"])));
    let begun = d.now();
    while d.now().since(begun) < secs(600) {
        if d.is_open("register ws-1") {
            d.err("register ws-1", CLOCK_SKEW);
        }
        if d.is_open("workspaces") {
            d.api("workspaces", Ok(workspaces(&["ws-1"])));
        }
        d.pass(secs(1));
    }
    d.assert_not("exit");
    let times = d.times("register ws-1");
    assert!((10..=21).contains(&times.len()), "{times:?}");
    let corrected = d.now();
    while d.count("is ready") == 0 || d.view().runtime_count() == 0 {
        if d.is_open("register ws-1") {
            d.api("register ws-1", Ok(registered(&["r-1:claude"])));
        }
        if d.is_open("workspaces") {
            d.api("workspaces", Ok(workspaces(&["ws-1"])));
        }
        d.pass(secs(1));
    }
    assert!(d.now().since(corrected) <= secs(38), "within one look of the correction");
}

#[test]
fn bug_27_b_a_runtime_that_three_ways_call_gone_is_registered_once_and_its_run_goes_on() {
    let mut d = Rig::serving(with(4, PerRuntime), &["r-1:claude"]);
    d.running(&offer(1, "t-1", "r-1"));
    d.live(secs(60));
    d.hint(Some("r-1"));
    d.ws(WsEvent::PendingWork { runtime: RuntimeId::new("r-1") });
    assert!(d.is_open("one r-1") && d.is_open("beat r-1"));
    d.clear();
    let (one, beat) = (d.op("one r-1"), d.op("beat r-1"));
    d.ws(ack("r-1", true));
    for op in [one, beat] {
        d.feed(Event::Api { op, r: Err(RUNTIME_GONE) });
    }
    assert_eq!(d.count_like("register"), 1);
    d.api("register ws-1", Ok(registered(&["r-9:claude"])));
    d.ws(WsEvent::Up);
    d.live(secs(300));
    assert_eq!(d.count_like("register"), 1);
    for old in ["one r-1", "beat r-1", "ws-beat r-1", "is ending"] {
        d.assert_not(old);
    }
    assert!(d.is_open("run 1"));
}

#[test]
fn bug_27_c_a_server_that_fails_says_nothing_about_a_runtime() {
    let mut d = Rig::serving(with(4, PerRuntime), &["r-1:claude"]);
    d.hint(Some("r-1"));
    d.ws(WsEvent::PendingWork { runtime: RuntimeId::new("r-1") });
    d.clear();
    d.err("one r-1", SERVER_ERROR);
    d.err("beat r-1", SERVER_ERROR);
    d.ws(WsEvent::Down);
    d.pass(secs(2));
    d.ws(WsEvent::Refused { status: 500, kind: Refusal::Other });
    d.live(secs(120));
    d.assert_not("register");
    d.assert_not("is gone");
    assert_eq!(d.view().runtime_count(), 1);
}

#[test]
fn work_in_hand_goes_on_and_tries_again_less_often() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    d.offer(&offer(2, "t-2", "r-2"));
    d.clear();
    d.says("run 1", 2);
    refuse_for(&mut d, secs(200));
    d.assert_saw("is refused access");
    d.assert_not("is ending");
    for (label, most) in [("status 1", 10), ("status 2", 10), ("lease 2", 8), ("messages 1 0..2", 8)] {
        let count = d.count(label);
        assert!((2..=most).contains(&count), "{label}: {count} times");
    }
    d.clear();
    d.feed(Event::Credential);
    for at_once in ["messages 1 0..2", "lease 2", "status 1", "status 2"] {
        assert!(d.is_open(at_once), "{at_once}");
    }
}

#[test]
fn a_result_is_kept_while_the_credential_is_refused_and_reported_when_it_is_taken() {
    for waits in [secs(60), secs(3600)] {
        let mut d = serving();
        d.running(&offer(1, "t-1", "r-1"));
        d.run("run 1", ended(RunEnd::Completed, 0));
        d.ok("unwind 1");
        d.err("status 1", UNAUTHORIZED);
        let begun = d.now();
        while d.now().since(begun) < waits {
            refuse_all(&mut d);
            if d.is_open("seal 1 record") {
                d.ok("seal 1 record");
            }
            d.pass(secs(1));
        }
        refuse_all(&mut d);
        d.clear();
        d.feed(Event::Credential);
        assert!(d.is_open("complete 1"), "after {waits:?}");
        d.ok("complete 1");
        if d.is_open("seal 1 record") {
            d.ok("seal 1 record");
        }
        d.assert_saw("forget 1");
        d.assert_not("fail");
    }
}

#[test]
fn a_start_that_was_refused_is_sent_when_the_credential_is_taken() {
    let mut d = serving();
    d.offer(&offer(1, "t-1", "r-1"));
    d.ok("prepare 1");
    d.err("start 1", UNAUTHORIZED);
    d.err("status 1", UNAUTHORIZED);
    refuse_for(&mut d, secs(50));
    d.clear();
    d.feed(Event::Credential);
    assert!(d.is_open("status 1"), "first it is asked what became of the one before");
    while d.is_open("status 1") {
        d.status("status 1", TaskStatus::Dispatched);
    }
    d.live(secs(1));
    while !d.is_open("start 1") {
        d.live(secs(1));
    }
    d.ok("start 1");
    assert!(d.is_open("run 1"));
}

#[test]
fn a_stop_and_a_drain_need_no_credential() {
    let mut d = refused();
    d.stop();
    assert!(d.is_open("deregister r-1,r-2"));
    d.err("deregister r-1,r-2", UNAUTHORIZED);
    refuse_for(&mut d, secs(40));
    assert!(d.count_like("exit") == 1);

    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    d.hint(None);
    refuse_all(&mut d);
    d.assert_saw("is refused access");
    d.feed(Event::Stop { how: longshore_core::event::StopKind::Drain { within_ms: None } });
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.ok("unwind 1");
    refuse_for(&mut d, secs(300));
    while d.is_open("seal 1 record") {
        d.ok("seal 1 record");
    }
    refuse_for(&mut d, secs(100));
    assert_eq!(d.count_like("exit"), 1);
}

#[test]
fn a_server_that_takes_looks_and_refuses_claims_is_asked_for_tasks_seldom() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    d.ws(WsEvent::Down);
    d.clear();
    let end = d.now().after(secs(600));
    while d.now() < end {
        while let Some(label) = d.open_api() {
            if label.starts_with("status") || label == "workspaces" {
                d.ok(&label);
            } else {
                d.err(&label, UNAUTHORIZED);
            }
        }
        d.pass(ms(500));
    }
    let claims = d.count_like("claim");
    assert!((5..=21).contains(&claims), "{claims} claims in ten minutes");
    assert!(d.is_open("run 1"));
}

#[test]
fn leftovers_that_could_not_be_failed_for_want_of_a_credential_are_failed_later() {
    let mut d = Rig::new(with(4, Batch));
    d.ok("renew");
    d.api("workspaces", Ok(workspaces(&["ws-1"])));
    d.api("register ws-1", Ok(registered(&["r-1:claude"])));
    d.err("orphans r-1", UNAUTHORIZED);
    d.assert_saw("is refused access");
    d.clear();
    refuse_for(&mut d, secs(100));
    d.assert_not("orphans");
    d.assert_not("claimable");
    d.feed(Event::Credential);
    d.ok("orphans r-1");
    d.assert_saw("claimable r-1");
}

#[test]
fn a_claim_over_the_connection_is_not_sent_again_over_http_without_access() {
    let mut d = serving();
    d.ws(WsEvent::Ack { runtime: RuntimeId::new("r-1"), gone: false, claims: true, actions: Vec::new() });
    d.hint(None);
    d.clear();
    d.err("claim-over all 4", UNAUTHORIZED);
    d.assert_saw("is refused access");
    d.assert_not("claim");
    assert_eq!(d.view().free_slots(), 4, "its slots are back");
    d.feed(Event::Credential);
    assert_eq!(d.count_like("claim all"), 1);
    d.api("claim all 4", Ok(ApiReply::Claimed { offers: vec![offer(1, "t-1", "r-1")], unusable: 0 }));
    d.assert_saw("is admitted 1 slot 0");
    d.err("workspaces", ApiError::NotSent);
}
