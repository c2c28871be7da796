//! What it means that the time of day goes back.

use super::said::Said;
use jiff::SignedDuration;
use jiff::civil::Time;

pub(super) const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
pub(super) const DAY: i64 = 24 * HOUR;

/// Lines of tasks that run side by side may be in another order than their times: that is no clock that was set.
const JITTER: i64 = MINUTE;

/// A clock that goes back by more than this has passed midnight, for certain.
const CERTAIN: i64 = 12 * HOUR;

/// A clock that goes back by more than this has passed midnight, as a quiet night is common and a clock that is set back by hours is rare.
const QUIET: i64 = 3 * HOUR;

/// The same for a clock of which the other reading cannot be: the lines before would be later than the file is.
const IMPOSSIBLE: i64 = HOUR;

/// The same where a process begins: between two of them nothing is written, however long that is.
const BETWEEN_PROCESSES: i64 = 10 * MINUTE;

/// A place at which the time of day goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    /// The line behind it.
    pub(super) at: usize,
    /// By how many milliseconds.
    pub(super) back: i64,
    /// The time before it.
    pub(super) before: Time,
    pub(super) reading: Reading,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// A midnight has passed, for certain.
    Midnight,
    /// It is taken that one has passed.
    Night,
    /// It is taken that the clock was set.
    Set,
    /// The hour that comes twice comes for the second time.
    Twice,
}

impl Reading {
    pub(super) const fn passes(self) -> bool {
        matches!(self, Self::Midnight | Self::Night)
    }

    /// The reading of a time that goes back by so much, if it cannot be that the clock was set.
    pub(super) const fn if_it_was_not_set(self, back: i64) -> Self {
        match self {
            Self::Set if back > IMPOSSIBLE => Self::Midnight,
            Self::Night => Self::Midnight,
            other => other,
        }
    }
}

impl Turn {
    /// Looks at the line `at`, and the one before it. `said` tells what it says, and `twice` whether its hour comes twice on its day. `None`: the
    /// time does not go back, or by so little that it means nothing.
    pub(super) fn new(
        at: usize,
        before: Time,
        now: Time,
        said: impl FnOnce() -> Option<Said>,
        twice: impl FnOnce() -> bool,
    ) -> Option<Self> {
        if !goes_back(before, now) {
            return None;
        }
        let back = millis(before) - millis(now);
        let begins = || matches!(said(), Some(Said::Begun | Said::Settings | Said::Listening));
        let reading = match back {
            _ if back > CERTAIN => Reading::Midnight,
            _ if back > QUIET => Reading::Night,
            _ if back <= HOUR && twice() => Reading::Twice,
            _ if back > BETWEEN_PROCESSES && begins() => Reading::Night,
            _ => Reading::Set,
        };
        Some(Self { at, back, before, reading })
    }
}

/// Whether the time of day goes back by more than lines that are written side by side do.
pub(super) fn goes_back(before: Time, now: Time) -> bool {
    millis(before) - millis(now) > JITTER
}

/// Takes as many nights for clocks that were set as make up for this: those in which the time goes back least. If there are not so many, what
/// is known of the end is wrong, and nothing is done.
pub(super) fn revoke(turns: &mut [Turn], over: SignedDuration) {
    if over <= SignedDuration::ZERO {
        return;
    }
    let day = DAY / 1000;
    let days = usize::try_from((over.as_secs() + day - 1) / day).unwrap_or(usize::MAX).max(1);
    let mut nights: Vec<&mut Turn> = turns.iter_mut().filter(|turn| turn.reading == Reading::Night).collect();
    if nights.len() >= days {
        nights.sort_by_key(|turn| turn.back);
        nights.into_iter().take(days).for_each(|turn| turn.reading = Reading::Set);
    }
}

/// Milliseconds since midnight.
pub(super) fn millis(time: Time) -> i64 {
    let seconds = i64::from(time.hour()) * 3600 + i64::from(time.minute()) * 60 + i64::from(time.second());
    seconds * 1000 + i64::from(time.millisecond())
}
