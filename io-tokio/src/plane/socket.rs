//! The control channel: beats and claims come in, hints and answers go out.

use super::access::Caller;
use super::capabilities::Capabilities;
use super::decode::{Claim, Frame, Heartbeat, Rpc};
use super::door::Line;
use super::faults::Action;
use super::links::{Link, envelope};
use super::log::{Answer, Arrival};
use super::pass::flood;
use super::pending;
use super::reply::{NO_ROUTE, Refused, no_route, raw};
use super::routes::try_claim;
use super::shared::Shared;
use axum::Extension;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade, rejection::WebSocketUpgradeRejection};
use axum::extract::{ConnectInfo, RawQuery, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use futures_util::{SinkExt, StreamExt};
use longshore_core::id::{RuntimeId, WorkspaceId};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

/// Bytes of a frame that a daemon may send.
const MAX_FRAME: usize = 64 << 10;
/// Frames that wait to go out on one link.
const SEND_QUEUE: usize = 16;
/// Claims at work on one link.
const MAX_RPCS: usize = 8;
/// The longest write.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// How much longer than the time between pings a daemon may be silent.
const PONG_GRACE: Duration = Duration::from_secs(6);

/// The handshake: refused as plain HTTP, also for one runtime that is not there.
pub(super) async fn upgrade(
    State(shared): State<Arc<Shared>>,
    RawQuery(query): RawQuery,
    ConnectInfo(line): ConnectInfo<Line>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let runtimes: BTreeSet<_> = url::form_urlencoded::parse(query.as_deref().unwrap_or_default().as_bytes())
        .filter(|(name, _)| name == "runtime_ids" || name == "runtime_id")
        .flat_map(|(_, ids)| ids.split(',').map(str::to_owned).collect::<Vec<_>>())
        .filter(|id| !id.is_empty())
        .map(RuntimeId::new)
        .collect();
    let workspaces;
    {
        let inner = shared.lock();
        if !inner.switches.websocket {
            return no_route();
        }
        if runtimes.is_empty() && !caller.is_user() {
            // As plain text, like all refusals of the hub itself.
            let refused = Refused::new(400, "runtime_ids is required");
            return raw(400, "text/plain; charset=utf-8", format!("{}\n", refused.envelope()).into_bytes());
        }
        if runtimes.iter().any(|id| inner.plane.runtime(id).is_none()) {
            return Refused::new(404, "runtime not found").into_response();
        }
        if runtimes.iter().any(|id| !inner.sees_runtime(&caller, id)) {
            return Refused::new(404, "not found").into_response();
        }
        let seen = inner.plane.workspaces().filter(|(id, _)| inner.sees(&caller, id));
        workspaces = seen.map(|(id, _)| id.clone()).collect();
    }
    let opened = Opened { runtimes, workspaces, caller, can: Capabilities::of(&headers) };
    let Ok(upgrade) = upgrade else {
        return Refused::new(400, "this is the control channel: a WebSocket handshake is needed")
            .into_response();
    };
    upgrade
        .max_message_size(MAX_FRAME)
        .max_frame_size(MAX_FRAME)
        .on_upgrade(move |socket| serve(shared, socket, opened, line))
}

/// What a handshake pinned for as long as its channel is open.
struct Opened {
    runtimes: BTreeSet<RuntimeId>,
    workspaces: BTreeSet<WorkspaceId>,
    caller: Caller,
    can: Capabilities,
}

async fn serve(shared: Arc<Shared>, socket: WebSocket, opened: Opened, line: Line) {
    let (mut sink, mut stream) = socket.split();
    let (sender, mut queue) = mpsc::channel(SEND_QUEUE);
    // A sender here would keep the queue open after the link was dropped from the list for not reading.
    let out = sender.downgrade();
    let (number, mut stalled) = {
        let links = &mut shared.lock().links;
        let number = links.add(Link {
            runtimes: opened.runtimes.clone(),
            workspaces: opened.workspaces.clone(),
            of_user: opened.caller.is_user(),
            out: sender,
        });
        (number, links.stalled.subscribe())
    };
    let opened = Arc::new(opened);
    let mut unstalled = stalled.clone();
    shared.changed.notify_waiters();
    let ping_every = shared.ping_every;
    let writer = async move {
        let mut ping = tokio::time::interval_at(tokio::time::Instant::now() + ping_every, ping_every);
        loop {
            let frame = tokio::select! {
                frame = queue.recv() => match frame {
                    Some(frame) => frame,
                    None => return,
                },
                _ = ping.tick() => Message::Ping(Vec::new().into()),
            };
            // The sender is in the list of links, which outlives all of them.
            let _ = stalled.wait_for(|stalled| !stalled).await;
            match tokio::time::timeout(WRITE_TIMEOUT, sink.send(frame)).await {
                Ok(Ok(())) => {}
                _ => return,
            }
        }
    };
    let reader = async {
        let room = Arc::new(Semaphore::new(MAX_RPCS));
        let mut rpcs = JoinSet::new();
        let mut alive_until = tokio::time::Instant::now() + ping_every + PONG_GRACE;
        loop {
            while rpcs.try_join_next().is_some() {}
            let Ok(Some(Ok(frame))) = tokio::time::timeout_at(alive_until, stream.next()).await else {
                return;
            };
            let _ = unstalled.wait_for(|stalled| !stalled).await;
            let text = match frame {
                Message::Pong(_) => {
                    alive_until = tokio::time::Instant::now() + ping_every + PONG_GRACE;
                    continue;
                }
                Message::Text(text) => text,
                Message::Close(_) => return,
                // Pings are answered below us; binary frames mean nothing here.
                _ => continue,
            };
            let Ok(frame) = serde_json::from_str::<Frame>(&text) else { continue };
            let Some(out) = out.upgrade() else { return };
            let (shared, opened) = (Arc::clone(&shared), Arc::clone(&opened));
            let link = Sender { shared, out, line: line.clone(), opened };
            match frame.r#type.as_str() {
                "daemon:heartbeat" => link.beat(frame.payload).await,
                "daemon:rpc_request" => match Arc::clone(&room).try_acquire_owned() {
                    Ok(permit) => {
                        rpcs.spawn(async move {
                            link.rpc(frame.payload).await;
                            drop(permit);
                        });
                    }
                    Err(_) => link.respond(&frame.payload, 429, &json!({ "error": "busy" })).await,
                },
                _ => {}
            }
        }
    };
    tokio::select! { () = writer => {}, () = reader => {} }
    shared.lock().links.remove(number);
    shared.changed.notify_waiters();
}

/// What answers one frame.
struct Sender {
    shared: Arc<Shared>,
    out: mpsc::Sender<Message>,
    line: Line,
    opened: Arc<Opened>,
}

impl Sender {
    async fn send(&self, frame: Message) {
        // A link that is gone needs no answer.
        let _ = self.out.send(frame).await;
    }

    async fn beat(&self, payload: Value) {
        let Ok(beat) = serde_json::from_value::<Heartbeat>(payload.clone()) else { return };
        let runtime = RuntimeId::new(beat.runtime_id.as_str());
        if !self.opened.runtimes.contains(&runtime) {
            return;
        }
        let act = || {
            let asked = self.shared.act(|inner, now| {
                inner.plane.heartbeat(now, &runtime).is_ok().then(|| {
                    let mut asked = Map::new();
                    pending::add_to(&mut asked, inner, now, &runtime, beat.supports_batch_import);
                    asked
                })
            });
            let known = asked.is_some();
            let mut ack = json!({ "runtime_id": runtime.as_str(), "status": "ok" });
            if let (Some(ack), Some(asked)) = (ack.as_object_mut(), asked) {
                ack.extend(asked);
            }
            if !known {
                ack["status"] = "runtime_gone".into();
                ack["runtime_gone"] = true.into();
            } else if self.shared.lock().switches.rpc {
                ack["server_capabilities"] = json!(["rpc-v1"]);
            }
            (200, ack)
        };
        if let Some((_, frame)) = self
            .faulted("/api/daemon/heartbeat", &payload, act, |_, ack| envelope("daemon:heartbeat_ack", ack))
            .await
        {
            self.send(frame).await;
        }
    }

    async fn rpc(&self, payload: Value) {
        let Ok(request) = serde_json::from_value::<Rpc>(payload.clone()) else { return };
        if request.method != "tasks.claim" {
            return self.respond(&payload, 404, &json!({ "error": "unknown method" })).await;
        }
        let act = || {
            let switches = self.shared.lock().switches;
            if !switches.rpc {
                return (503, json!({ "error": "no handler" }));
            }
            if !switches.batch_claim {
                return (404, json!({ "error": NO_ROUTE.trim() }));
            }
            let claim = serde_json::from_value::<Claim>(request.body.clone());
            match claim
                .map_err(|why| Refused::new(400, why.to_string()))
                .and_then(|it| try_claim(&self.shared, &self.opened.caller, self.opened.can, it))
            {
                Ok(body) => (200, body),
                Err(refused) => (refused.status, refused.envelope()),
            }
        };
        let id = request.request_id.clone();
        let shape = move |status, body: &Value| response(&id, status, body);
        if let Some((_, frame)) = self.faulted("/api/daemon/tasks/claim", &request.body, act, shape).await {
            self.send(frame).await;
        }
    }

    async fn respond(&self, payload: &Value, status: u16, body: &Value) {
        let id = payload["request_id"].as_str().unwrap_or_default();
        self.send(response(id, status, body)).await;
    }

    /// Logs a frame as the call that it stands for, and does it as the faults allow.
    async fn faulted(
        &self,
        path: &str,
        body: &Value,
        act: impl FnOnce() -> (u16, Value),
        shape: impl Fn(u16, &Value) -> Message,
    ) -> Option<(u16, Message)> {
        let (number, fault) = self.shared.arrived(&Arrival {
            at: self.shared.elapsed(),
            method: "WS",
            path,
            query: "",
            headers: None,
            body: body.to_string().as_bytes(),
        });
        let action = fault.as_ref().map(super::Fault::action);
        match (action, &fault) {
            (Some(Action::DropRequest), _) => {
                self.shared.answered(number, Answer::Dropped);
                self.line.cut();
                return None;
            }
            (Some(Action::Reply { status, body, .. }), _) => {
                self.shared.answered(number, Answer::Sent(*status));
                let body = serde_json::from_str(body).unwrap_or_else(|_| body.as_str().into());
                return Some((*status, shape(*status, &body)));
            }
            (Some(Action::Flood(bytes)), _) => {
                self.shared.answered(number, Answer::Sent(200));
                return Some((200, Message::Text(flood(*bytes).into())));
            }
            (Some(Action::Delay(time)), _) => tokio::time::sleep(*time).await,
            (Some(Action::Hold), Some(fault)) => fault.until_released().await,
            _ => {}
        }
        let (status, body) = match (act(), self.shared.stored().await) {
            (done, Ok(())) => done,
            // A beat has no such answer: none comes, as from a server in trouble.
            (_, Err(_)) if path.ends_with("/heartbeat") => {
                self.shared.answered(number, Answer::Dropped);
                return None;
            }
            (_, Err(unwritten)) => (500, json!({ "error": unwritten.to_string() })),
        };
        let mut frame = shape(status, &body);
        match (action, &fault) {
            (Some(Action::LoseReply), _) => {
                self.shared.answered(number, Answer::Lost(status));
                self.line.cut();
                return None;
            }
            (Some(Action::Reset(_)), _) => {
                self.shared.answered(number, Answer::Lost(status));
                self.line.reset();
                return None;
            }
            (Some(Action::Close), _) => {
                self.shared.answered(number, Answer::Lost(status));
                return Some((status, Message::Close(None)));
            }
            (Some(Action::HoldReply | Action::Stall(_)), Some(fault)) => fault.until_released().await,
            (Some(Action::Garble(bytes)), _) => {
                frame = Message::Text(String::from_utf8_lossy(bytes).into_owned().into());
            }
            (Some(Action::Truncate), _) => frame = shortened(&frame, usize::MAX),
            (Some(Action::Cut(first)), _) => frame = shortened(&frame, *first),
            _ => {}
        }
        self.shared.answered(number, Answer::Sent(status));
        Some((status, frame))
    }
}

fn response(id: &str, status: u16, body: &Value) -> Message {
    let mut payload = json!({ "request_id": id, "status": status });
    match body.get("error") {
        // The plane refused: the body is the one of HTTP. Other errors are those of the channel.
        Some(error) if matches!(status, 404 | 429 | 503) => payload["error"] = error.clone(),
        _ => payload["body"] = body.clone(),
    }
    envelope("daemon:rpc_response", &payload)
}

/// The first bytes of its text, at most half of it.
fn shortened(frame: &Message, first: usize) -> Message {
    let text = frame.to_text().unwrap_or_default();
    let most = first.min(text.len() / 2);
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    Message::Text(text[..end].to_owned().into())
}
