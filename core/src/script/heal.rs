//! The end of a script: everything works again, and then everything must come to rest.

use super::reply::{custom, custom_count, listed, registered};
use super::swarm::Size;
use super::world::{Call, Link, World, all_well};
use super::{Input, Runner};
use crate::effect::{ApiCall, FsCall};
use crate::error::{ApiError, Refusal};
use crate::event::{
    ApiReply, Collect, Event, Found, FsReply, GateAsk, RunEnd, RunEvent, RunOutcome, TaskStatus, WsEvent,
};
use crate::id::{EnvRoot, OpId, PathKey, WorkspaceId};
use crate::time::{Instant, Now};
use std::time::Duration;

/// After everything works again, the daemon has this much virtual time to come to rest.
pub const HEAL_BUDGET: Duration = Duration::from_hours(3);
/// So long it is watched at rest: every runtime must be asked for, and beat.
const REST: Duration = Duration::from_mins(7);
/// Steps of a healthy end at most; a hot loop ends here.
const MOST_STEPS: usize = 50_000;

impl World {
    /// The next thing that happens in a world where everything works: everything is answered at once, then time passes.
    pub fn healthy(&mut self, wakeup: Option<Instant>) -> (Now, Event) {
        if let Some(owner) = self.gate {
            return (self.now, Event::Gate { owner, ask: GateAsk::Release });
        }
        if self.link == Link::Dialing {
            return (self.now, Event::Ws { conn: self.conn, ws: WsEvent::Up });
        }
        if let Some((op, call)) = self.open.iter().next().map(|(op, call)| (*op, call.clone())) {
            return (self.now, self.well(op, &call));
        }
        if let Some(at) = wakeup
            && at > self.now.mono
        {
            self.advance(u32::try_from(at.since(self.now.mono).as_millis()).unwrap_or(u32::MAX));
        }
        (self.now, Event::Tick)
    }

    pub(super) fn well(&self, op: OpId, call: &Call) -> Event {
        match call {
            Call::Api(call) => Event::Api { op, r: self.well_api(call) },
            Call::Fs(FsCall::Prepare { root, .. }) => {
                Event::Fs { op, r: Ok(FsReply::Prepared { root: root.clone() }) }
            }
            Call::Fs(FsCall::Scan) => {
                let root = EnvRoot::new("ws/p-0");
                Event::Fs { op, r: Ok(FsReply::Scanned { found: vec![Found { root, what: None }] }) }
            }
            Call::Fs(FsCall::Resolve { .. }) => {
                Event::Fs { op, r: Ok(FsReply::Resolved { path: PathKey::new("dir-1") }) }
            }
            Call::Fs(FsCall::Probe { .. }) => {
                Event::Fs { op, r: Ok(FsReply::Probed { agents: listed(&all_well()) }) }
            }
            Call::Fs(_) => Event::Fs { op, r: Ok(FsReply::Done) },
            Call::Run(_) => {
                let have = self.runs.get(&op).map_or(0, |run| run.have);
                let outcome =
                    RunOutcome { end: RunEnd::Completed, have, usage: true, resume_rejected: false };
                Event::Run { op, run: RunEvent::Ended { outcome } }
            }
        }
    }

    fn well_api(&self, call: &ApiCall) -> Result<ApiReply, ApiError> {
        Ok(match call {
            ApiCall::Workspaces => ApiReply::Workspaces {
                list: ["ws-1", "ws-2"].into_iter().map(WorkspaceId::new).collect(),
                legacy: false,
            },
            ApiCall::Profiles { .. } => {
                ApiReply::Profiles { signature: self.custom, count: custom_count(self.custom) }
            }
            ApiCall::Register { workspace, agents, profiles } => {
                let hosted = self.hosted.get(workspace).filter(|hosted| hosted.len() > 3).cloned();
                let mut runtimes = hosted.unwrap_or_else(|| registered(workspace, Size::USUAL));
                runtimes.retain(|r| agents.contains(&r.provider));
                runtimes.extend(profiles.iter().flat_map(|signature| custom(workspace, *signature)));
                ApiReply::Registered { runtimes }
            }
            ApiCall::Beat { .. } => ApiReply::Beaten { gone: false, actions: Vec::new() },
            ApiCall::Claim(_) | ApiCall::ClaimOver { .. } | ApiCall::ClaimOne(_) => {
                ApiReply::Claimed { offers: Vec::new(), unusable: 0 }
            }
            ApiCall::Status { claim } => match self.status(*claim) {
                Some(status) => ApiReply::Task { status },
                None => return Err(ApiError::Refused { status: 404, kind: Refusal::TaskGone }),
            },
            ApiCall::Start(start)
                if !matches!(
                    self.status(start.claim()),
                    Some(TaskStatus::Dispatched | TaskStatus::WaitingLocalDirectory)
                ) =>
            {
                return Err(ApiError::Refused { status: 400, kind: Refusal::Other });
            }
            ApiCall::Collectable { .. } => ApiReply::Collectable { what: Collect::All },
            ApiCall::MessagesKnown { after, .. } => ApiReply::Known { upto: *after },
            _ => ApiReply::Done,
        })
    }
}

impl Runner {
    /// Lets everything work, and holds the daemon to coming to rest. What it does not is a violation.
    pub fn heal(&mut self) {
        let deadline = self.world.now().mono.after(HEAL_BUDGET);
        let mut steps = 0;
        let mut calm_since: Option<Instant> = None;
        let mut set = None;
        while steps < MOST_STEPS && self.violations().is_empty() && !self.world.exited {
            let now = self.world.now().mono;
            let calm = self.is_calm();
            // A runtime that has just come must be asked for too, and has to be given the time for it.
            let present = Some(self.daemon.view().runtime_set());
            if std::mem::replace(&mut set, present) != present {
                calm_since = None;
            }
            match calm_since {
                Some(since) if calm && now.since(since) >= REST => break,
                _ if now > deadline => break,
                None if calm => {
                    calm_since = Some(now);
                    self.rules.at_rest();
                }
                _ => {}
            }
            let wakeup = self.daemon.next_wakeup().map(|(at, _)| at);
            let (now, event) = self.world.healthy(wakeup);
            self.feed(now, event);
            steps += 1;
        }
        if self.violations().is_empty() {
            let rested = self.world.exited || (calm_since.is_some() && steps < MOST_STEPS);
            self.rules.finish(self.daemon.view(), rested);
            if !self.world.exited {
                self.rules.still_kept(&self.ledger);
            }
        }
    }

    /// Whether nothing is left over from what happened before: no task, no report, nothing on its way.
    fn is_calm(&self) -> bool {
        let view = self.daemon.view();
        self.world.open.is_empty() && view.tasks().next().is_none() && !view.has_late_reports()
    }

    /// The script so far, for a replay.
    pub fn into_script(self) -> Vec<Input> {
        self.script
    }
}
