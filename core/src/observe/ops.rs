//! I4: what is asked gets one answer, numbers are never used twice, and only what is open is cancelled or killed.

use super::{At, Found};
use crate::effect::{ApiCall, Effect, FsCall, KillStep};
use crate::error::{ApiError, FsError};
use crate::event::{ApiReply, ClaimKey, Event, FsReply, RunEvent, RunOutcome};
use crate::id::OpId;
use crate::said::Said;
use crate::time::Instant;
use std::collections::BTreeMap;

/// What was asked.
#[derive(Clone, Debug)]
pub(super) enum What {
    Api(ApiCall),
    Fs(FsCall),
    Run(ClaimKey),
}

impl Said for What {
    fn said(&self) -> String {
        match self {
            Self::Api(call) => call.said(),
            Self::Fs(call) => call.said(),
            Self::Run(claim) => format!("the run of {}", claim.said()),
        }
    }
}

#[derive(Clone, Debug)]
struct Open {
    what: What,
    cancelled: bool,
    /// When the core itself cancels it.
    deadline: Option<Instant>,
    killed: bool,
    /// Which steps of the kill ladder were taken.
    told_to_end: bool,
}

/// How it ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum End<'a> {
    Api(&'a Result<ApiReply, ApiError>),
    Fs(&'a Result<FsReply, FsError>),
    Run(RunOutcome),
}

/// Something that was asked and has ended in this step.
#[derive(Clone, Debug)]
pub(super) struct Closed<'a> {
    pub(super) op: OpId,
    pub(super) what: What,
    pub(super) end: End<'a>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct OpBook {
    open: BTreeMap<OpId, Open>,
    last: u64,
}

impl OpBook {
    pub(super) fn is_run(&self, op: OpId) -> bool {
        matches!(self.open.get(&op), Some(Open { what: What::Run(_), .. }))
    }

    pub(super) fn count(&self) -> usize {
        self.open.len()
    }

    pub(super) fn first(&self) -> String {
        self.open
            .values()
            .next()
            .map_or("nothing on its way".into(), |open| format!("first of them {}", open.what.said()))
    }

    /// Whether such a request to the server is on its way.
    pub(super) fn any(&self, wanted: fn(&ApiCall) -> bool) -> bool {
        self.open.values().any(|open| matches!(&open.what, What::Api(call) if wanted(call)))
    }

    /// Whether one is on its way that was not cancelled.
    pub(super) fn any_uncancelled(&self, wanted: fn(&ApiCall) -> bool) -> bool {
        let goes_on = |open: &Open| !open.cancelled && matches!(&open.what, What::Api(call) if wanted(call));
        self.open.values().any(goes_on)
    }

    /// Whether a run goes on that was not killed.
    pub(super) fn any_run_not_killed(&self) -> bool {
        self.open.values().any(|open| matches!(open.what, What::Run(_)) && !open.killed)
    }

    /// What is asked of the server, if its deadline is still to come.
    pub(super) fn call_before_deadline(&self, op: OpId, now: Instant) -> Option<&ApiCall> {
        let open = self.open.get(&op).filter(|open| open.deadline.is_some_and(|at| at > now))?;
        if let What::Api(call) = &open.what { Some(call) } else { None }
    }

    /// Closes what the event answers; `None` if it answers nothing, or not in its kind.
    pub(super) fn event<'a>(&mut self, event: &'a Event) -> Option<Closed<'a>> {
        let (op, end) = match event {
            Event::Api { op, r } => (*op, End::Api(r)),
            Event::Fs { op, r } => (*op, End::Fs(r)),
            Event::Run { op, run: RunEvent::Ended { outcome } } => (*op, End::Run(*outcome)),
            _ => return None,
        };
        let fits = |what: &What| {
            matches!(
                (what, end),
                (What::Api(_), End::Api(_)) | (What::Fs(_), End::Fs(_)) | (What::Run(_), End::Run(_))
            )
        };
        self.open.get(&op).filter(|open| fits(&open.what))?;
        self.open.remove(&op).map(|open| Closed { op, what: open.what, end })
    }

    pub(super) fn effect(&mut self, effect: &Effect, at: &At<'_>, found: &mut Found) {
        match effect {
            Effect::Api { op, call, deadline } => {
                found.require(*deadline > at.now, "I4", || {
                    format!("{call} is due when it is sent", call = call.said())
                });
                self.opened(*op, What::Api(call.clone()), Some(*deadline), found);
            }
            Effect::Fs { op, call } => self.opened(*op, What::Fs(call.clone()), None, found),
            Effect::Run { op, call } => self.opened(*op, What::Run(call.claim()), None, found),
            Effect::Cancel { op } => {
                let open = self.open.get_mut(op).filter(|open| !matches!(open.what, What::Run(_)));
                let once = open.is_some_and(|open| !std::mem::replace(&mut open.cancelled, true));
                found.require(once, "I4", || {
                    format!("request {} is cancelled, which is not open or was cancelled before", op.0)
                });
            }
            Effect::Kill { op, step } => {
                let run = self.open.get_mut(op).filter(|open| matches!(open.what, What::Run(_)));
                let Some(run) = run else {
                    found.require(false, "I20", || format!("run {} is killed, which is not there", op.0));
                    return;
                };
                run.killed |= *step == KillStep::Kill;
                match step {
                    KillStep::CloseInput => {}
                    KillStep::End { .. } => run.told_to_end = true,
                    KillStep::Kill => found.require(run.told_to_end, "I20", || {
                        format!("run {} is killed before it was told to end", op.0)
                    }),
                }
            }
            _ => {}
        }
    }

    fn opened(&mut self, op: OpId, what: What, deadline: Option<Instant>, found: &mut Found) {
        found.require(op.0 > self.last, "I4", || {
            format!("number {} of {what} was used before", op.0, what = what.said())
        });
        self.last = self.last.max(op.0);
        let open = Open { what, cancelled: false, deadline, killed: false, told_to_end: false };
        self.open.insert(op, open);
    }
}
