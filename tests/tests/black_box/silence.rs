//! Agents that hang, with the real settings of the real binary: who is ended, when, and what the server hears of it.

use crate::bed::Bed;
use longshore_io_tokio::agent_double::Step;
use longshore_io_tokio::plane::{Config, Task, TaskSpec};
use serde_json::json;

const IDLE: &str = "MULTICA_AGENT_IDLE_WATCHDOG";
const TOOL: &str = "MULTICA_AGENT_TOOL_WATCHDOG";

async fn bed(settings: &[(&str, &str)]) -> Bed {
    Bed::with(Config::default(), |home| {
        settings.iter().fold(home, |home, (name, value)| home.env(name, *value))
    })
    .await
}

fn say(text: &str) -> Step {
    Step::Say(text.into())
}

/// A call of a tool that gives no result.
fn call(id: &str) -> Step {
    let content = json!([{ "type": "tool_use", "id": id, "name": "Bash", "input": {} }]);
    event(&json!({ "type": "assistant", "message": { "role": "assistant", "content": content } }))
}

fn result(id: &str) -> Step {
    let content = json!([{ "type": "tool_result", "tool_use_id": id, "content": "ok" }]);
    event(&json!({ "type": "user", "message": { "role": "user", "content": content } }))
}

fn event(value: &serde_json::Value) -> Step {
    Step::Raw(format!("{value}\n"))
}

/// So often this, with so many milliseconds between.
fn again(times: usize, ms: u64, step: &Step) -> Vec<Step> {
    (0..times).flat_map(|_| [Step::Sleep(ms), step.clone()]).collect()
}

async fn ended_as(bed: &Bed, script: &[Step], reason: &str) -> Task {
    let task = bed.enqueue(TaskSpec::new("claude").script(script));
    let row = bed.failed(&task).await;
    assert_eq!(row.failure_reason.as_deref(), Some(reason), "{:?}", row.error);
    assert!(bed.home.processes_of(&task).is_empty(), "no process of it is left");
    assert!(bed.calls(&task, "complete").is_empty());
    row
}

#[tokio::test]
async fn inv_111_an_agent_that_hangs_is_ended_and_what_it_used_is_reported() {
    let bed = bed(&[(IDLE, "2s")]).await;
    let row = ended_as(&bed, &[say("on my way"), Step::Hang], "idle_watchdog").await;
    let error = row.error.as_deref().expect("a text");
    assert!(error.contains("nothing came from it for 2s"), "what happened: {error}");
    assert!(error.contains("set MULTICA_AGENT_IDLE_WATCHDOG"), "what to do about it: {error}");
    assert_eq!(bed.said(&row.id), "on my way");
    assert!(!row.usage.is_empty(), "what it used counts");
    assert!(row.session_id.is_some(), "and its session can be gone on with");
}

#[tokio::test]
async fn bug_24_pings_are_no_sign_of_life() {
    let bed = bed(&[(IDLE, "2s")]).await;
    let ping = event(&json!({ "type": "system", "subtype": "status", "status": "waiting" }));
    let mut script = vec![say("on my way")];
    script.extend(again(200, 200, &ping));
    ended_as(&bed, &script, "idle_watchdog").await;
}

#[tokio::test]
async fn inv_112_an_agent_that_goes_on_speaking_is_never_ended_by_time() {
    let bed = bed(&[(IDLE, "2s")]).await;
    // What is said in one breath becomes one message with what is not sent yet: it counts all the same.
    let mut script = again(12, 300, &say("still here"));
    script.extend(again(8, 300, &Step::Think("hm".into())));
    script.push(Step::Result("done".into()));
    let task = bed.enqueue(TaskSpec::new("claude").script(&script));
    assert_eq!(&*bed.completed(&task).await.result.expect("a report").output, "done");
}

#[tokio::test]
async fn inv_111_a_tool_at_work_has_a_window_of_its_own() {
    let bed = bed(&[(IDLE, "2s"), (TOOL, "0")]).await;
    let script = [call("a"), call("b"), result("a"), Step::Sleep(3_500), result("b"), say("built")];
    let task = bed.enqueue(TaskSpec::new("claude").script(&script));
    bed.completed(&task).await;

    let script = [call("a"), Step::Sleep(3_000), result("a"), Step::Hang];
    ended_as(&bed, &script, "idle_watchdog").await;
}

#[tokio::test]
async fn a_tool_that_hangs_is_ended_at_its_own_window() {
    let bed = bed(&[(TOOL, "2s")]).await;
    let row = ended_as(&bed, &[call("a"), Step::Hang], "idle_watchdog").await;
    let error = row.error.expect("a text");
    assert!(error.contains("for 2s while a tool was running") && error.contains(TOOL), "{error}");
}

#[tokio::test]
async fn a_run_at_its_limit_is_ended_however_much_it_says() {
    let bed = bed(&[("MULTICA_AGENT_TIMEOUT", "1s")]).await;
    let script = again(400, 100, &say("still here"));
    let row = ended_as(&bed, &script, "timeout").await;
    let error = row.error.as_deref().expect("a text");
    assert!(error.contains("timed out after 1s") && error.contains("MULTICA_AGENT_TIMEOUT"), "{error}");
    assert!(!row.usage.is_empty());
}

#[tokio::test]
async fn without_watchdogs_silence_is_allowed() {
    let bed = bed(&[(IDLE, "0"), (TOOL, "1s")]).await;
    let script = [call("a"), Step::Sleep(2_000), result("a"), Step::Sleep(500), say("done")];
    let task = bed.enqueue(TaskSpec::new("claude").script(&script));
    bed.completed(&task).await;
}
