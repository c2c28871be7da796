//! Which workspaces this daemon serves and which runtimes it has in them: the list, the registrations, and what is done when
//! the server has forgotten one.

use crate::backoff::{Backoff, Failures};
use crate::effect::{ApiCall, Effect, Fact, RuntimeChange};
use crate::env::Cx;
use crate::error::{ApiError, Refusal};
use crate::event::{ApiReply, Registered};
use crate::id::{Generation, OpId, Provider, RuntimeId, WorkspaceId};
use crate::op::ApiOp;
use crate::time::Instant;
use crate::timer::TimerKey;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Jitter of the workspace list's period, in thousandths either way.
const SYNC_JITTER_PERMILLE: u32 = 200;
/// First wait after a registration that failed.
const REGISTER_BACKOFF_BASE: Duration = Duration::from_secs(2);
/// How often the server is asked to fail a runtime's leftovers, at most. Then the runtime is asked for all the same: a server that cannot
/// do this one thing must not keep the machine idle.
pub(crate) const ORPHAN_TRIES: u8 = 3;
/// Waits between those: a second, then two.
const ORPHAN_BACKOFF: Backoff = Backoff { base: Duration::from_secs(1), cap: Duration::from_secs(2) };

#[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Runtime {
    workspace: WorkspaceId,
    provider: Provider,
    /// On its way until an earlier process's leftovers are failed, so that they are not mistaken for this one's tasks:
    /// nothing is asked for before.
    recovering: Option<OpId>,
    /// How often that was tried in vain; unless this is the last time, it is tried again.
    #[serde(default)]
    vain: u8,
    #[serde(default)]
    failures: Failures,
    /// That is to be done once the server takes the credential again.
    barred: bool,
    /// Nothing is asked for before the reports that an earlier process left were tried once.
    held: bool,
}

#[derive(Debug, Default, Hash, Serialize, Deserialize)]
struct Workspace {
    registering: Option<OpId>,
    /// Another registration was wanted while one was on its way.
    again: bool,
    tried: bool,
    failures: Failures,
    last: Option<Instant>,
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
    #[serde(default)]
    leaving: BTreeMap<OpId, WorkspaceId>,
    listing: Option<OpId>,
    list_again: bool,
    listed: bool,
    legacy: bool,
    failures: Failures,
    ready: bool,
    closed: bool,
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

    /// Asks for the workspace list now.
    pub(crate) fn sync(&mut self, cx: &mut Cx<'_>) {
        if self.closed {
            return;
        }
        if self.listing.is_some() {
            self.list_again = true;
            return;
        }
        if !cx.is_barred() {
            self.list(cx);
        }
    }

    /// Asks for the list although the server refuses the credential: to see whether it still does.
    pub(crate) fn probe(&mut self, cx: &mut Cx<'_>) {
        if !self.closed && self.listing.is_none() {
            self.list(cx);
        }
    }

    fn list(&mut self, cx: &mut Cx<'_>) {
        cx.disarm(&TimerKey::Sync);
        let within = cx.timing().list;
        self.listing = Some(cx.api(ApiOp::Workspaces, ApiCall::Workspaces, within));
    }

    /// The workspace list came, or did not.
    pub(crate) fn listed(&mut self, cx: &mut Cx<'_>, result: Result<ApiReply, ApiError>) -> Vec<Change> {
        self.listing = None;
        let mut changes = Vec::new();
        if self.closed {
            return changes;
        }
        match result {
            Ok(ApiReply::Workspaces { list, legacy }) => {
                self.listed = true;
                self.legacy = legacy;
                self.failures.reset();
                let list: BTreeSet<WorkspaceId> = list.into_iter().collect();
                let lost: Vec<WorkspaceId> =
                    self.workspaces.keys().filter(|ws| !list.contains(*ws)).cloned().collect();
                for ws in lost {
                    self.drop_workspace(cx, &ws, &mut changes);
                }
                for ws in list {
                    if !self.workspaces.contains_key(&ws) {
                        self.workspaces.insert(ws.clone(), Workspace::default());
                        self.register(cx, &ws);
                    } else if !self.hosted.contains_key(&ws) {
                        // A registration that brought nothing, or whose runtimes are all gone, is not left at that.
                        self.register_coalesced(cx, &ws);
                    }
                }
                let period = self.sync_period(cx);
                let next = cx.env.rng.jitter(period, SYNC_JITTER_PERMILLE);
                cx.arm(TimerKey::Sync, next);
                self.note_ready(cx);
            }
            Ok(_) => self.list_failed(cx),
            Err(error) => {
                if error.refusal() == Some(Refusal::Unauthorized) {
                    cx.fact(Fact::Unauthorized);
                }
                self.list_failed(cx);
            }
        }
        if std::mem::take(&mut self.list_again) {
            self.sync(cx);
        }
        changes
    }

    /// The server takes the credential again, which the list may have told. Returns the runtimes whose leftovers are to be failed now.
    pub(crate) fn unbarred(&mut self, cx: &mut Cx<'_>, listed: bool) -> Vec<RuntimeId> {
        if self.closed {
            return Vec::new();
        }
        if self.renewal_owed {
            self.renew(cx);
        }
        if !listed {
            // One on its way may still be refused.
            self.sync(cx);
        }
        let leaving: BTreeSet<&WorkspaceId> = self.leaving.values().collect();
        let mut owed = Vec::new();
        for (id, ws) in &mut self.workspaces {
            if ws.registering.is_none() && !leaving.contains(id) && std::mem::take(&mut ws.again) {
                owed.push(id.clone());
            }
        }
        for workspace in owed {
            self.register_owed(cx, &workspace);
        }
        let barred = |(id, runtime): (&RuntimeId, &mut Runtime)| {
            std::mem::take(&mut runtime.barred).then(|| id.clone())
        };
        self.runtimes.iter_mut().filter_map(barred).collect()
    }

    /// Registers a workspace that had to wait for the credential: not sooner after the last try than after any other.
    fn register_owed(&mut self, cx: &mut Cx<'_>, workspace: &WorkspaceId) {
        let Some(ws) = self.workspaces.get(workspace) else { return };
        if !ws.failures.any() {
            self.register_coalesced(cx, workspace);
            return;
        }
        let least = REGISTER_BACKOFF_BASE.min(cx.timing().register_retry);
        match ws.last.map(|last| last.after(least)) {
            Some(due) if due > cx.now.mono => cx.arm_at(TimerKey::Register(workspace.clone()), due),
            _ => self.register(cx, workspace),
        }
    }

    fn sync_period(&self, cx: &Cx<'_>) -> Duration {
        let timing = &cx.cfg.timers;
        if self.runtimes.is_empty() && self.workspaces.values().all(|ws| ws.registering.is_none()) {
            timing.sync_bootstrap
        } else if self.legacy {
            timing.sync_legacy
        } else {
            timing.sync
        }
    }

    fn list_failed(&mut self, cx: &mut Cx<'_>) {
        let timing = &cx.cfg.timers;
        let cap = if self.runtimes.is_empty() { timing.sync_bootstrap_cap } else { timing.sync };
        // Before the first list there is nothing to serve: try again soon rather than after a whole period.
        let base = if self.listed { timing.sync_bootstrap } else { REGISTER_BACKOFF_BASE };
        let wait = self.failures.next_wait(Backoff { base, cap }, &mut cx.env.rng);
        cx.arm(TimerKey::Sync, wait);
    }

    /// Registers a workspace, or remembers to do it once the registration on its way has ended.
    pub(crate) fn register(&mut self, cx: &mut Cx<'_>, workspace: &WorkspaceId) {
        if self.closed {
            return;
        }
        let leaving = self.is_leaving(workspace);
        let Some(ws) = self.workspaces.get_mut(workspace) else { return };
        if ws.registering.is_some() || leaving || cx.is_barred() {
            ws.again = true;
            return;
        }
        cx.disarm(&TimerKey::Register(workspace.clone()));
        ws.last = Some(cx.now.mono);
        let call = ApiCall::Register { workspace: workspace.clone(), agents: Vec::new(), profiles: None };
        let within = cx.timing().request;
        ws.registering = Some(cx.api(ApiOp::Register(workspace.clone()), call, within));
    }

    /// A registration ended. `ours` says whether a task of a runtime is here, or its end is still to be told.
    pub(crate) fn registered(
        &mut self,
        cx: &mut Cx<'_>,
        (op, workspace): (OpId, &WorkspaceId),
        result: Result<ApiReply, ApiError>,
        ours: &dyn Fn(&RuntimeId) -> Ours,
    ) -> Vec<Change> {
        let mut changes = Vec::new();
        let Some(ws) = self.workspaces.get_mut(workspace).filter(|ws| ws.registering == Some(op)) else {
            return changes;
        };
        ws.registering = None;
        ws.tried = true;
        let again = std::mem::take(&mut ws.again);
        match result {
            Ok(ApiReply::Registered { runtimes }) => {
                ws.failures.reset();
                self.adopt(cx, workspace, runtimes, ours, &mut changes);
                if again {
                    self.register_coalesced(cx, workspace);
                }
            }
            Err(error) if error.refusal() == Some(Refusal::WorkspaceGone) => {
                self.drop_workspace(cx, workspace, &mut changes);
            }
            Ok(_) | Err(_) => {
                if result.err().and_then(ApiError::refusal) == Some(Refusal::Unauthorized) {
                    cx.fact(Fact::Unauthorized);
                }
                let cap = cx.timing().register_retry;
                let shape = Backoff { base: REGISTER_BACKOFF_BASE.min(cap), cap };
                let wait = ws.failures.next_wait(shape, &mut cx.env.rng);
                cx.arm(TimerKey::Register(workspace.clone()), wait);
                ws.again = cx.is_barred();
            }
        }
        self.list_soon_if_idle(cx);
        self.note_ready(cx);
        changes
    }

    /// Without any runtime there is nothing to do but to look for one; the list on its way had set a longer period.
    fn list_soon_if_idle(&mut self, cx: &mut Cx<'_>) {
        let idle = self.runtimes.is_empty() && self.workspaces.values().all(|ws| ws.registering.is_none());
        if idle && self.listing.is_none() && !self.closed {
            let soon = cx.now.mono.after(cx.timing().sync_bootstrap);
            if cx.env.timers.at(&TimerKey::Sync).is_none_or(|at| at > soon) {
                cx.arm_at(TimerKey::Sync, soon);
            }
        }
    }

    /// Takes the runtimes of a workspace as the server names them: survivors stay as they are, new ones are freed of an
    /// earlier process's leftovers first, and those that are not named any more are taken off line. A new one that is busy
    /// was here before, or in an earlier process: its tasks would be among those that the server fails.
    fn adopt(
        &mut self,
        cx: &mut Cx<'_>,
        workspace: &WorkspaceId,
        named: Vec<Registered>,
        ours: &dyn Fn(&RuntimeId) -> Ours,
        changes: &mut Vec<Change>,
    ) {
        let ids: BTreeSet<RuntimeId> = named.iter().map(|r| r.id.clone()).collect();
        let hosted = self.hosted.get(workspace).into_iter().flatten();
        let lost: Vec<RuntimeId> = hosted.filter(|id| !ids.contains(*id)).cloned().collect();
        for id in &lost {
            self.remove(cx, id, changes);
        }
        if !lost.is_empty() {
            let within = cx.timing().request;
            let op = cx.api(
                ApiOp::Deregister { last: false },
                ApiCall::Deregister { runtimes: lost, broken: None },
                within,
            );
            self.leaving.insert(op, workspace.clone());
        }
        for Registered { id, provider, .. } in named {
            if self.runtimes.contains_key(&id) {
                continue;
            }
            let change = RuntimeChange::Added {
                workspace: workspace.clone(),
                provider: provider.clone(),
                profile: None,
            };
            self.changed(cx, &id, change);
            changes.push(Change::Added(id.clone()));
            let ours = ours(&id);
            let barred = ours == Ours::Nothing && cx.is_barred();
            let recovering = (ours == Ours::Nothing && !barred).then(|| fail_leftovers(cx, &id));
            let (held, ready) = (ours == Ours::Untried, ours == Ours::Busy);
            let (workspace_of, provider_of) = (workspace.clone(), provider.clone());
            let runtime = Runtime {
                workspace: workspace_of,
                provider: provider_of,
                recovering,
                vain: 0,
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
    }

    fn is_leaving(&self, workspace: &WorkspaceId) -> bool {
        self.leaving.values().any(|of| of == workspace)
    }

    /// Runtimes were taken off line, or that was tried: a registration may have waited for it.
    pub(crate) fn deregistered(&mut self, cx: &mut Cx<'_>, op: OpId) {
        let Some(workspace) = self.leaving.remove(&op).filter(|_| !self.closed) else { return };
        let again = self.workspaces.get_mut(&workspace).is_some_and(|ws| std::mem::take(&mut ws.again));
        if again {
            self.register_coalesced(cx, &workspace);
        }
    }

    /// An earlier process's leftovers are failed, or that was tried. What nobody fails runs for ever as the server sees it, so a failure
    /// that may pass is not left at that; but nothing is tried again once the daemon stops.
    pub(crate) fn orphans_done(
        &mut self,
        cx: &mut Cx<'_>,
        (op, id): (OpId, &RuntimeId),
        passing: bool,
        ours: Ours,
    ) -> Vec<Change> {
        let mut changes = Vec::new();
        let closed = self.closed;
        let Some(runtime) = self.runtimes.get_mut(id).filter(|runtime| runtime.recovering == Some(op)) else {
            return changes;
        };
        runtime.recovering = None;
        if passing && ours == Ours::Nothing {
            runtime.vain = runtime.vain.saturating_add(1);
            if runtime.vain < ORPHAN_TRIES {
                if !closed {
                    let wait = runtime.failures.next_wait(ORPHAN_BACKOFF, &mut cx.env.rng);
                    cx.arm(TimerKey::Orphans(id.clone()), wait);
                }
                return changes;
            }
        }
        if ours == Ours::Untried {
            // Only if this daemon was told late of what an earlier process left.
            runtime.held = true;
            return changes;
        }
        let provider = runtime.provider.clone();
        self.is_ready_now(cx, id, provider, &mut changes);
        changes
    }

    /// An earlier process's leftovers are to be failed, as the last try was in vain; unless a task of the runtime is here by now, of which
    /// the daemon was told late.
    pub(crate) fn orphans_due(&mut self, cx: &mut Cx<'_>, id: &RuntimeId, ours: Ours) -> Vec<Change> {
        let mut changes = Vec::new();
        let Some(runtime) = self.runtimes.get_mut(id).filter(|_| !self.closed) else { return changes };
        match ours {
            Ours::Untried => runtime.held = true,
            Ours::Nothing if cx.is_barred() => runtime.barred = true,
            Ours::Nothing => runtime.recovering = Some(fail_leftovers(cx, id)),
            Ours::Busy => {
                let provider = runtime.provider.clone();
                self.is_ready_now(cx, id, provider, &mut changes);
            }
        }
        changes
    }

    /// The reports of an earlier process were each tried once. If nothing of the runtime is here any more, what else that process
    /// left is failed now, as it is at any other registration. If something is, the runtime is asked for at once, and this is not made
    /// up for later: by then the tasks that the server counts as dispatched are those that it has just given out.
    pub(crate) fn first_reports_over(&mut self, cx: &mut Cx<'_>, id: &RuntimeId, ours: Ours) -> Vec<Change> {
        let mut changes = Vec::new();
        let Some(runtime) = self.runtimes.get_mut(id).filter(|runtime| runtime.held) else { return changes };
        match ours {
            Ours::Untried => {}
            Ours::Nothing if self.closed => {}
            Ours::Nothing if cx.is_barred() => (runtime.held, runtime.barred) = (false, true),
            Ours::Nothing => {
                runtime.held = false;
                runtime.recovering = Some(fail_leftovers(cx, id));
            }
            Ours::Busy => {
                runtime.held = false;
                let provider = runtime.provider.clone();
                self.is_ready_now(cx, id, provider, &mut changes);
            }
        }
        changes
    }

    fn is_ready_now(
        &mut self,
        cx: &mut Cx<'_>,
        id: &RuntimeId,
        provider: Provider,
        changes: &mut Vec<Change>,
    ) {
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
        self.register_coalesced(cx, &workspace);
        changes
    }

    /// One registration for a wave of lost runtimes: at once for the first, later for the rest.
    fn register_coalesced(&mut self, cx: &mut Cx<'_>, workspace: &WorkspaceId) {
        if self.closed {
            return;
        }
        let gap = cx.timing().register_coalesce;
        let leaving = self.is_leaving(workspace);
        let Some(ws) = self.workspaces.get_mut(workspace) else { return };
        if ws.registering.is_some() || leaving {
            ws.again = true;
            return;
        }
        if cx.env.timers.is_armed(&TimerKey::Register(workspace.clone())) {
            return;
        }
        match ws.last.map(|last| last.after(gap)) {
            Some(due) if due > cx.now.mono => cx.arm_at(TimerKey::Register(workspace.clone()), due),
            _ => self.register(cx, workspace),
        }
    }

    fn drop_workspace(&mut self, cx: &mut Cx<'_>, workspace: &WorkspaceId, changes: &mut Vec<Change>) {
        if let Some(op) = self.workspaces.remove(workspace).and_then(|ws| ws.registering) {
            cx.cancel(op);
        }
        cx.disarm(&TimerKey::Register(workspace.clone()));
        let lost: Vec<RuntimeId> = self.hosted.get(workspace).into_iter().flatten().cloned().collect();
        for id in lost {
            self.remove(cx, &id, changes);
        }
    }

    fn remove(&mut self, cx: &mut Cx<'_>, id: &RuntimeId, changes: &mut Vec<Change>) {
        let Some(runtime) = self.runtimes.remove(id) else { return };
        cx.disarm(&TimerKey::Orphans(id.clone()));
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

    /// Nothing is listed or registered from now on; what is on its way is left to end by itself.
    pub(crate) fn rest(&mut self, cx: &mut Cx<'_>) {
        self.closed = true;
        cx.disarm(&TimerKey::Sync);
        cx.disarm(&TimerKey::Renew);
        for id in self.workspaces.keys() {
            cx.disarm(&TimerKey::Register(id.clone()));
        }
        for id in self.runtimes.keys() {
            cx.disarm(&TimerKey::Orphans(id.clone()));
        }
    }

    /// Nothing is listed or registered from now on. Returns the runtimes to take off line.
    pub(crate) fn close(&mut self, cx: &mut Cx<'_>) -> Vec<RuntimeId> {
        self.rest(cx);
        for ws in self.workspaces.values() {
            if let Some(op) = ws.registering {
                cx.cancel(op);
            }
        }
        self.runtimes.keys().cloned().collect()
    }

    /// A registration that was on its way at the end has ended. Returns the runtimes that it put on line, to be taken off again.
    pub(crate) fn registered_too_late(
        &mut self,
        op: OpId,
        workspace: &WorkspaceId,
        result: &Result<ApiReply, ApiError>,
    ) -> Vec<RuntimeId> {
        if let Some(ws) = self.workspaces.get_mut(workspace).filter(|ws| ws.registering == Some(op)) {
            ws.registering = None;
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

fn fail_leftovers(cx: &mut Cx<'_>, id: &RuntimeId) -> OpId {
    let within = cx.timing().request;
    cx.api(ApiOp::Orphans(id.clone()), ApiCall::RecoverOrphans { runtime: id.clone() }, within)
}
