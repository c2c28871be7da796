//! A server that gives recorded answers.

use super::tape::{Answer, Said, Tape, route};
use axum::Router;
use axum::body::Bytes;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{FromRequestParts, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{broadcast, watch};

/// The ends of a task.
const REPORTS: [&str; 3] = ["/complete", "/fail", "/cancel-ack"];
/// The largest body that a daemon sends here.
const MAX_BODY: usize = 8 << 20;

/// The server. It ends with it.
pub(super) struct Player {
    url: String,
    state: Arc<Shared>,
    serving: tokio::task::JoinHandle<()>,
}

struct Shared {
    tape: Mutex<Tape>,
    heard: Mutex<Vec<Said>>,
    count: watch::Sender<usize>,
    /// Runtimes of which a task has ended.
    hints: broadcast::Sender<String>,
    linked: bool,
}

impl Player {
    /// Plays a tape.
    pub(super) async fn of(mut tape: Tape) -> Self {
        tape.said.clear();
        let state = Arc::new(Shared {
            linked: tape.linked.unwrap_or(false),
            hints: broadcast::Sender::new(64),
            tape: Mutex::new(tape),
            heard: Mutex::default(),
            count: watch::Sender::new(0),
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let app = Router::new().fallback(serve).with_state(state.clone());
        let serving = tokio::spawn(async move { axum::serve(listener, app).await.expect("it serves") });
        Self { url, state, serving }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// What was said so far.
    pub(super) fn heard(&self) -> Vec<Said> {
        lock(&self.state.heard).clone()
    }

    /// Waits until this route was used so often.
    pub(super) async fn uses(&self, route: &str, times: usize, within: Duration) {
        let mut count = self.state.count.subscribe();
        let enough = async {
            while lock(&self.state.heard).iter().filter(|said| said.route == route).count() < times {
                count.changed().await.expect("the server is there");
            }
        };
        if tokio::time::timeout(within, enough).await.is_err() {
            let heard: Vec<String> = self.heard().into_iter().map(|said| said.route).collect();
            panic!("{route} was not used {times} times, but: {heard:#?}");
        }
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn hears(&self, said: Said) {
        lock(&self.heard).push(said);
        self.count.send_modify(|count| *count += 1);
    }

    /// The next recorded answer; the last one is given again and again.
    fn answer(&self, method: &str, path: &str) -> Option<Answer> {
        let mut tape = lock(&self.tape);
        let answers = tape.answers.get_mut(&(method.to_owned(), path.to_owned()))?;
        if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() }
    }

    fn claim(&self) -> Value {
        json!({ "tasks": lock(&self.tape).claims.pop_front().unwrap_or_default() })
    }
}

async fn serve(State(state): State<Arc<Shared>>, request: Request) -> Response {
    let (method, path) = (request.method().to_string(), request.uri().path().to_owned());
    if path == "/api/daemon/ws" {
        let (mut parts, _) = request.into_parts();
        return match WebSocketUpgrade::from_request_parts(&mut parts, &()).await {
            Ok(upgrade) if state.linked => upgrade.on_upgrade(move |link| talk(state, link)),
            _ => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        };
    }
    let headers = names(request.headers());
    let if_none_match = request.headers().get(header::IF_NONE_MATCH).cloned();
    let body: Bytes = axum::body::to_bytes(request.into_body(), MAX_BODY).await.unwrap_or_default();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    state.hears(Said { route: route(&method, &path), body, headers });
    if path.ends_with("/tasks/claim") {
        return json_reply(200, state.claim().to_string(), None);
    }
    let Some(answer) = state.answer(&method, &path) else {
        return (StatusCode::NOT_FOUND, "404 page not found\n").into_response();
    };
    // An unchanged answer is none to somebody who does not know the one before.
    if answer.status == 304 && if_none_match.is_none() {
        return (StatusCode::INTERNAL_SERVER_ERROR, "asked without a tag").into_response();
    }
    // A task that has ended may have blocked another one: its runtime is told, before the answer.
    if method == "POST"
        && [200, 204].contains(&answer.status)
        && REPORTS.iter().any(|end| path.ends_with(end))
    {
        let row: Value = serde_json::from_str(&answer.body).unwrap_or_default();
        // Nobody may be connected.
        let _ = state.hints.send(row["runtime_id"].as_str().unwrap_or_default().to_owned());
    }
    json_reply(answer.status, answer.body, answer.etag)
}

fn names(headers: &HeaderMap) -> Vec<String> {
    headers.keys().map(|name| name.as_str().to_owned()).collect()
}

fn json_reply(status: u16, body: String, etag: Option<String>) -> Response {
    let status = StatusCode::from_u16(status).expect("a status");
    let mut response = (status, [(header::CONTENT_TYPE, "application/json")], body).into_response();
    if let Some(etag) = etag {
        response.headers_mut().insert(header::ETAG, etag.parse().expect("a value"));
    }
    response
}

/// The other end of a control connection, as the recorded one was.
async fn talk(state: Arc<Shared>, mut link: WebSocket) {
    let mut hints = state.hints.subscribe();
    loop {
        let answer = tokio::select! {
            message = link.recv() => match message {
                Some(Ok(Message::Text(text))) => {
                    let frame: Value = serde_json::from_str(&text).expect("frames are JSON");
                    state.frame(&frame)
                }
                Some(Ok(_)) => continue,
                Some(Err(_)) | None => return,
            },
            Ok(runtime) = hints.recv() => {
                json!({ "type": "daemon:task_available", "payload": { "runtime_id": runtime } })
            }
        };
        if link.send(Message::Text(answer.to_string().into())).await.is_err() {
            return;
        }
    }
}

impl Shared {
    /// Takes a frame, and answers it.
    fn frame(&self, frame: &Value) -> Value {
        let payload = frame["payload"].clone();
        let kind = frame["type"].as_str().expect("a type").to_owned();
        let answer = match kind.as_str() {
            "daemon:heartbeat" => json!({ "type": "daemon:heartbeat_ack", "payload": {
                "runtime_id": payload["runtime_id"], "status": "ok", "server_capabilities": ["rpc-v1"],
            } }),
            _ => json!({ "type": "daemon:rpc_response", "payload": {
                "request_id": payload["request_id"], "status": 200, "body": self.claim(),
            } }),
        };
        self.hears(Said { route: format!("frame {kind}"), body: payload, headers: Vec::new() });
        answer
    }
}
