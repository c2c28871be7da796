//! What a task waits for: what its phase says, and what has to be tried again.

use super::course::{How, Tried};
use super::scene::Scene;
use crate::effect::PhaseName;
use crate::story::{At, Ending, RequestIx, RequestKind, Span, TaskIx, Wait, WaitReason};

impl Tried {
    /// What a request is a try of.
    pub(super) const fn of(kind: RequestKind) -> Option<Self> {
        Some(match kind {
            RequestKind::Start => Self::Start,
            RequestKind::Messages | RequestKind::MessagesKnown => Self::Messages,
            RequestKind::Usage => Self::Usage,
            RequestKind::Pin => Self::Pin,
            RequestKind::Complete | RequestKind::Fail | RequestKind::CancelAck => Self::Report,
            _ => return None,
        })
    }
}

impl Scene<'_> {
    fn add_wait(&mut self, task: TaskIx, reason: WaitReason, span: Span) -> usize {
        let waits = &mut self.story[task].waits;
        waits.push(Wait { span, reason });
        waits.len() - 1
    }

    /// The task waits for as long as it is in its phase.
    pub(super) fn wait_in_phase(&mut self, task: TaskIx, reason: WaitReason, span: Span) {
        self.end_phase_wait(task, How::Over);
        let nth = self.add_wait(task, reason, span);
        self.course.held(task).phase_wait = Some(nth);
    }

    pub(super) fn end_phase_wait(&mut self, task: TaskIx, how: How) {
        if let Some(nth) = self.course.alive.get_mut(&task).and_then(|held| held.phase_wait.take()) {
            self.close_wait(task, nth, how);
        }
    }

    fn close_wait(&mut self, task: TaskIx, nth: usize, how: How) {
        let end = self.end(self.story[task].waits[nth].span, how);
        self.story[task].waits[nth].span.close(end);
    }

    /// What the task's wait in its phase is about is known better now.
    pub(super) fn waits_for_directory(&mut self, task: TaskIx, of: Option<TaskIx>, gave_up: bool) {
        let Some(nth) = self.course.alive.get(&task).and_then(|held| held.phase_wait) else { return };
        if let WaitReason::Directory { holder, parked } = &mut self.story[task].waits[nth].reason {
            *holder = holder.or(of);
            *parked |= gave_up;
        }
    }

    /// A try did not succeed. Unless another one is sent in this step, it waits.
    pub(super) fn try_failed(&mut self, task: TaskIx, what: Tried, request: RequestIx, after: Ending) {
        self.course.held(task).failed.push((what, request, after));
    }

    /// It is tried again, or need not be any more.
    pub(super) fn end_retry(&mut self, task: TaskIx, what: Tried, how: How) {
        let Some(held) = self.course.alive.get_mut(&task) else { return };
        held.failed.retain(|(failed, ..)| *failed != what);
        if let Some(nth) = held.retry_waits.remove(&what) {
            self.close_wait(task, nth, how);
        }
    }

    pub(super) fn drop_retries(&mut self, task: TaskIx, how: How) {
        for what in [Tried::Start, Tried::Messages, Tried::Usage, Tried::Pin, Tried::Report] {
            self.end_retry(task, what, how);
        }
    }

    /// What failed in this step and was not tried again in it waits from now on.
    pub(super) fn settle_retries(&mut self, task: TaskIx) {
        let Some(held) = self.course.alive.get_mut(&task) else { return };
        let asks = held.asking.is_some();
        for (what, request, after) in std::mem::take(&mut held.failed) {
            let starting = self.phase_of(task) == Some(PhaseName::Starting);
            if what == Tried::Start && (asks || !starting) {
                continue;
            }
            self.end_retry(task, what, How::Over);
            let nth = self.add_wait(task, WaitReason::Retry { request, after }, Span::from(self.at));
            if let Some(held) = self.course.alive.get_mut(&task) {
                held.retry_waits.insert(what, nth);
            }
        }
    }

    /// The phase that a task is in.
    pub(super) fn phase_of(&self, task: TaskIx) -> Option<PhaseName> {
        let last = self.story[task].phases.last()?;
        last.span.is_open().then_some(last.name)
    }

    pub(super) fn end_phase(&mut self, task: TaskIx, how: How) {
        self.end_phase_wait(task, how);
        if let Some(span) = self.story[task].phases.last().map(|phase| phase.span) {
            let end = self.end(span, how);
            self.story[task].phases.iter_mut().rev().take(1).for_each(|phase| phase.span.close(end));
        }
    }

    /// `/start` is accepted, and the agent is not launched in this step: the lease has to end.
    pub(super) fn settle_start(&mut self, task: TaskIx) {
        let held = self.course.alive.get_mut(&task);
        let accepted = held.is_some_and(|held| std::mem::take(&mut held.accepted));
        if accepted && self.phase_of(task) == Some(PhaseName::Starting) {
            self.wait_in_phase(task, WaitReason::LeaseEnd, Span::from(self.at));
        }
    }

    /// When a request was sent, if the trace has it.
    pub(super) fn sent(&self, request: RequestIx) -> Option<At> {
        self.story[request].span.begin.seen()
    }
}
