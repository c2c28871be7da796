//! Whether what a directory was made for is over.

use super::{Plain, ended, workspace};
use crate::plane::access::Caller;
use crate::plane::decode::{GcCheck, decode};
use crate::plane::reply::{Refused, answer};
use crate::plane::shape;
use crate::plane::shared::{Inner, Shared};
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Extension, Router};
use longshore_core::id::WorkspaceId;
use longshore_core::plane::{State as TaskState, Subject, Task};
use longshore_core::time::{Now, UnixMillis};
use serde_json::json;
use std::sync::Arc;

/// Issues that one gc-check may ask for.
const MAX_IDS: usize = 500;
/// Bytes of the body that asks for them.
const MAX_BODY: usize = 64 << 10;

pub(super) fn router() -> Router<Arc<Shared>> {
    Router::new()
        .route("/api/daemon/workspaces/{workspace}/issues/gc-check", post(issues))
        .route("/api/daemon/issues/{id}/gc-check", get(issue))
        .route("/api/daemon/chat-sessions/{id}/gc-check", get(chat))
        .route("/api/daemon/autopilot-runs/{id}/gc-check", get(autopilot))
}

/// The newest task about this subject in a workspace that `wanted` is true for.
fn newest<'a>(
    inner: &'a Inner,
    subject: &Subject,
    wanted: impl Fn(&WorkspaceId) -> bool,
) -> Option<&'a Task> {
    let about = inner.plane.tasks().filter(|task| task.subject == *subject);
    about.filter(|task| wanted(&task.workspace)).max_by_key(|task| task.order)
}

/// What an issue or chat is, and since when: what the operator said, else `otherwise` since the newest task's last change.
fn standing(inner: &Inner, task: &Task, otherwise: &str) -> (String, UnixMillis) {
    match inner.plane.subject_status(task.subject.id()) {
        Some((status, at)) => (status.into(), at.wall),
        None => (otherwise.into(), last_change(task).wall),
    }
}

fn last_change(task: &Task) -> Now {
    task.ended_at.or(task.started_at).or(task.dispatched_at).unwrap_or(task.created_at)
}

async fn issues(State(shared): Plain, Path(workspace): Path<String>, body: Bytes) -> Response {
    if body.len() > MAX_BODY {
        return answer(Err(Refused::new(400, format!("the body must not have more than {MAX_BODY} bytes"))));
    }
    answer(decode::<GcCheck>(&body).and_then(|from| {
        let inner = shared.lock();
        workspace::known(&inner, &workspace)?;
        if from.issue_ids.len() > MAX_IDS {
            return Err(Refused::new(400, format!("at most {MAX_IDS} issues can be asked for at once")));
        }
        let found = from.issue_ids.into_iter().map(|id| {
            let subject = Subject::Issue(id.as_str().into());
            match newest(&inner, &subject, |of| of.as_str() == workspace) {
                Some(task) => {
                    let (status, at) = standing(&inner, task, "in_progress");
                    json!({ "id": id, "found": true, "status": status, "updated_at": shape::fine_stamp(at) })
                }
                None => json!({ "id": id, "found": false }),
            }
        });
        Ok(json!({ "issues": found.collect::<Vec<_>>() }))
    }))
}

fn one(shared: &Shared, caller: &Caller, subject: &Subject, otherwise: &str, what: &str) -> Response {
    let inner = shared.lock();
    answer(match newest(&inner, subject, |of| inner.sees(caller, of)) {
        Some(task) => {
            let (status, at) = standing(&inner, task, otherwise);
            Ok(json!({ "status": status, "updated_at": shape::fine_stamp(at) }))
        }
        None => Err(Refused::new(404, format!("{what} not found"))),
    })
}

async fn issue(
    State(shared): Plain,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Response {
    one(&shared, &caller, &Subject::Issue(id.into()), "in_progress", "issue")
}

async fn chat(
    State(shared): Plain,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Response {
    one(&shared, &caller, &Subject::Chat(id.into()), "active", "chat session")
}

async fn autopilot(
    State(shared): Plain,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Response {
    let inner = shared.lock();
    let subject = Subject::Autopilot(id.into());
    answer(match newest(&inner, &subject, |of| inner.sees(&caller, of)) {
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
