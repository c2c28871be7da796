//! What the answer to a registration means for the set, and how runtimes that left it are taken off line.

use super::orphans::fail_leftovers;
use super::register::Sent;
use super::{Change, Ours, Runtime, Runtimes};
use crate::backoff::Failures;
use crate::effect::{ApiCall, RuntimeChange};
use crate::env::Cx;
use crate::event::Registered;
use crate::id::{OpId, Provider, RuntimeId, WorkspaceId};
use crate::op::ApiOp;
use std::collections::{BTreeMap, BTreeSet};

impl Runtimes {
    /// Takes the runtimes of a workspace as the server names them: survivors stay as they are, new ones are freed of an
    /// earlier process's leftovers first, and those that are not named any more are taken off line. A new one that is busy
    /// was here before, or in an earlier process: its tasks would be among those that the server fails. What an agent CLI that is held back
    /// gets all the same is not taken, and goes off line again.
    pub(super) fn adopt(
        &mut self,
        cx: &mut Cx<'_>,
        workspace: &WorkspaceId,
        sent: &Sent,
        named: Vec<Registered>,
        ours: &dyn Fn(&RuntimeId) -> Ours,
        changes: &mut Vec<Change>,
    ) {
        let held = |r: &Registered| r.profile.is_none() && self.holds.has(&r.provider);
        let (refused, named): (Vec<_>, Vec<_>) = named.into_iter().partition(held);
        for id in self.lost(workspace, sent, &named) {
            self.remove(cx, &id, changes);
            self.owe(workspace, id, None);
        }
        for Registered { id, provider, .. } in refused {
            if !self.runtimes.contains_key(&id) {
                let broken = self.holds.broken(&provider);
                self.owe(workspace, id, broken);
            }
        }
        for registered in named {
            if !self.runtimes.contains_key(&registered.id) {
                self.join(cx, workspace, registered, ours, changes);
            }
        }
    }

    /// The runtimes that an answer says are not there any more. That one is not named says nothing of it unless it was asked for: the one of an agent CLI
    /// that is slow, unreadable or not there at the moment stays, and so do custom ones while nobody knows which there are.
    fn lost(&self, workspace: &WorkspaceId, sent: &Sent, named: &[Registered]) -> Vec<RuntimeId> {
        let ids: BTreeSet<&RuntimeId> = named.iter().map(|r| &r.id).collect();
        // An agent CLI's own new runtime is in place of its old one.
        let new = |r: &&Registered| r.profile.is_none() && !self.runtimes.contains_key(&r.id);
        let renewed: BTreeSet<&Provider> = named.iter().filter(new).map(|r| &r.provider).collect();
        let goes = |id: &&RuntimeId| {
            let Some(runtime) = self.runtimes.get(*id).filter(|_| !ids.contains(id)) else { return false };
            match &runtime.profile {
                None => {
                    let renewed = sent.why.is_whole() || renewed.contains(&runtime.provider);
                    renewed && sent.agents.contains_key(&runtime.provider)
                }
                Some(_) => sent.why.is_whole() && sent.profiles.is_some(),
            }
        };
        self.hosted.get(workspace).into_iter().flatten().filter(goes).cloned().collect()
    }

    fn join(
        &mut self,
        cx: &mut Cx<'_>,
        workspace: &WorkspaceId,
        Registered { id, provider, profile }: Registered,
        ours: &dyn Fn(&RuntimeId) -> Ours,
        changes: &mut Vec<Change>,
    ) {
        let change = RuntimeChange::Added {
            workspace: workspace.clone(),
            provider: provider.clone(),
            profile: profile.clone(),
        };
        self.changed(cx, &id, change);
        changes.push(Change::Added(id.clone()));
        let ours = ours(&id);
        let barred = ours == Ours::Nothing && cx.is_barred();
        let recovering = (ours == Ours::Nothing && !barred).then(|| fail_leftovers(cx, &id));
        let (held, ready) = (ours == Ours::Untried, ours == Ours::Busy);
        if !ready {
            // Also for one that has to wait for the credential: its first try may find nobody, too.
            self.quiet.insert(id.clone());
        }
        let runtime = Runtime {
            workspace: workspace.clone(),
            provider: provider.clone(),
            profile,
            recovering,
            vain: 0,
            unheard: false,
            failures: Failures::default(),
            barred,
            held,
        };
        self.runtimes.insert(id.clone(), runtime);
        self.hosted.entry(workspace.clone()).or_default().insert(id.clone());
        if ready {
            self.is_ready_now(cx, &id, provider, changes);
        }
    }

    /// A runtime that left the set is to be taken off line once no registration of its workspace is on its way.
    pub(super) fn owe(&mut self, workspace: &WorkspaceId, id: RuntimeId, broken: Option<Provider>) {
        if let Some(ws) = self.workspaces.get_mut(workspace) {
            ws.owed.insert(id, broken);
        }
    }

    /// Takes off line what is to be, unless it is in the set again; one request for what just goes, and one for each broken agent CLI.
    pub(super) fn take_owed_off_line(&mut self, cx: &mut Cx<'_>, workspace: &WorkspaceId) {
        let Some(ws) = self.workspaces.get_mut(workspace).filter(|ws| ws.registering.is_none()) else {
            return;
        };
        let mut groups: BTreeMap<Option<Provider>, Vec<RuntimeId>> = BTreeMap::new();
        for (id, broken) in std::mem::take(&mut ws.owed) {
            if !self.runtimes.contains_key(&id) {
                groups.entry(broken).or_default().push(id);
            }
        }
        for (broken, runtimes) in groups {
            self.take_off_line(cx, workspace, runtimes, broken);
        }
    }

    pub(super) fn take_off_line(
        &mut self,
        cx: &mut Cx<'_>,
        workspace: &WorkspaceId,
        runtimes: Vec<RuntimeId>,
        broken: Option<Provider>,
    ) {
        if !runtimes.is_empty() {
            let within = cx.timing().request;
            let call = ApiCall::Deregister { runtimes, broken };
            let op = cx.api(ApiOp::Deregister { last: false }, call, within);
            self.leaving.insert(op, workspace.clone());
        }
    }

    pub(super) fn is_leaving(&self, workspace: &WorkspaceId) -> bool {
        self.leaving.values().any(|of| of == workspace)
    }

    /// Runtimes were taken off line, or that was tried: a registration may have waited for it.
    pub(crate) fn deregistered(&mut self, cx: &mut Cx<'_>, op: OpId) -> Vec<Change> {
        let mut changes = Vec::new();
        if let Some(workspace) = self.leaving.remove(&op) {
            self.pump(cx, &workspace, &mut changes);
        }
        changes
    }
}
