//! The daemon's calls about one task.

use super::{Plain, ended, ok, task_id};
use crate::plane::decode::{Ending, Messages, OneMessage, Progress, Session, UsageReport, Wait, decode};
use crate::plane::reply::{Refused, answer, json};
use crate::plane::shape;
use crate::plane::shared::{Inner, Shared};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use longshore_core::id::{RuntimeId, TaskId};
use longshore_core::plane::{CancelAck, Completion, Failure, Message, Plane, Refusal, Task};
use longshore_core::time::Now;
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) fn router() -> Router<Arc<Shared>> {
    Router::new()
        .route("/api/daemon/runtimes/{runtime}/tasks/{task}/prepare-lease", post(prepare_lease))
        .route("/api/daemon/tasks/{task}/wait-local-directory", post(wait_local_directory))
        .route("/api/daemon/tasks/{task}/start", post(start))
        .route("/api/daemon/tasks/{task}/progress", post(progress))
        .route("/api/daemon/tasks/{task}/messages", post(post_messages).get(messages))
        .route("/api/daemon/tasks/{task}/session", post(session))
        .route("/api/daemon/tasks/{task}/usage", post(usage))
        .route("/api/daemon/tasks/{task}/status", get(status))
        .route("/api/daemon/tasks/{task}/complete", post(complete))
        .route("/api/daemon/tasks/{task}/fail", post(fail))
        .route("/api/daemon/tasks/{task}/cancel-ack", post(cancel_ack))
        .route("/api/daemon/tasks/{task}/gc-check", get(gc_check))
}

pub(super) fn row(inner: &Inner, task: &Task) -> Value {
    Value::Object(shape::task_row(task, &inner.content(task.payload)))
}

/// A call that answers the task's row.
fn moved(
    shared: &Shared,
    id: &TaskId,
    call: impl FnOnce(&mut Plane, Now) -> Result<(), Refusal>,
) -> Response {
    answer(shared.act(|inner, now| {
        call(&mut inner.plane, now)?;
        let task = inner.plane.task(id).ok_or(Refusal::TaskNotFound)?;
        Ok(row(inner, task))
    }))
}

async fn prepare_lease(State(shared): Plain, Path((runtime, task)): Path<(String, String)>) -> Response {
    let (runtime, id) = (RuntimeId::new(runtime), task_id(task));
    moved(&shared, &id, |plane, now| plane.prepare_lease(now, &runtime, &id).map(drop))
}

async fn wait_local_directory(State(shared): Plain, Path(task): Path<String>, body: Bytes) -> Response {
    let given = if body.is_empty() { Ok(Wait::default()) } else { decode(&body) };
    match given {
        Ok(Wait { reason }) => {
            let id = task_id(task);
            moved(&shared, &id, |plane, now| plane.wait_local_directory(now, &id, &reason).map(drop))
        }
        Err(refused) => refused.into_response(),
    }
}

async fn start(State(shared): Plain, Path(task): Path<String>) -> Response {
    let id = task_id(task);
    moved(&shared, &id, |plane, now| plane.start(now, &id).map(drop))
}

/// Shown to people who look in the real server, and stored nowhere.
async fn progress(State(shared): Plain, Path(task): Path<String>, body: Bytes) -> Response {
    answer(decode::<Progress>(&body).and_then(|step| {
        shared.lock().plane.status(&task_id(task))?;
        tracing::debug!(step = step.step, total = step.total, "progress: {}", step.summary);
        Ok(ok())
    }))
}

async fn post_messages(State(shared): Plain, Path(task): Path<String>, body: Bytes) -> Response {
    answer(decode::<Messages>(&body).and_then(|from| {
        let id = task_id(task);
        shared.act(|inner, now| {
            let batch = from.messages.into_iter().map(|message| stored(message, now)).collect();
            inner.plane.post_messages(&id, batch)
        })?;
        Ok(ok())
    }))
}

fn stored(from: OneMessage, at: Now) -> Message {
    Message {
        seq: from.seq,
        kind: from.r#type,
        tool: Some(from.tool).filter(|text| !text.is_empty()),
        content: Some(from.content).filter(|text| !text.is_empty()),
        input: from.input.map(|input| Value::Object(input).to_string().into()),
        output: Some(from.output).filter(|text| !text.is_empty()),
        at,
    }
}

async fn messages(State(shared): Plain, Path(task): Path<String>, RawQuery(query): RawQuery) -> Response {
    let since = url::form_urlencoded::parse(query.as_deref().unwrap_or_default().as_bytes())
        .find(|(name, _)| name == "since")
        .map_or(Ok(0), |(_, value)| value.parse::<i64>());
    let Ok(since) = since else {
        return Refused::new(400, "since must be a whole number").into_response();
    };
    let (inner, id) = (shared.lock(), task_id(task));
    let list = inner.plane.messages_since(&id, since);
    answer(list.map_err(Refused::from).map(|list| {
        let rows =
            list.into_iter().filter_map(|message| Some(shape::message(inner.plane.task(&id)?, message)));
        Value::Array(rows.collect())
    }))
}

async fn session(State(shared): Plain, Path(task): Path<String>, body: Bytes) -> Response {
    let done = decode::<Session>(&body).and_then(|from| {
        let id = task_id(task);
        Ok(shared.act(|inner, _| inner.plane.pin_session(&id, &from.session_id, &from.work_dir))?)
    });
    done.map_or_else(IntoResponse::into_response, |()| StatusCode::NO_CONTENT.into_response())
}

async fn usage(State(shared): Plain, Path(task): Path<String>, body: Bytes) -> Response {
    answer(decode::<UsageReport>(&body).and_then(|from| {
        let rows = from.usage.into_iter().map(Into::into).collect();
        shared.act(|inner, _| inner.plane.report_usage(&task_id(task), rows))?;
        Ok(ok())
    }))
}

async fn status(State(shared): Plain, Path(task): Path<String>) -> Response {
    let state = shared.lock().plane.status(&task_id(task));
    answer(state.map(|state| json!({ "status": state.as_str() })).map_err(Into::into))
}

async fn complete(State(shared): Plain, Path(task): Path<String>, body: Bytes) -> Response {
    let from: Ending = match decode(&body) {
        Ok(from) => from,
        Err(refused) => return refused.into_response(),
    };
    let id = task_id(task);
    let with = Completion {
        output: from.output,
        pr_url: from.pr_url,
        session_id: from.session_id,
        work_dir: from.work_dir,
        durable_work_dir: from.durable_work_dir,
        branch_name: from.branch_name,
        session_rollout_missing: from.session_rollout_missing,
        retired_session_id: from.retired_session_id,
    };
    moved(&shared, &id, |plane, now| plane.complete(now, &id, with).map(drop))
}

async fn fail(State(shared): Plain, Path(task): Path<String>, body: Bytes) -> Response {
    let from: Ending = match decode(&body) {
        Ok(from) => from,
        Err(refused) => return refused.into_response(),
    };
    let id = task_id(task);
    let with = Failure {
        error: from.error,
        failure_reason: from.failure_reason,
        session_id: from.session_id,
        work_dir: from.work_dir,
        durable_work_dir: from.durable_work_dir,
        branch_name: from.branch_name,
        session_rollout_missing: from.session_rollout_missing,
        retired_session_id: from.retired_session_id,
    };
    moved(&shared, &id, |plane, now| plane.fail(now, &id, &with).map(drop))
}

async fn cancel_ack(State(shared): Plain, Path(task): Path<String>, body: Bytes) -> Response {
    // A body that cannot be read is as good as an empty one here.
    let from: Ending = decode(&body).unwrap_or_default();
    let with = CancelAck {
        branch_name: from.branch_name,
        durable_work_dir: from.durable_work_dir,
        error_message: from.error_message,
        failure_reason: from.failure_reason,
    };
    let done = shared.act(|inner, _| inner.plane.ack_cancel(&task_id(task), &with));
    answer(done.map(|()| ok()).map_err(Into::into))
}

async fn gc_check(State(shared): Plain, Path(task): Path<String>) -> Response {
    let inner = shared.lock();
    match inner.plane.task(&task_id(task)) {
        Some(task) => json(200, &json!({ "status": task.state.as_str(), "completed_at": ended(task) })),
        None => Refused::from(Refusal::TaskNotFound).into_response(),
    }
}
