//! The kinds of stop: runs are waited for, or go on without the daemon.

use crate::rig::{Rig, SERVER_ERROR, ended, failed, ms, offer, registered, secs, with, workspaces};
use longshore_core::config::ClaimMode::Batch;
use longshore_core::error::{ApiError, FsError};
use longshore_core::event::{Event, RunEnd, RunEvent, RunOutcome, StopKind, TaskStatus};
use longshore_core::reason::FailReason;

fn drain(d: &mut Rig, within_ms: Option<u64>) {
    d.feed(Event::Stop { how: StopKind::Drain { within_ms } });
}

fn restart(d: &mut Rig) {
    d.feed(Event::Stop { how: StopKind::Restart });
}

fn serving() -> Rig {
    Rig::serving(with(4, Batch), &["r-1:claude"])
}

#[test]
fn inv_137_a_drain_lets_runs_end_and_takes_the_runtimes_off_line_last() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    d.clear();
    drain(&mut d, None);
    d.assert_not("deregister");
    d.assert_not("end #");
    d.assert_not("is ending");
    d.live(secs(300));
    d.assert_saw("ws-beat r-1");
    d.assert_not("claim");
    d.assert_not("exit");
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.before_report(1);
    d.ok("complete 1");
    d.assert_not("deregister");
    d.ok("seal 1 record");
    d.assert_order(&[
        "is stopping tasks",
        "is released 1",
        "is stopping deregistering",
        "close 1",
        "deregister r-1",
    ]);
    d.ok("deregister r-1");
    d.assert_saw("exit stopped");
}

#[test]
fn inv_137_a_drain_lets_a_task_be_prepared_and_launched() {
    let mut d = serving();
    d.offer(&offer(1, "t-1", "r-1"));
    d.ok("claim named r-1 3");
    drain(&mut d, None);
    d.ok("prepare 1");
    d.ok("start 1");
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.before_report(1);
    d.ok("complete 1");
    d.ok("seal 1 record");
    d.ok("deregister r-1");
    d.assert_saw("exit stopped");
}

#[test]
fn inv_135_what_a_claim_brings_to_a_drain_is_handed_back() {
    let mut d = serving();
    d.hint(None);
    drain(&mut d, None);
    d.assert_not("is stopping tasks");
    d.brings("claim all 4", &[offer(1, "t-1", "r-1")]);
    d.assert_order(&["is handed back 1 runtime_offline", "is stopping tasks"]);
    d.ok("fail 1 runtime_offline");
    d.ok("deregister r-1");
    d.assert_saw("exit stopped");
}

#[test]
fn inv_133_a_claim_that_never_ends_does_not_end_what_runs() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    d.hint(None);
    drain(&mut d, None);
    d.pass(ms(1_999));
    d.assert_not("cancel #");
    d.pass(secs(40));
    d.assert_saw("is stopping tasks");
    d.assert_not("exit");
    d.assert_not("is ending");
}

#[test]
fn inv_136_a_drain_that_takes_too_long_goes_on_as_a_plain_stop() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    let run = d.op("run 1").0;
    d.clear();
    drain(&mut d, Some(62_000));
    d.live(ms(61_999));
    d.assert_not("is ending");
    d.pass(ms(1));
    d.assert_order(&["close 1", "is ending 1 stop", &format!("end #{run}"), "deregister r-1"]);
    d.run("run 1", ended(failed(FailReason::Cancelled), 0));
    d.before_report(1);
    d.ok("fail 1 runtime_offline");
    d.ok("seal 1 record");
    d.ok("deregister r-1");
    d.assert_saw("exit stopped");
}

#[test]
fn a_drain_of_no_time_is_a_plain_stop() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    drain(&mut d, Some(0));
    d.assert_saw("is ending 1 stop");
    d.assert_saw("deregister r-1");
}

#[test]
fn the_server_can_still_end_a_task_that_is_waited_for() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    drain(&mut d, None);
    d.pass(secs(5));
    d.status("status 1", TaskStatus::Cancelled);
    d.assert_saw("is ending 1 server");
}

#[test]
fn inv_141_a_registration_in_a_drain_is_taken_back_at_its_end() {
    let mut d = Rig::new(with(4, Batch));
    d.ok("renew");
    d.api("workspaces", Ok(workspaces(&["ws-1", "ws-2"])));
    d.api("register ws-1", Ok(registered(&["r-1:claude"])));
    d.ok("orphans r-1");
    d.running(&offer(1, "t-1", "r-1"));
    drain(&mut d, None);
    d.api("register ws-2", Ok(registered(&["r-2:claude"])));
    d.assert_not("deregister");
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.before_report(1);
    d.ok("complete 1");
    d.ok("seal 1 record");
    d.ok("deregister r-1,r-2");
    d.assert_saw("exit stopped");
}

#[test]
fn inv_142_a_second_request_ends_a_drain() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    let run = d.op("run 1").0;
    drain(&mut d, None);
    drain(&mut d, None);
    d.assert_order(&["is ending 1 stop", &format!("end #{run}"), "deregister r-1", &format!("kill #{run}")]);
    d.pass(ms(999));
    d.assert_not("exit");
    d.pass(ms(1));
    d.assert_saw("exit stopped");
}

#[test]
fn i19_a_third_request_ends_the_process() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    d.stop();
    d.stop();
    d.assert_not("exit");
    d.stop();
    d.assert_saw("exit stopped");
}

#[test]
fn a_restart_leaves_runs_alone() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    d.clear();
    restart(&mut d);
    d.assert_saw("exit restarting");
    for never in ["deregister", "end #", "kill #", "cancel #", "close ", "is ending"] {
        d.assert_not(never);
    }
    // The rules check that the run's task is named as kept, and not as abandoned.
}

#[test]
fn inv_135_a_restart_waits_for_a_claim_and_hands_back_what_it_brings() {
    let mut d = serving();
    d.hint(None);
    restart(&mut d);
    d.pass(ms(1_999));
    d.assert_not("exit");
    d.brings("claim all 4", &[offer(1, "t-1", "r-1")]);
    d.ok("fail 1 runtime_offline");
    d.assert_saw("exit restarting");
    d.assert_not("deregister");
}

#[test]
fn inv_133_a_restart_waits_no_longer_than_two_seconds_for_a_claim() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    d.hint(None);
    restart(&mut d);
    d.pass(secs(2));
    d.assert_not("cancel #");
    d.assert_saw("exit restarting");
}

#[test]
fn a_restart_gives_back_what_is_not_launched() {
    let mut d = serving();
    d.offer(&offer(1, "t-1", "r-1"));
    d.ok("claim named r-1 3");
    restart(&mut d);
    d.fs_err("prepare 1", FsError::Cancelled);
    d.ok("unwind 1");
    d.ok("fail 1 runtime_offline");
    d.assert_not("exit");
    d.ok("seal 1");
    d.assert_saw("exit restarting");
}

#[test]
fn a_restart_gives_a_report_on_its_way_its_chance() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.before_report(1);
    restart(&mut d);
    d.pass(secs(29));
    d.assert_not("exit");
    d.ok("complete 1");
    d.ok("seal 1 record");
    d.assert_saw("exit restarting");
}

#[test]
fn inv_136_a_restart_is_bounded() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    d.run("run 1", ended(RunEnd::Completed, 0));
    restart(&mut d);
    d.pass(secs(30));
    d.assert_saw("exit restarting");
}

#[test]
fn a_run_that_ends_while_a_restart_waits_is_reported_and_not_launched_again() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    d.hint(None);
    restart(&mut d);
    let outcome =
        RunOutcome { end: failed(FailReason::ProcessFailure), have: 0, usage: false, resume_rejected: true };
    d.run("run 1", RunEvent::Ended { outcome });
    d.assert_not("run 1 fresh");
    d.ok("claim all 3");
    d.assert_not("exit");
    d.before_report(1);
    d.ok("fail 1 runtime_offline");
    d.ok("seal 1 record");
    d.assert_saw("exit restarting");
}

#[test]
fn inv_142_a_hurried_restart_still_leaves_runs_alone() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    d.hint(None);
    d.clear();
    restart(&mut d);
    d.stop();
    d.assert_not("exit");
    d.pass(secs(1));
    d.assert_saw("exit restarting");
    for never in ["deregister", "end #", "kill #", "is ending"] {
        d.assert_not(never);
    }
}

#[test]
fn inv_136_a_second_request_makes_no_stop_longer() {
    // Found by the simulator: asked again just before the end, the daemon gave what was left another second.
    for (how, cause) in [(StopKind::Restart, "exit restarting"), (StopKind::Now, "exit stopped")] {
        let mut d = serving();
        d.running(&offer(1, "t-1", "r-1"));
        d.run("run 1", ended(RunEnd::Completed, 0));
        d.before_report(1);
        d.feed(Event::Stop { how });
        d.pass(ms(29_500));
        d.stop();
        d.pass(ms(499));
        d.assert_not("exit");
        d.pass(ms(1));
        d.assert_saw(cause);
    }
}

#[test]
fn inv_142_what_is_left_has_its_second_although_claims_are_hardly_waited_for_any_more() {
    for how in [StopKind::Restart, StopKind::Now, StopKind::Drain { within_ms: Some(2_000) }] {
        let mut d = serving();
        d.running(&offer(1, "t-1", "r-1"));
        d.run("run 1", ended(RunEnd::Completed, 0));
        d.before_report(1);
        d.hint(None);
        d.feed(Event::Stop { how });
        d.pass(ms(1_900));
        d.stop();
        d.pass(ms(999));
        d.assert_not("exit");
        d.pass(ms(1));
        assert_eq!(d.count_like("exit"), 1, "{how:?}");
    }
}

/// A task whose report is late: the server took none of its tries.
fn late() -> Rig {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.before_report(1);
    for _ in 0..6 {
        while !d.is_open("complete 1") {
            d.live(secs(1));
        }
        d.err("complete 1", SERVER_ERROR);
    }
    d.ok("seal 1 record");
    d.assert_saw("is late 1");
    while !d.is_open("complete 1") {
        d.live(ms(100));
    }
    d.err("complete 1", ApiError::Throttled { retry_after_ms: Some(300_000) });
    d.live(secs(1));
    assert!(!d.is_open("complete 1"), "it waits");
    d.clear();
    d
}

#[test]
fn inv_139_a_late_report_gets_a_last_try_at_a_stop() {
    let mut d = late();
    d.stop();
    d.ok("deregister r-1");
    d.assert_not("exit");
    d.ok("complete 1");
    d.assert_order(&["forget 1", "exit stopped"]);
}

#[test]
fn inv_136_a_late_report_gets_one_last_try_only() {
    let mut d = late();
    d.stop();
    d.ok("deregister r-1");
    d.err("complete 1", SERVER_ERROR);
    d.assert_saw("exit stopped");
}

#[test]
fn inv_136_a_late_report_that_hangs_does_not_hold_up_a_drain_for_ever() {
    let mut d = late();
    drain(&mut d, None);
    assert!(d.is_open("complete 1"));
    d.pass(secs(30));
    d.assert_saw("exit stopped");
}
