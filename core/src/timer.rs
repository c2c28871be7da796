//! Deadlines as data: one ordered index over all machines, so that the next one is found in O(log n).

use crate::event::ClaimKey;
use crate::id::{ActionId, OpId, RuntimeId, WorkspaceId};
use crate::time::Instant;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

/// What a deadline is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "timer", content = "of", rename_all = "snake_case")]
#[non_exhaustive]
pub enum TimerKey {
    /// A stop goes on without what it waits for.
    Stop,
    /// A request takes too long.
    Op(OpId),
    /// Preparation takes too long.
    Prepare(ClaimKey),
    /// The prepare lease is due.
    Lease(ClaimKey),
    /// `/start` is tried again.
    StartRetry(ClaimKey),
    /// The task's status is due.
    Watch(ClaimKey),
    /// Messages are due.
    Flush(ClaimKey),
    /// Usage is tried again.
    UsageRetry(ClaimKey),
    /// The session's pin is tried again.
    PinRetry(ClaimKey),
    /// The report goes out without the last messages.
    Drain(ClaimKey),
    /// A run that should end by itself, or after a signal, has not.
    RunEnd(ClaimKey),
    /// The terminal report is tried again.
    ReportRetry(ClaimKey),
    /// A run was silent for too long.
    Idle(ClaimKey),
    /// A run takes too long.
    RunLimit(ClaimKey),
    /// Late reports are tried again.
    Late,
    /// Tasks are asked for.
    Poll,
    /// Tasks of one runtime are asked for.
    PollOne(RuntimeId),
    /// A claim of unknown fate may have brought tasks: none is sent before.
    HoldOff,
    /// Claims that bring nothing follow each other fast enough.
    Pace,
    /// The collector's next round.
    Gc,
    /// A heartbeat is due.
    Beat(RuntimeId),
    /// The control connection is dialled.
    Link,
    /// Everything is looked at again, as the connection came up too soon after the one before.
    Reconcile,
    /// The workspace list is due.
    Sync,
    /// A workspace is registered again.
    Register(WorkspaceId),
    /// The custom runtimes of a workspace are not waited for any more, or asked for again.
    Profiles(WorkspaceId),
    /// The credential is renewed.
    Renew,
    /// The agent CLIs of this machine are looked at, for new ones.
    Discover,
    /// The agent CLIs of this machine are looked at, for other versions.
    Versions,
    /// Whether the server still refuses the credential.
    Access,
    /// The result of an action is reported again.
    ActionRetry(ActionId),
    /// What an earlier process left of a runtime's tasks is failed, as the last try was in vain.
    Orphans(RuntimeId),
}

/// All deadlines.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    order: BTreeSet<(Instant, TimerKey)>,
    at: BTreeMap<TimerKey, Instant>,
}

impl Timers {
    /// Sets the deadline of `key`, in place of one that it had.
    pub(crate) fn arm(&mut self, key: TimerKey, at: Instant) {
        if let Some(old) = self.at.insert(key.clone(), at) {
            self.order.remove(&(old, key.clone()));
        }
        self.order.insert((at, key));
    }

    pub(crate) fn disarm(&mut self, key: &TimerKey) {
        if let Some(at) = self.at.remove(key) {
            self.order.remove(&(at, key.clone()));
        }
    }

    pub(crate) fn is_armed(&self, key: &TimerKey) -> bool {
        self.at.contains_key(key)
    }

    /// When the deadline of `key` is, if it has one.
    pub(crate) fn at(&self, key: &TimerKey) -> Option<Instant> {
        self.at.get(key).copied()
    }

    /// Takes the earliest deadline that has passed: stopped first, then acted upon, so that none stays due by accident.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<TimerKey> {
        if self.order.first()?.0 > now {
            return None;
        }
        let (_, key) = self.order.pop_first()?;
        self.at.remove(&key);
        Some(key)
    }

    pub(crate) fn next(&self) -> Option<(Instant, &TimerKey)> {
        self.order.first().map(|(at, key)| (*at, key))
    }

    pub(crate) fn len(&self) -> usize {
        self.at.len()
    }
}

impl Hash for Timers {
    fn hash<H: Hasher>(&self, to: &mut H) {
        self.order.hash(to);
    }
}

impl Serialize for Timers {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.order.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Timers {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut timers = Self::default();
        for (at, key) in Vec::<(Instant, TimerKey)>::deserialize(from)? {
            timers.arm(key, at);
        }
        Ok(timers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_fires_once_and_in_order() {
        let at = Instant::from_millis;
        let mut timers = Timers::default();
        timers.arm(TimerKey::Poll, at(5));
        timers.arm(TimerKey::Sync, at(3));
        timers.arm(TimerKey::Poll, at(1));
        assert_eq!(timers.next(), Some((at(1), &TimerKey::Poll)));
        assert_eq!(timers.pop_due(at(0)), None);
        assert_eq!(timers.pop_due(at(9)), Some(TimerKey::Poll));
        assert_eq!(timers.pop_due(at(9)), Some(TimerKey::Sync));
        assert_eq!(timers.pop_due(at(9)), None);
        timers.arm(TimerKey::Link, at(1));
        timers.disarm(&TimerKey::Link);
        assert_eq!((timers.next(), timers.len()), (None, 0));
    }
}
