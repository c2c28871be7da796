//! CLAIM-PACE: how often tasks are asked for in vain, however many hints come, and that nothing waits for it that need not.

use super::{At, Found};
use crate::claim::pace::{CREDIT, SPREAD, cost};
use crate::daemon::View;
use crate::id::RuntimeId;
use crate::said::Said;
use crate::time::Instant;
use std::collections::BTreeMap;
use std::time::Duration;

/// What a poller owes: at least, if each task that came was new, and at most, if none was.
#[derive(Clone, Debug)]
struct Owed {
    least: Duration,
    most: Duration,
    at: Instant,
}

#[derive(Clone, Debug, Default)]
pub(super) struct PaceBook {
    /// By runtime; `None` is the poller for all.
    owed: BTreeMap<Option<RuntimeId>, Owed>,
    /// The pollers whose claim ended in this step: one at most.
    ended: Vec<Option<RuntimeId>>,
}

impl PaceBook {
    pub(super) fn begin(&mut self) {
        self.ended.clear();
    }

    fn now(&mut self, at: &At<'_>, of: Option<RuntimeId>) -> &mut Owed {
        let new = Owed { least: Duration::ZERO, most: Duration::ZERO, at: at.now };
        let owed = self.owed.entry(of).or_insert(new);
        let passed = at.now.since(owed.at);
        owed.least = owed.least.saturating_sub(passed);
        owed.most = owed.most.saturating_sub(passed);
        owed.at = at.now;
        owed
    }

    /// A claim ended that was not sent again another way.
    pub(super) fn closed(&mut self, at: &At<'_>, of: Option<RuntimeId>) {
        let cost = cost(at.timing.poll);
        let owed = self.now(at, of.clone());
        owed.least += cost;
        owed.most += cost;
        self.ended.push(of);
    }

    /// It brought a task.
    pub(super) fn brought(&mut self) {
        for of in &self.ended {
            if let Some(owed) = self.owed.get_mut(of) {
                owed.least = Duration::ZERO;
            }
        }
    }

    /// A new poller of the runtime, or the poller for all after a hold-off, owes nothing.
    pub(super) fn forgive(&mut self, of: Option<&RuntimeId>) {
        if let Some(owed) = self.owed.get_mut(&of.cloned()) {
            owed.least = Duration::ZERO;
        }
    }

    /// The same of all pollers for one runtime.
    pub(super) fn forgive_each(&mut self) {
        for (_, owed) in self.owed.iter_mut().filter(|(of, _)| of.is_some()) {
            owed.least = Duration::ZERO;
        }
    }

    /// A claim is sent, and it is not one that goes another way.
    pub(super) fn sent(&mut self, at: &At<'_>, of: Option<&RuntimeId>, found: &mut Found) {
        let owed = self.now(at, of.cloned()).least;
        found.require(owed <= CREDIT, "CLAIM-PACE", || {
            format!(
                "tasks are asked for {} ms too soon after claims in vain",
                owed.saturating_sub(CREDIT).as_millis()
            )
        });
    }

    /// Whoever waits asked too often.
    pub(super) fn settle(&mut self, at: &At<'_>, view: View<'_>, found: &mut Found) {
        if at.due {
            return;
        }
        let all: Vec<Option<RuntimeId>> = view
            .runtimes()
            .cloned()
            .map(Some)
            .chain([None])
            .filter(|of| view.is_paced(of.as_ref()))
            .collect();
        for of in all {
            let owed = self.now(at, of.clone()).most;
            found.require(owed + SPREAD >= CREDIT, "CLAIM-PACE", || {
                let of = of.as_ref().map_or_else(|| "all".to_owned(), Said::said);
                format!("the poller for {of} waits although it owes only {} ms", owed.as_millis())
            });
        }
    }
}
