//! What follows from the collector's work: directories that were waited for are given to who waits.

use super::State;
use super::route::split;
use crate::effect::{Effects, Fact};
use crate::env::Cx;
use crate::error::FsError;
use crate::event::FsReply;
use crate::id::OpId;
use crate::op::GcOp;
use crate::timer::TimerKey;

impl State {
    /// Work of the collector ended.
    pub(super) fn gc_ended(
        &mut self,
        op: OpId,
        work: GcOp,
        result: &Result<FsReply, FsError>,
        out: &mut Effects,
    ) {
        split!(self, out => cx, tasks, roots, gc);
        cx.disarm(&TimerKey::Op(op));
        let idle = tasks.is_empty();
        match work {
            GcOp::Scan => gc.scanned(&mut cx, roots, op, result, idle),
            GcOp::Maintain => gc.maintained(&mut cx, op),
            GcOp::Collect { reserved, what } => {
                cx.fact(Fact::Collected { root: reserved.root.clone(), what, ok: result.is_ok() });
                for (claim, mark) in roots.finish_gc(reserved) {
                    match tasks.get_mut(&claim) {
                        Some(task) => task.marked(&mut cx, mark),
                        None => roots.release(mark),
                    }
                }
                gc.removed(&mut cx, roots, op, idle);
            }
        }
    }
}
