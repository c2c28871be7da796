//! Runs that end in another way than by a success and an exit code of 0.

use crate::bed::Bed;
use longshore_io_tokio::agent_double::Step;
use longshore_io_tokio::plane::{Action, Config, Rule, Task, TaskSpec};
use longshore_tests::Home;
use std::fs;

fn say(text: &str) -> Step {
    Step::Say(text.into())
}

async fn failed(script: &[Step]) -> (Bed, Task) {
    let bed = Bed::new().await;
    let task = bed.enqueue(TaskSpec::new("claude").script(script));
    let row = bed.failed(&task).await;
    assert!(bed.calls(&task, "complete").is_empty());
    (bed, row)
}

#[tokio::test]
async fn an_exit_code_of_1_fails_with_the_end_of_standard_error() {
    let (bed, row) =
        failed(&[say("trying"), Step::Stderr("boom: the disk is on fire".into()), Step::Exit(1)]).await;
    let error = row.error.expect("a text");
    assert!(error.contains("boom: the disk is on fire"), "{error}");
    assert!(row.failure_reason.is_some_and(|reason| reason.starts_with("agent_error.")));
    assert_eq!(bed.said(&row.id), "trying", "what it said before stays");
    assert!(!row.usage.is_empty(), "and what it used counts");
}

#[tokio::test]
async fn bug_23_an_exit_code_of_0_without_a_result_is_a_failure() {
    let (_bed, row) = failed(&[say("on my way"), Step::Exit(0)]).await;
    let error = row.error.expect("a text");
    assert!(error.contains("without terminal result"), "{error}");
}

#[tokio::test]
async fn bug_23_an_agent_that_writes_nothing_has_a_reason_of_its_own() {
    let (_bed, row) = failed(&[Step::NoInit, Step::Exit(0)]).await;
    assert_eq!(
        row.failure_reason.as_deref(),
        Some("agent_error.empty_or_unparseable_output"),
        "{:?}",
        row.error
    );
}

#[tokio::test]
async fn an_agents_own_word_that_it_failed_counts_whatever_its_exit_code() {
    let (_bed, row) = failed(&[Step::Error("I cannot find the Makefile".into()), Step::Exit(0)]).await;
    assert!(row.error.expect("a text").contains("I cannot find the Makefile"));
}

#[tokio::test]
async fn a_success_with_a_bad_exit_code_is_a_success_with_a_warning() {
    let bed = Bed::new().await;
    let task = bed.enqueue(TaskSpec::new("claude").script(&[Step::Result("done".into()), Step::Exit(3)]));
    assert_eq!(&*bed.completed(&task).await.result.expect("a report").output, "done");
    let log = bed.daemon.stop().await.log;
    assert!(log.contains("succeeded, but exited with error"), "{log}");
}

#[tokio::test]
async fn bug_36_a_work_directory_that_vanishes_is_named_and_not_the_program() {
    let bed = Bed::new().await;
    let hold = bed.fault("start", |path| Rule::new("POST", &path, Action::Hold));
    let task = bed.enqueue(TaskSpec::new("claude"));
    hold.reached(1).await;
    fs::remove_dir_all(bed.env_root(&task).join("workdir")).expect("it is there");
    hold.release();
    let row = bed.failed(&task).await;
    let error = row.error.expect("a text");
    assert!(error.contains("workdir missing"), "{error}");
    assert_ne!(row.failure_reason.as_deref(), Some("agent_error.runtime_missing_executable"));
}

#[tokio::test]
async fn a_provider_that_cannot_be_run_yet_says_so_after_its_start() {
    let bed = Bed::with(Config::default(), Home::with_codex).await;
    let task = bed.enqueue(TaskSpec::new("codex"));
    let row = bed.failed(&task).await;
    assert!(row.error.as_deref().is_some_and(|error| error.contains("not supported yet")), "{:?}", row.error);
    assert_eq!(bed.calls(&task, "start").len(), 1);
    assert!(row.started_at.is_some());
}
