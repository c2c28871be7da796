//! The structural check: every token is where it belongs.

use super::State;
use crate::op::OpKind;
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
    /// INV-41.
    #[error("{counted} claims are counted as on their way, {open} are")]
    Claims {
        /// What the gate counts.
        counted: u32,
        /// What the table has.
        open: u32,
    },
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
        let claims = |kind: &OpKind| {
            matches!(kind, OpKind::Api(crate::op::ApiOp::Claim { .. } | crate::op::ApiOp::ClaimOne { .. }))
        };
        let open =
            u32::try_from(self.env.ops.iter().filter(|(_, kind)| claims(kind)).count()).unwrap_or(u32::MAX);
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
}
