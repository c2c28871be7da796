//! The list of workspaces: when it is asked for, and what follows from it.

use super::register::{BASE, Why};
use super::{Change, Runtimes, Workspace};
use crate::backoff::Backoff;
use crate::effect::{ApiCall, Fact};
use crate::env::Cx;
use crate::error::{ApiError, Refusal};
use crate::event::ApiReply;
use crate::id::WorkspaceId;
use crate::op::ApiOp;
use crate::timer::TimerKey;
use std::collections::BTreeSet;
use std::time::Duration;

/// Jitter of the workspace list's period, in thousandths either way.
const SYNC_JITTER_PERMILLE: u32 = 200;

impl Runtimes {
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
                for id in list {
                    match self.workspaces.get(&id) {
                        None => {
                            self.workspaces.insert(id.clone(), Workspace::default());
                            self.want(cx, &id, Why::First, &mut changes);
                        }
                        // A registration that brought nothing, or whose runtimes are all gone, is not left at that.
                        Some(ws) if ws.registering.is_none() && !self.hosted.contains_key(&id) => {
                            self.want(cx, &id, Why::Lost, &mut changes);
                        }
                        Some(_) => {}
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

    fn sync_period(&self, cx: &Cx<'_>) -> Duration {
        let timing = &cx.cfg.timers;
        if self.is_idle() {
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
        let base = if self.listed { timing.sync_bootstrap } else { BASE };
        let wait = self.failures.next_wait(Backoff { base, cap }, &mut cx.env.rng);
        cx.arm(TimerKey::Sync, wait);
    }

    /// Whether there is no runtime, and none is about to come.
    fn is_idle(&self) -> bool {
        let comes = |ws: &Workspace| ws.registering.is_some() || ws.profiles.is_awaited();
        self.runtimes.is_empty() && self.looks.any_ended() && !self.workspaces.values().any(comes)
    }

    /// Without any runtime there is nothing to do but to look for one; the list on its way had set a longer period.
    pub(super) fn list_soon_if_idle(&mut self, cx: &mut Cx<'_>) {
        if self.is_idle() && self.listed && self.listing.is_none() && !self.closed {
            let soon = cx.now.mono.after(cx.timing().sync_bootstrap);
            if cx.env.timers.at(&TimerKey::Sync).is_none_or(|at| at > soon) {
                cx.arm_at(TimerKey::Sync, soon);
            }
        }
    }
}
