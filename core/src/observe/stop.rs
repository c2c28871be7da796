//! I18 and INV-133 to 142 as decided: a stop only moves forward, asks for nothing new, takes the runtimes off line, and ends.

use super::fleet::FleetBook;
use super::ops::{Closed, What};
use super::{At, Found};
use crate::effect::{ApiCall, Effect, Fact, FsCall, StopPhase, WsCmd};
use crate::event::Event;
use crate::time::Instant;
use std::time::Duration;

/// After everything that a stop waits for in turn, it may take this much longer.
const SLACK_MS: u64 = 1;

#[derive(Debug, Default)]
pub(super) struct StopBook {
    since: Option<Instant>,
    forced: Option<Instant>,
    /// What was lost because the clock was looked at too late.
    slept: Duration,
    phase: Option<StopPhase>,
    deregistered: bool,
    deregistering: u32,
    exited: bool,
}

impl StopBook {
    pub(super) const fn stopping(&self) -> bool {
        self.since.is_some()
    }

    pub(super) const fn exited(&self) -> bool {
        self.exited
    }

    pub(super) fn event(&mut self, event: Option<&Event>, now: Instant, late: Duration) {
        if self.since.is_some() {
            self.slept += late;
        }
        if matches!(event, Some(Event::Stop { .. })) {
            if self.since.is_none() {
                self.since = Some(now);
            } else if self.forced.is_none() {
                self.forced = Some(now);
            }
        }
    }

    pub(super) fn closed(&mut self, closed: &Closed<'_>) {
        if matches!(closed.what, What::Api(ApiCall::Deregister { .. })) {
            self.deregistering = self.deregistering.saturating_sub(1);
        }
    }

    pub(super) fn effect(&mut self, effect: &Effect, at: &At<'_>, fleet: &FleetBook, found: &mut Found) {
        found.require(!self.exited, "I18", || format!("after the exit comes {effect:?}"));
        match effect {
            Effect::Exit { .. } => self.exited = true,
            Effect::Fact { fact: Fact::Stopping { phase } } => {
                found.require(at.stopping && self.phase < Some(*phase), "I18", || {
                    format!("the stop goes from {:?} to {phase:?}", self.phase)
                });
                self.phase = Some(*phase);
            }
            Effect::Api { call: ApiCall::Deregister { runtimes }, .. } => {
                self.deregistering += 1;
                if at.stopping && !self.deregistered {
                    self.deregistered = true;
                    // Without any, this is about a registration that came too late.
                    let all = fleet.ids().next().is_none() || fleet.ids().eq(runtimes.iter());
                    found.require(all, "INV-137", || format!("a stop takes only {runtimes:?} off line"));
                }
            }
            Effect::Api { call, .. } if at.stopping => {
                let new = matches!(
                    call,
                    ApiCall::Renew
                        | ApiCall::Workspaces
                        | ApiCall::Register { .. }
                        | ApiCall::RecoverOrphans { .. }
                        | ApiCall::Beat { .. }
                );
                found.require(!new, "INV-141", || format!("{call:?} although the daemon stops"));
            }
            Effect::Ws { cmd: WsCmd::Connect { .. } | WsCmd::Beat { .. }, .. } if at.stopping => {
                found.require(false, "I18", || format!("{effect:?} although the daemon stops"));
            }
            Effect::Fs { call: FsCall::Resolve { .. } | FsCall::Prepare { .. }, .. } | Effect::Run { .. }
                if at.stopping =>
            {
                found.require(false, "INV-135", || format!("{effect:?} although the daemon stops"));
            }
            _ => {}
        }
    }

    /// INV-136, INV-142: a stop is bounded, whatever is not answered.
    pub(super) fn settle(&self, at: &At<'_>, found: &mut Found) {
        if at.due {
            return;
        }
        if let Some(since) = self.since {
            let t = at.timing;
            let most = t.stop_claims + t.stop_tasks * 2 + t.stop_deregister + self.slept;
            let late = at.now.as_millis() > since.after(most).as_millis() + SLACK_MS;
            found.require(!late, "INV-136", || format!("a stop takes longer than {} s", most.as_secs()));
        }
        if let Some(forced) = self.forced {
            let late = at.now.as_millis() > forced.after(at.timing.stop_forced).as_millis() + SLACK_MS;
            found.require(!late, "INV-142", || "the second request to stop does not hurry".into());
        }
    }
}
