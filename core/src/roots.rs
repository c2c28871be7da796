//! Who works in which task directory: marks that keep the collector away, and the collector's reservation.
//!
//! One enum instead of two maps: a root that is active and being deleted cannot be written down.

use crate::event::ClaimKey;
use crate::id::EnvRoot;
use crate::token::{EnvRootGuard, GcReservation};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum State {
    Active { refs: u32 },
    Deleting { waiters: VecDeque<ClaimKey> },
}

/// All roots that somebody works in; one that is not here is free.
#[derive(Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct EnvRoots {
    roots: BTreeMap<EnvRoot, State>,
    /// Those that are being deleted, which are few: each task that ends looks through them.
    deleting: BTreeSet<EnvRoot>,
}

impl EnvRoots {
    /// Marks the root; `None` while it is being deleted: the claim is then remembered and granted by `finish_gc`.
    pub(crate) fn acquire(&mut self, root: &EnvRoot, who: ClaimKey) -> Option<EnvRootGuard> {
        match self.roots.entry(root.clone()).or_insert(State::Active { refs: 0 }) {
            State::Active { refs } => {
                *refs += 1;
                Some(EnvRootGuard::mint(root.clone()))
            }
            State::Deleting { waiters } => {
                waiters.push_back(who);
                None
            }
        }
    }

    pub(crate) fn release(&mut self, guard: EnvRootGuard) {
        let EnvRootGuard { root, .. } = guard;
        if let Some(State::Active { refs }) = self.roots.get_mut(&root) {
            *refs -= 1;
            if *refs == 0 {
                self.roots.remove(&root);
            }
        }
    }

    /// Reserves a root for removal, if nobody has marked it and nobody removes it already.
    pub(crate) fn reserve_for_gc(&mut self, root: &EnvRoot) -> Option<GcReservation> {
        if self.roots.contains_key(root) {
            return None;
        }
        self.deleting.insert(root.clone());
        self.roots.insert(root.clone(), State::Deleting { waiters: VecDeque::new() });
        self.deleting.insert(root.clone());
        Some(GcReservation::mint(root.clone()))
    }

    /// Ends a removal and marks the root for each claim that waited, in order.
    pub(crate) fn finish_gc(&mut self, done: GcReservation) -> Vec<(ClaimKey, EnvRootGuard)> {
        let GcReservation { root, .. } = done;
        self.deleting.remove(&root);
        let Some(State::Deleting { waiters }) = self.roots.remove(&root) else { return Vec::new() };
        waiters.into_iter().filter_map(|who| Some((who, self.acquire(&root, who)?))).collect()
    }

    /// A claim that waits for a root does not want it any more.
    pub(crate) fn forget_waiter(&mut self, who: ClaimKey) {
        for root in &self.deleting {
            if let Some(State::Deleting { waiters }) = self.roots.get_mut(root) {
                waiters.retain(|waiter| *waiter != who);
            }
        }
    }

    pub(crate) fn marks(&self) -> u64 {
        let refs = |state: &State| match state {
            State::Active { refs } => u64::from(*refs),
            State::Deleting { .. } => 0,
        };
        self.roots.values().map(refs).sum()
    }

    /// Whether somebody works in the root, or it is being deleted.
    pub(crate) fn is_held(&self, root: &EnvRoot) -> bool {
        self.roots.contains_key(root)
    }

    /// Whether the collector frees the root at this moment.
    pub(crate) fn is_deleting(&self, root: &EnvRoot) -> bool {
        self.deleting.contains(root)
    }

    /// Roots that are being deleted, each with the claims that wait for it, in order.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (&EnvRoot, impl Iterator<Item = ClaimKey>)> {
        self.roots.iter().filter_map(|(root, state)| match state {
            State::Deleting { waiters } => Some((root, waiters.iter().copied())),
            State::Active { .. } => None,
        })
    }

    /// Roots that are being deleted.
    pub(crate) fn deleting(&self) -> impl Iterator<Item = &EnvRoot> {
        self.deleting.iter()
    }

    pub(crate) fn is_active(&self, root: &EnvRoot) -> bool {
        matches!(self.roots.get(root), Some(State::Active { .. }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ClaimKey = ClaimKey(1);
    const B: ClaimKey = ClaimKey(2);

    #[test]
    fn inv_127_two_marks_need_two_unmarks() {
        let root = EnvRoot::new("ws/a");
        let mut roots = EnvRoots::default();
        let (one, two) = (roots.acquire(&root, A).expect("free"), roots.acquire(&root, B).expect("shared"));
        roots.release(one);
        assert!(roots.is_active(&root));
        roots.release(two);
        assert!(!roots.is_active(&root));
        assert_eq!(roots, EnvRoots::default());
    }

    #[test]
    fn inv_128_no_removal_of_a_marked_root() {
        let root = EnvRoot::new("ws/a");
        let mut roots = EnvRoots::default();
        let guard = roots.acquire(&root, A).expect("free");
        assert!(roots.reserve_for_gc(&root).is_none());
        roots.release(guard);
        let reservation = roots.reserve_for_gc(&root).expect("free again");
        assert!(roots.reserve_for_gc(&root).is_none(), "inv_129: one reservation at a time");
        assert!(roots.acquire(&root, A).is_none());
        assert!(roots.acquire(&root, B).is_none());
        roots.forget_waiter(A);
        let granted = roots.finish_gc(reservation);
        assert_eq!(granted.iter().map(|(who, _)| *who).collect::<Vec<_>>(), [B]);
        for (_, guard) in granted {
            roots.release(guard);
        }
        assert_eq!(roots, EnvRoots::default());
    }
}
