//! A stop that lets runs end first.

use crate::bed::{Bed, refused, succeeded};
use longshore_io_tokio::plane::{State, TaskSpec};
use longshore_tests::is_alive;
use serde_json::json;

const BEGUN: &str = "takes no more tasks";

#[tokio::test]
async fn cli_81_82_a_drain_waits_for_the_run_and_says_so() {
    let bed = Bed::new().await;
    let daemon = bed.daemon().await;
    let (task, gate) = bed.at_work("gate").await;
    let mut drain = bed.home.begin(&["daemon", "stop", "--drain"]);
    drain.says("waiting for 1 task").await;
    drain.says("draining, 1 task still at work").await;
    let late = bed.plane.enqueue(TaskSpec::new("claude")).expect("it is taken");
    let health = bed.status().await;
    assert_eq!((&health["status"], &health["state"]), (&json!("running"), &json!("draining")));
    assert_eq!((&health["active_task_count"], &health["running_task_count"]), (&json!(1), &json!(1)));
    let shown = bed.home.run(&["daemon", "status", "--exit-code"]).await;
    assert!(shown.code == Some(4) && shown.out.contains("draining (pid"), "{shown:?}");
    assert_eq!(bed.pid().await, daemon.id());
    let _open = gate.open();
    let said = drain.ended().await;
    succeeded(&said);
    assert!(said.err.contains("stopped"), "{said:?}");
    assert!(!is_alive(daemon.id()));
    assert_eq!((bed.state_of(&task), bed.state_of(&late)), (State::Completed, State::Queued));
    assert_eq!(bed.off_line(), 1);
    assert!(daemon.ended().await.status.success());
}

#[tokio::test]
async fn cli_81_a_drain_that_takes_too_long_ends_as_a_stop() {
    let bed = Bed::new().await;
    let daemon = bed.daemon().await;
    let (task, _gate) = bed.at_work("gate").await;
    succeeded(&bed.home.run(&["daemon", "stop", "--drain=300ms"]).await);
    assert!(!is_alive(daemon.id()));
    assert_eq!(bed.reason_of(&task).as_deref(), Some("runtime_offline"));
    assert!(daemon.ended().await.status.success());
}

#[tokio::test]
async fn ctrl_c_ends_the_waiting_and_not_the_drain() {
    let bed = Bed::new().await;
    let daemon = bed.daemon().await;
    let (task, gate) = bed.at_work("gate").await;
    let mut drain = bed.home.begin(&["daemon", "stop", "--drain"]);
    drain.says(BEGUN).await;
    drain.interrupt();
    let said = drain.ended().await;
    assert_eq!(said.code, Some(130), "{said:?}");
    assert!(said.err.contains("goes on"), "{said:?}");
    // Whoever waits once more, or wants a new daemon, does not hurry it.
    let refusal = bed.home.run(&["daemon", "restart"]).await;
    assert!(refused(&refusal).contains("draining"), "{refusal:?}");
    let mut second = bed.home.begin(&["daemon", "stop", "--drain=1ms"]);
    second.says("draining already").await;
    second.says("1 task still at work").await;
    assert_eq!(bed.state_of(&task), State::Running);
    let _open = gate.open();
    succeeded(&second.ended().await);
    assert_eq!(bed.state_of(&task), State::Completed);
    assert!(daemon.ended().await.status.success());
}

#[tokio::test]
async fn a_stop_ends_a_drain() {
    let bed = Bed::new().await;
    let daemon = bed.daemon().await;
    let (task, _gate) = bed.at_work("gate").await;
    let mut drain = bed.home.begin(&["daemon", "stop", "--drain"]);
    drain.says(BEGUN).await;
    succeeded(&bed.home.run(&["daemon", "stop"]).await);
    succeeded(&drain.ended().await);
    assert!(bed.home.processes_of(&task).is_empty());
    assert!(daemon.ended().await.status.success());
}
