//! Time as the core sees it: passed in with every event, never read.
//!
//! Order in a trace comes from the step number, so milliseconds are enough.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Milliseconds on a clock that counts suspend and never goes back; zero is the start of the daemon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Instant(u64);

impl Instant {
    /// The start of the daemon.
    pub const ZERO: Self = Self(0);

    /// The instant `ms` milliseconds after the start of the daemon.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the start of the daemon.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// The instant `d` later, at most `u64::MAX` ms. Fractions of a millisecond are rounded up, so that a
    /// deadline is never early.
    #[must_use]
    pub fn after(self, d: Duration) -> Self {
        let ms = u64::try_from(d.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(ms))
    }

    /// The time from `earlier` to here; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

/// Milliseconds since 1970-01-01 UTC on the wall clock, which an operator may set: for ages and text only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnixMillis(pub i64);

/// Milliseconds that the machine was awake since the start of the daemon: what an agent could use. It stands still while the machine
/// sleeps, so it is no [`Instant`], and no deadline can be set by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Awake(u64);

impl Awake {
    /// The time awake from `earlier` to here; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

/// Both clocks, read at the same moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Now {
    /// For every comparison and every deadline.
    pub mono: Instant,
    /// For ages and text.
    pub wall: UnixMillis,
    /// How long the machine has slept since the zero of `mono`, in milliseconds: time that no agent could use.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub slept: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
pub(crate) const fn is_zero(ms: &u64) -> bool {
    *ms == 0
}

impl Now {
    /// Both clocks at once.
    pub const fn new(mono: Instant, wall: UnixMillis) -> Self {
        Self { mono, wall, slept: 0 }
    }

    /// The same, on a machine that has slept for `ms` milliseconds so far.
    #[must_use]
    pub const fn with_slept(self, ms: u64) -> Self {
        Self { slept: ms, ..self }
    }

    /// How long the machine was awake by now.
    pub const fn awake(self) -> Awake {
        Awake(self.mono.as_millis().saturating_sub(self.slept))
    }

    /// Goes on to a later reading, and says whether its `mono` went back, which is not followed. `slept` never goes back either, and
    /// grows by no more than the time that passed: so the time awake stands still at worst, whatever a clock says.
    pub fn advance(&mut self, reading: Self) -> bool {
        let back = reading.mono < self.mono;
        let passed = reading.mono.as_millis().saturating_sub(self.mono.as_millis());
        self.mono = self.mono.max(reading.mono);
        self.wall = reading.wall;
        self.slept = reading.slept.clamp(self.slept, self.slept.saturating_add(passed));
        back
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(mono: u64, slept: u64) -> Now {
        Now::new(Instant::from_millis(mono), UnixMillis(0)).with_slept(slept)
    }

    #[test]
    fn the_time_awake_never_goes_back_and_never_runs_ahead() {
        let mut now = at(0, 0);
        let mut reads = |mono, slept| {
            let back = now.advance(at(mono, slept));
            (now.mono.as_millis(), now.awake().0, back)
        };
        assert_eq!(reads(1_000, 0), (1_000, 1_000, false));
        assert_eq!(reads(9_000, 8_000), (9_000, 1_000, false), "it slept");
        assert_eq!(reads(9_500, 0), (9_500, 1_500, false), "sleep is not taken back");
        assert_eq!(
            reads(9_600, u64::MAX),
            (9_600, 1_500, false),
            "it cannot have slept longer than time passed"
        );
        assert_eq!(reads(9_700, 8_100), (9_700, 1_600, false), "and a clock that recovers counts again");
        assert_eq!(reads(5_000, 9_000), (9_700, 1_600, true));
    }
}
