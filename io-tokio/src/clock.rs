//! The clocks of the machine, read together as the core wants them.
//!
//! Linux counts suspend on `CLOCK_BOOTTIME`; the timers of tokio do not, so after a wake-up this clock is asked first. What that clock is
//! ahead of `CLOCK_MONOTONIC`, which stands still meanwhile, is how long the machine slept.

use longshore_core::time::{Instant, Now, UnixMillis};
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

#[cfg(target_os = "linux")]
const SUSPEND_AWARE: ClockId = ClockId::Boottime;
/// On macOS the monotonic clock of POSIX goes on while the machine sleeps.
#[cfg(not(target_os = "linux"))]
const SUSPEND_AWARE: ClockId = ClockId::Monotonic;

/// Milliseconds since this clock was started, suspend included, how many of them the machine slept, and the wall clock.
#[derive(Debug)]
pub struct Clock {
    origin: Reading,
    last_ms: AtomicU64,
    last_slept_ms: AtomicU64,
}

/// Both clocks of the machine, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Reading {
    with_sleep: u64,
    awake: u64,
}

impl Reading {
    /// The clock that counts sleep is read first: a delay between the two makes the sleep shorter, not longer.
    fn take() -> Self {
        let with_sleep = nanos(SUSPEND_AWARE);
        Self { with_sleep, awake: nanos(ClockId::Monotonic) }
    }
}

impl Clock {
    /// Starts the clock: this moment is [`Instant::ZERO`].
    pub fn start() -> Self {
        Self { origin: Reading::take(), last_ms: AtomicU64::new(0), last_slept_ms: AtomicU64::new(0) }
    }

    /// All clocks at once. Only the wall clock ever goes back, whichever threads ask. Where the machine has no clock that counts sleep, it
    /// never slept.
    pub fn now(&self) -> Now {
        let (mono, slept) = self.at(Reading::take());
        Now::new(mono, wall()).with_slept(slept)
    }

    fn at(&self, reading: Reading) -> (Instant, u64) {
        let later = |ns: u64, last: &AtomicU64| {
            let ms = ns / NANOS_PER_MS;
            ms.max(last.fetch_max(ms, Ordering::Relaxed))
        };
        let all = reading.with_sleep.saturating_sub(self.origin.with_sleep);
        // From two differences: a clock that is a few nanoseconds behind the other at the start is no millisecond of sleep.
        let awake = reading.awake.saturating_sub(self.origin.awake);
        let mono = later(all, &self.last_ms);
        let slept = later(all.saturating_sub(awake), &self.last_slept_ms);
        (Instant::from_millis(mono), slept)
    }
}

const NANOS_PER_MS: u64 = 1_000_000;

fn nanos(clock: ClockId) -> u64 {
    let t = clock_gettime(clock);
    let seconds = u64::try_from(t.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(t.tv_nsec).unwrap_or(0))
}

fn wall() -> UnixMillis {
    let ms = |d: std::time::Duration| i64::try_from(d.as_millis()).unwrap_or(i64::MAX);
    UnixMillis(match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(after) => ms(after),
        Err(before) => -ms(before.duration()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Clock {
        /// A reading so many milliseconds after the start, of which the machine slept some.
        fn after(&self, ms: u64, slept: u64) -> (u64, u64) {
            let awake = self.origin.awake + (ms - slept) * NANOS_PER_MS;
            let with_sleep = self.origin.with_sleep + ms * NANOS_PER_MS;
            let (mono, slept) = self.at(Reading { with_sleep, awake });
            (mono.as_millis(), slept)
        }
    }

    #[test]
    fn a_clock_starts_near_zero_and_follows_the_machine() {
        let clock = Clock::start();
        let now = clock.now();
        assert!(now.mono.as_millis() < 60_000 && now.slept < 60_000);
        assert!(now.wall.0 > 1_700_000_000_000, "the wall clock is milliseconds since 1970");
        assert_eq!(clock.after(90_000, 0).0, 90_000);
    }

    #[test]
    fn sleep_is_what_the_one_clock_is_ahead_of_the_other() {
        let clock = Clock::start();
        assert_eq!(clock.after(90_000, 0), (90_000, 0));
        assert_eq!(clock.after(8 * 3_600_000, 7 * 3_600_000), (8 * 3_600_000, 7 * 3_600_000));
        assert_eq!(
            clock.after(9 * 3_600_000, 7 * 3_600_000 - 5),
            (9 * 3_600_000, 7 * 3_600_000),
            "never less"
        );
    }

    #[test]
    fn a_clock_never_goes_back() {
        let clock = Clock::start();
        let forward = clock.after(5_000, 100);
        assert_eq!(clock.after(4_000, 0), forward);
        assert_eq!(clock.now().mono.as_millis(), forward.0);
        assert!(clock.after(5_001, 100) > forward);
    }
}
