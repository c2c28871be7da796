//! What goes to the server beside the report: messages in order, the session's pin, the tokens used. The texts are the
//! adapter's; here are only their numbers.

use crate::backoff::Failures;
use crate::effect::{ApiCall, Fact};
use crate::env::Cx;
use crate::error::ApiError;
use crate::event::{ApiReply, ClaimKey};
use crate::id::OpId;
use crate::op::{ApiOp, TaskOp};
use crate::timer::TimerKey;
use serde::{Deserialize, Serialize};

/// Tries before nothing waits for the pin or the usage any more: the pin is let go, the usage is sent late.
const SIDE_TRIES: u32 = 4;

/// Messages: which exist, and which the server has.
#[derive(Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Messages {
    have: u32,
    sent: u32,
    op: Option<OpId>,
    /// The fate of a post is not known: the server is asked before anything is sent again.
    ask: bool,
    /// Nothing more will come: what is there goes at once.
    hurry: bool,
    /// Nothing more is sent from here.
    halted: bool,
    failures: Failures,
    /// The last request was refused because of the credential.
    barred: bool,
}

impl Messages {
    /// Those of an earlier process: the server may have more of them than is known.
    pub(crate) fn recovered(acked: u32, have: u32) -> Self {
        Self { have: have.max(acked), sent: acked, ask: true, ..Self::default() }
    }

    /// More messages exist.
    pub(crate) fn have(&mut self, cx: &mut Cx<'_>, claim: ClaimKey, have: u32) {
        self.have = self.have.max(have);
        self.schedule(cx, claim);
    }

    /// No more will come.
    pub(crate) fn hurry(&mut self, cx: &mut Cx<'_>, claim: ClaimKey) {
        self.hurry = true;
        if !self.failures.any() {
            self.due(cx, claim);
        }
    }

    fn schedule(&self, cx: &mut Cx<'_>, claim: ClaimKey) {
        if self.op.is_none() && self.have > self.sent && !cx.env.timers.is_armed(&TimerKey::Flush(claim)) {
            let flush = cx.timing().flush;
            cx.arm(TimerKey::Flush(claim), flush);
        }
    }

    /// Sends what is there, or asks what became of what was sent.
    pub(crate) fn due(&mut self, cx: &mut Cx<'_>, claim: ClaimKey) {
        if self.op.is_some() || self.have == self.sent || self.halted {
            return;
        }
        cx.disarm(&TimerKey::Flush(claim));
        let within = cx.timing().messages;
        let (after, upto) = (self.sent, self.have);
        let (kind, call) = if self.ask {
            (TaskOp::Known, ApiCall::MessagesKnown { claim, after })
        } else {
            (TaskOp::Messages { upto }, ApiCall::Messages { claim, after, upto })
        };
        self.barred = false;
        self.op = Some(cx.api(ApiOp::Task(claim, kind), call, within));
    }

    /// A post ended.
    pub(crate) fn posted(
        &mut self,
        cx: &mut Cx<'_>,
        claim: ClaimKey,
        op: OpId,
        upto: u32,
        result: Result<ApiReply, ApiError>,
    ) {
        if self.op != Some(op) {
            return;
        }
        self.op = None;
        match result {
            Ok(reply) => {
                let part = if let ApiReply::Known { upto: part } = reply { part.min(upto) } else { upto };
                if part > self.sent {
                    self.took(cx, claim, part);
                    if part < upto {
                        // One request did not hold them all: the rest has waited long enough.
                        self.due(cx, claim);
                    }
                } else {
                    // Taken, and nothing of it was: at once again would be a busy loop.
                    self.failed(cx, claim, None);
                }
            }
            Err(error) if error.leaves_doubt() => {
                self.ask = true;
                self.failed(cx, claim, Some(error));
            }
            Err(error) if error.is_passing() => self.failed(cx, claim, Some(error)),
            Err(error) => {
                let status = if let ApiError::Refused { status, .. } = error { status } else { 0 };
                cx.fact(Fact::MessagesRefused { claim, upto, status });
                self.took(cx, claim, upto);
            }
        }
    }

    /// The server said which messages it has, or could not.
    pub(crate) fn known(
        &mut self,
        cx: &mut Cx<'_>,
        claim: ClaimKey,
        op: OpId,
        result: Result<ApiReply, ApiError>,
    ) {
        if self.op != Some(op) {
            return;
        }
        self.op = None;
        match result {
            Ok(ApiReply::Known { upto }) => {
                // More than is known here: what an earlier process sent comes again bit by bit, and each bit is asked about.
                self.ask = upto > self.have;
                self.took(cx, claim, upto.clamp(self.sent, self.have));
            }
            Err(error) if error.is_passing() => self.failed(cx, claim, Some(error)),
            // Nobody can say: rather twice than not at all.
            Ok(_) | Err(_) => {
                self.ask = false;
                self.took(cx, claim, self.sent);
            }
        }
    }

    fn took(&mut self, cx: &mut Cx<'_>, claim: ClaimKey, upto: u32) {
        if upto > self.sent {
            self.sent = upto;
            self.failures.reset();
        }
        if self.halted {
            return;
        }
        if self.hurry {
            self.due(cx, claim);
        } else {
            self.schedule(cx, claim);
        }
    }

    fn failed(&mut self, cx: &mut Cx<'_>, claim: ClaimKey, error: Option<ApiError>) {
        if self.halted {
            return;
        }
        let shape = cx.timing().post_backoff;
        let mut wait = self.failures.next_wait(shape, &mut cx.env.rng);
        if let Some(error) = error {
            wait = cx.patience(wait, error);
            self.barred = error.is_about_credential();
        }
        cx.arm(TimerKey::Flush(claim), wait);
    }

    /// The server takes the credential again.
    pub(crate) fn unbarred(&mut self, cx: &mut Cx<'_>, claim: ClaimKey) {
        if self.barred {
            self.due(cx, claim);
        }
    }

    /// The task is over: what is on its way is ended, so that who goes on with the rest need not guess.
    pub(crate) fn halt(&mut self, cx: &mut Cx<'_>, claim: ClaimKey) {
        self.halted = true;
        cx.disarm(&TimerKey::Flush(claim));
        if let Some(op) = self.op {
            cx.cancel(op);
        }
    }

    /// Whether something is on its way.
    pub(crate) const fn is_posting(&self) -> bool {
        self.op.is_some()
    }

    /// Whether the server has all there is.
    pub(crate) const fn is_drained(&self) -> bool {
        self.have == self.sent && self.op.is_none()
    }

    /// What a late outbox must know to go on: sent, have, and whether to ask first.
    pub(crate) const fn rest(&self) -> (u32, u32, bool) {
        (self.sent, self.have, self.ask)
    }
}

/// Something that is sent once it is there, with a few tries, and that nothing but its kind waits for.
#[derive(Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Side {
    /// There is nothing to send yet.
    #[default]
    Nothing,
    /// It is there; `barred` if it was refused because of the credential.
    Ready { tries: u32, failures: Failures, barred: bool },
    /// It is on its way.
    InFlight { op: OpId, tries: u32, failures: Failures },
    /// It was taken, or let go.
    Done,
    /// It is to be sent from the late outbox.
    Late,
}

/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SideKind {
    Usage,
    Pin,
}

impl SideKind {
    fn timer(self, claim: ClaimKey) -> TimerKey {
        match self {
            Self::Usage => TimerKey::UsageRetry(claim),
            Self::Pin => TimerKey::PinRetry(claim),
        }
    }
}

impl Side {
    /// There is something to send.
    pub(crate) fn ready(&mut self) {
        if *self == Self::Nothing {
            *self = Self::Ready { tries: 0, failures: Failures::default(), barred: false };
        }
    }

    /// Sends it, unless it waits for another try.
    pub(crate) fn send(&mut self, cx: &mut Cx<'_>, claim: ClaimKey, kind: SideKind) {
        if cx.env.timers.is_armed(&kind.timer(claim)) {
            return;
        }
        if let Self::Ready { tries, failures, .. } = self {
            let (op, call, within) = match kind {
                SideKind::Usage => (TaskOp::Usage, ApiCall::Usage { claim }, cx.timing().request),
                SideKind::Pin => (TaskOp::Pin, ApiCall::Pin { claim }, cx.timing().pin),
            };
            let op = cx.api(ApiOp::Task(claim, op), call, within);
            *self = Self::InFlight { op, tries: *tries + 1, failures: std::mem::take(failures) };
        }
    }

    /// It ended. Both kinds may safely be sent twice.
    pub(crate) fn replied(
        &mut self,
        cx: &mut Cx<'_>,
        claim: ClaimKey,
        kind: SideKind,
        op: OpId,
        result: Result<ApiReply, ApiError>,
    ) {
        let Self::InFlight { op: open, tries, failures } = self else { return };
        if *open != op {
            return;
        }
        match result {
            Err(error) if error.is_passing() && *tries < SIDE_TRIES => {
                let shape = cx.timing().post_backoff;
                let wait = failures.next_wait(shape, &mut cx.env.rng);
                let wait = cx.patience(wait, error);
                cx.arm(kind.timer(claim), wait);
                let barred = error.is_about_credential();
                *self = Self::Ready { tries: *tries, failures: std::mem::take(failures), barred };
            }
            Err(error) if error.is_passing() && kind == SideKind::Usage => {
                cx.fact(Fact::UsageLate { claim });
                *self = Self::Late;
            }
            Err(_) => {
                if kind == SideKind::Usage {
                    cx.fact(Fact::UsageLost { claim });
                }
                *self = Self::Done;
            }
            Ok(_) => *self = Self::Done,
        }
    }

    /// The server takes the credential again.
    pub(crate) fn unbarred(&mut self, cx: &mut Cx<'_>, claim: ClaimKey, kind: SideKind) {
        if matches!(self, Self::Ready { barred: true, .. }) {
            cx.disarm(&kind.timer(claim));
            self.send(cx, claim, kind);
        }
    }

    /// Whether nothing waits for it any more.
    pub(crate) const fn is_settled(&self) -> bool {
        matches!(self, Self::Nothing | Self::Done | Self::Late)
    }

    /// Whether it is still to be sent, with nothing waiting for it.
    pub(crate) const fn is_late(&self) -> bool {
        matches!(self, Self::Late)
    }
}
