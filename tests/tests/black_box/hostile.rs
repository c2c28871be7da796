//! Claims that must not be run as they came.

use crate::bed::{Bed, WITHIN, polled};
use longshore_core::id::TaskId;
use longshore_io_tokio::agent_double::Step;
use longshore_io_tokio::plane::{Action, Request, Rule, TaskSpec};
use longshore_io_tokio::prepare::Claim;
use longshore_tests::Gate;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Every path below `dir`, without those that the daemon may make: its own state.
fn everything(dir: &Path) -> BTreeSet<PathBuf> {
    let mut all = BTreeSet::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(entry.path());
            }
            all.insert(entry.path());
        }
    }
    all.retain(|path| !path.components().any(|part| part.as_os_str() == ".multica"));
    all
}

/// A task with these ids is failed with a text, and leaves nothing on the disk.
async fn refused(spec: TaskSpec) -> longshore_io_tokio::plane::Task {
    let bed = Bed::new().await;
    let before = everything(bed.home.dir());
    let task = bed.enqueue(TaskSpec { max_attempts: 1, ..spec });
    let row = bed.failed(&task).await;
    assert_eq!(everything(bed.home.dir()), before, "the disk was touched");
    assert!(bed.calls(&task, "start").is_empty() && bed.home.agent_starts().is_empty());
    assert!(row.error.as_deref().is_some_and(|error| error.len() > 10), "{:?}", row.error);
    let next = bed.enqueue(TaskSpec::new("claude"));
    bed.completed(&next).await;
    row
}

#[tokio::test]
async fn a_workspace_id_that_leads_elsewhere_never_reaches_the_disk() {
    for id in ["../../escape", "..", "", "a/b", "/etc", "x\u{0}y"] {
        refused(TaskSpec::new("claude").field("workspace_id", json!(id))).await;
    }
}

#[tokio::test]
async fn a_task_without_an_agent_is_refused_with_a_reason_of_its_own() {
    let row = refused(TaskSpec::new("claude").field("agent", Value::Null)).await;
    assert_eq!(row.failure_reason.as_deref(), Some("invalid_task_identity"));
}

#[tokio::test]
async fn a_task_with_two_different_agents_is_refused_with_a_reason_of_its_own() {
    let row = refused(TaskSpec::new("claude").field("agent_id", json!("somebody-else"))).await;
    assert_eq!(row.failure_reason.as_deref(), Some("invalid_task_identity"));
}

#[tokio::test]
async fn a_task_id_that_is_no_path_component_frees_its_slot_and_is_not_reported() {
    let bed = Bed::with(longshore_io_tokio::plane::Config::default(), |home| {
        home.env("MULTICA_DAEMON_MAX_CONCURRENT_TASKS", "1")
    })
    .await;
    let before = everything(bed.home.dir());
    bed.enqueue(TaskSpec::new("claude").field("id", json!("../../../tmp/escape")));
    let dispatched = |plane: &longshore_core::plane::Plane| {
        plane.tasks().find(|task| task.dispatched_at.is_some()).map(drop)
    };
    bed.plane.wait_until(WITHIN, dispatched).await.expect("it is claimed");
    let next = bed.enqueue(TaskSpec::new("claude"));
    bed.completed(&next).await;
    let named = bed.plane.requests_where(|request: &Request| request.path.contains("escape"));
    assert!(named.is_empty(), "{named:?}");
    let log = bed.daemon.stop().await.log;
    assert!(log.contains("no part of a path"), "{log}");
    let new: Vec<_> = everything(bed.home.dir()).difference(&before).cloned().collect();
    assert!(
        new.iter()
            .all(|path| path.starts_with(bed.home.workspaces_root())
                || path.starts_with(bed.home.agent("starts"))),
        "{new:?}"
    );
}

#[tokio::test]
async fn a_root_that_another_execution_holds_is_left_alone() {
    let bed = Bed::new().await;
    let id = TaskId::new("0197a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b");
    let claim = Claim::take(&bed.home.workspaces_root(), "ws-1", id.as_str()).expect("free");
    fs::write(claim.path().join("work of somebody"), "x").expect("written");
    bed.enqueue(TaskSpec { id: Some(id.clone()), max_attempts: 1, ..TaskSpec::new("claude") });
    let row = bed.failed(&id).await;
    assert!(
        row.error.as_deref().is_some_and(|error| error.contains("claim execution environment")),
        "{:?}",
        row.error
    );
    assert!(bed.calls(&id, "start").is_empty());
    assert!(claim.path().join("work of somebody").exists(), "nothing of it was wiped");
    claim.release();
}

#[tokio::test]
async fn a_task_that_is_offered_again_while_it_runs_is_not_run_twice() {
    let bed = Bed::new().await;
    bed.linked().await;
    let gate = Gate::new(bed.home.dir().join("gate"));
    let task = bed.enqueue(TaskSpec::new("claude").script(&[Step::Say("here".into()), gate.wait()]));
    bed.spoke(&task).await;
    let again = bed.enqueue(TaskSpec::new("claude").field("id", json!(task.as_str())));
    let dispatched = |plane: &longshore_core::plane::Plane| {
        plane.task(&again).filter(|row| row.dispatched_at.is_some()).map(drop)
    };
    bed.plane.wait_until(WITHIN, dispatched).await.expect("it is offered");
    // What came with the same answer, or before, is dealt with when a later task has run.
    let next = bed.enqueue(TaskSpec::new("claude"));
    bed.completed(&next).await;
    let _open = gate.open();
    bed.completed(&task).await;
    let starts = bed.home.agent_starts();
    assert_eq!(starts.iter().filter(|start| start.task == task.as_str()).count(), 1, "{starts:?}");
    assert_eq!(bed.calls(&task, "complete").len(), 1);
}

#[tokio::test]
async fn claims_that_cannot_be_read_stop_no_later_one() {
    let bed = Bed::with(polled(), |home| home.env("MULTICA_DAEMON_POLL_INTERVAL", "20ms")).await;
    let bodies: [&[u8]; 9] = [
        b"",
        b"{",
        b"[]",
        b"{\"tasks\":\"no\"}",
        b"{\"tasks\":[null]}",
        b"{\"tasks\":[{\"id\":5}]}",
        b"<html>502</html>",
        b"{\"tasks\":[{}]}",
        b"\xff\xfe",
    ];
    for body in bodies {
        let garbled =
            bed.plane.fault(Rule::new("POST", "/api/daemon/tasks/claim", Action::Garble(body.into())));
        garbled.reached(2).await;
        garbled.remove();
    }
    let task = bed.enqueue(TaskSpec::new("claude"));
    bed.completed(&task).await;
}

/// How often the log says it, after the daemon's end.
fn told(log: &str, text: &str) -> usize {
    log.lines().filter(|line| line.contains(text)).count()
}

#[tokio::test]
async fn what_is_no_task_is_not_told_with_each_claim_that_brings_it() {
    let bed = Bed::with(polled(), |home| home.env("MULTICA_DAEMON_POLL_INTERVAL", "20ms")).await;
    let body = br#"{"tasks":[null,[],{"id":"../x"},{"id":""}]}"#;
    let garbled =
        bed.plane.fault(Rule::new("POST", "/api/daemon/tasks/claim", Action::Garble(body.to_vec())));
    garbled.reached(9).await;
    garbled.remove();
    let task = bed.enqueue(TaskSpec::new("claude"));
    bed.completed(&task).await;
    let log = bed.daemon.stop().await.log;
    assert_eq!((told(&log, "no task; it cannot be reported"), told(&log, " ERR ")), (1, 1), "{log}");
}

#[tokio::test]
async fn a_server_that_refuses_every_claim_is_told_once_with_what_it_says() {
    let bed = Bed::with(polled(), |home| home.env("MULTICA_DAEMON_POLL_INTERVAL", "20ms")).await;
    let refusals = ["/api/daemon/tasks/claim", "/api/daemon/runtimes/*/tasks/claim"];
    let refused =
        refusals.map(|path| bed.plane.fault(Rule::new("POST", path, Action::error(422, "not today"))));
    refused[0].reached(3).await;
    let task = bed.enqueue(TaskSpec::new("claude"));
    for refused in &refused {
        refused.remove();
    }
    bed.completed(&task).await;
    let log = bed.daemon.stop().await.log;
    assert_eq!((told(&log, "hands over no tasks"), told(&log, " WRN ")), (1, 1), "{log}");
    assert!(log.contains("not today"), "{log}");
}
