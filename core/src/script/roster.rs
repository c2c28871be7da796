//! A set of which any member can be picked by number, in O(log n): a world of ten thousand runtimes is asked for some of them at each step.

use std::collections::BTreeMap;

/// The set. The order of its members follows from what was added and removed, and from nothing else.
#[derive(Clone, Debug)]
pub(super) struct Roster<T> {
    members: Vec<T>,
    at: BTreeMap<T, usize>,
}

impl<T> Default for Roster<T> {
    fn default() -> Self {
        Self { members: Vec::new(), at: BTreeMap::new() }
    }
}

impl<T: Clone + Ord> Roster<T> {
    pub(super) fn insert(&mut self, member: &T) {
        if !self.at.contains_key(member) {
            self.at.insert(member.clone(), self.members.len());
            self.members.push(member.clone());
        }
    }

    /// The last member takes its place.
    pub(super) fn remove(&mut self, member: &T) {
        let Some(at) = self.at.remove(member) else { return };
        self.members.swap_remove(at);
        if let Some(moved) = self.members.get(at) {
            self.at.insert(moved.clone(), at);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    pub(super) fn get(&self, nth: usize) -> Option<&T> {
        self.members.get(nth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_can_be_picked_and_none_that_left() {
        let mut roster = Roster::default();
        for n in [5, 1, 9, 5] {
            roster.insert(&n);
        }
        roster.remove(&5);
        roster.remove(&7);
        let mut left: Vec<i32> = (0..roster.len()).filter_map(|nth| roster.get(nth).copied()).collect();
        left.sort_unstable();
        assert_eq!((left, roster.get(2)), (vec![1, 9], None));
        roster.remove(&9);
        roster.remove(&1);
        assert_eq!((roster.len(), roster.get(0)), (0, None));
    }
}
