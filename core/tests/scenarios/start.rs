//! From the claim to the agent: preparation, the lease, `/start` and what becomes of it when answers are lost.

use crate::rig::{BAD_REQUEST, Rig, SERVER_ERROR, TASK_GONE, UNAUTHORIZED, ms, offer, secs, with};
use longshore_core::config::ClaimMode::Batch;
use longshore_core::error::{ApiError, FsError};
use longshore_core::event::{Offer, TaskStatus};
use longshore_core::reason::FailReason;

/// A daemon with a task whose `/start` is on its way.
fn starting() -> Rig {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.offer(&offer(1, "t-1", "r-1"));
    d.ok("claim named r-1 3");
    d.ok("prepare 1");
    assert!(d.is_open("start 1"));
    d.clear();
    d
}

#[test]
fn seed_outer_handler_never_starts() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.offer(&Offer { fault: Some(FailReason::InvalidTaskIdentity), ..offer(1, "t-1", "r-1") });
    d.ok("fail 1 invalid_task_identity");
    d.ok("claim named r-1 4");
    d.hint(None);
    d.brings("claim all 4", &[offer(2, "t-2", "r-unknown")]);
    d.assert_saw("is handed back 2 runtime_offline");
    d.settle();
    d.offer(&offer(3, "t-3", "r-1"));
    d.assert_not("start");
    d.fs_err("prepare 3", FsError::Failed { reason: FailReason::SkillBundleUnavailable });
    d.ok("unwind 3");
    d.ok("fail 3 skill_bundle_unavailable");
    d.ok("seal 3");
    d.assert_not("start");
    d.assert_not("run");
}

#[test]
fn inv_71_start_follows_the_prepared_directory() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.offer(&offer(1, "t-1", "r-1"));
    d.assert_not("start");
    d.ok("prepare 1");
    d.assert_order(&["prepare 1", "start 1"]);
    d.assert_not("run");
    d.ok("start 1");
    d.assert_order(&["start 1", "run 1"]);
}

#[test]
fn seed_lease_during_start() {
    let mut d = starting();
    d.pass(secs(14));
    d.assert_not("lease");
    d.pass(secs(1));
    assert_eq!(d.count("lease 1"), 1, "inv_118: refreshed while /start is outstanding");
    d.ok("start 1");
    assert!(!d.is_open("run 1"), "i6: not while a refresh is on its way");
    d.err("lease 1", ApiError::Unknown);
    assert!(d.is_open("run 1"));
    d.live(secs(120));
    assert_eq!(d.count("lease 1"), 1, "inv_119: none after /start returned");
}

#[test]
fn inv_117_the_lease_is_refreshed_every_15_seconds() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.offer(&offer(1, "t-1", "r-1"));
    let start = d.now();
    d.live(secs(61));
    let times: Vec<u128> = d.times("lease 1").iter().map(|at| at.since(start).as_millis()).collect();
    assert_eq!(times, [15_000, 30_000, 45_000, 60_000]);
}

#[test]
fn t12_a_preparation_of_three_minutes_keeps_its_lease_and_starts_once() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.offer(&offer(1, "t-1", "r-1"));
    d.live(secs(181));
    assert_eq!(d.count("lease 1"), 12, "every 15 s");
    d.assert_not("start");
    d.ok("prepare 1");
    assert_eq!(d.count("start 1"), 1);
}

#[test]
fn inv_120_a_slow_refresh_is_not_overtaken() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.offer(&offer(1, "t-1", "r-1"));
    d.pass(secs(50));
    assert_eq!(d.count("lease 1"), 1);
    d.err("lease 1", ApiError::Unknown);
    d.pass(secs(15));
    assert_eq!(d.count("lease 1"), 2, "inv_121: its failure ends nothing");
}

#[test]
fn lease_4xx_asks_for_the_status() {
    for (status, ends) in [(TaskStatus::Dispatched, false), (TaskStatus::Queued, true)] {
        let mut d = starting();
        d.pass(secs(4));
        d.pass(secs(11));
        if d.is_open("status 1") {
            d.status("status 1", TaskStatus::Dispatched);
        }
        d.clear();
        d.err("lease 1", BAD_REQUEST);
        assert_eq!(d.count("status 1"), 1);
        d.status("status 1", status);
        assert_eq!(d.count_like("is ending 1") == 1, ends);
        if ends {
            d.err("start 1", ApiError::Unknown);
            d.ok("unwind 1");
            d.ok("seal 1");
            d.assert_not("fail");
            d.assert_not("cancel-ack");
            assert_eq!(d.view().tasks().count(), 0, "stopped silently");
        }
    }
}

#[test]
fn start_after_5xx_asks_and_sends_again() {
    let mut d = starting();
    d.err("start 1", SERVER_ERROR);
    assert_eq!(d.count("start 1"), 0, "not before the server said where the task is");
    d.status("status 1", TaskStatus::Dispatched);
    d.pass(secs(1));
    assert_eq!(d.count("start 1"), 1);
    d.err("start 1", SERVER_ERROR);
    d.status("status 1", TaskStatus::WaitingLocalDirectory);
    d.live(secs(2));
    assert_eq!(d.count("start 1"), 2);
    d.ok("start 1");
    assert!(d.is_open("run 1"));
}

#[test]
fn start_whose_reply_was_lost_goes_on_if_the_task_runs() {
    let mut d = starting();
    d.err("start 1", ApiError::Unknown);
    d.status("status 1", TaskStatus::Running);
    assert!(d.is_open("run 1"));
    assert_eq!(d.count("start 1"), 0, "inv_73");
}

#[test]
fn start_that_was_not_sent_is_sent_again_without_a_question() {
    let mut d = starting();
    d.err("start 1", ApiError::NotSent);
    d.pass(secs(1));
    assert_eq!((d.count("start 1"), d.count("status 1")), (1, 0));
}

#[test]
fn start_refused_after_a_try_of_unknown_fate_goes_on_if_the_task_runs() {
    let mut d = starting();
    d.err("start 1", ApiError::Unknown);
    d.status("status 1", TaskStatus::Dispatched);
    d.pass(secs(1));
    d.err("start 1", BAD_REQUEST);
    d.status("status 1", TaskStatus::Running);
    assert!(d.is_open("run 1"));
}

#[test]
fn start_refused_at_the_first_try_fails_the_task() {
    for status in [TaskStatus::Running, TaskStatus::Dispatched] {
        let mut d = starting();
        d.err("start 1", BAD_REQUEST);
        d.status("status 1", status);
        d.ok("unwind 1");
        assert!(d.is_open("fail 1 start_refused"));
        d.assert_not("run");
    }
}

#[test]
fn start_of_a_task_that_is_not_ours_any_more_stops_silently() {
    for error in [ApiError::Unknown, SERVER_ERROR, BAD_REQUEST] {
        for status in [TaskStatus::Queued, TaskStatus::Deferred, TaskStatus::Cancelled, TaskStatus::Failed] {
            let mut d = starting();
            d.err("start 1", error);
            d.status("status 1", status);
            silent(&mut d);
        }
        let mut d = starting();
        d.err("start 1", error);
        d.err("status 1", TASK_GONE);
        silent(&mut d);
    }
}

fn silent(d: &mut Rig) {
    d.ok("unwind 1");
    d.ok("seal 1");
    for word in ["run", "fail", "complete", "cancel-ack"] {
        d.assert_not(word);
    }
    d.assert_saw("is released 1");
    d.assert_saw("forget 1");
}

#[test]
fn start_with_a_refused_credential_is_tried_until_the_deadline() {
    let mut d = starting();
    for _ in 0..3 {
        d.err("start 1", UNAUTHORIZED);
        d.status("status 1", TaskStatus::Dispatched);
        d.live(secs(36));
        assert!(d.is_open("start 1"));
    }
}

#[test]
fn prepare_deadline_while_preparing() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.offer(&offer(1, "t-1", "r-1"));
    let cancel = format!("cancel #{}", d.op("prepare 1").0);
    d.live(secs(299));
    d.assert_not(&cancel);
    d.live(secs(1));
    d.assert_saw(&cancel);
    d.assert_not("unwind");
    d.fs_err("prepare 1", FsError::Cancelled);
    d.ok("unwind 1");
    assert!(d.is_open("fail 1 timeout"), "inv_81: the deadline is the reason, not how the helper died");
}

#[test]
fn prepare_deadline_while_starting() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.offer(&offer(1, "t-1", "r-1"));
    d.live(secs(290));
    d.ok("prepare 1");
    let cancel = format!("cancel #{}", d.op("start 1").0);
    d.live(secs(10));
    d.assert_saw(&cancel);
    d.err("start 1", ApiError::Unknown);
    d.ok("unwind 1");
    assert!(d.is_open("fail 1 timeout"));
}

#[test]
fn prepare_deadline_between_two_starts() {
    let mut d = starting();
    d.err("start 1", ApiError::Unknown);
    while !d.is_open("unwind 1") {
        if d.is_open("start 1") {
            d.err("start 1", ApiError::Unknown);
        }
        if d.is_open("status 1") {
            d.status("status 1", TaskStatus::Dispatched);
        }
        if d.is_open("lease 1") {
            d.ok("lease 1");
        }
        d.pass(ms(100));
    }
    assert_eq!(d.when("is ending 1 prepare timeout").as_millis() / 1000, 300);
    d.ok("unwind 1");
    assert!(d.is_open("fail 1 timeout"));
}

#[test]
fn prepare_deadline_does_not_touch_a_start_that_was_accepted() {
    let mut d = starting();
    d.live(secs(14));
    d.pass(secs(1));
    d.ok("start 1");
    // The refresh of the lease is still on its way, and hangs.
    d.pass(secs(400));
    d.assert_not("is ending 1");
    d.err("lease 1", ApiError::Unknown);
    assert!(d.is_open("run 1"));
}

#[test]
fn a_task_that_the_server_ended_is_not_failed_by_the_deadline() {
    // Found by the rules: the deadline passes while the server is asked about a lost /start, and it says that the task has ended.
    let mut d = starting();
    d.err("start 1", ApiError::Unknown);
    d.pass(secs(300));
    d.assert_saw("is ending 1 prepare timeout");
    while d.is_open("status 1") {
        d.status("status 1", TaskStatus::Failed);
    }
    if d.is_open("lease 1") {
        d.err("lease 1", ApiError::Unknown);
    }
    d.ok("unwind 1");
    d.assert_not("fail");
}
