//! `/start`: sent once the directory is there, and settled with the server when an answer is lost. Several requests may be needed; at most one
//! is accepted.

use super::Task;
use super::phase::{Phase, Start, StartStep};
use crate::backoff::Failures;
use crate::effect::{ApiCall, PhaseName, ReportKind, StartCall};
use crate::env::Cx;
use crate::error::{ApiError, Refusal};
use crate::event::{ApiReply, TaskStatus};
use crate::id::OpId;
use crate::op::{ApiOp, TaskOp};
use crate::reason::FailReason;
use crate::task::lease::Lease;
use crate::timer::TimerKey;
use crate::token::Prepared;

impl Task {
    pub(super) fn enter_start(&mut self, cx: &mut Cx<'_>, prepared: Prepared, lease: Lease) {
        if self.ending.is_some() {
            self.prepare_failed(cx, lease, FailReason::RuntimeOffline);
            return;
        }
        cx.phase(self.claim, PhaseName::Starting);
        let op = self.call_start(cx, &prepared);
        let start = Start {
            step: StartStep::Calling(op),
            maybe: false,
            refused: None,
            failures: Failures::default(),
        };
        self.phase = Phase::Starting { prepared, lease, start };
    }

    fn call_start(&self, cx: &mut Cx<'_>, prepared: &Prepared) -> OpId {
        let call = ApiCall::Start(StartCall::new(self.claim, prepared));
        let within = cx.timing().request;
        cx.api(ApiOp::Task(self.claim, TaskOp::Start), call, within)
    }

    /// `/start` was answered, or not.
    pub(super) fn start_ended(&mut self, cx: &mut Cx<'_>, op: OpId, result: &Result<ApiReply, ApiError>) {
        let Phase::Starting { start, .. } = &mut self.phase else { return };
        if start.step != StartStep::Calling(op) {
            return;
        }
        match result {
            Ok(_) => self.started(cx),
            Err(_) if self.ending.is_some() => self.start_failed(cx, FailReason::Timeout),
            Err(ApiError::NotSent) => self.start_later(cx, false, None),
            Err(error) => {
                if error.is_passing() && error.refusal().is_none() {
                    start.maybe = true;
                    start.refused = None;
                } else if let ApiError::Refused { status, .. } = error {
                    start.refused = Some(*status);
                }
                self.ask_start(cx);
            }
        }
    }

    fn ask_start(&mut self, cx: &mut Cx<'_>) {
        let claim = self.claim;
        let within = cx.timing().request;
        let op = cx.api(ApiOp::Task(claim, TaskOp::StartStatus), ApiCall::Status { claim }, within);
        if let Phase::Starting { start, .. } = &mut self.phase {
            start.step = StartStep::Asking(op);
        }
    }

    /// The server said where the task is, or did not.
    pub(super) fn start_status(&mut self, cx: &mut Cx<'_>, op: OpId, result: &Result<ApiReply, ApiError>) {
        let Phase::Starting { start, .. } = &mut self.phase else { return };
        if start.step != StartStep::Asking(op) {
            return;
        }
        let (maybe, refused, ending) = (start.maybe, start.refused, self.ending.is_some());
        match result {
            Ok(ApiReply::Task { status }) if status.is_terminal() => self.drop_start(cx),
            Ok(ApiReply::Task { status: TaskStatus::Queued | TaskStatus::Deferred }) => self.drop_start(cx),
            Err(error) if error.refusal() == Some(Refusal::TaskGone) => self.drop_start(cx),
            _ if ending => self.start_failed(cx, FailReason::Timeout),
            Ok(ApiReply::Task { status: TaskStatus::Running }) if maybe => self.started(cx),
            Ok(ApiReply::Task { status: TaskStatus::Dispatched | TaskStatus::WaitingLocalDirectory })
                if refused.is_none_or(|status| matches!(status, 401 | 403)) =>
            {
                // The status is told, so the credential is good for that.
                let refused = refused.map(|status| ApiError::Refused { status, kind: Refusal::Forbidden });
                self.start_later(cx, false, refused);
            }
            Err(error) if error.is_passing() => {
                self.start_later(cx, true, Some(*error));
            }
            Ok(_) | Err(_) => self.start_failed(cx, FailReason::StartRefused),
        }
    }

    fn start_later(&mut self, cx: &mut Cx<'_>, ask: bool, error: Option<ApiError>) {
        let Phase::Starting { start, .. } = &mut self.phase else { return };
        let shape = cx.cfg.timers.start_backoff;
        let mut wait = start.failures.next_wait(shape, &mut cx.env.rng);
        if let Some(error) = error {
            wait = cx.patience(wait, error);
        }
        start.step = StartStep::Waiting { ask };
        cx.arm(TimerKey::StartRetry(self.claim), wait);
    }

    /// The server takes the credential again.
    pub(super) fn start_unbarred(&mut self, cx: &mut Cx<'_>) {
        if let Phase::Starting { start, .. } = &self.phase
            && matches!(start.step, StartStep::Waiting { .. })
        {
            cx.disarm(&TimerKey::StartRetry(self.claim));
            self.start_retry(cx);
        }
    }

    pub(super) fn start_retry(&mut self, cx: &mut Cx<'_>) {
        let Phase::Starting { prepared, start, .. } = &self.phase else { return };
        match start.step {
            StartStep::Waiting { ask: true } => self.ask_start(cx),
            StartStep::Waiting { ask: false } => {
                let op = self.call_start(cx, prepared);
                if let Phase::Starting { start, .. } = &mut self.phase {
                    start.step = StartStep::Calling(op);
                }
            }
            StartStep::Calling(_) | StartStep::Asking(_) => {}
        }
    }

    /// Ends a task whose `/start` is not settled: a request on its way is ended first, as it may still be accepted.
    pub(super) fn interrupt_start(&mut self, cx: &mut Cx<'_>) {
        let Phase::Starting { start, .. } = &self.phase else { return };
        match start.step {
            StartStep::Calling(op) | StartStep::Asking(op) => cx.cancel(op),
            StartStep::Waiting { .. } => self.start_failed(cx, FailReason::RuntimeOffline),
        }
    }

    fn start_failed(&mut self, cx: &mut Cx<'_>, reason: FailReason) {
        let verdict = self.verdict(ReportKind::Fail { reason });
        self.leave_start(cx, verdict);
    }

    /// The task is not ours any more, and nobody wants to hear of it.
    fn drop_start(&mut self, cx: &mut Cx<'_>) {
        self.leave_start(cx, None);
    }

    fn leave_start(&mut self, cx: &mut Cx<'_>, verdict: Option<ReportKind>) {
        if let Phase::Starting { lease, .. } = std::mem::replace(&mut self.phase, Phase::Moving) {
            let _stopped = lease.stop(cx, self.claim);
        }
        self.enter_settle(cx, verdict, false);
    }

    /// The server says that the task runs: the lease ends, then the agent starts.
    fn started(&mut self, cx: &mut Cx<'_>) {
        let claim = self.claim;
        cx.disarm(&TimerKey::Prepare(claim));
        cx.disarm(&TimerKey::StartRetry(claim));
        let Phase::Starting { prepared, lease, .. } = std::mem::replace(&mut self.phase, Phase::Moving)
        else {
            return;
        };
        match lease.stop(cx, claim) {
            Ok(stopped) => self.launch(cx, prepared, stopped, false),
            Err(lease) => self.phase = Phase::LeaseEnding { prepared, lease },
        }
    }

    /// A refresh of the lease ended.
    pub(super) fn lease_ended(&mut self, cx: &mut Cx<'_>, op: OpId, result: &Result<ApiReply, ApiError>) {
        if let Some(lease) = self.phase.lease_mut() {
            let refused = lease.replied(cx, self.claim, op, result);
            if self.ending.is_some() {
                cx.disarm(&TimerKey::Lease(self.claim));
            } else if refused {
                self.watch.check(cx, self.claim);
            }
        } else if matches!(self.phase, Phase::LeaseEnding { .. })
            && let Phase::LeaseEnding { prepared, lease } = std::mem::replace(&mut self.phase, Phase::Moving)
        {
            match lease.stopped(op) {
                Ok(stopped) => self.launch(cx, prepared, stopped, false),
                Err(lease) => self.phase = Phase::LeaseEnding { prepared, lease },
            }
        }
    }
}
