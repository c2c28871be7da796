//! The machine sleeps: to the server this daemon was gone, and what it thinks of its connection is wrong.

use crate::rig::{Rig, UNAUTHORIZED, ended, ms, offer, secs, with};
use longshore_core::config::ClaimMode::Batch;
use longshore_core::error::ApiError;
use longshore_core::event::{RunEnd, WsEvent};

const EIGHT_HOURS: u64 = 8 * 3600;

#[test]
fn after_a_sleep_everything_that_the_server_waits_for_is_done_at_once() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude", "r-2:codex"]);
    d.running(&offer(1, "t-1", "r-1"));
    d.offer(&offer(2, "t-2", "r-2"));
    d.live(ms(1));
    d.clear();
    d.sleep(secs(120));
    d.assert_order(&["has slept 120000", "connect 2"]);
    assert_eq!(d.count_like("close"), 1);
    for at_once in ["beat r-1", "beat r-2", "lease 2", "status 1", "status 2", "workspaces"] {
        assert_eq!(d.count(at_once), 1, "{at_once}");
    }
    assert_eq!(d.count_like("claim "), 1);
    d.settle_but("run 1");
    d.assert_not("is ending");
    assert!(d.is_open("run 1"), "the run goes on");
}

#[test]
fn a_run_outlives_a_night() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.running(&offer(1, "t-1", "r-1"));
    d.sleep(secs(EIGHT_HOURS));
    d.ws(WsEvent::Up);
    d.live(secs(60));
    d.assert_not("is ending");
    assert!(d.is_open("run 1") && d.view().is_linked());
}

#[test]
fn a_short_sleep_is_none() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.sleep(ms(4_999));
    d.assert_not("has slept");
    d.assert_not("close");
    d.sleep(secs(5));
    d.assert_saw("has slept 5000");
}

#[test]
fn a_sleep_ends_the_wait_for_the_next_dial() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    for _ in 0..6 {
        d.ws(WsEvent::Down);
        while d.count_like("connect") == 0 {
            d.live(ms(500));
        }
        d.clear();
    }
    d.ws(WsEvent::Down);
    d.live(ms(100));
    d.clear();
    d.sleep(secs(6));
    assert_eq!(d.count_like("connect"), 1);
    d.clear();
    d.ws(WsEvent::Down);
    d.live(ms(1_300));
    assert_eq!(d.count_like("connect"), 1, "and its length");
}

#[test]
fn a_report_that_found_nobody_goes_out_after_a_sleep() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.running(&offer(1, "t-1", "r-1"));
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.before_report(1);
    for _ in 0..4 {
        d.err("complete 1", ApiError::NotSent);
        while !d.is_open("complete 1") {
            d.pass(ms(500));
        }
    }
    d.err("complete 1", ApiError::NotSent);
    d.clear();
    d.sleep(secs(10));
    assert!(d.is_open("complete 1"));
}

#[test]
fn a_sleep_without_access_asks_nothing() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.hint(None);
    d.err("claim all 4", UNAUTHORIZED);
    d.clear();
    d.sleep(secs(6));
    d.assert_saw("has slept 6000");
    assert_eq!(d.count_like(""), 1);
    d.sleep(secs(EIGHT_HOURS));
    assert!(d.is_open("workspaces"), "it was time to look");
}
