//! Which runtimes a claim is for, without a list of them.

use super::roster::Roster;
use super::world::World;
use crate::effect::{ApiCall, ClaimScope};
use crate::id::RuntimeId;

/// The runtimes that a claim is for.
#[derive(Debug)]
pub(super) enum Scope<'a> {
    /// Those of some providers.
    Of(Vec<&'a Roster<RuntimeId>>),
    Named(&'a [RuntimeId]),
}

impl Scope<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Of(rosters) => rosters.iter().map(|roster| roster.len()).sum(),
            Self::Named(runtimes) => runtimes.len(),
        }
    }

    pub(super) fn nth(&self, mut nth: usize) -> Option<&RuntimeId> {
        match self {
            Self::Of(rosters) => {
                for roster in rosters {
                    if nth < roster.len() {
                        return roster.get(nth);
                    }
                    nth -= roster.len();
                }
                None
            }
            Self::Named(runtimes) => runtimes.get(nth),
        }
    }
}

impl World {
    /// The runtimes that a claim is for.
    pub(super) fn scope<'a>(&'a self, call: &'a ApiCall) -> Scope<'a> {
        let claim = match call {
            ApiCall::ClaimOne(one) => return Scope::Named(std::slice::from_ref(one.runtime())),
            ApiCall::Claim(claim) | ApiCall::ClaimOver { claim, .. } => claim,
            _ => return Scope::Named(&[]),
        };
        let wanted = |provider| match claim.scope() {
            ClaimScope::All => true,
            ClaimScope::Only { provider: only } => provider == only,
            ClaimScope::AllBut { providers } => !providers.contains(provider),
            ClaimScope::Named { .. } => false,
        };
        match claim.scope() {
            ClaimScope::Named { runtimes } => Scope::Named(runtimes),
            _ => Scope::Of(
                self.claimable.iter().filter(|(provider, _)| wanted(provider)).map(|(_, all)| all).collect(),
            ),
        }
    }
}
