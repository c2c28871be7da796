//! The end of the daemon, in its simple form: no more claims; runs are ended and reported as retryable; then it exits. A second
//! request hurries.

use crate::effect::StopPhase;
use serde::{Deserialize, Serialize};

/// How far a stop is.
#[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Shutdown {
    phase: StopPhase,
    /// Deregistrations that are still on their way.
    pub(crate) deregistering: u32,
    /// Whether the claims on their way were cancelled.
    pub(crate) claims_cancelled: bool,
    /// Whether somebody asked twice.
    pub(crate) forced: bool,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self { phase: StopPhase::Serving, deregistering: 0, claims_cancelled: false, forced: false }
    }
}

impl Shutdown {
    pub(crate) const fn phase(&self) -> StopPhase {
        self.phase
    }

    pub(crate) fn is_serving(&self) -> bool {
        self.phase == StopPhase::Serving
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
}
