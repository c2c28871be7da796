//! Puts what overlaps in lanes side by side: within a lane one thing is over before the next begins.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Lanes of one kind.
#[derive(Clone, Debug, Default)]
pub(super) struct Lanes {
    /// When each lane is free again, and which it is.
    free: BinaryHeap<Reverse<(u64, usize)>>,
    count: usize,
}

impl Lanes {
    /// The lane for something from `begin` to `end`: one that is free, or a new one. Begins must not go back.
    pub(super) fn place(&mut self, begin: u64, end: u64) -> usize {
        let lane = match self.free.peek() {
            Some(Reverse((free, lane))) if *free <= begin => {
                let lane = *lane;
                self.free.pop();
                lane
            }
            _ => {
                self.count += 1;
                self.count - 1
            }
        };
        // What takes no time takes its place all the same.
        self.free.push(Reverse((end.max(begin.saturating_add(1)), lane)));
        lane
    }

    /// How many there are.
    pub(super) const fn count(&self) -> usize {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_is_side_by_side_and_a_free_lane_is_used_again() {
        let mut lanes = Lanes::default();
        let places: Vec<usize> =
            [(0, 10), (5, 6), (6, 20), (10, 10), (10, 30)].map(|(from, to)| lanes.place(from, to)).into();
        assert_eq!((places, lanes.count()), (vec![0, 1, 1, 0, 2], 3));
    }
}
