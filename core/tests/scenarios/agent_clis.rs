//! Looks at the machine's agent CLIs: what is registered because of them, what stays, and what is held back.

use crate::rig::{BAD_REQUEST, Rig, SERVER_ERROR, ms, offer, profiles, registered, secs, with, workspaces};
use longshore_core::config::ClaimMode::Batch;
use longshore_core::daemon::Daemon;
use longshore_core::error::FsError;
use longshore_core::event::GateAsk::{Release, Try};
use longshore_core::event::{Event, GateOwner, RunEnd, WsEvent};
use longshore_core::id::RuntimeId;
use std::time::Duration;

/// A daemon that is asked for nothing yet: its list and its look are on their way.
fn started() -> Rig {
    let mut d = Rig::manual(with(4, Batch));
    d.ok("renew");
    d
}

/// A daemon with one workspace and these runtimes, of which each agent CLI works.
fn serving(agents: &[&str], runtimes: &[&str]) -> Rig {
    let mut d = started();
    d.api("workspaces", Ok(workspaces(&["ws-1"])));
    d.api("profiles ws-1", Ok(profiles(1, 0)));
    d.finds("probe all", agents);
    d.api("register ws-1", Ok(registered(runtimes)));
    d.ws(WsEvent::Up);
    d.settle_api();
    // The connection says that custom runtimes may have changed; they were just asked for.
    d.pass(secs(1));
    d.settle_api();
    d.clear();
    d
}

/// Time passes until the next look, which finds this.
fn next_look(d: &mut Rig, agents: &[&str]) -> Duration {
    let since = d.now();
    while !d.is_open("probe") && !d.is_open("probe all") {
        d.live(ms(500));
    }
    let label = if d.is_open("probe") { "probe" } else { "probe all" };
    d.finds(label, agents);
    d.now().since(since)
}

fn gone(runtime: &str) -> WsEvent {
    WsEvent::Ack { runtime: RuntimeId::new(runtime), gone: true, claims: false, actions: Vec::new() }
}

#[test]
fn the_first_step_renews_lists_and_looks() {
    let d = Rig::manual(with(4, Batch));
    d.assert_order(&["renew", "workspaces", "probe all"]);
}

#[test]
fn a_new_workspace_is_registered_once_a_look_ended_and_its_custom_runtimes_are_known() {
    let mut d = started();
    d.api("workspaces", Ok(workspaces(&["ws-1"])));
    assert!(d.is_open("profiles ws-1"));
    d.finds("probe all", &["claude", "codex:slow"]);
    d.assert_not("register");
    d.api("profiles ws-1", Ok(profiles(7, 1)));
    assert_eq!(d.names("ws-1"), (vec!["claude".into()], Some(7)));
    d.api("register ws-1", Ok(registered(&["r-1:claude", "r-p:claude+p-1"])));
    d.assert_order(&["added r-1", "orphans r-1", "added r-p", "orphans r-p", "is ready"]);
}

#[test]
fn custom_runtimes_that_take_long_delay_the_first_registration_by_two_seconds() {
    let mut d = started();
    d.finds("probe all", &["claude"]);
    d.api("workspaces", Ok(workspaces(&["ws-1"])));
    d.pass(ms(1_999));
    d.assert_not("register");
    d.pass(ms(1));
    assert_eq!(d.names("ws-1"), (vec!["claude".into()], None));
    d.api("register ws-1", Ok(registered(&["r-1:claude"])));
    d.clear();
    d.api("profiles ws-1", Ok(profiles(7, 1)));
    assert_eq!(d.names("ws-1"), (vec!["claude".into()], Some(7)), "what comes later leads to another one");
    d.api("register ws-1", Ok(registered(&["r-1:claude", "r-p:claude+p-1"])));
    assert_eq!((d.count("orphans r-1"), d.count("orphans r-p")), (0, 1));
}

#[test]
fn custom_runtimes_that_cannot_be_fetched_delay_nothing_and_are_asked_for_again() {
    let mut d = started();
    d.finds("probe all", &["claude"]);
    d.api("workspaces", Ok(workspaces(&["ws-1"])));
    d.err("profiles ws-1", SERVER_ERROR);
    d.api("register ws-1", Ok(registered(&["r-1:claude"])));
    d.pass(secs(3));
    d.api("profiles ws-1", Ok(profiles(2, 2)));
    assert_eq!(d.names("ws-1"), (vec!["claude".into()], Some(2)));
}

#[test]
fn a_slow_agent_is_looked_at_again_soon_and_registered_as_it_answers() {
    let mut d = serving(&["claude", "codex:slow"], &["r-1:claude"]);
    let first = next_look(&mut d, &["claude", "codex:slow"]);
    assert!(first <= secs(3), "{first:?}");
    let second = next_look(&mut d, &["claude", "codex"]);
    assert!(second <= secs(5), "{second:?}");
    assert_eq!(d.names("ws-1"), (vec!["claude".into(), "codex".into()], None));
    d.api("register ws-1", Ok(registered(&["r-1:claude", "r-2:codex"])));
    d.assert_order(&["added r-2", "orphans r-2"]);
    d.assert_not("orphans r-1");
    d.assert_not("deregister");
}

#[test]
fn a_machine_without_agents_asks_the_server_to_register_nothing() {
    let mut d = started();
    d.api("workspaces", Ok(workspaces(&["ws-1"])));
    d.finds("probe all", &[]);
    d.api("profiles ws-1", Ok(profiles(1, 0)));
    d.assert_saw("is ready");
    for _ in 0..5 {
        next_look(&mut d, &[]);
    }
    d.assert_not("register");
    next_look(&mut d, &["claude"]);
    assert_eq!(d.names("ws-1"), (vec!["claude".into()], Some(1)));
}

#[test]
fn a_look_that_fails_is_made_again_and_takes_nothing_off_line() {
    let mut d = serving(&["claude"], &["r-1:claude"]);
    d.live(secs(119));
    d.live(secs(2));
    d.fs_err("probe", FsError::TimedOut);
    d.assert_not("removed");
    assert!(next_look(&mut d, &["claude"]) <= secs(3));
}

#[test]
fn another_version_is_registered_where_it_is_not_known() {
    let mut d = serving(&["claude", "codex"], &["r-1:claude", "r-2:codex"]);
    next_look(&mut d, &["claude", "codex"]);
    d.assert_not("register");
    while next_look(&mut d, &["claude=2", "codex"]) < secs(1) {}
    assert_eq!(d.names("ws-1").0, ["claude", "codex"]);
    d.err("register ws-1", SERVER_ERROR);
    d.live(secs(3));
    d.api("register ws-1", Ok(registered(&["r-1:claude", "r-2:codex"])));
    d.clear();
    next_look(&mut d, &["claude=2", "codex"]);
    d.assert_not("register");
}

#[test]
fn inv_11_an_agent_that_is_slow_unreadable_unfit_or_not_there_keeps_its_runtime() {
    for way in ["codex:slow", "codex:unreadable", "codex:old", "codex:broken", "claude"] {
        let mut d = serving(&["claude", "codex"], &["r-1:claude", "r-2:codex"]);
        next_look(&mut d, &["claude", way]);
        // Another registration, by which everything is replaced, does not name it.
        d.ws(WsEvent::ProfilesChanged { workspace: "ws-1".into() });
        d.live(secs(1));
        d.api("profiles ws-1", Ok(profiles(2, 1)));
        assert_eq!(d.names("ws-1"), (vec!["claude".into()], Some(2)), "{way}");
        d.api("register ws-1", Ok(registered(&["r-1:claude", "r-p:claude+p-1"])));
        d.assert_not("removed");
        d.assert_not("deregister");
    }
}

#[test]
fn a_new_row_of_an_agent_replaces_its_old_one() {
    let mut d = serving(&["claude", "codex"], &["r-1:claude", "r-2:codex"]);
    while next_look(&mut d, &["claude=2", "codex"]) < secs(1) {}
    d.api("register ws-1", Ok(registered(&["r-9:claude", "r-2:codex"])));
    d.assert_order(&["removed r-1", "added r-9", "orphans r-9", "deregister r-1"]);
    d.assert_not("removed r-2");
}

#[test]
fn inv_14_inv_48_incident_r27_an_agent_that_cannot_be_run_goes_off_line_while_nothing_is_about() {
    let mut d = serving(&["claude", "codex"], &["r-1:claude", "r-2:codex", "r-p:codex+p-1"]);
    next_look(&mut d, &["claude", "codex:broken"]);
    d.assert_not("is held");
    d.running(&offer(1, "t-1", "r-1"));
    next_look(&mut d, &["claude", "codex:broken"]);
    d.assert_not("is held");
    d.run("run 1", crate::rig::ended(RunEnd::Completed, 0));
    d.settle_api();
    d.clear();
    next_look(&mut d, &["claude", "codex:broken"]);
    d.assert_order(&["is held codex", "removed r-2", "deregister r-2 broken"]);
    d.assert_not("removed r-p");
    assert_eq!(d.view().gate_holder(), None);
    d.ok("deregister r-2 broken");
    d.hint(None);
    assert!(d.is_open("claim all 4"), "the others are asked for");
}

#[test]
fn inv_14_who_has_the_gate_keeps_an_unfit_agent_on_line() {
    let mut d = serving(&["codex"], &["r-2:codex"]);
    next_look(&mut d, &["codex:old"]);
    d.feed(Event::Gate { owner: GateOwner::Reload, ask: Try });
    next_look(&mut d, &["codex:old"]);
    d.assert_not("is held");
    d.feed(Event::Gate { owner: GateOwner::Reload, ask: Release });
    d.settle_api();
    next_look(&mut d, &["codex:old"]);
    d.assert_order(&["is held codex", "removed r-2", "deregister r-2"]);
}

#[test]
fn an_agent_that_was_well_in_between_is_not_taken_off_line() {
    let mut d = serving(&["codex"], &["r-2:codex"]);
    for way in ["codex:broken", "codex", "codex:broken"] {
        next_look(&mut d, &[way]);
    }
    d.assert_not("is held");
    next_look(&mut d, &["codex:slow"]);
    d.assert_not("is held");
    d.live(secs(61));
    next_look(&mut d, &["codex:broken"]);
    d.assert_saw("is held codex");
}

#[test]
fn inv_12_what_is_held_back_joins_by_no_answer_and_comes_back_as_it_works() {
    let mut d = serving(&["claude", "codex"], &["r-1:claude", "r-2:codex"]);
    next_look(&mut d, &["claude", "codex:broken"]);
    next_look(&mut d, &["claude", "codex:broken"]);
    d.assert_saw("is held codex");
    d.ok("deregister r-2 broken");
    // A server that names it all the same.
    d.ws(gone("r-1"));
    d.live(secs(31));
    d.api("profiles ws-1", Ok(profiles(1, 0)));
    assert_eq!(d.names("ws-1"), (vec!["claude".into()], Some(1)));
    d.clear();
    d.api("register ws-1", Ok(registered(&["r-1:claude", "r-2:codex"])));
    d.assert_not("added r-2");
    d.assert_saw("deregister r-2 broken");
    d.ok("deregister r-2 broken");
    d.settle_api();
    // It survives a checkpoint.
    let runner = d.runner();
    let text = runner.daemon.checkpoint().expect("it can be written down");
    runner.daemon = Daemon::restore(&text).expect("and read");
    next_look(&mut d, &["claude", "codex:unreadable"]);
    d.assert_not("is freed");
    next_look(&mut d, &["claude", "codex"]);
    d.assert_saw("is freed codex");
    assert_eq!(d.names("ws-1").0, ["claude", "codex"]);
    d.api("register ws-1", Ok(registered(&["r-1:claude", "r-2:codex"])));
    d.assert_saw("added r-2");
}

#[test]
fn inv_14_what_goes_off_line_during_a_registration_does_so_after_it() {
    let mut d = serving(&["claude", "codex"], &["r-1:claude", "r-2:codex"]);
    next_look(&mut d, &["claude", "codex:broken"]);
    d.live(secs(61));
    // A new custom runtime is registered as the next look ends.
    d.ws(WsEvent::ProfilesChanged { workspace: "ws-1".into() });
    d.live(secs(1));
    while !d.is_open("probe") {
        d.live(ms(500));
    }
    d.api("profiles ws-1", Ok(profiles(2, 1)));
    assert!(d.is_open("register ws-1"));
    d.finds("probe", &["claude", "codex:broken"]);
    d.assert_order(&["is held codex", "removed r-2"]);
    d.assert_not("deregister");
    d.api("register ws-1", Ok(registered(&["r-1:claude", "r-2:codex", "r-p:claude+p-1"])));
    d.assert_saw("deregister r-2 broken");
    d.assert_not("added r-2");
}

#[test]
fn inv_15_a_list_looks_at_no_agent_and_one_look_is_on_its_way_at_most() {
    let mut d = serving(&["claude"], &["r-1:claude"]);
    for n in 0..20 {
        d.ws(WsEvent::WorkspacesChanged);
        let list: &[&str] = if n % 2 == 0 { &["ws-1", "ws-2"] } else { &["ws-1"] };
        d.api("workspaces", Ok(workspaces(list)));
    }
    d.assert_not("probe");
    d.live(secs(120 + 30));
    assert_eq!(d.count_like("probe"), 1, "one that is not answered is not repeated");
}

#[test]
fn all_versions_are_looked_at_every_ten_minutes_and_new_agents_every_two() {
    let mut d = serving(&["claude"], &["r-1:claude"]);
    for _ in 0..26 {
        d.live(secs(60));
        for look in ["probe", "probe all"] {
            if d.is_open(look) {
                d.finds(look, &["claude"]);
            }
        }
    }
    assert_eq!(d.count("probe all"), 2);
    assert!((9..=12).contains(&d.count("probe")), "{}", d.count("probe"));
}

#[test]
fn an_agent_that_the_server_does_not_take_is_looked_for_less_and_less_often() {
    let mut d = serving(&["claude"], &["r-1:claude"]);
    let mut waits = Vec::new();
    for _ in 0..7 {
        waits.push(next_look(&mut d, &["claude", "codex"]));
        d.api("register ws-1", Ok(registered(&["r-1:claude"])));
    }
    // From then on the looks at versions, of which there is one each 10 minutes, come first.
    assert!(
        waits[2] > waits[0].max(waits[1]) && waits[4..].iter().all(|wait| *wait >= secs(500)),
        "{waits:?}"
    );
    next_look(&mut d, &["claude", "codex", "opencode"]);
    assert!(next_look(&mut d, &["claude", "codex", "opencode"]) <= secs(145), "a new one resets it");
}

#[test]
fn inv_22_custom_runtimes_are_asked_for_when_something_says_that_they_changed() {
    let mut d = serving(&["claude"], &["r-1:claude"]);
    d.live(secs(100));
    d.ws(WsEvent::WorkspacesChanged);
    d.ok("workspaces");
    d.assert_not("profiles");
    let hint = WsEvent::ProfilesChanged { workspace: "ws-1".into() };
    for _ in 0..9 {
        d.ws(hint.clone());
    }
    assert_eq!(d.count("profiles ws-1"), 1);
    d.api("profiles ws-1", Ok(profiles(1, 0)));
    d.live(secs(1));
    assert_eq!(d.count("profiles ws-1"), 2, "a hint during the request leads to one more");
    d.api("profiles ws-1", Ok(profiles(1, 0)));
    d.live(secs(10));
    assert_eq!(d.count("profiles ws-1"), 2);
    d.assert_not("register");
    d.ws(WsEvent::Down);
    d.live(secs(2));
    d.ws(WsEvent::Up);
    assert_eq!(d.count("profiles ws-1"), 3, "so does a new connection");
}

#[test]
fn inv_25_custom_runtimes_that_cannot_be_fetched_stay_as_they_are() {
    let mut d = serving(&["claude"], &["r-1:claude"]);
    let hint = WsEvent::ProfilesChanged { workspace: "ws-1".into() };
    d.live(secs(40));
    d.ws(hint.clone());
    d.api("profiles ws-1", Ok(profiles(2, 1)));
    d.api("register ws-1", Ok(registered(&["r-1:claude", "r-p:claude+p-1"])));
    d.ok("orphans r-p");
    d.live(secs(40));
    d.clear();
    d.ws(hint.clone());
    d.err("profiles ws-1", SERVER_ERROR);
    d.ws(gone("r-1"));
    d.pass(secs(1));
    d.err("profiles ws-1", SERVER_ERROR);
    assert_eq!(d.names("ws-1"), (vec!["claude".into()], Some(2)), "the last that is known");
    d.api("register ws-1", Ok(registered(&["r-2:claude", "r-p:claude+p-1"])));
    d.assert_not("removed r-p");
    d.clear();
    d.live(secs(5));
    d.api("profiles ws-1", Ok(profiles(2, 1)));
    d.assert_not("register");
}

#[test]
fn the_last_custom_runtime_of_a_machine_without_agents_goes_off_line() {
    let mut d = started();
    d.api("workspaces", Ok(workspaces(&["ws-1"])));
    d.finds("probe all", &[]);
    d.api("profiles ws-1", Ok(profiles(2, 1)));
    assert_eq!(d.names("ws-1"), (vec![], Some(2)));
    d.api("register ws-1", Ok(registered(&["r-p:claude+p-1"])));
    d.ok("orphans r-p");
    d.ws(WsEvent::Up);
    d.live(secs(2));
    d.api("profiles ws-1", Ok(profiles(3, 0)));
    d.assert_order(&["removed r-p", "deregister r-p"]);
    assert_eq!(d.count("register ws-1"), 1, "there is nothing to name");
}

#[test]
fn a_server_without_custom_runtimes_has_none() {
    let mut d = started();
    d.finds("probe all", &["claude"]);
    d.api("workspaces", Ok(workspaces(&["ws-1"])));
    d.err("profiles ws-1", crate::rig::NO_ROUTE);
    assert_eq!(d.names("ws-1"), (vec!["claude".into()], None));
    d.api("register ws-1", Ok(registered(&["r-1:claude"])));
    d.pass(secs(100));
    assert_eq!(d.count("profiles ws-1"), 1);
}

#[test]
fn a_registration_that_is_refused_over_a_custom_runtime_is_sent_with_fresh_ones() {
    let mut d = started();
    d.finds("probe all", &["claude"]);
    d.api("workspaces", Ok(workspaces(&["ws-1"])));
    d.api("profiles ws-1", Ok(profiles(2, 1)));
    d.err("register ws-1", BAD_REQUEST);
    d.pass(secs(1));
    d.api("profiles ws-1", Ok(profiles(3, 0)));
    d.assert_not("added");
    d.pass(secs(2));
    assert_eq!(d.names("ws-1"), (vec!["claude".into()], Some(3)));
    d.api("register ws-1", Ok(registered(&["r-1:claude"])));
    d.assert_saw("added r-1");
}

#[test]
fn a_look_ends_with_the_daemon() {
    let mut d = serving(&["claude"], &["r-1:claude"]);
    d.live(secs(121));
    let look = d.op("probe");
    d.stop();
    d.assert_saw(&format!("cancel #{}", look.0));
    d.fs_err("probe", FsError::Cancelled);
    d.assert_not("probe all");
}

#[test]
fn a_look_that_fails_confirms_nothing() {
    // Found by the rules: after one look that found an agent unfit, one that failed took it off line.
    let mut d = serving(&["codex"], &["r-2:codex"]);
    next_look(&mut d, &["codex:broken"]);
    d.live(secs(130));
    d.fs_err("probe", FsError::TimedOut);
    d.assert_not("is held");
    next_look(&mut d, &["codex:broken"]);
    d.assert_saw("is held codex");
}
