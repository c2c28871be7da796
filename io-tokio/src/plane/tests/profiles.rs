//! Profiles, repositories, skills and who may see what, over the wire.

use super::*;
use crate::plane::{Comment, Grant, Holder, ProfileSpec, Repo, Skill};
use crate::secret::Secret;
use longshore_core::time::UnixMillis;

fn error(text: &str) -> Value {
    json!({ "error": text })
}

#[tokio::test]
async fn profiles_are_listed_registered_and_refused_as_the_real_server_does() {
    let server = server().await;
    let client = Client::of(&server);
    let mut spec = ProfileSpec::new("Mine", "codex", "my-codex");
    spec.fixed_args = vec!["--fast".into()];
    let profile = server.add_profile("ws-1", spec).expect("room");
    let path = "/api/daemon/workspaces/ws-1/runtime-profiles";
    let (_, listed) = client.get(path).await;
    let row = &listed["runtime_profiles"][0];
    assert_eq!((&row["id"], &row["protocol_family"]), (&json!(profile.as_str()), &json!("codex")));
    assert_eq!((&row["command_name"], &row["fixed_args"]), (&json!("my-codex"), &json!(["--fast"])));
    assert_eq!((&row["description"], &row["enabled"]), (&Value::Null, &json!(true)));
    let register = |id: &str| {
        client.post(
            "/api/daemon/register",
            json!({ "workspace_id": "ws-1", "daemon_id": "d", "device_name": "box",
                "runtimes": [{ "type": "claude" }, { "type": "claude", "profile_id": id }] }),
        )
    };
    let (_, reply) = register(profile.as_str()).await;
    assert_eq!(
        (&reply["runtimes"][1]["provider"], &reply["runtimes"][1]["name"]),
        (&json!("codex"), &json!("Mine (box)"))
    );
    assert_eq!(reply["runtimes"][1]["profile_id"], profile.as_str());
    assert_eq!(reply["runtimes"][0]["profile_id"], Value::Null);
    assert_eq!(register("nope").await, (StatusCode::BAD_REQUEST, error("unknown runtime profile nope")));
    server.change_profile(&profile, |spec| spec.enabled = false).expect("there");
    assert_eq!(register(profile.as_str()).await.0, 409);
    assert_eq!(client.get(path).await.1["runtime_profiles"], json!([]), "only enabled ones are listed");
    let failed = json!({ "workspace_id": "ws-1", "daemon_id": "d", "runtimes": null,
        "failed_profiles": [{ "profile_id": profile.as_str(), "command_name": "my-codex", "reason": "not on the path" }] });
    let (status, reply) = client.post("/api/daemon/register", failed).await;
    assert_eq!((status.as_u16(), &reply["runtimes"]), (200, &json!([])));
    let row = server.runtimes().into_iter().find(|row| row.profile.is_some()).expect("a row");
    assert!(
        !row.online
            && row.offline_reason.expect("a reason").to_string().contains("my-codex: not on the path")
    );
}

#[tokio::test]
async fn repositories_and_settings_come_with_a_version_of_their_addresses() {
    let server = server().await;
    let client = Client::of(&server);
    let repo = |url: &str, description: &str| Repo { url: url.into(), description: description.into() };
    let repos = vec![repo("https://b", ""), repo(" https://a ", "main"), repo("https://b", "again")];
    server.set_repos("ws-1", repos).expect("there");
    server.set_settings("ws-1", r#"{"github_enabled":false}"#).expect("an object");
    let (_, got) = client.get("/api/daemon/workspaces/ws-1/repos").await;
    assert_eq!(got["repos"], json!([{ "url": "https://b" }, { "url": "https://a", "description": "main" }]));
    assert_eq!(got["settings"], json!({ "github_enabled": false }));
    // sha256 of "https://a\nhttps://b"
    let version = shape::hex_digest(b"https://a\nhttps://b");
    assert_eq!((&got["repos_version"], &got["workspace_id"]), (&json!(version), &json!("ws-1")));
    let body = json!({ "workspace_id": "ws-1", "daemon_id": "d", "runtimes": [{ "type": "claude" }] });
    let (_, reply) = client.post("/api/daemon/register", body).await;
    assert_eq!((&reply["repos"], &reply["repos_version"]), (&got["repos"], &got["repos_version"]));
}

#[tokio::test]
async fn skills_are_named_for_who_fetches_them_and_inlined_for_others() {
    let server = server().await;
    let mut client = Client::of(&server);
    let runtime = client.register().await;
    let skill = Skill::of_workspace("s-1", "greet", "# Greet\n").file("ref/a.md", "hello\n");
    let plugin = Skill { source: "plugin".into(), ..Skill::of_workspace("p-1", "plug", "# Plug\n") };
    let spec = || {
        TaskSpec::new("claude")
            .skill(skill.clone())
            .skill(Skill::builtin("ours", "# Ours\n"))
            .skill(plugin.clone())
    };
    server.enqueue(spec()).expect("a runtime");
    let agent = client.claim(&runtime).await[0]["agent"].clone();
    assert!(agent.get("skill_refs").is_none(), "{agent}");
    assert_eq!(
        (&agent["skills"][0]["content"], &agent["skills"][1]["id"]),
        (&json!("# Greet\n"), &json!(""))
    );
    client.capabilities = "rpc-v1, skill-bundles-v1".into();
    let task = server.enqueue(spec()).expect("a runtime");
    let agent = client.claim(&runtime).await[0]["agent"].clone();
    assert!(agent.get("skills").is_none(), "{agent}");
    let refs = agent["skill_refs"].as_array().expect("named").clone();
    assert_eq!(
        (&refs[0]["hash"], &refs[0]["size_bytes"], &refs[0]["file_count"]),
        (&json!(skill.hash()), &json!(14), &json!(1))
    );
    assert_eq!(refs[1]["id"], "builtin:ours");
    let resolve = format!("/api/daemon/runtimes/{runtime}/tasks/{task}/skill-bundles/resolve");
    let ask = |skills: Value| client.post(&resolve, json!({ "skills": skills }));
    let (status, got) = ask(json!([refs[1], refs[0]])).await;
    assert_eq!((status.as_u16(), got["bundles"].as_array().expect("a list").len()), (200, 2));
    assert_eq!(got["bundles"][1]["files"][0]["content"], "hello\n");
    assert_eq!(got["bundles"][1]["hash"], refs[0]["hash"]);
    assert_eq!(ask(json!([])).await.1, json!({ "bundles": [] }));
    assert_eq!(ask(json!([{ "id": "s-1", "source": "workspace" }])).await.0, 400);
    let unknown = json!([{ "id": "s-9", "source": "workspace", "hash": "sha256:0" }]);
    assert_eq!(ask(unknown).await, (StatusCode::NOT_FOUND, error("skill bundle not found")));
    let other = json!([{ "id": "p-1", "source": "plugin", "hash": "sha256:0" }]);
    assert_eq!(ask(other).await.0, 409);
    let newer = json!([{ "id": "s-1", "source": "workspace", "hash": "sha256:0" }]);
    assert_eq!(
        ask(newer).await.1["bundles"][0]["hash"],
        skill.hash().as_str(),
        "the present texts are given"
    );
    let foreign = format!("/api/daemon/runtimes/x/tasks/{task}/skill-bundles/resolve");
    assert_eq!(client.post(&foreign, json!({ "skills": [] })).await.1, error("runtime not found"));
    client.task(&task, "start", json!({})).await;
    assert_eq!(ask(json!([])).await.0, 409);
}

#[tokio::test]
async fn comments_are_told_apart_only_to_who_shows_each_of_them() {
    let server = server().await;
    let mut client = Client::of(&server);
    let runtime = client.register().await;
    let spec = || {
        let mut spec = TaskSpec::new("claude")
            .field("trigger_comment_id", "c-2".into())
            .field("trigger_author_name", "Kim".into())
            .field("trigger_comment_content", "Now!".into());
        let author_name = "Ada".into();
        spec.content.comments =
            vec![Comment { id: "c-1".into(), author_name, content: "Soon.".into(), ..Comment::default() }];
        spec
    };
    server.enqueue(spec()).expect("a runtime");
    let folded = client.claim(&runtime).await[0].clone();
    assert_eq!(folded["trigger_comment_content"], "Ada: Soon.\n\nKim: Now!");
    assert!(folded.get("coalesced_comments").is_none());
    client.capabilities = "coalesced-comments-v1".into();
    server.enqueue(spec()).expect("a runtime");
    let apart = client.claim(&runtime).await[0].clone();
    assert_eq!(apart["trigger_comment_content"], "Now!");
    assert_eq!(
        apart["coalesced_comments"],
        json!([{ "id": "c-1", "author_name": "Ada", "content": "Soon." }])
    );
    assert_eq!(apart["delivered_comment_ids"], json!(["c-1", "c-2"]));
}

#[tokio::test]
async fn a_task_in_a_worktree_is_ended_for_a_daemon_that_has_none() {
    let server = server().await;
    let mut client = Client::of(&server);
    let runtime = client.register().await;
    let spec = || {
        let at = json!({ "local_path": "/w", "daemon_id": "d", "execution_mode": "worktree" });
        let resource = json!([{ "id": "r", "resource_type": "local_directory", "resource_ref": at }]);
        TaskSpec::new("claude").field("project_resources", resource)
    };
    let task = server.enqueue(spec()).expect("a runtime");
    assert_eq!(client.claim(&runtime).await, json!([]), "silently left out of a batch");
    let row = server.task(&task).expect("there");
    assert_eq!((row.state, row.failure_reason.as_deref()), (State::Cancelled, Some("local_directory_error")));
    server.enqueue(spec()).expect("a runtime");
    let one = format!("/api/daemon/runtimes/{runtime}/tasks/claim");
    assert_eq!(client.post(&one, json!({})).await.0, 422);
    client.capabilities = "local-worktree-v1".into();
    let task = server.enqueue(spec()).expect("a runtime");
    assert_eq!(client.claim(&runtime).await[0]["id"], task.as_str());
}

#[tokio::test]
async fn a_token_sees_what_is_its_holders_and_other_things_as_not_found() {
    let (server, mut client, runtime, task) = running().await;
    server.with_plane(|plane, _| plane.add_workspace("ws-2".into(), "Two")).expect("room");
    let of = |workspace: &str| Holder::Daemon { workspace: workspace.into(), daemon_id: "d".into() };
    let (own, other) = (Secret::new("mdt_own"), Secret::new("mdt_other"));
    assert!(server.grant(&own, Grant { holder: of("ws-1"), expires_at: None }));
    assert!(server.grant(&other, Grant { holder: of("ws-2"), expires_at: None }));
    client.token = "mdt_own".into();
    assert_eq!(client.get("/api/daemon/workspaces").await.1, json!([{ "id": "ws-1", "name": "Local" }]));
    assert_eq!(client.post("/api/tokens/current/renew", json!({})).await.0, 401, "a person's route");
    let claim =
        |daemon: &str| json!({ "daemon_id": daemon, "runtime_ids": [runtime.as_str()], "max_tasks": 1 });
    assert_eq!(client.post("/api/daemon/tasks/claim", claim("another")).await.0, 403);
    assert_eq!(client.post("/api/daemon/tasks/claim", claim("d")).await.0, 200);
    let status = format!("/api/daemon/tasks/{task}/status");
    assert_eq!(client.get(&status).await.0, 200);
    client.token = "mdt_other".into();
    let not_found = (StatusCode::NOT_FOUND, error("not found"));
    assert_eq!(client.get(&status).await, not_found);
    assert_eq!(client.get("/api/daemon/workspaces/ws-1/repos").await, not_found);
    let lease = format!("/api/daemon/runtimes/{runtime}/recover-orphans");
    assert_eq!(client.post(&lease, json!({})).await, not_found);
    let beat = json!({ "runtime_id": runtime.as_str() });
    assert_eq!(client.post("/api/daemon/heartbeat", beat.clone()).await, not_found);
    let body = json!({ "workspace_id": "ws-1", "daemon_id": "d", "runtimes": [{ "type": "claude" }] });
    assert_eq!(client.post("/api/daemon/register", body).await.1, error("workspace not found"));
    assert_eq!(client.claim(&runtime).await, json!([]), "the runtimes of others are skipped");
    let bye = json!({ "runtime_ids": [runtime.as_str()] });
    assert_eq!(client.post("/api/daemon/deregister", bye).await.0, 200);
    assert!(server.runtimes()[0].online, "others cannot take it off line");
    client.token = server.token().expose().into();
    server.set_member("ws-1", false);
    assert_eq!(client.get("/api/daemon/workspaces").await.1, json!([{ "id": "ws-2", "name": "Two" }]));
    assert_eq!(client.post("/api/daemon/heartbeat", beat).await, not_found);
    server.set_member("ws-1", true);
    assert_eq!(client.get(&status).await.0, 200);
}

#[tokio::test]
async fn a_token_is_renewed_before_its_end_and_refused_after_it() {
    let server = server().await;
    let mut client = Client::of(&server);
    let days = |n: i64| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        UnixMillis(i64::try_from(now.as_millis()).expect("small") + n * 24 * 3_600_000)
    };
    for (token, end) in [("mul_soon", days(3)), ("mul_late", days(30)), ("mul_over", days(-1))] {
        assert!(server.grant(&Secret::new(token), Grant { holder: Holder::User, expires_at: Some(end) }));
    }
    let renew = "/api/tokens/current/renew";
    client.token = "mul_soon".into();
    let (_, first) = client.post(renew, json!({})).await;
    assert_eq!(first["renewed"], true);
    assert_eq!(
        client.post(renew, json!({})).await.1,
        json!({ "expires_at": first["expires_at"], "renewed": false })
    );
    client.token = "mul_late".into();
    assert_eq!(client.post(renew, json!({})).await.1["renewed"], false);
    client.token = "mul_over".into();
    assert_eq!(client.get("/api/daemon/workspaces").await.0, 401);
    client.token = "mul_soon".into();
    server.advance(Duration::from_hours(24 * 120));
    assert_eq!(client.post(renew, json!({})).await.0, 401, "renewed for 90 days");
}

#[tokio::test]
async fn a_runtime_that_went_off_line_with_a_reason_gets_no_task() {
    let server = server().await;
    let client = Client::of(&server);
    let runtime = client.register().await;
    let repair = json!({ "package": "claude", "command": "npm i", "shell": "sh" });
    let reason = json!({ "code": "not_executable", "detail": "exec format error", "repair": repair });
    let body = json!({ "runtime_ids": [runtime.as_str()], "offline_reasons": { runtime.as_str(): reason } });
    assert_eq!(client.post("/api/daemon/deregister", body).await.0, 200);
    let refused = server.enqueue(TaskSpec::new("claude")).expect_err("it cannot run").to_string();
    assert!(refused.contains("not_executable: exec format error (to mend it: npm i)"), "{refused}");
    assert_eq!(client.post("/api/daemon/deregister", json!({ "runtime_ids": [] })).await.0, 400);
    client.register().await;
    server.enqueue(TaskSpec::new("claude")).expect("registered anew");
}

#[tokio::test]
async fn what_this_plane_lacks_answers_as_a_server_without_it() {
    let (_server, client, runtime, task) = queued().await;
    let off = (StatusCode::SERVICE_UNAVAILABLE, error("plugins are not enabled"));
    assert_eq!(client.task(&task, "plugin-hooks", json!({})).await, off);
    assert_eq!(client.get(&format!("/api/daemon/tasks/{task}/plugin-mcp/plugin:1:k/credential")).await, off);
    assert_eq!(
        client.get(&format!("/api/daemon/tasks/{task}/remote-mcp/1/credential")).await.1,
        "404 page not found\n"
    );
    let (_, waiting) = client.get(&format!("/api/daemon/runtimes/{runtime}/tasks/pending")).await;
    assert_eq!((&waiting[0]["id"], &waiting[0]["status"]), (&json!(task.as_str()), &json!("queued")));
    assert!(waiting[0].get("auth_token").is_none(), "not claimed by this call");
}
