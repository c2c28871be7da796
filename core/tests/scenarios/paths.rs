//! Tasks that work in a directory of the user: one at a time, the others parked.

use crate::rig::{BAD_REQUEST, Rig, SERVER_ERROR, ended, ms, offer, secs, with};
use longshore_core::config::ClaimMode::{Batch, PerRuntime};
use longshore_core::config::Config;
use longshore_core::daemon::Daemon;
use longshore_core::effect::PhaseName;
use longshore_core::error::FsError;
use longshore_core::event::{ClaimKey, Offer, RunEnd, TaskStatus};
use longshore_core::id::Provider;
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
    d.assert_order(&["resolve 1", "is awaitingroot 1", "prepare 1"]);
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
    d.assert_order(&["is released 1", "is awaitingslot 2", "is unparked 2 slot 2", "prepare 2"]);
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
fn inv_92_the_directory_is_kept_until_the_report_is_settled_and_the_task_sealed() {
    let mut d = serving(4);
    arrives(&mut d, 1, "dir-1");
    arrives(&mut d, 2, "dir-1");
    starts(&mut d, 1);
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.before_report(1);
    d.err("complete 1", SERVER_ERROR);
    d.pass(secs(6));
    d.ok("complete 1");
    assert_eq!(phase(&d, 2), Some(PhaseName::AwaitingDirectory));
    d.ok("seal 1 record");
    assert!(d.is_open("prepare 2"), "and then, in the same step, the next one has it");
}

#[test]
fn a_late_report_does_not_keep_the_directory() {
    let mut d = serving(4);
    arrives(&mut d, 1, "dir-1");
    arrives(&mut d, 2, "dir-1");
    starts(&mut d, 1);
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.before_report(1);
    while !d.is_open("seal 1 record") {
        d.err("complete 1", SERVER_ERROR);
        while !d.is_open("complete 1") && !d.is_open("seal 1 record") {
            d.live(secs(1));
        }
    }
    assert_eq!(d.count("complete 1"), 6);
    d.ok("seal 1 record");
    assert!(d.is_open("prepare 2"));
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
    d.assert_order(&["is released 2", "is awaitingslot 4", "prepare 4"]);
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
    d.assert_order(&["is released 1", "is awaitingslot 2", "is unparked 2 slot 0", "prepare 2"]);
    d.assert_not("claim");
}

#[test]
fn no_more_tasks_are_parked_than_there_are_slots_and_then_none_is_asked_for() {
    let mut d = serving(2);
    arrives(&mut d, 1, "dir-1");
    starts(&mut d, 1);
    arrives(&mut d, 2, "dir-1");
    arrives(&mut d, 3, "dir-1");
    assert_eq!((d.view().parked_tasks(), d.view().free_slots()), (2, 1));
    d.clear();
    d.hint(None);
    d.live(secs(120));
    d.assert_not("claim");
    finish(&mut d, 1);
    assert!(d.is_open("prepare 2"));
    assert!(d.is_open("claim all 1"), "what was wanted meanwhile is asked for as soon as one is parked less");
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
    d.assert_saw("is ending 1 preparetimeout");
    d.fs_err("resolve 1", FsError::Cancelled);
    d.assert_saw("fail 1 timeout");
}

#[test]
fn a_wait_has_no_timeout_and_the_preparation_after_it_has_all_of_its_time() {
    let mut d = serving(4);
    arrives(&mut d, 1, "dir-1");
    starts(&mut d, 1);
    arrives(&mut d, 2, "dir-1");
    d.live(secs(3600));
    assert_eq!(phase(&d, 2), Some(PhaseName::AwaitingDirectory));
    finish(&mut d, 1);
    d.live(secs(299));
    assert!(d.is_open("prepare 2"));
    d.assert_not("is ending");
    d.live(secs(1));
    d.assert_saw("is ending 2 preparetimeout");
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
    d.assert_not("is awaitingslot");
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
    d.assert_order(&["is released 2", "is awaitingslot 4", "prepare 4"]);
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
