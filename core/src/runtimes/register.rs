//! Registrations: what each is for, when it is sent, and what follows from its answer. One at a time for a workspace, and none while runtimes of it
//! are being taken off line.

use super::profiles::Known;
use super::{Change, Ours, Runtimes};
use crate::backoff::Backoff;
use crate::effect::{ApiCall, Fact};
use crate::env::Cx;
use crate::error::{ApiError, Refusal};
use crate::event::ApiReply;
use crate::id::{OpId, Provider, RuntimeId, WorkspaceId};
use crate::op::ApiOp;
use crate::timer::TimerKey;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// First wait after a registration, or another request for it, that failed.
pub(super) const BASE: Duration = Duration::from_secs(2);

/// What a registration is for. A later one does all that an earlier one does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) enum Why {
    /// Agent CLIs that are not registered yet, or have another version. It names those of the machine only, and its answer takes nothing off line
    /// but what it replaces.
    Refresh,
    /// Other custom runtimes.
    Drift,
    /// The server has forgotten a runtime, or the workspace has none.
    Lost,
    /// The workspace is new.
    First,
}

impl Why {
    /// Whether it names everything, so that what its answer does not name is not there any more.
    pub(super) const fn is_whole(self) -> bool {
        !matches!(self, Self::Refresh)
    }

    /// Whether the custom runtimes are asked for before it.
    const fn asks_for_profiles(self) -> bool {
        matches!(self, Self::Lost | Self::First)
    }
}

/// A registration on its way, and what it names.
#[derive(Debug, Hash, Serialize, Deserialize)]
pub(super) struct Sent {
    pub(super) op: OpId,
    pub(super) why: Why,
    /// Agent CLIs, with their versions.
    pub(super) agents: BTreeMap<Provider, u64>,
    /// Custom runtimes, if they are known and it is one that names them.
    pub(super) profiles: Option<Known>,
}

impl Runtimes {
    /// A registration is wanted; it is sent as soon as it can be.
    pub(super) fn want(
        &mut self,
        cx: &mut Cx<'_>,
        workspace: &WorkspaceId,
        why: Why,
        changes: &mut Vec<Change>,
    ) {
        let Some(ws) = self.workspaces.get_mut(workspace).filter(|_| !self.closed) else { return };
        ws.want = ws.want.max(Some(why));
        self.pump(cx, workspace, changes);
    }

    /// The time for the next registration of a workspace has come.
    pub(crate) fn register_due(&mut self, cx: &mut Cx<'_>, workspace: &WorkspaceId) -> Vec<Change> {
        let mut changes = Vec::new();
        self.pump(cx, workspace, &mut changes);
        self.note_ready(cx);
        changes
    }

    pub(super) fn pump_all(&mut self, cx: &mut Cx<'_>, changes: &mut Vec<Change>) {
        let wanting: Vec<WorkspaceId> =
            self.workspaces.iter().filter(|(_, ws)| ws.want.is_some()).map(|(id, _)| id.clone()).collect();
        for workspace in wanting {
            self.pump(cx, &workspace, changes);
        }
    }

    /// Sends the registration that a workspace waits for, unless it has to wait for something else yet: the answer to the one before, its turn
    /// after a failure or a wave of lost runtimes, a credential that the server takes, the custom runtimes, the first look at the agent CLIs, or anything to name at all.
    pub(super) fn pump(&mut self, cx: &mut Cx<'_>, workspace: &WorkspaceId, changes: &mut Vec<Change>) {
        let key = TimerKey::Register(workspace.clone());
        if self.closed || cx.is_barred() || self.is_leaving(workspace) || cx.env.timers.is_armed(&key) {
            return;
        }
        let Some(why) = self.wanted(workspace) else { return };
        if why == Why::Lost
            && let Some(due) =
                self.workspaces[workspace].last.map(|at| at.after(cx.timing().register_coalesce))
            && due > cx.now.mono
        {
            // One registration for a wave of lost runtimes: at once for the first, later for the rest.
            cx.arm_at(key, due);
            return;
        }
        if why.asks_for_profiles() && !self.profiles_settled(cx, workspace) {
            return;
        }
        // Also those of a registration that was refused because of them.
        if self.workspaces[workspace].profiles.is_awaited() || !self.looks.any_ended() {
            return;
        }
        let agents: BTreeMap<Provider, u64> = self.fit().map(|(of, version)| (of.clone(), version)).collect();
        let Some(ws) = self.workspaces.get_mut(workspace) else { return };
        let profiles = ws.profiles.known().filter(|_| why.is_whole());
        if agents.is_empty() && profiles.is_none_or(|known| known.count == 0) {
            self.nothing_to_register(cx, workspace, why, changes);
            return;
        }
        ws.want = None;
        (ws.last, ws.sent) = (Some(cx.now.mono), Some(cx.now.mono));
        ws.profiles.used();
        let call = ApiCall::Register {
            workspace: workspace.clone(),
            agents: agents.keys().cloned().collect(),
            profiles: profiles.and_then(|known| known.signature),
        };
        let within = cx.timing().request;
        let op = cx.api(ApiOp::Register(workspace.clone()), call, within);
        ws.registering = Some(Sent { op, why, agents, profiles });
    }

    /// What the next registration of a workspace is for, if none is on its way; what it was wanted for may be over by now.
    fn wanted(&mut self, workspace: &WorkspaceId) -> Option<Why> {
        let behind = self.is_behind(workspace);
        let ws = self.workspaces.get_mut(workspace).filter(|ws| ws.registering.is_none())?;
        if ws.want == Some(Why::Drift) && !ws.profiles.has_drifted() {
            ws.want = Some(Why::Refresh);
        }
        if ws.want == Some(Why::Refresh) && !behind {
            ws.want = None;
        }
        ws.want
    }

    /// There is nothing that a registration could name. Custom runtimes that are no more go off line; else the workspace waits for the next look, or
    /// for news of its custom runtimes: the server is asked for nothing.
    fn nothing_to_register(
        &mut self,
        cx: &mut Cx<'_>,
        workspace: &WorkspaceId,
        why: Why,
        changes: &mut Vec<Change>,
    ) {
        let Some(ws) = self.workspaces.get_mut(workspace) else { return };
        ws.tried = true;
        if why != Why::Drift {
            return;
        }
        ws.want = None;
        ws.profiles.named(ws.profiles.known());
        let custom = |id: &&RuntimeId| self.runtimes.get(*id).is_some_and(|r| r.profile.is_some());
        let hosted = self.hosted.get(workspace).into_iter().flatten();
        let lost: Vec<RuntimeId> = hosted.filter(custom).cloned().collect();
        for id in &lost {
            self.remove(cx, id, changes);
        }
        self.take_off_line(cx, workspace, lost, None);
        self.list_soon_if_idle(cx);
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
        let ws = self.workspaces.get_mut(workspace);
        let Some((ws, sent)) = ws.and_then(|ws| {
            let sent = ws.registering.take_if(|sent| sent.op == op)?;
            Some((ws, sent))
        }) else {
            return changes;
        };
        ws.tried = true;
        match result {
            Ok(ApiReply::Registered { runtimes }) => {
                ws.failures.reset();
                ws.versions.extend(sent.agents.iter().map(|(of, version)| (of.clone(), *version)));
                if sent.profiles.is_some() {
                    ws.profiles.named(sent.profiles);
                }
                self.adopt(cx, workspace, &sent, runtimes, ours, &mut changes);
            }
            Err(error) if error.refusal() == Some(Refusal::WorkspaceGone) => {
                self.drop_workspace(cx, workspace, &mut changes);
            }
            Ok(_) => self.register_failed(cx, workspace, &sent, None),
            Err(error) => self.register_failed(cx, workspace, &sent, error.refusal()),
        }
        self.take_owed_off_line(cx, workspace);
        self.pump(cx, workspace, &mut changes);
        self.list_soon_if_idle(cx);
        self.note_ready(cx);
        changes
    }

    fn register_failed(
        &mut self,
        cx: &mut Cx<'_>,
        workspace: &WorkspaceId,
        sent: &Sent,
        refusal: Option<Refusal>,
    ) {
        if refusal == Some(Refusal::Unauthorized) {
            cx.fact(Fact::Unauthorized);
        }
        let cap = cx.timing().register_retry;
        let shape = Backoff { base: BASE.min(cap), cap };
        let Some(ws) = self.workspaces.get_mut(workspace) else { return };
        ws.want = ws.want.max(Some(sent.why));
        ws.last = None;
        let wait = ws.failures.next_wait(shape, &mut cx.env.rng);
        cx.arm(TimerKey::Register(workspace.clone()), wait);
        if refusal == Some(Refusal::Other) && sent.profiles.is_some_and(|known| known.signature.is_some()) {
            // One of the custom runtimes may have been deleted or turned off since they were fetched.
            self.ask_for_profiles_again(cx, workspace);
        } else if sent.why.asks_for_profiles() {
            ws.profiles.settle();
        }
    }

    /// Whether an agent CLI that can be used has no runtime of its own in a workspace, or another version than the one that was named there.
    pub(super) fn is_behind(&self, workspace: &WorkspaceId) -> bool {
        let Some(ws) = self.workspaces.get(workspace) else { return false };
        let is_other = |of, version| ws.versions.get(of).is_some_and(|named| *named != version);
        self.fit().any(|(of, version)| !self.is_hosted(workspace, of) || is_other(of, version))
    }

    /// Whether an agent CLI has a runtime of its own in a workspace.
    pub(super) fn is_hosted(&self, workspace: &WorkspaceId, provider: &Provider) -> bool {
        let own = |id| self.runtimes.get(id).is_some_and(|r| r.profile.is_none() && r.provider == *provider);
        self.hosted.get(workspace).into_iter().flatten().any(own)
    }
}
