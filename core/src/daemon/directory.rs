//! The user's own directories: who gets one, who waits for it, and who gets the next slot.

use super::State;
use super::route::split;
use crate::claim::Claims;
use crate::effect::Effects;
use crate::env::Cx;
use crate::error::FsError;
use crate::event::{ClaimKey, FsReply};
use crate::id::OpId;
use crate::paths::PathLocks;
use crate::runtimes::Runtimes;
use crate::task::Task;
use crate::token::{ParkPermit, PathGuard};
use std::collections::BTreeMap;

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
            Ok(lock) => task.entered(&mut cx, lock, roots),
            Err(holder) => {
                let slot = task.wait_for_directory(&mut cx, holder, claims.let_park());
                match (slot, task.provider()) {
                    (Some(slot), Some(provider)) => claims.parked(&mut cx, runtimes, slot, provider),
                    (None, Some(provider)) => paths.hold(claim, provider),
                    (_, None) => {}
                }
            }
        }
    }

    /// A task that ended while it waited leaves the lines at once, whatever becomes of its report. Returns the directory that it had and
    /// does not need any more.
    pub(super) fn leave_lines(&mut self, claim: ClaimKey, out: &mut Effects) -> Option<PathGuard> {
        split!(self, out => cx, claims, tasks, paths);
        let task = tasks.get_mut(&claim)?;
        let left = task.left(&mut cx);
        if (left.park.is_some() || (paths.is_waiting(claim) && !task.is_waiting()))
            && let Some(provider) = task.provider()
        {
            paths.forget(claim, provider);
        }
        if let Some(park) = left.park {
            claims.unpark(park);
        }
        left.lock
    }

    /// A directory is free: the next in its line has it, and a slot as soon as there is one.
    pub(super) fn pass_on(&mut self, lock: PathGuard, out: &mut Effects) {
        split!(self, out => cx, tasks, roots, paths);
        let mut free = Some(lock);
        while let Some((next, lock)) = free.take().and_then(|lock| paths.release(lock)) {
            let Some(task) = tasks.get_mut(&next) else {
                free = Some(lock);
                continue;
            };
            if let Err(lock) = task.granted(&mut cx, lock, roots) {
                free = Some(lock);
            } else if let Some(provider) = task.provider() {
                if task.is_parked() {
                    paths.await_slot(next, provider);
                } else {
                    paths.forget_holding(next, provider);
                }
            }
        }
    }

    /// Gives free slots to those that have their directory, in the order in which they got it; one whose provider has no room is skipped. Where
    /// that leaves one without, it changes places with a task that waits for a directory and has a slot. And as soon as fewer tasks are parked than
    /// there are slots, such a task gives its slot up. A daemon that stops begins nothing, unless it lets what is here run to its end.
    pub(super) fn unpark(&mut self, out: &mut Effects) {
        if !self.shutdown.is_serving() && !self.shutdown.is_draining() {
            return;
        }
        loop {
            while self.give_slot(out) {}
            if !self.swap(out) && !self.park_one_more(out) {
                return;
            }
        }
    }

    fn give_slot(&mut self, out: &mut Effects) -> bool {
        split!(self, out => cx, claims, tasks, roots, paths);
        if !claims.has_free_slot() {
            return false;
        }
        let Some(next) = paths.next_ready(|provider| claims.has_room(provider)) else { return false };
        let Some(task) = tasks.get_mut(&next) else { return true };
        let Some(provider) = task.provider().cloned() else { return true };
        let Some(slot) = claims.slot_for_parked(&provider) else { return false };
        match task.unparked(&mut cx, slot, roots) {
            Ok(park) => park.into_iter().for_each(|park| claims.unpark(park)),
            Err(slot) => claims.refuse_slot(slot, &provider),
        }
        true
    }

    /// Nobody may wait for a slot, or for room at its provider, that a task has which waits for the directory of the first.
    fn swap(&mut self, out: &mut Effects) -> bool {
        split!(self, out => cx, runtimes, claims, tasks, roots, paths);
        let Some((next, waiting)) = paths.next_swap(|provider| claims.has_room(provider)) else {
            return false;
        };
        let Some(park) = tasks.get_mut(&next).and_then(Task::swap_park) else { return true };
        park_now(&mut cx, (waiting, park), (runtimes, claims, tasks, paths));
        let Some(task) = tasks.get_mut(&next) else { return true };
        let Some(provider) = task.provider().cloned() else { return true };
        let Some(slot) = claims.slot_for_parked(&provider) else { return true };
        if let Err(slot) = task.unparked(&mut cx, slot, roots) {
            claims.refuse_slot(slot, &provider);
        }
        true
    }

    fn park_one_more(&mut self, out: &mut Effects) -> bool {
        split!(self, out => cx, runtimes, claims, tasks, paths);
        if paths.holding() == 0 {
            return false;
        }
        let Some(park) = claims.let_park() else { return false };
        let Some(waiting) = paths.next_holding() else {
            claims.unpark(park);
            return false;
        };
        park_now(&mut cx, (waiting, park), (runtimes, claims, tasks, paths));
        true
    }
}

/// A task that waits for a directory with a slot gives it up.
fn park_now(
    cx: &mut Cx<'_>,
    (waiting, park): (ClaimKey, ParkPermit),
    (runtimes, claims, tasks, paths): (&Runtimes, &mut Claims, &mut BTreeMap<ClaimKey, Task>, &PathLocks),
) {
    let task = tasks.get_mut(&waiting).filter(|task| task.holds_in_line());
    let (Some(task), Some(holder)) = (task, paths.holder(waiting)) else { return claims.unpark(park) };
    if let (Some(slot), Some(provider)) = (task.park(cx, holder, park), task.provider()) {
        claims.parked(cx, runtimes, slot, provider);
    }
}
