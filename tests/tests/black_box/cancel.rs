//! Tasks that somebody cancels.

use crate::bed::{Bed, WITHIN, polled};
use longshore_core::id::TaskId;
use longshore_io_tokio::agent_double::Step;
use longshore_io_tokio::plane::{Action, Config, Rule, State, TaskSpec};
use longshore_tests::{DriverUnderTest, Gate, HeldReader, Home};
use std::time::Duration;

fn stubborn() -> TaskSpec {
    TaskSpec::new("claude").script(&[Step::IgnoreTerm, Step::Say("here I stay".into()), Step::Hang])
}

/// Cancels a task whose agent does not go by itself, and looks at everything that has to follow.
async fn cancelled_while_running<D>(bed: &Bed<D>) {
    bed.linked().await;
    let ack = bed.fault("cancel-ack", |path| Rule::new("POST", &path, Action::Hold));
    let task = bed.enqueue(stubborn());
    bed.spoke(&task).await;
    assert!(!bed.home.processes_of(&task).is_empty());
    assert_eq!(bed.plane.cancel(&task), Ok(State::Cancelled));
    ack.reached(1).await;
    assert!(bed.home.processes_of(&task).is_empty(), "it is acknowledged when nothing of it is left");
    assert!(!bed.plane.task(&task).expect("there").usage.is_empty(), "what it used is told before that");
    assert_eq!(std::fs::read_dir(bed.home.temp_base()).expect("there").count(), 0);
    ack.release();
    let acked =
        |plane: &longshore_core::plane::Plane| plane.task(&task).filter(|row| row.cancel_acked).map(drop);
    bed.plane.wait_until(WITHIN, acked).await.expect("the acknowledgement");
    for never in ["complete", "fail"] {
        assert!(bed.calls(&task, never).is_empty(), "{never}");
    }
    assert_eq!(bed.said(&task), "here I stay");
}

#[tokio::test]
async fn bug_14_a_cancelled_agent_that_ignores_the_polite_signal_is_gone_before_the_acknowledgement() {
    let brief =
        |core: &mut longshore_core::config::Config| core.timers.kill_grace = Duration::from_millis(100);
    let bed = Bed::driven(Config::default(), |home| home, brief).await;
    cancelled_while_running(&bed).await;
    bed.daemon.stop().await;
}

#[tokio::test]
#[ignore = "waits for the true grace between the polite signal and the kill, 5 s"]
async fn bug_14_the_same_with_the_grace_that_users_have() {
    cancelled_while_running(&Bed::new().await).await;
}

#[tokio::test]
async fn a_hint_without_a_task_makes_a_cancel_act_at_once() {
    let bed = Bed::new().await;
    bed.linked().await;
    let task = bed.enqueue(TaskSpec::new("claude").script(&[Step::Say("working".into()), Step::Hang]));
    bed.spoke(&task).await;
    assert_eq!(bed.plane.cancel(&task), Ok(State::Cancelled));
    let ack = bed.call(&task, "cancel-ack").await;
    let cancelled = bed.plane.task(&task).expect("there").ended_at.expect("cancelled").mono;
    let took = ack.at.saturating_sub(Duration::from_millis(cancelled.as_millis()));
    assert!(took < Duration::from_secs(3), "{took:?}: a look of its own comes after 5 s");
    assert!(bed.home.processes_of(&task).is_empty());
}

#[tokio::test]
async fn a_cancel_ends_a_preparation_and_nothing_is_started() {
    let bed = Bed::with(Config::default(), Home::with_codex).await;
    bed.linked().await;
    let shared = Gate::new(bed.home.codex_home().join("config.json"));
    let task = bed.enqueue(TaskSpec::new("codex"));
    let reader = shared.reached().await;
    assert_eq!(bed.plane.cancel(&task), Ok(State::Cancelled));
    bed.answered(&task, "cancel-ack").await;
    drop(reader);
    assert!(!shared.has_reader(), "whoever prepared is gone");
    for never in ["start", "complete", "fail"] {
        assert!(bed.calls(&task, never).is_empty(), "{never}");
    }
}

/// A task whose preparation hangs, with refreshes of the lease every 10 ms and no control channel.
async fn held_in_preparation() -> (Bed<DriverUnderTest>, Gate, HeldReader, TaskId) {
    let tune = |core: &mut longshore_core::config::Config| {
        core.timers.lease = Duration::from_millis(10);
        core.timers.gone_confirm = Duration::from_millis(20);
    };
    let bed = Bed::driven(polled(), Home::with_codex, tune).await;
    let shared = Gate::new(bed.home.codex_home().join("config.json"));
    let task = bed.enqueue(TaskSpec::new("codex"));
    let reader = shared.reached().await;
    (bed, shared, reader, task)
}

#[tokio::test]
async fn bug_05_a_lease_that_is_refused_makes_a_cancel_known() {
    let (bed, shared, reader, task) = held_in_preparation().await;
    assert_eq!(bed.plane.cancel(&task), Ok(State::Cancelled));
    bed.answered(&task, "cancel-ack").await;
    drop(reader);
    assert!(!shared.has_reader(), "whoever prepared is gone");
    for never in ["start", "complete", "fail"] {
        assert!(bed.calls(&task, never).is_empty(), "{never}");
    }
    bed.daemon.stop().await;
}

#[tokio::test]
async fn bug_05_a_task_that_the_server_does_not_know_any_more_is_given_up_in_silence() {
    let (bed, shared, reader, task) = held_in_preparation().await;
    assert!(bed.plane.with_plane(|plane, _| plane.delete_task(&task)));
    assert!(reader.forsaken(WITHIN).await, "whoever prepared is ended");
    assert!(!shared.has_reader());
    let next = bed.enqueue(TaskSpec::new("claude"));
    bed.completed(&next).await;
    bed.daemon.stop().await;
    for never in ["start", "complete", "fail", "cancel-ack"] {
        assert!(bed.calls(&task, never).is_empty(), "{never}");
    }
}
