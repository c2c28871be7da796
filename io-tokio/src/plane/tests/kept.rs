//! The plane in a file: another process goes on where this one was.

use super::*;
use crate::plane::{ProfileSpec, Skill};
use std::path::Path;

async fn kept(path: &Path) -> Server {
    Server::start(Config { database: Some(path.to_owned()), ..Config::default() }).await.expect("it starts")
}

#[tokio::test]
async fn a_new_server_goes_on_with_the_tasks_of_the_one_before() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("queue.redb");
    let server = kept(&path).await;
    let client = Client::of(&server);
    let runtime = client.register().await;
    server.add_profile("ws-1", ProfileSpec::new("p", "claude", "mine")).expect("room");
    let spec = || TaskSpec::new("claude").titled("a title").env("LONGSHORE_X", "hidden");
    let ended = server.enqueue(spec()).expect("a runtime");
    assert_eq!(client.claim(&runtime).await[0]["id"], ended.as_str());
    client.task(&ended, "start", json!({})).await;
    let said = json!({ "messages": [{ "seq": 1, "type": "text", "content": "hi" }] });
    client.task(&ended, "messages", said).await;
    client.task(&ended, "complete", json!({ "output": "done" })).await;
    let running = server.enqueue(spec()).expect("a runtime");
    client.claim(&runtime).await;
    client.task(&running, "start", json!({})).await;
    let waiting = server.enqueue(spec().skill(Skill::builtin("ours", "# Ours\n"))).expect("a runtime");
    server.stored().await.expect("there is room");
    let before = (server.tasks(), server.runtimes());
    server.stop().await;

    let server = kept(&path).await;
    let mut client = Client::of(&server);
    assert_eq!((server.tasks(), server.runtimes()), before);
    assert_eq!(server.transcript(&ended)[0].content.as_deref(), Some("hi"));
    assert_eq!(client.register().await, runtime, "the same machine has the same runtime");
    assert_eq!(
        client.task(&ended, "complete", json!({ "output": "other" })).await.1["result"]["output"],
        "done"
    );
    client.capabilities = "skill-bundles-v1".into();
    let claimed = client.claim(&runtime).await;
    assert_eq!(claimed.as_array().expect("a list").len(), 1, "what runs is not handed out again");
    let claimed = &claimed[0];
    assert_eq!((&claimed["id"], &claimed["thread_name"]), (&json!(waiting.as_str()), &json!("a title")));
    assert_eq!(claimed["agent"]["custom_env"]["LONGSHORE_X"], "hidden");
    assert_eq!(claimed["agent"]["skill_refs"][0]["id"], "builtin:ours");
    assert_eq!(client.task(&running, "complete", json!({ "output": "late" })).await.1["status"], "completed");
    let (_, listed) = client.get("/api/daemon/workspaces/ws-1/runtime-profiles").await;
    assert_eq!(listed["runtime_profiles"][0]["command_name"], "mine");
    server.stop().await;
}

#[tokio::test]
async fn time_goes_on_while_nothing_runs() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("queue.redb");
    let server = kept(&path).await;
    let client = Client::of(&server);
    let runtime = client.register().await;
    let lost = server.enqueue(TaskSpec::new("claude")).expect("a runtime");
    client.claim(&runtime).await;
    server.advance(Duration::from_secs(200));
    client.post("/api/daemon/heartbeat", json!({ "runtime_id": runtime.as_str() })).await;
    server.stop().await;
    let server = kept(&path).await;
    let client = Client::of(&server);
    let again = client.claim(&runtime).await;
    assert_eq!(again[0]["id"], lost.as_str(), "its lease ran out before, and is not longer now");
    server.stop().await;
}

#[tokio::test]
async fn one_file_has_one_server_and_a_damaged_one_is_put_aside() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("queue.redb");
    let server = kept(&path).await;
    let config = Config { database: Some(path.clone()), ..Config::default() };
    let busy = Server::start(config).await.err().expect("it is in use");
    assert!(busy.to_string().contains("another process uses this database"), "{busy}");
    server.stop().await;
    std::fs::write(&path, "this is no database").expect("written");
    let server = kept(&path).await;
    assert!(server.tasks().is_empty());
    server.stop().await;
    let aside = std::fs::read(dir.path().join("queue.redb.damaged-1")).expect("put aside");
    assert_eq!(aside, b"this is no database");
}
