//! The pool of execution slots: indices in first-in-first-out order, because agents see them; and how many of them the
//! tasks of each provider hold, for providers that have a bound of their own.
//!
//! A task that waits for a user's directory gives its slot back, as far as no more tasks wait so than there are slots: who gets no right to
//! that waits with its slot, so the bound holds by construction.

use crate::id::{Provider, SlotIndex};
use crate::token::{ParkPermit, SlotPermit};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// The pool.
#[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Slots {
    free: VecDeque<SlotIndex>,
    total: u16,
    caps: BTreeMap<Provider, u16>,
    used: BTreeMap<Provider, u16>,
    /// Tasks that wait, without a slot, for a user's directory or for a slot to go with it.
    #[serde(default)]
    parked: u16,
}

impl Slots {
    pub(crate) fn new(total: u16, caps: BTreeMap<Provider, u16>) -> Self {
        let free = (0..total).map(SlotIndex).collect();
        Self { free, total, caps, used: BTreeMap::new(), parked: 0 }
    }

    /// A slot, for a claim or for a task that is here already.
    pub(crate) fn try_acquire(&mut self) -> Option<SlotPermit> {
        self.free.pop_front().map(SlotPermit::mint)
    }

    /// This very slot, if it is free, for a task that is here already.
    pub(crate) fn take_free_at(&mut self, index: SlotIndex) -> Option<SlotPermit> {
        let at = self.free.iter().position(|free| *free == index)?;
        self.free.remove(at).map(SlotPermit::mint)
    }

    /// A slot comes back.
    pub(crate) fn release(&mut self, permit: SlotPermit) {
        let SlotPermit { index, .. } = permit;
        self.free.push_back(index);
    }

    /// Lets a task wait without a slot, if fewer tasks do so than there are slots.
    pub(crate) fn let_park(&mut self) -> Option<ParkPermit> {
        (self.parked < self.total).then(|| {
            self.parked += 1;
            ParkPermit::mint()
        })
    }

    /// It does not wait any more.
    pub(crate) fn unpark(&mut self, permit: ParkPermit) {
        let ParkPermit { .. } = permit;
        self.parked -= 1;
    }

    /// Slots that neither a claim nor a task holds.
    pub(crate) fn available(&self) -> u16 {
        u16::try_from(self.free.len()).unwrap_or(u16::MAX)
    }

    /// Tasks that wait without a slot.
    pub(crate) const fn parked(&self) -> u16 {
        self.parked
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
    fn no_more_tasks_wait_without_a_slot_than_there_are_slots() {
        let mut slots = Slots::new(2, BTreeMap::new());
        let (a, b) = (slots.let_park().expect("none is parked"), slots.let_park().expect("one is parked"));
        assert!(slots.let_park().is_none());
        assert_eq!((slots.available(), slots.parked()), (2, 2), "a parked task keeps nobody from a slot");
        slots.unpark(a);
        let c = slots.let_park().expect("one is parked less");
        slots.unpark(b);
        slots.unpark(c);
        assert_eq!(slots.parked(), 0);
    }

    #[test]
    fn a_slot_can_be_taken_by_its_index_if_it_is_free() {
        let mut slots = Slots::new(3, BTreeMap::new());
        let b = slots.take_free_at(SlotIndex(1)).expect("free");
        assert_eq!(b.index, SlotIndex(1));
        assert!(slots.take_free_at(SlotIndex(1)).is_none(), "taken");
        assert!(slots.take_free_at(SlotIndex(3)).is_none(), "never there");
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
