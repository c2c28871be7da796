//! A stop.

use crate::rig::{Rig, SERVER_ERROR, ended, failed, ms, offer, registered, secs, with, workspaces};
use longshore_core::config::ClaimMode::{Batch, PerRuntime};
use longshore_core::error::{ApiError, FsError};
use longshore_core::event::{RunEnd, RunEvent, RunOutcome, WsEvent};
use longshore_core::reason::FailReason;

#[test]
fn inv_136_a_stop_with_nothing_to_do_is_short() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.stop();
    d.ok("deregister r-1");
    d.assert_order(&["is stopping claims", "is stopping tasks", "is stopping deregistering", "exit stopped"]);
}

#[test]
fn seed_shutdown_waits_for_pollers() {
    for mode in [Batch, PerRuntime] {
        let mut d = Rig::serving(with(4, mode), &["r-1:claude"]);
        d.live(secs(31));
        d.hint(Some("r-1"));
        let claim = if mode == Batch { "claim named r-1 4" } else { "one r-1" };
        d.stop();
        d.ok("deregister r-1");
        d.pass(ms(1999));
        d.assert_not("cancel");
        d.assert_not("is stopping tasks");
        d.brings(claim, &[offer(1, "t-1", "r-1")]);
        d.assert_order(&["is handed back 1 runtime_offline", "is stopping tasks"]);
        d.assert_not("exit");
        d.ok("fail 1 runtime_offline");
        d.assert_saw("exit stopped");
    }
}

#[test]
fn inv_134_no_claim_after_a_stop() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.running(&offer(1, "t-1", "r-1"));
    d.clear();
    d.stop();
    d.run("run 1", ended(failed(FailReason::Cancelled), 0));
    d.settle();
    d.assert_not("claim");
}

#[test]
fn a_claim_that_hangs_is_cancelled_after_two_seconds() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.hint(None);
    let claim = d.op("claim all 4").0;
    d.stop();
    d.ok("deregister r-1");
    d.pass(secs(2));
    d.assert_saw(&format!("cancel #{claim}"));
    d.err("claim all 4", ApiError::Unknown);
    d.assert_saw("exit stopped");
}

#[test]
fn inv_136_a_claim_that_is_never_answered_does_not_hold_up_a_stop_for_ever() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.hint(None);
    d.stop();
    d.pass(secs(40));
    d.assert_saw("exit stopped");
}

#[test]
fn runs_are_ended_and_reported_as_retryable() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.running(&offer(1, "t-1", "r-1"));
    d.says("run 1", 1);
    let run = d.op("run 1").0;
    d.stop();
    d.assert_saw(&format!("end #{run}"));
    d.ok("deregister r-1");
    d.run("run 1", ended(failed(FailReason::Cancelled), 1));
    d.ok("messages 1 0..1");
    d.before_report(1);
    d.ok("fail 1 runtime_offline");
    d.ok("seal 1 record");
    d.assert_saw("exit stopped");
}

#[test]
fn a_run_that_has_given_its_result_is_reported_as_it_ended() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.running(&offer(1, "t-1", "r-1"));
    d.run("run 1", RunEvent::Result);
    d.stop();
    d.assert_not("end #");
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.before_report(1);
    d.ok("complete 1");
}

#[test]
fn inv_135_nothing_is_launched_while_the_daemon_stops() {
    // Found by the rules: a run that had given its result and then turned out to have a dead session was launched again.
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.running(&offer(1, "t-1", "r-1"));
    d.run("run 1", RunEvent::Result);
    d.stop();
    let outcome =
        RunOutcome { end: failed(FailReason::ProcessFailure), have: 0, usage: false, resume_rejected: true };
    d.run("run 1", RunEvent::Ended { outcome });
    d.assert_not("run 1 fresh");
    d.before_report(1);
    assert!(d.is_open("fail 1 runtime_offline"), "the server tries again");
}

#[test]
fn a_task_that_is_prepared_is_given_back() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.offer(&offer(1, "t-1", "r-1"));
    d.ok("claim named r-1 3");
    d.stop();
    d.fs_err("prepare 1", FsError::Cancelled);
    d.ok("unwind 1");
    d.ok("fail 1 runtime_offline");
    d.ok("seal 1");
    d.ok("deregister r-1");
    d.assert_saw("exit stopped");
}

#[test]
fn what_is_not_reported_in_time_is_named() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.running(&offer(1, "t-1", "r-1"));
    d.stop();
    d.ok("deregister r-1");
    d.run("run 1", ended(failed(FailReason::Cancelled), 0));
    d.before_report(1);
    while d.count("exit stopped") == 0 {
        if d.is_open("fail 1 runtime_offline") {
            d.err("fail 1 runtime_offline", SERVER_ERROR);
        }
        d.pass(secs(1));
    }
    // The rules check that the exit names what is not reported, and only that.
}

#[test]
fn inv_142_a_second_request_hurries() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.running(&offer(1, "t-1", "r-1"));
    d.hint(None);
    d.stop();
    d.stop();
    // Found by the rules: the end of the claim began the next phase, with all of its time.
    d.ok("claim all 3");
    d.pass(ms(999));
    d.assert_not("exit");
    d.pass(ms(1));
    d.assert_saw("exit stopped");
}

#[test]
fn i18_nothing_comes_after_the_exit() {
    // Found by the rules: answers that came after it led to more effects.
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.running(&offer(1, "t-1", "r-1"));
    d.stop();
    d.stop();
    d.pass(secs(1));
    d.assert_saw("exit stopped");
    d.clear();
    d.run("run 1", ended(failed(FailReason::Cancelled), 0));
    d.stop();
    d.pass(secs(100));
    d.assert_not("");
}

#[test]
fn inv_141_a_registration_on_its_way_is_taken_back() {
    // Found by the rules: its runtimes stayed on line, and their leftovers were failed.
    let mut d = Rig::new(with(4, Batch));
    d.ok("renew");
    d.api("workspaces", Ok(workspaces(&["ws-1", "ws-2"])));
    d.api("register ws-1", Ok(registered(&["r-1:claude"])));
    d.stop();
    d.ok("deregister r-1");
    d.assert_not("exit");
    d.api("register ws-2", Ok(registered(&["r-2:claude"])));
    d.assert_not("orphans r-2");
    d.ok("deregister r-2");
    d.assert_saw("exit stopped");
}

#[test]
fn the_connection_is_closed_and_stays_so() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.running(&offer(1, "t-1", "r-1"));
    d.clear();
    d.stop();
    d.assert_saw("close 1");
    d.ws(WsEvent::Down);
    d.pass(secs(10));
    d.assert_not("connect");
    d.assert_not("beat");
}

#[test]
fn a_report_that_waits_is_sent_once_more_at_a_stop() {
    // Found by a server that asked for a pause longer than the stop: a finished result was lost with the process.
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.running(&offer(1, "t-1", "r-1"));
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.before_report(1);
    d.err("complete 1", ApiError::Throttled { retry_after_ms: Some(300_000) });
    d.pass(secs(1));
    assert!(!d.is_open("complete 1"));
    d.stop();
    d.ok("complete 1");
    d.ok("seal 1 record");
    d.ok("deregister r-1");
    d.assert_saw("exit stopped");
}
