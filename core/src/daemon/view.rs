//! What can be seen from outside: for health answers, the command line and observers.

use super::State;
use crate::effect::{PhaseName, StopPhase};
use crate::event::{ClaimKey, GateOwner};
use crate::id::{EnvRoot, Generation, OpId, Provider, RuntimeId, SlotIndex, TaskId, WorkspaceId};
use crate::late::Entry;
use crate::op::OpKind;
use crate::task::Task;
use crate::time::Now;

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

    /// Whether a claim waits because too many before it brought nothing: one of this runtime, or one for all if none is named.
    pub fn is_paced(self, runtime: Option<&RuntimeId>) -> bool {
        self.state.claims.is_paced(runtime, self.state.now.mono)
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

    /// Whether the server takes the credential, as far as is known.
    pub const fn has_access(self) -> bool {
        !self.state.env.access.is_lost()
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

    /// Things that the server asked for in answers to heartbeats, and that are not over.
    pub fn open_actions(self) -> usize {
        self.state.actions.len()
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

    /// The clocks at its last step.
    pub(crate) const fn now(self) -> Now {
        self.state.now
    }

    /// Requests on their way.
    pub(crate) fn ops(self) -> impl Iterator<Item = (OpId, &'a OpKind)> {
        self.state.env.ops.iter()
    }

    /// A task that is not over.
    pub(crate) fn task(self, claim: ClaimKey) -> Option<&'a Task> {
        self.state.tasks.get(&claim)
    }

    /// What is left to deliver of tasks that are over.
    pub(crate) fn late_entries(self) -> impl Iterator<Item = &'a Entry> {
        self.state.late.entries()
    }

    /// Workspace and agent CLI family of a registered runtime.
    pub(crate) fn runtime(self, id: &RuntimeId) -> Option<(&'a WorkspaceId, &'a Provider)> {
        self.state.runtimes.workspace(id).zip(self.state.runtimes.provider(id))
    }

    /// Directories that are being freed, each with the claims that wait for it, in order.
    pub(crate) fn waiting_for_roots(
        self,
    ) -> impl Iterator<Item = (&'a EnvRoot, impl Iterator<Item = ClaimKey>)> {
        self.state.roots.lines()
    }

    /// Marks on directories.
    #[cfg(test)]
    pub(crate) fn marks(self) -> u64 {
        self.state.roots.marks()
    }
}
