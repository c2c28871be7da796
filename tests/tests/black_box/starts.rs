//! `/start` and a server that has trouble with it.

use crate::bed::Bed;
use longshore_io_tokio::agent_double::Step;
use longshore_io_tokio::plane::{Action, Rule, State, TaskSpec};

#[tokio::test]
async fn two_passing_errors_on_start_cost_only_time() {
    let bed = Bed::new().await;
    let boom = || Action::error(500, "boom");
    bed.fault("start", |path| Rule::new("POST", &path, boom()).first(2));
    let task = bed.enqueue(TaskSpec::new("claude"));
    bed.completed(&task).await;
    assert_eq!(bed.calls(&task, "start").len(), 3);
    assert_eq!(bed.home.agent_starts().len(), 1);
}

#[tokio::test]
async fn a_lost_answer_to_start_is_settled_by_asking_and_the_agent_runs_once() {
    let bed = Bed::new().await;
    bed.fault("start", |path| Rule::new("POST", &path, Action::LoseReply).first(1));
    let task = bed.enqueue(TaskSpec::new("claude").script(&[Step::Say("once".into())]));
    bed.completed(&task).await;
    assert_eq!(bed.calls(&task, "start").len(), 1, "it was accepted, and is not sent again");
    let start = bed.calls(&task, "start").remove(0);
    assert!(
        bed.calls(&task, "status").iter().any(|asked| asked.number > start.number),
        "the server was asked"
    );
    assert_eq!((bed.home.agent_starts().len(), bed.said(&task).as_str()), (1, "once"));
}

async fn refused(status: u16, text: &str) {
    let bed = Bed::new().await;
    bed.fault("start", |path| Rule::new("POST", &path, Action::error(status, text)));
    let task = bed.enqueue(TaskSpec { max_attempts: 1, ..TaskSpec::new("claude") });
    bed.failed(&task).await;
    assert!(bed.home.agent_starts().is_empty(), "an agent ran without an accepted start");
    assert_eq!(bed.calls(&task, "start").len(), 1, "a refusal that will not change is not repeated");
    assert_eq!(bed.calls(&task, "fail").len(), 1);
    bed.daemon.stop().await;
    assert_eq!(std::fs::read_dir(bed.home.temp_base()).expect("there").count(), 0);
}

#[tokio::test]
async fn bug_07_a_start_that_is_refused_as_unknown_fails_without_an_agent() {
    refused(404, "task not found").await;
}

#[tokio::test]
async fn bug_07_a_start_that_is_refused_as_a_conflict_fails_without_an_agent() {
    refused(409, "the task is not in a state to be started").await;
}

#[tokio::test]
async fn a_task_that_has_ended_meanwhile_is_dropped_in_silence() {
    let bed = Bed::new().await;
    let hold = bed.fault("start", |path| Rule::new("POST", &path, Action::Hold));
    let task = bed.enqueue(TaskSpec::new("claude"));
    hold.reached(1).await;
    assert_eq!(bed.plane.cancel(&task), Ok(State::Cancelled));
    hold.remove();
    // The slot is free again when another task has run.
    let next = bed.enqueue(TaskSpec::new("claude"));
    bed.completed(&next).await;
    bed.daemon.stop().await;
    assert!(bed.home.agent_starts().iter().all(|start| start.task == next.as_str()));
    for never in ["complete", "fail"] {
        assert!(bed.calls(&task, never).is_empty(), "{never}");
    }
}
