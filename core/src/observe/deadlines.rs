//! What is on its way ends at its deadline, and not before: only a list may end a registration, and only a stop may end a claim.

use super::seen::Seen;
use super::{At, Found};
use crate::effect::{ApiCall, Effect};
use crate::event::{ApiReply, Event};
use crate::id::{OpId, WorkspaceId};
use crate::said::Said;
use crate::time::Instant;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
struct Open {
    call: ApiCall,
    deadline: Instant,
    cancelled: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct DeadlineBook {
    open: BTreeMap<OpId, Open>,
    /// When the first stop was asked for, and whether it is the plain one.
    stop: Option<(Instant, bool)>,
    /// Somebody asked twice.
    hurry: bool,
}

impl DeadlineBook {
    pub(super) fn step(&mut self, seen: &Seen<'_>, found: &mut Found) {
        let at = &seen.at;
        if let Some(Event::Stop { how }) = seen.event {
            self.hurry |= self.stop.is_some();
            self.stop.get_or_insert((at.now, how.is_plain()));
        }
        let ended = seen.ended();
        if let Some((op, _)) = ended {
            self.open.remove(&op);
        }
        let list = match seen.event {
            Some(Event::Api { r: Ok(ApiReply::Workspaces { list, .. }), .. }) => Some(list.as_slice()),
            _ => None,
        };
        for effect in seen.effects {
            match effect {
                Effect::Api { op, call, deadline } => {
                    let open = Open { call: call.clone(), deadline: *deadline, cancelled: false };
                    self.open.insert(*op, open);
                }
                Effect::Cancel { op } => self.cancelled(at, *op, list, found),
                _ => {}
            }
        }
        if at.due {
            return;
        }
        let plain = matches!(self.stop, Some((_, true)));
        for (op, open) in self.open.iter().filter(|(_, open)| !open.cancelled) {
            found.require(open.deadline > at.now, "DEADLINE", || {
                format!("request {}, {}, is not ended at its deadline", op.0, open.call.said())
            });
            let registers = matches!(open.call, ApiCall::Register { .. });
            found.require(!(plain && registers), "INV-140", || {
                format!("{} goes on although the daemon stops", open.call.said())
            });
        }
    }

    fn cancelled(&mut self, at: &At<'_>, op: OpId, list: Option<&[WorkspaceId]>, found: &mut Found) {
        let Some(open) = self.open.get_mut(&op) else { return };
        open.cancelled = true;
        if at.now >= open.deadline {
            return;
        }
        let call = &open.call;
        match call {
            ApiCall::Complete { .. }
            | ApiCall::Fail { .. }
            | ApiCall::CancelAck { .. }
            | ApiCall::Usage { .. } => {
                found.require(false, "INV-109", || format!("{call} is cut short", call = call.said()));
            }
            ApiCall::Register { workspace, .. } => {
                let dropped = list.is_some_and(|list| !list.contains(workspace));
                found.require(dropped || at.stopping, "INV-20", || {
                    format!("{call} is cut short although its workspace is there", call = call.said())
                });
            }
            ApiCall::Claim(_) | ApiCall::ClaimOne(_) => {
                let waited = self.stop.is_some_and(|(since, _)| at.now >= since.after(at.timing.stop_claims));
                found.require(waited || self.hurry, "I9", || {
                    format!("{call} is cut short although it may bring tasks", call = call.said())
                });
            }
            _ => {}
        }
    }
}
