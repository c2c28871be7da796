//! I18, I19 and INV-133 to 142 as decided: a stop only moves forward, asks for nothing new, does to runs what its kind says, takes the
//! runtimes off line if it should, and ends.

use super::fleet::FleetBook;
use super::ops::{Closed, End, OpBook, What};
use super::tasks::TaskBook;
use super::{At, Found, is_claim};
use crate::effect::{ApiCall, Effect, EndReason, ExitCause, Fact, FsCall, StopPhase, WsCmd};
use crate::event::{ApiReply, Event, StopKind};
use crate::id::{OpId, RuntimeId};
use crate::said::Said;
use crate::time::Instant;
use std::collections::BTreeSet;
use std::time::Duration;

/// After everything that a stop waits for in turn, it may take this much longer.
const SLACK_MS: u64 = 1;

/// What a stop does to runs at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Serving,
    /// They are waited for.
    Draining,
    /// They were waited for until this moment; the step may belong to either side.
    Turning,
    /// They are ended.
    Ending,
    /// They are left alone.
    Leaving,
}

#[derive(Clone, Debug, Default)]
pub(super) struct StopBook {
    how: StopKind,
    asked: u8,
    since: Option<Instant>,
    forced: Option<Instant>,
    /// A drain's time was over at the end of a step.
    over: bool,
    /// What was lost because the clock was looked at too late.
    slept: Duration,
    phase: Option<StopPhase>,
    deregistered: bool,
    /// Runtimes that a registration ever named.
    named: BTreeSet<RuntimeId>,
    exited: bool,
}

impl StopBook {
    pub(super) const fn stopping(&self) -> bool {
        self.since.is_some()
    }

    pub(super) const fn exited(&self) -> bool {
        self.exited
    }

    /// Whether heartbeats and the control connection must go on.
    pub(super) fn beats(&self, now: Instant) -> bool {
        matches!(self.mode(now), Mode::Serving | Mode::Draining | Mode::Leaving) && !self.deregistered
    }

    /// Whether they may go on: in a drain until the runtimes are taken off line, also when its time is over and no run is left that could
    /// be ended, but something else is waited for.
    fn may_beat(&self, mode: Mode) -> bool {
        let drain = matches!(self.how, StopKind::Drain { .. }) && self.forced.is_none();
        (mode != Mode::Ending || drain) && !self.deregistered
    }

    /// When a drain is over at the latest.
    fn until(&self) -> Option<Instant> {
        match (self.how, self.since) {
            (StopKind::Drain { within_ms: Some(ms) }, Some(since)) => {
                Some(since.after(Duration::from_millis(ms)))
            }
            _ => None,
        }
    }

    fn mode(&self, now: Instant) -> Mode {
        match self.how {
            _ if self.since.is_none() => Mode::Serving,
            StopKind::Restart => Mode::Leaving,
            StopKind::Drain { .. } if self.forced.is_none() && !self.over => {
                if self.until().is_some_and(|until| until <= now) { Mode::Turning } else { Mode::Draining }
            }
            _ => Mode::Ending,
        }
    }

    pub(super) fn event(&mut self, event: Option<&Event>, now: Instant, late: Duration) {
        if self.since.is_some() {
            self.slept += late;
        }
        if let Some(Event::Stop { how }) = event {
            self.asked = self.asked.saturating_add(1);
            if self.since.is_none() {
                (self.since, self.how) = (Some(now), *how);
            } else if self.forced.is_none() {
                self.forced = Some(now);
            }
        }
    }

    pub(super) fn closed(&mut self, closed: &Closed<'_>) {
        if let (What::Api(ApiCall::Register { .. }), End::Api(Ok(ApiReply::Registered { runtimes }))) =
            (&closed.what, closed.end)
        {
            self.named.extend(runtimes.iter().map(|runtime| runtime.id.clone()));
        }
    }

    pub(super) fn effect(
        &mut self,
        effect: &Effect,
        at: &At<'_>,
        (fleet, ops, tasks): (&FleetBook, &OpBook, &TaskBook),
        found: &mut Found,
    ) {
        found.require(!self.exited, "I18", || {
            format!("after the exit comes {effect}", effect = effect.said())
        });
        let mode = self.mode(at.now);
        match effect {
            Effect::Exit { report } => {
                self.exited = true;
                let restart = report.cause == ExitCause::Restarting;
                found.require(
                    report.cause == ExitCause::Unauthorized || restart == (mode == Mode::Leaving),
                    "I18",
                    || {
                        format!(
                            "the daemon ends as {}, asked for was {}",
                            report.cause.said(),
                            self.how.said()
                        )
                    },
                );
            }
            Effect::Fact { fact: Fact::Stopping { phase } } => {
                found.require(at.stopping && self.phase < Some(*phase), "I18", || {
                    format!("the stop goes from {} to {phase}", self.phase.said(), phase = phase.said())
                });
                self.phase = Some(*phase);
                if *phase == StopPhase::Tasks {
                    self.claims_are_over(at, mode, ops, found);
                }
            }
            Effect::Api { call: ApiCall::Deregister { runtimes, .. }, .. } => {
                self.deregister(runtimes, at, (fleet, tasks), found);
            }
            Effect::Api { call: ApiCall::Beat { .. }, .. } if at.stopping => {
                found.require(self.may_beat(mode), "INV-141", || {
                    format!("{effect} although the daemon stops", effect = effect.said())
                });
            }
            Effect::Api { call, .. } if at.stopping => {
                let new = matches!(
                    call,
                    ApiCall::Renew
                        | ApiCall::Workspaces
                        | ApiCall::Register { .. }
                        | ApiCall::RecoverOrphans { .. }
                );
                found.require(!new, "INV-141", || {
                    format!("{call} although the daemon stops", call = call.said())
                });
            }
            Effect::Ws { cmd: WsCmd::Connect { .. } | WsCmd::Beat { .. }, .. } if at.stopping => {
                found.require(self.may_beat(mode), "I18", || {
                    format!("{effect} although the daemon stops", effect = effect.said())
                });
            }
            Effect::Fs { call: FsCall::Resolve { .. } | FsCall::Prepare { .. }, .. } | Effect::Run { .. }
                if at.stopping =>
            {
                let goes_on = matches!(mode, Mode::Draining | Mode::Turning);
                found.require(goes_on, "INV-135", || {
                    format!("{effect} although the daemon stops", effect = effect.said())
                });
            }
            Effect::Fact { fact: Fact::Ending { claim, why: EndReason::Stop } } => {
                found.require(mode != Mode::Draining, "DRAIN", || {
                    format!("claim {} is ended, and should have been waited for", claim.0)
                });
                found.require(mode != Mode::Leaving || !tasks.was_launched(*claim), "RESTART", || {
                    format!("claim {} is ended, and its run should go on", claim.0)
                });
            }
            Effect::Kill { op, .. } if mode == Mode::Leaving => {
                found.require(tasks.may_be_killed(*op), "RESTART", || format!("run {} is told to end", op.0));
            }
            Effect::Cancel { op } if at.stopping => self.cancel(*op, at, mode, ops, found),
            _ => {}
        }
    }

    /// INV-133: tasks are only waited for once every claim has ended, or was waited for long enough.
    fn claims_are_over(&self, at: &At<'_>, mode: Mode, ops: &OpBook, found: &mut Found) {
        let Some(since) = self.since else { return };
        let patience = match mode {
            Mode::Leaving => Some(at.timing.stop_claims),
            _ if matches!(self.how, StopKind::Drain { .. }) => {
                Some(at.timing.stop_claims + at.timing.stop_tasks)
            }
            _ => None,
        };
        let given_up = patience.is_some_and(|patience| at.now >= since.after(patience));
        found.require(given_up || !ops.any(is_claim), "INV-133", || {
            "tasks are waited for while a claim is on its way".into()
        });
    }

    fn deregister(
        &mut self,
        runtimes: &[RuntimeId],
        at: &At<'_>,
        (fleet, tasks): (&FleetBook, &TaskBook),
        found: &mut Found,
    ) {
        found.require(runtimes.iter().all(|runtime| self.named.contains(runtime)), "INV-138", || {
            format!("{runtimes} are taken off line, and some were never on", runtimes = runtimes.said())
        });
        if !at.stopping {
            return;
        }
        let mode = self.mode(at.now);
        found.require(mode != Mode::Leaving, "RESTART", || {
            format!("a restart takes {runtimes} off line", runtimes = runtimes.said())
        });
        let early = mode == Mode::Draining && tasks.any();
        found.require(!early, "INV-137", || {
            format!("{runtimes} go off line, and tasks still run", runtimes = runtimes.said())
        });
        if !std::mem::replace(&mut self.deregistered, true) {
            // Without any, this is about a registration that came too late.
            let all = fleet.ids().all(|runtime| runtimes.contains(runtime));
            found.require(all, "INV-137", || {
                format!("a stop takes only {runtimes} off line", runtimes = runtimes.said())
            });
        }
    }

    /// I9, INV-139: what a stop waits for is not cut off by it.
    fn cancel(&self, op: OpId, at: &At<'_>, mode: Mode, ops: &OpBook, found: &mut Found) {
        let (Some(call), Some(since)) = (ops.call_before_deadline(op, at.now), self.since) else { return };
        if is_claim(call) {
            found.require(at.now >= since.after(at.timing.stop_claims), "I9", || {
                format!("{call} is cancelled, and was hardly waited for", call = call.said())
            });
        }
        let report =
            matches!(call, ApiCall::Complete { .. } | ApiCall::Fail { .. } | ApiCall::CancelAck { .. });
        found.require(!report, "INV-139", || format!("{call} is cut off by the stop", call = call.said()));
        let left = is_claim(call) || matches!(call, ApiCall::Register { .. });
        found.require(mode != Mode::Leaving || !left, "RESTART", || {
            format!("{call} is cancelled", call = call.said())
        });
    }

    /// INV-136, INV-142: a stop is bounded, whatever is not answered.
    pub(super) fn settle(&mut self, at: &At<'_>, ops: &OpBook, found: &mut Found) {
        let Some(since) = self.since else { return };
        let t = at.timing;
        if self.how != StopKind::Restart {
            found.require(
                !ops.any_uncancelled(|call| matches!(call, ApiCall::Register { .. })),
                "INV-140",
                || "a registration goes on although the daemon stops".into(),
            );
        }
        if self.forced.is_some() && self.how != StopKind::Restart {
            found.require(!ops.any_run_not_killed(), "INV-142", || {
                "a run is not killed although the stop is hurried".into()
            });
        }
        found.require(self.asked < 3, "I19", || "the third request does not end the process".into());
        if at.due {
            return;
        }
        let most = match self.how {
            StopKind::Now => Some(t.stop_claims + t.stop_tasks * 2 + t.stop_deregister),
            StopKind::Drain { within_ms: Some(ms) } => {
                Some(Duration::from_millis(ms) + t.stop_claims + t.stop_tasks * 2 + t.stop_deregister)
            }
            StopKind::Drain { within_ms: None } => None,
            StopKind::Restart => Some(t.stop_claims + t.stop_tasks),
        };
        if let Some(most) = most {
            let most = most + self.slept;
            let late = at.now.as_millis() > since.after(most).as_millis() + SLACK_MS;
            found.require(!late, "INV-136", || format!("a stop takes longer than {} s", most.as_secs()));
        }
        if let Some(forced) = self.forced {
            let late = at.now.as_millis() > forced.after(t.stop_forced).as_millis() + SLACK_MS;
            found.require(!late, "INV-142", || "the second request to stop does not hurry".into());
        }
        self.over |= self.until().is_some_and(|until| until <= at.now);
    }
}
