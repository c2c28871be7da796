//! Frames of the control link: `{"type": …, "payload": …}`, one per text message.

use super::claim::{ClaimReply, ClaimRequest};
use super::heartbeat::{HeartbeatReply, HeartbeatRequest};
use super::json::{self, DecodeError};
use super::lenient;
use longshore_core::id::{RuntimeId, TaskId, WorkspaceId};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::fmt;

/// Most bytes of a refusal's body that are looked at, as over HTTP.
const MAX_REFUSAL: usize = 4096;

/// A frame to the server.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", content = "payload")]
pub enum Outgoing<'a> {
    /// A runtime is alive.
    #[serde(rename = "daemon:heartbeat")]
    Heartbeat(HeartbeatRequest<'a>),
    /// A claim.
    #[serde(rename = "daemon:rpc_request")]
    Rpc(RpcRequest<'a>),
}

/// A claim over the control link.
#[derive(Clone, Debug, Serialize)]
pub struct RpcRequest<'a> {
    request_id: &'a str,
    method: &'static str,
    body: ClaimRequest<'a>,
    timeout_ms: u64,
}

impl<'a> RpcRequest<'a> {
    /// A claim whose answer will name `request_id`, for which the server takes at most `timeout_ms`.
    pub fn claim(request_id: &'a str, body: ClaimRequest<'a>, timeout_ms: u64) -> Self {
        Self { request_id, method: "tasks.claim", body, timeout_ms }
    }
}

/// A frame from the server.
#[derive(Clone, Debug)]
pub enum Inbound {
    /// There may be work, or work ended.
    TaskAvailable {
        /// For which runtime; `None` means any.
        runtime_id: Option<RuntimeId>,
        /// What was queued; `None` if a task of the runtime ended.
        task_id: Option<TaskId>,
    },
    /// A heartbeat would bring something now.
    PendingWork {
        /// Of which runtime.
        runtime_id: RuntimeId,
    },
    /// Custom runtimes changed.
    ProfilesChanged {
        /// Of which workspace.
        workspace_id: WorkspaceId,
    },
    /// Memberships changed.
    WorkspacesChanged,
    /// The answer to a heartbeat; its `runtime_id` is never empty.
    HeartbeatAck(HeartbeatReply),
    /// The answer to a claim.
    Rpc(RpcResponse),
}

impl Inbound {
    /// Whether losing it is made good by looking at everything once.
    pub const fn is_hint(&self) -> bool {
        !matches!(self, Self::HeartbeatAck(_) | Self::Rpc(_))
    }
}

/// The answer to a claim over the control link. It prints without its body, which may hold credentials.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub struct RpcResponse {
    /// Which claim.
    #[serde(deserialize_with = "lenient::field")]
    pub request_id: String,
    /// As of HTTP; 0 if it was missing.
    #[serde(deserialize_with = "lenient::field")]
    pub status: u16,
    /// What HTTP would have answered.
    #[serde(deserialize_with = "lenient::field")]
    body: Option<Box<RawValue>>,
    /// What went wrong before the claim was looked at; empty if nothing did.
    #[serde(deserialize_with = "lenient::field")]
    pub error: String,
}

impl fmt::Debug for RpcResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {:?} ({} bytes)", self.request_id, self.status, self.error, self.size())
    }
}

impl RpcResponse {
    /// Whether the claim was answered rather than refused.
    pub const fn is_success(&self) -> bool {
        matches!(self.status, 200..=299)
    }

    /// The tasks of a claim that was answered.
    ///
    /// # Errors
    /// If the body is no claim reply: what was handed over is then not known.
    pub fn tasks(&self) -> Result<ClaimReply, DecodeError> {
        ClaimReply::batch(self.body.as_ref().map_or("", |body| body.get()))
    }

    /// What the server said in place of tasks.
    pub fn refusal(&self) -> String {
        if !self.error.is_empty() {
            return self.error.clone();
        }
        let body = self.body.as_ref().map_or("", |body| body.get());
        let end = (0..=body.len().min(MAX_REFUSAL)).rev().find(|at| body.is_char_boundary(*at));
        body[..end.unwrap_or_default()].to_owned()
    }

    /// Bytes that it holds, roughly.
    pub(crate) fn size(&self) -> usize {
        self.request_id.len() + self.error.len() + self.body.as_ref().map_or(0, |body| body.get().len())
    }
}

/// The ids in a hint.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Named {
    #[serde(rename = "runtime_id", deserialize_with = "lenient::field")]
    runtime: Option<String>,
    #[serde(rename = "task_id", deserialize_with = "lenient::field")]
    task: Option<String>,
    #[serde(rename = "workspace_id", deserialize_with = "lenient::field")]
    workspace: Option<String>,
}

/// Reads a frame. `None` for one that is malformed or that this version does not know.
pub fn decode(text: &str) -> Option<Inbound> {
    #[derive(Deserialize)]
    struct Frame<'a> {
        #[serde(borrow, rename = "type")]
        kind: std::borrow::Cow<'a, str>,
        #[serde(borrow, default)]
        payload: Option<&'a RawValue>,
    }
    let frame: Frame<'_> = json::decode(text, "a frame").ok()?;
    let payload = frame.payload.map_or("{}", RawValue::get);
    let some = |id: Option<String>| id.filter(|id| !id.is_empty());
    let ids = || serde_json::from_str::<Named>(payload).ok();
    match &*frame.kind {
        "daemon:task_available" => ids().map(|ids| Inbound::TaskAvailable {
            runtime_id: some(ids.runtime).map(RuntimeId::new),
            task_id: some(ids.task).map(TaskId::new),
        }),
        "daemon:pending_work" => {
            some(ids()?.runtime).map(|id| Inbound::PendingWork { runtime_id: RuntimeId::new(id) })
        }
        "daemon:runtime_profiles_changed" => {
            some(ids()?.workspace).map(|id| Inbound::ProfilesChanged { workspace_id: WorkspaceId::new(id) })
        }
        "daemon:workspaces_changed" => Some(Inbound::WorkspacesChanged),
        "daemon:heartbeat_ack" => {
            let ack: HeartbeatReply = serde_json::from_str(payload).ok()?;
            (!ack.runtime_id.is_empty()).then_some(Inbound::HeartbeatAck(ack))
        }
        "daemon:rpc_response" => serde_json::from_str(payload).ok().map(Inbound::Rpc),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t14_unknown_and_malformed_frames_are_nothing() {
        for text in [
            "",
            "[]",
            "nonsense",
            "{}",
            r#"{"type":7}"#,
            r#"{"type":"task:created","payload":{}}"#,
            r#"{"type":"daemon:heartbeat_ack","payload":{"status":"ok"}}"#,
            r#"{"type":"daemon:heartbeat_ack","payload":"ok"}"#,
            r#"{"type":"daemon:pending_work","payload":{"runtime_id":""}}"#,
            r#"{"type":"daemon:rpc_response","payload":[1]"#,
        ] {
            assert!(decode(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_hint_without_a_runtime_is_for_all() {
        let hint = decode(r#"{"type":"daemon:task_available","payload":{"runtime_id":"","task_id":4}}"#);
        assert!(matches!(hint, Some(Inbound::TaskAvailable { runtime_id: None, task_id: None })), "{hint:?}");
        assert!(matches!(
            decode(r#"{"type":"daemon:workspaces_changed"}"#),
            Some(Inbound::WorkspacesChanged)
        ));
    }

    #[test]
    fn an_answered_claim_is_told_from_a_refused_one() {
        let rpc = |text: &str| match decode(text) {
            Some(Inbound::Rpc(response)) => response,
            other => panic!("{other:?}"),
        };
        let good = rpc(
            r#"{"type":"daemon:rpc_response","payload":{"request_id":"q","status":200,"body":{"tasks":[{"id":"t"}]}}}"#,
        );
        assert!(good.is_success());
        assert_eq!(good.tasks().expect("tasks").tasks[0].id, "t");
        assert_eq!(format!("{good:?}"), "q 200 \"\" (23 bytes)");
        let refused =
            rpc(r#"{"type":"daemon:rpc_response","payload":{"request_id":"q","status":429,"error":"busy"}}"#);
        assert_eq!((refused.is_success(), refused.error.as_str()), (false, "busy"));
        assert!(
            rpc(r#"{"type":"daemon:rpc_response","payload":{"request_id":"q","status":200}}"#)
                .tasks()
                .is_err()
        );
    }
}
