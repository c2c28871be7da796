//! Tasks that work in a directory of the user: one at a time, the others parked.

use crate::rig::{BAD_REQUEST, Rig, SERVER_ERROR, ended, ms, offer, registered, secs, with, workspaces};
use longshore_core::config::ClaimMode::{Batch, PerRuntime};
use longshore_core::config::Config;
use longshore_core::daemon::Daemon;
use longshore_core::effect::PhaseName;
use longshore_core::error::FsError;
use longshore_core::event::{ClaimKey, Event, Offer, Recovered, RunEnd, StopKind, TaskStatus, WsEvent};
use longshore_core::id::{PathKey, Provider, SlotIndex};
use longshore_core::reason::FailReason;

fn in_place(claim: u64, runtime: &str) -> Offer {
    Offer { in_place: true, ..offer(claim, &format!("t-{claim}"), runtime) }
}

fn serving(slots: u16) -> Rig {
    Rig::serving(with(slots, Batch), &["r-1:claude"])
}

/// A task is claimed, and its directory turns out to be this one.
fn arrives(d: &mut Rig, claim: u64, path: &str) {
    d.offer(&in_place(claim, "r-1"));
    d.resolves(claim, path);
}

/// A prepared task is started and runs.
fn starts(d: &mut Rig, claim: u64) {
    d.ok(&format!("prepare {claim}"));
    d.ok(&format!("start {claim}"));
}

fn finish(d: &mut Rig, claim: u64) {
    d.run(&format!("run {claim}"), ended(RunEnd::Completed, 0));
    d.before_report(claim);
    d.ok(&format!("complete {claim}"));
    d.ok(&format!("seal {claim} record"));
}

fn phase(d: &Rig, claim: u64) -> Option<PhaseName> {
    d.view().tasks().find(|task| task.claim == ClaimKey(claim)).and_then(|task| task.phase)
}

#[test]
fn inv_89_a_free_directory_is_taken_before_anything_is_prepared() {
    let mut d = serving(4);
    d.offer(&in_place(1, "r-1"));
    assert_eq!(phase(&d, 1), Some(PhaseName::Resolving));
    assert!(!d.is_open("prepare 1") && !d.is_marked("ws/t-1"), "nothing is touched before it is known");
    d.resolves(1, "dir-1");
    d.assert_order(&["resolve 1", "is awaiting root 1", "prepare 1"]);
    d.assert_not("wait-directory");
    assert!(d.is_marked("ws/t-1") && d.view().path_locks() == 1);
    starts(&mut d, 1);
    finish(&mut d, 1);
    assert_eq!(d.view().path_locks(), 0, "no entry is left");
}

#[test]
fn inv_90_tasks_on_one_directory_run_one_after_the_other_in_order() {
    let mut d = serving(4);
    for claim in 1..=3 {
        arrives(&mut d, claim, "dir-1");
    }
    d.assert_saw("is parked 2 behind 1");
    d.assert_saw("is parked 3 behind 1");
    assert_eq!((d.count("wait-directory 2"), d.count("wait-directory 3")), (1, 1), "ldr_2: told once");
    d.ok("wait-directory 2");
    d.err("wait-directory 3", BAD_REQUEST);
    starts(&mut d, 1);
    d.clear();
    finish(&mut d, 1);
    d.assert_order(&["unwind 1", "is awaiting slot 2", "is unparked 2 slot 2", "prepare 2", "is released 1"]);
    assert!(!d.is_open("prepare 3"));
    starts(&mut d, 2);
    finish(&mut d, 2);
    starts(&mut d, 3);
    finish(&mut d, 3);
    assert_eq!(d.count_like("is unparked 3"), 1);
    d.assert_not("wait-directory");
    assert_eq!((d.view().path_locks(), d.view().parked_tasks()), (0, 0));
}

#[test]
fn another_directory_is_no_reason_to_wait() {
    let mut d = serving(4);
    arrives(&mut d, 1, "dir-1");
    arrives(&mut d, 2, "dir-2");
    assert!(d.is_open("prepare 1") && d.is_open("prepare 2"));
    d.assert_not("is parked");
}

#[test]
fn inv_91_a_task_that_is_exempt_never_looks_at_a_directory() {
    let mut d = serving(4);
    arrives(&mut d, 1, "dir-1");
    d.offer(&offer(2, "t-2", "r-1"));
    assert!(d.is_open("prepare 2"));
    d.assert_not("resolve 2");
}

#[test]
fn bug_03_a_parked_task_uses_no_slot() {
    let mut d = serving(3);
    arrives(&mut d, 1, "dir-1");
    starts(&mut d, 1);
    arrives(&mut d, 2, "dir-1");
    assert_eq!(d.view().parked_tasks(), 1);
    d.offer(&offer(3, "t-3", "r-1"));
    assert!(d.is_open("prepare 3"), "another task has the slot at once");
}

#[test]
fn bug_03_a_a_task_for_another_directory_starts_while_two_are_parked_and_one_runs() {
    let mut d = serving(2);
    arrives(&mut d, 1, "dir-x");
    starts(&mut d, 1);
    arrives(&mut d, 2, "dir-x");
    arrives(&mut d, 3, "dir-x");
    d.assert_saw("is parked 2 behind 1");
    d.assert_saw("is parked 3 behind 1");
    assert_eq!((d.view().parked_tasks(), d.view().free_slots()), (2, 0), "the free slot is in a claim");
    assert_eq!(d.view().claims(), 1, "it is asked for more at once, with no poll between");
    arrives(&mut d, 4, "dir-y");
    assert!(d.is_open("prepare 4"));
    starts(&mut d, 4);
    d.live(secs(60));
    assert_eq!(phase(&d, 2), Some(PhaseName::AwaitingDirectory));
    assert_eq!(phase(&d, 3), Some(PhaseName::AwaitingDirectory));
    finish(&mut d, 1);
    assert!(d.is_open("prepare 2"));
}

/// Two are parked behind task 1, and no third one may be: task 4 waits with its slot.
fn crowded() -> Rig {
    let mut d = serving(2);
    for claim in 1..=4 {
        arrives(&mut d, claim, "dir-1");
    }
    starts(&mut d, 1);
    d
}

#[test]
fn no_more_tasks_are_parked_than_there_are_slots_and_another_one_waits_with_its_slot() {
    let mut d = crowded();
    d.assert_not("is parked 4");
    d.assert_saw("wait-directory 4");
    assert_eq!(phase(&d, 4), Some(PhaseName::AwaitingDirectory));
    assert_eq!((d.view().parked_tasks(), d.view().path_locks()), (2, 1));
    d.clear();
    d.hint(None);
    d.live(secs(120));
    d.assert_not("claim");
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.clear();
    d.ok("unwind 1");
    d.assert_order(&["is awaiting slot 2", "is parked 4 behind 2", "is unparked 2 slot 1", "prepare 2"]);
    assert_eq!(d.view().parked_tasks(), 2);
    d.assert_not("wait-directory");
}

#[test]
fn one_that_waits_with_its_slot_goes_on_at_once_when_it_is_its_turn() {
    let mut d = crowded();
    d.clear();
    d.pass(secs(5));
    for claim in [2, 3] {
        d.status(&format!("status {claim}"), TaskStatus::Cancelled);
    }
    d.assert_saw("is parked 4 behind 1");
    let mut d = serving(1);
    arrives(&mut d, 1, "dir-1");
    d.ok("prepare 1");
    d.err("start 1", SERVER_ERROR);
    assert_eq!(d.view().parked_tasks(), 0);
    let mut d = crowded();
    d.stop();
    d.assert_saw("fail 4 runtime_offline");
    assert_eq!((d.view().parked_tasks(), d.count_like("is unparked")), (0, 0));
}

#[test]
fn nobody_waits_for_room_that_one_behind_it_has() {
    let mut cfg: Config = with(3, PerRuntime);
    cfg.provider_caps.insert(Provider::new("claude"), 1);
    let mut d = Rig::serving(cfg, &["r-1:claude", "r-2:codex"]);
    d.live(secs(31));
    d.offer(&in_place(1, "r-2"));
    d.resolves(1, "dir-1");
    starts(&mut d, 1);
    for claim in 2..=5 {
        arrives(&mut d, claim, "dir-1");
    }
    d.assert_not("is parked 5");
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.clear();
    d.ok("unwind 1");
    d.assert_order(&["is awaiting slot 2", "is parked 5 behind 2", "prepare 2"]);
}

#[test]
fn bug_03_b_the_directory_is_passed_on_while_the_report_hangs() {
    let mut d = serving(4);
    arrives(&mut d, 1, "dir-1");
    arrives(&mut d, 2, "dir-1");
    starts(&mut d, 1);
    d.clear();
    d.run("run 1", ended(RunEnd::Completed, 0));
    assert!(d.is_open("unwind 1") && !d.is_open("prepare 2"), "inv_92: it is not tidied up yet");
    d.ok("unwind 1");
    d.assert_order(&["unwind 1", "keep 1 owes complete ..0", "is awaiting slot 2", "prepare 2"]);
    d.status("status 1", TaskStatus::Running);
    starts(&mut d, 2);
    d.live(secs(29));
    assert!(d.is_open("run 2") && d.is_open("complete 1"));
    assert_eq!(d.view().path_locks(), 1);
    d.ok("complete 1");
    d.ok("seal 1 record");
    assert_eq!(d.view().path_locks(), 1, "that of task 2");
}

#[test]
fn inv_92_a_task_that_touched_nothing_leaves_the_directory_when_it_ends() {
    let mut d = capped();
    d.stop();
    d.assert_saw("fail 2 runtime_offline");
    assert!(d.is_open("fail 2 runtime_offline"));
    assert_eq!(d.view().path_locks(), 0);
}

#[test]
fn bug_03_c_a_cancelled_wait_is_gone_and_the_others_keep_their_places() {
    let mut d = serving(4);
    for claim in 1..=3 {
        arrives(&mut d, claim, "dir-1");
    }
    starts(&mut d, 1);
    d.clear();
    d.hint(Some("r-1"));
    d.pass(secs(5));
    d.status("status 2", TaskStatus::Cancelled);
    d.status("status 1", TaskStatus::Running);
    d.assert_saw("is released 2");
    assert!(d.is_open("run 1"));
    assert_eq!((d.view().parked_tasks(), phase(&d, 3)), (1, Some(PhaseName::AwaitingDirectory)));
    d.assert_not("is ending 1");
    finish(&mut d, 1);
    assert!(d.is_open("prepare 3"));
}

/// The process is killed while task 1 runs in its directory; the next one serves, and a task for the same directory comes.
fn taken_over(before: impl FnOnce(&mut Rig)) -> Rig {
    let mut d = serving(4);
    arrives(&mut d, 1, "dir-1");
    starts(&mut d, 1);
    before(&mut d);
    d.crash();
    assert_eq!(d.view().path_locks(), 1, "it has its directory before any runtime is registered");
    d
}

fn serves_again(d: &mut Rig) {
    d.api("workspaces", Ok(workspaces(&["ws-1"])));
    d.api("register ws-1", Ok(registered(&["r-1:claude"])));
    if d.is_open("orphans r-1") {
        d.ok("orphans r-1");
    }
    d.ws(WsEvent::Up);
}

#[test]
fn inv_90_a_run_of_an_earlier_process_has_its_directory_still() {
    let mut d = taken_over(|d| d.assert_saw("keep 1 launched slot 0 in dir-1"));
    serves_again(&mut d);
    arrives(&mut d, 2, "dir-1");
    d.assert_saw("is parked 2 behind 1");
    d.run("run 1 attached", ended(RunEnd::Completed, 0));
    assert!(!d.is_open("prepare 2"));
    d.ok("unwind 1");
    assert!(d.is_open("prepare 2"));
}

#[test]
fn inv_90_an_ended_run_has_its_directory_until_that_is_tidied_up() {
    let mut d = taken_over(|d| d.run("run 1", ended(RunEnd::Completed, 0)));
    assert!(d.is_open("unwind 1"));
    d.ok("unwind 1");
    assert_eq!(d.view().path_locks(), 0);
    assert!(d.is_open("complete 1"));
    d.crash();
    assert_eq!(d.view().path_locks(), 0, "and the next process knows that");
    assert!(d.is_open("unwind 1"));
}

#[test]
fn a_record_of_a_directory_that_somebody_has_is_followed_without_it() {
    let mut d = serving(4);
    arrives(&mut d, 1, "dir-1");
    starts(&mut d, 1);
    d.feed(Event::Recovered {
        offer: in_place(7, "r-1"),
        provider: Provider::new("claude"),
        was: Recovered::Launched { slot: SlotIndex(3), acked: 0 },
        path: Some(PathKey::new("dir-1")),
    });
    d.assert_saw("run 7 attached");
    assert_eq!(d.view().path_locks(), 1);
    finish(&mut d, 1);
    assert_eq!(d.view().path_locks(), 0);
}

#[test]
fn a_restart_gives_no_slot_to_who_is_parked_and_a_drain_does() {
    for (how, grants) in [(StopKind::Restart, 0), (StopKind::Drain { within_ms: None }, 1)] {
        let mut d = serving(4);
        arrives(&mut d, 1, "dir-1");
        starts(&mut d, 1);
        arrives(&mut d, 2, "dir-1");
        d.clear();
        d.feed(Event::Stop { how });
        if d.is_open("run 1") {
            d.run("run 1", ended(RunEnd::Completed, 0));
        }
        if d.is_open("unwind 1") {
            d.ok("unwind 1");
        }
        assert_eq!(d.count_like("is unparked 2"), grants, "{how:?}");
        assert_eq!(d.count("prepare 2"), grants, "{how:?}");
    }
}

#[test]
fn inv_93_a_wait_that_the_server_ends_is_left_in_silence_and_moves_nobody_else() {
    let mut d = serving(4);
    for claim in 1..=4 {
        arrives(&mut d, claim, "dir-1");
    }
    starts(&mut d, 1);
    d.clear();
    d.pass(secs(5));
    for claim in [1, 2, 4] {
        d.status(&format!("status {claim}"), TaskStatus::WaitingLocalDirectory);
    }
    d.status("status 3", TaskStatus::Cancelled);
    d.assert_order(&["is ending 3 server", "is released 3", "forget 3"]);
    for never in ["fail 3", "complete 3", "cancel-ack 3", "unwind 3", "seal 3", "prepare 3"] {
        d.assert_not(never);
    }
    finish(&mut d, 1);
    starts(&mut d, 2);
    finish(&mut d, 2);
    assert!(d.is_open("prepare 4"), "the one behind it has its turn");
}

#[test]
fn inv_93_also_while_the_directory_is_looked_at_and_while_a_slot_is_awaited() {
    let mut d = serving(4);
    d.offer(&in_place(1, "r-1"));
    d.pass(secs(5));
    d.status("status 1", TaskStatus::Cancelled);
    assert_eq!(phase(&d, 1), Some(PhaseName::Resolving), "the look is ended first");
    d.fs_err("resolve 1", FsError::Cancelled);
    d.assert_saw("is released 1");
    assert!(d.view().tasks().next().is_none());
    for never in ["fail", "cancel-ack", "unwind", "seal"] {
        d.assert_not(never);
    }

    let mut d = capped();
    d.clear();
    d.pass(secs(5));
    d.status("status 2", TaskStatus::Queued);
    d.assert_order(&["is released 2", "is awaiting slot 4", "prepare 4"]);
    d.assert_not("fail");
    d.assert_not("cancel-ack");
}

#[test]
fn a_parked_task_gets_the_next_free_slot_before_any_claim() {
    let mut d = serving(2);
    arrives(&mut d, 1, "dir-1");
    starts(&mut d, 1);
    arrives(&mut d, 2, "dir-1");
    d.offer(&offer(3, "t-3", "r-1"));
    starts(&mut d, 3);
    d.hint(None);
    d.clear();
    finish(&mut d, 1);
    d.assert_order(&["is awaiting slot 2", "is released 1", "is unparked 2 slot 0", "prepare 2"]);
    d.assert_not("claim");
}

#[test]
fn inv_122_a_parked_task_keeps_its_lease_from_the_last_grant_on() {
    let mut d = serving(4);
    arrives(&mut d, 1, "dir-1");
    starts(&mut d, 1);
    d.offer(&in_place(2, "r-1"));
    let claimed = d.now();
    d.live(secs(4));
    d.resolves(2, "dir-1");
    d.live(secs(2));
    d.ok("wait-directory 2");
    let told = d.now();
    d.clear();
    d.live(secs(50));
    let leases: Vec<u64> = d
        .times("lease 2")
        .iter()
        .map(|at| u64::try_from(at.since(told).as_millis()).expect("short"))
        .collect();
    assert_eq!(leases, [15_000, 30_000, 45_000], "that the task waits granted it as well");
    assert!(told > claimed);
}

#[test]
fn inv_123_the_lease_goes_on_from_the_wait_into_the_preparation() {
    let mut d = serving(4);
    arrives(&mut d, 1, "dir-1");
    starts(&mut d, 1);
    arrives(&mut d, 2, "dir-1");
    d.ok("wait-directory 2");
    let told = d.now();
    d.live(secs(10));
    finish(&mut d, 1);
    assert!(d.is_open("prepare 2"));
    d.clear();
    d.live(secs(6));
    assert_eq!(d.when("lease 2").since(told), secs(15), "not 15 s after the preparation began");
}

#[test]
fn inv_123_a_look_that_hangs_keeps_the_lease_and_is_bounded() {
    let mut d = serving(4);
    d.offer(&in_place(1, "r-1"));
    d.clear();
    d.live(secs(299));
    assert!(d.count("lease 1") >= 19);
    d.live(secs(1));
    d.assert_saw("is ending 1 prepare timeout");
    d.fs_err("resolve 1", FsError::Cancelled);
    d.assert_saw("fail 1 timeout");
}

#[test]
fn a_wait_has_no_timeout_and_the_preparation_after_it_has_all_of_its_time() {
    let mut d = serving(4);
    arrives(&mut d, 1, "dir-1");
    starts(&mut d, 1);
    arrives(&mut d, 2, "dir-1");
    for _ in 0..12 {
        d.live(secs(300));
        d.says("run 1", 0);
    }
    assert_eq!(phase(&d, 2), Some(PhaseName::AwaitingDirectory));
    finish(&mut d, 1);
    d.live(secs(299));
    assert!(d.is_open("prepare 2"));
    d.assert_not("is ending");
    d.live(secs(1));
    d.assert_saw("is ending 2 prepare timeout");
}

#[test]
fn a_directory_that_cannot_be_used_fails_the_task_and_nothing_is_touched() {
    for (error, report) in [
        (FsError::Failed { reason: FailReason::LocalDirectoryError }, "fail 1 local_directory_error"),
        (FsError::TimedOut, "fail 1 timeout"),
    ] {
        let mut d = serving(4);
        d.offer(&in_place(1, "r-1"));
        d.clear();
        d.fs_err("resolve 1", error);
        d.ok(report);
        d.assert_order(&[report, "is released 1", "forget 1"]);
        for never in ["prepare", "unwind", "seal", "start"] {
            d.assert_not(never);
        }
    }
}

#[test]
fn a_stop_reports_who_waits_as_retryable_and_grants_nothing() {
    let mut d = serving(4);
    for claim in 1..=3 {
        arrives(&mut d, claim, "dir-1");
    }
    starts(&mut d, 1);
    d.offer(&in_place(4, "r-1"));
    d.clear();
    d.stop();
    d.assert_saw("fail 2 runtime_offline");
    d.assert_saw("fail 3 runtime_offline");
    d.fs_err("resolve 4", FsError::Cancelled);
    d.assert_saw("fail 4 runtime_offline");
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.settle();
    d.assert_not("is unparked");
    d.assert_not("is awaiting slot");
    assert_eq!(d.view().path_locks(), 0);
}

#[test]
fn a_stop_also_ends_one_that_has_its_directory_and_no_slot() {
    let mut d = capped();
    d.clear();
    d.stop();
    d.assert_saw("fail 2 runtime_offline");
    assert_eq!(d.view().parked_tasks(), 0);
}

/// A provider may run one task: task 2 of it has its directory, but another task of it runs.
fn capped() -> Rig {
    let mut cfg: Config = with(4, PerRuntime);
    cfg.provider_caps.insert(Provider::new("claude"), 1);
    let mut d = Rig::serving(cfg, &["r-1:claude", "r-2:codex"]);
    d.live(secs(31));
    d.offer(&in_place(1, "r-2"));
    d.resolves(1, "dir-1");
    starts(&mut d, 1);
    arrives(&mut d, 2, "dir-1");
    d.offer(&offer(3, "t-3", "r-1"));
    starts(&mut d, 3);
    d.offer(&in_place(4, "r-2"));
    d.resolves(4, "dir-1");
    d.live(ms(1));
    finish(&mut d, 1);
    assert_eq!(phase(&d, 2), Some(PhaseName::AwaitingSlot), "a slot is free, and its provider has no room");
    d
}

#[test]
fn a_parked_task_gives_its_room_back_and_waits_for_it() {
    let mut d = capped();
    d.clear();
    finish(&mut d, 3);
    d.assert_order(&["is released 3", "is unparked 2 slot 0", "prepare 2"]);
    d.assert_not("one r-1");
    starts(&mut d, 2);
    d.clear();
    finish(&mut d, 2);
    d.assert_order(&["is awaiting slot 4", "prepare 4", "is released 2"]);
}

#[test]
fn one_without_room_at_its_provider_holds_up_no_other() {
    let mut d = capped();
    // Two more on another directory, of the other provider.
    d.offer(&in_place(5, "r-2"));
    d.resolves(5, "dir-2");
    assert!(d.is_open("prepare 5"));
}

#[test]
fn a_checkpoint_while_tasks_are_parked_is_the_same_daemon() {
    let mut d = serving(4);
    for claim in 1..=3 {
        arrives(&mut d, claim, "dir-1");
    }
    for mut d in [d, capped()] {
        let daemon = &d.runner().daemon;
        let again = Daemon::restore(&daemon.checkpoint().expect("text")).expect("whole");
        assert_eq!((again.digest(), again.view().parked_tasks()), (daemon.digest(), 2));
    }
}
