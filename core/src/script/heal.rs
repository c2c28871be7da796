//! The end of a script: everything works again, and then everything must come to rest.

use super::reply::registered;
use super::world::{Call, Link, World};
use super::{Input, Runner};
use crate::effect::{ApiCall, FsCall};
use crate::error::{ApiError, Refusal};
use crate::event::{ApiReply, Event, FsReply, RunEnd, RunEvent, RunOutcome, TaskStatus, WsEvent};
use crate::id::{OpId, WorkspaceId};
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

    fn well(&self, op: OpId, call: &Call) -> Event {
        match call {
            Call::Api(call) => Event::Api { op, r: self.well_api(call) },
            Call::Fs(FsCall::Prepare { root, .. }) => {
                Event::Fs { op, r: Ok(FsReply::Prepared { root: root.clone() }) }
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
            ApiCall::Register { workspace } => ApiReply::Registered { runtimes: registered(workspace) },
            ApiCall::Beat { .. } => ApiReply::Beaten { gone: false },
            ApiCall::Claim(_) | ApiCall::ClaimOne(_) => ApiReply::Claimed { offers: Vec::new(), unusable: 0 },
            ApiCall::Status { claim } => match self.status(*claim) {
                Some(status) => ApiReply::Task { status },
                None => return Err(ApiError::Refused { status: 404, kind: Refusal::TaskGone }),
            },
            ApiCall::Start(start) if self.status(start.claim()) != Some(TaskStatus::Dispatched) => {
                return Err(ApiError::Refused { status: 400, kind: Refusal::Other });
            }
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
        while steps < MOST_STEPS && self.violations().is_empty() && !self.world.exited {
            let now = self.world.now().mono;
            let calm = self.is_calm();
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
