//! Waits until an instant of the [`Clock`], suspend included. The timers of tokio stand still while the machine sleeps: eight hours later they
//! would still wait for what was left before. Linux has timers that do not.

use crate::clock::Clock;
use longshore_core::time::Instant;

/// Something to wait with; one wait at a time.
#[derive(Debug)]
pub struct Alarm(Inner);

#[cfg(target_os = "linux")]
type Inner = Option<boottime::Timer>;
#[cfg(not(target_os = "linux"))]
type Inner = ();

impl Alarm {
    /// Makes one. Must be called inside the runtime that will wait. Where the system has no such timer, one that stands still has to do.
    pub fn new() -> Self {
        #[cfg(target_os = "linux")]
        {
            let timer = boottime::Timer::new();
            if let Err(error) = &timer {
                tracing::warn!(
                    "no timer that goes on while the machine sleeps: {error}; after a sleep this daemon may be late"
                );
            }
            Self(timer.ok())
        }
        #[cfg(not(target_os = "linux"))]
        Self(())
    }

    /// Waits until `clock` has come to `at`, or may have: whoever waits has to look. For ever if that is never. A wait that is dropped leaves
    /// nothing behind.
    pub async fn until(&mut self, clock: &Clock, at: Option<Instant>) {
        let Some(at) = at else { return std::future::pending().await };
        let added = clock.added();
        let now = clock.now().mono;
        if at <= now {
            return;
        }
        tokio::select! {
            () = self.wait(clock, now, at) => {}
            () = clock.set_forward(added) => {}
        }
    }

    #[cfg(target_os = "linux")]
    async fn wait(&mut self, clock: &Clock, now: Instant, at: Instant) {
        if let Some(timer) = &mut self.0
            && timer.wait(clock.on_the_machine(at)).await.is_ok()
        {
            return;
        }
        tokio::time::sleep(at.since(now)).await;
    }

    #[cfg(not(target_os = "linux"))]
    async fn wait(&mut self, _: &Clock, now: Instant, at: Instant) {
        tokio::time::sleep(at.since(now)).await;
    }
}

impl Default for Alarm {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(target_os = "linux")]
mod boottime {
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use std::io;
    use tokio::net::unix::pipe;

    const NANOS_PER_SECOND: u64 = 1_000_000_000;

    /// A timer on `CLOCK_BOOTTIME`. It is read as a pipe is: that is the one safe way to wait for any descriptor.
    #[derive(Debug)]
    pub(super) struct Timer {
        fd: pipe::Receiver,
        /// What it is set to.
        set: Option<u64>,
    }

    impl Timer {
        pub(super) fn new() -> io::Result<Self> {
            let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
            let fd = timerfd_create(TimerfdClockId::Boottime, flags)?;
            Ok(Self { fd: pipe::Receiver::from_owned_fd_unchecked(fd)?, set: None })
        }

        /// Waits until the clock is at so many nanoseconds.
        pub(super) async fn wait(&mut self, at: u64) -> io::Result<()> {
            if self.set != Some(at) {
                let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
                // Zero would turn it off.
                let at = at.max(1);
                let value = Timespec {
                    tv_sec: i64::try_from(at / NANOS_PER_SECOND).unwrap_or(i64::MAX),
                    tv_nsec: i64::try_from(at % NANOS_PER_SECOND).unwrap_or(0),
                };
                // This also forgets that it has fired.
                let value = Itimerspec { it_interval: zero, it_value: value };
                timerfd_settime(&self.fd, TimerfdTimerFlags::ABSTIME, &value)?;
                self.set = Some(at);
            }
            loop {
                self.fd.readable().await?;
                // How often it has gone off.
                let mut count = [0; 8];
                match self.fd.try_read(&mut count) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    read => {
                        self.set = None;
                        return read.map(drop);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::Duration;

    const WITHIN: Duration = Duration::from_secs(30);

    fn later(clock: &Clock, ms: u64) -> Instant {
        clock.now().mono.after(Duration::from_millis(ms))
    }

    #[tokio::test]
    async fn it_is_never_early_and_goes_off_again_and_again() {
        let (clock, mut alarm) = (Clock::start(), Alarm::new());
        for ms in [0, 1, 20, 3] {
            let at = later(&clock, ms);
            tokio::time::timeout(WITHIN, alarm.until(&clock, Some(at))).await.expect("it goes off");
            assert!(clock.now().mono >= at, "{ms} ms");
        }
    }

    #[tokio::test]
    async fn a_wait_that_is_given_up_does_not_end_the_next_one() {
        let (clock, mut alarm) = (Clock::start(), Alarm::new());
        for at in [None, Some(later(&clock, 5)), Some(later(&clock, 60_000))] {
            let given_up = tokio::time::timeout(Duration::from_millis(1), alarm.until(&clock, at)).await;
            assert!(given_up.is_err() || at.is_some_and(|at| at <= clock.now().mono));
        }
        let at = later(&clock, 50);
        tokio::time::timeout(WITHIN, alarm.until(&clock, Some(at))).await.expect("it goes off");
        assert!(clock.now().mono >= at);
    }

    #[tokio::test]
    async fn a_sleep_of_the_machine_counts() {
        let (clock, sleeper) = Clock::with_sleeper();
        let (clock, mut alarm) = (Arc::new(clock), Alarm::new());
        let at = later(&clock, 8 * 3_600_000);
        let waits = tokio::spawn({
            let clock = clock.clone();
            async move { alarm.until(&clock, Some(at)).await }
        });
        sleeper.sleep(Duration::from_hours(8));
        tokio::time::timeout(WITHIN, waits).await.expect("it is over").expect("no panic");
        assert!(clock.now().mono >= at && clock.now().slept >= 8 * 3_600_000);
    }
}
