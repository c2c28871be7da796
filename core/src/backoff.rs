//! How long to wait after a failure: doubling from a base to a cap, with jitter.

use crate::rng::Rng;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Jitter of every backoff, in thousandths either way.
const JITTER_PERMILLE: u32 = 200;

/// Shape of a backoff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Backoff {
    /// The first wait.
    pub base: Duration,
    /// No wait is longer, before jitter.
    pub cap: Duration,
}

/// Failures in a row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Failures(u32);

impl Failures {
    pub(crate) fn reset(&mut self) {
        self.0 = 0;
    }

    pub(crate) fn any(&self) -> bool {
        self.0 > 0
    }

    /// Whether the wait for the next try is longer than the first one.
    pub(crate) const fn is_grown(&self) -> bool {
        self.0 > 1
    }

    /// Counts one more failure and says how long to wait before the next try.
    pub(crate) fn next_wait(&mut self, shape: Backoff, rng: &mut Rng) -> Duration {
        let doubled = shape.base.saturating_mul(1_u32.checked_shl(self.0.min(31)).unwrap_or(u32::MAX));
        self.0 = self.0.saturating_add(1);
        rng.jitter(doubled.min(shape.cap.max(shape.base)), JITTER_PERMILLE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;

    #[test]
    fn inv_62_waits_double_to_the_cap() {
        let shape = Backoff { base: Duration::from_secs(1), cap: Duration::from_secs(30) };
        let (mut failures, mut rng) = (Failures::default(), Rng::new(Seed(1)));
        for want in [1_u64, 2, 4, 8, 16, 30, 30, 30] {
            let got = failures.next_wait(shape, &mut rng).as_millis();
            let want = u128::from(want) * 1000;
            assert!((want * 8 / 10..=want * 12 / 10).contains(&got), "{got} for {want}");
        }
        failures.reset();
        assert!(failures.next_wait(shape, &mut rng) <= Duration::from_millis(1200));
        for _ in 0..100 {
            assert!(failures.next_wait(shape, &mut rng) <= Duration::from_secs(36));
        }
    }
}
