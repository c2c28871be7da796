//! Runs that go as they should: what the agent is given, what the server hears, and what is left.

use crate::bed::{BREAK, Bed, WITHIN};
use longshore_io_tokio::agent_double::Step;
use longshore_io_tokio::plane::{Config, Subject, TaskSpec};
use longshore_io_tokio::prepare::layout;
use longshore_tests::{CLAUDE_SESSION_LOST, wait_for_end};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

fn say(text: &str) -> Step {
    Step::Say(text.into())
}

#[tokio::test]
async fn a_task_is_run_reported_and_tidied_up() {
    let bed = Bed::new().await;
    let task = bed.enqueue(TaskSpec::new("claude").script(&[
        Step::Think("hm".into()),
        say("one, "),
        say("two"),
        Step::Tool { name: "Bash".into(), input: json!({ "command": "ls" }), output: "README".into() },
        say("three"),
        Step::Result("all done".into()),
    ]));
    let row = bed.completed(&task).await;

    let messages: Vec<_> = bed
        .plane
        .transcript(&task)
        .iter()
        .map(|m| {
            let text = m.content.as_deref().or(m.output.as_deref()).unwrap_or_default().to_owned();
            (m.seq, m.kind.to_string(), m.tool.as_deref().unwrap_or_default().to_owned(), text)
        })
        .collect();
    let seqs: Vec<_> = messages.iter().map(|message| message.0).collect();
    assert_eq!(
        seqs,
        (1..=i32::try_from(seqs.len()).expect("few")).collect::<Vec<_>>(),
        "numbered without gaps"
    );
    let mut kinds: Vec<_> = messages.iter().map(|message| message.1.as_str()).collect();
    kinds.dedup();
    assert_eq!(kinds, ["thinking", "text", "tool_use", "tool_result", "text"], "in the order of the agent");
    let text_of = |kind: &str| {
        let of_kind = messages.iter().filter(|message| message.1 == kind);
        of_kind.map(|message| message.3.as_str()).collect::<String>().replace(BREAK, "")
    };
    assert_eq!((text_of("thinking"), text_of("tool_result")), ("hm".into(), "\"README\"".into()));
    assert_eq!(text_of("text"), "one, twothree");
    assert!(messages.iter().filter(|m| m.1.starts_with("tool")).all(|m| m.2 == "Bash"));

    let usage = &row.usage[0];
    assert_eq!((&*usage.provider, &*usage.model, row.usage.len()), ("claude", "double-1", 1));
    let tokens = [usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens];
    assert_eq!(tokens, [10, 5, 2, 1]);

    let work_dir = bed.env_root(&task).join(layout::WORKDIR).display().to_string();
    let pinned = bed.bodies(&task, "session");
    let session = pinned[0]["session_id"].as_str().expect("a session").to_owned();
    assert!(!session.is_empty() && pinned[0]["work_dir"] == work_dir.as_str(), "{pinned:?}");
    let complete = json!({ "output": "all done", "session_id": session, "work_dir": work_dir });
    assert_eq!(bed.bodies(&task, "complete"), [complete], "one report, and nothing in it that is empty");
    let mut steps: Vec<_> = bed.bodies(&task, "progress").iter().map(|note| note["step"].as_i64()).collect();
    steps.sort_unstable();
    assert_eq!(steps, [Some(1), Some(2)]);
    for never in ["fail", "cancel-ack"] {
        assert!(bed.calls(&task, never).is_empty(), "{never}");
    }

    assert!(bed.home.processes_of(&task).is_empty(), "no process of the run is left");
    assert_eq!(fs::read_dir(bed.home.temp_base()).expect("there").count(), 0, "nor its temp dir");
    let ended = bed.daemon.stop().await;
    assert!(ended.status.success(), "{}", ended.log);
    let meta = fs::read(bed.env_root(&task).join(layout::GC_META)).expect("the collector's record");
    let meta: Value = serde_json::from_slice(&meta).expect("JSON");
    assert_eq!((&meta["kind"], &meta["workspace_id"]), (&json!("issue"), &json!("ws-1")));
    for process in bed.home.processes() {
        assert!(wait_for_end(process, WITHIN).await, "process {process} outlives the daemon");
    }
    let runs = fs::read_dir(bed.home.state_dir().join("runs")).map_or(0, Iterator::count);
    assert_eq!(runs, 0, "no run directory is left");
    assert_eq!(bed.plane.requests_where(|request| request.is("POST", "/deregister")).len(), 1);
}

#[tokio::test]
async fn a_comment_reaches_the_agent() {
    let bed = Bed::new().await;
    let spec = TaskSpec::new("claude")
        .script(&[Step::SayPrompt])
        .field("trigger_comment_id", json!("c-77"))
        .field("trigger_comment_content", json!("Please look at the roof again."))
        .field("trigger_author_name", json!("Ada"));
    let task = bed.enqueue(spec);
    bed.completed(&task).await;
    let said = bed.said(&task);
    for part in ["c-77", "Please look at the roof again.", "Ada"] {
        assert!(said.contains(part), "{part} is missing:\n{said}");
    }
}

#[tokio::test]
async fn bug_31_a_long_chat_message_reaches_the_agent_whole_and_not_as_an_argument() {
    let bed = Bed::new().await;
    let message = "-X \"quoted\"\n".repeat(200_000 / 12);
    let spec = TaskSpec {
        subject: Some(Subject::Chat("chat-1".into())),
        ..TaskSpec::new("claude").script(&[Step::SayPrompt]).field("chat_message", json!(message))
    };
    let task = bed.enqueue(spec);
    bed.completed(&task).await;
    assert!(bed.said(&task).contains(&message), "every byte of it");
    let start = &bed.home.agent_starts()[0];
    assert!(!start.arguments.contains("quoted"), "{}", start.arguments);
}

#[tokio::test]
async fn bug_31_an_agent_that_never_reads_its_prompt_can_still_finish() {
    let bed = Bed::new().await;
    let script =
        [Step::NoPrompt, Step::Flood { lines: 64, bytes: 4096 }, Step::Result("fine".into()), Step::Exit(0)];
    let spec = TaskSpec {
        subject: Some(Subject::Chat("chat-1".into())),
        ..TaskSpec::new("claude").script(&script).field("chat_message", json!("x".repeat(300_000)))
    };
    let task = bed.enqueue(spec);
    assert_eq!(&*bed.completed(&task).await.result.expect("a report").output, "fine");
}

/// A task, and another one of the same agent and issue that goes on with what the first one left, if `session` says so.
async fn two_turns(bed: &Bed, session: impl FnOnce(&str) -> String) -> [longshore_io_tokio::plane::Task; 2] {
    let same = TaskSpec {
        agent_id: Some("agent-1".into()),
        subject: Some(Subject::Issue("issue-1".into())),
        ..TaskSpec::new("claude").script(&[Step::Write { path: "notes.txt".into(), text: "kept".into() }])
    };
    let first = bed.enqueue(same.clone());
    let first = bed.completed(&first).await;
    let second = bed.enqueue(TaskSpec {
        prior_session: Some(session(first.session_id.as_deref().expect("a session"))),
        prior_work_dir: first.work_dir.as_deref().map(Into::into),
        ..same.script(&[say("again")])
    });
    let second = bed.completed(&second).await;
    [first, second]
}

#[tokio::test]
async fn a_following_task_works_in_the_same_directory_and_goes_on_with_the_session() {
    let bed = Bed::new().await;
    let [first, second] = two_turns(&bed, str::to_owned).await;
    assert_eq!(second.work_dir, first.work_dir);
    let work_dir = PathBuf::from(second.work_dir.as_deref().expect("a directory"));
    assert_eq!(fs::read_to_string(work_dir.join("notes.txt")).expect("it is still there"), "kept");
    let starts = bed.home.agent_starts();
    let session = first.session_id.as_deref().expect("a session");
    assert!(!starts[0].arguments.contains("--resume"));
    assert!(starts[1].arguments.contains(&format!("--resume {session}")), "{}", starts[1].arguments);
    assert_eq!(second.session_id, first.session_id);
    bed.daemon.stop().await;
    assert!(!bed.env_root(&second.id).exists(), "a root that nothing was made in does not stay");
}

#[tokio::test]
async fn a_session_that_is_lost_is_tried_once_and_then_a_new_one_begins() {
    let bed = Bed::new().await;
    let [first, second] = two_turns(&bed, |_| CLAUDE_SESSION_LOST.to_owned()).await;
    let starts: Vec<_> =
        bed.home.agent_starts().into_iter().filter(|start| start.task == second.id.as_str()).collect();
    assert_eq!(starts.len(), 2, "{starts:?}");
    assert!(starts[0].arguments.contains("--resume") && !starts[1].arguments.contains("--resume"));
    let result = second.result.as_ref().expect("a report");
    assert_eq!(&*result.retired_session_id, CLAUDE_SESSION_LOST, "the server learns that it is dead");
    let session = second.session_id.as_deref().expect("a new session");
    assert!(session != CLAUDE_SESSION_LOST && second.work_dir == first.work_dir);
    assert_eq!(bed.calls(&second.id, "start").len(), 1, "both attempts are one run to the server");
}

#[tokio::test]
async fn a_provider_runs_no_more_tasks_at_once_than_it_may() {
    let bed = Bed::with(Config::default(), |home| {
        home.config("providers", json!({ "claude": { "max_concurrent_tasks": 1 } }))
    })
    .await;
    let script = [say("a"), Step::Sleep(100), say("b")];
    let tasks: Vec<_> = (0..3).map(|_| bed.enqueue(TaskSpec::new("claude").script(&script))).collect();
    let mut spans = Vec::new();
    for task in &tasks {
        let row = bed.completed(task).await;
        spans.push((row.dispatched_at.expect("claimed").mono, row.ended_at.expect("ended").mono));
    }
    spans.sort_unstable();
    for pair in spans.windows(2) {
        assert!(pair[0].1 <= pair[1].0, "two at once, where one is the most: {spans:?}");
    }
}

#[tokio::test]
async fn an_agent_that_asks_for_permission_is_answered() {
    let bed = Bed::new().await;
    let ask = Step::Ask { tool: "Bash".into(), input: json!({ "command": "ls" }) };
    let task = bed.enqueue(TaskSpec::new("claude").script(&[ask, say("it may")]));
    assert_eq!(&*bed.completed(&task).await.result.expect("a report").output, "it may");
}

#[tokio::test]
async fn bug_15_what_an_agent_leaves_behind_goes_with_it() {
    let bed = Bed::new().await;
    let pids = [bed.home.dir().join("same"), bed.home.dir().join("own")];
    let leave = |own_session: bool, path: &PathBuf| Step::Spawn {
        ms: 600_000,
        own_session,
        pid_file: Some(path.display().to_string()),
    };
    let script = [leave(false, &pids[0]), leave(true, &pids[1]), Step::Result("left two".into())];
    let task = bed.enqueue(TaskSpec::new("claude").script(&script));
    let hold = bed.fault("complete", |path| {
        longshore_io_tokio::plane::Rule::new("POST", &path, longshore_io_tokio::plane::Action::Hold)
    });
    hold.reached(1).await;
    for path in &pids {
        let pid = fs::read_to_string(path).expect("written").parse().expect("a number");
        assert!(!longshore_tests::is_alive(pid), "process {pid} was left running");
    }
    hold.release();
    bed.completed(&task).await;
}

#[tokio::test]
async fn bug_21_an_agent_that_stays_after_its_result_is_ended_and_has_succeeded() {
    let bed = Bed::driven(
        Config::default(),
        |home| home,
        |core| {
            core.timers.result_grace = Duration::from_millis(50);
            core.timers.kill_grace = Duration::from_millis(100);
        },
    )
    .await;
    for stays in [vec![], vec![Step::IgnoreTerm]] {
        let script: Vec<_> = stays.into_iter().chain([Step::Result("fine".into()), Step::Hang]).collect();
        let task = bed.enqueue(TaskSpec::new("claude").script(&script));
        assert_eq!(&*bed.completed(&task).await.result.expect("a report").output, "fine");
        assert!(bed.home.processes_of(&task).is_empty());
    }
    bed.daemon.stop().await;
}
