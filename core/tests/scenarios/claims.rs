//! How tasks are asked for.

use crate::rig::{NO_ROUTE, Rig, SERVER_ERROR, ended, ms, offer, secs, with};
use longshore_core::config::ClaimMode::{Auto, Batch, PerRuntime};
use longshore_core::config::Config;
use longshore_core::error::ApiError;
use longshore_core::event::{RunEnd, WsEvent};
use longshore_core::id::Provider;

fn finish(d: &mut Rig, claim: u64) {
    d.run(&format!("run {claim}"), ended(RunEnd::Completed, 0));
    d.before_report(claim);
    d.ok(&format!("complete {claim}"));
    d.ok(&format!("seal {claim} record"));
}

/// A daemon with one poller for each runtime, none of which has anything to do before its next poll.
fn per_runtime(slots: u16, runtimes: &[&str]) -> Rig {
    let mut d = Rig::serving(with(slots, PerRuntime), runtimes);
    d.live(secs(31));
    d.clear();
    d
}

#[test]
fn seed_poller_isolates_slow_runtime() {
    let mut d = per_runtime(4, &["r-a:claude", "r-b:claude"]);
    d.hint(None);
    assert!(d.is_open("one r-a") && d.is_open("one r-b"));
    // The claim of r-a hangs; that of r-b goes on and on.
    for claim in 1..=3 {
        d.brings("one r-b", &[offer(claim, &format!("t-{claim}"), "r-b")]);
    }
    assert_eq!(d.count("one r-b"), 3, "inv_35: one at first, and one after each task while slots are free");
    assert!(d.is_open("one r-a"));
}

#[test]
fn seed_no_claim_at_capacity() {
    for mode in [Batch, PerRuntime] {
        let mut d = Rig::serving(with(1, mode), &["r-1:claude"]);
        d.running(&offer(1, "t-1", "r-1"));
        d.clear();
        d.hint(Some("r-1"));
        d.hint(None);
        d.live(secs(600));
        d.assert_not("claim ");
        d.assert_not("one ");
    }
}

#[test]
fn seed_claim_when_slot_frees() {
    for mode in [Batch, PerRuntime] {
        let mut d = Rig::serving(with(1, mode), &["r-1:claude"]);
        d.running(&offer(1, "t-1", "r-1"));
        d.hint(Some("r-1"));
        d.clear();
        finish(&mut d, 1);
        assert_eq!(d.count_like("claim ") + d.count_like("one "), 1, "inv_34: in the same step");
    }
}

#[test]
fn seed_targeted_wakeup() {
    let mut d = per_runtime(4, &["r-a:claude", "r-b:claude"]);
    d.hint(Some("r-a"));
    assert!(d.is_open("one r-a") && !d.is_open("one r-b"), "inv_36");
    d.ok("one r-a");
    d.hint(None);
    assert!(d.is_open("one r-a") && d.is_open("one r-b"), "inv_37");

    let mut d = Rig::serving(with(4, Batch), &["r-a:claude", "r-b:claude"]);
    d.hint(Some("r-a"));
    assert!(d.is_open("claim named r-a 4"), "a targeted wakeup names just its runtime");
    d.ok("claim named r-a 4");
    d.hint(None);
    assert!(d.is_open("claim all 4"));
}

#[test]
fn inv_38_a_wakeup_during_a_claim_is_kept() {
    let mut d = per_runtime(4, &["r-a:claude"]);
    d.hint(Some("r-a"));
    d.hint(Some("r-a"));
    d.hint(Some("r-a"));
    d.ok("one r-a");
    assert_eq!(d.count("one r-a"), 2, "one more, however many came");
    d.ok("one r-a");
    assert_eq!(d.count("one r-a"), 2);

    let mut d = Rig::serving(with(4, Batch), &["r-a:claude"]);
    d.hint(Some("r-a"));
    d.hint(Some("r-a"));
    d.err("claim named r-a 4", SERVER_ERROR);
    assert_eq!(d.count("claim named r-a 4"), 2, "also if the claim failed");
}

#[test]
fn a_claim_that_brought_a_task_is_followed_by_another() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.hint(None);
    d.brings("claim all 4", &[offer(1, "t-1", "r-1"), offer(2, "t-2", "r-1")]);
    assert!(d.is_open("claim all 2"), "inv_40: for the slots that are left");
    d.ok("claim all 2");
    d.pass(ms(29_999));
    assert_eq!(d.count_like("claim"), 2);
    d.pass(ms(1));
    assert!(d.is_open("claim all 2"), "every poll interval");
}

#[test]
fn more_tasks_than_were_asked_for_are_handed_back() {
    let mut d = Rig::serving(with(1, Batch), &["r-1:claude"]);
    d.hint(None);
    d.brings("claim all 1", &[offer(1, "t-1", "r-1"), offer(2, "t-2", "r-1")]);
    d.assert_saw("is admitted 1 slot 0");
    d.assert_saw("fail 2 runtime_offline");
}

#[test]
fn claim_failures_back_off_and_a_wakeup_resets() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.hint(None);
    d.err("claim all 4", SERVER_ERROR);
    for expected in [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000] {
        let since = d.now();
        d.clear();
        while !d.is_open("claim all 4") {
            d.pass(ms(50));
        }
        let waited = d.when("claim all 4").since(since).as_millis();
        assert!((expected * 8 / 10..=expected * 12 / 10).contains(&waited), "{waited} for {expected}");
        d.err("claim all 4", SERVER_ERROR);
    }
    d.hint(None);
    assert!(d.is_open("claim all 4"));
    d.err("claim all 4", SERVER_ERROR);
    d.pass(ms(1200));
    assert!(d.is_open("claim all 4"));
}

#[test]
fn retry_after_is_honoured_within_bounds() {
    for (asked, waits) in [(7_000, 7_000), (3_600_000, 300_000), (0, 1_000)] {
        for mode in [Batch, PerRuntime] {
            let mut d = Rig::serving(with(4, mode), &["r-1:claude"]);
            d.live(secs(31));
            d.hint(Some("r-1"));
            let claim = if mode == Batch { "claim named r-1 4" } else { "one r-1" };
            d.err(claim, ApiError::Throttled { retry_after_ms: Some(asked) });
            d.clear();
            d.hint(Some("r-1"));
            d.pass(ms(waits - 1));
            assert_eq!(d.count_like("claim ") + d.count_like("one "), 0, "no wakeup shortens it");
            d.pass(ms(1));
            assert_eq!(d.count_like("claim ") + d.count_like("one "), 1);
        }
    }
}

/// As all rules are checked over what the daemon does, this one shows that it breaks none.
#[test]
fn whoever_sets_a_short_interval_is_polled_for_as_often() {
    for mode in [Batch, PerRuntime] {
        let mut cfg = with(4, mode);
        cfg.timers.poll = ms(50);
        let mut d = Rig::serving(cfg, &["r-1:claude"]);
        d.pass(ms(50));
        let label = d.first_open(if mode == Batch { "claim all" } else { "one r-1" });
        d.clear();
        for _ in 0..400 {
            d.ok(&label);
            d.pass(ms(50));
        }
        assert_eq!(d.count(&label), 400, "{mode:?}");
    }
}

#[test]
fn a_reply_that_cannot_be_decoded_waits_one_poll_interval() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.hint(None);
    d.err("claim all 4", ApiError::Undecodable);
    d.clear();
    d.pass(ms(29_999));
    d.assert_not("claim");
    d.pass(ms(1));
    d.assert_saw("claim all 4");
}

#[test]
fn inv_45_without_the_batch_route_each_runtime_asks_for_itself_until_the_next_connection() {
    let mut d = Rig::serving(with(4, Auto), &["r-a:claude", "r-b:codex"]);
    d.hint(None);
    d.err("claim all 4", NO_ROUTE);
    d.assert_saw("is per-runtime");
    assert!(d.is_open("one r-a") && d.is_open("one r-b"), "at once");
    d.ok("one r-a");
    d.ok("one r-b");
    d.clear();
    d.live(secs(120));
    d.assert_not("claim");
    d.ws(WsEvent::Down);
    d.live(secs(2));
    d.ws(WsEvent::Up);
    assert!(d.is_open("claim all 4"));
}

#[test]
fn a_forced_batch_mode_never_falls_back() {
    let mut d = Rig::serving(with(4, Batch), &["r-a:claude"]);
    d.hint(None);
    d.err("claim all 4", NO_ROUTE);
    d.live(secs(60));
    d.assert_not("one ");
}

#[test]
fn i3_a_runtime_that_comes_back_waits_for_its_claim_on_the_way() {
    // Two claims of one runtime at once, after the mode went to batch and back.
    let mut d = Rig::serving(with(4, Auto), &["r-a:claude"]);
    d.hint(None);
    d.err("claim all 4", NO_ROUTE);
    assert!(d.is_open("one r-a"));
    d.ws(WsEvent::Down);
    d.pass(secs(2));
    d.ws(WsEvent::Up);
    d.err("claim all 3", NO_ROUTE);
    assert_eq!(d.count("one r-a"), 1);
    d.ok("one r-a");
    assert_eq!(d.count("one r-a"), 2, "the second one had been asked for meanwhile");
}

fn capped(mode: longshore_core::config::ClaimMode, cap: u16) -> Config {
    let mut cfg = with(4, mode);
    cfg.provider_caps.insert(Provider::new("claude"), cap);
    cfg
}

#[test]
fn a_provider_near_its_bound_is_asked_for_on_its_own() {
    let mut d = Rig::serving(capped(Batch, 1), &["r-a:claude", "r-b:codex"]);
    d.hint(None);
    d.ok("claim all-but claude 4");
    d.brings("claim only claude 1", &[offer(1, "t-1", "r-a")]);
    d.clear();
    d.hint(None);
    d.ok("claim all-but claude 3");
    d.assert_not("claim only");
    d.hint(Some("r-a"));
    d.assert_not("claim named");
    d.ok("prepare 1");
    d.ok("start 1");
    finish(&mut d, 1);
    assert!(d.is_open("claim only claude 1"), "its end makes room");
}

#[test]
fn a_provider_with_room_for_all_slots_is_asked_for_with_the_others() {
    let mut d = Rig::serving(capped(Batch, 4), &["r-a:claude", "r-b:codex"]);
    d.hint(None);
    assert!(d.is_open("claim all 4"));
}

#[test]
fn a_runtime_that_found_its_provider_full_is_asked_for_once_a_claim_ends_empty() {
    // Found by the rules: it waited for the end of a task, and there was none.
    let mut d = Rig::serving(capped(PerRuntime, 1), &["r-a:claude", "r-b:claude"]);
    d.live(secs(31));
    d.clear();
    d.hint(None);
    assert!(d.is_open("one r-a") && !d.is_open("one r-b"));
    d.ok("one r-a");
    assert!(d.is_open("one r-b"));
}

#[test]
fn a_failed_claim_does_not_send_what_was_left_of_the_same_wakeup() {
    // Found by the rules: one wakeup is split in two claims; the failure of the first did not hold back the second.
    let mut d = Rig::serving(capped(Batch, 1), &["r-a:claude", "r-b:codex"]);
    d.hint(None);
    d.err("claim all-but claude 4", SERVER_ERROR);
    d.assert_not("claim only");
    d.pass(ms(1200));
    assert!(d.is_open("claim all-but claude 4"));
}

#[test]
fn inv_39_the_first_poll_of_a_runtime_has_its_own_offset() {
    let mut d = Rig::serving(with(4, PerRuntime), &["r-a:claude", "r-b:claude", "r-c:claude"]);
    d.live(secs(30));
    let mut times: Vec<_> = ["one r-a", "one r-b", "one r-c"].iter().map(|one| d.when(one)).collect();
    times.dedup();
    assert_eq!(times.len(), 3);
}
