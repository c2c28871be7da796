//! Requests that are on their way: a table from their number to what they are for, with the tokens that they hold.
//!
//! A request is closed exactly once, by a completion of its own domain. Anything else is a stray, and is counted.

use crate::effect::ClaimScope;
use crate::event::{ClaimKey, Collect};
use crate::id::{ActionId, OpId, Provider, RuntimeId, WorkspaceId};
use crate::token::{ClaimPass, GcReservation, SlotPermit};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Requests to the server.
#[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ApiOp {
    Renew,
    Workspaces,
    /// The custom runtimes of a workspace.
    Profiles(WorkspaceId),
    Register(WorkspaceId),
    Orphans(RuntimeId),
    Deregister {
        last: bool,
    },
    Beat(RuntimeId),
    Claim {
        hold: Vec<SlotPermit>,
        pass: ClaimPass,
        scope: ClaimScope,
    },
    /// The same over the control connection.
    ClaimOver {
        hold: Vec<SlotPermit>,
        pass: ClaimPass,
        scope: ClaimScope,
    },
    ClaimOne {
        slot: SlotPermit,
        pass: ClaimPass,
        runtime: RuntimeId,
        provider: Provider,
    },
    Task(ClaimKey, TaskOp),
    /// May a directory be freed?
    Collectable,
    /// What came of something that the server asked for.
    Action(ActionId),
    Late,
}

/// Requests about one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TaskOp {
    Lease,
    Start,
    /// What became of a `/start` whose fate is not known.
    StartStatus,
    Watch,
    /// The server is told that the task waits for its user's directory.
    WaitDirectory,
    /// The last look before the report.
    Check,
    Messages {
        upto: u32,
    },
    Known,
    Usage,
    Pin,
    Report,
}

/// Work on the disk for one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FsOp {
    Prepare,
    Resolve,
    Unwind,
    Seal,
}

/// Work of the collector on the disk.
#[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GcOp {
    Scan,
    Collect { reserved: GcReservation, what: Collect },
    Maintain,
}

/// Work on the disk that has ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DiskWork {
    Task(ClaimKey, FsOp),
    Gc(GcOp),
    Probe,
    Act(ActionId),
}

/// Everything that can be on its way.
#[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OpKind {
    Api(ApiOp),
    Fs(ClaimKey, FsOp),
    Gc(GcOp),
    /// The agent CLIs of this machine are looked at.
    Probe,
    /// Something that the server asked for is done.
    Act(ActionId),
    Run(ClaimKey),
}

impl OpKind {
    /// Whether it asks for tasks, whichever way.
    pub(crate) const fn is_claim(&self) -> bool {
        matches!(self, Self::Api(ApiOp::Claim { .. } | ApiOp::ClaimOver { .. } | ApiOp::ClaimOne { .. }))
    }

    /// Whether it looks whether a task still stands.
    const fn is_look(&self) -> bool {
        matches!(self, Self::Api(ApiOp::Task(_, TaskOp::Watch)))
    }
}

/// The table.
#[derive(Debug, Default, Hash, Serialize, Deserialize)]
pub(crate) struct Ops {
    next: u64,
    open: BTreeMap<OpId, OpKind>,
    cancelled: BTreeSet<OpId>,
    strays: u64,
    /// Looks at tasks' statuses that are on their way.
    looks: usize,
}

impl Ops {
    pub(crate) fn open(&mut self, kind: OpKind) -> OpId {
        self.next += 1;
        let op = OpId(self.next);
        self.looks += usize::from(kind.is_look());
        self.open.insert(op, kind);
        op
    }

    /// Marks a request as cancelled. Returns whether that is news: it is on its way, and was not cancelled before.
    pub(crate) fn cancel(&mut self, op: OpId) -> bool {
        self.open.contains_key(&op) && self.cancelled.insert(op)
    }

    pub(crate) fn close_api(&mut self, op: OpId) -> Option<ApiOp> {
        self.close_if(op, |kind| matches!(kind, OpKind::Api(_))).and_then(|kind| match kind {
            OpKind::Api(api) => Some(api),
            OpKind::Fs(..) | OpKind::Gc(_) | OpKind::Probe | OpKind::Act(_) | OpKind::Run(_) => None,
        })
    }

    pub(crate) fn close_fs(&mut self, op: OpId) -> Option<DiskWork> {
        let of_disk =
            |kind: &OpKind| matches!(kind, OpKind::Fs(..) | OpKind::Gc(_) | OpKind::Probe | OpKind::Act(_));
        self.close_if(op, of_disk).and_then(|kind| match kind {
            OpKind::Fs(claim, fs) => Some(DiskWork::Task(claim, fs)),
            OpKind::Gc(gc) => Some(DiskWork::Gc(gc)),
            OpKind::Probe => Some(DiskWork::Probe),
            OpKind::Act(action) => Some(DiskWork::Act(action)),
            OpKind::Api(_) | OpKind::Run(_) => None,
        })
    }

    /// The task of a run that goes on.
    pub(crate) fn run(&mut self, op: OpId) -> Option<ClaimKey> {
        if let Some(OpKind::Run(claim)) = self.open.get(&op) {
            Some(*claim)
        } else {
            self.strays += 1;
            None
        }
    }

    pub(crate) fn close_run(&mut self, op: OpId) -> Option<ClaimKey> {
        self.close_if(op, |kind| matches!(kind, OpKind::Run(_))).and_then(|kind| match kind {
            OpKind::Run(claim) => Some(claim),
            OpKind::Api(_) | OpKind::Fs(..) | OpKind::Gc(_) | OpKind::Probe | OpKind::Act(_) => None,
        })
    }

    fn close_if(&mut self, op: OpId, fits: impl Fn(&OpKind) -> bool) -> Option<OpKind> {
        if self.open.get(&op).is_some_and(fits) {
            self.cancelled.remove(&op);
            let closed = self.open.remove(&op);
            self.looks -= usize::from(closed.as_ref().is_some_and(OpKind::is_look));
            return closed;
        }
        self.strays += 1;
        None
    }

    /// The request that was sent last.
    pub(crate) const fn last(&self) -> OpId {
        OpId(self.next)
    }

    /// How many looks at tasks' statuses are on their way.
    pub(crate) const fn looks(&self) -> usize {
        self.looks
    }

    /// Counts an event that names something which is not there.
    pub(crate) fn stray(&mut self) {
        self.strays += 1;
    }

    pub(crate) const fn strays(&self) -> u64 {
        self.strays
    }

    /// What this request is, if it is on its way.
    pub(crate) fn get(&self, op: OpId) -> Option<&OpKind> {
        self.open.get(&op)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (OpId, &OpKind)> {
        self.open.iter().map(|(op, kind)| (*op, kind))
    }

    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inv_i4_an_op_is_closed_once_and_only_by_its_own_domain() {
        let mut ops = Ops::default();
        let run = ops.open(OpKind::Run(ClaimKey(1)));
        assert!(ops.close_api(run).is_none(), "an answer of the server cannot close a run");
        assert!(ops.close_fs(run).is_none());
        assert!(ops.cancel(run) && !ops.cancel(run), "still open, and cancelled once");
        assert_eq!(ops.close_run(run), Some(ClaimKey(1)));
        assert_eq!(ops.close_run(run), None);
        assert!(!ops.cancel(run));
        assert_eq!(ops.strays(), 3);
    }
}
