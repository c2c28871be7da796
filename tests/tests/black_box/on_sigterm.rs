//! What a signal does to runs, by `on_sigterm`.

use crate::bed::{Bed, WITHIN};
use crate::service::local;
use longshore_core::id::TaskId;
use longshore_io_tokio::agent_double::Step;
use longshore_io_tokio::plane::{Config, State, TaskSpec};
use longshore_tests::{Gate, Home};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A daemon whose one task has said something and waits at the gate.
async fn working(furnish: impl FnOnce(Home) -> Home) -> (Bed, Gate, TaskId) {
    let bed = Bed::with(Config::default(), furnish).await;
    let gate = Gate::new(bed.home.dir().join("gate"));
    let script = [Step::Say("before".into()), gate.wait(), Step::Say(" and after".into())];
    let task = bed.enqueue(TaskSpec::new("claude").script(&script));
    bed.spoke(&task).await;
    (bed, gate, task)
}

/// Waits until the daemon says that it is ending.
async fn stopping(home: &Home) {
    let asked = async {
        loop {
            let (_, body) = local(home, "GET", "/health").await;
            let health: Value = serde_json::from_str(&body).expect("JSON");
            if health["state"] == "draining" || health["state"] == "stopping" {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WITHIN, asked).await.expect("the signal is heard");
}

fn off_line(bed: &Bed) -> usize {
    bed.plane.requests_where(|request| request.is("POST", "/deregister")).len()
}

fn reason(bed: &Bed, task: &TaskId) -> Option<String> {
    bed.plane.task(task).expect("there").failure_reason.as_deref().map(str::to_owned)
}

#[tokio::test]
async fn drain_lets_runs_end_and_claims_nothing_more() {
    let (bed, gate, task) = working(|home| home.flag("--on-sigterm=drain")).await;
    bed.daemon.terminate();
    stopping(&bed.home).await;
    let next = bed.enqueue(TaskSpec::new("claude"));
    let _open = gate.open();
    let ended = bed.daemon.ended().await;
    assert!(ended.status.success(), "{}", ended.log);
    assert_eq!(
        (bed.completed(&task).await.state, bed.said(&task).as_str()),
        (State::Completed, "before and after")
    );
    assert_eq!(
        (bed.calls(&task, "complete").len(), bed.calls(&task, "fail").len(), off_line(&bed)),
        (1, 0, 1)
    );
    assert_eq!(bed.plane.task(&next).expect("there").state, State::Queued);
}

#[tokio::test]
async fn a_second_signal_ends_a_drain() {
    let (bed, _gate, task) = working(|home| home.config("on_sigterm", json!("drain"))).await;
    bed.daemon.terminate();
    stopping(&bed.home).await;
    let begun = Instant::now();
    bed.daemon.terminate();
    let ended = bed.daemon.ended().await;
    assert!(begun.elapsed() < Duration::from_secs(10), "without it the run would never end");
    assert!(ended.status.success(), "{}", ended.log);
    assert!(bed.home.processes_of(&task).is_empty());
    assert_eq!(reason(&bed, &task).as_deref(), Some("runtime_offline"));
}

#[tokio::test]
async fn detach_leaves_runs_and_runtimes_as_they_are() {
    let (bed, _gate, task) = working(|home| home.env("LONGSHORE_ON_SIGTERM", "detach")).await;
    let processes = bed.home.processes_of(&task);
    assert!(!processes.is_empty());
    let ended = bed.daemon.stop().await;
    assert!(ended.status.success(), "{}", ended.log);
    assert_eq!(bed.home.processes_of(&task), processes, "the same processes are still at work");
    assert_eq!(bed.plane.task(&task).expect("there").state, State::Running);
    assert_eq!((bed.calls(&task, "fail").len(), off_line(&bed)), (0, 0));
    assert!(ended.log.contains(task.as_str()) && ended.log.contains("goes on"), "{}", ended.log);
}

#[tokio::test]
async fn ctrl_c_is_a_plain_stop_whatever_sigterm_is() {
    for choice in ["drain", "detach"] {
        let (bed, _gate, task) = working(|home| home.config("on_sigterm", json!(choice))).await;
        let ignored = bed.daemon.ignores(Signal::INT);
        bed.daemon.interrupt();
        if ignored {
            // These tests run in the background of a script, where Ctrl-C is for others: the daemon works on.
            let next = bed.enqueue(TaskSpec::new("claude"));
            bed.completed(&next).await;
            bed.daemon.terminate();
            bed.daemon.terminate();
            bed.daemon.ended().await;
            continue;
        }
        let ended = bed.daemon.ended().await;
        assert!(ended.status.success(), "{}", ended.log);
        assert_eq!(
            (reason(&bed, &task).as_deref(), off_line(&bed)),
            (Some("runtime_offline"), 1),
            "{choice}"
        );
    }
}
