//! Terminal reports and a server that has trouble with them.

use crate::bed::{Bed, WITHIN, numbers};
use longshore_core::config::Timing;
use longshore_io_tokio::agent_double::Step;
use longshore_io_tokio::plane::{Action, Config, Rule, State, TaskSpec};
use longshore_tests::{DriverUnderTest, Gate, wait_for_end};
use std::time::Duration;

/// Tries of a report follow each other at once.
async fn eager() -> Bed<DriverUnderTest> {
    eager_with(|_| {}).await
}

async fn eager_with(more: impl FnOnce(&mut Timing)) -> Bed<DriverUnderTest> {
    let tune = |core: &mut longshore_core::config::Config| {
        let timers = &mut core.timers;
        timers.access = Duration::from_millis(300);
        more(timers);
        for backoff in [&mut timers.report_backoff, &mut timers.late_backoff, &mut timers.post_backoff] {
            backoff.base = Duration::from_millis(10);
            backoff.cap = Duration::from_millis(20);
        }
    };
    Bed::driven(Config::default(), |home| home, tune).await
}

fn spec() -> TaskSpec {
    TaskSpec::new("claude").script(&[Step::Say("work".into()), Step::Result("worked".into())])
}

/// The task completes although `action` meets the first `times` reports; all reports are the same.
async fn completes_in_spite_of(action: Action, times: u64, tries: usize) {
    let bed = eager().await;
    bed.fault("complete", |path| Rule::new("POST", &path, action).first(times));
    let task = bed.enqueue(spec());
    bed.completed(&task).await;
    let finished = bed.daemon.stop().await;
    assert!(finished.abandoned.is_empty(), "{finished:?}");
    let bodies = bed.bodies(&task, "complete");
    assert_eq!(bodies.len(), tries);
    assert!(bodies.iter().all(|body| *body == bodies[0]), "{bodies:?}");
    assert!(bed.calls(&task, "fail").is_empty(), "work that was done is never reported as failed");
    assert_eq!(bed.home.agent_starts().len(), 1);
}

#[tokio::test]
async fn a_report_is_repeated_until_a_busy_server_takes_it() {
    completes_in_spite_of(Action::error(503, "the database is restarting"), 2, 3).await;
}

#[tokio::test]
async fn a_report_whose_answer_is_lost_is_repeated_and_ends_the_task_once() {
    completes_in_spite_of(Action::LoseReply, 1, 2).await;
}

#[tokio::test]
async fn a_refused_credential_is_a_reason_to_wait_and_not_to_give_work_up() {
    completes_in_spite_of(Action::error(401, "invalid token"), 2, 3).await;
}

#[tokio::test]
async fn a_report_that_is_not_taken_for_long_frees_its_slot_and_is_sent_all_the_same() {
    let bed = eager().await;
    let complete = bed.fault("complete", |path| Rule::new("POST", &path, Action::error(503, "down")));
    let task = bed.enqueue(spec());
    complete.reached(10).await;
    assert_eq!(bed.plane.task(&task).expect("there").state, State::Running);
    complete.remove();
    bed.completed(&task).await;
    bed.daemon.stop().await;
    assert!(bed.calls(&task, "fail").is_empty());
}

#[tokio::test]
async fn a_report_that_is_refused_for_good_is_followed_by_a_failure_that_says_so() {
    let bed = eager().await;
    bed.fault("complete", |path| Rule::new("POST", &path, Action::error(400, "output is too long")));
    let task = bed.enqueue(spec());
    let row = bed.failed(&task).await;
    assert_eq!(bed.calls(&task, "complete").len(), 1);
    assert!(
        row.error.as_deref().is_some_and(|error| error.contains("output is too long")),
        "{:?}",
        row.error
    );
    bed.daemon.stop().await;
}

#[tokio::test]
async fn messages_that_were_refused_for_a_while_arrive_once_and_in_order() {
    let bed = eager().await;
    bed.fault("messages", |path| Rule::new("POST", &path, Action::error(500, "boom")).first(3));
    let lines = 200;
    let script = [Step::Flood { lines, bytes: 3 }, Step::Result("ok".into())];
    let task = bed.enqueue(TaskSpec::new("claude").script(&script));
    bed.completed(&task).await;
    assert_eq!(bed.said(&task), numbers(lines, 3));
    bed.daemon.stop().await;
}

#[tokio::test]
async fn messages_whose_answer_is_lost_are_not_stored_twice() {
    let bed = eager().await;
    bed.fault("messages", |path| Rule::new("POST", &path, Action::LoseReply).first(1));
    let task = bed.enqueue(spec());
    bed.completed(&task).await;
    assert_eq!(bed.said(&task), "work");
    bed.daemon.stop().await;
}

/// Ten tool calls, which are messages of their own, all in the first batch.
fn many_messages() -> TaskSpec {
    let call = |n: u32| Step::Tool {
        name: "Bash".into(),
        input: serde_json::json!({ "n": n }),
        output: format!("out {n}"),
    };
    TaskSpec::new("claude").script(&(0..10).map(call).collect::<Vec<_>>())
}

#[tokio::test]
async fn a_batch_that_is_refused_is_sent_in_parts_and_nothing_is_missing() {
    let bed = eager().await;
    bed.fault("messages", |path| Rule::new("POST", &path, Action::error(413, "too large")).first(3));
    let task = bed.enqueue(many_messages());
    bed.completed(&task).await;
    let seqs: Vec<_> = bed.plane.transcript(&task).iter().map(|message| message.seq).collect();
    assert_eq!(seqs, (1..=20).collect::<Vec<_>>());
    bed.daemon.stop().await;
}

#[tokio::test]
async fn messages_that_are_never_taken_keep_neither_the_agent_nor_the_report() {
    let bed = eager().await;
    let refusal =
        bed.fault("messages", |path| Rule::new("POST", &path, Action::error(404, "task not found")));
    // More than an agent may be ahead of the server.
    let script =
        [Step::Flood { lines: 1, bytes: 17 << 20 }, Step::Say("more".into()), Step::Result("ok".into())];
    let task = bed.enqueue(TaskSpec::new("claude").script(&script));
    bed.completed(&task).await;
    assert!(refusal.hits() >= 1 && bed.said(&task).is_empty());
    bed.daemon.stop().await;
}

#[tokio::test]
async fn an_agent_that_waits_for_the_server_goes_on_when_it_turns_out_to_have_everything() {
    let bed = eager_with(|timers| timers.flush = Duration::from_millis(10)).await;
    bed.fault("messages", |path| Rule::new("POST", &path, Action::LoseReply));
    let bytes = 17 << 20;
    let script = [Step::Flood { lines: 1, bytes }, Step::Result("ok".into())];
    let task = bed.enqueue(TaskSpec::new("claude").script(&script));
    bed.completed(&task).await;
    assert_eq!(bed.said(&task).len(), bytes);
    bed.daemon.stop().await;
}

#[tokio::test]
async fn messages_whose_answer_cannot_be_read_are_not_stored_twice() {
    for answer in [Action::Garble(b"<html>".into()), Action::Truncate, Action::error(502, "bad gateway")] {
        let bed = eager().await;
        bed.fault("messages", |path| Rule::new("POST", &path, answer).first(1));
        let task = bed.enqueue(spec());
        bed.completed(&task).await;
        assert_eq!(bed.said(&task), "work");
        let asked = bed.plane.requests_where(|request| request.is("GET", &format!("/tasks/{task}/messages")));
        assert_eq!(asked.len(), 1, "the server is asked what it has");
        bed.daemon.stop().await;
    }
}

#[tokio::test]
async fn a_server_that_is_away_while_a_run_ends_hears_of_it_when_it_is_back() {
    let bed = eager().await;
    let gate = Gate::new(bed.home.dir().join("gate"));
    let script = [Step::Say("before".into()), gate.wait(), Step::Say(" and after".into())];
    let task = bed.enqueue(TaskSpec::new("claude").script(&script));
    bed.spoke(&task).await;
    let agent = bed.home.processes_of(&task);
    bed.plane.pause().await;
    let _open = gate.open();
    for process in agent {
        assert!(wait_for_end(process, WITHIN).await, "the run ends without the server");
    }
    bed.plane.resume().await;
    bed.completed(&task).await;
    assert_eq!(bed.said(&task), "before and after");
    assert!(bed.calls(&task, "fail").is_empty());
    bed.daemon.stop().await;
}

#[tokio::test]
async fn an_old_server_is_told_of_once_and_asked_with_each_task() {
    let bed = Bed::new().await;
    bed.linked().await;
    let missing = |status: u16, body: &str| Action::Reply { status, body: body.into(), headers: Vec::new() };
    bed.fault("usage", |path| Rule::new("POST", &path, missing(404, "404 page not found\n")));
    bed.fault("cancel-ack", |path| Rule::new("POST", &path, missing(405, "")));
    for _ in 0..2 {
        let task = bed.enqueue(spec());
        bed.completed(&task).await;
        assert_eq!(bed.calls(&task, "usage").len(), 1, "it may be a newer server by now");
    }
    for _ in 0..2 {
        let task = bed.enqueue(TaskSpec::new("claude").script(&[Step::Say("working".into()), Step::Hang]));
        bed.spoke(&task).await;
        assert_eq!(bed.plane.cancel(&task), Ok(State::Cancelled));
        bed.answered(&task, "cancel-ack").await;
    }
    bed.daemon.stop().await;
    let log = std::fs::read_to_string(bed.home.dir().join("daemon.log")).expect("a log");
    for route in ["usage", "cancel-ack"] {
        let told = |line: &&str| {
            line.contains("this server has no such route") && line.contains(&format!("route={route}"))
        };
        assert_eq!(log.lines().filter(told).count(), 1, "{log}");
    }
    assert_eq!(log.lines().filter(|line| line.contains(" ERR ")).count(), 0, "{log}");
}
