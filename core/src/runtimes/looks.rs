//! Looks at the agent CLIs of this machine: for new ones and for other versions, one look at a time. What follows from one is a registration where
//! something is missing or has another version.

use super::register::Why;
use super::{Change, Runtimes};
use crate::backoff::{Backoff, Failures};
use crate::effect::FsCall;
use crate::env::Cx;
use crate::error::FsError;
use crate::event::{FsReply, Standing};
use crate::id::{OpId, Provider, WorkspaceId};
use crate::time::Instant;
use crate::timer::TimerKey;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The look on its way, and what the last one found.
#[derive(Debug, Default, Hash, Serialize, Deserialize)]
pub(super) struct Looks {
    open: Option<OpId>,
    /// How many began.
    pub(super) begun: u64,
    /// When the last one ended, well or not.
    ended: Option<Instant>,
    /// What the last one that ended well found. What is not in it is not installed.
    pub(super) seen: BTreeMap<Provider, Standing>,
    /// Looks in a row after which something was still slow, or that failed.
    unsettled: Failures,
    /// Looks in a row after which something that works was not registered somewhere.
    stuck: Failures,
}

impl Looks {
    pub(super) const fn on_its_way(&self) -> Option<OpId> {
        self.open
    }

    /// Whether one has ended, so that something is known or will not be known soon.
    pub(super) const fn any_ended(&self) -> bool {
        self.ended.is_some()
    }
}

impl Runtimes {
    /// Looks at the agent CLIs, at those that are known to work only if `all`.
    pub(super) fn look(&mut self, cx: &mut Cx<'_>, all: bool) {
        if self.closed || self.looks.open.is_some() {
            return;
        }
        cx.disarm(&TimerKey::Discover);
        if all {
            let every = cx.timing().versions;
            cx.arm(TimerKey::Versions, every);
        }
        self.looks.begun += 1;
        self.looks.open = Some(cx.probe(FsCall::Probe { all }));
    }

    pub(crate) fn discover_due(&mut self, cx: &mut Cx<'_>) {
        self.look(cx, false);
    }

    /// Other versions are looked for; not beside another look, and not right after one.
    pub(crate) fn versions_due(&mut self, cx: &mut Cx<'_>) {
        let rest = cx.timing().probe_again;
        let just = self.looks.ended.is_some_and(|at| at.after(rest) > cx.now.mono);
        if self.looks.open.is_some() || just {
            cx.arm(TimerKey::Versions, rest);
        } else {
            self.look(cx, true);
        }
    }

    /// A look ended: what it found is taken note of. What follows from it comes with `after_look`.
    pub(crate) fn looked(&mut self, cx: &mut Cx<'_>, op: OpId, result: &Result<FsReply, FsError>) -> bool {
        if self.looks.open.take_if(|open| *open == op).is_none() || self.closed {
            return false;
        }
        self.looks.ended = Some(cx.now.mono);
        let Ok(FsReply::Probed { agents }) = result else { return true };
        let seen = agents.iter().map(|agent| (agent.provider.clone(), agent.standing)).collect();
        let before = std::mem::replace(&mut self.looks.seen, seen);
        let works = |seen: &BTreeMap<Provider, Standing>, of: &Provider| {
            matches!(seen.get(of), Some(Standing::Works { .. }))
        };
        if self.looks.seen.keys().any(|of| works(&self.looks.seen, of) && !works(&before, of)) {
            self.looks.stuck.reset();
        }
        self.note_standings(cx);
        true
    }

    /// Registers where something is missing or has another version, and decides when to look again.
    pub(crate) fn after_look(&mut self, cx: &mut Cx<'_>, well: bool) -> Vec<Change> {
        let mut changes = Vec::new();
        let missing = self.is_missing_somewhere();
        if well {
            let behind: Vec<WorkspaceId> =
                self.workspaces.keys().filter(|id| self.is_behind(id)).cloned().collect();
            for workspace in behind {
                self.want(cx, &workspace, Why::Refresh, &mut changes);
            }
        }
        self.pump_all(cx, &mut changes);
        let (again, discover, cap) =
            (cx.timing().probe_again, cx.timing().discover, cx.timing().discover_cap);
        let slow = self.looks.seen.values().any(|standing| *standing == Standing::Slow);
        let wait = if slow || !well {
            self.looks.unsettled.next_wait(Backoff { base: again, cap: discover }, &mut cx.env.rng)
        } else {
            self.looks.unsettled.reset();
            if missing {
                self.looks.stuck.next_wait(Backoff { base: discover, cap }, &mut cx.env.rng)
            } else {
                self.looks.stuck.reset();
                discover
            }
        };
        cx.arm(TimerKey::Discover, wait);
        self.list_soon_if_idle(cx);
        self.note_ready(cx);
        changes
    }

    /// The agent CLIs that work and are not held back, with their versions.
    pub(super) fn fit(&self) -> impl Iterator<Item = (&Provider, u64)> {
        let holds = &self.holds;
        self.looks.seen.iter().filter_map(move |(of, standing)| match standing {
            Standing::Works { version } if !holds.has(of) => Some((of, *version)),
            _ => None,
        })
    }

    fn is_missing_somewhere(&self) -> bool {
        // One that is about to be registered anyway is not counted.
        let served = self.workspaces.iter().filter(|(_, ws)| ws.want.is_none() && ws.registering.is_none());
        let mut served = served.map(|(id, _)| id);
        served.any(|workspace| self.fit().any(|(of, _)| !self.is_hosted(workspace, of)))
    }
}
