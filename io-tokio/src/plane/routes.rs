//! The daemon's HTTP calls: runtimes and claims here; workspaces, tasks, skills and the collector's questions below.

mod bundles;
mod gc;
mod task;
mod workspace;

use super::access::{Caller, Holder};
use super::capabilities::{self, Capabilities};
use super::decode::{Claim, Deregister, Heartbeat, Register, decode};
use super::pass::authorised;
use super::reply::{Answered, Refused, answer, no_route};
use super::shared::{Inner, Shared};
use super::{pending, shape, socket};
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::HeaderMap;
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Extension, Router};
use longshore_core::id::{ProfileId, RuntimeId, TaskId, WorkspaceId};
use longshore_core::plane::{
    Claimed, FailedProfile, OfflineReason, Refusal, Registration, Repair, RuntimeEntry, State as TaskState,
    Task,
};
use longshore_core::time::Now;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

type Plain = State<Arc<Shared>>;

/// What an absent time is, where the wire has no null for it.
const NO_TIME: &str = "0001-01-01T00:00:00Z";
/// Why a task that wants a worktree is not handed out.
const NO_WORKTREE: &str =
    "this task works in a git worktree, and the daemon does not say that it can (local-worktree-v1)";

pub(super) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/api/daemon/register", post(register))
        .route("/api/daemon/deregister", post(deregister))
        .route("/api/daemon/heartbeat", post(heartbeat))
        .route("/api/daemon/tasks/claim", post(claim))
        .route("/api/daemon/claim", post(claim))
        .route("/api/daemon/runtimes/{runtime}/tasks/claim", post(claim_one))
        .route("/api/daemon/runtimes/{runtime}/tasks/pending", get(pending))
        .route("/api/daemon/runtimes/{runtime}/recover-orphans", post(recover_orphans))
        .route("/api/daemon/ws", get(socket::upgrade))
        .merge(workspace::router())
        .merge(task::router())
        .merge(pending::router())
        .merge(bundles::router())
        .merge(gc::router())
        .route_layer(from_fn_with_state(Arc::clone(&shared), authorised))
        .fallback(async || no_route())
        // What is around this bounds bodies already, as large as the real server's.
        .layer(DefaultBodyLimit::disable())
        .with_state(shared)
}

fn ok() -> Value {
    json!({ "status": "ok" })
}

async fn register(
    State(shared): Plain,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    answer(decode::<Register>(&body).and_then(|from| try_register(&shared, &caller, &headers, from)))
}

fn try_register(shared: &Shared, caller: &Caller, headers: &HeaderMap, from: Register) -> Answered {
    let profile = |id: String| (!id.is_empty()).then(|| ProfileId::new(id));
    let runtimes = from.runtimes.into_iter().map(|entry| RuntimeEntry {
        name: entry.name,
        provider: entry.r#type,
        profile: profile(entry.profile_id),
        version: entry.version,
        online: entry.status != "offline",
    });
    let failed = from.failed_profiles.into_iter().map(|it| FailedProfile {
        profile: ProfileId::new(it.profile_id),
        reason: match (&*it.command_name, &*it.reason) {
            ("", _) => it.reason,
            (command, reason) => format!("{command}: {reason}").into(),
        },
    });
    let registration = Registration {
        legacy_daemon_ids: from.legacy_daemon_ids,
        device_name: from.device_name,
        cli_version: from.cli_version,
        launched_by: from.launched_by,
        capabilities: capabilities::named(headers).map(Into::into).collect(),
        runtimes: runtimes.collect(),
        failed_profiles: failed.collect(),
        ..Registration::new(WorkspaceId::new(from.workspace_id), from.daemon_id)
    };
    shared.act(|inner, now| {
        let workspace = registration.workspace.clone();
        if !inner.sees(caller, &workspace) {
            return Err(Refusal::WorkspaceNotFound.into());
        }
        let ids = inner.plane.register(now, registration)?;
        let rows: Vec<_> = ids.iter().filter_map(|id| inner.plane.runtime(id)).map(shape::runtime).collect();
        let mut out = shape::repos(inner.plane.workspace(&workspace).ok_or(Refusal::WorkspaceNotFound)?);
        out["runtimes"] = rows.into();
        Ok(out)
    })
}

async fn deregister(State(shared): Plain, Extension(caller): Extension<Caller>, body: Bytes) -> Response {
    answer(decode::<Deregister>(&body).and_then(|from| {
        if from.runtime_ids.is_empty() {
            return Err(Refused::new(400, "runtime_ids is required"));
        }
        let ids = from.runtime_ids.into_iter().map(RuntimeId::new);
        let mut reasons: BTreeMap<_, _> = from
            .offline_reasons
            .into_iter()
            .map(|(id, it)| {
                let repair = it.repair.map(|repair| Repair {
                    package: repair.package,
                    command: repair.command,
                    shell: repair.shell,
                });
                (RuntimeId::new(id), OfflineReason { code: it.code, detail: it.detail, repair })
            })
            .collect();
        shared.act(|inner, _| {
            let own: Vec<_> = ids.filter(|id| inner.sees_runtime(&caller, id)).collect();
            if own.is_empty() { Ok(()) } else { inner.plane.deregister_because(&own, &mut reasons) }
        })?;
        Ok(ok())
    }))
}

async fn heartbeat(State(shared): Plain, Extension(caller): Extension<Caller>, body: Bytes) -> Response {
    answer(decode::<Heartbeat>(&body).and_then(|from| {
        let runtime = RuntimeId::new(from.runtime_id);
        shared.act(|inner, now| {
            if !inner.sees_runtime(&caller, &runtime) {
                return Err(Refused::new(404, "not found"));
            }
            inner.plane.heartbeat(now, &runtime)?;
            let mut out = Map::from_iter([("status".to_owned(), "ok".into())]);
            pending::add_to(&mut out, inner, now, &runtime, from.supports_batch_import);
            Ok(Value::Object(out))
        })
    }))
}

async fn claim(
    State(shared): Plain,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if !shared.lock().switches.batch_claim {
        return no_route();
    }
    let can = Capabilities::of(&headers);
    answer(decode::<Claim>(&body).and_then(|from| try_claim(&shared, &caller, can, from)))
}

/// The batch claim, over HTTP and on a control channel alike.
pub(super) fn try_claim(shared: &Shared, caller: &Caller, can: Capabilities, from: Claim) -> Answered {
    let max =
        usize::try_from(from.max_tasks).map_err(|_| Refused::new(400, "max_tasks must not be negative"))?;
    if let Holder::Daemon { daemon_id, .. } = &caller.holder
        && *daemon_id != from.daemon_id
    {
        return Err(Refused::new(403, "the token belongs to another daemon_id"));
    }
    let runtimes = from.runtime_ids.into_iter().map(RuntimeId::new);
    shared.act(|inner, now| {
        let seen: Vec<_> = runtimes.filter(|id| inner.sees_runtime(caller, id)).collect();
        let claimed = inner.plane.claim(now, &from.daemon_id, &seen, max)?;
        let tasks: Vec<_> = claimed.iter().filter_map(|one| handed_out(inner, now, can, one).ok()).collect();
        Ok(json!({ "tasks": tasks }))
    })
}

async fn claim_one(State(shared): Plain, headers: HeaderMap, Path(runtime): Path<String>) -> Response {
    let (runtime, can) = (RuntimeId::new(runtime), Capabilities::of(&headers));
    answer(shared.act(|inner, now| {
        let claimed = inner.plane.claim_one(now, &runtime)?;
        let task = claimed.map(|one| handed_out(inner, now, can, &one)).transpose()?;
        Ok(json!({ "task": task }))
    }))
}

/// A claimed task as its daemon gets it. One that this daemon cannot run is ended instead, with the reason in its row.
fn handed_out(inner: &mut Inner, now: Now, can: Capabilities, one: &Claimed) -> Answered {
    let task = inner.plane.task(&one.task).ok_or(Refusal::TaskNotFound)?.clone();
    let content = inner.content(task.payload);
    let daemon = inner.plane.runtime(&task.runtime).map(|row| row.daemon_id.clone()).unwrap_or_default();
    if inner.switches.worktree_gate && !can.local_worktree && content.wants_worktree(&daemon) {
        inner.plane.withdraw(now, &task.id, "local_directory_error", NO_WORKTREE)?;
        return Err(Refused::new(422, NO_WORKTREE));
    }
    Ok(shape::claim(&task, &content, &inner.skills(&task.agent), can))
}

/// What waits for a runtime or is being prepared by it.
async fn pending(State(shared): Plain, Path(runtime): Path<String>) -> Response {
    let (inner, runtime) = (shared.lock(), RuntimeId::new(runtime));
    if inner.plane.runtime(&runtime).is_none() {
        return answer(Err(Refusal::RuntimeNotFound.into()));
    }
    let waiting = inner.plane.tasks().filter(|task| task.runtime == runtime);
    let waiting = waiting.filter(|task| matches!(task.state, TaskState::Queued | TaskState::Dispatched));
    answer(Ok(waiting.map(|task| task::row(&inner, task)).collect()))
}

async fn recover_orphans(State(shared): Plain, Path(runtime): Path<String>) -> Response {
    let runtime = RuntimeId::new(runtime);
    answer(shared.act(|inner, now| {
        let done = inner.plane.recover_orphans(now, &runtime)?;
        Ok(json!({ "orphaned": done.orphaned, "retried": done.retried }))
    }))
}

fn ended(task: &Task) -> String {
    task.ended_at.map_or_else(|| NO_TIME.into(), |at| shape::fine_stamp(at.wall))
}

fn task_id(id: String) -> TaskId {
    TaskId::new(id)
}
