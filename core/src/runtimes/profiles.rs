//! Custom runtimes of a workspace, which people have made: when they are fetched, and what is known of them. Nobody knows them is not the same as
//! there are none.

use super::register::{BASE, Why};
use super::{Change, Runtimes};
use crate::backoff::{Backoff, Failures};
use crate::effect::ApiCall;
use crate::env::Cx;
use crate::error::{ApiError, Refusal};
use crate::event::ApiReply;
use crate::id::{OpId, WorkspaceId};
use crate::op::ApiOp;
use crate::time::Instant;
use crate::timer::TimerKey;
use serde::{Deserialize, Serialize};

/// What a server said of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Known {
    /// Stands for all that matters of them; none of a server that has no such thing.
    pub(super) signature: Option<u64>,
    pub(super) count: u16,
}

/// Whether the next registration waits for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Stage {
    /// Nobody asked on its behalf.
    #[default]
    Idle,
    Waiting,
    /// They were told, could not be, or took too long.
    Settled,
}

/// Those of one workspace.
#[derive(Debug, Default, Hash, Serialize, Deserialize)]
pub(super) struct Profiles {
    open: Option<OpId>,
    asked: Option<Instant>,
    /// They are to be asked for again: after this request, or when it is time.
    again: bool,
    stage: Stage,
    failures: Failures,
    known: Option<Known>,
    /// What the last registration that worked and named them knew.
    named: Option<Known>,
}

impl Profiles {
    pub(super) const fn on_its_way(&self) -> Option<OpId> {
        self.open
    }

    pub(super) const fn known(&self) -> Option<Known> {
        self.known
    }

    pub(super) const fn named(&mut self, named: Option<Known>) {
        self.named = named;
    }

    /// A registration that waited for them is sent.
    pub(super) const fn used(&mut self) {
        self.stage = Stage::Idle;
    }

    /// A registration does not wait for them any more.
    pub(super) const fn settle(&mut self) {
        self.stage = Stage::Settled;
    }

    pub(super) fn is_awaited(&self) -> bool {
        self.stage == Stage::Waiting
    }

    /// Whether there are others than those that the last registration knew.
    pub(super) fn has_drifted(&self) -> bool {
        let of_note = |known: Option<Known>| known.filter(|known| known.count > 0);
        self.known.is_some() && of_note(self.known) != of_note(self.named)
    }
}

impl Runtimes {
    /// The custom runtimes of a workspace may have changed.
    pub(crate) fn profiles_changed(&mut self, cx: &mut Cx<'_>, workspace: &WorkspaceId) {
        let Some(ws) = self.workspaces.get_mut(workspace).filter(|_| !self.closed) else { return };
        ws.profiles.again = true;
        self.ask_for_profiles(cx, workspace);
    }

    /// Those of any workspace may have changed: the control connection was down.
    pub(crate) fn all_profiles_changed(&mut self, cx: &mut Cx<'_>) {
        let all: Vec<WorkspaceId> = self.workspaces.keys().cloned().collect();
        for workspace in all {
            self.profiles_changed(cx, &workspace);
        }
    }

    /// Whether a registration need not wait for them; asks for them if nobody has.
    pub(super) fn profiles_settled(&mut self, cx: &mut Cx<'_>, workspace: &WorkspaceId) -> bool {
        let Some(ws) = self.workspaces.get_mut(workspace) else { return true };
        if ws.profiles.stage == Stage::Idle {
            ws.profiles.stage = Stage::Waiting;
            let patience = cx.timing().profiles_patience;
            match ws.profiles.asked.filter(|_| ws.profiles.open.is_some()).map(|at| at.after(patience)) {
                // One that was asked for before may take long already.
                Some(until) if until > cx.now.mono => {
                    cx.arm_at(TimerKey::Profiles(workspace.clone()), until);
                }
                Some(_) => ws.profiles.stage = Stage::Settled,
                None => {
                    ws.profiles.again = true;
                    self.ask_for_profiles(cx, workspace);
                    return false;
                }
            }
        }
        ws.profiles.stage == Stage::Settled
    }

    /// What is known of them is suspect: the registration that is tried again waits for another answer.
    pub(super) fn ask_for_profiles_again(&mut self, cx: &mut Cx<'_>, workspace: &WorkspaceId) {
        if let Some(ws) = self.workspaces.get_mut(workspace) {
            ws.profiles.stage = Stage::Idle;
            ws.profiles.again = true;
        }
        self.profiles_settled(cx, workspace);
    }

    /// Asks for them if that is wanted, unless somebody just did.
    pub(super) fn ask_for_profiles(&mut self, cx: &mut Cx<'_>, workspace: &WorkspaceId) {
        let Some(ws) = self.workspaces.get_mut(workspace) else { return };
        let profiles = &mut ws.profiles;
        if profiles.open.is_some() || !profiles.again || cx.is_barred() {
            return;
        }
        let key = TimerKey::Profiles(workspace.clone());
        let soon =
            profiles.asked.map(|at| at.after(cx.timing().reconcile_gap)).filter(|at| *at > cx.now.mono);
        if let Some(at) = soon {
            cx.arm_at(key, at);
            return;
        }
        let within = cx.timing().request;
        let call = ApiCall::Profiles { workspace: workspace.clone() };
        profiles.open = Some(cx.api(ApiOp::Profiles(workspace.clone()), call, within));
        profiles.asked = Some(cx.now.mono);
        profiles.again = false;
        if profiles.stage == Stage::Waiting {
            let patience = cx.timing().profiles_patience;
            cx.arm(key, patience);
        } else {
            cx.disarm(&key);
        }
    }

    /// They have been waited for long enough, or may be asked for again.
    pub(crate) fn profiles_due(&mut self, cx: &mut Cx<'_>, workspace: &WorkspaceId) -> Vec<Change> {
        let mut changes = Vec::new();
        let Some(ws) = self.workspaces.get_mut(workspace).filter(|_| !self.closed) else { return changes };
        if ws.profiles.again && ws.profiles.open.is_none() {
            self.ask_for_profiles(cx, workspace);
        } else if ws.profiles.stage == Stage::Waiting {
            ws.profiles.stage = Stage::Settled;
            self.pump(cx, workspace, &mut changes);
            self.note_ready(cx);
        }
        changes
    }

    /// They were told, or could not be.
    pub(crate) fn profiles_told(
        &mut self,
        cx: &mut Cx<'_>,
        (op, workspace): (OpId, &WorkspaceId),
        result: &Result<ApiReply, ApiError>,
    ) -> Vec<Change> {
        let mut changes = Vec::new();
        let Some(ws) = self.workspaces.get_mut(workspace) else { return changes };
        let profiles = &mut ws.profiles;
        if profiles.open.take_if(|open| *open == op).is_none() || self.closed {
            return changes;
        }
        let known = match result {
            Ok(ApiReply::Profiles { signature, count }) => {
                Some(Known { signature: Some(*signature), count: *count })
            }
            Err(error) if error.refusal() == Some(Refusal::RouteMissing) => {
                Some(Known { signature: None, count: 0 })
            }
            Ok(_) | Err(_) => None,
        };
        if profiles.stage == Stage::Waiting {
            profiles.stage = Stage::Settled;
            cx.disarm(&TimerKey::Profiles(workspace.clone()));
        }
        if known.is_some() {
            profiles.known = known;
            profiles.failures.reset();
            let drifted = profiles.has_drifted();
            self.ask_for_profiles(cx, workspace);
            if drifted {
                self.want(cx, workspace, Why::Drift, &mut changes);
            }
        } else if !matches!(result, Err(error) if !error.is_passing()) {
            profiles.again = true;
            let cap = cx.timing().register_retry;
            let wait = profiles.failures.next_wait(Backoff { base: BASE.min(cap), cap }, &mut cx.env.rng);
            cx.arm(TimerKey::Profiles(workspace.clone()), wait);
        }
        self.pump(cx, workspace, &mut changes);
        self.list_soon_if_idle(cx);
        self.note_ready(cx);
        changes
    }
}
