//! The clocks of the machine, read together as the core wants them.
//!
//! Linux counts suspend on `CLOCK_BOOTTIME`; the timers of tokio do not, so after a wake-up this clock is asked first.

use longshore_core::time::{Instant, Now, UnixMillis};
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

#[cfg(target_os = "linux")]
const SUSPEND_AWARE: ClockId = ClockId::Boottime;
/// On macOS the monotonic clock of POSIX goes on while the machine sleeps.
#[cfg(not(target_os = "linux"))]
const SUSPEND_AWARE: ClockId = ClockId::Monotonic;

/// Milliseconds since this clock was started, suspend included, and the wall clock.
#[derive(Debug)]
pub struct Clock {
    origin_ms: u64,
    last_ms: AtomicU64,
}

impl Clock {
    /// Starts the clock: this moment is [`Instant::ZERO`].
    pub fn start() -> Self {
        Self { origin_ms: machine_ms(), last_ms: AtomicU64::new(0) }
    }

    /// Both clocks at once. The first never goes back, whichever threads ask; the wall clock is taken as it is.
    pub fn now(&self) -> Now {
        Now::new(self.at(machine_ms()), wall())
    }

    fn at(&self, machine_ms: u64) -> Instant {
        let ms = machine_ms.saturating_sub(self.origin_ms);
        Instant::from_millis(ms.max(self.last_ms.fetch_max(ms, Ordering::Relaxed)))
    }
}

fn machine_ms() -> u64 {
    let t = clock_gettime(SUSPEND_AWARE);
    let seconds = u64::try_from(t.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1000).saturating_add(u64::try_from(t.tv_nsec).unwrap_or(0) / 1_000_000)
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

    #[test]
    fn a_clock_starts_near_zero_and_follows_the_machine() {
        let clock = Clock::start();
        assert!(clock.now().mono.as_millis() < 60_000);
        assert!(clock.now().wall.0 > 1_700_000_000_000, "the wall clock is milliseconds since 1970");
        let later = clock.at(clock.origin_ms + 90_000);
        assert_eq!(later, Instant::from_millis(90_000));
    }

    #[test]
    fn a_clock_never_goes_back() {
        let clock = Clock::start();
        let forward = clock.at(clock.origin_ms + 5_000);
        assert_eq!(clock.at(clock.origin_ms + 4_000), forward);
        assert_eq!(clock.at(clock.origin_ms.saturating_sub(1_000)), forward);
        assert_eq!(clock.now().mono, forward);
        assert!(clock.at(clock.origin_ms + 5_001) > forward);
    }
}
