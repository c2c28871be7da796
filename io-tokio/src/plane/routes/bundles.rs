//! The bodies of skills, and the plugins that this plane does not have.

use super::{Plain, task_id};
use crate::plane::decode::{Resolve, decode};
use crate::plane::reply::{Answered, Refused, answer};
use crate::plane::shared::Shared;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use longshore_core::id::RuntimeId;
use serde_json::json;
use std::sync::Arc;

/// Skills whose texts are fixed: another hash than the one that was asked for is refused.
const PINNED: &str = "plugin";

pub(super) fn router() -> Router<Arc<Shared>> {
    Router::new()
        .route("/api/daemon/runtimes/{runtime}/tasks/{task}/skill-bundles/resolve", post(resolve))
        .route("/api/daemon/tasks/{task}/plugin-mcp/{contribution}/credential", get(no_plugins))
        .route("/api/daemon/tasks/{task}/plugin-hooks", post(no_plugins))
}

async fn resolve(
    State(shared): Plain,
    Path((runtime, task)): Path<(String, String)>,
    body: Bytes,
) -> Response {
    answer(decode::<Resolve>(&body).and_then(|from| bundles(&shared, &RuntimeId::new(runtime), task, &from)))
}

fn bundles(shared: &Shared, runtime: &RuntimeId, task: String, from: &Resolve) -> Answered {
    let incomplete =
        from.skills.iter().any(|it| it.id.is_empty() || it.source.is_empty() || it.hash.is_empty());
    if incomplete {
        return Err(Refused::new(400, "each skill needs id, source and hash"));
    }
    let inner = shared.lock();
    let agent = inner.plane.preparing(runtime, &task_id(task))?.agent.clone();
    let skills = inner.skills(&agent);
    let mut out = Vec::with_capacity(from.skills.len());
    for wanted in &from.skills {
        let found = skills.iter().find(|it| it.id == wanted.id && it.source == wanted.source);
        let Some(skill) = found else {
            return Err(Refused::new(404, "skill bundle not found"));
        };
        if skill.source == PINNED && skill.hash() != wanted.hash {
            return Err(Refused::new(409, "the plugin has another version of this skill by now"));
        }
        out.push(skill.bundle());
    }
    Ok(json!({ "bundles": out }))
}

async fn no_plugins() -> Response {
    Refused::new(503, "plugins are not enabled").into_response()
}
