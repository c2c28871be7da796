//! Between the end of a run and its report: the temp dir goes, the last messages and the usage go out, and the server is asked once more
//! whether it still wants a report. All at the same time, as far as their order allows.

use super::Task;
use super::outbox::SideKind;
use super::phase::{Phase, Settling};
use crate::effect::{ApiCall, Effect, FsCall, PhaseName, ReportKind};
use crate::env::Cx;
use crate::error::ApiError;
use crate::event::ApiReply;
use crate::id::OpId;
use crate::op::{ApiOp, FsOp, TaskOp};
use crate::timer::TimerKey;

impl Task {
    pub(super) fn enter_settle(&mut self, cx: &mut Cx<'_>, verdict: Option<ReportKind>, ran: bool) {
        let claim = self.claim;
        self.keep_ended(cx, verdict);
        cx.disarm(&TimerKey::Prepare(claim));
        cx.disarm(&TimerKey::StartRetry(claim));
        cx.phase(claim, PhaseName::Settling);
        self.watch.stop(cx, claim);
        let unwind = Some(cx.fs(claim, FsOp::Unwind, FsCall::Unwind { claim }));
        let asks = ran && !matches!(verdict, None | Some(ReportKind::CancelAck));
        let check = asks.then(|| {
            cx.emit(Effect::Progress { claim, step: 2 });
            let within = cx.timing().request;
            cx.api(ApiOp::Task(claim, TaskOp::Check), ApiCall::Status { claim }, within)
        });
        self.messages.hurry(cx, claim);
        let drained = self.messages.is_drained();
        if !drained {
            let drain = cx.timing().drain;
            cx.arm(TimerKey::Drain(claim), drain);
        }
        self.phase = Phase::Settling(Settling { verdict, ran, unwind, check, drained });
        self.settle_on(cx);
    }

    pub(super) fn unwound(&mut self, cx: &mut Cx<'_>, op: OpId) {
        if let Phase::Settling(settling) = &mut self.phase
            && settling.unwind == Some(op)
        {
            settling.unwind = None;
            self.settle_on(cx);
        }
    }

    /// The server's last word before the report.
    pub(super) fn checked(&mut self, cx: &mut Cx<'_>, op: OpId, result: &Result<ApiReply, ApiError>) {
        let Phase::Settling(settling) = &mut self.phase else { return };
        if settling.check != Some(op) {
            return;
        }
        settling.check = None;
        if matches!(result, Ok(ApiReply::Task { status }) if status.is_terminal()) {
            settling.verdict = Some(ReportKind::CancelAck);
            self.record = false;
            self.keep_ended(cx, Some(ReportKind::CancelAck));
        }
        self.settle_on(cx);
    }

    pub(super) fn drain_due(&mut self, cx: &mut Cx<'_>) {
        if let Phase::Settling(settling) = &mut self.phase {
            settling.drained = true;
            self.settle_on(cx);
        }
    }

    /// Goes on to the report once everything before it is done.
    pub(super) fn settle_on(&mut self, cx: &mut Cx<'_>) {
        let Phase::Settling(settling) = &mut self.phase else { return };
        if self.messages.is_drained() {
            settling.drained = true;
        }
        if !settling.drained {
            return;
        }
        cx.env.timers.disarm(&TimerKey::Drain(self.claim));
        self.usage.send(cx, self.claim, SideKind::Usage);
        if !self.usage.is_settled() || settling.unwind.is_some() || settling.check.is_some() {
            return;
        }
        match settling.verdict {
            Some(kind) => self.enter_report(cx, kind),
            None => self.enter_seal(cx),
        }
    }
}
