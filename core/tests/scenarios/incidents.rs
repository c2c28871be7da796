//! What went wrong in daemons of this kind, by public report, and does not here. Those that are about one part are beside it.

use crate::rig::{Rig, ended, failed, ms, offer, registered, secs, with, workspaces};
use longshore_core::config::{ClaimMode::Batch, Config};
use longshore_core::error::ApiError;
use longshore_core::event::{
    ApiReply, Collect, Event, Found, FsReply, RunEnd, RunEvent, RunOutcome, TaskStatus, WsEvent,
};
use longshore_core::id::{EnvRoot, RuntimeId};
use longshore_core::reason::FailReason;

fn running() -> Rig {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.running(&offer(1, "t-1", "r-1"));
    d.clear();
    d
}

#[test]
fn incident_r10_a_task_that_is_offered_again_leaves_its_run_and_its_directory_alone() {
    let mut d = running();
    d.offer(&offer(2, "t-1", "r-1"));
    d.assert_saw("is duplicate t-1");
    d.live(secs(60));
    d.assert_not("prepare");
    d.assert_not("unwind");
    d.assert_not("end");
    assert!(d.is_open("run 1") && d.is_marked("ws/t-1"));
}

#[test]
fn incident_r15_an_answer_after_its_request_was_given_up_is_counted_and_no_more() {
    let mut d = running();
    d.pass(secs(5));
    let look = d.op("status 1");
    d.err("status 1", ApiError::Unknown);
    d.clear();
    d.feed(Event::Api { op: look, r: Ok(ApiReply::Task { status: TaskStatus::Cancelled }) });
    d.assert_saw("is stray");
    assert_eq!(d.count_like(""), 1, "nothing else comes of it");
    d.live(secs(60));
    d.assert_not("end");
}

#[test]
fn incident_r24_a_late_loss_of_the_same_wave_registers_nothing() {
    let mut d = Rig::serving(with(4, Batch), &["r-a:claude", "r-b:codex"]);
    let gone = |runtime: &str| WsEvent::Ack {
        runtime: RuntimeId::new(runtime),
        gone: true,
        claims: false,
        actions: Vec::new(),
    };
    d.live(secs(60));
    d.clear();
    d.ws(gone("r-a"));
    d.api("register ws-1", Ok(registered(&["r-c:claude", "r-d:codex"])));
    d.ws(WsEvent::Up);
    d.settle();
    d.ws(gone("r-b"));
    d.ws(gone("r-a"));
    d.live(secs(120));
    assert_eq!(d.count_like("register"), 1);
}

#[test]
fn incident_r32_a_second_of_502_costs_no_report() {
    let mut d = running();
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.before_report(1);
    d.err("complete 1", ApiError::Server { status: 502 });
    while !d.is_open("complete 1") {
        d.live(ms(100));
    }
    d.ok("complete 1");
    d.ok("seal 1 record");
    d.assert_saw("forget 1");
    d.assert_not("fail");
}

#[test]
fn incident_r38_the_messages_of_a_second_launch_are_numbered_on_and_come_before_the_end() {
    let mut d = running();
    d.says("run 1", 2);
    d.live(ms(500));
    d.ok("messages 1 0..2");
    let end = failed(FailReason::ProcessFailure);
    let outcome = RunOutcome { end, have: 2, usage: false, resume_rejected: true };
    d.run("run 1", RunEvent::Ended { outcome });
    d.says("run 1 fresh", 4);
    d.run("run 1 fresh", ended(RunEnd::Completed, 5));
    d.before_report(1);
    d.assert_not("complete");
    while !d.is_open("complete 1") {
        let post = ["messages 1 2..5", "messages 1 2..4", "messages 1 4..5"]
            .into_iter()
            .find(|post| d.is_open(post));
        d.ok(post.expect("the end waits for messages, and they are on their way"));
        d.live(ms(500));
    }
}

#[test]
fn incident_r39_nothing_follows_an_acknowledged_cancel() {
    let mut d = running();
    d.pass(secs(5));
    d.status("status 1", TaskStatus::Cancelled);
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.ok("unwind 1");
    d.ok("cancel-ack 1");
    d.ok("seal 1");
    d.clear();
    d.live(secs(600));
    for late in ["complete", "fail", "messages", "cancel-ack"] {
        d.assert_not(late);
    }
}

#[test]
fn incident_r43_tasks_of_a_daemon_that_died_are_failed_before_new_ones_are_asked_for() {
    let mut d = Rig::new(with(4, Batch));
    d.ok("renew");
    d.api("workspaces", Ok(workspaces(&["ws-1"])));
    d.api("register ws-1", Ok(registered(&["r-1:claude"])));
    d.ws(WsEvent::Up);
    d.hint(Some("r-1"));
    assert!(d.is_open("orphans r-1"));
    d.assert_not("claim");
    d.ok("orphans r-1");
    d.assert_order(&["orphans r-1", "claimable r-1"]);
    assert!(d.count_like("claim ") > 0);
}

#[test]
fn incident_r56_what_an_earlier_round_found_is_not_freed_in_a_later_one() {
    let mut d = Rig::serving(Config { gc: true, ..with(4, Batch) }, &["r-1:claude"]);
    let scanned = |d: &mut Rig, found: Vec<Found>| {
        let op = d.op("scan");
        d.feed(Event::Fs { op, r: Ok(FsReply::Scanned { found }) });
    };
    d.live(secs(30));
    let found = |root: &str| Found { root: EnvRoot::new(root), what: None };
    scanned(&mut d, vec![found("ws/a")]);
    // Nobody says that it may be freed.
    d.err("collectable ws/a", ApiError::NotSent);
    while !d.is_open("scan") {
        if d.is_open("maintain") {
            d.ok("maintain");
        }
        d.live(secs(60));
    }
    scanned(&mut d, vec![Found { root: EnvRoot::new("ws/b"), what: Some(Collect::All) }]);
    d.ok("collect ws/b all");
    d.live(secs(60));
    d.assert_not("collect ws/a");
}
