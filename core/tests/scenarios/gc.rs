//! The collector.

use crate::rig::{Rig, SERVER_ERROR, ended, ms, offer, secs, with};
use longshore_core::config::{ClaimMode::Batch, Config};
use longshore_core::error::{ApiError, FsError};
use longshore_core::event::{ApiReply, Collect, Event, Found, FsReply, Offer, RunEnd, StopKind, TaskStatus};
use longshore_core::id::EnvRoot;
use longshore_core::reason::FailReason;

fn collecting() -> Config {
    Config { gc: true, ..with(4, Batch) }
}

fn serving() -> Rig {
    Rig::serving(collecting(), &["r-1:claude"])
}

fn scanned(d: &mut Rig, found: &[(&str, Option<Collect>)]) {
    let op = d.op("scan");
    let found = found.iter().map(|(root, what)| Found { root: EnvRoot::new(*root), what: *what }).collect();
    d.feed(Event::Fs { op, r: Ok(FsReply::Scanned { found }) });
}

/// A round whose scan found this.
fn round(found: &[(&str, Option<Collect>)]) -> Rig {
    let mut d = serving();
    d.live(secs(30));
    scanned(&mut d, found);
    d
}

/// A task whose directory is being deleted.
fn waiting() -> Rig {
    let mut d = round(&[("ws/t-1", Some(Collect::All))]);
    d.offer(&offer(1, "t-1", "r-1"));
    d.ok("claim named r-1 3");
    d.assert_saw("is awaiting root 1");
    d.assert_not("prepare 1");
    d.clear();
    d
}

#[test]
fn inv_143_nothing_is_looked_for_in_the_first_half_minute() {
    let mut d = serving();
    d.live(ms(29_999));
    d.assert_not("scan");
    d.live(ms(1));
    d.assert_saw("scan");
    let mut cfg = collecting();
    cfg.timers.gc = secs(10);
    let mut d = Rig::serving(cfg, &["r-1:claude"]);
    d.live(secs(10));
    d.assert_saw("scan");
}

#[test]
fn without_the_setting_nothing_is_removed() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.live(secs(3 * 3600));
    d.assert_not("scan");
}

#[test]
fn a_round_decides_frees_and_tidies_up_one_after_the_other() {
    let mut d = round(&[
        ("ws/a", Some(Collect::All)),
        ("ws/b", Some(Collect::Keep)),
        ("ws/c", None),
        ("ws/d", None),
        ("ws/e", Some(Collect::Artifacts)),
    ]);
    assert!(!d.is_open("collectable ws/c"), "one at a time");
    d.ok("collect ws/a all");
    d.assert_saw("is collected ws/a all");
    d.err("collectable ws/c", SERVER_ERROR);
    d.api("collectable ws/d", Ok(ApiReply::Collectable { what: Collect::Artifacts }));
    d.fs_err("collect ws/d artifacts", FsError::Failed { reason: FailReason::Unknown });
    d.assert_saw("is collected ws/d artifacts badly");
    d.ok("collect ws/e artifacts");
    d.ok("maintain");
    for never in ["collect ws/b", "collect ws/c"] {
        d.assert_not(never);
    }
    let rounds = d.count("scan");
    d.live(secs(7_199));
    assert_eq!(d.count("scan"), rounds);
    d.live(secs(1));
    assert_eq!(d.count("scan"), rounds + 1);
}

#[test]
fn a_server_that_does_not_answer_is_not_asked_about_everything() {
    let mut d = round(&[
        ("ws/a", None),
        ("ws/b", None),
        ("ws/c", None),
        ("ws/d", None),
        ("ws/e", Some(Collect::All)),
    ]);
    for root in ["a", "b", "c"] {
        d.err(&format!("collectable ws/{root}"), ApiError::NotSent);
    }
    d.assert_not("collectable ws/d");
    d.ok("collect ws/e all");
}

#[test]
fn incident_r07_a_directory_is_not_freed_between_the_end_of_its_run_and_its_report() {
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    d.live(secs(30));
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.before_report(1);
    scanned(&mut d, &[("ws/t-1", Some(Collect::All)), ("ws/t-1", None)]);
    d.assert_not("collect");
    d.ok("complete 1");
    d.ok("seal 1 record");
    d.assert_not("collect");
}

#[test]
fn inv_128_a_directory_that_was_taken_while_the_server_was_asked_is_left_alone() {
    let mut d = round(&[("ws/t-1", None)]);
    d.running(&offer(1, "t-1", "r-1"));
    d.api("collectable ws/t-1", Ok(ApiReply::Collectable { what: Collect::All }));
    d.assert_not("collect ws/t-1");
}

#[test]
fn incident_r55_a_task_waits_until_its_directory_is_gone() {
    let mut d = waiting();
    // The server is told meanwhile that the task is still at it.
    d.pass(secs(15));
    d.ok("lease 1");
    d.ok("collect ws/t-1 all");
    d.assert_order(&["is collected ws/t-1 all", "prepare 1"]);
    d.ok("prepare 1");
    d.ok("start 1");
    assert!(d.is_open("run 1"));
}

#[test]
fn incident_r55_a_task_waits_for_the_directory_that_it_may_use_again() {
    let mut d = round(&[("ws/old", Some(Collect::All))]);
    d.offer(&Offer { prior: Some(EnvRoot::new("ws/old")), ..offer(1, "t-1", "r-1") });
    d.ok("claim named r-1 3");
    d.assert_not("prepare 1");
    d.ok("collect ws/old all");
    d.assert_saw("prepare 1");
}

#[test]
fn inv_132_a_task_that_waits_is_ended_by_the_server_at_once() {
    let mut d = waiting();
    d.pass(secs(5));
    d.status("status 1", TaskStatus::Cancelled);
    d.ok("cancel-ack 1");
    // Nothing was touched, so nothing is unwound or sealed.
    d.assert_order(&["is ending 1 server", "is released 1"]);
    d.assert_not("unwind 1");
    d.assert_not("seal 1");
    d.ok("collect ws/t-1 all");
    d.assert_not("prepare 1");
}

#[test]
fn inv_132_a_task_that_waits_is_ended_by_a_stop_at_once() {
    for how in [StopKind::Now, StopKind::Restart] {
        let mut d = waiting();
        d.feed(Event::Stop { how });
        d.ok("fail 1 runtime_offline");
        d.assert_saw("is released 1");
        d.assert_not("cancel #");
        d.assert_not("exit");
        if how == StopKind::Now {
            d.ok("deregister r-1");
        }
        d.ok("collect ws/t-1 all");
        d.assert_saw(if how == StopKind::Now { "exit stopped" } else { "exit restarting" });
    }
}

#[test]
fn inv_132_a_task_does_not_wait_longer_than_its_preparation_may_take() {
    let mut d = waiting();
    d.live(secs(300));
    d.assert_saw("is ending 1 prepare timeout");
    assert!(d.is_open("fail 1 timeout"));
}

#[test]
fn i11_a_directory_that_is_chosen_while_it_is_deleted_is_not_worked_in() {
    let mut d = serving();
    d.offer(&offer(1, "t-1", "r-1"));
    d.ok("claim named r-1 3");
    d.live(secs(30));
    scanned(&mut d, &[("ws/other", Some(Collect::All))]);
    let op = d.op("prepare 1");
    d.feed(Event::Fs { op, r: Ok(FsReply::Prepared { root: EnvRoot::new("ws/other") }) });
    d.assert_not("start 1");
    d.ok("unwind 1");
    assert!(d.is_open("fail 1 runtime_offline"));
}

#[test]
fn inv_144_a_stop_ends_the_round() {
    let mut d = serving();
    d.live(secs(30));
    let scan = d.op("scan").0;
    d.feed(Event::Stop { how: StopKind::Drain { within_ms: None } });
    d.assert_saw(&format!("cancel #{scan}"));
    scanned(&mut d, &[("ws/a", Some(Collect::All)), ("ws/b", None)]);
    d.assert_not("collect");
    d.assert_not("maintain");
}

#[test]
fn inv_147_caches_are_left_alone_when_a_task_comes() {
    let mut d = round(&[]);
    let maintain = d.op("maintain").0;
    d.offer(&offer(1, "t-1", "r-1"));
    d.assert_saw(&format!("cancel #{maintain}"));
    let mut d = serving();
    d.running(&offer(1, "t-1", "r-1"));
    d.live(secs(30));
    scanned(&mut d, &[]);
    d.assert_not("maintain");
}

#[test]
fn work_that_takes_too_long_is_told_to_end_and_still_waited_for() {
    let mut d = round(&[("ws/a", Some(Collect::All)), ("ws/b", Some(Collect::All))]);
    let collect = d.op("collect ws/a all").0;
    d.live(secs(600));
    d.assert_saw(&format!("cancel #{collect}"));
    d.assert_not("collect ws/b");
    d.fs_err("collect ws/a all", FsError::Cancelled);
    d.assert_saw("collect ws/b all");
}

#[test]
fn a_long_list_is_taken_in_many_steps() {
    let mut d = serving();
    d.live(secs(30));
    let op = d.op("scan");
    let keep = |nth| Found { root: EnvRoot::new(format!("ws/{nth}")), what: Some(Collect::Keep) };
    let found = (0..100_003).map(keep).collect();
    d.feed(Event::Fs { op, r: Ok(FsReply::Scanned { found }) });
    d.assert_saw("is uncollected 3");
    d.assert_not("maintain");
    d.live(secs(1));
    d.assert_saw("maintain");
}

#[test]
fn inv_136_a_drain_that_waits_for_the_collector_keeps_its_time() {
    // Found by the swarm of worlds: the control connection was made again after the time of the drain, and the process ended without
    // taking its runtimes off line.
    let mut d = round(&[("ws/old", Some(Collect::All))]);
    d.ws(longshore_core::event::WsEvent::Up);
    d.feed(Event::Stop { how: StopKind::Drain { within_ms: Some(1_500) } });
    d.clear();
    assert!(d.is_open("collect ws/old all"));
    d.pass(ms(1_499));
    d.assert_not("deregister r-1");
    d.pass(ms(1));
    d.assert_saw("deregister r-1");
    d.ok("deregister r-1");
    d.ok("collect ws/old all");
    d.assert_saw("exit stopped");
}
