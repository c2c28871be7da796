//! Thousands of hints: bounded in what they cost, and none of them lost.

use crate::rig::{Rig, SERVER_ERROR, claimed, ms, offer, secs, with};
use longshore_core::config::ClaimMode::{Batch, PerRuntime};
use longshore_core::event::{TaskStatus, WsEvent};
use longshore_core::id::RuntimeId;

fn storm(d: &mut Rig) {
    d.ws(WsEvent::TaskAvailable { runtime: Some(RuntimeId::new("r-1")), task: None });
}

#[test]
fn a_storm_of_hints_brings_two_looks_a_second_and_the_last_hint_is_not_lost() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.running(&offer(1, "t-1", "r-1"));
    d.live(secs(2));
    d.clear();
    for _ in 0..10_000 {
        storm(&mut d);
        if d.count("status 1") == 1 && d.is_open("status 1") {
            d.status("status 1", TaskStatus::Running);
        }
        d.live(ms(1));
    }
    let looks = d.count("status 1");
    assert!((15..=21).contains(&looks), "{looks} looks in ten seconds");
    d.clear();
    storm(&mut d);
    d.pass(ms(500));
    assert!(d.count("status 1") == 1, "the last one is looked into");
    d.status("status 1", TaskStatus::Cancelled);
    d.assert_saw("is ending 1 server");
}

#[test]
fn a_storm_while_claims_take_their_time_makes_few_claims() {
    for (mode, claim) in [(Batch, "claim "), (PerRuntime, "one r-1")] {
        let mut d = Rig::serving(with(4, mode), &["r-1:claude"]);
        d.clear();
        for n in 0..10_000 {
            storm(&mut d);
            d.skip(ms(1));
            if n % 100 == 99 {
                let label = d.first_open(claim);
                d.api(&label, Ok(claimed(&[])));
            }
        }
        let claims = d.count_like(claim);
        assert!((100..=102).contains(&claims), "{claims}");
    }
}

#[test]
fn the_first_hint_is_looked_into_at_once() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.running(&offer(1, "t-1", "r-1"));
    d.live(secs(2));
    d.clear();
    storm(&mut d);
    assert!(d.is_open("status 1"));
    storm(&mut d);
    storm(&mut d);
    assert_eq!(d.count("status 1"), 1);
    d.status("status 1", TaskStatus::Running);
    assert_eq!(d.count("status 1"), 1, "not yet");
    d.pass(ms(500));
    assert_eq!(d.count("status 1"), 2, "one more for the two that came meanwhile");
}

#[test]
fn sixty_four_looks_are_on_their_way_at_once_and_the_others_follow() {
    let mut d = Rig::serving(with(100, Batch), &["r-1:claude"]);
    for n in 1..=100 {
        d.running(&offer(n, &format!("t-{n}"), "r-1"));
    }
    d.live(secs(2));
    d.settle_status();
    d.clear();
    storm(&mut d);
    assert_eq!(d.count_like("status"), 64);
    storm(&mut d);
    assert_eq!(d.count_like("status"), 64);
    d.settle_status();
    let looked = (1..=100).filter(|n| d.count(&format!("status {n}")) > 0).count();
    assert_eq!(looked, 100, "each of them is looked at");
}

#[test]
fn a_storm_over_an_empty_queue_makes_ten_claims_a_second_and_its_first_hints_and_its_last_are_not_lost() {
    for (mode, claim) in [(Batch, "claim named r-1 4"), (PerRuntime, "one r-1")] {
        let mut d = Rig::serving(with(4, mode), &["r-1:claude", "r-2:codex"]);
        d.live(secs(2));
        d.clear();
        for n in 1..=10 {
            storm(&mut d);
            assert_eq!(d.count(claim), n, "at once, {mode:?}");
            d.live(ms(1));
        }
        for _ in 0..10_000 {
            storm(&mut d);
            d.live(ms(1));
        }
        let claims = d.count(claim);
        assert!((70..=112).contains(&claims), "{claims} claims in ten seconds, {mode:?}");
        d.clear();
        d.live(ms(150));
        assert_eq!(d.count(claim), 1, "for the last hint, {mode:?}");
        d.live(secs(1));
        d.clear();
        storm(&mut d);
        assert_eq!(d.count(claim), 1, "and what comes later is looked into at once, {mode:?}");
    }
}

#[test]
fn a_storm_of_hints_at_a_server_that_fails_makes_ten_claims_a_second_too() {
    for (mode, claim) in [(Batch, "claim "), (PerRuntime, "one r-1")] {
        let mut d = Rig::serving(with(4, mode), &["r-1:claude"]);
        d.live(secs(2));
        d.clear();
        for _ in 0..5_000 {
            storm(&mut d);
            if let Some(label) = d.open_api().filter(|label| label.starts_with(claim)) {
                d.err(&label, SERVER_ERROR);
            }
            d.pass(ms(1));
        }
        let claims = d.count_like(claim);
        assert!((35..=61).contains(&claims), "{claims} claims in five seconds, {mode:?}");
    }
}

#[test]
fn what_is_wanted_of_others_waits_for_no_storm_longer_than_that() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude", "r-2:codex"]);
    d.live(secs(2));
    for _ in 0..2_000 {
        storm(&mut d);
        d.live(ms(1));
    }
    d.clear();
    d.hint(Some("r-2"));
    d.live(ms(150));
    assert_eq!(d.count("claim named r-1,r-2 4") + d.count("claim named r-2 4"), 1);
}

#[test]
fn a_task_that_comes_in_a_storm_makes_up_for_all_claims_in_vain() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.live(secs(2));
    for _ in 0..1_000 {
        storm(&mut d);
        d.live(ms(1));
    }
    d.pass(ms(150));
    if !d.is_open("claim named r-1 4") {
        storm(&mut d);
        d.pass(ms(150));
    }
    d.clear();
    d.brings("claim named r-1 4", &[offer(1, "t-1", "r-1")]);
    assert!(d.is_open("claim named r-1 3"), "there may be more");
    d.ok("claim named r-1 3");
    for n in 0..8 {
        storm(&mut d);
        assert_eq!(d.count("claim named r-1 3"), n + 2, "at once");
        d.ok("claim named r-1 3");
    }
}
