//! The pool of execution slots: indices in first-in-first-out order, because agents see them; and how many of them the
//! tasks of each provider hold, for providers that have a bound of their own.

use crate::id::{Provider, SlotIndex};
use crate::token::SlotPermit;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// The pool.
#[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Slots {
    free: VecDeque<SlotIndex>,
    total: u16,
    caps: BTreeMap<Provider, u16>,
    used: BTreeMap<Provider, u16>,
}

impl Slots {
    pub(crate) fn new(total: u16, caps: BTreeMap<Provider, u16>) -> Self {
        Self { free: (0..total).map(SlotIndex).collect(), total, caps, used: BTreeMap::new() }
    }

    pub(crate) fn try_acquire(&mut self) -> Option<SlotPermit> {
        self.free.pop_front().map(SlotPermit::mint)
    }

    /// This very slot, if it is free.
    pub(crate) fn try_acquire_at(&mut self, index: SlotIndex) -> Option<SlotPermit> {
        let at = self.free.iter().position(|free| *free == index)?;
        self.free.remove(at).map(SlotPermit::mint)
    }

    pub(crate) fn release(&mut self, permit: SlotPermit) {
        let SlotPermit { index, .. } = permit;
        self.free.push_back(index);
    }

    pub(crate) fn available(&self) -> u16 {
        u16::try_from(self.free.len()).unwrap_or(u16::MAX)
    }

    pub(crate) const fn total(&self) -> u16 {
        self.total
    }

    /// Providers that have a bound.
    pub(crate) fn capped(&self) -> impl Iterator<Item = &Provider> {
        self.caps.keys()
    }

    /// How many more tasks of a provider may run; `None` if it has no bound of its own.
    pub(crate) fn room(&self, provider: &Provider) -> Option<u16> {
        let cap = *self.caps.get(provider)?;
        Some(cap.saturating_sub(self.used.get(provider).copied().unwrap_or(0)))
    }

    /// Counts room of a provider as taken, by a task or by a claim on its way.
    pub(crate) fn take_room(&mut self, provider: &Provider, n: u16) {
        if n > 0 && self.caps.contains_key(provider) {
            let used = self.used.entry(provider.clone()).or_default();
            *used = used.saturating_add(n);
        }
    }

    pub(crate) fn give_room(&mut self, provider: &Provider, n: u16) {
        if let Some(used) = self.used.get_mut(provider) {
            *used = used.saturating_sub(n);
            if *used == 0 {
                self.used.remove(provider);
            }
        }
    }

    /// Whether each index is either free or in `held`, once.
    pub(crate) fn conserves(&self, held: impl Iterator<Item = SlotIndex>) -> bool {
        let mut all: Vec<SlotIndex> = self.free.iter().copied().chain(held).collect();
        all.sort_unstable();
        all.into_iter().eq((0..self.total).map(SlotIndex))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inv_31_slots_are_conserved_and_given_out_oldest_first() {
        let mut slots = Slots::new(3, BTreeMap::new());
        let a = slots.try_acquire().expect("free");
        let b = slots.try_acquire().expect("free");
        assert_eq!((a.index, b.index), (SlotIndex(0), SlotIndex(1)));
        assert!(slots.conserves([a.index, b.index].into_iter()));
        assert!(!slots.conserves([a.index].into_iter()), "a lost permit shows");
        slots.release(a);
        assert_eq!(
            slots.try_acquire().map(|p| p.index),
            Some(SlotIndex(2)),
            "the oldest free one, not the last returned"
        );
        slots.release(b);
    }

    #[test]
    fn a_slot_can_be_taken_by_its_index_if_it_is_free() {
        let mut slots = Slots::new(3, BTreeMap::new());
        let b = slots.try_acquire_at(SlotIndex(1)).expect("free");
        assert_eq!(b.index, SlotIndex(1));
        assert!(slots.try_acquire_at(SlotIndex(1)).is_none(), "taken");
        assert!(slots.try_acquire_at(SlotIndex(3)).is_none(), "never there");
        assert!(slots.conserves([b.index].into_iter()));
        slots.release(b);
    }

    #[test]
    fn a_provider_has_no_more_room_than_its_cap() {
        let claude = Provider::new("claude");
        let mut slots = Slots::new(9, BTreeMap::from([(claude.clone(), 2)]));
        assert_eq!(slots.room(&Provider::new("codex")), None);
        slots.take_room(&claude, 2);
        assert_eq!(slots.room(&claude), Some(0));
        slots.give_room(&claude, 1);
        assert_eq!(slots.room(&claude), Some(1));
    }
}
