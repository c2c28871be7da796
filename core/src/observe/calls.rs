//! What a claim's requests need, and what their answers mean for it.

use super::life::{Life, Stage};
use super::{At, Found, report};
use crate::effect::{ApiCall, FsCall, ReportKind};
use crate::error::ApiError;
use crate::event::ApiReply;
use crate::id::OpId;

pub(super) fn api_sent(life: &mut Life, at: &At<'_>, op: OpId, call: &ApiCall, found: &mut Found) {
    let claim = life.offer.claim.0;
    match call {
        ApiCall::Lease { .. } => {
            found.require(life.is_leased(), "INV-119", || {
                format!("the lease of claim {claim} is refreshed after it was stopped")
            });
            found.require(life.lease.is_none(), "INV-120", || {
                format!("the lease of claim {claim} is refreshed twice at once")
            });
            life.lease = Some(op);
            life.lease_at = at.now;
        }
        ApiCall::Start(_) => {
            found.require(life.prepare == Stage::Done && life.slot.is_some(), "I5", || {
                format!("claim {claim} is started before its directory is prepared")
            });
            found.require(life.start.is_none(), "INV-73", || {
                format!("claim {claim} is started twice at once")
            });
            found.require(!life.started && life.runs == 0, "INV-73", || {
                format!("claim {claim} is started again after /start was accepted")
            });
            found.require(!life.ending && life.settling.is_none(), "INV-79", || {
                format!("claim {claim} is started although it is to end")
            });
            let within = at.was_due || at.now <= life.prepare_at.after(at.timing.prepare);
            found
                .require(within, "INV-79", || format!("claim {claim} is started after the prepare deadline"));
            life.start = Some(op);
        }
        ApiCall::Messages { after, upto, .. } => {
            let next = *after == life.sent && upto > after && *upto <= life.have;
            found.require(next, "INV-100", || {
                format!("claim {claim} posts {after}..{upto}, has {}..{}", life.sent, life.have)
            });
            found.require(life.post.is_none() && !life.post_unknown, "MESSAGES-ASK", || {
                format!("claim {claim} posts messages while the fate of others is open")
            });
            life.post = Some(op);
        }
        ApiCall::MessagesKnown { after, .. } => {
            found.require(life.post.is_none() && *after == life.sent, "MESSAGES-ASK", || {
                format!("claim {claim} asks for messages after {after}, sent {}", life.sent)
            });
            life.post = Some(op);
        }
        ApiCall::Usage { .. } => {
            let once = !matches!(life.usage, Stage::Open(_) | Stage::Done);
            found.require(once && life.usage_due && life.run.is_none(), "INV-98", || {
                format!("the usage of claim {claim} is sent twice, or while it runs")
            });
            life.usage = Stage::Open(op);
        }
        ApiCall::Pin { .. } => {
            let once = !matches!(life.pin, Stage::Open(_) | Stage::Done);
            found.require(once && life.session, "INV-102", || {
                format!("the session of claim {claim} is pinned twice, or is not there")
            });
            life.pin = Stage::Open(op);
        }
        ApiCall::Complete { .. } => report::sent(life, at, op, ReportKind::Complete, found),
        ApiCall::Fail { reason, .. } => {
            report::sent(life, at, op, ReportKind::Fail { reason: *reason }, found);
        }
        ApiCall::CancelAck { .. } => report::sent(life, at, op, ReportKind::CancelAck, found),
        _ => {}
    }
}

pub(super) fn fs_sent(life: &mut Life, at: &At<'_>, op: OpId, call: &FsCall, found: &mut Found) {
    let claim = life.offer.claim.0;
    match call {
        FsCall::Prepare { root, slot, .. } => {
            let first = life.prepare == Stage::Not && Some(*slot) == life.slot && *root == life.offer.root;
            found.require(first && !life.ending, "INV-131", || {
                format!("claim {claim} is prepared twice, elsewhere, or although it is to end")
            });
            life.prepare = Stage::Open(op);
            life.prepare_at = at.now;
        }
        FsCall::Unwind { .. } => {
            let idle = life.run.is_none() && !matches!(life.prepare, Stage::Open(_));
            found.require(idle && life.unwind == Stage::Not, "INV-80", || {
                format!("claim {claim} is unwound twice, or while something works in its directory")
            });
            life.unwind = Stage::Open(op);
        }
        FsCall::Seal { record, .. } => {
            found.require(life.seal == Stage::Not && life.dir, "INV-114", || {
                format!("claim {claim} is sealed twice")
            });
            report::sealed(life, at, *record, found);
            life.seal = Stage::Open(op);
        }
        FsCall::Resolve { .. } => {
            let first = life.resolve == Stage::Not && life.waits;
            found.require(first && !life.ending, "INV-91", || {
                format!("claim {claim} looks at a directory of the user twice, or has none")
            });
            life.resolve = Stage::Open(op);
        }
        FsCall::Probe { .. } | FsCall::Act { .. } | FsCall::Scan | FsCall::Collect(_) | FsCall::Maintain => {}
    }
}

pub(super) fn api_closed(
    life: &mut Life,
    at: &At<'_>,
    op: OpId,
    call: &ApiCall,
    result: &Result<ApiReply, ApiError>,
    found: &mut Found,
) {
    let final_answer = !result.as_ref().err().is_some_and(|error| error.is_passing());
    match call {
        ApiCall::Lease { .. } if life.lease == Some(op) => {
            life.lease = None;
            life.lease_at = at.now;
            life.granted(result.is_ok(), at.now);
        }
        ApiCall::WaitDirectory { .. } if result.is_ok() => {
            life.granted(true, at.now);
            if life.lease.is_none() {
                life.lease_at = at.now;
            }
        }
        ApiCall::Start(_) if life.start == Some(op) => life.start_ended(result),
        ApiCall::Status { .. } => life.status(result),
        ApiCall::Messages { upto, .. } if life.post == Some(op) => life.posted(*upto, result),
        ApiCall::MessagesKnown { .. } if life.post == Some(op) => life.known(result),
        ApiCall::Usage { .. } if final_answer => life.usage = Stage::Done,
        ApiCall::Usage { .. } => life.usage = Stage::Failed,
        ApiCall::Pin { .. } if final_answer => life.pin = Stage::Done,
        ApiCall::Pin { .. } => life.pin = Stage::Failed,
        ApiCall::Complete { .. } | ApiCall::Fail { .. } | ApiCall::CancelAck { .. }
            if life.report.open == Some(op) =>
        {
            life.report_ended(result, found);
        }
        _ => {}
    }
}
