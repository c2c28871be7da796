//! Which bars of a lane are below which: those that overlap must not hide each other.

use super::drawing::{Bar, Lane};
use super::look::Kind;
use std::collections::BTreeMap;

/// Where the bars of a lane go. Rows of thick bars come first, those of thin ones below them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stack {
    /// Rows of thick bars; at least one.
    pub(super) thick: u32,
    /// Rows of thin bars.
    pub(super) thin: u32,
    /// Positions of the bars in the lane by row, each row in the order of time and without overlap.
    pub(super) rows: Vec<Vec<usize>>,
}

/// Puts each bar into the first row that is free for it. What lasts is above what happens meanwhile, and thin bars of a kind are together.
pub(super) fn stack(lane: &Lane) -> Stack {
    let mut kinds: BTreeMap<(bool, u8), Vec<usize>> = BTreeMap::new();
    for (i, bar) in lane.bars.iter().enumerate() {
        let order = match bar.kind {
            Kind::Serving | Kind::Stopping => 0,
            Kind::RootMark => 2,
            Kind::PathLock => 3,
            Kind::Wait => 4,
            Kind::Call => 5,
            _ => 1,
        };
        kinds.entry((bar.kind.look().thin, order)).or_default().push(i);
    }
    let mut stack = Stack::default();
    for ((thin, _), which) in kinds {
        if thin && stack.thick == 0 {
            stack.rows.push(Vec::new());
            stack.thick = 1;
        }
        let rows = first_free(&lane.bars, which);
        let count = if thin { &mut stack.thin } else { &mut stack.thick };
        *count += rows.len() as u32;
        stack.rows.extend(rows);
    }
    if stack.rows.is_empty() {
        (stack.rows, stack.thick) = (vec![Vec::new()], 1);
    }
    stack
}

fn first_free(bars: &[Bar], mut which: Vec<usize>) -> Vec<Vec<usize>> {
    which.sort_by_key(|i| (bars[*i].begin, bars[*i].end, *i));
    let mut rows: Vec<Vec<usize>> = Vec::new();
    for i in which {
        let free = |row: &&mut Vec<usize>| row.last().is_none_or(|last| bars[*last].end <= bars[i].begin);
        match rows.iter_mut().find(free) {
            Some(row) => row.push(i),
            None => rows.push(vec![i]),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bar() -> impl Strategy<Value = Bar> {
        let kind = prop::sample::select(Kind::ALL.as_slice());
        (kind, 0..100_u64, 0..30_u64).prop_map(|(kind, begin, long)| Bar::new(kind, "", begin, begin + long))
    }

    proptest! {
        #[test]
        fn every_bar_has_a_place_and_none_hides_another(bars in prop::collection::vec(bar(), 0..60)) {
            let lane = Lane { bars, ..Lane::default() };
            let stack = stack(&lane);
            let mut placed: Vec<_> = stack.rows.iter().flatten().copied().collect();
            placed.sort_unstable();
            prop_assert_eq!(placed, (0..lane.bars.len()).collect::<Vec<_>>());
            prop_assert_eq!(stack.rows.len() as u32, stack.thick + stack.thin);
            for (r, row) in stack.rows.iter().enumerate() {
                prop_assert!(row.iter().all(|i| lane.bars[*i].kind.look().thin == (r as u32 >= stack.thick)));
                prop_assert!(row.windows(2).all(|two| lane.bars[two[0]].end <= lane.bars[two[1]].begin));
            }
        }
    }
}
