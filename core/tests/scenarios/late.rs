//! Terminal reports: never given up, and never in the way.

use crate::rig::{
    BAD_REQUEST, Rig, SERVER_ERROR, TASK_GONE, UNAUTHORIZED, claimed, ended, failed, ms, offer, secs, with,
    workspaces,
};
use longshore_core::config::ClaimMode::Batch;
use longshore_core::error::ApiError;
use longshore_core::event::{RunEnd, TaskStatus, WsEvent};
use longshore_core::id::RuntimeId;
use longshore_core::reason::FailReason;

fn reporting() -> Rig {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.running(&offer(1, "t-1", "r-1"));
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.before_report(1);
    d.clear();
    d
}

/// Lets every try of a report fail until the task is sealed.
fn until_late(d: &mut Rig, report: &str, error: ApiError) {
    let seal = format!("seal {} record", report.rsplit(' ').next().unwrap_or_default());
    for _ in 0..1_000 {
        if d.is_open(&seal) {
            return;
        }
        if d.is_open(report) {
            d.err(report, error);
        }
        d.live(secs(1));
    }
    panic!("`{seal}` never came");
}

#[test]
fn inv_107_a_report_that_fails_moves_to_the_late_outbox_and_is_taken() {
    let mut d = reporting();
    until_late(&mut d, "complete 1", SERVER_ERROR);
    assert_eq!(d.count("complete 1"), 5, "six tries, one of them before");
    d.ok("seal 1 record");
    d.assert_saw("is late 1");
    assert_eq!(d.view().tasks().count(), 0, "no slot");
    assert!(!d.is_marked("ws/t-1"), "no mark");
    d.clear();
    for _ in 0..20 {
        d.live(secs(400));
        d.err("complete 1", SERVER_ERROR);
    }
    d.live(secs(400));
    d.ok("complete 1");
    d.assert_saw("forget 1");
    d.assert_not("fail");
    assert!(!d.view().has_late_reports());
}

#[test]
fn a_late_report_has_no_slot_and_its_task_is_no_new_one() {
    let mut d = reporting();
    until_late(&mut d, "complete 1", ApiError::Unknown);
    d.ok("seal 1 record");
    d.live(ms(10));
    d.offer(&offer(2, "t-1", "r-1"));
    d.assert_saw("is duplicate t-1");
}

#[test]
fn a_late_report_hurries_only_when_the_server_was_out_of_reach() {
    for (error, hurries) in [(ApiError::NotSent, true), (SERVER_ERROR, false)] {
        let mut d = reporting();
        until_late(&mut d, "complete 1", error);
        d.ok("seal 1 record");
        for _ in 0..10 {
            d.pass(secs(400));
            d.err("complete 1", error);
        }
        d.ws(WsEvent::PendingWork { runtime: RuntimeId::new("r-1") });
        d.beats("r-1");
        assert_eq!(d.is_open("complete 1"), hurries);
    }
}

/// The server takes the report of one task, and then refuses the credential: reports of others that it has refused a moment ago were sent
/// after the first one at once.
#[test]
fn bug_27_while_the_credential_is_refused_late_reports_go_one_by_one_and_seldom() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    for (claim, task) in [(1, "t-1"), (2, "t-2"), (3, "t-3")] {
        d.running(&offer(claim, task, "r-1"));
        d.run(&format!("run {claim}"), ended(RunEnd::Completed, 0));
        d.before_report(claim);
        until_late(&mut d, &format!("complete {claim}"), SERVER_ERROR);
        d.ok(&format!("seal {claim} record"));
    }
    for _ in 0..2000 {
        if d.is_open("complete 1") {
            break;
        }
        d.live(secs(1));
        for other in ["complete 2", "complete 3"] {
            if d.is_open(other) {
                d.err(other, SERVER_ERROR);
            }
        }
    }
    d.ws(WsEvent::Down);
    for _ in 0..200 {
        d.pass(ms(100));
        for asked in ["beat r-1", "workspaces", "claim all 4"] {
            if d.is_open(asked) {
                d.err(asked, UNAUTHORIZED);
            }
        }
    }
    d.assert_saw("is refused access");
    d.clear();
    d.ok("complete 1");
    d.assert_saw("forget 1");
    d.pass(ms(29_900));
    d.assert_not("complete");
    d.pass(secs(7));
    assert_eq!(d.count_like("complete"), 1);
    d.clear();
    d.feed(longshore_core::event::Event::Credential);
    let next = if d.is_open("complete 2") { "complete 2" } else { "complete 3" };
    d.ok(next);
    assert_eq!(d.count_like("complete"), 1, "the last one goes at once");
}

/// A report that is late, of a server that was out of reach for long.
fn out_of_reach() -> Rig {
    let mut d = reporting();
    until_late(&mut d, "complete 1", ApiError::NotSent);
    d.ok("seal 1 record");
    for _ in 0..10 {
        d.pass(secs(400));
        d.err("complete 1", ApiError::NotSent);
    }
    d.clear();
    d
}

/// With the control connection up, heartbeats need no request: for minutes a report waited out its backoff, while tasks were claimed and done. The
/// server, which had heard nothing, failed the task by itself.
#[test]
fn a_late_report_hurries_whatever_the_server_answers() {
    for (answer, hurries) in [(Ok(workspaces(&["ws-1"])), true), (Err(SERVER_ERROR), false)] {
        let mut d = out_of_reach();
        d.api("workspaces", answer);
        assert_eq!(d.is_open("complete 1"), hurries, "a list is asked for; a failure may be a proxy's");
    }

    let mut d = out_of_reach();
    d.ws(WsEvent::Ack { runtime: RuntimeId::new("r-1"), gone: false, claims: false, actions: Vec::new() });
    assert!(d.is_open("complete 1"), "a heartbeat over the connection is answered");
    d.ok("complete 1");
    d.assert_saw("forget 1");
}

#[test]
fn a_way_that_loses_only_reports_is_not_filled_with_them() {
    let mut d = out_of_reach();
    let mut tries = 0;
    for _ in 0..600 {
        d.pass(ms(100));
        d.ws(WsEvent::Ack {
            runtime: RuntimeId::new("r-1"),
            gone: false,
            claims: false,
            actions: Vec::new(),
        });
        if d.is_open("complete 1") {
            tries += 1;
            d.err("complete 1", ApiError::NotSent);
        }
    }
    assert!((20..=150).contains(&tries), "{tries} tries in a minute with 600 answers");
}

#[test]
fn inv_108_a_completion_that_is_refused_is_followed_by_a_failure() {
    let mut d = reporting();
    d.err("complete 1", BAD_REQUEST);
    d.err("fail 1 report_refused", ApiError::Unknown);
    d.live(secs(5));
    d.ok("fail 1 report_refused");
    d.ok("seal 1 record");
    d.assert_not("complete");
}

#[test]
fn a_failure_that_is_refused_is_told_to_the_operator() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.running(&offer(1, "t-1", "r-1"));
    d.run("run 1", ended(failed(FailReason::ProcessFailure), 0));
    d.before_report(1);
    d.err("fail 1 agent_error.process_failure", BAD_REQUEST);
    d.assert_saw("is refused 1 400");
    d.ok("seal 1 record");
    assert_eq!(d.count_like("fail"), 1);
}

#[test]
fn a_report_for_a_task_that_is_gone_ends_there() {
    let mut d = reporting();
    d.err("complete 1", TASK_GONE);
    d.ok("seal 1 record");
    d.assert_not("fail");
}

#[test]
fn a_refused_credential_never_ends_a_report() {
    let mut d = reporting();
    until_late(&mut d, "complete 1", UNAUTHORIZED);
    d.ok("seal 1 record");
    d.assert_saw("is unauthorized");
    for _ in 0..50 {
        d.live(secs(400));
        d.err("complete 1", UNAUTHORIZED);
    }
    d.live(secs(400));
    d.ok("complete 1");
    d.assert_not("fail");
}

#[test]
fn a_server_that_says_when_is_left_alone_until_then() {
    let mut d = reporting();
    d.err("complete 1", ApiError::Throttled { retry_after_ms: Some(60_000) });
    d.live(ms(59_999));
    d.assert_not("complete");
    d.live(ms(1));
    assert!(d.is_open("complete 1"));
}

#[test]
fn a_suspend_does_not_use_up_the_tries() {
    let mut d = reporting();
    d.pass(secs(3 * 3600));
    d.err("complete 1", ApiError::Unknown);
    d.assert_not("seal");
    d.live(secs(5));
    d.ok("complete 1");
    d.assert_not("is late");
}

#[test]
fn one_stuck_report_holds_up_no_other() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    for claim in [1, 2] {
        d.running(&offer(claim, &format!("t-{claim}"), "r-1"));
    }
    for run in ["run 1", "run 2"] {
        d.run(run, ended(RunEnd::Completed, 0));
    }
    d.before_report(1);
    d.before_report(2);
    while !(d.is_open("seal 1 record") && d.is_open("seal 2 record")) {
        for report in ["complete 1", "complete 2"] {
            if d.is_open(report) {
                d.err(report, SERVER_ERROR);
            }
        }
        d.live(secs(1));
    }
    d.ok("seal 1 record");
    d.ok("seal 2 record");
    d.clear();
    let mut taken = false;
    for _ in 0..10 {
        d.live(secs(400));
        if d.is_open("complete 1") {
            d.err("complete 1", SERVER_ERROR);
        } else if d.is_open("complete 2") {
            d.ok("complete 2");
            taken = true;
        }
    }
    assert!(taken && d.view().has_late_reports());
}

#[test]
fn a_claim_number_that_is_used_twice_harms_nobody() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.running(&offer(1, "t-1", "r-1"));
    d.clear();
    d.hint(None);
    let op = d.op("claim all 3");
    let event = longshore_core::event::Event::Api { op, r: Ok(claimed(&[offer(1, "t-2", "r-1")])) };
    // The rules would complain about the adapter; here only the daemon counts.
    let mut effects = longshore_core::effect::Effects::new();
    let now = d.runner().world.now();
    d.runner().daemon.handle(now, &event, &mut effects);
    let forgets =
        |e: &longshore_core::effect::Effect| matches!(e, longshore_core::effect::Effect::Forget { .. });
    assert!(!effects.as_slice().iter().any(forgets), "the claim that has the number goes on");
    assert_eq!(d.view().strays(), 1);
}

/// A report that was lost three times, so that its wait has grown.
fn waiting() -> Rig {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    for claim in [1, 2] {
        d.running(&offer(claim, &format!("t-{claim}"), "r-1"));
    }
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.before_report(1);
    for tries in 1..=3 {
        d.err("complete 1", ApiError::Unknown);
        if tries < 3 {
            while !d.is_open("complete 1") {
                d.pass(secs(1));
            }
        }
    }
    assert!(!d.is_open("complete 1"));
    d
}

#[test]
fn late_hurry_a_report_that_found_nobody_goes_out_when_the_server_answers_anything() {
    let mut d = waiting();
    d.hint(None);
    assert!(d.is_open("complete 1"), "a frame of the server is an answer");
    d.err("complete 1", ApiError::Unknown);
    assert!(!d.is_open("complete 1"));
    d.clear();
    d.ok("claim all 2");
    assert!(d.is_open("complete 1"), "and so is any good reply");
    d.ok("complete 1");
    d.ok("seal 1 record");
}

#[test]
fn late_hurry_a_report_that_the_server_would_not_take_waits_its_time() {
    let mut d = waiting();
    d.hint(None);
    d.err("complete 1", SERVER_ERROR);
    d.hint(None);
    assert!(!d.is_open("complete 1"));
}

#[test]
fn t9_a_row_that_still_runs_is_no_end_and_the_report_is_sent_again() {
    let mut d = reporting();
    d.status("complete 1", TaskStatus::Running);
    d.assert_not("is reported");
    assert!(!d.is_open("seal 1 record"));
    d.live(secs(10));
    d.status("complete 1", TaskStatus::Completed);
    d.assert_saw("is reported 1 complete after 2");
    d.ok("seal 1 record");

    // In the background too.
    let mut d = reporting();
    until_late(&mut d, "complete 1", SERVER_ERROR);
    d.ok("seal 1 record");
    d.live(secs(400));
    d.status("complete 1", TaskStatus::Running);
    assert!(d.view().has_late_reports());
    d.live(secs(400));
    d.status("complete 1", TaskStatus::Failed);
    assert!(!d.view().has_late_reports());
}

#[test]
fn t9_a_row_that_is_somebody_elses_by_now_ends_the_report_and_that_is_said() {
    let mut d = reporting();
    d.status("complete 1", TaskStatus::Dispatched);
    d.assert_saw("is superseded 1 dispatched");
    d.assert_not("is reported");
    d.ok("seal 1 record");
    d.assert_saw("forget 1");

    let mut d = reporting();
    until_late(&mut d, "complete 1", SERVER_ERROR);
    d.ok("seal 1 record");
    d.live(secs(400));
    d.status("complete 1", TaskStatus::Queued);
    d.assert_saw("is superseded 1 queued");
    assert!(!d.view().has_late_reports());
}
