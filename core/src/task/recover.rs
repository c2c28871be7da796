//! A task that an earlier process of this daemon had taken: failed back if it never ran, followed if it was launched, reported if it is
//! over.

use super::Task;
use super::idle::Pulse;
use super::outbox::Messages;
use super::phase::{Phase, RunStage, Running};
use super::watch::Watch;
use crate::effect::{Fact, LaunchCall, PhaseName, ReportKind};
use crate::env::Cx;
use crate::event::Offer;
use crate::id::{Provider, SlotIndex};
use crate::reason::FailReason;
use crate::roots::EnvRoots;
use crate::token::{PathGuard, SlotPermit};

/// What is owed for a task that is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owed {
    pub(crate) report: ReportKind,
    pub(crate) acked: u32,
    pub(crate) have: u32,
    pub(crate) usage: bool,
    pub(crate) ran: bool,
}

impl Task {
    /// It was never launched: the server gives it out again.
    pub(crate) fn fail_back_again(cx: &mut Cx<'_>, offer: Offer) -> Self {
        let reason = offer.fault.unwrap_or(FailReason::RuntimeOffline);
        cx.fact(told(&offer, None));
        Self::fail_back(cx, offer, reason)
    }

    /// Its agent was launched, in slot `own`. It may have ended since, and the task may have been cancelled.
    pub(crate) fn attach(
        cx: &mut Cx<'_>,
        offer: Offer,
        provider: Provider,
        slot: Option<SlotPermit>,
        (own, acked): (SlotIndex, u32),
        (roots, directory): (&mut EnvRoots, Option<PathGuard>),
    ) -> Self {
        cx.fact(told(&offer, slot.as_ref().map(|slot| slot.index)));
        let mut task = Self::new(offer, Some(provider), slot);
        task.directory = directory;
        let claim = task.claim;
        task.mark(roots);
        (task.touched, task.ran) = (true, true);
        task.messages = Messages::recovered(acked, acked);
        task.watch = Watch::start(cx, claim);
        task.watch.check(cx, claim);
        cx.phase(claim, PhaseName::Running);
        let op = cx.run(claim, LaunchCall::attach(claim, own, acked));
        let pulse = Pulse::start(cx, claim, task.provider.as_ref());
        task.phase = Phase::Running(Running { proof: None, op, stage: RunStage::Live, pulse, fresh: false });
        task
    }

    /// It is over. It is reported as it was written down: the server, which may have taken the report already, is not asked for its
    /// view again.
    pub(crate) fn owing(
        cx: &mut Cx<'_>,
        offer: Offer,
        owed: Owed,
        (roots, directory): (&mut EnvRoots, Option<PathGuard>),
    ) -> Self {
        cx.fact(told(&offer, None));
        let mut task = Self::new(offer, None, None);
        task.directory = directory;
        task.mark(roots);
        (task.touched, task.ran) = (true, owed.ran);
        task.record = owed.ran && owed.report != ReportKind::CancelAck;
        task.messages = Messages::recovered(owed.acked, owed.have);
        if owed.usage {
            task.usage.ready();
        }
        task.enter_settle(cx, Some(owed.report), false);
        task
    }
}

/// The fact that a task was taken over.
pub(crate) fn told(offer: &Offer, slot: Option<SlotIndex>) -> Fact {
    Fact::Recovered { claim: offer.claim, task: offer.task.clone(), runtime: offer.runtime.clone(), slot }
}
