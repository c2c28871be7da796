//! What comes before a terminal report, which one it is, and what may follow it.

use super::life::{Life, Stage};
use super::{At, Found, recovery};
use crate::effect::{Fact, ReportKind};
use crate::event::{Recovered, RunEnd};
use crate::id::OpId;
use crate::said::Said;

/// A report is late after so many tries, or after the time for it and two tries.
const LATE_TRIES: u32 = 6;
const LATE_TRIES_AT_LEAST: u32 = 2;

pub(super) fn sent(life: &mut Life, at: &At<'_>, op: OpId, kind: ReportKind, found: &mut Found) {
    let claim = life.offer.claim.0;
    found.require(life.report.open.is_none(), "I8", || format!("claim {claim} has two reports on their way"));
    found.require(!life.is_reported(), "I8", || {
        format!("claim {claim} is reported again as {kind}", kind = kind.said())
    });
    recovery::reported(life, kind, found);
    match life.report.kind {
        None => first(life, at, kind, found),
        Some(before) if before == kind => {}
        Some(before) => {
            let falls_back = before == ReportKind::Complete
                && matches!(kind, ReportKind::Fail { .. })
                && life.report.refused == Some(false);
            found.require(falls_back, "INV-107", || {
                format!(
                    "claim {claim} is reported as {kind} after {before} (INV-97, INV-108)",
                    kind = kind.said(),
                    before = before.said()
                )
            });
            life.report.refused = None;
        }
    }
    life.report.kind = Some(kind);
    life.report.open = Some(op);
    life.report.tries += 1;
    life.report.first.get_or_insert(at.now);
}

fn first(life: &Life, at: &At<'_>, kind: ReportKind, found: &mut Found) {
    let claim = life.offer.claim.0;
    if !life.dir {
        found.require(matches!(kind, ReportKind::Fail { .. }), "INV-135", || {
            format!("claim {claim} was never run and is reported as {kind}", kind = kind.said())
        });
        return;
    }
    if life.is_untouched() {
        let fails = matches!(kind, ReportKind::Fail { .. });
        found.require(fails && !life.server_ended && !life.lost, "INV-93", || {
            format!(
                "claim {claim} never had its directory, is over on the server, and is reported as {kind}",
                kind = kind.said()
            )
        });
        return;
    }
    found.require(life.run.is_none() && life.start.is_none(), "INV-96", || {
        format!("claim {claim} is reported while it runs or starts")
    });
    found.require(life.unwind == Stage::Done || life.prepare == Stage::Not, "INV-77", || {
        format!("claim {claim} is reported before its temp dir is gone")
    });
    let waited = life.settling.is_some_and(|since| at.now >= since.after(at.timing.drain));
    found.require(life.is_drained() || waited, "INV-99", || {
        format!("claim {claim} is reported with messages {}..{} to send", life.sent, life.have)
    });
    found.require(!life.usage_due || life.usage == Stage::Done || life.usage_late, "INV-98", || {
        format!("claim {claim} is reported before its usage")
    });
    found.require(!life.lost, "LOST", || {
        format!("claim {claim} is reported although the task was taken back")
    });
    let completed = life.outcome.is_some_and(|outcome| outcome.end == RunEnd::Completed);
    match kind {
        ReportKind::Complete => found.require(completed || life.was_owed(kind), "INV-106", || {
            format!("claim {claim} is reported as complete; the agent never said so")
        }),
        ReportKind::Fail { reason } => {
            let said = life.outcome.filter(|outcome| !outcome.resume_rejected).map(|outcome| outcome.end);
            let excused = life.ending || life.forced.is_some() || at.stopping;
            let right = match said {
                Some(RunEnd::Failed { reason: truth }) => reason == truth,
                _ => true,
            };
            found.require(right || excused, "TRUE-REASON", || {
                format!(
                    "claim {claim} is reported as failed with {reason}; the run ended as {said}",
                    reason = reason.said(),
                    said = said.said()
                )
            });
        }
        ReportKind::CancelAck => found.require(life.server_ended || life.was_owed(kind), "INV-94", || {
            format!("claim {claim} is acknowledged as cancelled; nobody cancelled it")
        }),
    }
    found.require(!life.server_ended || kind == ReportKind::CancelAck, "I22", || {
        format!("claim {claim} is reported as {kind}; the server has ended it", kind = kind.said())
    });
    if let Some(reason) = life.forced.filter(|_| !life.server_ended) {
        found.require(kind == ReportKind::Fail { reason }, "FORCED", || {
            format!(
                "claim {claim} was ended by a watchdog ({}) and is reported as {kind}",
                reason.as_str(),
                kind = kind.said()
            )
        });
    }
}

/// INV-114, I13: what seals a directory has settled its report.
pub(super) fn sealed(life: &Life, at: &At<'_>, record: bool, found: &mut Found) {
    let claim = life.offer.claim.0;
    let report = &life.report;
    let out_of_time = report.first.is_some_and(|first| at.now >= first.after(at.timing.report));
    let late = report.tries >= LATE_TRIES || (out_of_time && report.tries >= LATE_TRIES_AT_LEAST);
    let silent = report.kind.is_none() && life.unwind == Stage::Done && life.run.is_none();
    found.require(report.open.is_none() && (life.is_reported() || late || silent), "INV-114", || {
        format!("claim {claim} is sealed before its report is settled")
    });
    let ran = life.outcome.is_some() || matches!(life.recovered, Some(Recovered::Ended { ran: true, .. }));
    let due = ran && !matches!(report.kind, None | Some(ReportKind::CancelAck));
    found.require(!record || due, "INV-114", || {
        format!("claim {claim} is recorded without a report of a run")
    });
}

/// The daemon says how a report went.
pub(super) fn fact(life: &mut Life, fact: &Fact, found: &mut Found) {
    match fact {
        Fact::Reported { claim, report, .. } => {
            let taken = life.report.taken && !life.report.superseded;
            found.require(taken && life.report.kind == Some(*report), "I8", || {
                format!(
                    "claim {} is said to be reported as {report}, and is not",
                    claim.0,
                    report = report.said()
                )
            });
        }
        Fact::ReportRefused { claim, .. } => found.require(life.report.refused.is_some(), "I8", || {
            format!("the report of claim {} is said to be refused, and is not", claim.0)
        }),
        Fact::ReportSuperseded { claim, .. } => found.require(life.report.superseded, "I8", || {
            format!("the report of claim {} is said to be superseded, and is not", claim.0)
        }),
        Fact::ReportLate { .. } => life.report.late = true,
        _ => {}
    }
}
