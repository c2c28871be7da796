//! Runs: their end, cancellation by the server, the second launch without a session, and the directory's marks.

use crate::rig::{Rig, TASK_GONE, ended, failed, ms, offer, secs, with};
use longshore_core::config::ClaimMode::Batch;
use longshore_core::error::{ApiError, FsError};
use longshore_core::event::{Offer, RunEnd, RunEvent, RunOutcome, TaskStatus, WsEvent};
use longshore_core::id::EnvRoot;
use longshore_core::id::RuntimeId;
use longshore_core::reason::FailReason;

fn running() -> Rig {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.running(&offer(1, "t-1", "r-1"));
    d.clear();
    d
}

#[test]
fn seed_env_root_active_across_complete() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.running(&Offer { prior: Some(EnvRoot::new("ws/before")), ..offer(1, "t-1", "r-1") });
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.before_report(1);
    assert!(d.is_open("complete 1"));
    assert!(d.is_marked("ws/t-1") && d.is_marked("ws/before"), "inv_124: while the report is on its way");
    d.ok("complete 1");
    assert!(d.is_marked("ws/t-1"), "inv_114: until the directory is sealed");
    d.ok("seal 1 record");
    assert!(!d.is_marked("ws/t-1") && !d.is_marked("ws/before"), "inv_125");
}

#[test]
fn inv_126_a_root_shared_by_two_tasks_stays_marked() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.running(&offer(1, "t-1", "r-1"));
    d.running(&Offer { prior: Some(EnvRoot::new("ws/t-1")), ..offer(2, "t-2", "r-1") });
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.before_report(1);
    d.ok("complete 1");
    d.ok("seal 1 record");
    assert!(d.is_marked("ws/t-1"));
}

#[test]
fn usage_goes_out_before_the_report_also_of_a_cancelled_run() {
    for cancelled in [false, true] {
        let mut d = running();
        if cancelled {
            d.live(secs(4));
            d.pass(secs(1));
            d.status("status 1", TaskStatus::Cancelled);
        }
        let outcome = RunOutcome {
            end: if cancelled { failed(FailReason::Cancelled) } else { RunEnd::Completed },
            have: 0,
            usage: true,
            resume_rejected: false,
        };
        d.run("run 1", RunEvent::Ended { outcome });
        d.before_report(1);
        d.assert_not("complete");
        d.assert_not("cancel-ack");
        d.ok("usage 1");
        assert!(d.is_open(if cancelled { "cancel-ack 1" } else { "complete 1" }), "inv_98");
    }
}

#[test]
fn i20_after_its_result_an_agent_is_first_asked_then_told_then_killed() {
    let mut d = running();
    let op = d.op("run 1").0;
    d.run("run 1", RunEvent::Result);
    d.assert_saw(&format!("close-input #{op}"));
    d.live(ms(2999));
    d.assert_not(&format!("end #{op}"));
    d.live(ms(1));
    d.assert_saw(&format!("end #{op}"));
    d.assert_not(&format!("kill #{op}"));
    d.live(secs(7));
    d.assert_saw(&format!("kill #{op}"));
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.before_report(1);
    assert!(d.is_open("complete 1"), "it had given its result");
}

#[test]
fn cancel_before_the_run() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.offer(&offer(1, "t-1", "r-1"));
    d.pass(secs(5));
    d.status("status 1", TaskStatus::Cancelled);
    d.assert_saw(&format!("cancel #{}", d.op("prepare 1").0));
    d.fs_err("prepare 1", FsError::Cancelled);
    d.ok("unwind 1");
    d.ok("cancel-ack 1");
    d.ok("seal 1");
    d.assert_not("start");
    d.assert_not("fail");
}

#[test]
fn cancel_while_it_is_started() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.offer(&offer(1, "t-1", "r-1"));
    d.ok("prepare 1");
    d.pass(secs(5));
    d.status("status 1", TaskStatus::Cancelled);
    d.assert_not("cancel-ack");
    d.ok("start 1");
    d.assert_not("run");
    d.ok("unwind 1");
    assert!(d.is_open("cancel-ack 1"), "acknowledged only once /start is settled");
}

#[test]
fn cancel_while_the_agent_runs() {
    let mut d = running();
    let op = d.op("run 1").0;
    d.says("run 1", 2);
    d.pass(secs(5));
    d.status("status 1", TaskStatus::Cancelled);
    d.assert_saw(&format!("end #{op}"));
    d.assert_not("cancel-ack");
    d.run("run 1", ended(failed(FailReason::Cancelled), 2));
    d.ok("unwind 1");
    d.assert_not("cancel-ack");
    d.ok("messages 1 0..2");
    assert!(d.is_open("cancel-ack 1"), "inv_96: after the last message and the end of the process");
    d.ok("cancel-ack 1");
    d.ok("seal 1");
    d.assert_not("complete");
    d.assert_not("fail");
}

#[test]
fn cancel_after_the_run() {
    let mut d = running();
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.ok("unwind 1");
    d.status("status 1", TaskStatus::Cancelled);
    d.ok("cancel-ack 1");
    d.ok("seal 1");
    d.assert_not("complete");
}

#[test]
fn i22_a_last_look_that_comes_back_after_the_run_still_counts() {
    // Found by the rules: the watch had asked when preparation failed, and its answer was thrown away.
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.offer(&offer(1, "t-1", "r-1"));
    d.pass(secs(5));
    d.fs_err("prepare 1", FsError::TimedOut);
    d.status("status 1", TaskStatus::Cancelled);
    d.ok("unwind 1");
    d.assert_not("fail");
    assert!(d.is_open("cancel-ack 1"));
}

#[test]
fn inv_94_only_the_server_cancels() {
    let mut d = running();
    for error in [ApiError::Unknown, ApiError::Server { status: 500 }, ApiError::NotSent, TASK_GONE] {
        d.pass(secs(5));
        d.err("status 1", error);
        d.assert_not("is ending");
    }
}

#[test]
fn a_task_is_gone_only_after_three_looks_and_five_seconds() {
    let mut d = running();
    d.pass(secs(5));
    d.err("status 1", TASK_GONE);
    d.ws(WsEvent::TaskAvailable { runtime: Some(RuntimeId::new("r-1")), task: None });
    d.pass(ms(500));
    d.err("status 1", TASK_GONE);
    d.ws(WsEvent::TaskAvailable { runtime: Some(RuntimeId::new("r-1")), task: None });
    d.pass(ms(500));
    d.err("status 1", TASK_GONE);
    d.assert_not("is ending");
    while !d.is_open("run 1") || d.count_like("is ending") == 0 {
        d.pass(ms(500));
        if d.is_open("status 1") {
            d.err("status 1", TASK_GONE);
        }
    }
    d.run("run 1", ended(failed(FailReason::Cancelled), 0));
    d.ok("unwind 1");
    d.ok("seal 1");
    for word in ["complete", "fail", "cancel-ack"] {
        d.assert_not(word);
    }
}

#[test]
fn inv_95_a_hint_that_a_task_ended_is_looked_into_at_once() {
    let mut d = running();
    d.ws(WsEvent::TaskAvailable { runtime: Some(RuntimeId::new("r-1")), task: None });
    assert!(d.is_open("status 1"));
}

#[test]
fn inv_103_a_dead_session_is_left_behind_once() {
    let mut d = running();
    let rejected = |have| RunEvent::Ended {
        outcome: RunOutcome {
            end: failed(FailReason::ProcessFailure),
            have,
            usage: true,
            resume_rejected: true,
        },
    };
    d.run("run 1", rejected(1));
    assert!(d.is_open("run 1 fresh"));
    d.assert_not("unwind");
    d.says("run 1 fresh", 3);
    d.run("run 1 fresh", rejected(3));
    d.live(secs(1));
    d.ok("messages 1 0..3");
    d.ok("usage 1");
    d.ok("unwind 1");
    assert!(d.is_open("fail 1 agent_error.process_failure"));
    assert_eq!(d.count_like("run 1"), 1);
}

#[test]
fn inv_50_a_runtime_that_is_gone_keeps_its_task() {
    let mut d = running();
    d.ws(WsEvent::Ack { runtime: RuntimeId::new("r-1"), gone: true, claims: false, actions: Vec::new() });
    d.assert_saw("removed r-1");
    assert!(d.is_open("run 1"));
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.before_report(1);
    d.ok("complete 1");
    d.ok("seal 1 record");
}

#[test]
fn inv_116_a_task_that_is_offered_again_is_not_run_twice() {
    let mut d = running();
    d.offer(&offer(2, "t-1", "r-1"));
    d.assert_saw("is duplicate t-1");
    d.assert_saw("forget 2");
    assert!(d.is_open("status 1"), "its lease may have run out");
    d.assert_not("prepare");
    assert_eq!(d.view().tasks().count(), 1);
    d.pass(secs(1));
    assert_eq!(d.count_like("claim"), 1, "a server that repeats itself is no reason to ask again at once");
}

#[test]
fn an_id_that_is_claimed_again_after_its_report_is_a_new_life() {
    let mut d = running();
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.before_report(1);
    d.ok("complete 1");
    d.ok("seal 1 record");
    d.settle();
    d.running(&offer(2, "t-1", "r-1"));
    d.run("run 2", ended(RunEnd::Completed, 0));
    d.before_report(2);
    assert!(d.is_open("complete 2"));
}
