//! What an earlier process of this daemon left of a runtime's tasks is failed before anything is asked for it.

use super::{Change, Ours, Runtimes};
use crate::backoff::Backoff;
use crate::effect::ApiCall;
use crate::env::Cx;
use crate::error::ApiError;
use crate::id::{OpId, RuntimeId};
use crate::op::ApiOp;
use crate::timer::TimerKey;
use std::time::Duration;

/// How often the server is asked to fail a runtime's leftovers, at most, while it is there. Then the runtime is asked for all the same: a
/// server that cannot do this one thing must not keep the machine idle. Tries that find nobody do not count: then nobody is there who could
/// give out a task either.
pub(crate) const ORPHAN_TRIES: u8 = 3;
/// Waits between those: a second, then two.
const ORPHAN_BACKOFF: Backoff = Backoff { base: Duration::from_secs(1), cap: Duration::from_secs(2) };
/// Waits while nobody is there. The first thing that the server answers ends them.
const OUTAGE_BACKOFF: Backoff = Backoff { base: Duration::from_secs(1), cap: Duration::from_secs(30) };

/// Whether a failure is no word of the server.
pub(crate) const fn finds_nobody(error: ApiError) -> bool {
    matches!(error, ApiError::NotSent | ApiError::Unknown | ApiError::Server { status: 502..=504 })
}

impl Runtimes {
    /// An earlier process's leftovers are failed, or that was tried. What nobody fails runs for ever as the server sees it, so a failure
    /// that may pass is not left at that; but nothing is tried again once the daemon stops.
    pub(crate) fn orphans_done(
        &mut self,
        cx: &mut Cx<'_>,
        (op, id): (OpId, &RuntimeId),
        passing: Option<ApiError>,
        ours: Ours,
    ) -> Vec<Change> {
        let mut changes = Vec::new();
        let closed = self.closed;
        let Some(runtime) = self.runtimes.get_mut(id).filter(|runtime| runtime.recovering == Some(op)) else {
            return changes;
        };
        runtime.recovering = None;
        if let Some(error) = passing.filter(|_| ours == Ours::Nothing) {
            runtime.unheard = finds_nobody(error) && self.quiet.contains(id);
            self.quiet.insert(id.clone());
            runtime.vain = runtime.vain.saturating_add(u8::from(!runtime.unheard));
            if runtime.vain < ORPHAN_TRIES {
                if !closed {
                    let shape = if runtime.unheard { OUTAGE_BACKOFF } else { ORPHAN_BACKOFF };
                    let wait = runtime.failures.next_wait(shape, &mut cx.env.rng);
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

    /// The server answers. A try that found nobody is made up for now: it stands before the first claim, which must not wait longer than it
    /// has to.
    pub(crate) fn server_answers(&mut self, cx: &mut Cx<'_>) {
        for id in std::mem::take(&mut self.quiet) {
            let Some(runtime) = self.runtimes.get_mut(&id).filter(|runtime| runtime.unheard) else {
                continue;
            };
            let key = TimerKey::Orphans(id);
            if cx.env.timers.is_armed(&key) {
                runtime.failures.reset();
                cx.arm_at(key, cx.now.mono);
            }
        }
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
                self.quiet.insert(id.clone());
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
}

pub(super) fn fail_leftovers(cx: &mut Cx<'_>, id: &RuntimeId) -> OpId {
    let within = cx.timing().request;
    cx.api(ApiOp::Orphans(id.clone()), ApiCall::RecoverOrphans { runtime: id.clone() }, within)
}
