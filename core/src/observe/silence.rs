//! INV-111, INV-112: what time may end, and when it must.

use super::ops::{Closed, What};
use super::tasks::TaskBook;
use super::{At, Found};
use crate::config::Timing;
use crate::effect::{Effect, EndReason, Fact, KillStep};
use crate::event::{ClaimKey, RunEvent};
use crate::id::{OpId, Provider};
use crate::said::Said;
use crate::time::{Awake, Instant};
use std::collections::BTreeMap;
use std::time::Duration;

/// A silence that is noticed this late was not looked for, and the agent is heard out for a moment.
const LATE: Duration = Duration::from_secs(2);
const HEAR_OUT: Duration = Duration::from_secs(5);

/// A run, from its launch to its end.
#[derive(Clone, Debug)]
struct Run {
    claim: ClaimKey,
    provider: Option<Provider>,
    begun: Awake,
    last: Awake,
    launched: bool,
    tools: u32,
    /// Its silence was noticed late: until then what it said meanwhile may come.
    excused: Option<Instant>,
    /// Its result was seen: it is only waited for.
    answered: bool,
    /// It has to end, for a reason that was stated.
    ending: bool,
}

impl Run {
    /// How long it may be silent, from the settings as they are documented.
    fn window(&self, t: &Timing) -> Option<Duration> {
        let off = t.idle.is_zero() || (self.tools > 0 && t.tool_idle.is_zero());
        let own = self.provider.as_ref().and_then(|provider| t.idle_of.get(provider));
        match own {
            _ if off => None,
            _ if self.tools > 0 => Some(t.tool_idle),
            Some(own) if *own < t.idle && !own.is_zero() => Some(*own),
            _ => Some(t.idle),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct SilenceBook {
    runs: BTreeMap<OpId, Run>,
}

impl SilenceBook {
    pub(super) fn closed(&mut self, closed: &Closed<'_>) {
        if matches!(closed.what, What::Run(_)) {
            self.runs.remove(&closed.op);
        }
    }

    pub(super) fn event(&mut self, at: &At<'_>, op: OpId, event: &RunEvent) {
        let Some(run) = self.runs.get_mut(&op) else { return };
        match event {
            RunEvent::Launched if !run.launched => {
                run.launched = true;
                (run.begun, run.last) = (at.awake, at.awake);
            }
            RunEvent::Progress { tools, .. } => {
                (run.last, run.tools, run.excused) = (at.awake, *tools, None);
            }
            RunEvent::Result => run.answered = true,
            RunEvent::Launched | RunEvent::Ended { .. } => {}
        }
    }

    pub(super) fn effect(&mut self, at: &At<'_>, effect: &Effect, tasks: &TaskBook, found: &mut Found) {
        match effect {
            Effect::Run { op, call } => {
                let run = Run {
                    claim: call.claim(),
                    provider: tasks.provider(call.claim()).cloned(),
                    begun: at.awake,
                    last: at.awake,
                    launched: false,
                    tools: 0,
                    excused: None,
                    answered: false,
                    ending: false,
                };
                self.runs.insert(*op, run);
            }
            Effect::Fact { fact: Fact::Ending { claim, why } } => {
                let run = self.runs.values_mut().find(|run| run.claim == *claim);
                match why {
                    EndReason::Idle => fired(at, *claim, run.as_deref(), found),
                    EndReason::TooLong => too_long(at, *claim, run.as_deref(), found),
                    _ => {}
                }
                if let Some(run) = run {
                    run.ending = true;
                }
            }
            Effect::Kill { op, step: KillStep::End { .. } } => {
                let run = self.runs.get(op);
                found.require(run.is_none_or(|run| run.ending || run.answered), "INV-112", || {
                    format!("run {} is told to end and nothing says why", op.0)
                });
            }
            _ => {}
        }
    }

    /// A watchdog is as exact as the clock is looked at.
    pub(super) fn settle(&mut self, at: &At<'_>, found: &mut Found) {
        if at.due {
            return;
        }
        for run in self.runs.values_mut().filter(|run| !(run.ending || run.answered)) {
            let (claim, silent, ran) = (run.claim.0, at.awake.since(run.last), at.awake.since(run.begun));
            if let Some(window) = run.window(at.timing)
                && silent >= window
            {
                if silent > window.saturating_add(LATE) {
                    run.excused.get_or_insert(at.now.after(HEAR_OUT.min(window)));
                }
                found.require(run.excused.is_some_and(|until| at.now < until), "INV-111", || {
                    format!(
                        "claim {claim} says nothing for {silent}, and no watchdog sees it",
                        silent = silent.said()
                    )
                });
            }
            let limit = at.timing.run_limit;
            found.require(limit.is_zero() || ran < limit, "RUN-LIMIT", || {
                format!("claim {claim} runs for {ran}, and nothing ends it", ran = ran.said())
            });
        }
    }
}

fn fired(at: &At<'_>, claim: ClaimKey, run: Option<&Run>, found: &mut Found) {
    let over = run
        .filter(|run| !run.answered)
        .is_some_and(|run| run.window(at.timing).is_some_and(|window| at.awake.since(run.last) >= window));
    found.require(over, "INV-111", || {
        let silent = run.map(|run| at.awake.since(run.last));
        format!("claim {} is ended as silent, and was not silent for long enough: {}", claim.0, silent.said())
    });
}

fn too_long(at: &At<'_>, claim: ClaimKey, run: Option<&Run>, found: &mut Found) {
    let limit = at.timing.run_limit;
    let over = run.is_some_and(|run| !run.answered && !limit.is_zero() && at.awake.since(run.begun) >= limit);
    found.require(over, "INV-112", || {
        let ran = run.map(|run| at.awake.since(run.begun)).said();
        let limit = if limit.is_zero() { "for ever".to_owned() } else { limit.said() };
        format!("claim {} is ended as too long after {ran}, and may run {limit}", claim.0)
    });
}
