//! What waits in the late outbox because the server could not be reached goes out as soon as the server answers anything.

use super::ops::{Closed, End};
use super::seen::Seen;
use crate::effect::{ApiCall, Effect};
use crate::error::ApiError;
use crate::event::{ClaimKey, Event, WsEvent};
use crate::id::OpId;
use crate::said::Said;
use crate::time::Instant;

#[derive(Clone, Debug, Default)]
pub(super) struct LateBook {
    /// The one request of the outbox that is on its way.
    open: Option<OpId>,
    /// When the last one ended, if it found nobody.
    unreached: Option<Instant>,
}

impl LateBook {
    pub(super) fn step(&mut self, seen: &Seen<'_>, found: &mut super::Found) {
        let ours = seen.ended().is_some_and(|(op, _)| self.open == Some(op));
        if ours {
            self.open = None;
            let lost = matches!(
                seen.closed,
                Some(Closed { end: End::Api(Err(ApiError::NotSent | ApiError::Unknown)), .. })
            );
            self.unreached = lost.then_some(seen.at.now);
        }
        if seen.at.barred {
            // It waits for the credential then, whatever the server says over a connection that it has.
            self.unreached = None;
        }
        // A task that is here delivers by itself.
        let late = |claim: ClaimKey| seen.view.tasks().all(|task| task.claim != claim);
        for effect in seen.effects {
            if let Effect::Api { op, call, .. } = effect
                && delivers(call).is_some_and(late)
            {
                self.open = Some(*op);
            }
        }
        let answers = match seen.event {
            Some(Event::Api { r, .. }) => r.is_ok() && !ours,
            Some(Event::Ws { ws, .. }) => !matches!(ws, WsEvent::Down | WsEvent::Refused { .. }),
            _ => false,
        };
        // The first wait may be as long as that, with its jitter.
        let grown =
            self.unreached.is_some_and(|at| seen.at.now >= at.after(2 * seen.at.timing.late_backoff.base));
        let waits = self.open.is_none() && seen.view.has_late_reports();
        let excused = seen.excuses() || seen.at.was_due;
        found.require(!answers || !grown || !waits || excused, "LATE-HURRY", || {
            format!(
                "{} is an answer of the server, and what could not be delivered goes on waiting",
                seen.event.said()
            )
        });
    }
}

const fn delivers(call: &ApiCall) -> Option<ClaimKey> {
    match call {
        ApiCall::Complete { claim }
        | ApiCall::Fail { claim, .. }
        | ApiCall::CancelAck { claim }
        | ApiCall::Messages { claim, .. }
        | ApiCall::MessagesKnown { claim, .. }
        | ApiCall::Usage { claim } => Some(*claim),
        _ => None,
    }
}
