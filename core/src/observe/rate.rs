//! That nobody is asked for tasks again and again while nothing is new: each claim has a cause, or costs time.

use super::{At, Found};
use crate::event::Offer;
use crate::id::{RuntimeId, TaskId};
use crate::time::Instant;
use std::collections::BTreeMap;
use std::time::Duration;

/// What a claim without a cause costs at most, in milliseconds: four a second can go on for ever.
const COST: u64 = 250;
/// What can be saved up: forty claims.
const MOST: u64 = 40 * COST;
/// A task that was seen within this time is not new.
const OLD: Duration = Duration::from_secs(30);

#[derive(Clone, Debug)]
struct Budget {
    ms: u64,
    at: Instant,
}

#[derive(Clone, Debug, Default)]
pub(super) struct RateBook {
    /// By runtime; `None` is the poller for all.
    budgets: BTreeMap<Option<RuntimeId>, Budget>,
    seen: BTreeMap<TaskId, Instant>,
}

impl RateBook {
    /// A claim is sent.
    pub(super) fn claimed(&mut self, at: &At<'_>, of: Option<&RuntimeId>, found: &mut Found) {
        let budget = self.budgets.entry(of.cloned()).or_insert(Budget { ms: MOST, at: at.now });
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let passed = ms(at.now.since(budget.at));
        // Who is told to poll more often than that may.
        let cost = COST.min(ms(at.timing.poll));
        budget.at = at.now;
        budget.ms = budget.ms.max(budget.ms.saturating_add(passed).min(MOST));
        found.require(budget.ms >= cost, "CLAIM-RATE", || {
            "tasks are asked for again and again, and nothing is new".to_owned()
        });
        budget.ms = budget.ms.saturating_sub(cost);
    }

    /// There is a cause for so many claims; for all runtimes if `of` names none.
    pub(super) fn cause(&mut self, of: Option<&RuntimeId>, claims: u64) {
        for (runtime, budget) in &mut self.budgets {
            if runtime.is_none() || of.is_none() || runtime.as_ref() == of {
                budget.ms = (budget.ms + claims * COST).min(2 * MOST);
            }
        }
    }

    /// Whether a claim brought something new.
    pub(super) fn brought(&mut self, now: Instant, offers: &[Offer]) -> bool {
        let mut new = false;
        for offer in offers {
            let before = self.seen.insert(offer.task.clone(), now);
            new |= before.is_none_or(|at| now.since(at) >= OLD);
        }
        new
    }

    /// A task ended.
    pub(super) fn ended(&mut self, now: Instant, task: &TaskId) {
        self.seen.insert(task.clone(), now);
    }
}
