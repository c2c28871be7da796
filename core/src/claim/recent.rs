//! Tasks that ended here a moment ago. A server that hands them out again at once is no reason to ask at once for more: it would be asked
//! hundreds of times a second. They are taken all the same.

use crate::id::TaskId;
use crate::time::Instant;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What ended longer ago is as good as new.
const WINDOW: Duration = Duration::from_secs(30);
/// Tasks that are remembered; the oldest go.
const MOST: usize = 1_000;

/// The tasks.
#[derive(Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct RecentEnds {
    at: BTreeMap<TaskId, Instant>,
    order: BTreeSet<(Instant, TaskId)>,
}

impl RecentEnds {
    /// Whether the task ended here a moment ago.
    pub(super) fn has(&self, now: Instant, task: &TaskId) -> bool {
        self.at.get(task).is_some_and(|at| now.since(*at) < WINDOW)
    }

    /// A task ended.
    pub(super) fn add(&mut self, now: Instant, task: &TaskId) {
        if let Some(before) = self.at.insert(task.clone(), now) {
            self.order.remove(&(before, task.clone()));
        }
        self.order.insert((now, task.clone()));
        // Two for one that comes, so that what is out of date goes without a round of its own.
        for _ in 0..2 {
            let out = self.order.first().is_some_and(|(at, _)| now.since(*at) >= WINDOW);
            if (out || self.order.len() > MOST)
                && let Some((_, task)) = self.order.pop_first()
            {
                self.at.remove(&task);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_is_remembered_for_a_while_and_the_table_is_bounded() {
        let at = Instant::from_millis;
        let mut recent = RecentEnds::default();
        let first = TaskId::new("t");
        recent.add(at(0), &first);
        assert!(recent.has(at(29_999), &first) && !recent.has(at(30_000), &first));
        assert!(!recent.has(at(0), &TaskId::new("u")));
        recent.add(at(20_000), &first);
        assert!(recent.has(at(40_000), &first), "the last end counts");
        for n in 0..5_000 {
            recent.add(at(40_000), &TaskId::new(format!("t-{n}")));
        }
        assert_eq!((recent.at.len(), recent.order.len()), (MOST, MOST));
        assert!(!recent.has(at(40_000), &first), "the oldest went");
        for n in 0..2 {
            recent.add(at(90_000), &TaskId::new(format!("u-{n}")));
        }
        assert!(recent.at.len() < MOST, "what is out of date goes");
    }
}
