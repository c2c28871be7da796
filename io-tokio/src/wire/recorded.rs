//! Holds the types against recorded exchanges of a real daemon with a real server.

use super::claim::{ClaimReply, ClaimRequest};
use super::frame::{self, Inbound, Outgoing, RpcRequest};
use super::gc::{self, IssuesRequest};
use super::heartbeat::{HeartbeatReply, HeartbeatRequest};
use super::json::{self, DecodeError};
use super::message::{Message, MessageKind, MessagesRequest, StoredMessage, ToolInput};
use super::register::{
    DeregisterRequest, OfferedRuntime, Readable, Recovered, RegisterReply, RegisterRequest, Renewal,
    Workspace, runtime_profiles,
};
use super::report::{
    CancelAckRequest, CompleteRequest, FailRequest, Pointers, ProgressRequest, SessionRequest, Usage,
    UsageRequest,
};
use super::routes::{self, Method, Route};
use super::skill::{ResolveReply, ResolveRequest, SkillRef};
use super::status::{Row, TaskStatus};
use crate::http::endpoints::{acknowledged, row};
use crate::http::{CallError, RejectKind};
use crate::skills::{bundle_hash, file_hash};
use longshore_core::id::{RuntimeId, WorkspaceId};
use reqwest::header::HeaderMap;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// Every recorded exchange between daemon and server, with the name of its file.
fn exchanges() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures");
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the fixtures") {
        let path = entry.expect("a file").path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).expect("text");
            let list: Vec<Value> = serde_json::from_str(&text).expect(&name);
            all.extend(list.into_iter().map(|exchange| (name.clone(), exchange)));
        }
    }
    assert!(all.len() > 1000, "{}", all.len());
    all
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}

fn number(value: &Value, field: &str) -> i64 {
    value[field].as_i64().expect("an integer")
}

fn list<T>(value: &Value, item: impl Fn(&Value) -> T) -> Vec<T> {
    value.as_array().into_iter().flatten().map(item).collect()
}

fn strings(value: &Value) -> Vec<String> {
    list(value, |item| item.as_str().expect("a text").to_owned())
}

fn runtimes(value: &Value) -> Vec<RuntimeId> {
    strings(value).into_iter().map(RuntimeId::new).collect()
}

/// The route of a recorded HTTP exchange, with the ids in its path.
fn route(exchange: &Value) -> Option<(Route, Vec<String>)> {
    let method = match exchange["method"].as_str()? {
        "GET" => Method::Get,
        "POST" => Method::Post,
        _ => return None,
    };
    let path = exchange["path"].as_str()?;
    routes::ALL.iter().filter(|route| route.method == method).find_map(|route| {
        let pieces: Vec<_> = route.template.split('/').collect();
        let given: Vec<_> = path.split('/').collect();
        let fits = pieces.len() == given.len()
            && pieces.iter().zip(&given).all(|(piece, is)| *piece == "{}" || piece == is);
        let ids =
            pieces.iter().zip(&given).filter(|(piece, _)| **piece == "{}").map(|(_, id)| (*id).to_owned());
        fits.then(|| (*route, ids.collect()))
    })
}

/// Reads a success reply as its caller would.
fn read(route: Route, reply: &str) -> Result<(), DecodeError> {
    fn done<T>(result: Result<T, DecodeError>) -> Result<(), DecodeError> {
        result.map(drop)
    }
    const OBJECT: &str = "an object";
    match route {
        routes::RENEW => done(json::decode::<Renewal>(reply, OBJECT)),
        routes::WORKSPACES => Readable::<Workspace>::list(reply).map(|list| assert_eq!(list.unusable, 0)),
        routes::RUNTIME_PROFILES => done(runtime_profiles(reply)),
        routes::REGISTER => RegisterReply::decode(reply).map(|registered| {
            assert!(!registered.runtimes.items.is_empty() && registered.runtimes.unusable == 0);
            assert!(
                !registered.repos.repos_version.is_empty() && registered.repos.settings.names_co_author()
            );
        }),
        routes::HEARTBEAT => done(json::decode::<HeartbeatReply>(reply, OBJECT)),
        routes::CLAIM_BATCH => ClaimReply::batch(reply).map(check_tasks),
        routes::CLAIM_ONE => ClaimReply::single(reply).map(check_tasks),
        routes::RECOVER_ORPHANS => done(json::decode::<Recovered>(reply, OBJECT)),
        routes::STATUS => TaskStatus::reply(reply).map(known),
        routes::GC_ISSUES => gc::issues(reply).map(|issues| {
            assert!(!issues.is_empty());
            assert!(issues.iter().all(|issue| issue.found == Some(true) && issue.updated_at().is_some()));
        }),
        routes::SKILL_BUNDLES => json::decode::<ResolveReply>(reply, OBJECT).map(|reply| {
            let [bundle] = &reply.bundles[..] else { panic!("one was asked for") };
            assert_eq!(bundle_hash(bundle), bundle.hash, "{}", bundle.name);
            assert!(bundle.files.iter().all(|file| file_hash(&file.content) == file.sha256));
        }),
        routes::MESSAGES_READ => done(Readable::<StoredMessage>::list(reply)),
        routes::START | routes::COMPLETE | routes::FAIL | routes::PREPARE_LEASE => {
            row(reply).map(|Row { status }| known(status))
        }
        _ => acknowledged(reply),
    }
}

fn known(status: TaskStatus) {
    assert_ne!(status, TaskStatus::Unknown);
}

fn check_tasks(reply: ClaimReply) {
    assert!(reply.unusable.is_empty());
    for task in reply.tasks {
        let agent = task.agent.expect("an agent");
        assert_eq!(agent.id, task.agent_id);
        assert!(task.auth_token.expose().starts_with("mat_"));
        assert!(!agent.skill_refs.is_empty() || !agent.skills.is_empty());
        assert!(![task.id, task.runtime_id, task.workspace_id].contains(&String::new()));
    }
}

#[test]
fn every_recorded_reply_decodes() {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for (file, exchange) in exchanges() {
        let path = exchange["path"].as_str().expect("a path");
        if exchange["dir"] != "daemon->server" {
            continue;
        }
        let Some(status) = exchange["status"]
            .as_u64()
            .filter(|_| !exchange["method"].as_str().expect("one").starts_with("WS"))
        else {
            continue;
        };
        let (route, ids) = route(&exchange).unwrap_or_else(|| panic!("{file}: {path}"));
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        assert_eq!(route.path(&ids).expect("ids"), path, "{file}");
        let reply = match &exchange["response_body"] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        match u16::try_from(status).expect("a status") {
            0 | 304 => {}
            200..=299 => {
                read(route, &reply).unwrap_or_else(|error| panic!("{file}: {path}: {error}"));
                *seen.entry(route.template).or_default() += 1;
            }
            status => refused(status, reply),
        }
    }
    for route in [
        routes::RENEW,
        routes::WORKSPACES,
        routes::RUNTIME_PROFILES,
        routes::REGISTER,
        routes::DEREGISTER,
        routes::RECOVER_ORPHANS,
        routes::HEARTBEAT,
        routes::CLAIM_BATCH,
        routes::PREPARE_LEASE,
        routes::START,
        routes::PROGRESS,
        routes::MESSAGES,
        routes::SESSION,
        routes::USAGE,
        routes::SKILL_BUNDLES,
        routes::GC_ISSUES,
        routes::STATUS,
        routes::COMPLETE,
        routes::FAIL,
        routes::CANCEL_ACK,
    ] {
        assert!(seen.contains_key(route.template), "nothing recorded for {}", route.template);
    }
}

fn refused(status: u16, body: String) {
    let gone = body.contains("task not found");
    let error = CallError::from_reply(status, &HeaderMap::new(), body);
    match status {
        404 => assert_eq!(error.rejected_as() == Some(RejectKind::TaskGone), gone),
        401 => assert_eq!(error.rejected_as(), Some(RejectKind::Unauthorized)),
        429 => assert!(matches!(error, CallError::Throttled { retry_after: None, .. })),
        500.. => assert!(matches!(error, CallError::ServerError { .. })),
        _ => assert!(error.rejected_as().is_some() && !error.is_transient()),
    }
}

#[test]
fn every_recorded_frame_decodes() {
    let (mut hints, mut acks, mut gone, mut tasks) = (0, 0, 0, 0);
    for (file, exchange) in exchanges() {
        if exchange["dir"] != "server->daemon" || exchange["method"] != "WS-TEXT" {
            continue;
        }
        let body = exchange["response_body"].to_string();
        match frame::decode(&body).unwrap_or_else(|| panic!("{file}: {body}")) {
            Inbound::HeartbeatAck(ack) if ack.runtime_gone => gone += 1,
            Inbound::HeartbeatAck(ack) => {
                assert!(ack.speaks_rpc() && ack.into_actions().is_empty());
                acks += 1;
            }
            Inbound::Rpc(response) => {
                assert!(response.is_success() && !response.request_id.is_empty());
                let reply = response.tasks().expect(&file);
                tasks += reply.tasks.len();
                check_tasks(reply);
            }
            hint => {
                assert!(hint.is_hint());
                hints += 1;
            }
        }
    }
    assert!(hints > 50 && acks > 50 && gone > 0 && tasks > 20, "{hints} {acks} {gone} {tasks}");
}

/// What we would send where the recorded daemon sent `body`.
fn ours(route: Route, body: &Value) -> Option<Value> {
    fn sent(request: &impl Serialize) -> Option<Value> {
        serde_json::from_slice(&json::encode(request).expect("json")).ok()
    }
    let pointers = || Pointers {
        session_id: text(body, "session_id"),
        work_dir: text(body, "work_dir"),
        session_rollout_missing: body["session_rollout_missing"] == true,
        ..Pointers::default()
    };
    match route {
        routes::REGISTER => sent(&RegisterRequest {
            workspace_id: WorkspaceId::new(text(body, "workspace_id")),
            daemon_id: text(body, "daemon_id"),
            legacy_daemon_ids: strings(&body["legacy_daemon_ids"]),
            device_name: text(body, "device_name"),
            cli_version: text(body, "cli_version"),
            launched_by: text(body, "launched_by"),
            runtimes: list(&body["runtimes"], |runtime| OfferedRuntime {
                name: text(runtime, "name"),
                provider: text(runtime, "type"),
                version: text(runtime, "version"),
                status: "online",
                profile_id: None,
            }),
            failed_profiles: Vec::new(),
        }),
        routes::DEREGISTER => {
            let runtime_ids = &runtimes(&body["runtime_ids"]);
            sent(&DeregisterRequest { runtime_ids, offline_reasons: BTreeMap::new() })
        }
        routes::HEARTBEAT => sent(&beat(body, &RuntimeId::new(text(body, "runtime_id")))),
        routes::CLAIM_BATCH => sent(&claim(body, &text(body, "daemon_id"), &runtimes(&body["runtime_ids"]))),
        routes::PROGRESS => sent(&ProgressRequest {
            summary: &text(body, "summary"),
            step: u32::try_from(number(body, "step")).expect("small"),
            total: u32::try_from(number(body, "total")).expect("small"),
        }),
        routes::MESSAGES => {
            let messages = list(&body["messages"], |message| Message {
                seq: u32::try_from(number(message, "seq")).expect("small"),
                kind: serde_json::from_value::<MessageKind>(message["type"].clone()).expect("a kind"),
                tool: text(message, "tool"),
                content: text(message, "content"),
                input: message.get("input").and_then(|input| {
                    ToolInput::new(&RawValue::from_string(input.to_string()).expect("json"))
                }),
                output: text(message, "output"),
            });
            sent(&MessagesRequest { messages: &messages })
        }
        routes::SESSION => {
            sent(&SessionRequest { session_id: &text(body, "session_id"), work_dir: &text(body, "work_dir") })
        }
        routes::USAGE => sent(&UsageRequest {
            usage: &list(&body["usage"], |usage| Usage {
                provider: text(usage, "provider"),
                model: text(usage, "model"),
                input_tokens: number(usage, "input_tokens"),
                output_tokens: number(usage, "output_tokens"),
                cache_read_tokens: number(usage, "cache_read_tokens"),
                cache_write_tokens: number(usage, "cache_write_tokens"),
                cost_usd_ticks: usage["cost_usd_ticks"].as_i64(),
            }),
        }),
        routes::COMPLETE => sent(&CompleteRequest { output: text(body, "output"), pointers: pointers() }),
        routes::FAIL => sent(&FailRequest {
            error: text(body, "error"),
            failure_reason: text(body, "failure_reason"),
            pointers: pointers(),
        }),
        routes::SKILL_BUNDLES => {
            let skill: SkillRef = serde_json::from_value(body["skills"][0].clone()).expect("a reference");
            sent(&ResolveRequest::new(&skill))
        }
        routes::GC_ISSUES => {
            let ids = strings(&body["issue_ids"]);
            sent(&IssuesRequest::of(ids.iter().map(String::as_str)))
        }
        routes::CANCEL_ACK => sent(&CancelAckRequest::default()),
        // The others say nothing.
        _ => Some(json!({})),
    }
}

fn beat<'a>(body: &Value, runtime_id: &'a RuntimeId) -> HeartbeatRequest<'a> {
    HeartbeatRequest { runtime_id, supports_batch_import: body["supports_batch_import"] == true }
}

fn claim<'a>(body: &Value, daemon_id: &'a str, runtime_ids: &'a [RuntimeId]) -> ClaimRequest<'a> {
    ClaimRequest {
        daemon_id,
        runtime_ids,
        max_tasks: u32::try_from(number(body, "max_tasks")).expect("small"),
    }
}

#[test]
fn what_we_send_is_what_was_recorded() {
    let mut compared = 0;
    for (file, exchange) in exchanges() {
        let recorded = &exchange["request_body"];
        // A text stands for a body that was too large to keep.
        if exchange["dir"] != "daemon->server" || exchange["method"] != "POST" || recorded.is_string() {
            continue;
        }
        let Some((route, _)) = route(&exchange) else { continue };
        assert_eq!(ours(route, recorded).as_ref(), Some(recorded), "{file}: {}", route.template);
        compared += 1;
    }
    assert!(compared > 400, "{compared}");
}

#[test]
fn the_frames_that_we_send_are_those_that_were_recorded() {
    let mut compared = 0;
    for (file, exchange) in exchanges() {
        if exchange["dir"] != "daemon->server" || exchange["method"] != "WS-TEXT" {
            continue;
        }
        let recorded = &exchange["request_body"];
        let payload = &recorded["payload"];
        let body = &payload["body"];
        let runtime_id = RuntimeId::new(text(payload, "runtime_id"));
        let (request_id, daemon_id) = (text(payload, "request_id"), text(body, "daemon_id"));
        let runtime_ids = runtimes(&body["runtime_ids"]);
        let frame = if recorded["type"] == "daemon:heartbeat" {
            Outgoing::Heartbeat(beat(payload, &runtime_id))
        } else {
            let timeout = u64::try_from(number(payload, "timeout_ms")).expect("positive");
            Outgoing::Rpc(RpcRequest::claim(&request_id, claim(body, &daemon_id, &runtime_ids), timeout))
        };
        let sent: Value = serde_json::from_slice(&json::encode(&frame).expect("json")).expect("json");
        assert_eq!(&sent, recorded, "{file}");
        compared += 1;
    }
    assert!(compared > 300, "{compared}");
}

#[test]
fn the_links_recorded_address_is_ours_apart_from_the_order_of_ids() {
    let mut compared = 0;
    for (file, exchange) in exchanges() {
        if exchange["method"] != "WS-UPGRADE" {
            continue;
        }
        let recorded = exchange["path"].as_str().expect("a path");
        let ids = recorded.split_once("?runtime_ids=").map_or("", |(_, ids)| ids);
        let mut ids: Vec<&str> = ids.split("%2C").filter(|id| !id.is_empty()).collect();
        let ours = format!("{}{}", routes::LINK.template, routes::link_query(&ids));
        ids.sort_unstable();
        let query = if ids.is_empty() { String::new() } else { format!("?runtime_ids={}", ids.join("%2C")) };
        assert_eq!(ours, format!("/api/daemon/ws{query}"), "{file}");
        compared += 1;
    }
    assert!(compared > 20, "{compared}");
}
