//! Which workspaces this daemon serves and which runtimes it has in them: the list, the looks at this machine's agent CLIs, the registrations
//! that follow from both, and what is done when the server has forgotten a runtime or an agent CLI cannot be used any more.

mod adopt;
mod barred;
mod holds;
mod list;
mod looks;
mod orphans;
mod profiles;
mod register;

pub(crate) use orphans::{ORPHAN_TRIES, finds_nobody};

use crate::backoff::Failures;
use crate::effect::{ApiCall, Effect, Fact, RuntimeChange};
use crate::env::Cx;
use crate::error::ApiError;
use crate::event::ApiReply;
use crate::id::{Generation, OpId, ProfileId, Provider, RuntimeId, WorkspaceId};
use crate::op::ApiOp;
use crate::time::Instant;
use crate::timer::TimerKey;
use holds::Holds;
use looks::Looks;
use profiles::Profiles;
use register::{Sent, Why};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Runtime {
    workspace: WorkspaceId,
    provider: Provider,
    /// Set if it is a custom runtime; else it is the one of an agent CLI itself.
    profile: Option<ProfileId>,
    /// On its way until an earlier process's leftovers are failed, so that they are not mistaken for this one's tasks:
    /// nothing is asked for before.
    recovering: Option<OpId>,
    /// How often that was tried in vain while the server was there; unless this is the last time, it is tried again.
    vain: u8,
    /// The server was not there for the last try, as far as anybody knows.
    #[serde(default)]
    unheard: bool,
    failures: Failures,
    /// That is to be done once the server takes the credential again.
    barred: bool,
    /// Nothing is asked for before the reports that an earlier process left were tried once.
    held: bool,
}

#[derive(Debug, Default, Hash, Serialize, Deserialize)]
struct Workspace {
    registering: Option<Sent>,
    /// The registration that is to be sent next, as soon as it can be.
    want: Option<Why>,
    /// Whether a registration has ended, or there was nothing to name in one.
    tried: bool,
    failures: Failures,
    /// When the last registration was sent, if it worked.
    last: Option<Instant>,
    /// When the last one was sent, whatever became of it.
    sent: Option<Instant>,
    profiles: Profiles,
    /// The version of each agent CLI that a registration which worked has named last.
    versions: BTreeMap<Provider, u64>,
    /// Runtimes that left the set while a registration was on its way: they are taken off line after it, those of a broken agent CLI as such.
    owed: BTreeMap<RuntimeId, Option<Provider>>,
}

/// Which of its tasks this daemon has to do with yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ours {
    /// None.
    Nothing,
    /// One is alive, or its end is still to be told.
    Busy,
    /// The end of one of an earlier process is still to be told, and nobody tried yet.
    Untried,
}

/// What other machines must know of a change.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Added(RuntimeId),
    Claimable(RuntimeId),
    Removed(RuntimeId),
}

/// The set.
#[derive(Debug, Default, Hash, Serialize, Deserialize)]
pub(crate) struct Runtimes {
    generation: Generation,
    runtimes: BTreeMap<RuntimeId, Runtime>,
    /// The same by workspace; none is empty.
    hosted: BTreeMap<WorkspaceId, BTreeSet<RuntimeId>>,
    claimable: BTreeMap<Provider, BTreeSet<RuntimeId>>,
    workspaces: BTreeMap<WorkspaceId, Workspace>,
    /// Runtimes of a workspace are being taken off line: one that came back meanwhile would go with them.
    leaving: BTreeMap<OpId, WorkspaceId>,
    looks: Looks,
    holds: Holds,
    listing: Option<OpId>,
    list_again: bool,
    listed: bool,
    legacy: bool,
    failures: Failures,
    ready: bool,
    closed: bool,
    /// Those whose leftovers are to be failed, if the server has answered nothing since they joined or since the last try in vain.
    #[serde(default)]
    quiet: BTreeSet<RuntimeId>,
    /// The credential is to be renewed once the server takes it again.
    renewal_owed: bool,
}

impl Runtimes {
    pub(crate) const fn generation(&self) -> Generation {
        self.generation
    }

    pub(crate) fn provider(&self, runtime: &RuntimeId) -> Option<&Provider> {
        self.runtimes.get(runtime).map(|r| &r.provider)
    }

    pub(crate) fn workspace(&self, runtime: &RuntimeId) -> Option<&WorkspaceId> {
        self.runtimes.get(runtime).map(|r| &r.workspace)
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = &RuntimeId> {
        self.runtimes.keys()
    }

    pub(crate) fn len(&self) -> usize {
        self.runtimes.len()
    }

    pub(crate) fn any_claimable(&self) -> bool {
        !self.claimable.is_empty()
    }

    /// Whether tasks of this provider can be asked for.
    pub(crate) fn hosts(&self, provider: &Provider) -> bool {
        self.claimable.contains_key(provider)
    }

    /// Whether tasks of this runtime can be asked for.
    pub(crate) fn is_claimable(&self, runtime: &RuntimeId) -> bool {
        self.runtimes.get(runtime).is_some_and(|r| {
            self.claimable.get(&r.provider).is_some_and(|claimable| claimable.contains(runtime))
        })
    }

    pub(crate) fn hosts_other_than(&self, providers: &[Provider]) -> bool {
        self.claimable.keys().any(|provider| !providers.contains(provider))
    }

    pub(crate) fn claimable(&self) -> impl Iterator<Item = &RuntimeId> {
        self.claimable.values().flatten()
    }

    /// Whether the first list is in and every workspace of it was tried.
    pub(crate) const fn is_ready(&self) -> bool {
        self.ready
    }

    /// Whether a list was ever taken.
    pub(crate) const fn has_list(&self) -> bool {
        self.listed
    }

    pub(crate) fn start(&mut self, cx: &mut Cx<'_>) {
        self.renew(cx);
        self.sync(cx);
        self.look(cx, true);
    }

    /// Keeps the credential alive; whatever comes of it, nothing waits for it.
    pub(crate) fn renew(&mut self, cx: &mut Cx<'_>) {
        self.renewal_owed = cx.is_barred();
        if !self.closed && !self.renewal_owed {
            let (within, every) = (cx.timing().list, cx.timing().renew);
            cx.api(ApiOp::Renew, ApiCall::Renew, within);
            cx.arm(TimerKey::Renew, every);
        }
    }

    fn is_ready_now(
        &mut self,
        cx: &mut Cx<'_>,
        id: &RuntimeId,
        provider: Provider,
        changes: &mut Vec<Change>,
    ) {
        self.quiet.remove(id);
        self.claimable.entry(provider).or_default().insert(id.clone());
        let set = self.generation;
        cx.emit(Effect::Runtime { set, runtime: id.clone(), change: RuntimeChange::Claimable });
        changes.push(Change::Claimable(id.clone()));
    }

    /// The server does not know this runtime: forget it, and register its workspace again.
    pub(crate) fn gone(&mut self, cx: &mut Cx<'_>, id: &RuntimeId) -> Vec<Change> {
        let mut changes = Vec::new();
        let Some(workspace) = self.runtimes.get(id).map(|runtime| runtime.workspace.clone()) else {
            return changes;
        };
        cx.fact(Fact::RuntimeGone { runtime: id.clone() });
        self.remove(cx, id, &mut changes);
        self.want(cx, &workspace, Why::Lost, &mut changes);
        changes
    }

    fn drop_workspace(&mut self, cx: &mut Cx<'_>, workspace: &WorkspaceId, changes: &mut Vec<Change>) {
        if let Some(ws) = self.workspaces.remove(workspace) {
            for op in [ws.registering.map(|sent| sent.op), ws.profiles.on_its_way()].into_iter().flatten() {
                cx.cancel(op);
            }
        }
        cx.disarm(&TimerKey::Register(workspace.clone()));
        cx.disarm(&TimerKey::Profiles(workspace.clone()));
        let lost: Vec<RuntimeId> = self.hosted.get(workspace).into_iter().flatten().cloned().collect();
        for id in lost {
            self.remove(cx, &id, changes);
        }
    }

    fn remove(&mut self, cx: &mut Cx<'_>, id: &RuntimeId, changes: &mut Vec<Change>) {
        let Some(runtime) = self.runtimes.remove(id) else { return };
        cx.disarm(&TimerKey::Orphans(id.clone()));
        self.quiet.remove(id);
        if let Some(ids) = self.hosted.get_mut(&runtime.workspace) {
            ids.remove(id);
            if ids.is_empty() {
                self.hosted.remove(&runtime.workspace);
            }
        }
        if let Some(ids) = self.claimable.get_mut(&runtime.provider) {
            ids.remove(id);
            if ids.is_empty() {
                self.claimable.remove(&runtime.provider);
            }
        }
        self.changed(cx, id, RuntimeChange::Removed);
        changes.push(Change::Removed(id.clone()));
    }

    fn changed(&mut self, cx: &mut Cx<'_>, id: &RuntimeId, change: RuntimeChange) {
        self.generation.0 += 1;
        cx.emit(Effect::Runtime { set: self.generation, runtime: id.clone(), change });
    }

    fn note_ready(&mut self, cx: &mut Cx<'_>) {
        if !self.ready && self.listed && self.workspaces.values().all(|ws| ws.tried) {
            self.ready = true;
            cx.fact(Fact::Ready);
        }
    }

    /// Nothing is listed, registered or looked at from now on; what is on its way is left to end by itself, but for a look, for which nobody
    /// has a use any more.
    pub(crate) fn rest(&mut self, cx: &mut Cx<'_>) {
        self.closed = true;
        for key in [TimerKey::Sync, TimerKey::Renew, TimerKey::Discover, TimerKey::Versions] {
            cx.disarm(&key);
        }
        for id in self.workspaces.keys() {
            cx.disarm(&TimerKey::Register(id.clone()));
            cx.disarm(&TimerKey::Profiles(id.clone()));
        }
        for id in self.runtimes.keys() {
            cx.disarm(&TimerKey::Orphans(id.clone()));
        }
        if let Some(op) = self.looks.on_its_way() {
            cx.cancel(op);
        }
    }

    /// The same, for good. Returns the runtimes to take off line.
    pub(crate) fn close(&mut self, cx: &mut Cx<'_>) -> Vec<RuntimeId> {
        self.rest(cx);
        let mut hosted: Vec<RuntimeId> = self.runtimes.keys().cloned().collect();
        for ws in self.workspaces.values_mut() {
            if let Some(sent) = &ws.registering {
                cx.cancel(sent.op);
            }
            hosted.extend(std::mem::take(&mut ws.owed).into_keys());
        }
        hosted
    }

    /// A registration that was on its way at the end has ended. Returns the runtimes that it put on line, to be taken off again.
    pub(crate) fn registered_too_late(
        &mut self,
        op: OpId,
        workspace: &WorkspaceId,
        result: &Result<ApiReply, ApiError>,
    ) -> Vec<RuntimeId> {
        if let Some(ws) = self.workspaces.get_mut(workspace) {
            ws.registering.take_if(|sent| sent.op == op);
        }
        match result {
            Ok(ApiReply::Registered { runtimes }) => runtimes.iter().map(|r| r.id.clone()).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether nothing is listed or registered any more.
    #[cfg(test)]
    pub(crate) const fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether a registration is on its way.
    pub(crate) fn is_registering(&self) -> bool {
        self.workspaces.values().any(|ws| ws.registering.is_some())
    }
}
