//! The user's own directories: who gets one, who waits for it, and who gets the next slot.

use super::State;
use super::route::split;
use crate::effect::Effects;
use crate::env::Cx;
use crate::error::FsError;
use crate::event::{ClaimKey, FsReply};
use crate::id::OpId;
use crate::token::PathGuard;

impl State {
    /// A task's directory was looked at: the task has it, or waits for it, or fails.
    pub(super) fn resolved(
        &mut self,
        claim: ClaimKey,
        op: OpId,
        r: &Result<FsReply, FsError>,
        out: &mut Effects,
    ) {
        split!(self, out => cx, runtimes, claims, tasks, roots, paths);
        let Some(task) = tasks.get_mut(&claim) else { return };
        let Some(path) = task.resolved(&mut cx, op, r) else { return };
        match paths.acquire(path, claim) {
            Ok(lock) => {
                if let Some(park) = task.entered(&mut cx, lock, roots) {
                    claims.unpark(park);
                }
            }
            Err(holder) => {
                if let (Some(slot), Some(provider)) =
                    (task.wait_for_directory(&mut cx, holder), task.provider())
                {
                    claims.parked(&mut cx, runtimes, slot, provider);
                }
            }
        }
    }

    /// A task that ended while it waited leaves the lines at once, whatever becomes of its report. Returns the directory that it had.
    pub(super) fn leave_lines(&mut self, claim: ClaimKey) -> Option<PathGuard> {
        let task = self.tasks.get_mut(&claim)?;
        let left = task.left()?;
        self.paths.forget(claim);
        if let Some(provider) = task.provider() {
            self.paths.forget_ready(claim, provider);
        }
        self.claims.unpark(left.park);
        left.lock
    }

    /// A directory is free: the next in its line has it, and a slot as soon as there is one.
    pub(super) fn pass_on(&mut self, lock: PathGuard, out: &mut Effects) {
        split!(self, out => cx, tasks, paths);
        let mut free = Some(lock);
        while let Some((next, lock)) = free.take().and_then(|lock| paths.release(lock)) {
            let Some(task) = tasks.get_mut(&next) else {
                free = Some(lock);
                continue;
            };
            match task.granted(&mut cx, lock) {
                Ok(()) => {
                    if let Some(provider) = task.provider() {
                        paths.await_slot(next, provider);
                    }
                }
                Err(lock) => free = Some(lock),
            }
        }
    }

    /// Gives free slots to those that have their directory, in the order in which they got it; one whose provider has no room is skipped.
    pub(super) fn unpark(&mut self, out: &mut Effects) {
        split!(self, out => cx, claims, tasks, roots, paths);
        while claims.has_free_slot() {
            let Some(next) = paths.next_ready(|provider| claims.has_room(provider)) else { return };
            let Some(task) = tasks.get_mut(&next) else { continue };
            let Some(provider) = task.provider().cloned() else { continue };
            let Some(slot) = claims.slot_for_parked(&provider) else { return };
            match task.unparked(&mut cx, slot, roots) {
                Ok(park) => park.into_iter().for_each(|park| claims.unpark(park)),
                Err(slot) => claims.refuse_slot(slot, &provider),
            }
        }
    }
}
