//! A nudge for many subscribers: one pending bit each, no content. Inside the core, machines react to a change of the runtime
//! set in the same step; this is for adapters that have tasks of their own waiting for such changes.

use std::collections::BTreeMap;

/// Names one subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subscriber(u64);

/// The subscribers and their pending bits.
#[derive(Debug, Default)]
pub struct Watcher {
    next: u64,
    pending: BTreeMap<Subscriber, bool>,
}

impl Watcher {
    /// Adds a subscriber that has nothing pending.
    pub fn subscribe(&mut self) -> Subscriber {
        self.next += 1;
        let who = Subscriber(self.next);
        self.pending.insert(who, false);
        who
    }

    /// Removes a subscriber; a pending nudge of it is discarded.
    pub fn unsubscribe(&mut self, who: Subscriber) {
        self.pending.remove(&who);
    }

    /// Sets the bit of every current subscriber, and never waits for one. Returns those that had nothing pending.
    pub fn notify(&mut self) -> impl Iterator<Item = Subscriber> + '_ {
        self.pending.iter_mut().filter_map(|(who, bit)| (!std::mem::replace(bit, true)).then_some(*who))
    }

    /// Takes the bit: whether there was a nudge since the last take.
    pub fn take(&mut self, who: Subscriber) -> bool {
        self.pending.get_mut(&who).is_some_and(std::mem::take)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_watcher_fan_out() {
        let mut watcher = Watcher::default();
        let (a, b) = (watcher.subscribe(), watcher.subscribe());
        assert!(!watcher.take(a), "nothing is pending at first");
        assert_eq!(watcher.notify().collect::<Vec<_>>(), [a, b], "inv_26: every subscriber");
        assert_eq!(watcher.notify().count(), 0, "inv_27: a second nudge before a take changes nothing");
        assert!(watcher.take(a) && !watcher.take(a), "inv_27: two nudges are one");
        watcher.unsubscribe(b);
        assert_eq!(watcher.notify().collect::<Vec<_>>(), [a]);
        assert!(!watcher.take(b), "inv_28: none after unsubscribe");
    }
}
