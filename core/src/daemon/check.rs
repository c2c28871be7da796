//! The structural check: every token is where it belongs.

use super::State;
use crate::effect::PhaseName;
use crate::op::{GcOp, OpKind};
use std::collections::BTreeSet;
use thiserror::Error;

/// Something that cannot be, is.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Broken {
    /// I1, INV-31.
    #[error("a slot is missing, or there twice")]
    Slots,
    /// INV-127.
    #[error("{marks} env-root marks are counted, {held} are held")]
    Marks {
        /// What `EnvRoots` counts.
        marks: u64,
        /// What tasks hold.
        held: u64,
    },
    /// INV-129: what is being deleted, and the reservations of the requests that delete it.
    #[error("the roots that are being deleted and the reservations for that are not the same")]
    Reservations,
    /// INV-41.
    #[error("{counted} claims are counted as on their way, {open} are")]
    Claims {
        /// What the gate counts.
        counted: u32,
        /// What the table has.
        open: u32,
    },
    /// What the server asks for is at work, in line, or reported.
    #[error("the actions that are at work or wait, and the requests for them, are out of step")]
    Actions,
    /// INV-90 and the bound of parked tasks.
    #[error("the lines for directories and slots, and who waits in them, are out of step")]
    Paths,
    /// A task is in no phase, or over.
    #[error("task {claim} was left between two phases, or is over and still here")]
    Phase {
        /// Its claim.
        claim: u64,
    },
    /// The indices over tasks disagree with them.
    #[error("the indices over tasks are out of step")]
    Index,
}

impl State {
    pub(super) fn self_check(&self) -> Result<(), Broken> {
        let held = self.tasks.values().filter_map(crate::task::Task::slot);
        if !self.claims.conserves_slots(&self.env.ops, held) {
            return Err(Broken::Slots);
        }
        let (marks, held) = (self.roots.marks(), self.tasks.values().map(crate::task::Task::marks).sum());
        if marks != held {
            return Err(Broken::Marks { marks, held });
        }
        let reserved = self.env.ops.iter().filter_map(|(_, kind)| match kind {
            OpKind::Gc(GcOp::Collect { reserved, .. }) => Some(&reserved.root),
            _ => None,
        });
        if reserved.collect::<BTreeSet<_>>() != self.roots.deleting().collect() {
            return Err(Broken::Reservations);
        }
        self.check_paths()?;
        let at_work = self.env.ops.iter().filter(|(_, kind)| matches!(kind, OpKind::Act(_))).count();
        if !self.actions.conserves(at_work) {
            return Err(Broken::Actions);
        }
        let open = self.env.ops.iter().filter(|(_, kind)| kind.is_claim()).count();
        let open = u32::try_from(open).unwrap_or(u32::MAX);
        if open != self.claims.on_their_way() {
            return Err(Broken::Claims { counted: self.claims.on_their_way(), open });
        }
        for (claim, task) in &self.tasks {
            if task.phase_name().is_none() || task.is_over() {
                return Err(Broken::Phase { claim: claim.0 });
            }
            let indexed = self.by_runtime.contains(&(task.runtime().clone(), *claim))
                && self.by_id.get(task.id()) == Some(claim);
            if !indexed {
                return Err(Broken::Index);
            }
        }
        if self.by_runtime.len() != self.tasks.len() || !self.first_reports.is_subset(&self.by_runtime) {
            return Err(Broken::Index);
        }
        Ok(())
    }

    /// Each lock is held by the task that has it, each waiting task is in its line, and each right to wait is counted.
    fn check_paths(&self) -> Result<(), Broken> {
        let count =
            |fits: &dyn Fn(&crate::task::Task) -> bool| self.tasks.values().filter(|t| fits(t)).count();
        let held = |(claim, task): (&crate::event::ClaimKey, &crate::task::Task)| {
            task.directory().is_none_or(|lock| self.paths.is_held_by(lock, *claim))
        };
        let fits = self.tasks.iter().all(held)
            && count(&|task| task.directory().is_some()) == self.paths.len()
            && count(&|task| task.phase_name() == Some(PhaseName::AwaitingDirectory)) == self.paths.waiting()
            && count(&|task| task.phase_name() == Some(PhaseName::AwaitingSlot)) == self.paths.ready()
            && count(&|task| task.holds_in_line()) == self.paths.holding()
            && count(&|task| task.is_parked()) == usize::from(self.claims.parked_now())
            && count(&|task| task.is_parked() && task.slot().is_some()) == 0
            && self.claims.parked_now() <= self.claims.total_slots();
        if fits { Ok(()) } else { Err(Broken::Paths) }
    }
}
