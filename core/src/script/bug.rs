//! Bugs that a runner puts in on purpose: it changes what the core wants done before anybody sees it, as if the core were wrong. For tests of what
//! looks for bugs.

use crate::effect::{ApiCall, Effect};
use crate::id::OpId;

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Bug {
    /// A refresh of a lease is sent twice at once.
    LeaseTwice,
    /// A task is never reported as completed.
    NeverCompletes,
}

/// Added to the number of a request that is made up: no core comes to such numbers.
const FORGED: u64 = 1 << 40;

impl Bug {
    /// Makes the effects of one step wrong.
    pub(super) fn apply(self, effects: &mut Vec<Effect>) {
        match self {
            Self::LeaseTwice => {
                let lease =
                    |effect: &&Effect| matches!(effect, Effect::Api { call: ApiCall::Lease { .. }, .. });
                let mut more: Vec<Effect> = effects.iter().filter(lease).cloned().collect();
                for effect in &mut more {
                    if let Effect::Api { op, .. } = effect {
                        *op = OpId(op.0 + FORGED);
                    }
                }
                effects.append(&mut more);
            }
            Self::NeverCompletes => {
                effects
                    .retain(|effect| !matches!(effect, Effect::Api { call: ApiCall::Complete { .. }, .. }));
            }
        }
    }
}
