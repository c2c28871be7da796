//! The start: the credential is renewed first, an empty list is a good one, and nothing is called ready before everything was tried.

use super::Found;
use super::agents::AgentBook;
use super::api_end;
use super::seen::Seen;
use crate::effect::{ApiCall, Effect, Fact};
use crate::error::Refusal;
use crate::event::{ApiReply, WsEvent};
use crate::id::{OpId, WorkspaceId};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default)]
pub(super) struct BootBook {
    created: bool,
    ready: bool,
    listed: bool,
    listing: Option<OpId>,
    /// A change was signalled while the list was on its way.
    again: bool,
    named: BTreeSet<WorkspaceId>,
    tried: BTreeSet<WorkspaceId>,
    registering: BTreeMap<WorkspaceId, OpId>,
}

impl BootBook {
    /// INV-04: nothing that becomes of a renewal ends the daemon.
    pub(super) fn exits(seen: &Seen<'_>, found: &mut Found) {
        let renewal = matches!(seen.ended(), Some((_, ApiCall::Renew)));
        found.require(!renewal || seen.at.stopping, "INV-04", || "a renewal ends the daemon".into());
    }

    pub(super) fn step(&mut self, seen: &Seen<'_>, agents: &AgentBook, found: &mut Found) {
        if !std::mem::replace(&mut self.created, true) {
            let nth = |wanted: &ApiCall| {
                seen.effects.iter().position(|e| matches!(e, Effect::Api { call, .. } if call == wanted))
            };
            let first = nth(&ApiCall::Renew)
                .is_some_and(|renew| nth(&ApiCall::Workspaces).is_none_or(|list| renew < list));
            found.require(first, "INV-03", || "the first list is asked for before the renewal".into());
        }
        if let Some((op, call)) = seen.ended() {
            self.ended(seen, op, call, found);
        }
        if matches!(seen.ws(), Some((_, WsEvent::WorkspacesChanged))) && self.listing.is_some() {
            self.again = true;
        }
        for effect in seen.effects {
            self.effect(effect, agents, found);
        }
        // What comes to be known later changes nothing: once there was nothing to try.
        let Self { named, tried, .. } = self;
        tried.extend(named.iter().filter(|workspace| agents.has_nothing_for(workspace)).cloned());
    }

    fn ended(&mut self, seen: &Seen<'_>, op: OpId, call: &ApiCall, found: &mut Found) {
        let Some(result) = seen.closed.and_then(|closed| api_end(&closed.end)) else { return };
        match call {
            ApiCall::Workspaces if self.listing == Some(op) => {
                self.listing = None;
                let due = std::mem::take(&mut self.again) && !seen.at.stopping && !seen.at.barred;
                found.require(!due || seen.sends(|call| *call == ApiCall::Workspaces), "INV-23", || {
                    "a change of the workspaces during a list is forgotten".into()
                });
                if let Ok(ApiReply::Workspaces { list, .. }) = result {
                    self.listed = true;
                    self.named = list.iter().cloned().collect();
                    self.tried.retain(|workspace| list.contains(workspace));
                    self.registering.retain(|workspace, _| list.contains(workspace));
                    let ready = || seen.wants(|effect| matches!(effect, Effect::Fact { fact: Fact::Ready }));
                    let fine = !list.is_empty() || self.ready || seen.at.stopping || ready();
                    found.require(fine, "INV-06", || "an empty list of workspaces is no start".into());
                }
            }
            ApiCall::Register { workspace, .. } if self.registering.get(workspace) == Some(&op) => {
                self.registering.remove(workspace);
                self.tried.insert(workspace.clone());
                if result.as_ref().err().copied().and_then(crate::error::ApiError::refusal)
                    == Some(Refusal::WorkspaceGone)
                {
                    self.named.remove(workspace);
                }
            }
            _ => {}
        }
    }

    fn effect(&mut self, effect: &Effect, agents: &AgentBook, found: &mut Found) {
        match effect {
            Effect::Api { op, call: ApiCall::Workspaces, .. } => {
                found.require(self.listing.is_none(), "INV-23", || "two lists are on their way".into());
                self.listing = Some(*op);
            }
            Effect::Api { op, call: ApiCall::Register { workspace, .. }, .. } => {
                self.registering.insert(workspace.clone(), *op);
            }
            Effect::Fact { fact: Fact::Ready } => {
                let tried = |workspace| self.tried.contains(workspace) || agents.has_nothing_for(workspace);
                let tried = self.listed && self.named.iter().all(tried);
                found.require(tried && !std::mem::replace(&mut self.ready, true), "INV-05", || {
                    "the daemon is called ready twice, or before each workspace was tried".into()
                });
            }
            _ => {}
        }
    }
}
