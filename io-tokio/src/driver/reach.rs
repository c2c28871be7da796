//! What is said of a server that does not answer as it should: one line when that begins and one when it is over, not one for each request.

use super::api;
use super::host::Host;
use crate::http::{CallError, RejectKind};
use longshore_core::effect::ApiCall;
use longshore_core::event::ApiReply;
use longshore_core::id::WorkspaceId;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

type Answer = Result<ApiReply, CallError>;

/// What was said, and not yet taken back.
#[derive(Debug)]
pub(super) struct Reach {
    /// Whether the server answered the last request that it could answer.
    reached: AtomicBool,
    /// What nothing is served without, and the status by which it was refused.
    refused: Mutex<BTreeMap<Needed, u16>>,
}

/// What nothing is served without.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Needed {
    List,
    Registration(WorkspaceId),
}

impl Default for Reach {
    fn default() -> Self {
        Self { reached: AtomicBool::new(true), refused: Mutex::default() }
    }
}

/// Takes note of an answer.
pub(super) fn note(host: &Host, call: &ApiCall, answer: &Answer) {
    // One that fails over the control connection is sent again over HTTP, which is what counts.
    if matches!(call, ApiCall::ClaimOver { .. }) {
        return;
    }
    host.reach.note_reached(call, answer);
    let needed = match call {
        ApiCall::Workspaces => Needed::List,
        ApiCall::Register { workspace, .. } => Needed::Registration(workspace.clone()),
        _ => return,
    };
    host.reach.note_needed(needed, answer);
}

impl Reach {
    fn note_reached(&self, call: &ApiCall, answer: &Answer) {
        let reached = match answer {
            Err(CallError::Rejected(refusal)) if refusal.kind == RejectKind::RouteMissing => {
                !api::is_everywhere(call)
            }
            // What is no word of the server was said by something before it.
            Err(CallError::Rejected(refusal)) => api::refusal(refusal).is_some(),
            Ok(_) | Err(CallError::Throttled { .. }) => true,
            // A request that the core itself ended says nothing.
            Err(CallError::Unknown { .. }) => return,
            Err(
                CallError::NotSent { .. } | CallError::ServerError { .. } | CallError::Undecodable { .. },
            ) => false,
        };
        if self.reached.swap(reached, Ordering::Relaxed) != reached {
            match answer {
                Err(error) if !reached => {
                    tracing::warn!(%error, "the server does not answer as it should; it is asked again and again");
                }
                _ => tracing::info!("the server answers again"),
            }
        }
    }

    fn note_needed(&self, needed: Needed, answer: &Answer) {
        let refused = match answer {
            Ok(_) => 0,
            Err(CallError::Rejected(refusal)) => refusal.status,
            // Said above.
            Err(_) => return,
        };
        let mut all = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let before = all.insert(needed.clone(), refused).unwrap_or_default();
        if refused == 0 {
            all.remove(&needed);
        }
        if let Err(error) = answer
            && before != refused
            // What to do about a credential is said where it is kept.
            && refused != 401
        {
            match needed {
                Needed::List => tracing::warn!(
                    "the server does not tell the workspaces; they are asked for again and again: {error}"
                ),
                Needed::Registration(workspace) => tracing::warn!(
                    %workspace,
                    "the server refuses the registration, and nothing of the workspace is served; it is tried again and again: {error}"
                ),
            }
        }
    }
}
