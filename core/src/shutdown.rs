//! The end of the daemon, as a value: which kind of stop it is, how far it is, and what it waits for at most.

use crate::effect::StopPhase;
use crate::event::{ClaimKey, StopKind};
use crate::id::RuntimeId;
use crate::time::Instant;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// How far a stop is.
#[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Shutdown {
    phase: StopPhase,
    /// What the stop is now: a drain that is over goes on as a plain stop.
    how: StopKind,
    /// How often a stop was asked for.
    asked: u8,
    /// When a drain is over, finished or not.
    pub(crate) until: Option<Instant>,
    /// Deregistrations that are still on their way.
    pub(crate) deregistering: u32,
    /// Runtimes that a registration put on line after the stop began, to be taken off with the rest.
    pub(crate) also: Vec<RuntimeId>,
    /// Whether the claims on their way were cancelled.
    pub(crate) claims_cancelled: bool,
    /// Whether claims on their way are not waited for any more, although the stop goes on.
    pub(crate) claims_given_up: bool,
    /// Whether late reports were asked to go out once more.
    pub(crate) last_tries: bool,
    /// Claims whose runs a restart leaves alone, and does not wait for.
    pub(crate) left: BTreeSet<ClaimKey>,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self {
            phase: StopPhase::Serving,
            how: StopKind::Now,
            asked: 0,
            until: None,
            deregistering: 0,
            also: Vec::new(),
            claims_cancelled: false,
            claims_given_up: false,
            last_tries: false,
            left: BTreeSet::new(),
        }
    }
}

impl Shutdown {
    pub(crate) const fn phase(&self) -> StopPhase {
        self.phase
    }

    pub(crate) fn is_serving(&self) -> bool {
        self.phase == StopPhase::Serving
    }

    /// Counts a request to stop, and returns the how-many-eth it is.
    pub(crate) const fn ask(&mut self) -> u8 {
        self.asked = self.asked.saturating_add(1);
        self.asked
    }

    /// Whether somebody asked twice.
    pub(crate) const fn is_forced(&self) -> bool {
        self.asked > 1
    }

    pub(crate) const fn begin(&mut self, how: StopKind) {
        self.how = how;
    }

    /// Whether runs are waited for until they end by themselves.
    pub(crate) const fn is_draining(&self) -> bool {
        matches!(self.how, StopKind::Drain { .. })
    }

    /// Whether runs go on without this process.
    pub(crate) const fn is_restart(&self) -> bool {
        matches!(self.how, StopKind::Restart)
    }

    /// Moves on; never back. Returns whether this is a new phase.
    pub(crate) fn advance(&mut self, to: StopPhase) -> bool {
        let forward = to > self.phase;
        if forward {
            self.phase = to;
        }
        forward
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inv_i18_phases_only_move_forward() {
        let mut shutdown = Shutdown::default();
        assert!(shutdown.advance(StopPhase::Tasks));
        assert!(!shutdown.advance(StopPhase::Claims));
        assert!(!shutdown.advance(StopPhase::Tasks));
        assert_eq!(shutdown.phase(), StopPhase::Tasks);
    }

    #[test]
    fn inv_142_the_second_request_forces() {
        let mut shutdown = Shutdown::default();
        assert_eq!(shutdown.ask(), 1);
        assert!(!shutdown.is_forced());
        assert_eq!(shutdown.ask(), 2);
        assert!(shutdown.is_forced());
    }
}
