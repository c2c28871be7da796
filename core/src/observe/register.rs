//! Registrations of one workspace, in order: what takes its runtimes off line has ended before it is registered again, nothing that is in
//! use is taken off line, and a runtime that the server has forgotten leads to another registration.

use super::agents::AgentBook;
use super::seen::Seen;
use super::{Found, api_end};
use crate::effect::{ApiCall, Effect, Fact, RuntimeChange};
use crate::error::Refusal;
use crate::event::ApiReply;
use crate::id::{OpId, RuntimeId, WorkspaceId};
use crate::said::Said;
use crate::time::Instant;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub(super) struct RegisterBook {
    set: BTreeMap<RuntimeId, WorkspaceId>,
    /// Where those were that left, until they are taken off line.
    left: BTreeMap<RuntimeId, WorkspaceId>,
    open: BTreeMap<WorkspaceId, OpId>,
    /// Runtimes that are being taken off line.
    leaving: BTreeMap<OpId, WorkspaceId>,
    /// Since when a workspace has to be registered again.
    owed: BTreeMap<WorkspaceId, Instant>,
}

impl RegisterBook {
    pub(super) fn step(&mut self, seen: &Seen<'_>, agents: &AgentBook, found: &mut Found) {
        if let Some((op, call)) = seen.ended() {
            self.ended(seen, op, call);
        }
        for effect in seen.effects {
            self.effect(seen, effect, found);
        }
        for (workspace, since) in &mut self.owed {
            if seen.at.barred || agents.has_nothing_for(workspace) || !agents.has_looked() {
                *since = seen.at.now;
            }
        }
        if seen.excuses() {
            return;
        }
        let timing = seen.at.timing;
        let most = timing.register_coalesce.max(timing.register_retry * 6 / 5) + timing.profiles_patience;
        for (workspace, since) in &self.owed {
            let waits = self.open.contains_key(workspace)
                || self.leaving.values().any(|of| of == workspace)
                || agents.may_wait(workspace, &seen.at);
            found.require(waits || seen.at.now.since(*since) <= most, "INV-17", || {
                format!("{workspace} has lost a runtime and is not registered again")
            });
        }
    }

    fn ended(&mut self, seen: &Seen<'_>, op: OpId, call: &ApiCall) {
        let Some(result) = seen.closed.and_then(|closed| api_end(&closed.end)) else { return };
        match call {
            ApiCall::Workspaces => {
                if let Ok(ApiReply::Workspaces { list, .. }) = result {
                    self.owed.retain(|workspace, _| list.contains(workspace));
                    self.open.retain(|workspace, _| list.contains(workspace));
                }
            }
            ApiCall::Register { workspace, .. } if self.open.get(workspace) == Some(&op) => {
                self.open.remove(workspace);
                if result.as_ref().is_err_and(|error| error.refusal() == Some(Refusal::WorkspaceGone)) {
                    self.owed.remove(workspace);
                }
                self.owes_from(workspace, seen.at.now);
            }
            ApiCall::Deregister { .. } => {
                if let Some(workspace) = self.leaving.remove(&op) {
                    self.owes_from(&workspace, seen.at.now);
                }
            }
            _ => {}
        }
    }

    /// What has to be done is due from now on only.
    fn owes_from(&mut self, workspace: &WorkspaceId, now: Instant) {
        if let Some(since) = self.owed.get_mut(workspace) {
            *since = now;
        }
    }

    fn effect(&mut self, seen: &Seen<'_>, effect: &Effect, found: &mut Found) {
        match effect {
            Effect::Runtime { runtime, change: RuntimeChange::Added { workspace, .. }, .. } => {
                self.left.remove(runtime);
                self.set.insert(runtime.clone(), workspace.clone());
            }
            Effect::Runtime { runtime, change: RuntimeChange::Removed, .. } => {
                if let Some(workspace) = self.set.remove(runtime) {
                    self.left.insert(runtime.clone(), workspace);
                }
            }
            Effect::Fact { fact: Fact::RuntimeGone { runtime } } => {
                if let Some(workspace) = self.set.get(runtime).or_else(|| self.left.get(runtime)) {
                    self.owed.insert(workspace.clone(), seen.at.now);
                }
            }
            Effect::Api { op, call: ApiCall::Deregister { runtimes, .. }, .. } if !seen.at.stopping => {
                let used = runtimes.iter().find(|runtime| self.set.contains_key(*runtime));
                found.require(used.is_none(), "INV-13", || {
                    format!("{used} is taken off line while it is used", used = used.said())
                });
                // One that was refused was never in the set: then it is of the registration that was answered.
                let answered = match seen.ended() {
                    Some((_, ApiCall::Register { workspace, .. })) => Some(workspace.clone()),
                    _ => None,
                };
                let left = runtimes.iter().filter_map(|runtime| self.left.remove(runtime)).last();
                if let Some(workspace) = left.or(answered) {
                    self.leaving.insert(*op, workspace);
                }
            }
            Effect::Api { op, call: ApiCall::Register { workspace, .. }, .. } => {
                found.require(!self.leaving.values().any(|of| of == workspace), "INV-07", || {
                    format!("{workspace} is registered while runtimes of it are being taken off line")
                });
                self.owed.remove(workspace);
                self.open.insert(workspace.clone(), *op);
            }
            _ => {}
        }
    }
}
