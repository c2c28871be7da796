//! Routes that this server does not have. Each is asked for whenever it is needed, as a server may be made newer while the daemon runs; that it
//! is not there is said once in the daemon's life, not with each task.

use super::host::Host;
use crate::http::{CallError, RejectKind};
use longshore_core::effect::ApiCall;
use longshore_core::event::{ApiReply, ClaimKey};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// What was said.
#[derive(Debug, Default)]
pub(super) struct Absent(Mutex<BTreeSet<&'static str>>);

/// A route that older servers do not have and nothing takes the place of: its name, and what goes without it.
const fn missed(call: &ApiCall) -> Option<(&'static str, &'static str)> {
    Some(match call {
        ApiCall::Usage { .. } => (USAGE, "what tasks use is not counted there"),
        ApiCall::CancelAck { .. } => {
            (CANCEL_ACK, "it is not told when a cancelled run is over, and the task stays cancelled")
        }
        ApiCall::Pin { .. } => ("session", "it learns of a task's session with its end only"),
        ApiCall::Lease { .. } => {
            ("prepare-lease", "a task that takes long to prepare may be given out again meanwhile")
        }
        ApiCall::WaitDirectory { .. } => {
            ("wait-local-directory", "it is not told which tasks wait for a directory of this machine")
        }
        ApiCall::RecoverOrphans { .. } => {
            ("recover-orphans", "tasks that a killed daemon left end when the server notices by itself")
        }
        _ => return None,
    })
}

const USAGE: &str = "usage";
const CANCEL_ACK: &str = "cancel-ack";

/// Takes note of an answer.
pub(super) fn note(host: &Host, call: &ApiCall, answer: &Result<ApiReply, CallError>) {
    let missing = answer.as_ref().err().and_then(CallError::rejected_as) == Some(RejectKind::RouteMissing);
    let Some((route, without)) = missed(call).filter(|_| missing) else { return };
    if let ApiCall::Usage { claim } | ApiCall::CancelAck { claim } = call
        && let Some(entry) = host.book.get(*claim)
    {
        entry.ending().unrouted.insert(route);
    }
    if host.absent.is_news(route) {
        tracing::warn!(
            route,
            "this server has no such route: {without}. It is asked again when it is needed; a newer server has it"
        );
    }
}

impl Absent {
    fn is_news(&self, route: &'static str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(route)
    }
}

/// Whether what a task used was refused for want of a route.
pub(super) fn is_usage(book: &crate::book::Book, claim: ClaimKey) -> bool {
    was(book, claim, USAGE)
}

/// Whether the acknowledgement of its cancel was.
pub(super) fn is_cancel_ack(book: &crate::book::Book, claim: ClaimKey) -> bool {
    was(book, claim, CANCEL_ACK)
}

fn was(book: &crate::book::Book, claim: ClaimKey, route: &str) -> bool {
    book.get(claim).is_some_and(|entry| entry.ending().unrouted.contains(route))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_route_is_said_once_in_a_life_and_each_for_itself() {
        let absent = Absent::default();
        assert!(absent.is_news(USAGE));
        assert!(!absent.is_news(USAGE));
        assert!(absent.is_news(CANCEL_ACK));
    }

    #[test]
    fn what_has_another_route_in_its_place_is_not_missed() {
        assert!(missed(&ApiCall::Workspaces).is_none());
        let claim = ClaimKey(1);
        assert_eq!(missed(&ApiCall::Usage { claim }).map(|(route, _)| route), Some(USAGE));
        assert_eq!(missed(&ApiCall::CancelAck { claim }).map(|(route, _)| route), Some(CANCEL_ACK));
    }
}
