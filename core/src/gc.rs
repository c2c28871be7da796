//! The collector's clock: when to look for directories that nobody needs any more, and one after the other what to free of them. What it
//! frees is reserved first, so that no task can work in it.
//!
//! Each piece of work has a deadline, at which it is told to end. It still holds its reservation until it has: a directory that something
//! deletes from is not given to a task. A disk that never answers stops the collector and the tasks of that one directory, nothing else.

use crate::effect::{ApiCall, CollectCall, Fact, FsCall};
use crate::env::Cx;
use crate::error::{ApiError, FsError};
use crate::event::{ApiReply, Collect, Found, FsReply};
use crate::id::{EnvRoot, OpId};
use crate::op::{ApiOp, GcOp};
use crate::roots::EnvRoots;
use crate::timer::TimerKey;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::time::Duration;

/// Directories of one round at most; the rest is for the next.
const MOST_FOUND: usize = 100_000;
/// Directories that one step decides upon at most.
const EACH_STEP: usize = 256;
/// Between two such steps.
const BREATH: Duration = Duration::from_millis(1);
/// After so many questions in a row that the server did not answer, this round asks no more.
const MOST_UNANSWERED: u8 = 3;

/// What the collector does.
#[derive(Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Stage {
    /// Not wanted, not wanted yet, or not any more.
    #[default]
    Off,
    /// Until the timer fires.
    Waiting,
    /// Directories are looked for.
    Scanning(OpId),
    /// Between two steps over a long list, until the timer fires.
    Deciding,
    /// The server is asked about one.
    Asking { op: OpId, root: EnvRoot },
    /// One is freed; the reservation is with the request.
    Removing(OpId),
    /// Caches of repositories are tidied up.
    Maintaining(OpId),
}

/// The clock.
#[derive(Debug, Default, Hash, Serialize, Deserialize)]
pub(crate) struct GcClock {
    stage: Stage,
    queue: VecDeque<Found>,
    unanswered: u8,
    closed: bool,
}

impl GcClock {
    /// The daemon is ready: the first round is near.
    pub(crate) fn ready(&mut self, cx: &mut Cx<'_>) {
        if cx.cfg.gc && !self.closed && self.stage == Stage::Off {
            let first = cx.timing().gc_first.min(cx.timing().gc);
            cx.arm(TimerKey::Gc, first);
            self.stage = Stage::Waiting;
        }
    }

    /// Whether something is being freed.
    pub(crate) const fn is_removing(&self) -> bool {
        matches!(self.stage, Stage::Removing(_))
    }

    /// The timer fired.
    pub(crate) fn due(&mut self, cx: &mut Cx<'_>, roots: &mut EnvRoots, idle: bool) {
        match self.stage {
            Stage::Waiting if !self.closed => {
                self.unanswered = 0;
                let op = cx.gc(GcOp::Scan, FsCall::Scan);
                self.stage = Stage::Scanning(op);
            }
            Stage::Deciding => self.go_on(cx, roots, idle),
            _ => {}
        }
    }

    /// Directories were looked for.
    pub(crate) fn scanned(
        &mut self,
        cx: &mut Cx<'_>,
        roots: &mut EnvRoots,
        op: OpId,
        result: &Result<FsReply, FsError>,
        idle: bool,
    ) {
        if self.stage != Stage::Scanning(op) {
            return;
        }
        if let (Ok(FsReply::Scanned { found }), false) = (result, self.closed) {
            self.queue.extend(found.iter().take(MOST_FOUND).cloned());
            let left = found.len().saturating_sub(MOST_FOUND);
            if left > 0 {
                cx.fact(Fact::Uncollected { left: u32::try_from(left).unwrap_or(u32::MAX) });
            }
        }
        self.go_on(cx, roots, idle);
    }

    /// The server said what may be done with a directory, or did not: then it stays.
    pub(crate) fn told(
        &mut self,
        cx: &mut Cx<'_>,
        roots: &mut EnvRoots,
        op: OpId,
        result: &Result<ApiReply, ApiError>,
        idle: bool,
    ) {
        let root = match &self.stage {
            Stage::Asking { op: open, root } if *open == op => root.clone(),
            _ => return,
        };
        let silent = result.as_ref().is_err_and(|error| error.is_passing());
        self.unanswered = if silent { self.unanswered.saturating_add(1) } else { 0 };
        if let (Ok(ApiReply::Collectable { what }), false) = (result, self.closed) {
            self.queue.push_front(Found { root, what: Some(*what) });
        }
        self.go_on(cx, roots, idle);
    }

    /// A directory was freed, as far as that went.
    pub(crate) fn removed(&mut self, cx: &mut Cx<'_>, roots: &mut EnvRoots, op: OpId, idle: bool) {
        if self.stage == Stage::Removing(op) {
            self.go_on(cx, roots, idle);
        }
    }

    /// The caches are tidy, or not.
    pub(crate) fn maintained(&mut self, cx: &mut Cx<'_>, op: OpId) {
        if self.stage == Stage::Maintaining(op) {
            self.round_ends(cx);
        }
    }

    /// A task is here: caches that it may need are not tidied up any more.
    pub(crate) fn make_way(&self, cx: &mut Cx<'_>) {
        if let Stage::Maintaining(op) = self.stage {
            cx.cancel(op);
        }
    }

    /// The daemon stops: nothing new begins. What is being freed is let finish.
    pub(crate) fn close(&mut self, cx: &mut Cx<'_>) {
        self.closed = true;
        self.queue.clear();
        cx.disarm(&TimerKey::Gc);
        match self.stage {
            Stage::Scanning(op) | Stage::Asking { op, .. } | Stage::Maintaining(op) => cx.cancel(op),
            Stage::Waiting | Stage::Deciding => self.stage = Stage::Off,
            Stage::Off | Stage::Removing(_) => {}
        }
    }

    /// Decides upon directories, one after the other, until something has to be waited for.
    fn go_on(&mut self, cx: &mut Cx<'_>, roots: &mut EnvRoots, idle: bool) {
        for _ in 0..EACH_STEP {
            let Some(Found { root, what }) = self.queue.pop_front() else {
                self.tidy_up(cx, idle);
                return;
            };
            match what {
                _ if roots.is_held(&root) => {}
                Some(Collect::Keep) => {}
                None if self.unanswered >= MOST_UNANSWERED || cx.is_barred() => {}
                None => {
                    let within = cx.timing().request;
                    let call = ApiCall::Collectable { root: root.clone() };
                    let op = cx.api(ApiOp::Collectable, call, within);
                    self.stage = Stage::Asking { op, root };
                    return;
                }
                Some(what) => {
                    let Some(reserved) = roots.reserve_for_gc(&root) else { continue };
                    let call = FsCall::Collect(CollectCall::new(&reserved, what));
                    let op = cx.gc(GcOp::Collect { reserved, what }, call);
                    self.stage = Stage::Removing(op);
                    return;
                }
            }
        }
        self.stage = Stage::Deciding;
        cx.arm(TimerKey::Gc, BREATH);
    }

    fn tidy_up(&mut self, cx: &mut Cx<'_>, idle: bool) {
        if idle && !self.closed {
            let op = cx.gc(GcOp::Maintain, FsCall::Maintain);
            self.stage = Stage::Maintaining(op);
        } else {
            self.round_ends(cx);
        }
    }

    fn round_ends(&mut self, cx: &mut Cx<'_>) {
        if self.closed {
            self.stage = Stage::Off;
            return;
        }
        self.stage = Stage::Waiting;
        let pause = cx.timing().gc;
        cx.arm(TimerKey::Gc, pause);
    }
}
