//! One recording, request by request, and where our answers differ.

use super::fixture::{Fixture, Line, World};
use super::shape::differences;
use super::story::Story;
use crate::plane::tests::SOON;
use futures_util::{SinkExt, StreamExt};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

/// What a replay has found.
#[derive(Default)]
pub(super) struct Found {
    /// Differences by place, with the recordings that have them.
    pub(super) differences: BTreeMap<String, BTreeSet<String>>,
    /// Requests and frames whose answers were compared.
    pub(super) compared: usize,
}

type Socket = WebSocketStream<TcpStream>;

struct Replay<'a> {
    story: Story<'a>,
    fixture: &'a Fixture,
    http: reqwest::Client,
    etag: String,
    links: BTreeMap<i64, Socket>,
    /// Frames that nobody asked for, by type and names of fields.
    hints: BTreeSet<String>,
    found: &'a mut Found,
}

pub(super) async fn replay(world: &World, fixture: &Fixture, found: &mut Found) {
    let story = Story::begin(world, fixture).await;
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let (links, hints) = (BTreeMap::new(), BTreeSet::new());
    let mut replay = Replay { story, fixture, http, etag: String::new(), links, hints, found };
    for (at, line) in fixture.lines.iter().enumerate() {
        if line.is_from_server() && line.method() == "WS-TEXT" {
            replay.open_if_not(line).await;
        }
        replay.story.before(fixture, at);
        if !line.is_from_daemon() {
            continue;
        }
        match line.method() {
            "WS-UPGRADE" => replay.dial(line).await,
            "WS-TEXT" => replay.frame(line, at).await,
            "WS-EOF" => drop(replay.links.remove(&line.link())),
            "WS-PING" | "WS-PONG" => {}
            _ => replay.call(line).await,
        }
    }
    replay.recorded_hints().await;
    replay.links.clear();
    replay.story.server.stop().await;
}

/// The path with stars for ids.
fn route(path: &str) -> String {
    let path = path.split('?').next().unwrap_or_default();
    let star = |part: &str| if part.len() == 36 && part.contains('-') { "*".into() } else { part.to_owned() };
    path.split('/').map(star).collect::<Vec<_>>().join("/")
}

impl Replay<'_> {
    fn differs(&mut self, place: String) {
        self.found.differences.entry(place).or_default().insert(self.fixture.name.clone());
    }

    async fn call(&mut self, line: &Line) {
        let Some(status) = line.status() else { return };
        let place = format!("{} {}", line.method(), route(line.path()));
        let answer = self.ask(line, status).await;
        let (ours, kind) = (answer.status().as_u16(), answer.headers().get("content-type").cloned());
        if let Some(tag) = answer.headers().get("etag") {
            tag.to_str().expect("a tag").clone_into(&mut self.etag);
        }
        let body = answer.text().await.expect("a body");
        self.found.compared += 1;
        if ours != status {
            self.differs(format!("{place}: status {ours}, recorded is {status} ({})", body.trim()));
            return;
        }
        let body = serde_json::from_str(&body).unwrap_or(Value::Null);
        if line.path() == "/api/daemon/register" {
            self.story.learn(line.response(), &body);
        }
        if line.is_spoilt() {
            return;
        }
        let kind = kind.as_ref().and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind != line.content_type() {
            self.differs(format!("{place}: type {kind:?}, recorded is {:?}", line.content_type()));
        }
        for difference in differences(line.response(), &body) {
            self.differs(format!("{place}: {difference}"));
        }
    }

    async fn ask(&mut self, line: &Line, status: u16) -> reqwest::Response {
        let url = format!("{}{}", self.story.server.url(), self.story.told(line.path()));
        let method: Method = line.method().parse().expect("a method");
        let mut request = self.http.request(method, url.as_str());
        for (name, value) in line.headers().filter(|(name, _)| *name != "If-None-Match") {
            request = request.header(name, value);
        }
        if status == 304 {
            if self.etag.is_empty() {
                // The recorded daemon had asked before the recording began.
                let first = self.http.get(url.as_str()).bearer_auth(self.story.server.token().expose());
                let first = first.send().await.expect("an answer");
                first.headers()["etag"].to_str().expect("a tag").clone_into(&mut self.etag);
            }
            request = request.header("if-none-match", &self.etag);
        }
        let body = if line.request().is_null() {
            String::new()
        } else {
            self.story.told(&line.request().to_string())
        };
        request.body(body).send().await.expect("an answer")
    }

    async fn dial(&mut self, line: &Line) {
        // Other answers were not the server's: the recorder, or a server that was down.
        if line.status() == Some(101) {
            match self.open(line).await {
                Ok(link) => drop(self.links.insert(line.link(), link)),
                Err(why) => self.differs(format!("WS-UPGRADE: {why}, recorded is 101")),
            }
            self.found.compared += 1;
        }
    }

    async fn open(&self, line: &Line) -> Result<Socket, Error> {
        let address = self.story.server.addr();
        let url = format!("ws://{address}{}", self.story.told(line.path()));
        let mut request = url.into_client_request().expect("a request");
        let token = format!("Bearer {}", self.story.server.token().expose());
        request.headers_mut().insert("authorization", token.parse().expect("a value"));
        for (name, value) in line.headers().filter(|(name, _)| *name == "X-Client-Capabilities") {
            let name: axum::http::HeaderName = name.parse().expect("a name");
            request.headers_mut().insert(name, value.parse().expect("a value"));
        }
        let stream = TcpStream::connect(address).await.expect("connected");
        client_async(request, stream).await.map(|(socket, _)| socket)
    }

    /// A link that was open before the recording began names every runtime there is.
    async fn open_before(&self, line: &Line) -> Socket {
        let ids: Vec<_> = self.story.server.runtimes().into_iter().map(|row| row.id.to_string()).collect();
        let address = self.story.server.addr();
        let url = format!("ws://{address}{}?runtime_ids={}", line.path(), ids.join(","));
        let mut request = url.into_client_request().expect("a request");
        let token = format!("Bearer {}", self.story.server.token().expose());
        request.headers_mut().insert("authorization", token.parse().expect("a value"));
        let can = self.fixture.lines.iter().flat_map(Line::headers);
        let can = can.filter(|(name, _)| *name == "X-Client-Capabilities").map(|(_, value)| value).next();
        let can = can.unwrap_or("skill-bundles-v1,coalesced-comments-v1,local-worktree-v1");
        request.headers_mut().insert("x-client-capabilities", can.parse().expect("a value"));
        let stream = TcpStream::connect(address).await.expect("connected");
        let opened = client_async(request, stream).await;
        opened.unwrap_or_else(|why| panic!("{}: {why}: {ids:?}", self.fixture.name)).0
    }

    async fn open_if_not(&mut self, line: &Line) {
        if !self.links.contains_key(&line.link()) {
            let link = self.open_before(line).await;
            self.links.insert(line.link(), link);
        }
    }

    async fn frame(&mut self, line: &Line, at: usize) {
        let Some(recorded) = answer_to(self.fixture, at) else { return };
        self.open_if_not(line).await;
        let text = self.story.told(&line.request().to_string());
        let sent: Value = serde_json::from_str(&text).expect("a frame");
        let is_claim = sent["type"] == "daemon:rpc_request";
        let (kind, key) = if is_claim {
            ("daemon:rpc_response", "request_id")
        } else {
            ("daemon:heartbeat_ack", "runtime_id")
        };
        let link = self.links.get_mut(&line.link()).expect("open");
        link.send(Message::text(text)).await.expect("sent");
        let ours = loop {
            let frame = tokio::time::timeout(SOON, link.next())
                .await
                .expect("in time")
                .expect("a frame")
                .expect("whole");
            let Message::Text(text) = frame else { continue };
            let frame: Value = serde_json::from_str(&text).expect("JSON");
            if frame["type"] == kind && frame["payload"][key] == sent["payload"][key] {
                break frame;
            }
            self.hints.insert(hint(&frame));
        };
        self.found.compared += 1;
        for difference in differences(&recorded, &ours) {
            self.differs(format!("{kind}: {difference}"));
        }
    }

    /// Every kind of hint that was recorded has come from our plane too, with the same fields.
    async fn recorded_hints(&mut self) {
        let from_server =
            self.fixture.lines.iter().filter(|line| line.is_from_server() && line.method() == "WS-TEXT");
        let pushed = from_server.filter(|line| {
            !matches!(line.response()["type"].as_str(), Some("daemon:rpc_response" | "daemon:heartbeat_ack"))
        });
        let wanted: BTreeSet<_> = pushed
            .filter(|line| self.links.contains_key(&line.link()))
            .map(|line| hint(line.response()))
            .collect();
        // A last frame that is answered comes after all that was pushed before it.
        for link in self.links.values_mut() {
            let ask = json!({ "type": "daemon:rpc_request", "payload": { "request_id": "last", "method": "none" } });
            if link.send(Message::text(ask.to_string())).await.is_err() {
                continue;
            }
            while let Ok(Some(Ok(frame))) = tokio::time::timeout(SOON, link.next()).await {
                let Ok(frame) = serde_json::from_str::<Value>(frame.to_text().unwrap_or_default()) else {
                    continue;
                };
                if frame["payload"]["request_id"] == "last" {
                    break;
                }
                self.hints.insert(hint(&frame));
            }
        }
        self.found.compared += wanted.len();
        let missing: Vec<_> = wanted.difference(&self.hints).cloned().collect();
        for hint in missing {
            self.differs(format!("hint {hint} never came"));
        }
    }
}

/// A pushed frame's type and the names of its fields.
fn hint(frame: &Value) -> String {
    let fields: Vec<_> =
        frame["payload"].as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    format!("{} {{{}}}", frame["type"].as_str().unwrap_or_default(), fields.join(", "))
}

/// The recorded answer to the frame at `at`, if one came before the link ended.
fn answer_to(fixture: &Fixture, at: usize) -> Option<Value> {
    let asked = &fixture.lines[at];
    let payload = &asked.request()["payload"];
    let later =
        fixture.lines[at + 1..].iter().filter(|line| line.is_from_server() && line.link() == asked.link());
    let answers = later.map(Line::response).filter(|frame| match asked.request()["type"].as_str() {
        Some("daemon:rpc_request") => frame["payload"]["request_id"] == payload["request_id"],
        _ => {
            frame["type"] == "daemon:heartbeat_ack" && frame["payload"]["runtime_id"] == payload["runtime_id"]
        }
    });
    answers.map(Value::clone).next()
}
