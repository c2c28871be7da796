//! How one world differs from the next: what happens in it, how often things go wrong, and how much of everything there is. A world that
//! never loses its connection, or loses it all the time, finds what an average one does not.

use super::Choose;
use super::world::World;
use crate::config::Config;

/// Parts of 100 that are weighed.
const PARTS: usize = 20;
/// What one part can weigh: never, as usual, often.
const WEIGHTS: [u32; 6] = [0, 1, 1, 2, 4, 12];
/// Percentages of failures.
const FAULTS: [u32; 7] = [0, 1, 5, 20, 40, 60, 90];
/// Runtimes of a large world, in all of its workspaces.
const MOST_RUNTIMES: u32 = 10_000;
/// Large enough that what is O(n) in a rule, or in this world's end, costs too much to be done for all of it.
const LARGE: u32 = 200;

/// The weights of what happens. All equal at first.
#[derive(Clone, Debug, Default)]
pub(super) struct Mix {
    /// The sum of the weights up to and with each part; empty if all are equal.
    upto: Vec<u32>,
}

impl Mix {
    fn drawn(choose: &mut dyn Choose) -> Self {
        let mut sum = 0;
        let upto = (0..PARTS).map(|part| {
            let weight = WEIGHTS[choose.below(WEIGHTS.len() as u32) as usize];
            // Something must be answered, and time must pass.
            sum += if part == 0 || part == PARTS * 3 / 5 { weight.max(1) } else { weight };
            sum
        });
        Self { upto: upto.collect() }
    }

    /// A number below 100.
    pub(super) fn draw(&self, choose: &mut dyn Choose) -> u32 {
        let Some(sum) = self.upto.last() else { return choose.below(100) };
        let at = choose.below(*sum);
        let part = self.upto.partition_point(|upto| *upto <= at);
        let wide = 100 / PARTS as u32;
        part as u32 * wide + choose.below(wide)
    }
}

/// How much of everything a world has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Runtimes of each workspace.
    pub(super) fleet: u32,
}

impl Size {
    /// What most worlds have: three runtimes in each of two workspaces.
    pub const USUAL: Self = Self { fleet: 3 };

    /// Mostly the usual; in 2 of 100 worlds up to 10 000 runtimes, with room for up to 1 000 tasks at once.
    pub fn drawn(choose: &mut dyn Choose, cfg: &mut Config) -> Self {
        if choose.one_in(50) { Self::large(choose, cfg) } else { Self::USUAL }
    }

    /// Up to 10 000 runtimes, as likely some tens as some thousands, with room for up to 1 000 tasks at once.
    pub fn large(choose: &mut dyn Choose, cfg: &mut Config) -> Self {
        let most = MOST_RUNTIMES >> choose.below(8);
        cfg.slots = Config::MAX_SLOTS >> choose.below(4);
        Self { fleet: (1 + choose.below(most) / 2).max(3) }
    }

    /// How many events of a world of this size take about as long as `usual` ones of a usual world.
    pub fn steps(self, usual: usize) -> usize {
        usual.min(40 + 40_000 / self.fleet as usize)
    }

    /// Whether bringing it to rest, with each runtime's heartbeats for minutes, takes no longer than the rest of a test.
    pub const fn can_heal(self) -> bool {
        self.fleet <= LARGE
    }
}

impl World {
    /// Makes this world one of a kind: other weights of what happens, and other rates of failures.
    pub fn swarm(&mut self, choose: &mut dyn Choose) {
        self.mix = Mix::drawn(choose);
        let fault = |choose: &mut dyn Choose| FAULTS[choose.below(FAULTS.len() as u32) as usize];
        self.levels = std::array::from_fn(|_| fault(choose));
        self.faults = self.levels[0];
    }

    /// Gives each workspace so many runtimes from the next registration on.
    pub fn resize(&mut self, size: Size) {
        self.size = size;
    }
}

#[cfg(test)]
mod tests {
    use super::super::Seeded;
    use super::*;

    #[test]
    fn a_drawn_mix_leaves_things_out_and_a_plain_one_does_not() {
        let mut choose = Seeded::new(3);
        let mut count = |mix: &Mix| {
            let mut seen = [0_u32; 100];
            (0..20_000).for_each(|_| seen[mix.draw(&mut choose) as usize] += 1);
            seen
        };
        assert!(count(&Mix::default()).iter().all(|n| *n > 100));
        let drawn = Mix::drawn(&mut Seeded::new(4));
        let seen = count(&drawn);
        assert!(seen.contains(&0) && seen[0] > 0 && seen[60] > 0, "{seen:?}");
    }

    #[test]
    fn large_worlds_reach_both_bounds() {
        let mut choose = Seeded::new(5);
        let mut cfg = Config::default();
        let sizes: Vec<Size> = (0..500).map(|_| Size::large(&mut choose, &mut cfg)).collect();
        assert!(sizes.iter().any(|size| size.fleet > 4_000) && sizes.iter().any(|size| size.can_heal()));
        assert!(
            sizes.iter().all(|size| size.fleet * 2 <= MOST_RUNTIMES + 2 && cfg.slots <= Config::MAX_SLOTS)
        );
    }
}
