//! INV-57, INV-59 and our own rules about what the server asks for in its answers to heartbeats: each is done once, within its time and
//! beside few others, is reported as often as it may be, and is over once.

use super::Found;
use super::ops::{Closed, End, What};
use super::seen::Seen;
use crate::actions::{MOST_AT_WORK, MOST_WAITING, RETRIES};
use crate::effect::{ApiCall, Effect, Fact, FsCall, RuntimeChange};
use crate::error::ApiError;
use crate::event::{Action, ApiReply, Event, StopKind, WsEvent};
use crate::id::{ActionId, OpId, RuntimeId};
use crate::said::Said;
use crate::time::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Stage {
    Waiting,
    Doing {
        op: OpId,
        until: Instant,
        cancelled: bool,
    },
    /// A report of it must go out in this step.
    Due,
    Reporting(OpId),
    Resting {
        until: Instant,
    },
    /// It must be over in this step.
    Final {
        taken: bool,
    },
}

#[derive(Clone, Debug)]
struct Life {
    runtime: RuntimeId,
    /// Whether the runtime was in the set when it was handed out.
    hosted: bool,
    stage: Stage,
    tries: usize,
}

#[derive(Clone, Debug, Default)]
pub(super) struct ActionBook {
    set: BTreeSet<RuntimeId>,
    lives: BTreeMap<ActionId, Life>,
    /// How many there were in this step, before it ended any.
    most: usize,
    /// A stop that leaves nothing to be done any more, or one that was asked for twice.
    ends: bool,
    stops: u8,
}

impl ActionBook {
    /// Whether something that the server asked this runtime for is not over.
    pub(super) fn is_busy(&self, runtime: &RuntimeId) -> bool {
        self.lives.values().any(|life| life.runtime == *runtime)
    }

    /// How many a step may say something of.
    pub(super) const fn most(&self) -> usize {
        self.most
    }

    pub(super) fn step(&mut self, seen: &Seen<'_>, found: &mut Found) {
        if let Some(Event::Stop { how }) = seen.event {
            self.stops = self.stops.saturating_add(1);
            self.ends |= self.stops > 1 || matches!(how, StopKind::Now | StopKind::Restart);
        }
        if let Some(closed) = seen.closed {
            self.closed(seen, closed);
        }
        if let Some((runtime, actions)) = handed_out(seen) {
            let hosted = self.set.contains(runtime);
            for Action { id, .. } in actions {
                let new = Life { runtime: runtime.clone(), hosted, stage: Stage::Waiting, tries: 0 };
                self.lives.entry(id.clone()).or_insert(new);
            }
        }
        self.most = self.lives.len();
        for effect in seen.effects {
            self.effect(seen, effect, found);
        }
        self.settle(seen, found);
    }

    fn closed(&mut self, seen: &Seen<'_>, closed: &Closed<'_>) {
        match (&closed.what, closed.end) {
            (What::Fs(FsCall::Act { action, .. }), _) => {
                if let Some(life) = self.lives.get_mut(&action.id) {
                    life.stage = Stage::Due;
                }
            }
            (What::Api(ApiCall::ActionResult { action, .. }), End::Api(result)) => {
                let Some(life) = self.lives.get_mut(action) else { return };
                if life.stage == Stage::Reporting(closed.op) {
                    life.stage = after_report(seen, life.tries, result);
                }
            }
            _ => {}
        }
    }

    fn effect(&mut self, seen: &Seen<'_>, effect: &Effect, found: &mut Found) {
        let at = &seen.at;
        match effect {
            Effect::Runtime { runtime, change, .. } => match change {
                RuntimeChange::Added { .. } => {
                    self.set.insert(runtime.clone());
                }
                RuntimeChange::Removed => {
                    self.set.remove(runtime);
                }
                RuntimeChange::Claimable => {}
            },
            Effect::Fs { op, call: FsCall::Act { runtime, action } } => {
                found.require(!self.ends, "ACTION-STOP", || {
                    format!("{} is begun although the daemon ends", action.id)
                });
                let life = self.lives.get_mut(&action.id);
                let fits = life.is_some_and(|life| {
                    let (cancelled, until) = (false, at.now.after(at.timing.action));
                    let doing = Stage::Doing { op: *op, until, cancelled };
                    let right = life.hosted && life.runtime == *runtime;
                    std::mem::replace(&mut life.stage, doing) == Stage::Waiting && right
                });
                found.require(fits, "ACTION-ONCE", || {
                    format!("{} is begun twice, or was never asked of a runtime that is here", action.id)
                });
            }
            Effect::Api { op, call: ApiCall::ActionResult { action, .. }, .. } => {
                let Some(life) = self.lives.get_mut(action) else {
                    found.require(false, "ACTION-ONCE", || format!("{action} is reported, and is not here"));
                    return;
                };
                let right = match life.stage {
                    Stage::Due => life.tries == 0,
                    Stage::Resting { until } => at.now >= until && life.tries <= RETRIES.len(),
                    _ => false,
                };
                found.require(right, "INV-59", || {
                    format!("{action} is reported once more: too soon, too often, or after it was refused")
                });
                life.tries += 1;
                life.stage = Stage::Reporting(*op);
            }
            Effect::Cancel { op } => self.cancelled(seen, *op, found),
            Effect::Fact { fact: Fact::ActionOver { action, taken } } => {
                let truth = self.lives.get(action).map(|life| life.stage == Stage::Final { taken: true });
                found.require(truth == Some(*taken), "ACTION-TOLD", || {
                    format!("{action} is said to be taken: {taken}, and that is not true")
                });
            }
            Effect::ForgetAction { action } => {
                let life = self.lives.remove(action);
                let over = life.is_some_and(|life| match life.stage {
                    Stage::Final { .. } => true,
                    Stage::Waiting => {
                        let gone = !life.hosted || !self.set.contains(&life.runtime);
                        gone || self.lives.len() >= MOST_AT_WORK + MOST_WAITING
                    }
                    _ => false,
                } || at.stopping);
                found.require(over, "ACTION-ONCE", || {
                    format!("{action} is forgotten, and was not here or is not over")
                });
            }
            _ => {}
        }
    }

    fn cancelled(&mut self, seen: &Seen<'_>, op: OpId, found: &mut Found) {
        for (id, life) in &mut self.lives {
            if let Stage::Doing { op: of, until, cancelled } = &mut life.stage
                && *of == op
            {
                *cancelled = true;
                found.require(seen.at.now >= *until || seen.at.stopping, "ACTION-LIMIT", || {
                    format!("{id} is cut short")
                });
            }
        }
    }

    fn settle(&self, seen: &Seen<'_>, found: &mut Found) {
        let (now, due) = (seen.at.now, seen.at.due);
        let at_work = self.lives.values().filter(|life| matches!(life.stage, Stage::Doing { .. })).count();
        let most = MOST_AT_WORK + MOST_WAITING;
        let fits = at_work <= MOST_AT_WORK && self.lives.len() <= most;
        found.require(fits, "ACTION-BOUND", || {
            format!("{at_work} actions at work, {} in all", self.lives.len())
        });
        let counted = seen.view.open_actions();
        found.require(counted == self.lives.len(), "ACTION-ONCE", || {
            format!("{counted} actions are here, {} were handed out and are not over", self.lives.len())
        });
        for (id, life) in &self.lives {
            match life.stage {
                Stage::Waiting => found.require(at_work >= MOST_AT_WORK, "ACTION-WAITS", || {
                    format!("{id} waits although few are at work")
                }),
                Stage::Doing { until, cancelled, .. } => {
                    found.require(cancelled || due || now < until, "ACTION-LIMIT", || {
                        format!("{id} is at work after its time")
                    });
                }
                Stage::Due | Stage::Final { .. } => {
                    found.require(false, "ACTION-ENDS", || {
                        format!("{id} is done, and is neither reported nor over")
                    });
                }
                Stage::Resting { until } => found.require(due || now < until, "ACTION-ENDS", || {
                    format!("{id} is not reported again in its time")
                }),
                Stage::Reporting(_) => {}
            }
        }
    }

    /// Everything works and is at rest.
    pub(super) fn finish(&self, found: &mut Found) {
        let first = self.lives.keys().next();
        found.require(first.is_none(), "ACTION-ONCE", || {
            format!("{first} is never over", first = first.said())
        });
    }
}

fn after_report(seen: &Seen<'_>, tries: usize, result: &Result<ApiReply, ApiError>) -> Stage {
    let error = match result {
        Ok(_) => return Stage::Final { taken: true },
        Err(ApiError::Refused { .. }) => return Stage::Final { taken: false },
        Err(error) => *error,
    };
    let Some(wait) = tries.checked_sub(1).and_then(|nth| RETRIES.get(nth)) else {
        return Stage::Final { taken: false };
    };
    let asked = match error {
        ApiError::Throttled { retry_after_ms } => u64::from(retry_after_ms.unwrap_or(0)),
        _ => 0,
    };
    let asked = Duration::from_millis(asked).min(seen.at.timing.retry_after_cap);
    Stage::Resting { until: seen.at.now.after(asked.max(*wait)) }
}

/// What the server asks a runtime for in this event.
fn handed_out<'a>(seen: &Seen<'a>) -> Option<(&'a RuntimeId, &'a [Action])> {
    match (seen.ws(), seen.closed) {
        (Some((_, WsEvent::Ack { runtime, actions, .. })), _)
        | (
            _,
            Some(Closed {
                what: What::Api(ApiCall::Beat { runtime }),
                end: End::Api(Ok(ApiReply::Beaten { actions, .. })),
                ..
            }),
        ) => Some((runtime, actions)),
        _ => None,
    }
}
