use super::*;
use futures_util::{SinkExt, StreamExt};
use longshore_core::plane::Hint;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

struct Link(WebSocketStream<TcpStream>);

impl Link {
    async fn open(server: &Server, runtimes: &str) -> Result<Self, Box<Error>> {
        Self::open_as(server, runtimes, server.token().expose()).await
    }

    async fn open_as(server: &Server, runtimes: &str, token: &str) -> Result<Self, Box<Error>> {
        let url = format!("ws://{}/api/daemon/ws?runtime_ids={runtimes}", server.addr());
        let mut request = url.into_client_request().expect("a request");
        let token = format!("Bearer {token}");
        request.headers_mut().insert("authorization", token.parse().expect("a value"));
        let stream = TcpStream::connect(server.addr()).await.expect("connected");
        client_async(request, stream).await.map(|(socket, _)| Self(socket)).map_err(Box::new)
    }

    async fn send(&mut self, kind: &str, payload: Value) {
        let frame = json!({ "type": kind, "payload": payload }).to_string();
        self.0.send(Message::text(frame)).await.expect("sent");
    }

    async fn frame(&mut self) -> Option<Message> {
        tokio::time::timeout(SOON, self.0.next()).await.expect("in time").and_then(Result::ok)
    }

    /// The next frame's type and payload.
    async fn next(&mut self) -> (String, Value) {
        loop {
            let frame = self.frame().await.expect("a frame");
            if let Message::Text(text) = frame {
                let mut value: Value = serde_json::from_str(&text).expect("JSON");
                return (value["type"].as_str().expect("a type").into(), value["payload"].take());
            }
        }
    }

    async fn claim(&mut self, id: &str, runtime: &RuntimeId) {
        let body = json!({ "daemon_id": "d", "runtime_ids": [runtime.as_str()], "max_tasks": 4 });
        let payload = json!({ "request_id": id, "method": "tasks.claim", "body": body, "timeout_ms": 5000 });
        self.send("daemon:rpc_request", payload).await;
    }
}

fn status_of(refused: Result<Link, Box<Error>>) -> u16 {
    match refused.err().map(|why| *why) {
        Some(Error::Http(answer)) => answer.status().as_u16(),
        other => panic!("no refusal: {other:?}"),
    }
}

#[tokio::test]
async fn a_handshake_with_one_unknown_runtime_or_without_a_channel_is_refused() {
    let (server, client, runtime, _) = queued().await;
    assert_eq!(status_of(Link::open(&server, &format!("{runtime},unknown")).await), 404);
    server.set_websocket(false);
    assert_eq!(status_of(Link::open(&server, runtime.as_str()).await), 404);
    server.set_websocket(true);
    let plain = client.get("/api/daemon/ws").await;
    assert_eq!(plain.0, 400);
    Link::open(&server, runtime.as_str()).await.expect("accepted");
    Link::open(&server, "").await.expect("a user may listen for workspaces alone");
}

#[tokio::test]
async fn beats_are_acknowledged_with_what_the_server_can_do() {
    let (server, _client, runtime, _) = queued().await;
    let mut link = Link::open(&server, runtime.as_str()).await.expect("accepted");
    let beat = json!({ "runtime_id": runtime.as_str(), "supports_batch_import": true });
    link.send("daemon:heartbeat", json!({ "runtime_id": "not on this link" })).await;
    link.send("unknown:kind", json!({})).await;
    link.send("daemon:heartbeat", beat.clone()).await;
    let (kind, ack) = link.next().await;
    assert_eq!(kind, "daemon:heartbeat_ack");
    assert_eq!(
        ack,
        json!({ "runtime_id": runtime.as_str(), "status": "ok", "server_capabilities": ["rpc-v1"] })
    );
    server.set_rpc(false);
    link.send("daemon:heartbeat", beat.clone()).await;
    assert_eq!(link.next().await.1, json!({ "runtime_id": runtime.as_str(), "status": "ok" }));
    assert!(server.with_plane(|plane, now| plane.delete_runtime(now, &runtime)));
    assert_eq!(link.next().await.0, "daemon:task_available", "its task was cancelled");
    link.send("daemon:heartbeat", beat).await;
    let gone = json!({ "runtime_id": runtime.as_str(), "status": "runtime_gone", "runtime_gone": true });
    assert_eq!(link.next().await.1, gone);
    assert!(!server.requests_where(|it| it.is("WS", "/heartbeat")).is_empty());
}

#[tokio::test]
async fn claims_are_answered_on_the_link() {
    let (server, _client, runtime, task) = queued().await;
    let mut link = Link::open(&server, runtime.as_str()).await.expect("accepted");
    link.claim("r-1", &runtime).await;
    let (kind, answer) = link.next().await;
    assert_eq!(
        (kind.as_str(), &answer["request_id"], &answer["status"]),
        ("daemon:rpc_response", &json!("r-1"), &json!(200))
    );
    assert_eq!(answer["body"]["tasks"][0]["id"], task.as_str());
    let other = json!({ "request_id": "r-2", "method": "tasks.dance" });
    link.send("daemon:rpc_request", other).await;
    assert_eq!(link.next().await.1, json!({ "request_id": "r-2", "status": 404, "error": "unknown method" }));
    let bad = json!({ "request_id": "r-3", "method": "tasks.claim", "body": { "max_tasks": 1 } });
    link.send("daemon:rpc_request", bad).await;
    let refused = link.next().await.1;
    assert_eq!(
        (&refused["status"], &refused["body"]),
        (&json!(400), &json!({ "error": "daemon_id is required" }))
    );
    server.set_batch_claim(false);
    link.claim("r-4", &runtime).await;
    assert_eq!(link.next().await.1["status"], 404);
}

#[tokio::test]
async fn hints_name_new_tasks_and_come_nameless_for_ended_ones() {
    let (server, client, runtime, first) = queued().await;
    let mut link = Link::open(&server, runtime.as_str()).await.expect("accepted");
    server.wait_for_links(1, SOON).await.expect("listed");
    let task = server.enqueue(TaskSpec::new("claude")).expect("a runtime");
    let hint = link.next().await;
    assert_eq!(
        hint,
        ("daemon:task_available".into(), json!({ "runtime_id": runtime.as_str(), "task_id": task.as_str() }))
    );
    server.cancel(&first).expect("queued");
    assert_eq!(link.next().await.1, json!({ "runtime_id": runtime.as_str() }));
    client.claim(&runtime).await;
    client.task(&task, "start", json!({})).await;
    client.task(&task, "complete", json!({})).await;
    assert_eq!(link.next().await.1, json!({ "runtime_id": runtime.as_str() }));
    server.push(&Hint::WorkspacesChanged);
    assert_eq!(link.next().await, ("daemon:workspaces_changed".into(), json!({})));
}

#[tokio::test]
async fn faults_reach_the_link_too() {
    let (server, _client, runtime, task) = queued().await;
    let mut link = Link::open(&server, runtime.as_str()).await.expect("accepted");
    let claims = |action| Rule::new("WS", "/api/daemon/tasks/claim", action);
    server.fault(claims(Action::error(503, "no handler")).first(1));
    let held = server.fault(claims(Action::Hold).nth(2));
    server.fault(claims(Action::LoseReply).nth(3));
    link.claim("r-1", &runtime).await;
    assert_eq!(link.next().await.1, json!({ "request_id": "r-1", "status": 503, "error": "no handler" }));
    link.claim("r-2", &runtime).await;
    held.reached(1).await;
    // Another frame overtakes the one that is held.
    link.send("daemon:heartbeat", json!({ "runtime_id": runtime.as_str() })).await;
    assert_eq!(link.next().await.0, "daemon:heartbeat_ack");
    held.release();
    assert_eq!(link.next().await.1["body"]["tasks"][0]["id"], task.as_str());
    let second = server.enqueue(TaskSpec::new("claude")).expect("a runtime");
    assert_eq!(link.next().await.1["task_id"], second.as_str());
    link.claim("r-3", &runtime).await;
    assert!(link.frame().await.is_none(), "the link was cut");
    assert_eq!(server.task(&second).expect("there").state, State::Dispatched);
    server.wait_for_links(0, SOON).await.expect("unlisted");
}

#[tokio::test]
async fn at_most_eight_claims_are_at_work_on_a_link() {
    let (server, _client, runtime, _) = queued().await;
    let mut link = Link::open(&server, runtime.as_str()).await.expect("accepted");
    let held = server.fault(Rule::new("WS", "/api/daemon/tasks/claim", Action::Hold));
    for n in 0..9 {
        link.claim(&format!("r-{n}"), &runtime).await;
    }
    assert_eq!(link.next().await.1, json!({ "request_id": "r-8", "status": 429, "error": "busy" }));
    held.release();
    for _ in 0..8 {
        assert_eq!(link.next().await.1["status"], 200);
    }
}

#[tokio::test]
async fn links_are_pinged_and_a_silent_one_is_given_up() {
    let config = Config { ping_every: Duration::from_millis(20), ..Config::default() };
    let server = Server::start(config).await.expect("a free port");
    let runtime = Client::of(&server).register().await;
    let mut link = Link::open(&server, runtime.as_str()).await.expect("accepted");
    assert!(matches!(link.frame().await, Some(Message::Ping(_))));
    drop(link);
    server.wait_for_links(0, SOON).await.expect("unlisted");
}

#[tokio::test]
async fn a_link_that_does_not_take_its_hints_is_closed_and_not_kept_without_them() {
    let (server, _, runtime, _) = queued().await;
    let mut link = Link::open(&server, runtime.as_str()).await.expect("a link");
    server.wait_for_links(1, SOON).await.expect("open");
    // Without a pause: nothing of it can be written in between.
    for _ in 0..100 {
        server.push(&Hint::TaskAvailable { runtime: runtime.clone(), task: None });
    }
    let mut hints = 0;
    while let Some(frame) = link.frame().await {
        hints += usize::from(frame.is_text());
    }
    assert!((1..100).contains(&hints), "{hints}");
    server.wait_for_links(0, SOON).await.expect("unlisted");
}

#[tokio::test]
async fn a_hint_for_no_runtime_in_particular_goes_to_every_link() {
    let (server, _, runtime, _) = queued().await;
    let mut link = Link::open(&server, runtime.as_str()).await.expect("a link");
    server.wait_for_links(1, SOON).await.expect("open");
    server.push(&Hint::TaskAvailable { runtime: RuntimeId::new("other"), task: None });
    server.push(&Hint::TaskAvailable { runtime: RuntimeId::new(""), task: None });
    let (kind, payload) = link.next().await;
    assert_eq!((kind.as_str(), payload["runtime_id"].as_str()), ("daemon:task_available", Some("")));
}

#[tokio::test]
async fn hints_reach_only_whom_they_concern_and_a_daemons_own_token_needs_runtimes() {
    use crate::plane::{Grant, Holder, ProfileSpec};
    use crate::secret::Secret;
    let (server, client, runtime, _) = queued().await;
    server.with_plane(|plane, _| plane.add_workspace("ws-2".into(), "Two")).expect("room");
    let own = Secret::new("mdt_own");
    let holder = Holder::Daemon { workspace: "ws-1".into(), daemon_id: "d".into() };
    assert!(server.grant(&own, Grant { holder, expires_at: None }));
    assert_eq!(status_of(Link::open_as(&server, "", "mdt_own").await), 400);
    let user = server.token().expose().to_owned();
    let mut idle = Link::open_as(&server, "", &user).await.expect("a person needs no runtime");
    let mut of_daemon = Link::open_as(&server, runtime.as_str(), "mdt_own").await.expect("its own runtime");
    server.with_plane(|plane, _| plane.add_workspace("ws-3".into(), "Three")).expect("room");
    assert_eq!(idle.next().await.0, "daemon:workspaces_changed");
    server.add_profile("ws-2", ProfileSpec::new("p", "claude", "mine")).expect("room");
    let (kind, payload) = idle.next().await;
    assert_eq!(
        (kind.as_str(), &payload["workspace_id"]),
        ("daemon:runtime_profiles_changed", &json!("ws-2"))
    );
    let profile = server.add_profile("ws-1", ProfileSpec::new("p", "claude", "mine")).expect("room");
    let first = of_daemon.next().await;
    assert_eq!(
        (first.0.as_str(), &first.1["runtime_profile_id"]),
        ("daemon:runtime_profiles_changed", &json!(profile.as_str()))
    );
    assert!(client.get("/api/daemon/workspaces").await.0.is_success());
}

#[tokio::test]
async fn a_channel_can_say_goodbye_talk_nonsense_or_hang() {
    let (server, _client, runtime, _) = queued().await;
    let mut link = Link::open(&server, runtime.as_str()).await.expect("open");
    server.push_text("{\"type\":");
    let Some(Message::Text(text)) = link.frame().await else { panic!("a text") };
    assert_eq!(text.as_str(), "{\"type\":");
    server.stall_links(true);
    link.send("daemon:heartbeat", json!({ "runtime_id": runtime.as_str() })).await;
    let quiet = server.wait_for_request(Duration::from_millis(100), |it| it.method == "WS").await;
    assert!(quiet.is_err(), "it is not read");
    server.stall_links(false);
    assert_eq!(link.next().await.0, "daemon:heartbeat_ack");
    let fault = server.fault(Rule::new("WS", "/api/daemon/heartbeat", Action::Reset(0)));
    link.send("daemon:heartbeat", json!({ "runtime_id": runtime.as_str() })).await;
    assert!(link.frame().await.is_none(), "reset");
    fault.remove();
    let mut link = Link::open(&server, runtime.as_str()).await.expect("open");
    server.fault(Rule::new("WS", "/api/daemon/heartbeat", Action::Close).first(1));
    link.send("daemon:heartbeat", json!({ "runtime_id": runtime.as_str() })).await;
    assert!(matches!(link.frame().await, Some(Message::Close(_))));
    let mut link = Link::open(&server, runtime.as_str()).await.expect("open");
    server.close_links();
    assert!(matches!(link.frame().await, Some(Message::Close(_))));
}
