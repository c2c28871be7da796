//! Goes on at a checkpoint: what is there is known again, and that what is not there ended while steps were lost.

use super::course::How;
use super::requests::About;
use super::scene::Scene;
use crate::daemon::{Daemon, View};
use crate::effect::{PhaseName, StopPhase};
use crate::event::ClaimKey;
use crate::id::OpId;
use crate::op::{ApiOp, FsOp, GcOp, OpKind, TaskOp};
use crate::story::{At, End, Launch, Online, Origin, Phase, RequestKind, Span, TaskIx, WaitReason};
use crate::task::Task;
use std::collections::BTreeSet;

impl Scene<'_> {
    /// Takes what a checkpoint says. Returns whether this version can read it.
    pub(super) fn restore(&mut self, state: &str) -> bool {
        let Ok(daemon) = Daemon::restore(state) else { return false };
        let view = daemon.view();
        self.course.now.advance(view.now());
        self.at = At { n: self.at.n, at: self.course.now.mono };
        self.restore_link(view);
        self.restore_runtimes(view);
        self.restore_tasks(view);
        self.restore_requests(view);
        self.course.gate = view.gate_holder().is_some();
        self.course.stopping = view.stop_phase() != StopPhase::Serving;
        self.course.exited = view.stop_phase() == StopPhase::Exited;
        self.course.confirmed = self.at.n;
        true
    }

    fn restore_link(&mut self, view: View<'_>) {
        self.lose_connection();
        let already = self.already();
        let life = &mut self.story[self.course.life];
        for (is, spans) in [(view.is_linked(), &mut life.linked), (!view.has_access(), &mut life.barred)] {
            if is && !spans.last().is_some_and(Span::is_open) {
                spans.push(already);
            }
        }
    }

    /// One that is there before and after may have gone and come back.
    fn restore_runtimes(&mut self, view: View<'_>) {
        for (runtime, nth) in self.course.online.clone() {
            let end = self.end(self.story[runtime].online[nth].span, How::Lost);
            self.story[runtime].online[nth].span.close(end);
            if !self.story[runtime].online[nth].span.is_open() {
                self.course.online.remove(&runtime);
            }
        }
        let here: Vec<_> = view.runtimes().map(|id| self.runtime(id)).collect();
        for runtime in here {
            if self.course.online.contains_key(&runtime) {
                continue;
            }
            let (life, span) = (self.course.life, self.already());
            let told = &mut self.story[runtime];
            if let Some((workspace, provider)) = view.runtime(&told.id) {
                (told.workspace, told.provider) = (Some(workspace.clone()), Some(provider.clone()));
            }
            self.course.online.insert(runtime, told.online.len());
            told.online.push(Online { life, span, claimable: None, gone: None });
        }
    }

    fn restore_tasks(&mut self, view: View<'_>) {
        let late: BTreeSet<ClaimKey> = view.late_entries().map(|entry| entry.claim).collect();
        self.lose_tasks_but(view, &late);
        for told in view.tasks() {
            let Some(task) = view.task(told.claim) else { continue };
            let ix = self.known(told.claim).unwrap_or_else(|| {
                let here = self.already();
                self.add_task(told.claim, Origin::Unknown, here)
            });
            let runtime = self.runtime(told.runtime);
            let provider = task.provider().cloned();
            let roots: Vec<_> = task.wanted_roots().cloned().collect();
            let known = &mut self.story[ix];
            (known.id, known.runtime) = (Some(told.task.clone()), Some(runtime));
            known.root = roots.first().cloned();
            self.course.held(ix).roots = roots;
            let known = &mut self.story[ix];
            known.provider = known.provider.take().or(provider);
            let before = self.phase_of(ix);
            self.restore_phase(ix, told.phase, task);
            // One that waited for a directory may have given its slot up, and has got the same again.
            let waited = before.is_some_and(|before| before < PhaseName::AwaitingRoot);
            if waited && before != told.phase {
                self.free_slot(ix, How::Over);
            }
            self.restore_holds(ix, task);
            self.course.hear(ix, self.at);
        }
        for entry in view.late_entries() {
            let ix = self.known(entry.claim).unwrap_or_else(|| {
                let mut here = self.already();
                here.close(End::Seen(self.at));
                self.add_task(entry.claim, Origin::Unknown, here)
            });
            let (runtime, already) = (self.runtime(&entry.runtime), self.already());
            let known = &mut self.story[ix];
            (known.id, known.runtime) = (Some(entry.task.clone()), Some(runtime));
            known.late.get_or_insert(already);
            known.verdict = entry.report.or(known.verdict);
            self.course.held(ix);
        }
    }

    /// The task of a claim that is not forgotten.
    fn known(&self, claim: ClaimKey) -> Option<TaskIx> {
        self.course.claims.get(&claim).copied().filter(|task| self.course.alive.contains_key(task))
    }

    /// Tasks that are not there any more ended while steps were lost.
    fn lose_tasks_but(&mut self, view: View<'_>, late: &BTreeSet<ClaimKey>) {
        let tasks: Vec<_> = self.course.alive.keys().copied().collect();
        for ix in tasks {
            let claim = self.story[ix].claim;
            let id = self.story[ix].id.as_ref();
            // Phases never go back: one that is in an earlier one is another task with the number of this one.
            let goes_on = |task: &Task| task.phase_name() >= self.phase_of(ix);
            let same = |task: &Task| id.is_none_or(|id| task.id() == id) && goes_on(task);
            let is_here = view.task(claim).is_some_and(same);
            if is_here && self.story[ix].here.is_open() {
                continue;
            }
            if late.contains(&claim) {
                self.leave(ix, How::Over);
            } else {
                let heard = self.course.alive.get(&ix).map_or(0, |held| held.heard);
                self.lose_task(ix, self.course.doubt(heard));
                self.course.alive.remove(&ix);
            }
        }
    }

    fn restore_phase(&mut self, ix: TaskIx, phase: Option<PhaseName>, task: &Task) {
        if let Some(kind) = task.report_kind() {
            self.story[ix].verdict = Some(kind);
        }
        let Some(name) = phase.filter(|phase| self.phase_of(ix) != Some(*phase)) else { return };
        let span = self.already();
        self.end_phase(ix, How::Over);
        self.drop_retries(ix, How::Over);
        self.story[ix].phases.push(Phase { name, span });
        let reason = match name {
            PhaseName::AwaitingDirectory => WaitReason::Directory { holder: None, parked: task.is_parked() },
            PhaseName::AwaitingSlot => WaitReason::Slot,
            PhaseName::AwaitingRoot => WaitReason::Collector,
            PhaseName::Running | PhaseName::Settling | PhaseName::Reporting | PhaseName::Sealing => {
                self.lease_over(ix, false);
                return;
            }
            PhaseName::Resolving | PhaseName::Preparing | PhaseName::Starting => return,
        };
        self.wait_in_phase(ix, reason, span);
    }

    fn restore_holds(&mut self, ix: TaskIx, task: &Task) {
        let span = self.already();
        let held = self.course.alive.get(&ix).cloned().unwrap_or_default();
        if held.slot.map(|(slot, _)| slot) != task.slot() {
            self.free_slot(ix, How::Over);
            if let Some(slot) = task.slot() {
                self.take_slot(ix, slot, span);
            }
        }
        let marked: Vec<_> = held.marks.iter().map(|nth| self.story.marks[*nth].root.clone()).collect();
        for root in task.marked_roots().filter(|root| !marked.contains(root)) {
            self.mark(ix, root.clone(), span);
        }
        let path = task.directory().map(|lock| &lock.path);
        let has = held.path_use.map(|nth| &self.story.paths[nth].path);
        if has != path {
            self.free_path(ix, How::Over);
            if let Some(path) = path {
                self.course.held(ix).path = Some(path.clone());
                self.take_path(ix, span);
            }
        }
    }

    fn restore_requests(&mut self, view: View<'_>) {
        let here: BTreeSet<OpId> = view.ops().map(|(op, _)| op).collect();
        let gone = self.course.open.iter().filter(|op| !here.contains(op));
        let gone: Vec<_> = gone.filter_map(|op| self.course.ops.get(op).copied()).collect();
        for request in gone {
            self.lose_request(request);
        }
        let lines = view.waiting_for_roots();
        self.course.freeing = lines.map(|(root, line)| (root.clone(), self.all_known(line))).collect();
        for (op, kind) in view.ops() {
            if self.course.open.contains(&op) {
                continue;
            }
            let (kind, claim, other) = said(kind, view);
            let span = self.already();
            let task = claim.and_then(|claim| self.course.claims.get(&claim).copied());
            let runtime = None;
            let request = self.open(op, kind, About { task, runtime, other, deadline: None }, span);
            if kind == RequestKind::Run
                && let Some(task) = task
            {
                let slot = self.course.alive.get(&task).and_then(|held| held.slot).map(|(slot, _)| slot);
                self.story[task].launches.push(Launch {
                    request,
                    slot,
                    fresh: false,
                    attached: false,
                    span,
                    launched: None,
                    spoke: None,
                    answered: None,
                    outcome: None,
                });
            }
        }
        for (op, kind) in view.ops() {
            self.restore_claim(op, kind);
        }
    }

    fn all_known(&self, claims: impl Iterator<Item = ClaimKey>) -> Vec<TaskIx> {
        claims.filter_map(|claim| self.known(claim)).collect()
    }

    fn restore_claim(&mut self, op: OpId, kind: &OpKind) {
        let held = match kind {
            OpKind::Api(ApiOp::Claim { hold, .. } | ApiOp::ClaimOver { hold, .. }) => hold.len(),
            OpKind::Api(ApiOp::ClaimOne { .. }) => 1,
            _ => return,
        };
        let Some(request) = self.course.ops.get(&op).copied() else { return };
        if !self.course.claim_of.contains_key(&request) {
            let max = u16::try_from(held).unwrap_or(u16::MAX);
            self.add_claim(request, Some(max));
            self.course.claims_open += 1;
        }
    }
}

/// What a request is, as the table of the core has it.
fn said(kind: &OpKind, view: View<'_>) -> (RequestKind, Option<ClaimKey>, Option<String>) {
    use RequestKind as R;
    let (kind, claim, other) = match kind {
        OpKind::Api(api) => match api {
            ApiOp::Renew => (R::Renew, None, None),
            ApiOp::Workspaces => (R::Workspaces, None, None),
            ApiOp::Profiles(workspace) => (R::Profiles, None, Some(workspace.to_string())),
            ApiOp::Register(workspace) => (R::Register, None, Some(workspace.to_string())),
            ApiOp::Orphans(runtime) => (R::RecoverOrphans, None, Some(runtime.to_string())),
            ApiOp::Deregister { .. } => (R::Deregister, None, None),
            ApiOp::Beat(runtime) => (R::Beat, None, Some(runtime.to_string())),
            ApiOp::Claim { .. } => (R::Claim, None, None),
            ApiOp::ClaimOver { .. } => (R::ClaimOver, None, None),
            ApiOp::ClaimOne { runtime, .. } => (R::ClaimOne, None, Some(runtime.to_string())),
            ApiOp::Collectable => (R::Collectable, None, None),
            ApiOp::Action(action) => (R::ActionResult, None, Some(action.to_string())),
            // Which of the requests it is, only the outbox knows.
            ApiOp::Late => (R::UnknownApi, view.late_entries().next().map(|entry| entry.claim), None),
            ApiOp::Task(claim, of_task) => (task_request(*claim, *of_task, view), Some(*claim), None),
        },
        OpKind::Fs(claim, FsOp::Prepare) => (R::Prepare, Some(*claim), None),
        OpKind::Fs(claim, FsOp::Resolve) => (R::Resolve, Some(*claim), None),
        OpKind::Fs(claim, FsOp::Unwind) => (R::Unwind, Some(*claim), None),
        OpKind::Fs(claim, FsOp::Seal) => (R::Seal, Some(*claim), None),
        OpKind::Gc(GcOp::Scan) => (R::Scan, None, None),
        OpKind::Gc(GcOp::Collect { reserved, .. }) => (R::Collect, None, Some(reserved.root.to_string())),
        OpKind::Gc(GcOp::Maintain) => (R::Maintain, None, None),
        OpKind::Probe => (R::Probe, None, None),
        OpKind::Act(action) => (R::Act, None, Some(action.to_string())),
        OpKind::Run(claim) => (R::Run, Some(*claim), None),
    };
    (kind, claim, other)
}

fn task_request(claim: ClaimKey, kind: TaskOp, view: View<'_>) -> RequestKind {
    use crate::effect::ReportKind;
    match kind {
        TaskOp::Lease => RequestKind::Lease,
        TaskOp::Start => RequestKind::Start,
        TaskOp::StartStatus | TaskOp::Watch | TaskOp::Check => RequestKind::Status,
        TaskOp::WaitDirectory => RequestKind::WaitDirectory,
        TaskOp::Messages { .. } => RequestKind::Messages,
        TaskOp::Known => RequestKind::MessagesKnown,
        TaskOp::Usage => RequestKind::Usage,
        TaskOp::Pin => RequestKind::Pin,
        TaskOp::Report => match view.task(claim).and_then(Task::report_kind) {
            Some(ReportKind::Complete) => RequestKind::Complete,
            Some(ReportKind::Fail { .. }) => RequestKind::Fail,
            Some(ReportKind::CancelAck) => RequestKind::CancelAck,
            None => RequestKind::UnknownApi,
        },
    }
}
