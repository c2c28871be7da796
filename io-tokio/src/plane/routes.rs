//! The daemon's HTTP calls: workspaces, runtimes, claims. Those about one task are in [`task`].

mod task;

use super::decode::{Claim, Deregister, GcCheck, Heartbeat, Register, decode};
use super::pass::authorised;
use super::reply::{Answered, Refused, answer, json, no_route};
use super::shared::{Inner, Shared};
use super::{pending, shape, socket};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use longshore_core::id::{RuntimeId, TaskId, WorkspaceId};
use longshore_core::plane::{Claimed, Plane, Registration, RuntimeEntry, State as TaskState, Subject, Task};
use longshore_core::time::{Now, UnixMillis};
use serde_json::{Map, Value, json};
use std::sync::Arc;

type Plain = State<Arc<Shared>>;

/// Issues that one gc-check may ask for.
const MAX_GC_IDS: usize = 500;
/// What an absent time is, where the wire has no null for it.
const NO_TIME: &str = "0001-01-01T00:00:00Z";

pub(super) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/api/tokens/current/renew", post(renew))
        .route("/api/me", get(me))
        .route("/api/workspaces", get(workspaces_of_user))
        .route("/api/daemon/workspaces", get(workspaces))
        .route("/api/daemon/workspaces/{workspace}/repos", get(repos))
        .route("/api/daemon/workspaces/{workspace}/runtime-profiles", get(runtime_profiles))
        .route("/api/daemon/workspaces/{workspace}/issues/gc-check", post(gc_issues))
        .route("/api/daemon/register", post(register))
        .route("/api/daemon/deregister", post(deregister))
        .route("/api/daemon/heartbeat", post(heartbeat))
        .route("/api/daemon/tasks/claim", post(claim))
        .route("/api/daemon/claim", post(claim))
        .route("/api/daemon/runtimes/{runtime}/tasks/claim", post(claim_one))
        .route("/api/daemon/runtimes/{runtime}/recover-orphans", post(recover_orphans))
        .route("/api/daemon/issues/{id}/gc-check", get(gc_issue))
        .route("/api/daemon/chat-sessions/{id}/gc-check", get(gc_chat))
        .route("/api/daemon/autopilot-runs/{id}/gc-check", get(gc_autopilot))
        .route("/api/daemon/ws", get(socket::upgrade))
        .merge(task::router())
        .merge(pending::router())
        .route_layer(from_fn_with_state(Arc::clone(&shared), authorised))
        .fallback(async || no_route())
        // What is around this bounds bodies already, as large as the real server's.
        .layer(DefaultBodyLimit::disable())
        .with_state(shared)
}

fn ok() -> Value {
    json!({ "status": "ok" })
}

async fn renew() -> Response {
    json(200, &json!({ "expires_at": "", "renewed": false }))
}

/// Whose token it is: of the one person that there is.
async fn me() -> Response {
    json(200, &json!({ "id": "user-1", "name": "Local", "email": "local@localhost" }))
}

fn workspace_list(plane: &Plane) -> Vec<Value> {
    plane.workspaces().map(|(id, name)| json!({ "id": id.as_str(), "name": name })).collect()
}

async fn workspaces(State(shared): Plain, headers: HeaderMap) -> Response {
    let list = Value::from(workspace_list(&shared.lock().plane));
    let tag = format!("W/\"{}\"", shape::hex_digest(list.to_string().as_bytes()));
    let known = headers.get(header::IF_NONE_MATCH).is_some_and(|given| given.as_bytes() == tag.as_bytes());
    let mut response =
        if known { axum::http::StatusCode::NOT_MODIFIED.into_response() } else { json(200, &list) };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    response
}

async fn workspaces_of_user(State(shared): Plain) -> Response {
    json(200, &workspace_list(&shared.lock().plane).into())
}

fn known_workspace(inner: &Inner, id: &str) -> Result<(), Refused> {
    let known = inner.plane.workspaces().any(|(known, _)| known.as_str() == id);
    if known { Ok(()) } else { Err(Refused::new(404, "not found")) }
}

/// Repositories and settings: this plane has none.
fn no_repos() -> Value {
    json!({ "repos": [], "repos_version": shape::hex_digest(b""), "settings": {} })
}

async fn repos(State(shared): Plain, Path(workspace): Path<String>) -> Response {
    answer(known_workspace(&shared.lock(), &workspace).map(|()| {
        let mut out = no_repos();
        out["workspace_id"] = workspace.into();
        out
    }))
}

async fn runtime_profiles(State(shared): Plain, Path(workspace): Path<String>) -> Response {
    answer(
        known_workspace(&shared.lock(), &workspace)
            .map(|()| json!({ "workspace_id": workspace, "runtime_profiles": [] })),
    )
}

async fn register(State(shared): Plain, headers: HeaderMap, body: Bytes) -> Response {
    answer(try_register(&shared, &headers, &body))
}

fn try_register(shared: &Shared, headers: &HeaderMap, body: &[u8]) -> Answered {
    let from: Register = decode(body)?;
    if !from.failed_profiles.is_empty() || from.runtimes.iter().any(|entry| !entry.profile_id.is_empty()) {
        return Err(Refused::new(400, "unknown runtime profile: this control plane has none"));
    }
    let capabilities = headers.get("x-client-capabilities").and_then(|value| value.to_str().ok());
    let registration = Registration {
        workspace: WorkspaceId::new(from.workspace_id),
        daemon_id: from.daemon_id,
        device_name: from.device_name,
        cli_version: from.cli_version,
        launched_by: from.launched_by,
        capabilities: capabilities
            .unwrap_or_default()
            .split(',')
            .map(str::trim)
            .filter(|token| !token.is_empty())
            .map(Into::into)
            .collect(),
        runtimes: from
            .runtimes
            .into_iter()
            .map(|entry| RuntimeEntry {
                name: entry.name,
                provider: entry.r#type,
                version: entry.version,
                online: entry.status != "offline",
            })
            .collect(),
    };
    shared.act(|inner, now| {
        let ids = inner.plane.register(now, registration)?;
        let rows: Vec<_> = ids.iter().filter_map(|id| inner.plane.runtime(id)).map(shape::runtime).collect();
        let mut out = no_repos();
        out["runtimes"] = rows.into();
        Ok(out)
    })
}

async fn deregister(State(shared): Plain, body: Bytes) -> Response {
    answer(decode::<Deregister>(&body).and_then(|from| {
        let ids: Vec<_> = from.runtime_ids.into_iter().map(RuntimeId::new).collect();
        Ok(shared.act(|inner, _| inner.plane.deregister(&ids)).map(|()| ok())?)
    }))
}

async fn heartbeat(State(shared): Plain, body: Bytes) -> Response {
    answer(decode::<Heartbeat>(&body).and_then(|from| {
        let runtime = RuntimeId::new(from.runtime_id);
        shared.act(|inner, now| {
            inner.plane.heartbeat(now, &runtime)?;
            let mut out = Map::from_iter([("status".to_owned(), "ok".into())]);
            pending::add_to(&mut out, inner, now, &runtime, from.supports_batch_import);
            Ok(Value::Object(out))
        })
    }))
}

async fn claim(State(shared): Plain, body: Bytes) -> Response {
    if !shared.lock().switches.batch_claim {
        return no_route();
    }
    answer(decode::<Claim>(&body).and_then(|from| try_claim(&shared, from)))
}

/// The batch claim, over HTTP and on a control channel alike.
pub(super) fn try_claim(shared: &Shared, from: Claim) -> Answered {
    let max =
        usize::try_from(from.max_tasks).map_err(|_| Refused::new(400, "max_tasks must not be negative"))?;
    let runtimes: Vec<_> = from.runtime_ids.into_iter().map(RuntimeId::new).collect();
    shared.act(|inner, now| {
        let claimed = inner.plane.claim(now, &from.daemon_id, &runtimes, max)?;
        let tasks: Vec<_> = claimed.iter().filter_map(|one| handed_out(inner, one)).collect();
        Ok(json!({ "tasks": tasks }))
    })
}

async fn claim_one(State(shared): Plain, Path(runtime): Path<String>) -> Response {
    let runtime = RuntimeId::new(runtime);
    answer(shared.act(|inner, now| {
        let claimed = inner.plane.claim_one(now, &runtime)?;
        Ok(json!({ "task": claimed.and_then(|one| handed_out(inner, &one)) }))
    }))
}

fn handed_out(inner: &Inner, one: &Claimed) -> Option<Value> {
    let task = inner.plane.task(&one.task)?;
    Some(shape::claim(task, &inner.content(task.payload)))
}

async fn recover_orphans(State(shared): Plain, Path(runtime): Path<String>) -> Response {
    let runtime = RuntimeId::new(runtime);
    answer(shared.act(|inner, now| {
        let done = inner.plane.recover_orphans(now, &runtime)?;
        Ok(json!({ "orphaned": done.orphaned, "retried": done.retried }))
    }))
}

/// The newest task that is about this subject, of any workspace or of one.
fn newest<'a>(plane: &'a Plane, subject: &Subject, workspace: Option<&str>) -> Option<&'a Task> {
    plane
        .tasks()
        .filter(|task| task.subject == *subject)
        .filter(|task| workspace.is_none_or(|workspace| task.workspace.as_str() == workspace))
        .max_by_key(|task| task.order)
}

/// What an issue or chat is, and since when: what the operator said, else `otherwise` since the newest task's last change.
fn standing(
    plane: &Plane,
    subject: &Subject,
    workspace: Option<&str>,
    otherwise: &str,
) -> Option<(String, UnixMillis)> {
    let task = newest(plane, subject, workspace)?;
    Some(match plane.subject_status(subject.id()) {
        Some((status, at)) => (status.into(), at.wall),
        None => (otherwise.into(), last_change(task).wall),
    })
}

fn last_change(task: &Task) -> Now {
    task.ended_at.or(task.started_at).or(task.dispatched_at).unwrap_or(task.created_at)
}

async fn gc_issues(State(shared): Plain, Path(workspace): Path<String>, body: Bytes) -> Response {
    answer(decode::<GcCheck>(&body).and_then(|from| {
        let inner = shared.lock();
        known_workspace(&inner, &workspace)?;
        if from.issue_ids.len() > MAX_GC_IDS {
            return Err(Refused::new(400, format!("at most {MAX_GC_IDS} issues can be asked for at once")));
        }
        let found = from.issue_ids.into_iter().map(|id| {
            let subject = Subject::Issue(id.as_str().into());
            match standing(&inner.plane, &subject, Some(&workspace), "in_progress") {
                Some((status, at)) => {
                    json!({ "id": id, "found": true, "status": status, "updated_at": shape::fine_stamp(at) })
                }
                None => json!({ "id": id, "found": false }),
            }
        });
        Ok(json!({ "issues": found.collect::<Vec<_>>() }))
    }))
}

fn gc_one(shared: &Shared, subject: &Subject, otherwise: &str, what: &str) -> Response {
    let standing = standing(&shared.lock().plane, subject, None, otherwise);
    answer(match standing {
        Some((status, at)) => Ok(json!({ "status": status, "updated_at": shape::fine_stamp(at) })),
        None => Err(Refused::new(404, format!("{what} not found"))),
    })
}

async fn gc_issue(State(shared): Plain, Path(id): Path<String>) -> Response {
    gc_one(&shared, &Subject::Issue(id.into()), "in_progress", "issue")
}

async fn gc_chat(State(shared): Plain, Path(id): Path<String>) -> Response {
    gc_one(&shared, &Subject::Chat(id.into()), "active", "chat session")
}

async fn gc_autopilot(State(shared): Plain, Path(id): Path<String>) -> Response {
    let inner = shared.lock();
    let subject = Subject::Autopilot(id.into());
    answer(match newest(&inner.plane, &subject, None) {
        Some(task) => {
            let status = match (inner.plane.subject_status(subject.id()), task.state) {
                (Some((status, _)), _) => status,
                (None, TaskState::Completed) => "completed",
                (None, TaskState::Failed | TaskState::Cancelled) => "failed",
                (None, _) => "running",
            };
            Ok(json!({ "status": status, "completed_at": ended(task) }))
        }
        None => Err(Refused::new(404, "autopilot run not found")),
    })
}

fn ended(task: &Task) -> String {
    task.ended_at.map_or_else(|| NO_TIME.into(), |at| shape::fine_stamp(at.wall))
}

fn task_id(id: String) -> TaskId {
    TaskId::new(id)
}
