//! The open control channels, and what is pushed to them.

use axum::extract::ws::Message;
use longshore_core::id::{RuntimeId, WorkspaceId};
use longshore_core::plane::Hint;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::{mpsc, watch};

/// The open control channels.
#[derive(Debug)]
pub(super) struct Links {
    open: BTreeMap<u64, Link>,
    next: u64,
    /// Whether nothing is read from them and nothing is written to them, pings and pongs included.
    pub(super) stalled: watch::Sender<bool>,
}

impl Default for Links {
    fn default() -> Self {
        Self { open: BTreeMap::new(), next: 0, stalled: watch::Sender::new(false) }
    }
}

/// One channel, with all that its handshake pinned.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) runtimes: BTreeSet<RuntimeId>,
    pub(super) workspaces: BTreeSet<WorkspaceId>,
    /// Whether it was opened with the user's token and not with a daemon's own.
    pub(super) of_user: bool,
    pub(super) out: mpsc::Sender<Message>,
}

impl Links {
    pub(super) fn add(&mut self, link: Link) -> u64 {
        self.next += 1;
        self.open.insert(self.next, link);
        self.next
    }

    pub(super) fn remove(&mut self, number: u64) {
        self.open.remove(&number);
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Sends a hint to every link that it concerns. A link whose daemon does not read is closed.
    pub(super) fn push(&mut self, hint: &Hint) {
        let frame = match hint {
            Hint::TaskAvailable { runtime, task } => {
                let mut payload = json!({ "runtime_id": runtime.as_str() });
                if let Some(task) = task {
                    payload["task_id"] = task.as_str().into();
                }
                envelope("daemon:task_available", &payload)
            }
            Hint::WorkspacesChanged => envelope("daemon:workspaces_changed", &json!({})),
            Hint::ProfilesChanged { workspace, profile } => {
                let payload =
                    json!({ "workspace_id": workspace.as_str(), "runtime_profile_id": profile.as_str() });
                envelope("daemon:runtime_profiles_changed", &payload)
            }
        };
        self.send_where(&frame, |link| match hint {
            // A hint that names no runtime is for whoever listens.
            Hint::TaskAvailable { runtime, .. } => {
                runtime.as_str().is_empty() || link.runtimes.contains(runtime)
            }
            Hint::WorkspacesChanged => link.of_user,
            Hint::ProfilesChanged { workspace, .. } => link.workspaces.contains(workspace),
        });
    }

    /// Sends the same frame to every link.
    pub(super) fn send(&mut self, frame: &Message) {
        self.send_where(frame, |_| true);
    }

    fn send_where(&mut self, frame: &Message, concerned: impl Fn(&Link) -> bool) {
        self.open.retain(|_, link| !concerned(link) || link.out.try_send(frame.clone()).is_ok());
    }
}

/// A frame of the protocol.
pub(super) fn envelope(kind: &str, payload: &Value) -> Message {
    Message::Text(json!({ "type": kind, "payload": payload }).to_string().into())
}
