use super::*;
use crate::wire;

#[tokio::test]
async fn what_has_no_route_and_who_has_no_token_is_told_so_in_the_servers_way() {
    let server = server().await;
    let mut client = Client::of(&server);
    let lost = client.send(Method::GET, "/api/daemon/nothing", "").await.expect("an answer");
    assert_eq!(lost.status(), 404);
    assert_eq!(lost.headers()["content-type"], "text/plain; charset=utf-8");
    assert_eq!(lost.text().await.expect("a body"), "404 page not found\n");
    let (status, body) = client.get("/api/daemon/register").await;
    assert_eq!((status.as_u16(), body), (405, json!("")));
    client.token = "wrong".into();
    assert_eq!(
        client.get("/api/daemon/workspaces").await,
        (StatusCode::UNAUTHORIZED, json!({ "error": "invalid token" }))
    );
    let renew = client.send(Method::POST, "/api/tokens/current/renew", "{}").await.expect("an answer");
    assert_eq!(renew.status(), 401);
    assert_eq!(renew.headers()["content-type"], "text/plain; charset=utf-8");
    let bare =
        client.http.get(format!("{}/api/daemon/workspaces", client.url)).send().await.expect("an answer");
    assert_eq!(bare.status(), 401);
    assert_eq!(bare.text().await.expect("a body"), "{\"error\":\"missing authorization header\"}\n");
}

#[tokio::test]
async fn the_token_is_renewed_and_workspaces_are_listed_with_a_tag_that_saves_the_next_answer() {
    let server = server().await;
    let client = Client::of(&server);
    let renewed = json!({ "expires_at": "", "renewed": false });
    assert_eq!(client.post("/api/tokens/current/renew", json!({})).await, (StatusCode::OK, renewed));
    let tagged = async |tag: &str| {
        let request = client.http.get(format!("{}/api/daemon/workspaces", client.url));
        let request = request.bearer_auth(&client.token).header("if-none-match", tag);
        request.send().await.expect("an answer")
    };
    let first = tagged("").await;
    let tag = first.headers()["etag"].to_str().expect("a tag").to_owned();
    assert_eq!(first.text().await.expect("a body"), "[{\"id\":\"ws-1\",\"name\":\"Local\"}]\n");
    let same = tagged(&tag).await;
    assert_eq!(
        (same.status().as_u16(), same.headers()["etag"].to_str().expect("a tag")),
        (304, tag.as_str())
    );
    server.with_plane(|plane, _| plane.add_workspace("ws-2".into(), "Two")).expect("room");
    assert_eq!(tagged(&tag).await.status(), 200);
    let (_, profiles) = client.get("/api/daemon/workspaces/ws-2/runtime-profiles").await;
    assert_eq!(profiles, json!({ "workspace_id": "ws-2", "runtime_profiles": [] }));
    assert_eq!(client.get("/api/daemon/workspaces/ws-3/repos").await.0, 404);
    let (_, repos) = client.get("/api/daemon/workspaces/ws-1/repos").await;
    assert_eq!((&repos["repos"], &repos["settings"]), (&json!([]), &json!({})));
}

#[tokio::test]
async fn a_task_goes_from_the_queue_to_its_end_and_every_answer_shows_its_row() {
    let server = server().await;
    let client = Client::of(&server);
    let runtime = client.register().await;
    let spec = TaskSpec::new("claude").titled("a title").env("LONGSHORE_X", "hidden");
    let task = server.enqueue(spec).expect("a runtime");
    let claimed = client.claim(&runtime).await;
    let seen: wire::task::Task = serde_json::from_value(claimed[0].clone()).expect("a task");
    assert_eq!((seen.id.as_str(), seen.runtime_id.as_str()), (task.as_str(), runtime.as_str()));
    let agent = seen.agent.expect("an agent");
    assert_eq!(agent.id, seen.agent_id);
    assert_eq!(agent.custom_env["LONGSHORE_X"].expose(), "hidden");
    assert_eq!((seen.thread_name.as_str(), seen.attempt), ("a title", 1));
    let token = seen.auth_token.expose();
    assert!(token.starts_with("mat_") && token.len() == 44, "40 hex digits");
    assert_eq!(client.claim(&runtime).await, json!([]));

    let lease = format!("/api/daemon/runtimes/{runtime}/tasks/{task}/prepare-lease");
    assert_eq!(client.post(&lease, json!({})).await.1["status"], "dispatched");
    assert_eq!(client.task(&task, "start", json!({})).await.1["status"], "running");
    assert_eq!(client.task(&task, "start", json!({})).await.0, 400);
    let progress = json!({ "summary": "Launching", "step": 1, "total": 2 });
    assert_eq!(client.task(&task, "progress", progress).await.1, json!({ "status": "ok" }));
    let batch = json!({ "messages": [
        { "seq": 1, "type": "text", "content": "hi\u{0}" },
        { "seq": 2, "type": "tool_use", "tool": "Bash", "input": { "command": "ls" } },
    ] });
    assert_eq!(client.task(&task, "messages", batch).await.1, json!({ "status": "ok" }));
    let (_, listed) = client.get(&format!("/api/daemon/tasks/{task}/messages?since=0")).await;
    assert_eq!((&listed[0]["content"], &listed[1]["input"]), (&json!("hi"), &json!({ "command": "ls" })));
    let (_, listed) = client.get(&format!("/api/daemon/tasks/{task}/messages?since=1")).await;
    assert_eq!(listed.as_array().expect("a list").len(), 1);
    assert_eq!(
        client.task(&task, "session", json!({ "session_id": "s" })).await,
        (StatusCode::NO_CONTENT, json!(""))
    );
    let usage = json!({ "usage": [{ "provider": "claude", "model": "m", "input_tokens": 3 }] });
    assert_eq!(client.task(&task, "usage", usage).await.1, json!({ "status": "ok" }));
    assert_eq!(
        client.get(&format!("/api/daemon/tasks/{task}/status")).await.1,
        json!({ "status": "running" })
    );

    let (status, row) = client.task(&task, "complete", json!({ "output": "done", "session_id": "s" })).await;
    assert_eq!((status.as_u16(), &row["status"]), (200, &json!("completed")));
    assert_eq!(row["result"], json!({ "output": "done", "pr_url": "", "session_id": "s", "work_dir": "" }));
    assert!(row["completed_at"].as_str().expect("a time").ends_with('Z'));
    assert!(row.get("agent").is_none() && row.get("auth_token").is_none(), "only a claim has these");
    let (status, again) = client.task(&task, "complete", json!({ "output": "other" })).await;
    assert_eq!((status.as_u16(), again), (200, row));
    assert_eq!(server.task(&task).expect("there").usage[0].input_tokens, 3);
}

#[tokio::test]
async fn refusals_carry_the_texts_that_daemons_look_for() {
    let (_server, client, runtime, task) = queued().await;
    let error = |text: &str| json!({ "error": text });
    let gone = client.post("/api/daemon/heartbeat", json!({ "runtime_id": "x" })).await;
    assert_eq!(gone, (StatusCode::NOT_FOUND, error("runtime not found")));
    let gone = client.task(&TaskId::from("x"), "start", json!({})).await;
    assert_eq!(gone, (StatusCode::NOT_FOUND, error("task not found")));
    let foreign = json!({ "workspace_id": "nope", "daemon_id": "d", "runtimes": [{ "type": "claude" }] });
    let gone = client.post("/api/daemon/register", foreign).await;
    assert_eq!(gone, (StatusCode::NOT_FOUND, error("workspace not found")));
    let one = client.post(&format!("/api/daemon/runtimes/{runtime}/tasks/claim"), json!({})).await;
    assert_eq!(one.1["task"]["id"], task.as_str());
    let none = client.post(&format!("/api/daemon/runtimes/{runtime}/tasks/claim"), json!({})).await;
    assert_eq!(none, (StatusCode::OK, json!({ "task": null })));
    let recovered = client.post(&format!("/api/daemon/runtimes/{runtime}/recover-orphans"), json!({})).await;
    assert_eq!(recovered.1, json!({ "orphaned": 1, "retried": 1 }));
    assert_eq!(client.post("/api/daemon/deregister", json!({ "runtime_ids": [] })).await.0, 400);
    assert_eq!(
        client.post("/api/daemon/deregister", json!({ "runtime_ids": [runtime.as_str()] })).await.0,
        200
    );
}

#[tokio::test]
async fn bodies_are_read_as_strictly_as_the_real_server_does() {
    let (server, client, _, task) = running().await;
    let path = format!("/api/daemon/tasks/{task}/messages");
    for bad in [
        "",
        "nonsense",
        r#"{"messages":[{"seq":1.0,"type":"text","content":"fraction"}]}"#,
        r#"{"messages":[{"seq":1,"type":"text","content":"kept?"},{"seq":2,"type":"tool_use","input":[1]}]}"#,
    ] {
        let answer = client.send(Method::POST, &path, bad).await.expect("an answer");
        assert_eq!(answer.status(), 400, "{bad}");
    }
    assert!(server.transcript(&task).is_empty(), "a batch is taken as a whole or not at all");
    let good = r#"{"messages":[{"seq":1,"type":"text","content":null,"input":null,"unknown":[1]}]} trailing"#;
    assert_eq!(client.send(Method::POST, &path, good).await.expect("an answer").status(), 200);
    assert_eq!(server.transcript(&task).len(), 1);
    let nameless = client.task(&task, "session", json!({})).await;
    assert_eq!(nameless.0, 400);
    assert_eq!(client.task(&task, "cancel-ack", json!("no object")).await.0, 200);
}

#[tokio::test]
async fn without_the_batch_claim_its_route_is_missing() {
    let (server, client, runtime, task) = queued().await;
    server.set_batch_claim(false);
    let body = json!({ "daemon_id": "d", "runtime_ids": [runtime.as_str()], "max_tasks": 1 });
    let refused = client.post("/api/daemon/tasks/claim", body.clone()).await;
    assert_eq!(refused, (StatusCode::NOT_FOUND, json!("404 page not found\n")));
    server.set_batch_claim(true);
    assert_eq!(client.post("/api/daemon/claim", body).await.1["tasks"][0]["id"], task.as_str());
}

#[tokio::test]
async fn a_claim_can_carry_anything_also_what_is_wrong() {
    let (server, client, runtime, _) = queued().await;
    let spec = TaskSpec::new("claude").field("agent", Value::Null).field("trigger_comment_id", json!("c"));
    let task = server.enqueue(spec).expect("a runtime");
    let claimed = client.claim(&runtime).await;
    let odd =
        claimed.as_array().expect("a list").iter().find(|it| it["id"] == task.as_str()).expect("claimed");
    assert_eq!(
        (&odd["agent"], &odd["trigger_comment_id"], &odd["kind"]),
        (&Value::Null, &json!("c"), &json!("comment"))
    );
}

#[tokio::test]
async fn a_retry_carries_the_texts_and_the_session_of_its_parent() {
    let (server, client, runtime, _) = queued().await;
    let task = server.enqueue(TaskSpec::new("claude").titled("again")).expect("a runtime");
    client.claim(&runtime).await;
    client.task(&task, "session", json!({ "session_id": "s", "work_dir": "/w" })).await;
    client.task(&task, "fail", json!({ "error": "x", "failure_reason": "timeout" })).await;
    let child = client.claim(&runtime).await[0].clone();
    assert_eq!((&child["parent_task_id"], &child["thread_name"]), (&json!(task.as_str()), &json!("again")));
    assert_eq!((&child["prior_session_id"], &child["prior_work_dir"]), (&json!("s"), &json!("/w")));
    assert_eq!(child["attempt"], 2);
}

#[tokio::test]
async fn a_lost_claim_comes_again_when_the_clock_is_moved_on() {
    let (server, client, runtime, task) = queued().await;
    let first = client.claim(&runtime).await[0]["auth_token"].clone();
    server.advance(Duration::from_secs(91));
    assert_eq!(client.post("/api/daemon/heartbeat", json!({ "runtime_id": runtime.as_str() })).await.0, 200);
    let second = client.claim(&runtime).await;
    assert_eq!(second[0]["id"], task.as_str());
    assert_ne!(second[0]["auth_token"], first, "each delivery has a token of its own");
}

#[tokio::test]
async fn garbage_collection_is_told_what_still_matters() {
    let (server, client, _, task) = running().await;
    let row = server.task(&task).expect("there");
    let issue = row.subject.id().to_owned();
    let ask = json!({ "issue_ids": [issue, "unknown"] });
    let (_, reply) = client.post("/api/daemon/workspaces/ws-1/issues/gc-check", ask).await;
    assert_eq!(reply["issues"][0]["status"], "in_progress");
    assert_eq!(reply["issues"][1], json!({ "id": "unknown", "found": false }));
    server.with_plane(|plane, now| plane.set_subject_status(now, &issue, "done"));
    assert_eq!(client.get(&format!("/api/daemon/issues/{issue}/gc-check")).await.1["status"], "done");
    let (_, reply) = client.get(&format!("/api/daemon/tasks/{task}/gc-check")).await;
    assert_eq!(reply, json!({ "status": "running", "completed_at": "0001-01-01T00:00:00Z" }));
    assert_eq!(client.get("/api/daemon/chat-sessions/x/gc-check").await.0, 404);
    assert_eq!(client.get("/api/daemon/autopilot-runs/x/gc-check").await.0, 404);
}

#[tokio::test]
async fn the_log_has_every_request_and_no_token() {
    let (server, client, runtime, _) = queued().await;
    client.claim(&runtime).await;
    client.get("/api/daemon/workspaces?x=1").await;
    let requests = server.requests();
    assert!(requests.iter().all(|request| !request.headers.contains_key("authorization")));
    let claim = requests.iter().find(|request| request.is("POST", "/tasks/claim")).expect("logged");
    assert_eq!((claim.body["daemon_id"].as_str(), claim.status()), (Some("d"), Some(200)));
    let last = requests.last().expect("logged");
    assert_eq!((last.path.as_str(), last.query.as_str()), ("/api/daemon/workspaces", "x=1"));
    assert!(last.answered_at.expect("answered") >= last.at);
}

#[tokio::test]
async fn inv_loopback_only() {
    let addr = "0.0.0.0:0".parse().expect("an address");
    let refused = Server::start(Config { addr, ..Config::default() }).await.err().expect("refused");
    assert!(matches!(refused, StartError::NotLoopback(_)), "{refused}");
}
