//! What the server asks for in its answers to heartbeats: the models of an agent CLI, the skills that are installed, another version.
//!
//! The server hands each of them out once, so none is lost on the way: each is done within a deadline, and whatever comes of it is reported
//! until the server takes it, refuses it, or was asked often enough. None of that is waited for by a heartbeat, or by anything else. How many
//! are at work and how many wait is bounded; what is beyond that is dropped, and said to be.

use crate::effect::{ApiCall, Effect, Fact, FsCall};
use crate::env::Cx;
use crate::error::ApiError;
use crate::event::{Action, ApiReply};
use crate::id::{ActionId, OpId, RuntimeId};
use crate::op::ApiOp;
use crate::timer::TimerKey;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Actions that are done at once, at most: each may start a program.
pub(crate) const MOST_AT_WORK: usize = 8;
/// Actions that wait for that, at most; so there are never more than both together, those that are reported included.
pub(crate) const MOST_WAITING: usize = 64;
/// Waits before a result is reported again. After the last try the server has long given up.
pub(crate) const RETRIES: [Duration; 3] =
    [Duration::from_millis(500), Duration::from_secs(2), Duration::from_secs(4)];

/// How far one is.
#[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Stage {
    Waiting,
    Doing(OpId),
    /// For the nth time, from 0.
    Reporting(OpId, usize),
    /// The nth try was in vain; until the timer fires.
    Resting(usize),
}

#[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Open {
    runtime: RuntimeId,
    action: Action,
    stage: Stage,
}

/// All of them.
#[derive(Debug, Default, Hash, Serialize, Deserialize)]
pub(crate) struct Actions {
    open: BTreeMap<ActionId, Open>,
    waiting: VecDeque<ActionId>,
    doing: usize,
    closed: bool,
}

impl Actions {
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether these are the requests that do something now, and what waits is what is in line.
    pub(crate) fn conserves(&self, at_work: usize) -> bool {
        let count = |fits: fn(&Stage) -> bool| self.open.values().filter(|open| fits(&open.stage)).count();
        count(|stage| matches!(stage, Stage::Doing(_))) == self.doing
            && self.doing == at_work
            && count(|stage| *stage == Stage::Waiting) == self.waiting.len()
            && self.doing <= MOST_AT_WORK
            && self.open.len() <= MOST_AT_WORK + MOST_WAITING
    }

    /// The server asks a runtime for these. One that is here already is not done twice.
    pub(crate) fn asked(&mut self, cx: &mut Cx<'_>, runtime: &RuntimeId, hosted: bool, actions: &[Action]) {
        let mut named = BTreeSet::new();
        for action in actions {
            if self.open.contains_key(&action.id) || !named.insert(&action.id) {
                continue;
            }
            if self.closed || !hosted || self.open.len() >= MOST_AT_WORK + MOST_WAITING {
                drop_it(cx, action.id.clone());
                continue;
            }
            let open = Open { runtime: runtime.clone(), action: action.clone(), stage: Stage::Waiting };
            self.open.insert(action.id.clone(), open);
            self.waiting.push_back(action.id.clone());
        }
        self.begin(cx);
    }

    /// It was done, or could not be: the adapter has the result either way.
    pub(crate) fn done(&mut self, cx: &mut Cx<'_>, op: OpId, id: &ActionId) {
        cx.disarm(&TimerKey::Op(op));
        if !self.open.get(id).is_some_and(|open| open.stage == Stage::Doing(op)) {
            return;
        }
        self.doing -= 1;
        self.report(cx, id, 0);
        self.begin(cx);
    }

    /// The wait for another try is over.
    pub(crate) fn due(&mut self, cx: &mut Cx<'_>, id: &ActionId) {
        if let Some(Open { stage: Stage::Resting(tried), .. }) = self.open.get(id) {
            let next = *tried + 1;
            self.report(cx, id, next);
        }
    }

    /// The server took a report, or did not.
    pub(crate) fn reported(
        &mut self,
        cx: &mut Cx<'_>,
        op: OpId,
        id: &ActionId,
        result: &Result<ApiReply, ApiError>,
    ) {
        let Some(open) = self.open.get_mut(id) else { return };
        let Stage::Reporting(of, tried) = open.stage else { return };
        if of != op {
            return;
        }
        let error = match result {
            Ok(_) => return self.end(cx, id, true),
            // Also if it is about the credential: a server that has a new one by then has forgotten what it asked for.
            Err(ApiError::Refused { .. }) => return self.end(cx, id, false),
            Err(error) => *error,
        };
        let Some(wait) = RETRIES.get(tried).filter(|_| !self.closed) else { return self.end(cx, id, false) };
        let asked_to_wait = match error {
            ApiError::Throttled { retry_after_ms: Some(ms) } => Duration::from_millis(u64::from(ms)),
            _ => Duration::ZERO,
        };
        open.stage = Stage::Resting(tried);
        let wait = asked_to_wait.min(cx.timing().retry_after_cap).max(*wait);
        cx.arm(TimerKey::ActionRetry(id.clone()), wait);
    }

    /// The daemon ends: nothing begins any more, and what goes on is told to end.
    pub(crate) fn close(&mut self, cx: &mut Cx<'_>) {
        self.closed = true;
        for id in std::mem::take(&mut self.waiting) {
            self.open.remove(&id);
            drop_it(cx, id);
        }
        let mut resting = Vec::new();
        for (id, open) in &self.open {
            match open.stage {
                Stage::Doing(op) | Stage::Reporting(op, _) => cx.cancel(op),
                Stage::Resting(_) => resting.push(id.clone()),
                Stage::Waiting => {}
            }
        }
        for id in resting {
            self.end(cx, &id, false);
        }
    }

    fn begin(&mut self, cx: &mut Cx<'_>) {
        while self.doing < MOST_AT_WORK {
            let Some(id) = self.waiting.pop_front() else { return };
            let Some(open) = self.open.get_mut(&id) else { continue };
            let call = FsCall::Act { runtime: open.runtime.clone(), action: open.action.clone() };
            open.stage = Stage::Doing(cx.act(id, call));
            self.doing += 1;
        }
    }

    fn report(&mut self, cx: &mut Cx<'_>, id: &ActionId, nth: usize) {
        if self.closed {
            return self.end(cx, id, false);
        }
        let Some(open) = self.open.get_mut(id) else { return };
        let call = ApiCall::ActionResult {
            runtime: open.runtime.clone(),
            action: id.clone(),
            kind: open.action.kind,
        };
        let within = cx.timing().request;
        open.stage = Stage::Reporting(cx.api(ApiOp::Action(id.clone()), call, within), nth);
    }

    fn end(&mut self, cx: &mut Cx<'_>, id: &ActionId, taken: bool) {
        if self.open.remove(id).is_some() {
            cx.disarm(&TimerKey::ActionRetry(id.clone()));
            cx.fact(Fact::ActionOver { action: id.clone(), taken });
            cx.emit(Effect::ForgetAction { action: id.clone() });
        }
    }
}

/// What the adapter knows of it can go.
fn drop_it(cx: &mut Cx<'_>, action: ActionId) {
    cx.fact(Fact::ActionDropped { action: action.clone() });
    cx.emit(Effect::ForgetAction { action });
}
