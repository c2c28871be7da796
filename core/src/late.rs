//! The late outbox: what could not be delivered while its task held a slot and a directory, and is tried until it is. One request
//! at a time; an entry that fails goes to the back.

use crate::access;
use crate::backoff::Failures;
use crate::effect::{ApiCall, Effect, Fact, Keep, ReportKind};
use crate::env::Cx;
use crate::error::{ApiError, Refusal};
use crate::event::{ApiReply, ClaimKey};
use crate::id::{OpId, RuntimeId, TaskId};
use crate::op::ApiOp;
use crate::task::report;
use crate::timer::TimerKey;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::time::Duration;

/// What one task still has to deliver.
#[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) claim: ClaimKey,
    pub(crate) task: TaskId,
    pub(crate) runtime: RuntimeId,
    pub(crate) report: Option<ReportKind>,
    /// Messages up to this number are taken.
    pub(crate) sent: u32,
    pub(crate) have: u32,
    /// The fate of a post is not known.
    pub(crate) ask: bool,
    /// Tokens were counted and are not reported.
    pub(crate) usage: bool,
    pub(crate) tries: u32,
    /// Its last try before the process ends has failed.
    pub(crate) spent: bool,
}

impl Entry {
    fn is_done(&self) -> bool {
        self.report.is_none() && self.sent >= self.have && !self.usage
    }
}

/// All of it.
#[derive(Debug, Default, Hash, Serialize, Deserialize)]
pub(crate) struct Late {
    queue: VecDeque<Entry>,
    op: Option<(OpId, Sending)>,
    failures: Failures,
    /// The server could not be reached at the last try.
    unreachable: bool,
    /// The last try was refused because of the credential.
    barred: bool,
    /// The process is to end: every entry gets one more try, at once. Entries that had theirs are behind those that had not.
    last: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Sending {
    Report(ReportKind),
    Messages { upto: u32 },
    Known,
    Usage,
}

impl Late {
    pub(crate) fn add(&mut self, cx: &mut Cx<'_>, entry: Entry) {
        if entry.report.is_some() {
            cx.fact(Fact::ReportLate { claim: entry.claim });
        }
        keep(cx, &entry);
        if self.last {
            // Before all that had their last try, and behind the one whose try is on its way.
            self.queue.insert(usize::from(self.op.is_some()).min(self.queue.len()), entry);
            self.send(cx);
            return;
        }
        self.queue.push_back(entry);
        if self.op.is_none() && cx.is_barred() {
            // Its last try was not long ago.
            self.slow_down(cx);
        } else if self.op.is_none() && !cx.env.timers.is_armed(&TimerKey::Late) {
            let base = cx.timing().late_backoff.base;
            cx.arm(TimerKey::Late, base);
        }
    }

    /// Whether the end of this task is still to be told. One that only has messages left may be claimed again.
    pub(crate) fn has(&self, task: &TaskId) -> bool {
        self.unreported().any(|unreported| unreported == task)
    }

    /// Whether something of this claim is still to be delivered.
    pub(crate) fn has_claim(&self, claim: ClaimKey) -> bool {
        self.queue.iter().any(|entry| entry.claim == claim)
    }

    /// Whether the end of a task of this runtime is still to be told.
    pub(crate) fn owes(&self, runtime: &RuntimeId) -> bool {
        self.queue.iter().any(|entry| entry.report.is_some() && entry.runtime == *runtime)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.queue.iter()
    }

    pub(crate) fn unreported(&self) -> impl Iterator<Item = &TaskId> {
        self.queue.iter().filter(|entry| entry.report.is_some()).map(|entry| &entry.task)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The process is to end: what waits is sent now, each entry until it fails once more.
    pub(crate) fn hurry(&mut self, cx: &mut Cx<'_>) {
        self.last = true;
        self.send(cx);
    }

    /// Whether every entry had its last try.
    pub(crate) fn is_spent(&self) -> bool {
        self.op.is_none() && self.queue.front().is_none_or(|entry| entry.spent)
    }

    /// The server answers again: no need to wait out a backoff that has grown, if it could not be reached. If it could, and would not take
    /// the report, other things that it takes are no reason to hurry. The first wait is short, and is waited out: a way on which only the
    /// reports get lost is not filled with them.
    pub(crate) fn nudge(&mut self, cx: &mut Cx<'_>) {
        if self.op.is_none() && self.unreachable && self.failures.is_grown() && !cx.is_barred() {
            self.failures.reset();
            self.send(cx);
        }
    }

    /// The server takes the credential again.
    pub(crate) fn unbarred(&mut self, cx: &mut Cx<'_>) {
        if self.barred && !self.last {
            self.failures.reset();
            self.send(cx);
        }
    }

    /// The machine has slept: the waits that it did not live through are over.
    pub(crate) fn woke(&mut self, cx: &mut Cx<'_>) {
        if self.unreachable && !self.last {
            self.failures.reset();
            self.send(cx);
        }
    }

    /// Sends the next thing of the first entry: the report first, as it is what people wait for, then messages, then usage.
    pub(crate) fn send(&mut self, cx: &mut Cx<'_>) {
        if self.op.is_some() {
            return;
        }
        cx.disarm(&TimerKey::Late);
        let Some(entry) = self.queue.front_mut().filter(|entry| !entry.spent) else { return };
        entry.tries += 1;
        let claim = entry.claim;
        let (sending, call) = match entry.report {
            Some(kind) => (Sending::Report(kind), report::call(kind, claim)),
            None if entry.sent >= entry.have => (Sending::Usage, ApiCall::Usage { claim }),
            None if entry.ask => (Sending::Known, ApiCall::MessagesKnown { claim, after: entry.sent }),
            None => {
                let upto = entry.have;
                (Sending::Messages { upto }, ApiCall::Messages { claim, after: entry.sent, upto })
            }
        };
        let within = cx.timing().request;
        self.op = Some((cx.api(ApiOp::Late, call, within), sending));
    }

    /// It ended.
    pub(crate) fn replied(&mut self, cx: &mut Cx<'_>, op: OpId, result: Result<ApiReply, ApiError>) {
        let Some((_, sending)) = self.op.take_if(|(open, _)| *open == op) else { return };
        let Some(entry) = self.queue.front_mut() else { return };
        self.unreachable = matches!(result, Err(ApiError::NotSent | ApiError::Unknown));
        self.barred = result.as_ref().is_err_and(|error| error.is_about_credential());
        if matches!((sending, &result), (Sending::Messages { .. }, Err(error)) if error.leaves_doubt()) {
            entry.ask = true;
        }
        if let Some(error) = result.as_ref().err().copied().filter(|error| error.is_passing()) {
            self.wait(cx, Some(error));
            return;
        }
        if let (Sending::Report(kind), Ok(reply)) = (sending, &result)
            && report::answer(kind, reply) == report::Answer::Unchanged
        {
            self.wait(cx, None);
            return;
        }
        let (sent, report, usage) = (entry.sent, entry.report, entry.usage);
        settle(cx, entry, sending, result);
        if (entry.report, entry.usage) != (report, usage) && !entry.is_done() {
            keep(cx, entry);
        }
        if entry.is_done() {
            cx.emit(Effect::Forget { claim: entry.claim });
            self.queue.pop_front();
        } else if matches!(sending, Sending::Messages { .. }) && entry.sent == sent {
            // Taken, and nothing of it was: at once again would be a busy loop.
            self.wait(cx, None);
            return;
        }
        self.failures.reset();
        if cx.is_barred() && !self.last && !self.queue.is_empty() {
            // The answer is to a request of before, or may be luck.
            self.slow_down(cx);
        } else {
            self.send(cx);
        }
    }

    /// The next try goes at the pace of what the credential is not good enough for.
    fn slow_down(&mut self, cx: &mut Cx<'_>) {
        self.barred = true;
        access::try_later(cx, TimerKey::Late);
    }

    /// The next try has to wait, and is another entry's if there is one.
    fn wait(&mut self, cx: &mut Cx<'_>, error: Option<ApiError>) {
        if self.last {
            if let Some(mut entry) = self.queue.pop_front() {
                entry.spent = true;
                self.queue.push_back(entry);
            }
            self.send(cx);
            return;
        }
        let timing = &cx.cfg.timers;
        let mut wait = self.failures.next_wait(timing.late_backoff, &mut cx.env.rng);
        if let Some(ApiError::Throttled { retry_after_ms: Some(ms) }) = error {
            wait = wait.max(Duration::from_millis(u64::from(ms)).min(timing.retry_after_cap));
        }
        if cx.is_barred() {
            // Whatever became of this one, the next entry's own last try may have been refused a moment ago.
            self.barred = true;
            wait = wait.max(access::later(cx));
        }
        cx.arm(TimerKey::Late, wait);
        self.queue.rotate_left(1);
    }
}

/// Has what is left written down. The directory is closed, so nothing is left to do in it.
fn keep(cx: &mut Cx<'_>, entry: &Entry) {
    let left =
        Keep::Ended { report: entry.report, have: entry.have, usage: entry.usage, ran: false, path: None };
    cx.emit(Effect::Keep { claim: entry.claim, entry: left });
}

/// Books an answer that is final.
fn settle(cx: &mut Cx<'_>, entry: &mut Entry, sending: Sending, result: Result<ApiReply, ApiError>) {
    let claim = entry.claim;
    match (sending, result) {
        (Sending::Report(report), Ok(reply)) => {
            if let report::Answer::Superseded(status) = report::answer(report, &reply) {
                cx.fact(Fact::ReportSuperseded { claim, status });
            } else {
                cx.fact(Fact::Reported { claim, report, tries: entry.tries });
            }
            entry.report = None;
        }
        (Sending::Report(kind), Err(error)) => {
            let status = if let ApiError::Refused { status, .. } = error { status } else { 0 };
            cx.fact(Fact::ReportRefused { claim, status });
            entry.report = report::after_refusal(kind, error);
            if error.refusal() == Some(Refusal::TaskGone) {
                entry.sent = entry.have;
            }
        }
        (Sending::Messages { upto }, Ok(ApiReply::Known { upto: part })) => {
            entry.sent = entry.sent.max(part.min(upto));
        }
        (Sending::Messages { upto }, Ok(_)) => entry.sent = upto,
        (Sending::Messages { upto }, Err(error)) => {
            let status = if let ApiError::Refused { status, .. } = error { status } else { 0 };
            cx.fact(Fact::MessagesRefused { claim, upto, status });
            entry.sent = upto;
        }
        (Sending::Known, Ok(ApiReply::Known { upto })) => {
            entry.ask = false;
            entry.sent = upto.clamp(entry.sent, entry.have);
        }
        (Sending::Known, _) => entry.ask = false,
        (Sending::Usage, result) => {
            if result.is_err() {
                cx.fact(Fact::UsageLost { claim });
            }
            entry.usage = false;
        }
    }
}
