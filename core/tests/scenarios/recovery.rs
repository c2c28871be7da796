//! The process is killed, and another one takes over what was kept. Each task ends with one report, of the right kind.

use crate::rig::{
    BAD_REQUEST, Rig, SERVER_ERROR, TASK_GONE, UNAUTHORIZED, ended, failed, ms, offer, registered, secs,
    with, workspaces,
};
use longshore_core::config::ClaimMode::Batch;
use longshore_core::effect::ReportKind;
use longshore_core::error::ApiError;
use longshore_core::event::{
    ApiReply, Event, Recovered, RunEnd, RunEvent, RunOutcome, StopKind, TaskStatus, WsEvent,
};
use longshore_core::id::{Provider, SlotIndex};
use longshore_core::reason::FailReason;

fn serving() -> Rig {
    Rig::serving(with(4, Batch), &["r-1:claude"])
}

/// The new process registers its runtime.
fn registers(d: &mut Rig) {
    d.ok("renew");
    d.api("workspaces", Ok(workspaces(&["ws-1"])));
    d.api("register ws-1", Ok(registered(&["r-1:claude"])));
}

/// Whatever is left goes well; then nothing is kept, and the task was reported this often in all.
fn ends_with(d: &mut Rig, report: &str, times: usize) {
    d.settle();
    d.live(secs(60));
    d.settle();
    assert_eq!(d.count(report), times, "{report}");
    let reports = ["complete 1", "fail 1", "cancel-ack 1"];
    let all: usize = reports.iter().map(|r| d.count_like(r)).sum();
    assert_eq!(all, times, "no report of another kind");
    assert!(d.runner().ledger.is_empty(), "nothing is owed any more");
    assert!(d.view().tasks().next().is_none());
    assert_eq!(d.view().free_slots() + d.view().claims() as u16 * d.view().total_slots(), 4);
}

#[test]
fn killed_after_the_claim_the_task_is_handed_back() {
    let mut d = serving();
    d.offer(&offer(1, "t-1", "r-1"));
    d.assert_order(&["keep 1 claimed", "is admitted 1 slot 0", "prepare 1"]);
    d.crash();
    d.assert_order(&[
        "is recovered 1",
        "is handed back 1 runtime_offline",
        "keep 1 owes fail runtime_offline ..0",
        "fail 1 runtime_offline",
    ]);
    ends_with(&mut d, "fail 1 runtime_offline", 1);
}

#[test]
fn killed_during_the_start_the_task_is_handed_back() {
    let mut d = serving();
    d.offer(&offer(1, "t-1", "r-1"));
    d.ok("prepare 1");
    assert!(d.is_open("start 1"));
    d.crash();
    d.assert_not("run 1");
    ends_with(&mut d, "fail 1 runtime_offline", 1);
    d.assert_not("run 1");
}

#[test]
fn a_run_is_followed_and_not_launched_again() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    d.assert_order(&["keep 1 launched slot 0", "run 1"]);
    d.crash();
    d.assert_order(&["is recovered 1 slot 0", "status 1", "run 1 attached"]);
    assert!(d.is_marked("ws/t-1"));
    registers(&mut d);
    d.assert_not("orphans");
    d.assert_saw("claimable r-1");
    d.run("run 1 attached", ended(RunEnd::Completed, 0));
    d.assert_saw("keep 1 owes complete ..0");
    ends_with(&mut d, "complete 1", 1);
    assert_eq!(d.count_like("run 1"), 1, "the agent is launched once");
    assert!(!d.is_marked("ws/t-1"));
}

#[test]
fn messages_of_the_earlier_process_are_asked_about_and_sent_once() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    d.says("run 1", 4);
    d.live(ms(500));
    d.ok("messages 1 0..4");
    d.says("run 1", 9);
    d.live(ms(500));
    // The server takes these, and the daemon never hears of it.
    assert!(d.is_open("messages 1 4..9"));
    d.crash();
    d.says("run 1 attached", 6);
    d.pass(ms(500));
    d.api("known 1 4", Ok(ApiReply::Known { upto: 9 }));
    // What is read again is not sent again, though only a part of it was read when the server said what it has.
    d.says("run 1 attached", 11);
    d.pass(ms(500));
    d.api("known 1 6", Ok(ApiReply::Known { upto: 9 }));
    d.pass(ms(500));
    d.ok("messages 1 9..11");
    d.run("run 1 attached", ended(RunEnd::Completed, 11));
    assert_eq!(d.count_like("messages 1"), 1);
    ends_with(&mut d, "complete 1", 1);
}

#[test]
fn a_task_that_was_cancelled_meanwhile_is_seen_at_once() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    d.crash();
    d.status("status 1", TaskStatus::Cancelled);
    assert_eq!(d.count_like("end #"), 1);
    d.run("run 1 attached", ended(failed(FailReason::Cancelled), 0));
    ends_with(&mut d, "cancel-ack 1", 1);
}

#[test]
fn a_run_that_is_followed_goes_on_where_the_credential_is_refused() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    d.crash();
    // The rules hold the exit to what is kept: it names the run as one that goes on, and not as given up.
    d.err("workspaces", UNAUTHORIZED);
    d.assert_saw("exit unauthorized");
    d.assert_not("fail 1");
    assert_eq!(d.runner().ledger.len(), 1, "the next process takes it over");
}

#[test]
fn a_dead_run_is_reported_with_its_reason() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    d.crash();
    d.run("run 1 attached", ended(failed(FailReason::ProcessFailure), 0));
    ends_with(&mut d, "fail 1 agent_error.process_failure", 1);
}

#[test]
fn a_followed_run_that_wants_a_fresh_session_is_given_back() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    d.crash();
    let outcome =
        RunOutcome { end: failed(FailReason::ProcessFailure), have: 0, usage: false, resume_rejected: true };
    d.run("run 1 attached", RunEvent::Ended { outcome });
    ends_with(&mut d, "fail 1 runtime_offline", 1);
    assert_eq!(d.count_like("run 1"), 1);
}

#[test]
fn an_outcome_is_kept_in_the_step_that_takes_it_and_reported_after_a_kill() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    let outcome = RunOutcome { end: RunEnd::Completed, have: 3, usage: true, resume_rejected: false };
    d.run("run 1", RunEvent::Ended { outcome });
    d.assert_order(&["keep 1 owes complete ..3", "unwind 1"]);
    d.crash();
    d.assert_not("run 1");
    d.assert_order(&["is recovered 1", "unwind 1", "known 1 0"]);
    assert!(d.is_marked("ws/t-1"));
    d.api("known 1 0", Ok(ApiReply::Known { upto: 1 }));
    d.ok("messages 1 1..3");
    d.ok("usage 1");
    d.assert_not("complete 1");
    d.ok("unwind 1");
    d.assert_not("status 1");
    d.ok("complete 1");
    d.ok("seal 1 record");
    d.assert_saw("forget 1");
    ends_with(&mut d, "complete 1", 1);
}

/// Usage that the server did not take in all the tries that the report waits for.
fn owing_usage() -> Rig {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    let outcome = RunOutcome { end: RunEnd::Completed, have: 0, usage: true, resume_rejected: false };
    d.run("run 1", RunEvent::Ended { outcome });
    d.ok("unwind 1");
    d.status("status 1", TaskStatus::Running);
    for _ in 0..4 {
        d.assert_not("complete 1");
        d.err("usage 1", ApiError::Server { status: 503 });
        d.live(secs(30));
    }
    d.assert_saw("is usage late 1");
    d
}

#[test]
fn inv_98_usage_that_is_not_taken_holds_up_neither_report_nor_slot_and_is_sent_until_it_is_taken() {
    let mut d = owing_usage();
    d.ok("complete 1");
    d.ok("seal 1 record");
    d.assert_saw("is released 1");
    d.assert_not("forget 1");
    for _ in 0..3 {
        d.live(secs(600));
        d.err("usage 1", ApiError::Unknown);
    }
    d.live(secs(600));
    d.ok("usage 1");
    d.assert_saw("forget 1");
    d.assert_not("is usage lost 1");
}

#[test]
fn usage_outlives_the_process_also_when_its_report_was_taken() {
    let mut d = owing_usage();
    d.ok("complete 1");
    d.crash();
    d.live(secs(600));
    d.ok("usage 1");
    d.assert_saw("forget 1");
    d.assert_not("complete 1");
}

#[test]
fn usage_that_is_refused_is_let_go_with_a_word() {
    let mut d = owing_usage();
    d.ok("complete 1");
    d.ok("seal 1 record");
    d.live(secs(600));
    d.err("usage 1", BAD_REQUEST);
    d.assert_order(&["is usage lost 1", "forget 1"]);
}

#[test]
fn a_report_whose_answer_was_lost_with_the_process_is_sent_again() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.before_report(1);
    assert!(d.is_open("complete 1"));
    d.crash();
    ends_with(&mut d, "complete 1", 1);
}

#[test]
fn a_report_that_was_acknowledged_is_not_sent_again() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.before_report(1);
    d.ok("complete 1");
    d.assert_order(&["complete 1", "is reported 1 complete after 1", "keep 1 owes nothing ..0"]);
    assert!(d.is_open("seal 1 record"));
    d.crash();
    ends_with(&mut d, "complete 1", 0);
}

#[test]
fn messages_that_a_report_left_behind_still_follow() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    d.says("run 1", 2);
    d.run("run 1", ended(RunEnd::Completed, 2));
    d.err("messages 1 0..2", SERVER_ERROR);
    d.before_report(1);
    while !d.is_open("complete 1") {
        d.live(secs(1));
        if d.is_open("messages 1 0..2") {
            d.err("messages 1 0..2", SERVER_ERROR);
        }
    }
    d.ok("complete 1");
    d.crash();
    // The id is free: the server may give it out again.
    registers(&mut d);
    d.ok("orphans r-1");
    d.live(secs(2));
    d.api("known 1 0", Ok(ApiReply::Known { upto: 0 }));
    d.ok("messages 1 0..2");
    d.assert_saw("forget 1");
    ends_with(&mut d, "complete 1", 0);
}

#[test]
fn a_refused_completion_is_a_failure_in_the_next_process_too() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.before_report(1);
    d.err("complete 1", BAD_REQUEST);
    d.assert_order(&["is refused 1 400", "keep 1 owes fail report_refused ..0", "fail 1 report_refused"]);
    d.crash();
    ends_with(&mut d, "fail 1 report_refused", 1);
}

#[test]
fn a_cancel_that_was_seen_before_the_report_is_kept() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.status("status 1", TaskStatus::Cancelled);
    d.assert_saw("keep 1 owes cancel-ack ..0");
    d.crash();
    ends_with(&mut d, "cancel-ack 1", 1);
}

#[test]
fn a_late_report_outlives_the_process() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.before_report(1);
    while !d.is_open("seal 1 record") {
        if d.is_open("complete 1") {
            d.err("complete 1", SERVER_ERROR);
        }
        d.live(secs(1));
    }
    d.ok("seal 1 record");
    d.assert_saw("is late 1");
    d.crash();
    d.assert_saw("is recovered 1");
    ends_with(&mut d, "complete 1", 1);
    assert_eq!(d.count_like("seal 1 record"), 0, "its directory was closed before");
}

#[test]
fn a_recovered_report_of_a_task_that_is_gone_ends_there() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.crash();
    d.ok("unwind 1");
    d.err("complete 1", TASK_GONE);
    ends_with(&mut d, "complete 1", 1);
}

#[test]
fn more_records_than_slots_are_all_taken_over() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    for claim in 1..=4 {
        d.running(&offer(claim, &format!("t-{claim}"), "r-1"));
    }
    d.run("run 4", ended(RunEnd::Completed, 0));
    d.crash_with(with(2, Batch));
    d.assert_saw("is recovered 1 slot 0");
    d.assert_saw("is recovered 2 slot 1");
    d.assert_saw("is recovered 3");
    d.assert_saw("is recovered 4");
    assert_eq!(d.view().free_slots(), 0);
    for claim in 1..=3 {
        d.assert_saw(&format!("run {claim} attached"));
    }
    d.settle();
    d.live(secs(60));
    d.settle();
    for claim in 1..=4 {
        assert_eq!(d.count(&format!("complete {claim}")), 1);
    }
    assert!(d.runner().ledger.is_empty());
}

#[test]
fn a_run_keeps_its_slot() {
    let mut d = serving();
    for claim in 1..=3 {
        d.running(&offer(claim, &format!("t-{claim}"), "r-1"));
    }
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.crash();
    d.assert_saw("is recovered 2 slot 1");
    d.assert_saw("is recovered 3 slot 2");
}

#[test]
fn inv_09_claims_wait_for_the_first_try_of_a_recovered_report() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.crash();
    registers(&mut d);
    d.assert_not("claimable r-1");
    d.assert_not("orphans r-1");
    d.ok("unwind 1");
    d.ok("complete 1");
    // It is told: what else the earlier process left is failed, and then tasks are asked for.
    d.assert_not("claimable r-1");
    d.ok("orphans r-1");
    d.assert_order(&["complete 1", "orphans r-1", "claimable r-1", "claim named r-1 4"]);
    ends_with(&mut d, "complete 1", 1);
}

#[test]
fn inv_10_leftovers_are_not_failed_while_a_report_is_owed() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.crash();
    registers(&mut d);
    d.ok("unwind 1");
    d.err("complete 1", ApiError::Unknown);
    d.assert_saw("claimable r-1");
    d.assert_not("orphans r-1");
    d.settle();
    d.live(secs(30));
    d.ok("complete 1");
    d.settle();
    d.assert_not("orphans r-1");
    assert_eq!(d.count("complete 1"), 2);
    assert!(d.runner().ledger.is_empty());
}

#[test]
fn a_report_needs_no_runtime() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.crash();
    d.ok("renew");
    d.api("workspaces", Ok(workspaces(&["ws-1"])));
    d.api("register ws-1", Ok(registered(&["r-2:claude"])));
    d.assert_saw("orphans r-2");
    ends_with(&mut d, "complete 1", 1);
}

#[test]
fn a_loop_of_kills_loses_nothing_and_doubles_nothing() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    for _ in 0..5 {
        d.crash();
    }
    d.run("run 1 attached", ended(RunEnd::Completed, 0));
    for _ in 0..5 {
        d.crash();
        d.assert_not("run 1");
    }
    d.ok("unwind 1");
    d.ok("complete 1");
    for _ in 0..5 {
        d.crash();
        d.assert_not("is recovered");
    }
    ends_with(&mut d, "complete 1", 0);
}

#[test]
fn inv_116_what_is_here_is_not_taken_over_a_second_time() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    d.clear();
    let again = |claim| Event::Recovered {
        offer: offer(claim, "t-1", "r-1"),
        provider: Provider::new("claude"),
        was: Recovered::Launched { slot: SlotIndex(0), acked: 0 },
        path: None,
    };
    d.feed(again(1));
    d.assert_not("is recovered");
    d.feed(again(2));
    d.assert_saw("is duplicate t-1");
    d.assert_not("is recovered");
    d.assert_not("run");
}

#[test]
fn a_process_that_stops_leaves_what_was_kept_to_the_next_one() {
    let mut d = serving();
    d.feed(Event::Stop { how: StopKind::Now });
    d.clear();
    d.feed(Event::Recovered {
        offer: offer(1, "t-1", "r-1"),
        provider: Provider::new("claude"),
        was: Recovered::Ended {
            report: Some(ReportKind::Complete),
            acked: 0,
            have: 0,
            usage: false,
            ran: true,
        },
        path: None,
    });
    d.assert_not("is recovered");
    d.assert_not("complete");
}

#[test]
fn a_live_process_that_is_killed_after_a_link_and_a_hint_serves_again() {
    let mut d = serving();
    d.crash();
    registers(&mut d);
    d.ok("orphans r-1");
    d.ws(WsEvent::Up);
    d.settle();
    d.running(&offer(7, "t-7", "r-1"));
    assert_eq!(d.view().tasks().count(), 1);
}
