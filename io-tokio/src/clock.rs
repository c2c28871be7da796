//! The clocks of the machine, read together as the core wants them.
//!
//! Linux counts suspend on `CLOCK_BOOTTIME`; the timers of tokio do not, so what waits for an instant of this clock waits with an
//! [`Alarm`](crate::alarm::Alarm). What that clock is
//! ahead of `CLOCK_MONOTONIC`, which stands still meanwhile, is how long the machine slept.

use longshore_core::time::{Instant, Now, UnixMillis};
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;

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
    /// Only where a test says when the machine sleeps: nanoseconds that it did.
    sleeper: Option<watch::Receiver<u64>>,
}

/// Says when the machine of a clock sleeps, where no machine can be put to sleep: in tests.
#[derive(Clone, Debug)]
pub struct Sleeper(Arc<watch::Sender<u64>>);

impl Sleeper {
    /// The machine has slept for so long.
    pub fn sleep(&self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.0.send_modify(|slept| *slept = slept.saturating_add(ns));
    }
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
        Self {
            origin: Reading::take(),
            last_ms: AtomicU64::new(0),
            last_slept_ms: AtomicU64::new(0),
            sleeper: None,
        }
    }

    /// The same, with somebody who says when the machine sleeps.
    pub fn with_sleeper() -> (Self, Sleeper) {
        let (sender, receiver) = watch::channel(0);
        (Self { sleeper: Some(receiver), ..Self::start() }, Sleeper(Arc::new(sender)))
    }

    /// Nanoseconds of sleep by the word of a [`Sleeper`].
    pub(crate) fn added(&self) -> u64 {
        self.sleeper.as_ref().map_or(0, |sleeper| *sleeper.borrow())
    }

    /// Waits until the machine has slept, by the word of a [`Sleeper`], longer than that; for ever if there is none.
    pub(crate) async fn set_forward(&self, from: u64) {
        if let Some(mut sleeper) = self.sleeper.clone()
            && sleeper.wait_for(|slept| *slept != from).await.is_ok()
        {
            return;
        }
        std::future::pending::<()>().await;
    }

    /// An instant of this clock on the machine's own, in nanoseconds.
    #[cfg(target_os = "linux")]
    pub(crate) fn on_the_machine(&self, at: Instant) -> u64 {
        let since = at.as_millis().saturating_mul(NANOS_PER_MS).saturating_sub(self.added());
        self.origin.with_sleep.saturating_add(since)
    }

    /// All clocks at once. Only the wall clock ever goes back, whichever threads ask. Where the machine has no clock that counts sleep, it
    /// never slept.
    pub fn now(&self) -> Now {
        let mut reading = Reading::take();
        reading.with_sleep = reading.with_sleep.saturating_add(self.added());
        let (mono, slept) = self.at(reading);
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
    let ms = |d: Duration| i64::try_from(d.as_millis()).unwrap_or(i64::MAX);
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
