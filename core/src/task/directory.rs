//! A task that works in a directory of the user: which one it really is, its turn in the line for it, and then a slot again.
//!
//! Nothing is touched before the task has both: a task that ends before that only leaves the lines.

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

/// What a task hands back that ended while it waited.
#[derive(Debug)]
pub(crate) struct Left {
    pub(crate) park: ParkPermit,
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
    pub(crate) fn entered(
        &mut self,
        cx: &mut Cx<'_>,
        lock: PathGuard,
        roots: &mut EnvRoots,
    ) -> Option<ParkPermit> {
        self.directory = Some(lock);
        if let Phase::Resolving { lease, .. } = std::mem::replace(&mut self.phase, Phase::Moving) {
            self.mark_and_prepare(cx, lease, roots);
        }
        self.park.take()
    }

    /// Another task works in the directory: this one waits for it, and somebody else can have the slot meanwhile.
    pub(crate) fn wait_for_directory(&mut self, cx: &mut Cx<'_>, holder: ClaimKey) -> Option<SlotPermit> {
        let claim = self.claim;
        if let Phase::Resolving { lease, .. } = std::mem::replace(&mut self.phase, Phase::Moving) {
            cx.fact(Fact::Parked { claim, holder });
            cx.phase(claim, PhaseName::AwaitingDirectory);
            let call = ApiCall::WaitDirectory { claim, holder: Some(holder) };
            let within = cx.timing().request;
            cx.api(ApiOp::Task(claim, TaskOp::WaitDirectory), call, within);
            self.phase = Phase::AwaitingDirectory { lease };
        }
        self.slot.take()
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

    /// It is this task's turn in the directory; a task that does not wait any more gives it back.
    pub(crate) fn granted(&mut self, cx: &mut Cx<'_>, lock: PathGuard) -> Result<(), PathGuard> {
        if !matches!(self.phase, Phase::AwaitingDirectory { .. }) {
            return Err(lock);
        }
        if let Phase::AwaitingDirectory { lease } = std::mem::replace(&mut self.phase, Phase::Moving) {
            cx.phase(self.claim, PhaseName::AwaitingSlot);
            self.phase = Phase::AwaitingSlot { lease };
        }
        self.directory = Some(lock);
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

    /// What the task hands back if it ended while it waited; once.
    pub(crate) fn left(&mut self) -> Option<Left> {
        let waits = matches!(
            self.phase,
            Phase::Resolving { .. } | Phase::AwaitingDirectory { .. } | Phase::AwaitingSlot { .. }
        );
        if waits {
            return None;
        }
        let park = self.park.take()?;
        Some(Left { park, lock: self.directory.take() })
    }

    /// Whether it waits without a slot.
    pub(crate) const fn is_parked(&self) -> bool {
        matches!(self.phase, Phase::AwaitingDirectory { .. } | Phase::AwaitingSlot { .. })
    }

    /// Whether it may wait without a slot, now or later.
    pub(crate) const fn may_park(&self) -> bool {
        self.park.is_some()
    }

    /// The user's directory that it has for itself.
    pub(crate) const fn directory(&self) -> Option<&PathGuard> {
        self.directory.as_ref()
    }
}
