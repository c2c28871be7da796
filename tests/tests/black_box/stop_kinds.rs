//! A stop that waits for runs, and one that leaves them alone.

use crate::bed::Bed;
use longshore_core::effect::ExitCause;
use longshore_core::event::StopKind;
use longshore_core::id::TaskId;
use longshore_io_tokio::agent_double::Step;
use longshore_io_tokio::plane::{Config, State, TaskSpec};
use longshore_tests::{DriverUnderTest, Gate};

/// A daemon whose one task has said something and waits at the gate.
async fn working(gate: &str) -> (Bed<DriverUnderTest>, Gate, TaskId) {
    let bed = Bed::driven(Config::default(), |home| home, |_| {}).await;
    let gate = Gate::new(bed.home.dir().join(gate));
    let script = [Step::Say("before".into()), gate.wait(), Step::Say(" and after".into())];
    let task = bed.enqueue(TaskSpec::new("claude").script(&script));
    bed.spoke(&task).await;
    (bed, gate, task)
}

#[tokio::test]
async fn a_drain_lets_a_run_end_and_reports_it_before_the_daemon_goes() {
    let (bed, gate, task) = working("drain").await;
    bed.daemon.ask_to_stop_as(StopKind::Drain { within_ms: None }).await;
    let claims = bed.claims().len();
    let _open = gate.open();
    let finished = bed.daemon.ended().await;
    assert!(finished.abandoned.is_empty() && finished.kept.is_empty(), "{finished:?}");
    assert_eq!(finished.cause, ExitCause::Stopped);
    assert_eq!(bed.plane.task(&task).expect("there").state, State::Completed);
    assert_eq!(bed.said(&task), "before and after");
    assert!(bed.claims().len() <= claims + 1, "but for the one that was on its way");
    let off_line = bed.plane.requests_where(|request| request.path.ends_with("/deregister"));
    let complete = bed.calls(&task, "complete");
    assert_eq!((off_line.len(), complete.len()), (1, 1));
    assert!(complete[0].answered_at < Some(off_line[0].at), "the runtimes go off line last");
}

#[tokio::test]
async fn a_restart_leaves_the_run_and_its_supervisor_alone() {
    let (bed, _gate, task) = working("restart").await;
    let processes = bed.home.processes_of(&task);
    assert!(!processes.is_empty());
    bed.daemon.ask_to_stop_as(StopKind::Restart).await;
    let finished = bed.daemon.ended().await;
    assert_eq!(finished.cause, ExitCause::Restarting);
    assert_eq!(finished.kept, std::slice::from_ref(&task));
    assert!(finished.abandoned.is_empty(), "{finished:?}");
    assert!(bed.calls(&task, "fail").is_empty());
    assert!(bed.plane.requests_where(|request| request.path.ends_with("/deregister")).is_empty());
    assert_eq!(bed.plane.task(&task).expect("there").state, State::Running);
    assert_eq!(bed.home.processes_of(&task), processes, "the same processes are still at work");
    // The agent's input stays open until the next daemon closes it, so its end is not waited for here.
}
