//! How often tasks are asked for when there are none. Hints come as fast as the server likes, and a claim that brings nothing takes no longer
//! than its way there and back: without a floor a storm of hints would be one of claims.
//!
//! Ten claims in vain are free, so no hint waits that is not one of many; after that each costs a tenth of a second. A claim that brings
//! something new makes up for all of them.

use crate::env::Cx;
use crate::time::Instant;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a claim in vain costs.
const COST: Duration = Duration::from_millis(100);
/// How much may be owed when the next claim is sent.
pub(crate) const CREDIT: Duration = Duration::from_secs(1);
/// A wait is longer than it has to be by less than this, so that daemons that hear the same hints do not all ask at once.
pub(crate) const SPREAD: Duration = Duration::from_millis(50);

/// What a claim in vain costs a poller with this interval: none is made slower than that, however short it is.
pub(crate) fn cost(poll: Duration) -> Duration {
    COST.min(poll)
}

/// What one poller owes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Pace {
    /// When nothing is owed any more.
    clear: Option<Instant>,
    /// When the claim may be sent that waits, or did.
    until: Option<Instant>,
}

impl Pace {
    /// A claim ended, and brought nothing new.
    pub(super) fn in_vain(&mut self, cx: &Cx<'_>) {
        let now = cx.now.mono;
        let from = self.clear.filter(|clear| *clear > now).unwrap_or(now);
        self.clear = Some(from.after(cost(cx.timing().poll)));
    }

    /// Nothing is owed.
    pub(super) fn forgive(&mut self) {
        (self.clear, self.until) = (None, None);
    }

    /// When the next claim may be sent, if that is not now.
    pub(super) fn wait(&mut self, cx: &mut Cx<'_>) -> Option<Instant> {
        let now = cx.now.mono;
        if !self.is_waiting(now) {
            let over = self.clear?.since(now).checked_sub(CREDIT).filter(|over| !over.is_zero())?;
            self.until = Some(now.after(over + cx.env.rng.below(SPREAD)));
        }
        self.until
    }

    /// Whether a claim waits.
    pub(super) fn is_waiting(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| until > now)
    }
}
