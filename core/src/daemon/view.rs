//! What can be seen from outside: for health answers, the command line and observers.

use super::State;
use crate::effect::{PhaseName, StopPhase};
use crate::event::{ClaimKey, GateOwner};
use crate::id::{EnvRoot, Generation, RuntimeId, SlotIndex, TaskId};

/// A read-only look at the daemon.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    state: &'a State,
}

/// One task in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskView<'a> {
    /// Its claim.
    pub claim: ClaimKey,
    /// Its id.
    pub task: &'a TaskId,
    /// Its runtime.
    pub runtime: &'a RuntimeId,
    /// Its slot; none if it is only failed back or reported, if it is parked, or if it is of an earlier process that had more slots.
    pub slot: Option<SlotIndex>,
    /// Its phase.
    pub phase: Option<PhaseName>,
}

impl<'a> View<'a> {
    pub(super) const fn of(state: &'a State) -> Self {
        Self { state }
    }

    /// All tasks that are not over, by claim.
    pub fn tasks(self) -> impl Iterator<Item = TaskView<'a>> {
        self.state.tasks.iter().map(|(claim, task)| TaskView {
            claim: *claim,
            task: task.id(),
            runtime: task.runtime(),
            slot: task.slot(),
            phase: task.phase_name(),
        })
    }

    /// Slots that neither a claim nor a task holds.
    pub fn free_slots(self) -> u16 {
        self.state.claims.free_slots()
    }

    /// Tasks that wait for a user's directory, or that have it and wait for a slot.
    pub fn parked_tasks(self) -> usize {
        self.state.tasks.values().filter(|task| task.is_parked()).count()
    }

    /// Tasks that are here.
    pub fn task_count(self) -> usize {
        self.state.tasks.len()
    }

    /// Directories of users that a task works in, or is about to.
    pub fn path_locks(self) -> usize {
        self.state.paths.len()
    }

    /// All slots.
    pub const fn total_slots(self) -> u16 {
        self.state.claims.total_slots()
    }

    /// Claims on their way.
    pub fn claims(self) -> u32 {
        self.state.claims.on_their_way()
    }

    /// Who has the gate, if somebody has.
    pub const fn gate_holder(self) -> Option<GateOwner> {
        self.state.claims.gate_holder()
    }

    /// Registered runtimes.
    pub fn runtimes(self) -> impl Iterator<Item = &'a RuntimeId> {
        self.state.runtimes.ids()
    }

    /// Number of registered runtimes.
    pub fn runtime_count(self) -> usize {
        self.state.runtimes.len()
    }

    /// Which set of registered runtimes this is: another one after each that came or went.
    pub const fn runtime_set(self) -> Generation {
        self.state.runtimes.generation()
    }

    /// Whether every workspace of the first list was tried.
    pub const fn is_ready(self) -> bool {
        self.state.runtimes.is_ready()
    }

    /// Whether the control connection is up.
    pub const fn is_linked(self) -> bool {
        self.state.link.is_up()
    }

    /// What a stop waits for.
    pub const fn stop_phase(self) -> StopPhase {
        self.state.shutdown.phase()
    }

    /// Whether the stop waits for runs to end by themselves.
    pub fn is_draining(self) -> bool {
        !self.state.shutdown.is_serving() && self.state.shutdown.is_draining()
    }

    /// Whether somebody works in this directory.
    pub fn is_root_active(self, root: &EnvRoot) -> bool {
        self.state.roots.is_active(root)
    }

    /// Whether reports wait in the late outbox.
    pub fn has_late_reports(self) -> bool {
        !self.state.late.is_empty()
    }

    /// Requests on their way.
    pub fn open_ops(self) -> usize {
        self.state.env.ops.len()
    }

    /// Deadlines that are set.
    pub fn timers(self) -> usize {
        self.state.env.timers.len()
    }

    /// Events that fitted nothing.
    pub const fn strays(self) -> u64 {
        self.state.env.ops.strays()
    }

    /// How often the clock went back.
    pub const fn backward_clocks(self) -> u64 {
        self.state.backward
    }
}
