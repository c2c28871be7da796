//! A control connection that the server refuses because of a single runtime: it is found out which, and the rest gets its connection.

use crate::rig::{
    FORBIDDEN, NOT_FOUND, RUNTIME_GONE, Rig, SERVER_ERROR, UNAUTHORIZED, ms, registered, secs, with,
};
use longshore_core::config::ClaimMode::Batch;
use longshore_core::error::Refusal;
use longshore_core::event::{Event, WsEvent};

const GONE: WsEvent = WsEvent::Refused { status: 404, kind: Refusal::RuntimeGone };
const NO_ACCESS: WsEvent = WsEvent::Refused { status: 404, kind: Refusal::Other };

/// A daemon whose next dial is on its way, and no beat.
fn dialling() -> Rig {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude", "r-2:codex", "r-3:claude"]);
    d.ws(WsEvent::Down);
    while d.count_like("connect") == 0 {
        d.pass(ms(100));
    }
    d.settle();
    d.clear();
    d
}

#[test]
fn w_14_a_dial_that_is_refused_makes_every_runtime_beat_and_the_one_that_is_gone_leaves() {
    let mut d = dialling();
    d.ws(GONE);
    for beat in ["beat r-1", "beat r-2", "beat r-3"] {
        assert!(d.is_open(beat), "{beat}");
    }
    d.ok("beat r-1");
    d.err("beat r-2", RUNTIME_GONE);
    d.assert_saw("is gone r-2");
    d.assert_not("connect");
    d.ok("beat r-3");
    assert_eq!(d.count_like("connect"), 1, "at once, once all is known");
    d.ws(WsEvent::Up);
    assert!(d.view().is_linked());
    while !d.is_open("register ws-1") {
        d.live(secs(1));
    }
    d.api("register ws-1", Ok(registered(&["r-1:claude", "r-4:codex", "r-3:claude"])));
    assert_eq!(d.count_like("connect"), 2, "the one that came in its place is named");
}

#[test]
fn w_14_a_runtime_that_this_credential_may_not_see_costs_the_others_no_connection() {
    let mut d = dialling();
    d.ws(NO_ACCESS);
    d.ok("beat r-1");
    d.err("beat r-3", NOT_FOUND);
    d.ok("beat r-2");
    let conn = d.view();
    assert!(!conn.is_linked());
    assert_eq!(d.count_like("connect"), 1);
    assert!(d.saw_end("without r-3"), "it is left out");
    d.ws(WsEvent::Up);
    assert!(d.view().is_linked());
    assert_eq!(d.count_like("ws-beat"), 1);
    assert_eq!(d.view().runtime_count(), 3, "it is still there");

    // It beats on over HTTP; when that is taken, it is named again.
    d.clear();
    while d.count("beat r-3") == 0 {
        d.pass(ms(500));
    }
    d.assert_not("ws-beat r-3");
    d.err("beat r-3", NOT_FOUND);
    d.assert_not("connect");
    d.clear();
    while d.count("beat r-3") == 0 {
        d.pass(ms(500));
    }
    d.ok("beat r-3");
    assert_eq!((d.count_like("close"), d.count_like("connect")), (1, 1));
    assert!(!d.saw_end("without r-3"));
}

#[test]
fn a_refusal_that_no_beat_explains_is_waited_out() {
    let mut d = dialling();
    for _ in 0..4 {
        d.ws(NO_ACCESS);
        d.settle();
        d.assert_not("connect");
        d.clear();
        while d.count_like("connect") == 0 {
            d.live(ms(100));
        }
        d.clear();
    }
    let before = d.now();
    d.ws(NO_ACCESS);
    d.settle();
    while d.count_like("connect") == 0 {
        d.live(ms(100));
    }
    assert!(d.now().since(before) >= secs(12), "the wait grows");
}

#[test]
fn the_next_dial_waits_until_the_last_beat_has_its_answer() {
    let mut d = dialling();
    d.ws(GONE);
    d.ok("beat r-1");
    d.ok("beat r-2");
    d.pass(secs(20));
    d.assert_not("connect");
    d.err("beat r-3", SERVER_ERROR);
    assert_eq!(d.count_like("connect"), 1, "the wait was over already");
}

#[test]
fn a_route_that_is_not_there_and_a_server_that_fails_are_no_reason_to_beat() {
    for refused in [
        WsEvent::Refused { status: 404, kind: Refusal::RouteMissing },
        WsEvent::Refused { status: 503, kind: Refusal::Other },
        WsEvent::Refused { status: 400, kind: Refusal::Other },
    ] {
        let mut d = dialling();
        d.ws(refused);
        d.assert_not("beat");
        d.live(secs(3));
        assert!(d.count_like("connect") > 0, "it is dialled again after a wait");
    }
}

#[test]
fn a_dial_that_is_refused_because_of_the_credential_is_a_loss_of_access() {
    for kind in [Refusal::Unauthorized, Refusal::ClockSkew, Refusal::Forbidden] {
        let mut d = dialling();
        d.ws(WsEvent::Refused { status: 401, kind });
        d.assert_saw("is refused access");
        d.clear();
        d.pass(secs(29));
        d.assert_not("");
        d.feed(Event::Credential);
        assert_eq!(d.count_like("connect"), 1);
    }
}

#[test]
fn a_dial_of_the_old_credential_says_nothing_of_the_new_one() {
    let mut d = dialling();
    d.feed(Event::Credential);
    d.clear();
    d.ws(WsEvent::Refused { status: 401, kind: Refusal::Unauthorized });
    d.assert_not("is refused access");
    d.live(secs(3));
    assert!(d.count_like("connect") > 0);
}

#[test]
fn many_runtimes_beat_within_a_second_and_not_all_at_once() {
    let names: Vec<String> = (0..200).map(|n| format!("r-{n:03}:claude")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut d = Rig::serving(with(4, Batch), &names);
    d.ws(WsEvent::Down);
    while d.count_like("connect") == 0 {
        d.live(ms(100));
    }
    d.settle();
    d.clear();
    d.ws(GONE);
    let at_once = d.count_like("beat");
    assert!(at_once <= 64, "{at_once}");
    d.pass(ms(1_001));
    assert!(d.count_like("beat") >= 200);
    for error in [FORBIDDEN, UNAUTHORIZED] {
        // What the beats say of the credential says nothing of a runtime.
        if let Some(label) = d.open_api() {
            d.err(&label, error);
        }
    }
    assert_eq!(d.view().runtime_count(), 200);
}
