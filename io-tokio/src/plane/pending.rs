//! What people ask runtimes for: handed out with the answers to beats, over HTTP and on a control channel alike, and the results.

use super::decode::decode;
use super::reply::{Refused, answer};
use super::server::Server;
use super::shared::{Inner, Shared};
use super::waiting::WaitError;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::post;
use longshore_core::event::ActionKind;
use longshore_core::id::{ActionId, RuntimeId};
use longshore_core::plane::{Ask, Refusal, RequestState};
use longshore_core::time::Now;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

type Plain = State<Arc<Shared>>;
type Ids = Path<(String, String)>;

/// What daemons said of requests that the plane remembers.
pub(super) type Results = BTreeMap<ActionId, Arc<Value>>;

/// How a request ended, and what the daemon said of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How.
    pub state: RequestState,
    /// The daemon's words; null if it said nothing.
    pub said: Arc<Value>,
}

pub(super) fn router() -> Router<Arc<Shared>> {
    const RUNTIME: &str = "/api/daemon/runtimes/{runtime}";
    let at = |path: &str| format!("{RUNTIME}/{path}/result");
    Router::new()
        .route(&at("update/{request}"), post(update))
        .route(&at("models/{request}"), post(models))
        .route(&at("local-skills/{request}"), post(local_skills))
        .route(&at("local-skills/import/{request}"), post(import))
}

/// Adds to the answer to a beat what is asked of the runtime.
pub(super) fn add_to(
    answer: &mut Map<String, Value>,
    inner: &mut Inner,
    now: Now,
    runtime: &RuntimeId,
    takes_list: bool,
) {
    let mut imports = Vec::new();
    for (id, ask) in inner.plane.answer_beat(now, runtime, takes_list) {
        let id = id.as_str();
        match ask {
            Ask::Update { target_version } => {
                let asked = json!({ "id": id, "target_version": *target_version });
                answer.insert("pending_update".into(), asked);
            }
            Ask::Models => {
                answer.insert("pending_model_list".into(), json!({ "id": id }));
            }
            Ask::LocalSkills => {
                answer.insert("pending_local_skills".into(), json!({ "id": id }));
            }
            Ask::ImportSkill { skill_key } => imports.push(json!({ "id": id, "skill_key": *skill_key })),
        }
    }
    if let Some(first) = imports.first() {
        answer.insert("pending_local_skill_import".into(), first.clone());
        if takes_list {
            answer.insert("pending_local_skill_imports".into(), imports.into());
        }
    }
}

async fn update(State(shared): Plain, Path(ids): Ids, body: Bytes) -> Response {
    take(&shared, ids, ActionKind::Update, &body)
}

async fn models(State(shared): Plain, Path(ids): Ids, body: Bytes) -> Response {
    take(&shared, ids, ActionKind::Models, &body)
}

async fn local_skills(State(shared): Plain, Path(ids): Ids, body: Bytes) -> Response {
    take(&shared, ids, ActionKind::LocalSkills, &body)
}

async fn import(State(shared): Plain, Path(ids): Ids, body: Bytes) -> Response {
    take(&shared, ids, ActionKind::ImportSkill, &body)
}

fn take(shared: &Shared, (runtime, id): (String, String), kind: ActionKind, body: &[u8]) -> Response {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Said {
        status: String,
    }
    let (runtime, id) = (RuntimeId::new(runtime), ActionId::new(id));
    answer(decode::<Value>(body).and_then(|said| {
        let Said { status } = Said::deserialize(&said).unwrap_or_default();
        let completed = match (kind, status.as_str()) {
            (_, "completed") => true,
            // It says that it has begun.
            (ActionKind::Update, "running") => return Ok(json!({ "status": "ok" })),
            (ActionKind::Update, other) if other != "failed" => {
                return Err(Refused::new(400, format!("invalid status: {other}")));
            }
            _ => false,
        };
        shared.act(|inner, now| {
            if inner.plane.finish(now, &runtime, (&id, kind), completed)? {
                let Inner { plane, results, .. } = inner;
                results.retain(|id, _| plane.request(id).is_some());
                results.insert(id.clone(), Arc::new(said));
            }
            Ok(json!({ "status": "ok" }))
        })
    }))
}

impl Server {
    /// Asks a runtime for something; the daemon is told on its control channel that a beat brings it.
    ///
    /// # Errors
    /// See [`Plane::ask`](super::Plane::ask).
    pub fn ask(&self, runtime: &RuntimeId, ask: Ask) -> Result<ActionId, Refusal> {
        self.with_plane(|plane, now| plane.ask(now, runtime, ask))
    }

    /// Waits until a request is over.
    ///
    /// # Errors
    /// [`WaitError::TimedOut`], also if it is not known any more.
    pub async fn outcome(&self, request: &ActionId, within: Duration) -> Result<Outcome, WaitError> {
        let over = |inner: &Inner| {
            let state = inner.plane.request(request).map(|it| it.state).filter(|state| state.is_over())?;
            let said = inner.results.get(request).cloned().unwrap_or_default();
            Some(Outcome { state, said })
        };
        self.shared().until(within, over).await
    }
}
