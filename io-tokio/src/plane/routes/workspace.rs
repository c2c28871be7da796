//! Whose token it is, and what a workspace has.

use super::Plain;
use crate::plane::access::Caller;
use crate::plane::reply::{Refused, answer, json};
use crate::plane::shape;
use crate::plane::shared::{Inner, Shared};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use longshore_core::id::WorkspaceId;
use longshore_core::plane::{Refusal, Workspace};
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) fn router() -> Router<Arc<Shared>> {
    Router::new()
        .route("/api/tokens/current/renew", post(renew))
        .route("/api/me", get(me))
        .route("/api/workspaces", get(workspaces_of_user))
        .route("/api/daemon/workspaces", get(workspaces))
        .route("/api/daemon/workspaces/{workspace}/repos", get(repos))
        .route("/api/daemon/workspaces/{workspace}/runtime-profiles", get(runtime_profiles))
}

async fn renew(State(shared): Plain, Extension(caller): Extension<Caller>) -> Response {
    let (end, renewed) = shared.act(|inner, now| inner.renew(&caller, now));
    json(200, &json!({ "expires_at": end.map(shape::stamp).unwrap_or_default(), "renewed": renewed }))
}

/// Whose token it is: of the one person that there is.
async fn me() -> Response {
    json(200, &json!({ "id": shape::OWNER, "name": "Local", "email": "local@localhost" }))
}

fn list(inner: &Inner, caller: &Caller) -> Vec<Value> {
    let seen = inner.plane.workspaces().filter(|(id, _)| inner.sees(caller, id));
    seen.map(|(id, name)| json!({ "id": id.as_str(), "name": name })).collect()
}

async fn workspaces(
    State(shared): Plain,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Response {
    let list = list(&shared.lock(), &caller);
    if list.is_empty() && !caller.is_user() {
        return Refused::from(Refusal::WorkspaceNotFound).into_response();
    }
    let list = Value::from(list);
    let tag = format!("W/\"{}\"", shape::hex_digest(list.to_string().as_bytes()));
    let known = headers.get(header::IF_NONE_MATCH).is_some_and(|given| given.as_bytes() == tag.as_bytes());
    let mut response = if known { StatusCode::NOT_MODIFIED.into_response() } else { json(200, &list) };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    response
}

async fn workspaces_of_user(State(shared): Plain, Extension(caller): Extension<Caller>) -> Response {
    json(200, &list(&shared.lock(), &caller).into())
}

/// A workspace that is there; who may not see it was turned away before.
pub(super) fn known<'a>(inner: &'a Inner, id: &str) -> Result<&'a Workspace, Refused> {
    inner.plane.workspace(&WorkspaceId::from(id)).ok_or_else(|| Refused::new(404, "not found"))
}

async fn repos(State(shared): Plain, Path(workspace): Path<String>) -> Response {
    let inner = shared.lock();
    answer(known(&inner, &workspace).map(|row| {
        let mut out = shape::repos(row);
        out["workspace_id"] = workspace.as_str().into();
        out
    }))
}

async fn runtime_profiles(State(shared): Plain, Path(workspace): Path<String>) -> Response {
    let inner = shared.lock();
    answer(known(&inner, &workspace).map(|_| {
        let id = WorkspaceId::from(workspace.as_str());
        let enabled = inner.plane.profiles(&id).filter(|row| row.spec.enabled);
        let list: Vec<_> = enabled.map(shape::profile).collect();
        json!({ "workspace_id": workspace, "runtime_profiles": list })
    }))
}
