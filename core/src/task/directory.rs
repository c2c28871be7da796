//! A task that works in a directory of the user: which one it really is, its turn in the line for it, and then a slot again.
//!
//! Nothing is touched before the task has both: a task that ends before that only leaves the lines. Who touched something keeps the
//! directory until its last process is gone and the directory is tidied up, but not for its report.

use super::Task;
use super::lease::Lease;
use super::phase::Phase;
use crate::effect::{ApiCall, EndReason, Fact, FsCall, PhaseName, ReportKind};
use crate::env::Cx;
use crate::error::{ApiError, FsError};
use crate::event::{ApiReply, ClaimKey, FsReply};
use crate::id::{OpId, PathKey};
use crate::op::{ApiOp, FsOp, TaskOp};
use crate::reason::FailReason;
use crate::roots::EnvRoots;
use crate::timer::TimerKey;
use crate::token::{ParkPermit, PathGuard, SlotPermit};

/// What a task hands back that is still here.
#[derive(Debug)]
pub(crate) struct Left {
    pub(crate) park: Option<ParkPermit>,
    pub(crate) lock: Option<PathGuard>,
}

impl Task {
    /// Looks which directory of the user this is. That is bounded as a preparation is, for a file system may hang.
    pub(super) fn resolve(&mut self, cx: &mut Cx<'_>, lease: Lease) {
        let claim = self.claim;
        let within = cx.timing().prepare;
        cx.arm(TimerKey::Prepare(claim), within);
        cx.phase(claim, PhaseName::Resolving);
        let op = cx.fs(claim, FsOp::Resolve, FsCall::Resolve { claim });
        self.phase = Phase::Resolving { op, lease };
    }

    /// The look ended. Returns the directory if the task still wants it.
    pub(crate) fn resolved(
        &mut self,
        cx: &mut Cx<'_>,
        op: OpId,
        result: &Result<FsReply, FsError>,
    ) -> Option<PathKey> {
        if !matches!(&self.phase, Phase::Resolving { op: open, .. } if *open == op) {
            return None;
        }
        let reason = match result {
            Ok(FsReply::Resolved { path }) if self.ending.is_none() => {
                cx.disarm(&TimerKey::Prepare(self.claim));
                return Some(path.clone());
            }
            Ok(_) => FailReason::LocalDirectoryError,
            Err(FsError::TimedOut) => FailReason::Timeout,
            Err(FsError::Cancelled) => FailReason::RuntimeOffline,
            Err(FsError::Failed { reason }) => *reason,
        };
        self.quit(cx, reason);
        None
    }

    /// The directory is free: the task has it, and goes on with the slot that it holds.
    pub(crate) fn entered(&mut self, cx: &mut Cx<'_>, lock: PathGuard, roots: &mut EnvRoots) {
        self.directory = Some(lock);
        if let Phase::Resolving { lease, .. } = std::mem::replace(&mut self.phase, Phase::Moving) {
            self.mark_and_prepare(cx, lease, roots);
        }
    }

    /// Another task works in the directory: this one waits for it. With a permit it gives its slot to somebody else meanwhile.
    pub(crate) fn wait_for_directory(
        &mut self,
        cx: &mut Cx<'_>,
        holder: ClaimKey,
        park: Option<ParkPermit>,
    ) -> Option<SlotPermit> {
        let claim = self.claim;
        let slot = park.and_then(|park| self.park(cx, holder, park));
        if let Phase::Resolving { lease, .. } = std::mem::replace(&mut self.phase, Phase::Moving) {
            cx.phase(claim, PhaseName::AwaitingDirectory);
            let call = ApiCall::WaitDirectory { claim, holder: Some(holder) };
            let within = cx.timing().request;
            cx.api(ApiOp::Task(claim, TaskOp::WaitDirectory), call, within);
            self.phase = Phase::AwaitingDirectory { lease };
        }
        slot
    }

    /// It waits without its slot from now on.
    pub(crate) fn park(&mut self, cx: &mut Cx<'_>, holder: ClaimKey, park: ParkPermit) -> Option<SlotPermit> {
        cx.fact(Fact::Parked { claim: self.claim, holder });
        self.park = Some(park);
        self.slot.take()
    }

    /// It has its directory, and another task gives it a slot for its right to wait without one.
    pub(crate) const fn swap_park(&mut self) -> Option<ParkPermit> {
        self.park.take()
    }

    /// The server was told that the task waits, or was not. Where it was, that granted the lease anew.
    pub(super) fn wait_told(&mut self, cx: &mut Cx<'_>, result: &Result<ApiReply, ApiError>) {
        let claim = self.claim;
        if result.is_ok()
            && self.ending.is_none()
            && let Phase::AwaitingDirectory { lease }
            | Phase::AwaitingSlot { lease }
            | Phase::AwaitingRoot { lease }
            | Phase::Preparing { lease, .. } = &mut self.phase
        {
            lease.granted(cx, claim);
        }
    }

    /// It is this task's turn in the directory, and if it has its slot still, it goes on at once; a task that does not wait any more gives the
    /// directory back.
    pub(crate) fn granted(
        &mut self,
        cx: &mut Cx<'_>,
        lock: PathGuard,
        roots: &mut EnvRoots,
    ) -> Result<(), PathGuard> {
        if !matches!(self.phase, Phase::AwaitingDirectory { .. }) {
            return Err(lock);
        }
        self.directory = Some(lock);
        if let Phase::AwaitingDirectory { lease } = std::mem::replace(&mut self.phase, Phase::Moving) {
            if self.slot.is_some() {
                self.mark_and_prepare(cx, lease, roots);
            } else {
                cx.phase(self.claim, PhaseName::AwaitingSlot);
                self.phase = Phase::AwaitingSlot { lease };
            }
        }
        Ok(())
    }

    /// A slot is there too: the task goes on. Gives the slot back if it does not wait for one.
    pub(crate) fn unparked(
        &mut self,
        cx: &mut Cx<'_>,
        slot: SlotPermit,
        roots: &mut EnvRoots,
    ) -> Result<Option<ParkPermit>, SlotPermit> {
        if !matches!(self.phase, Phase::AwaitingSlot { .. }) {
            return Err(slot);
        }
        cx.fact(Fact::Unparked { claim: self.claim, slot: slot.index });
        self.slot = Some(slot);
        if let Phase::AwaitingSlot { lease } = std::mem::replace(&mut self.phase, Phase::Moving) {
            self.mark_and_prepare(cx, lease, roots);
        }
        Ok(self.park.take())
    }

    /// Ends a task that has touched nothing. What the server itself has ended is not answered: it never ran, and no transcript waits for it.
    pub(super) fn quit(&mut self, cx: &mut Cx<'_>, reason: FailReason) {
        let claim = self.claim;
        cx.disarm(&TimerKey::Prepare(claim));
        if let Phase::Resolving { lease, .. }
        | Phase::AwaitingDirectory { lease }
        | Phase::AwaitingSlot { lease } = std::mem::replace(&mut self.phase, Phase::Moving)
        {
            // A refresh that is on its way changes nothing any more: its answer finds no phase that waits for it.
            let _stopped = lease.stop(cx, claim);
        }
        match self.verdict(ReportKind::Fail { reason }) {
            Some(kind) if self.ending != Some(EndReason::Server) => {
                self.keep_ended(cx, Some(kind));
                self.enter_report(cx, kind);
            }
            _ => {
                self.watch.stop(cx, claim);
                self.phase = Phase::Over;
            }
        }
    }

    /// What the task hands back, once: its right to wait without a slot if it ended while it waited; and the user's directory once its last
    /// process is gone and the directory is tidied up, however long its report takes. What is kept of it says so first.
    pub(crate) fn left(&mut self, cx: &mut Cx<'_>) -> Left {
        let park = if self.is_waiting() { None } else { self.park.take() };
        let lock = if self.needs_directory() { None } else { self.directory.take() };
        if lock.is_some() && self.touched {
            let report = match &self.phase {
                Phase::Settling(settling) => settling.verdict,
                Phase::Reporting(report) => Some(report.kind()),
                _ => None,
            };
            self.keep_ended(cx, report);
        }
        Left { park, lock }
    }

    /// Whether it waits, for the user's directory or for a slot to go with it.
    pub(crate) const fn is_waiting(&self) -> bool {
        matches!(self.phase, Phase::AwaitingDirectory { .. } | Phase::AwaitingSlot { .. })
    }

    /// Whether something of it may be in the user's directory, or is about to be.
    const fn needs_directory(&self) -> bool {
        match &self.phase {
            Phase::Settling(settling) => settling.unwind.is_some(),
            Phase::Reporting(_) | Phase::Sealing { .. } | Phase::Over => false,
            _ => true,
        }
    }

    /// Whether it waits without a slot.
    pub(crate) const fn is_parked(&self) -> bool {
        self.park.is_some()
    }

    /// Whether it waits for the user's directory with its slot.
    pub(crate) const fn holds_in_line(&self) -> bool {
        matches!(self.phase, Phase::AwaitingDirectory { .. }) && self.slot.is_some()
    }

    /// The user's directory that it has for itself.
    pub(crate) const fn directory(&self) -> Option<&PathGuard> {
        self.directory.as_ref()
    }
}
