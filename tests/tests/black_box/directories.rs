//! Tasks that work in a directory of the user's own.

use crate::bed::{Bed, WITHIN};
use crate::service::local;
use longshore_core::id::TaskId;
use longshore_core::plane::Subject;
use longshore_io_tokio::agent_double::Step;
use longshore_io_tokio::plane::{Config, State, TaskSpec};
use longshore_tests::Gate;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

const RULES: &str = "my own rules\n";

/// A daemon with two slots, and a directory of the user's.
async fn bed() -> (Bed, PathBuf) {
    let bed = Bed::with(Config::default(), |home| home.env("MULTICA_DAEMON_MAX_CONCURRENT_TASKS", "2")).await;
    bed.linked().await;
    let boat = bed.home.dir().join("boat");
    fs::create_dir(&boat).expect("a directory");
    fs::write(boat.join("CLAUDE.md"), RULES).expect("a file");
    (bed, boat)
}

fn daemon_id(bed: &Bed) -> String {
    let registered = bed.plane.requests_where(|request| request.is("POST", "/register"));
    registered[0].body["daemon_id"].as_str().expect("it says who it is").to_owned()
}

fn resource(reference: &Value) -> Value {
    json!([{ "id": "res-1", "resource_type": "local_directory", "resource_ref": reference }])
}

/// A task that is tied to a directory.
fn tied(bed: &Bed, path: &Path, steps: &[Step]) -> TaskSpec {
    let reference = json!({ "daemon_id": daemon_id(bed), "local_path": path });
    TaskSpec::new("claude").script(steps).field("project_resources", resource(&reference))
}

fn write(name: &str) -> Step {
    Step::Write { path: name.into(), text: "done".into() }
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("a directory");
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A task that works in the directory, and goes on when the gate is opened.
async fn holder(bed: &Bed, boat: &Path) -> (TaskId, Gate) {
    let gate = Gate::new(bed.home.dir().join("gate"));
    let task = bed.enqueue(tied(bed, boat, &[Step::Say("at work".into()), gate.wait(), write("one.txt")]));
    bed.spoke(&task).await;
    (task, gate)
}

async fn waits(bed: &Bed, task: &TaskId) {
    bed.plane.wait_for(task, State::WaitingLocalDirectory, WITHIN).await.expect("it waits");
}

#[tokio::test]
async fn ldr_1_and_2_tasks_on_one_directory_run_one_after_the_other_and_the_slot_is_used_meanwhile() {
    let (bed, boat) = bed().await;
    let (first, gate) = holder(&bed, &boat).await;
    let link = bed.home.dir().join("link-to-boat");
    std::os::unix::fs::symlink(&boat, &link).expect("a link");
    // It finds what the first one writes last. Which of start and report is told first is left open: INV-92.
    let second = bed.enqueue(tied(&bed, &link, &[Step::Shell("cp one.txt two.txt".into())]));
    waits(&bed, &second).await;
    let bodies = bed.bodies(&second, "wait-local-directory");
    let short: String = first.as_str().chars().take(8).collect();
    assert_eq!(
        bodies,
        [json!({ "reason": format!("link-to-boat is in use by task {short}") })],
        "once, and no path"
    );
    let (_, health) = local(&bed.home, "GET", "/health").await;
    let health: Value = serde_json::from_str(&health).expect("JSON");
    let counts = ["active_task_count", "running_task_count", "resource_wait_task_count"];
    assert_eq!(counts.map(|count| health[count].as_u64()), [Some(2), Some(1), Some(1)]);

    let other = bed.enqueue(TaskSpec::new("claude"));
    bed.completed(&other).await;
    assert!(bed.calls(&second, "start").is_empty() && !boat.join("two.txt").exists());

    let open = gate.open();
    bed.completed(&first).await;
    bed.completed(&second).await;
    drop(open);
    let ended = bed.daemon.stop().await;
    assert!(ended.status.success(), "{}", ended.log);
    assert_eq!(
        names(&boat),
        ["CLAUDE.md", "one.txt", "two.txt"],
        "what the agents made, and nothing of ours"
    );
    assert_eq!(fs::read_to_string(boat.join("CLAUDE.md")).expect("there"), RULES);
}

#[tokio::test]
async fn inv_93_a_task_that_is_cancelled_while_it_waits_is_left_in_silence_and_the_next_has_its_turn() {
    let (bed, boat) = bed().await;
    let (first, gate) = holder(&bed, &boat).await;
    let second = bed.enqueue(tied(&bed, &boat, &[write("two.txt")]));
    waits(&bed, &second).await;
    assert_eq!(bed.plane.cancel(&second), Ok(State::Cancelled));
    let third = bed.enqueue(tied(&bed, &boat, &[write("three.txt")]));
    waits(&bed, &third).await;
    let open = gate.open();
    bed.completed(&first).await;
    bed.completed(&third).await;
    drop(open);
    assert_eq!(names(&boat), ["CLAUDE.md", "one.txt", "three.txt"]);
    for never in ["start", "complete", "fail", "cancel-ack"] {
        assert!(bed.calls(&second, never).is_empty(), "{never}");
    }
}

#[tokio::test]
async fn a_stop_gives_back_a_task_that_waits_as_one_to_try_again() {
    let (bed, boat) = bed().await;
    let (_first, _gate) = holder(&bed, &boat).await;
    let second = bed.enqueue(TaskSpec { max_attempts: 1, ..tied(&bed, &boat, &[write("two.txt")]) });
    waits(&bed, &second).await;
    let ended = bed.daemon.stop().await;
    assert!(ended.status.success(), "{}", ended.log);
    assert_eq!(bed.failed(&second).await.failure_reason.as_deref(), Some("runtime_offline"));
    assert_eq!(names(&boat), ["CLAUDE.md"], "the one that was at work has left nothing of ours either");
    assert_eq!(fs::read_to_string(boat.join("CLAUDE.md")).expect("there"), RULES);
}

#[tokio::test]
async fn ldr_5_to_7_a_directory_that_cannot_be_used_fails_the_task_and_is_not_touched() {
    let (bed, boat) = bed().await;
    let id = daemon_id(&bed);
    let of = |path: &Path| json!({ "daemon_id": id, "local_path": path });
    let mode = |mode: &str| json!({ "daemon_id": id, "local_path": boat, "execution_mode": mode });
    let file = bed.home.dir().join("file");
    fs::write(&file, "").expect("a file");
    let twice = {
        let one = resource(&of(&boat))[0].clone();
        json!([one, one])
    };
    let cases = [
        (resource(&of(&bed.home.dir().join("none"))), "none does not exist"),
        (resource(&of(&file)), "not a directory"),
        (resource(&of(&bed.home.home_dir())), "system or home directory"),
        (resource(&of(Path::new("/tmp"))), "system or home directory"),
        (resource(&of(Path::new("boat"))), "not absolute"),
        (resource(&mode("worktree")), "worktree"),
        (resource(&mode("cloud")), "does not know"),
        (resource(&json!({ "local_path": boat })), "names no daemon"),
        (resource(&json!("boat")), "not understood"),
        (twice, "two directories"),
    ];
    // The daemon refuses a worktree itself, should a server hand one out.
    bed.plane.set_worktree_gate(false);
    for (resources, says) in cases {
        let spec =
            TaskSpec::new("claude").script(&[write("never.txt")]).field("project_resources", resources);
        let task = bed.enqueue(spec);
        let row = bed.failed(&task).await;
        assert_eq!(row.failure_reason.as_deref(), Some("local_directory_error"), "{says}");
        let error = row.error.expect("words");
        let root = bed.home.dir().display().to_string();
        assert!(error.contains(says) && !error.contains(&root), "{says}: {error}");
        assert!(bed.calls(&task, "start").is_empty(), "{says}");
    }
    assert_eq!(names(&boat), ["CLAUDE.md"]);
}

#[tokio::test]
async fn ldr_3_a_chat_works_in_the_directory_at_once_and_is_told_that_it_is_shared() {
    let (bed, boat) = bed().await;
    let (first, gate) = holder(&bed, &boat).await;
    let brief = fs::read_to_string(boat.join("CLAUDE.md")).expect("there");
    assert!(brief.starts_with(RULES) && brief != RULES, "the brief of the task at work");
    let spec =
        tied(&bed, &boat, &[Step::SayPrompt, write("chat.txt")]).field("chat_message", json!("Hello?"));
    let chat = bed.enqueue(TaskSpec { subject: Some(Subject::Chat("chat-1".into())), ..spec });
    bed.completed(&chat).await;
    assert!(bed.calls(&chat, "wait-local-directory").is_empty());
    assert!(bed.said(&chat).contains("Shared directory"), "{}", bed.said(&chat));
    assert!(boat.join("chat.txt").exists(), "inv_91: it keeps the directory");
    assert_eq!(fs::read_to_string(boat.join("CLAUDE.md")).expect("there"), brief, "and exchanges no brief");
    let open = gate.open();
    bed.completed(&first).await;
    drop(open);
    assert!(bed.daemon.stop().await.status.success());
    assert_eq!(names(&boat), ["CLAUDE.md", "chat.txt", "one.txt"]);
    assert_eq!(fs::read_to_string(boat.join("CLAUDE.md")).expect("there"), RULES);
}

#[tokio::test]
async fn ldr_4_a_leader_works_in_a_directory_of_its_own() {
    let (bed, boat) = bed().await;
    let spec = tied(&bed, &boat, &[write("leader.txt")]).field("is_leader_task", json!(true));
    let task = bed.enqueue(spec);
    bed.completed(&task).await;
    assert!(bed.env_root(&task).join("workdir/leader.txt").exists());
    assert_eq!(names(&boat), ["CLAUDE.md"]);
}
