//! The machines of one task under the laws: lease, watch, messages, tokens and pin, report.

use super::lease::Lease;
use super::outbox::{Messages, Side, SideKind};
use super::report::{self, Report};
use super::watch::{Seen, Watch};
use crate::effect::ReportKind;
use crate::env::{Cx, Env};
use crate::error::ApiError;
use crate::event::{ApiReply, ClaimKey, TaskStatus};
use crate::id::OpId;
use crate::laws::{Machine, holds};
use crate::op::{ApiOp, TaskOp};
use crate::script::Choose;
use crate::timer::TimerKey;
use crate::token::LeaseStopped;
use serde::{Deserialize, Serialize};

const CLAIM: ClaimKey = ClaimKey(1);

type Reply = Result<ApiReply, ApiError>;

#[derive(Hash, Serialize, Deserialize)]
enum Leased {
    Going(Lease),
    Stopping(Lease),
    Stopped(LeaseStopped),
    /// Only within a step.
    Moving,
}

impl Leased {
    fn stop(&mut self, cx: &mut Cx<'_>) {
        *self = match std::mem::replace(self, Self::Moving) {
            Self::Going(lease) => match lease.stop(cx, CLAIM) {
                Ok(stopped) => Self::Stopped(stopped),
                Err(lease) => Self::Stopping(lease),
            },
            other => other,
        };
    }
}

impl Machine for Leased {
    fn start(cx: &mut Cx<'_>) -> Self {
        Self::Going(Lease::start(cx, CLAIM))
    }

    fn poke(&mut self, cx: &mut Cx<'_>, choose: &mut dyn Choose) {
        if choose.one_in(12) {
            self.stop(cx);
        }
    }

    fn due(&mut self, cx: &mut Cx<'_>, _: &TimerKey) {
        if let Self::Going(lease) = self {
            lease.due(cx, CLAIM);
        }
    }

    fn answered(&mut self, cx: &mut Cx<'_>, op: OpId, _: ApiOp, r: Reply) {
        *self = match std::mem::replace(self, Self::Moving) {
            Self::Going(mut lease) => {
                lease.replied(cx, CLAIM, op, &r);
                Self::Going(lease)
            }
            Self::Stopping(lease) => match lease.stopped(op) {
                Ok(stopped) => Self::Stopped(stopped),
                Err(lease) => Self::Stopping(lease),
            },
            other => other,
        };
    }

    fn close(&mut self, cx: &mut Cx<'_>) -> bool {
        self.stop(cx);
        true
    }

    fn is_at_rest(&self, env: &Env) -> bool {
        match self {
            Self::Going(_) => env.timers.len() == 1,
            Self::Stopped(_) => env.timers.len() == 0,
            Self::Stopping(_) | Self::Moving => false,
        }
    }
}

impl Machine for Watch {
    fn start(cx: &mut Cx<'_>) -> Self {
        Self::start(cx, CLAIM)
    }

    fn poke(&mut self, cx: &mut Cx<'_>, choose: &mut dyn Choose) {
        if choose.one_in(3) { self.check(cx, CLAIM) } else { self.hinted(cx, CLAIM) }
    }

    fn due(&mut self, cx: &mut Cx<'_>, _: &TimerKey) {
        self.check(cx, CLAIM);
    }

    fn answered(&mut self, cx: &mut Cx<'_>, op: OpId, _: ApiOp, r: Reply) {
        if self.replied(cx, CLAIM, op, &r) != Seen::Stands {
            self.stop(cx, CLAIM);
        }
    }

    fn close(&mut self, cx: &mut Cx<'_>) -> bool {
        self.stop(cx, CLAIM);
        true
    }

    fn is_at_rest(&self, env: &Env) -> bool {
        env.timers.len() == 1
    }

    fn well(_: &ApiOp) -> ApiReply {
        ApiReply::Task { status: TaskStatus::Running }
    }
}

/// Messages, and how many the agent said.
#[derive(Default, Hash, Serialize, Deserialize)]
struct Speech {
    messages: Messages,
    said: u32,
}

impl Machine for Speech {
    fn start(_: &mut Cx<'_>) -> Self {
        Self::default()
    }

    fn poke(&mut self, cx: &mut Cx<'_>, choose: &mut dyn Choose) {
        if choose.one_in(8) {
            self.messages.hurry(cx, CLAIM);
        } else {
            self.said += choose.below(3);
            self.messages.have(cx, CLAIM, self.said);
        }
    }

    fn due(&mut self, cx: &mut Cx<'_>, _: &TimerKey) {
        self.messages.due(cx, CLAIM);
    }

    fn answered(&mut self, cx: &mut Cx<'_>, op: OpId, kind: ApiOp, r: Reply) {
        match kind {
            ApiOp::Task(_, TaskOp::Messages { upto }) => self.messages.posted(cx, CLAIM, op, upto, r),
            ApiOp::Task(_, TaskOp::Known) => self.messages.known(cx, CLAIM, op, r),
            other => panic!("{other:?} is not of this machine"),
        }
    }

    fn close(&mut self, cx: &mut Cx<'_>) -> bool {
        self.messages.halt(cx, CLAIM);
        true
    }

    fn is_at_rest(&self, env: &Env) -> bool {
        self.messages.is_drained() && env.timers.len() == 0
    }
}

impl Machine for Side {
    fn start(_: &mut Cx<'_>) -> Self {
        Self::default()
    }

    fn poke(&mut self, cx: &mut Cx<'_>, _: &mut dyn Choose) {
        self.ready();
        self.send(cx, CLAIM, SideKind::Usage);
    }

    fn due(&mut self, cx: &mut Cx<'_>, _: &TimerKey) {
        self.send(cx, CLAIM, SideKind::Usage);
    }

    fn answered(&mut self, cx: &mut Cx<'_>, op: OpId, _: ApiOp, r: Reply) {
        self.replied(cx, CLAIM, SideKind::Usage, op, r);
    }

    fn is_at_rest(&self, env: &Env) -> bool {
        self.is_settled() && env.timers.len() == 0
    }
}

/// A report, until it is settled or handed over.
#[derive(Hash, Serialize, Deserialize)]
struct Told(Option<Report>);

impl Machine for Told {
    fn start(cx: &mut Cx<'_>) -> Self {
        let mut report = Report::new(cx, ReportKind::Complete);
        report.send(cx, CLAIM);
        Self(Some(report))
    }

    fn poke(&mut self, _: &mut Cx<'_>, _: &mut dyn Choose) {}

    fn due(&mut self, cx: &mut Cx<'_>, _: &TimerKey) {
        if let Some(report) = &mut self.0 {
            report.send(cx, CLAIM);
        }
    }

    fn answered(&mut self, cx: &mut Cx<'_>, op: OpId, _: ApiOp, r: Reply) {
        if self.0.as_mut().is_some_and(|report| report.replied(cx, CLAIM, op, r) != report::Step::Wait) {
            self.0 = None;
        }
    }

    fn is_at_rest(&self, env: &Env) -> bool {
        self.0.is_none() && env.timers.len() == 0
    }
}

#[test]
fn a_lease_keeps_the_laws() {
    holds::<Leased>();
}

#[test]
fn a_watch_keeps_the_laws() {
    holds::<Watch>();
}

#[test]
fn messages_keep_the_laws() {
    holds::<Speech>();
}

#[test]
fn tokens_and_the_pin_keep_the_laws() {
    holds::<Side>();
}

#[test]
fn a_report_keeps_the_laws() {
    holds::<Told>();
}
