//! Directories of ended tasks, once the server says that what they were for is over.

use crate::bed::{Bed, WITHIN, polled};
use longshore_core::config::Config as Core;
use longshore_core::id::TaskId;
use longshore_core::plane::Subject;
use longshore_io_tokio::agent_double::Step;
use longshore_io_tokio::plane::{Action, Request, Rule, State, TaskSpec};
use longshore_tests::{DriverUnderTest, Home};
use std::path::Path;
use std::time::Duration;

/// A daemon whose collector works all the time, and by ages of a moment.
async fn bed() -> Bed<DriverUnderTest> {
    let short = |home: Home| {
        home.env("MULTICA_GC_TTL", "1ms")
            .env("MULTICA_GC_INTERVAL", "50ms")
            .env("MULTICA_GC_ARTIFACT_TTL", "0")
    };
    let on = |core: &mut Core| {
        core.gc = true;
        core.timers.gc_first = Duration::from_millis(50);
    };
    Bed::driven(polled(), short, on).await
}

fn about_issue(issue: &str) -> TaskSpec {
    let script = [Step::Result("done".into())];
    TaskSpec { subject: Some(Subject::Issue(issue.into())), ..TaskSpec::new("claude").script(&script) }
}

fn is_check(request: &Request) -> bool {
    request.path.ends_with("/gc-check")
}

/// Waits until the collector has asked again, so that everything of before was decided upon.
async fn another_round(bed: &Bed<DriverUnderTest>) {
    let before = bed.plane.requests_where(is_check).len();
    bed.plane.wait_for_requests(before + 2, WITHIN, is_check).await.expect("the collector asks");
}

async fn gone(path: &Path) {
    let gone = async {
        while path.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(WITHIN, gone).await.expect("it is collected");
}

fn say_done(bed: &Bed<DriverUnderTest>, issue: &str) {
    bed.plane.with_plane(|plane, now| plane.set_subject_status(now, issue, "done"));
}

async fn ended(bed: &Bed<DriverUnderTest>, issue: &str) -> TaskId {
    let task = bed.enqueue(about_issue(issue));
    bed.completed(&task).await;
    task
}

#[tokio::test]
async fn gc_2_a_done_issues_directory_goes_and_that_of_an_open_one_and_of_a_task_at_work_stays() {
    let bed = bed().await;
    let (open, done) = (ended(&bed, "open").await, ended(&bed, "done").await);
    another_round(&bed).await;
    assert!(bed.env_root(&open).exists() && bed.env_root(&done).exists());
    // Another task of that issue is at work when it is done.
    let spec = TaskSpec::new("claude").script(&[Step::Say("at work".into()), Step::Hang]);
    let busy = bed.enqueue(TaskSpec { subject: Some(Subject::Issue("done".into())), ..spec });
    bed.spoke(&busy).await;
    say_done(&bed, "done");
    gone(&bed.env_root(&done)).await;
    another_round(&bed).await;
    assert!(bed.env_root(&open).exists() && bed.env_root(&busy).exists());
    assert_eq!(bed.plane.cancel(&busy), Ok(State::Cancelled));
    bed.answered(&busy, "cancel-ack").await;
    bed.daemon.stop().await;
}

#[tokio::test]
async fn gc_6_a_server_that_fails_loses_nobodys_directory() {
    let bed = bed().await;
    let failing = Action::error(500, "no");
    let fault = bed.plane.fault(Rule::new("POST", "/api/daemon/workspaces/*/issues/gc-check", failing));
    let task = ended(&bed, "done").await;
    say_done(&bed, "done");
    fault.reached(3).await;
    assert!(bed.env_root(&task).exists());
    drop(fault);
    bed.daemon.stop().await;
}

#[tokio::test]
async fn t11_an_older_server_is_asked_about_each_issue() {
    let bed = bed().await;
    let old = Action::Reply { status: 404, body: "404 page not found\n".into(), headers: Vec::new() };
    let old = bed.plane.fault(Rule::new("POST", "/api/daemon/workspaces/*/issues/gc-check", old));
    let task = ended(&bed, "done").await;
    say_done(&bed, "done");
    gone(&bed.env_root(&task)).await;
    assert_eq!(bed.plane.requests_where(|request| is_check(request) && request.method == "POST").len(), 1);
    drop(old);
    bed.daemon.stop().await;
}
