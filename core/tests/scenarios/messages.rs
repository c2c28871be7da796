//! What the agent says: in order, once, and in the end all of it.

use crate::rig::{BAD_REQUEST, NO_ROUTE, Rig, SERVER_ERROR, ended, ms, offer, secs, with};
use longshore_core::config::ClaimMode::Batch;
use longshore_core::error::ApiError;
use longshore_core::event::{ApiReply, RunEnd, RunEvent};

fn running() -> Rig {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.running(&offer(1, "t-1", "r-1"));
    d.clear();
    d
}

#[test]
fn messages_are_collected_and_sent_in_order() {
    let mut d = running();
    d.says("run 1", 1);
    d.pass(ms(300));
    d.says("run 1", 3);
    d.pass(ms(200));
    assert!(d.is_open("messages 1 0..3"));
    d.says("run 1", 5);
    d.pass(secs(3));
    assert_eq!(d.count_like("messages"), 1, "one post at a time");
    d.ok("messages 1 0..3");
    d.pass(ms(500));
    assert!(d.is_open("messages 1 3..5"), "inv_100");
}

#[test]
fn messages_that_were_not_sent_or_answered_500_are_sent_again() {
    for error in [ApiError::NotSent, SERVER_ERROR] {
        let mut d = running();
        d.says("run 1", 2);
        d.pass(ms(500));
        d.err("messages 1 0..2", error);
        d.pass(secs(1));
        assert!(d.is_open("messages 1 0..2"));
    }
}

#[test]
fn messages_of_unknown_fate_are_asked_for_and_the_rest_is_sent() {
    for error in [ApiError::Unknown, ApiError::Undecodable] {
        let mut d = running();
        d.says("run 1", 4);
        d.pass(ms(500));
        d.err("messages 1 0..4", error);
        d.pass(secs(1));
        assert!(d.is_open("known 1 0"));
        d.assert_not("messages 1 1");
        d.api("known 1 0", Ok(ApiReply::Known { upto: 3 }));
        d.pass(ms(500));
        assert!(d.is_open("messages 1 3..4"));
    }
}

#[test]
fn messages_are_sent_again_where_nobody_can_be_asked() {
    let mut d = running();
    d.says("run 1", 4);
    d.pass(ms(500));
    d.err("messages 1 0..4", ApiError::Unknown);
    d.pass(secs(1));
    d.err("known 1 0", NO_ROUTE);
    d.pass(ms(500));
    assert!(d.is_open("messages 1 0..4"));
}

#[test]
fn messages_that_are_refused_are_skipped_aloud() {
    let mut d = running();
    d.says("run 1", 2);
    d.pass(ms(500));
    d.err("messages 1 0..2", BAD_REQUEST);
    d.assert_saw("is refused messages 1 ..2");
    d.says("run 1", 3);
    d.pass(ms(500));
    assert!(d.is_open("messages 1 2..3"));
}

#[test]
fn a_server_that_takes_nothing_is_not_asked_in_a_loop() {
    let mut d = running();
    d.says("run 1", 2);
    d.run("run 1", ended(RunEnd::Completed, 2));
    d.api("messages 1 0..2", Ok(ApiReply::Known { upto: 0 }));
    assert!(!d.is_open("messages 1 0..2"));
    d.pass(secs(1));
    assert!(d.is_open("messages 1 0..2"));
}

#[test]
fn inv_99_the_report_waits_for_messages_for_22_seconds() {
    let mut d = running();
    d.says("run 1", 2);
    d.run("run 1", ended(RunEnd::Completed, 2));
    d.before_report(1);
    d.assert_not("complete");
    d.pass(ms(21_999));
    d.assert_not("complete");
    d.pass(ms(1));
    assert!(d.is_open("complete 1"));
    d.ok("complete 1");
    assert!(d.is_open("messages 1 0..2"), "the rest still follows");
    d.ok("messages 1 0..2");
    d.ok("seal 1 record");
    d.assert_saw("forget 1");
    assert!(!d.view().has_late_reports());
}

#[test]
fn messages_that_are_left_follow_from_the_late_outbox() {
    let mut d = running();
    d.says("run 1", 2);
    d.run("run 1", ended(RunEnd::Completed, 2));
    d.before_report(1);
    d.pass(secs(22));
    d.ok("complete 1");
    let post = d.op("messages 1 0..2").0;
    d.ok("seal 1 record");
    d.assert_saw(&format!("cancel #{post}"));
    d.assert_not("is released");
    d.err("messages 1 0..2", ApiError::Unknown);
    d.assert_saw("is released 1");
    d.pass(secs(1));
    // Found by the rules: the post and the question about it were on their way at once.
    d.api("known 1 0", Ok(ApiReply::Known { upto: 1 }));
    d.ok("messages 1 1..2");
    d.assert_saw("forget 1");
}

#[test]
fn a_task_with_only_messages_left_may_be_claimed_again() {
    let mut d = running();
    d.says("run 1", 2);
    d.run("run 1", ended(RunEnd::Completed, 2));
    d.before_report(1);
    d.pass(secs(22));
    d.ok("complete 1");
    d.ok("seal 1 record");
    d.err("messages 1 0..2", ApiError::NotSent);
    d.live(ms(100));
    assert!(d.view().has_late_reports());
    // Found by the rules: its outcome is acknowledged, so this is a new life and no duplicate.
    d.offer(&offer(2, "t-1", "r-1"));
    d.assert_saw("is admitted 2 slot 1");
}

#[test]
fn inv_102_the_session_is_pinned_once() {
    let mut d = running();
    let session = |have| RunEvent::Progress { have, session: true, tools: 0 };
    d.run("run 1", session(1));
    d.err("pin 1", ApiError::Unknown);
    d.run("run 1", session(2));
    d.pass(secs(1));
    d.ok("pin 1");
    d.run("run 1", session(3));
    d.pass(secs(60));
    assert_eq!(d.count("pin 1"), 2, "one that was lost, one that was taken");
}
