//! One poller for each runtime, and servers that repeat themselves.

use crate::rig::{RUNTIME_GONE, Rig, ended, offer, registered, secs, with};
use longshore_core::config::ClaimMode::{Batch, PerRuntime};
use longshore_core::event::RunEnd;
use longshore_core::reason::FailReason;

/// None of the pollers has anything to do before its next poll.
fn per_runtime(slots: u16, runtimes: &[&str]) -> Rig {
    let mut d = Rig::serving(with(slots, PerRuntime), runtimes);
    d.live(secs(31));
    d.clear();
    d
}

#[test]
fn a_runtime_that_is_gone_is_polled_again_once_it_is_registered_again() {
    // W-32: its poller had stopped itself, and nobody started another.
    let mut d = per_runtime(4, &["r-a:claude", "r-b:claude"]);
    d.hint(Some("r-a"));
    d.err("one r-a", RUNTIME_GONE);
    d.assert_saw("removed r-a");
    d.clear();
    d.hint(Some("r-a"));
    d.assert_not("one r-a");
    while !d.is_open("register ws-1") {
        d.live(secs(1));
    }
    d.api("register ws-1", Ok(registered(&["r-a:claude", "r-b:claude"])));
    d.ok("orphans r-a");
    d.live(secs(31));
    d.assert_saw("one r-a");
}

#[test]
fn inv_50_a_runtime_leaves_without_its_tasks() {
    let mut d = per_runtime(4, &["r-a:claude"]);
    d.running(&offer(1, "t-1", "r-a"));
    d.hint(Some("r-a"));
    d.clear();
    d.err("one r-a", RUNTIME_GONE);
    d.assert_saw("removed r-a");
    d.assert_not("is ending");
    d.assert_not("end #");
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.before_report(1);
    d.ok("complete 1");
    d.ok("seal 1 record");
    d.assert_saw("is released 1");
    d.assert_not("one ");
}

#[test]
fn inv_39_a_poller_that_found_nothing_sleeps_for_its_interval() {
    let mut d = per_runtime(4, &["r-a:claude"]);
    d.live(secs(120));
    let times = d.times("one r-a");
    assert!(times.len() >= 3);
    assert!(times.windows(2).all(|pair| pair[1].since(pair[0]) == secs(30)));
}

#[test]
fn a_server_that_hands_out_again_what_was_handed_back_is_not_asked_at_once() {
    // It was asked some hundred times a second: each claim seemed to bring something new.
    for (mode, claim) in [(Batch, "claim named r-1 4"), (PerRuntime, "one r-1")] {
        let mut d = Rig::serving(with(4, mode), &["r-1:claude"]);
        d.live(secs(31));
        d.clear();
        d.hint(Some("r-1"));
        let mut claims = 0;
        while d.is_open(claim) && claims < 20 {
            claims += 1;
            let mut junk = offer(claims, "t-junk", "r-1");
            junk.fault = Some(FailReason::InvalidTaskIdentity);
            d.brings(claim, &[junk]);
            d.ok(&format!("fail {claims} invalid_task_identity"));
        }
        assert_eq!(claims, 2, "the second one brought nothing new");
        d.live(secs(28));
        assert!(d.count_like("claim") + d.count_like("one ") <= 3, "at most the poll");

        d.hint(Some("r-1"));
        d.brings(claim, &[offer(21, "t-junk", "r-1"), offer(22, "t-new", "r-1")]);
        let more = d.count_like("claim named r-1") + d.count_like("one r-1");
        assert!(more >= 4, "a new one beside it is news");
    }
}

#[test]
fn a_task_that_ends_over_and_over_is_run_and_prompts_no_claim() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    let finish = |d: &mut Rig, claim: u64| {
        d.run(&format!("run {claim}"), ended(RunEnd::Completed, 0));
        d.before_report(claim);
        d.ok(&format!("complete {claim}"));
        d.ok(&format!("seal {claim} record"));
    };
    d.running(&offer(1, "t-1", "r-1"));
    finish(&mut d, 1);
    d.brings("claim named r-1 4", &[offer(2, "t-1", "r-1")]);
    d.assert_saw("is admitted 2 slot 1");
    d.ok("prepare 2");
    d.ok("start 2");
    d.clear();
    finish(&mut d, 2);
    d.assert_saw("is released 2");
    d.assert_not("claim");
    d.hint(Some("r-1"));
    assert!(d.is_open("claim named r-1 4"), "the server can always ask for one");
}
