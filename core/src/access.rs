//! Whether the server takes this daemon's credential. While it does not, nothing new is asked of it: only now and then whether that is still
//! so. Work in hand goes on, and tries again less often.
//!
//! What was sent before the last change says nothing about what holds after it: an answer counts only if its request was sent since. A server
//! that refuses some things and takes others would have the daemon turn round with each answer; so once access was lost soon after it came
//! back, it is believed to be back only after a while.

use crate::env::Cx;
use crate::id::OpId;
use crate::time::Instant;
use crate::timer::TimerKey;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Looks are later than they might be by at most so many thousandths of their period, never earlier.
const LATER_PERMILLE: u32 = 200;

/// What is known of it.
#[derive(Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Access {
    /// Since when it is refused.
    lost: Option<Instant>,
    /// When it last came back.
    back: Option<Instant>,
    /// Before this, no answer is believed to mean that it is back.
    doubt: Instant,
    /// The last request that was sent before this changed.
    before: OpId,
    /// Counts the changes.
    epoch: u32,
}

/// A change of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Lost,
    Back,
}

impl Access {
    pub(crate) const fn is_lost(&self) -> bool {
        self.lost.is_some()
    }

    /// Which stretch of time between two changes this is.
    pub(crate) const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Whether what became of this request says something about the present.
    pub(crate) fn counts(&self, op: OpId) -> bool {
        op > self.before
    }

    /// The server has done what was asked. Returns whether that brings it back.
    pub(crate) fn taken(&self, now: Instant) -> bool {
        self.is_lost() && now >= self.doubt
    }

    /// The control connection, which was up before, still brings answers. One to a beat of the time before may have been on its way.
    pub(crate) fn acked(&self, now: Instant, period: Duration) -> bool {
        self.lost.is_some_and(|since| now.since(since) >= period) && self.taken(now)
    }

    /// It is so from now on; `last` is the last request that was sent.
    pub(crate) fn turn(&mut self, now: Instant, turn: Turn, last: OpId, period: Duration) {
        self.before = last;
        self.epoch = self.epoch.wrapping_add(1);
        match turn {
            Turn::Lost => {
                self.lost = Some(now);
                let again = self.back.is_some_and(|back| now.since(back) < period);
                self.doubt = if again { now.after(period) } else { now };
            }
            Turn::Back => (self.lost, self.back) = (None, Some(now)),
        }
    }
}

/// Sets a deadline for the next try of what the credential is not good enough for: never early, so that there are at most so many in a minute.
pub(crate) fn try_later(cx: &mut Cx<'_>, key: TimerKey) {
    let wait = later(cx);
    cx.arm(key, wait);
}

/// The period of a try that is refused because of the credential.
pub(crate) fn later(cx: &mut Cx<'_>) -> Duration {
    let period = cx.timing().access;
    period + cx.env.rng.below(period * LATER_PERMILLE / 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_secs(30);

    fn at(secs: u64) -> Instant {
        Instant::from_millis(secs * 1000)
    }

    #[test]
    fn what_was_sent_before_a_change_says_nothing_after_it() {
        let mut access = Access::default();
        assert!(!access.taken(at(0)), "it is not lost");
        assert!(access.counts(OpId(1)));
        access.turn(at(1), Turn::Lost, OpId(7), PERIOD);
        assert!(!access.counts(OpId(7)) && access.counts(OpId(8)));
        assert!(access.taken(at(1)));
        assert!(!access.acked(at(30), PERIOD), "it may be the answer to a beat from before");
        assert!(access.acked(at(31), PERIOD));
    }

    #[test]
    fn a_server_that_takes_one_thing_and_refuses_another_turns_it_round_once_in_a_period() {
        let mut access = Access::default();
        access.turn(at(0), Turn::Lost, OpId(1), PERIOD);
        access.turn(at(5), Turn::Back, OpId(2), PERIOD);
        access.turn(at(6), Turn::Lost, OpId(3), PERIOD);
        assert!(!access.taken(at(35)) && access.taken(at(36)));
        access.turn(at(36), Turn::Back, OpId(4), PERIOD);
        access.turn(at(66), Turn::Lost, OpId(5), PERIOD);
        assert!(access.taken(at(66)), "it was back for a whole period");
    }
}
