//! The cancel watch: every 5 s, and when a hint says so, the server is asked whether the task still stands.

use crate::effect::ApiCall;
use crate::env::Cx;
use crate::error::{ApiError, Refusal};
use crate::event::{ApiReply, ClaimKey, TaskStatus};
use crate::id::OpId;
use crate::op::{ApiOp, TaskOp};
use crate::time::Instant;
use crate::timer::TimerKey;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// So many looks in a row must find no such task before it is believed.
const MISSING_LOOKS: u32 = 3;
/// Looks that hints ask for are at least this far apart: a storm of hints is no storm of looks.
const HINT_GAP: Duration = Duration::from_millis(500);

/// One task's watch.
#[derive(Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Watch {
    op: Option<OpId>,
    again: bool,
    missing: u32,
    missing_since: Option<Instant>,
    stopped: bool,
    /// When the last look was sent.
    looked: Option<Instant>,
    /// Whether it waits in the line of those for whose look there was no room.
    queued: bool,
}

/// What a look found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The task stands, or nothing is known.
    Stands,
    /// The task has ended on the server.
    Ended,
    /// The task went back to the queue, or is not known any more.
    Lost,
}

impl Watch {
    /// A watch whose first look is one period away.
    pub(crate) fn start(cx: &mut Cx<'_>, claim: ClaimKey) -> Self {
        let period = cx.timing().watch;
        cx.arm(TimerKey::Watch(claim), period);
        Self::default()
    }

    /// A hint, or something like it, says that a look may find something: at once if the last one is long enough ago, else as soon as it is. If
    /// one is on its way, once more after it, however often this is asked for. While the server refuses the credential it would find nothing.
    pub(crate) fn hinted(&mut self, cx: &mut Cx<'_>, claim: ClaimKey) {
        self.queued = false;
        if self.stopped || cx.is_barred() {
            return;
        }
        if self.op.is_some() {
            self.again = true;
            return;
        }
        let due = self.looked.map_or(cx.now.mono, |at| at.after(HINT_GAP));
        if due <= cx.now.mono {
            self.check(cx, claim);
        } else if cx.env.timers.at(&TimerKey::Watch(claim)).is_none_or(|at| at > due) {
            cx.arm_at(TimerKey::Watch(claim), due);
        }
    }

    /// There is no room for its look now. Returns whether it is to have a place in the line, as it has none yet.
    pub(crate) const fn queue(&mut self) -> bool {
        !self.stopped && !std::mem::replace(&mut self.queued, true)
    }

    /// Looks now; if a look is on its way, once more after it.
    pub(crate) fn check(&mut self, cx: &mut Cx<'_>, claim: ClaimKey) {
        if self.stopped {
            return;
        }
        if self.op.is_some() {
            self.again = true;
            return;
        }
        cx.disarm(&TimerKey::Watch(claim));
        self.looked = Some(cx.now.mono);
        let within = cx.timing().request;
        self.op = Some(cx.api(ApiOp::Task(claim, TaskOp::Watch), ApiCall::Status { claim }, within));
    }

    /// A look ended.
    pub(crate) fn replied(
        &mut self,
        cx: &mut Cx<'_>,
        claim: ClaimKey,
        op: OpId,
        result: &Result<ApiReply, ApiError>,
    ) -> Seen {
        if self.op != Some(op) {
            return Seen::Stands;
        }
        self.op = None;
        if self.stopped {
            return Seen::Stands;
        }
        let seen = self.judge(cx, result);
        if seen == Seen::Stands {
            let timing = cx.timing();
            let wait =
                if self.missing > 0 { timing.watch.min(timing.gone_confirm / 2) } else { timing.watch };
            let wait = match result {
                Err(error) => cx.patience(wait, *error),
                Ok(_) => wait,
            };
            cx.arm(TimerKey::Watch(claim), wait);
            if std::mem::take(&mut self.again) {
                self.hinted(cx, claim);
            }
        }
        seen
    }

    fn judge(&mut self, cx: &Cx<'_>, result: &Result<ApiReply, ApiError>) -> Seen {
        if result.as_ref().err().copied().and_then(ApiError::refusal) == Some(Refusal::TaskGone) {
            let since = *self.missing_since.get_or_insert(cx.now.mono);
            self.missing += 1;
            let believed =
                self.missing >= MISSING_LOOKS && cx.now.mono.since(since) >= cx.cfg.timers.gone_confirm;
            return if believed { Seen::Lost } else { Seen::Stands };
        }
        if let Ok(ApiReply::Task { status }) = result {
            (self.missing, self.missing_since) = (0, None);
            return match status {
                status if status.is_terminal() => Seen::Ended,
                TaskStatus::Queued => Seen::Lost,
                _ => Seen::Stands,
            };
        }
        Seen::Stands
    }

    /// Nothing that a look finds counts from now on.
    pub(crate) fn stop(&mut self, cx: &mut Cx<'_>, claim: ClaimKey) {
        self.stopped = true;
        cx.disarm(&TimerKey::Watch(claim));
        if let Some(op) = self.op {
            cx.cancel(op);
        }
    }
}
