//! The terminal report: tried until the server takes it. A credential that is refused is a reason to wait, not to give up.

use crate::backoff::Failures;
use crate::effect::{ApiCall, Fact, ReportKind};
use crate::env::Cx;
use crate::error::{ApiError, Refusal};
use crate::event::{ApiReply, ClaimKey, TaskStatus};
use crate::id::OpId;
use crate::op::{ApiOp, TaskOp};
use crate::reason::FailReason;
use crate::time::Instant;
use crate::timer::TimerKey;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// After so many tries the report goes on in the late outbox.
const TRIES: u32 = 6;
/// A report is not late before it had this many tries, however much time a sleeping machine lost.
const TRIES_AT_LEAST: u32 = 2;

/// One task's report.
#[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Report {
    kind: ReportKind,
    op: Option<OpId>,
    tries: u32,
    failures: Failures,
    /// The last try found nobody.
    unreachable: bool,
    /// The last try was refused because of the credential.
    barred: bool,
    since: Instant,
}

/// What became of a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Another one follows.
    Wait,
    /// A report of another kind takes its place, and is to be sent.
    Another,
    /// The server took it, or will never.
    Settled,
    /// It is for the late outbox.
    Late,
}

/// The request for a kind of report.
pub(crate) fn call(kind: ReportKind, claim: ClaimKey) -> ApiCall {
    match kind {
        ReportKind::Complete => ApiCall::Complete { claim },
        ReportKind::Fail { reason } => ApiCall::Fail { claim, reason },
        ReportKind::CancelAck => ApiCall::CancelAck { claim },
    }
}

/// What follows from a refusal that will not pass: a completion becomes a failure, anything else ends here.
pub(crate) fn after_refusal(kind: ReportKind, error: ApiError) -> Option<ReportKind> {
    let gone = error.refusal() == Some(Refusal::TaskGone);
    (kind == ReportKind::Complete && !gone).then_some(ReportKind::Fail { reason: FailReason::ReportRefused })
}

/// What a success says about a report. It is none by itself: a server that does not act answers with the row as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The task has ended on the server, by this report or another one.
    Taken,
    /// The task still runs as the server sees it: the report is to be sent again.
    Unchanged,
    /// The task was queued again meanwhile, and is not this claim's any more.
    Superseded(TaskStatus),
}

/// Reads a success.
pub(crate) fn answer(kind: ReportKind, reply: &ApiReply) -> Answer {
    match (kind, reply) {
        (ReportKind::Complete | ReportKind::Fail { .. }, ApiReply::Task { status }) => match status {
            TaskStatus::Running => Answer::Unchanged,
            TaskStatus::Queued
            | TaskStatus::Deferred
            | TaskStatus::Dispatched
            | TaskStatus::WaitingLocalDirectory => Answer::Superseded(*status),
            // A state that this version does not know is no reason to insist.
            TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Cancelled | TaskStatus::Other => {
                Answer::Taken
            }
        },
        _ => Answer::Taken,
    }
}

impl Report {
    pub(crate) fn new(cx: &Cx<'_>, kind: ReportKind) -> Self {
        Self {
            kind,
            op: None,
            tries: 0,
            failures: Failures::default(),
            unreachable: false,
            barred: false,
            since: cx.now.mono,
        }
    }

    pub(crate) const fn kind(&self) -> ReportKind {
        self.kind
    }

    pub(crate) const fn tries(&self) -> u32 {
        self.tries
    }

    pub(crate) fn send(&mut self, cx: &mut Cx<'_>, claim: ClaimKey) {
        if self.op.is_none() {
            self.tries += 1;
            let within = cx.timing().request;
            self.op = Some(cx.api(ApiOp::Task(claim, TaskOp::Report), call(self.kind, claim), within));
        }
    }

    pub(crate) fn replied(
        &mut self,
        cx: &mut Cx<'_>,
        claim: ClaimKey,
        op: OpId,
        result: Result<ApiReply, ApiError>,
    ) -> Step {
        if self.op != Some(op) {
            return Step::Wait;
        }
        self.op = None;
        match result {
            Ok(reply) => match answer(self.kind, &reply) {
                Answer::Taken => {
                    cx.fact(Fact::Reported { claim, report: self.kind, tries: self.tries });
                    Step::Settled
                }
                Answer::Unchanged => self.wait(cx, claim, None),
                Answer::Superseded(status) => {
                    cx.fact(Fact::ReportSuperseded { claim, status });
                    Step::Settled
                }
            },
            Err(error) if error.is_passing() => self.wait(cx, claim, Some(error)),
            Err(error) => {
                let status = if let ApiError::Refused { status, .. } = error { status } else { 0 };
                cx.fact(Fact::ReportRefused { claim, status });
                let Some(next) = after_refusal(self.kind, error) else { return Step::Settled };
                *self = Self::new(cx, next);
                Step::Another
            }
        }
    }

    /// Whether it waits longer than it did at first because nobody was there: then the wait ends as soon as the server answers anything.
    pub(crate) const fn waits_for_server(&self) -> bool {
        self.op.is_none() && self.unreachable && self.failures.is_grown()
    }

    /// The server takes the credential again.
    pub(crate) fn unbarred(&mut self, cx: &mut Cx<'_>, claim: ClaimKey) {
        if self.barred && self.op.is_none() {
            cx.disarm(&TimerKey::ReportRetry(claim));
            self.send(cx, claim);
        }
    }

    fn wait(&mut self, cx: &mut Cx<'_>, claim: ClaimKey, error: Option<ApiError>) -> Step {
        self.unreachable = matches!(error, Some(ApiError::NotSent | ApiError::Unknown));
        self.barred = error.is_some_and(ApiError::is_about_credential);
        if error.and_then(ApiError::refusal) == Some(Refusal::Unauthorized) {
            cx.fact(Fact::Unauthorized);
        }
        let timing = &cx.cfg.timers;
        let out_of_time = cx.now.mono.since(self.since) >= timing.report && self.tries >= TRIES_AT_LEAST;
        if self.tries >= TRIES || out_of_time {
            return Step::Late;
        }
        let mut wait = self.failures.next_wait(timing.report_backoff, &mut cx.env.rng);
        if let Some(ApiError::Throttled { retry_after_ms: Some(ms) }) = error {
            wait = wait.max(Duration::from_millis(u64::from(ms)).min(timing.retry_after_cap));
        }
        if let Some(error) = error {
            wait = cx.patience(wait, error);
        }
        cx.arm(TimerKey::ReportRetry(claim), wait);
        Step::Wait
    }
}
