//! Who reacts to what, and in which order: the only place where machines meet.

use super::State;
use crate::claim::Catch;
use crate::effect::{Effect, Effects, ExitCause, ExitReport, Fact};
use crate::env::Cx;
use crate::error::{ApiError, FsError, Refusal};
use crate::event::{Action, ApiReply, ClaimKey, Event, FsReply, GateOwner, Offer, RunEvent, WsEvent};
use crate::id::{ConnGen, OpId, RuntimeId};
use crate::late::Late;
use crate::link::Up;
use crate::op::{ApiOp, DiskWork, FsOp, TaskOp};
use crate::reason::FailReason;
use crate::runtimes::Change;
use crate::task::Task;
use crate::timer::TimerKey;
use std::collections::{BTreeMap, BTreeSet};

/// Splits the state into a step's context and the machines that are named.
macro_rules! split {
    ($state:ident, $out:ident => $cx:ident $(, $field:ident)*) => {
        let State { now, cfg, env, $($field,)* .. } = $state;
        #[allow(unused_mut, reason = "not every arm changes the context")]
        let mut $cx = Cx { now: *now, cfg, env, out: $out };
    };
}
pub(super) use split;

impl State {
    pub(super) fn route(&mut self, event: &Event, out: &mut Effects) {
        match event {
            Event::Tick => {}
            Event::Credential => self.another_credential(out),
            Event::Api { op, r } => self.api_ended(*op, r, out),
            Event::Fs { op, r } => {
                split!(self, out => cx, tasks, roots);
                match cx.env.ops.close_fs(*op) {
                    Some(DiskWork::Task(claim, FsOp::Resolve)) => {
                        self.resolved(claim, *op, r, out);
                        self.reap(claim, out);
                    }
                    Some(DiskWork::Task(claim, kind)) => {
                        if let Some(task) = tasks.get_mut(&claim) {
                            task.fs_ended(&mut cx, roots, *op, kind, r.clone());
                        }
                        self.reap(claim, out);
                    }
                    Some(DiskWork::Gc(work)) => self.gc_ended(*op, work, r, out),
                    Some(DiskWork::Probe) => self.looked(*op, r, out),
                    Some(DiskWork::Act(action)) => {
                        split!(self, out => cx, actions);
                        actions.done(&mut cx, *op, &action);
                    }
                    None => {}
                }
            }
            Event::Run { op, run } => self.run(*op, run, out),
            Event::Ws { conn, ws } => self.ws(*conn, ws, out),
            Event::Stop { how } => self.stop(*how, out),
            Event::Recovered { offer, provider, was, path } => {
                self.recovered(offer, provider, *was, path.as_ref(), out);
            }
            Event::Gate { owner, ask } => {
                split!(self, out => cx, claims, tasks);
                claims.ask_gate(&mut cx, *owner, *ask, !tasks.is_empty());
            }
        }
    }

    fn run(&mut self, op: OpId, run: &RunEvent, out: &mut Effects) {
        split!(self, out => cx, tasks, shutdown);
        if let RunEvent::Ended { outcome } = run {
            let Some(claim) = cx.env.ops.close_run(op) else { return };
            shutdown.left.remove(&claim);
            if let Some(task) = tasks.get_mut(&claim) {
                task.run_ended(&mut cx, op, *outcome);
            }
            self.reap(claim, out);
        } else if let Some(task) = cx.env.ops.run(op).and_then(|claim| tasks.get_mut(&claim)) {
            task.run_event(&mut cx, op, run);
        }
    }

    fn api_ended(&mut self, op: OpId, r: &Result<ApiReply, ApiError>, out: &mut Effects) {
        let Some(kind) = self.env.ops.close_api(op) else { return };
        self.env.timers.disarm(&TimerKey::Op(op));
        self.heard(op, &kind, r, out);
        split!(self, out => cx, runtimes, claims, beats, tasks, by_id, by_runtime, late, roots, gc, first_reports, unreached, actions);
        if r.is_ok() {
            server_answers(&mut cx, late, tasks, unreached);
            runtimes.server_answers(&mut cx);
        }
        let fresh = matches!(r, Ok(ApiReply::Claimed { offers, .. }) if offers.iter().any(|Offer { task, .. }| {
            !by_id.contains_key(task) && !late.has(task) && !claims.is_repeat(cx.now.mono, task)
        }));
        match kind {
            ApiOp::Renew => {
                if r.as_ref().err().copied().and_then(ApiError::refusal) == Some(Refusal::Unauthorized) {
                    cx.fact(Fact::Unauthorized);
                }
            }
            ApiOp::Workspaces => {
                let refused = r.as_ref().err().copied().and_then(ApiError::refusal);
                let first = !runtimes.has_list();
                let changes = runtimes.listed(&mut cx, r.clone());
                if first && refused == Some(Refusal::Unauthorized) {
                    self.exit(ExitCause::Unauthorized);
                    return;
                }
                self.changed(changes, out);
            }
            ApiOp::Register(workspace) => {
                if !self.shutdown.is_serving() {
                    let hosted = runtimes.registered_too_late(op, &workspace, r);
                    self.registered_too_late(hosted, out);
                    return;
                }
                let ours = |runtime: &RuntimeId| {
                    super::recover::ours(runtime, first_reports, by_runtime, tasks, late)
                };
                let changes = runtimes.registered(&mut cx, (op, &workspace), r.clone(), &ours);
                self.changed(changes, out);
            }
            ApiOp::Orphans(runtime) => {
                let gone =
                    r.as_ref().err().copied().and_then(ApiError::refusal) == Some(Refusal::RuntimeGone);
                let changes = if gone {
                    runtimes.gone(&mut cx, &runtime)
                } else {
                    let ours = super::recover::ours(&runtime, first_reports, by_runtime, tasks, late);
                    let passing = r.as_ref().err().copied().filter(|error| error.is_passing());
                    runtimes.orphans_done(&mut cx, (op, &runtime), passing, ours)
                };
                self.changed(changes, out);
            }
            ApiOp::Deregister { last } => {
                if last {
                    self.shutdown.deregistering -= 1;
                } else {
                    let changes = runtimes.deregistered(&mut cx, op);
                    self.changed(changes, out);
                }
            }
            ApiOp::Beat(runtime) => {
                let beaten = beats.beaten(&mut cx, &runtime, op, r.clone());
                if beaten.another_set {
                    self.another_set(out);
                }
                if beaten.gone {
                    self.gone(&runtime, out);
                }
                if let Ok(ApiReply::Beaten { actions: asked, .. }) = r {
                    self.asked(&runtime, asked, out);
                }
            }
            ApiOp::Claim { hold, pass, scope } => {
                let catch = claims.batch_ended(&mut cx, runtimes, (hold, pass, scope), r.clone(), fresh);
                self.caught(catch, out);
            }
            ApiOp::ClaimOver { hold, pass, scope } => {
                let catch = claims.over_ended(&mut cx, runtimes, (hold, pass, scope), r.clone(), fresh);
                self.caught(catch, out);
            }
            ApiOp::Collectable => {
                let idle = tasks.is_empty();
                gc.told(&mut cx, roots, op, r, idle);
            }
            ApiOp::ClaimOne { slot, pass, runtime, provider } => {
                let claim = (op, slot, pass, runtime, provider);
                let catch = claims.one_ended(&mut cx, runtimes, claim, r.clone(), fresh);
                self.caught(catch, out);
            }
            ApiOp::Task(claim, kind) => {
                let mut tried = None;
                if let Some(task) = tasks.get_mut(&claim) {
                    tried =
                        (kind == TaskOp::Report && !first_reports.is_empty()).then(|| task.runtime().clone());
                    task.api_ended(&mut cx, op, kind, r.clone());
                    if task.waits_for_server() {
                        unreached.insert(claim);
                    }
                }
                self.reap(claim, out);
                if let Some(runtime) = tried {
                    self.first_report_over(runtime, claim, out);
                }
            }
            ApiOp::Profiles(workspace) => {
                let changes = runtimes.profiles_told(&mut cx, (op, &workspace), r);
                self.changed(changes, out);
            }
            ApiOp::Action(action) => actions.reported(&mut cx, op, &action, r),
            ApiOp::Late => {
                late.replied(&mut cx, op, r.clone());
            }
        }
    }

    /// Tasks came, or none: each gets a slot, is failed back, or is known already; slots that are left go back.
    fn caught(&mut self, catch: Catch, out: &mut Effects) {
        let Catch { offers, permits, gone, unauthorized } = catch;
        let mut permits = permits.into_iter();
        for offer in offers {
            let permit = permits.next();
            if let Some(unused) = self.take(offer, permit, out) {
                self.claims.release(unused);
            }
        }
        for unused in permits {
            self.claims.release(unused);
        }
        if unauthorized {
            out.push(Effect::Fact { fact: Fact::Unauthorized });
        }
        if let Some(runtime) = gone {
            self.gone(&runtime, out);
        }
    }

    /// Takes one task. Returns the slot if it needs none.
    fn take(
        &mut self,
        offer: Offer,
        permit: Option<crate::token::SlotPermit>,
        out: &mut Effects,
    ) -> Option<crate::token::SlotPermit> {
        let serving = self.shutdown.is_serving();
        split!(self, out => cx, runtimes, claims, tasks, by_id, by_runtime, roots, late);
        if tasks.contains_key(&offer.claim) || late.has_claim(offer.claim) {
            // The adapter numbers claims; it must not use a number twice, and nobody may forget the claim that has it.
            cx.env.ops.stray();
            return permit;
        }
        if by_id.contains_key(&offer.task) || late.has(&offer.task) {
            // The lease may have run out: the run that is here says that it is still at it.
            if let Some(task) = by_id.get(&offer.task).and_then(|claim| tasks.get_mut(claim)) {
                task.look(&mut cx);
            }
            cx.fact(Fact::Duplicate { task: offer.task });
            cx.emit(Effect::Forget { claim: offer.claim });
            return permit;
        }
        let provider = runtimes.provider(&offer.runtime).cloned();
        let (claim, id, runtime) = (offer.claim, offer.task.clone(), offer.runtime.clone());
        let (task, unused) = match (offer.fault, provider, permit) {
            (None, Some(provider), Some(slot)) if serving => {
                claims.occupy(&provider);
                (Task::admit(&mut cx, offer, provider, slot, roots), None)
            }
            (fault, provider, permit) => {
                let reason = fault.unwrap_or(FailReason::RuntimeOffline);
                (Task::hand_back(&mut cx, offer, provider, reason), permit)
            }
        };
        by_id.insert(id, claim);
        by_runtime.insert((runtime, claim));
        tasks.insert(claim, task);
        unused
    }

    /// Takes from a task what it needs no more: its place in a line if it ended while it waited, the user's directory once nothing of it is
    /// in there, and everything if it is over. The directory comes last, as somebody else has it from then on.
    pub(super) fn reap(&mut self, claim: ClaimKey, out: &mut Effects) {
        let left = self.leave_lines(claim, out);
        if self.tasks.get(&claim).is_some_and(Task::is_over) {
            self.take_apart(claim, out);
        }
        if let Some(lock) = left {
            self.pass_on(lock, out);
        }
    }

    /// What the task still owes goes to the late outbox, then its marks go, then its slot.
    fn take_apart(&mut self, claim: ClaimKey, out: &mut Effects) {
        split!(self, out => cx, runtimes, claims, tasks, by_id, by_runtime, roots, late, unreached);
        let Some(task) = tasks.remove(&claim) else { return };
        let slot = task.slot();
        let remains = task.remains(&mut cx);
        by_runtime.remove(&(remains.runtime.clone(), claim));
        by_id.remove(&remains.id);
        let delivered = remains.late.is_none();
        if let Some(entry) = remains.late {
            late.add(&mut cx, entry);
        }
        let news = claims.ended(cx.now.mono, &remains.id);
        roots.forget_waiter(claim);
        for mark in remains.marks {
            roots.release(mark);
        }
        if let Some(provider) = &remains.provider {
            claims.task_ended(&mut cx, runtimes, remains.slot, (&remains.runtime, provider), news);
        }
        unreached.remove(&claim);
        cx.fact(Fact::Released { claim, slot });
        if delivered {
            cx.emit(Effect::Forget { claim: remains.claim });
        }
        self.first_report_over(remains.runtime, claim, out);
    }

    fn ws(&mut self, conn: ConnGen, event: &WsEvent, out: &mut Effects) {
        if !self.link.is_current(conn) {
            self.env.ops.stray();
            return;
        }
        self.heard_over(event, out);
        let named = self.named();
        split!(self, out => cx, runtimes, claims, beats, link, tasks, by_runtime, late, unreached);
        if !matches!(event, WsEvent::Down | WsEvent::Refused { .. }) {
            server_answers(&mut cx, late, tasks, unreached);
            runtimes.server_answers(&mut cx);
        }
        if let WsEvent::Ack { claims: true, .. } = event
            && link.is_up()
        {
            claims.takes_claims(conn);
        }
        match event {
            WsEvent::Up => {
                if let Up::Yes { reconcile } = link.up(&mut cx, named) {
                    claims.link_up(&mut cx);
                    beats.link_up(&mut cx, conn);
                    if reconcile {
                        self.look_at_everything(out);
                    }
                }
            }
            WsEvent::Refused { status: 404, kind } if *kind != Refusal::RouteMissing => {
                beats.link_down();
                claims.link_down();
                if link.refused(&mut cx, named) {
                    beats.ask_all(&mut cx);
                }
            }
            WsEvent::Down | WsEvent::Refused { .. } => {
                beats.link_down();
                claims.link_down();
                link.down(&mut cx);
            }
            WsEvent::TaskAvailable { runtime, task } => {
                claims.wake(&mut cx, runtime.as_ref());
                if task.is_none() {
                    // A task of the runtime ended on the server: perhaps one that runs here.
                    let here: Vec<_> = match runtime {
                        Some(runtime) => by_runtime
                            .range((runtime.clone(), ClaimKey(0))..)
                            .take_while(|(of, _)| of == runtime)
                            .map(|(_, claim)| *claim)
                            .collect(),
                        None => tasks.keys().copied().collect(),
                    };
                    self.look_at(here, out);
                }
            }
            WsEvent::Ack { runtime, gone, actions: asked, .. } => {
                if *gone {
                    self.gone(runtime, out);
                } else {
                    beats.acked(&cx, runtime);
                }
                self.asked(runtime, asked, out);
            }
            WsEvent::ProfilesChanged { workspace } => runtimes.profiles_changed(&mut cx, workspace),
            WsEvent::WorkspacesChanged => runtimes.sync(&mut cx),
            WsEvent::PendingWork { runtime } => beats.hint(&mut cx, runtime),
        }
    }

    /// A look at the agent CLIs ended. What cannot be used any more goes off line if nothing is about; else the next look tries again.
    fn looked(&mut self, op: OpId, r: &Result<FsReply, FsError>, out: &mut Effects) {
        split!(self, out => cx, runtimes, claims, tasks);
        cx.disarm(&TimerKey::Op(op));
        if !runtimes.looked(&mut cx, op, r) {
            return;
        }
        let (mut changes, well) = (Vec::new(), matches!(r, Ok(FsReply::Probed { .. })));
        if well && runtimes.any_to_hold(&cx) {
            let busy = !tasks.is_empty();
            let held = claims.while_idle(GateOwner::Demotion, busy, || runtimes.hold(&mut cx));
            changes.extend(held.into_iter().flatten());
        }
        changes.extend(runtimes.after_look(&mut cx, well));
        self.changed(changes, out);
    }

    /// The server asks a runtime for something, in its answer to a heartbeat.
    fn asked(&mut self, runtime: &RuntimeId, asked: &[Action], out: &mut Effects) {
        split!(self, out => cx, runtimes, actions);
        let hosted = runtimes.provider(runtime).is_some();
        actions.asked(&mut cx, runtime, hosted, asked);
    }

    fn gone(&mut self, runtime: &RuntimeId, out: &mut Effects) {
        split!(self, out => cx, runtimes);
        let changes = runtimes.gone(&mut cx, runtime);
        self.changed(changes, out);
    }

    /// The set of runtimes changed: a runtime leaves the set before its heartbeat ends, and joins it before it begins.
    pub(super) fn changed(&mut self, changes: Vec<Change>, out: &mut Effects) {
        split!(self, out => cx, claims, beats);
        let another_set = changes.iter().any(|change| !matches!(change, Change::Claimable(_)));
        for change in changes {
            match change {
                Change::Added(runtime) => beats.add(&mut cx, &runtime),
                Change::Claimable(runtime) => claims.runtime_ready(&mut cx, &runtime),
                Change::Removed(runtime) => {
                    claims.runtime_removed(&mut cx, &runtime);
                    beats.remove(&mut cx, &runtime);
                }
            }
        }
        if another_set {
            self.another_set(out);
        }
        if self.runtimes.is_ready() && self.shutdown.is_serving() && !self.dialled {
            self.dialled = true;
            let named = self.named();
            split!(self, out => cx, link);
            link.dial(&mut cx, named);
        }
    }

    /// A connection has to name other runtimes than before.
    fn another_set(&mut self, out: &mut Effects) {
        let named = self.named();
        split!(self, out => cx, claims, beats, link);
        if link.set_changed(&mut cx, named) {
            beats.link_down();
            claims.link_down();
        }
    }

    /// What an earlier process left of a runtime's tasks is to be failed.
    pub(super) fn orphans_due(&mut self, runtime: &RuntimeId, out: &mut Effects) {
        split!(self, out => cx, runtimes, tasks, late, first_reports, by_runtime);
        let ours = super::recover::ours(runtime, first_reports, by_runtime, tasks, late);
        let changes = runtimes.orphans_due(&mut cx, runtime, ours);
        self.changed(changes, out);
    }

    /// A deadline passed.
    pub(super) fn due(&mut self, timer: &TimerKey, out: &mut Effects) {
        split!(self, out => cx, runtimes, claims, beats, tasks, late, roots, gc, actions);
        match timer {
            TimerKey::Stop => self.stop_due(out),
            TimerKey::Op(op) => {
                claims.overdue(&cx, *op);
                cx.cancel(*op);
            }
            TimerKey::Prepare(claim)
            | TimerKey::Lease(claim)
            | TimerKey::StartRetry(claim)
            | TimerKey::Watch(claim)
            | TimerKey::Flush(claim)
            | TimerKey::UsageRetry(claim)
            | TimerKey::PinRetry(claim)
            | TimerKey::Drain(claim)
            | TimerKey::RunEnd(claim)
            | TimerKey::Idle(claim)
            | TimerKey::RunLimit(claim)
            | TimerKey::ReportRetry(claim) => {
                if let Some(task) = tasks.get_mut(claim) {
                    task.due(&mut cx, timer);
                }
                self.reap(*claim, out);
            }
            TimerKey::Late => late.send(&mut cx),
            TimerKey::Poll => claims.poll_due(),
            TimerKey::HoldOff => claims.hold_off_due(),
            // The end of the step sends what is wanted.
            TimerKey::Pace => {}
            TimerKey::Gc => gc.due(&mut cx, roots, tasks.is_empty()),
            TimerKey::PollOne(runtime) => claims.poll_one_due(&mut cx, runtime),
            TimerKey::Beat(runtime) => beats.due(&mut cx, runtime),
            TimerKey::Link => {
                let named = self.named();
                split!(self, out => cx, link);
                link.dial(&mut cx, named);
            }
            TimerKey::Reconcile => {
                split!(self, out => cx, link);
                if link.reconcile(&mut cx) {
                    self.look_at_everything(out);
                }
            }
            TimerKey::Sync => runtimes.sync(&mut cx),
            TimerKey::Register(workspace) => {
                let changes = runtimes.register_due(&mut cx, workspace);
                self.changed(changes, out);
            }
            TimerKey::Profiles(workspace) => {
                let changes = runtimes.profiles_due(&mut cx, workspace);
                self.changed(changes, out);
            }
            TimerKey::Discover => runtimes.discover_due(&mut cx),
            TimerKey::Versions => runtimes.versions_due(&mut cx),
            TimerKey::Access => self.access_due(out),
            TimerKey::ActionRetry(action) => actions.due(&mut cx, action),
            TimerKey::Renew => runtimes.renew(&mut cx),
            TimerKey::Orphans(runtime) => self.orphans_due(runtime, out),
        }
    }

    /// What follows from the state alone: freed slots are used, a stop goes on, strays are told.
    pub(super) fn finish_step(&mut self, out: &mut Effects) {
        self.stop_on(out);
        if self.leaving.is_none() {
            self.unpark(out);
            self.look_on(out);
        }
        if self.link.is_asking() && !self.beats.is_asking() {
            let named = self.named();
            split!(self, out => cx, link);
            link.told_why(&mut cx, named);
        }
        split!(self, out => cx, runtimes, claims, tasks, gc);
        if self.leaving.is_none() {
            claims.settle_gate(&mut cx, !tasks.is_empty());
            if !cx.is_barred() {
                claims.feed(&mut cx, runtimes);
            }
        }
        if runtimes.is_ready() {
            gc.ready(&mut cx);
        }
        if !tasks.is_empty() {
            gc.make_way(&mut cx);
        }
        let total = cx.env.ops.strays();
        if total > self.strays_told {
            self.strays_told = total;
            out.push(Effect::Fact { fact: Fact::Stray { total } });
        }
        if let Some(cause) = self.leaving {
            self.exited = true;
            let leaves = cause.leaves_runs();
            let lost = self.tasks.values().filter(|task| task.owes_report() && !(leaves && task.is_kept()));
            let abandoned = lost.map(|task| task.id().clone());
            let abandoned = abandoned.chain(self.late.unreported().cloned()).collect();
            let kept = self.tasks.values().filter(|task| leaves && task.is_kept());
            let kept = kept.map(|task| task.id().clone()).collect();
            out.push(Effect::Exit { report: ExitReport { cause, abandoned, kept } });
        }
    }

    /// Ends the process once this step is done, as nothing may come after that.
    pub(super) fn exit(&mut self, cause: ExitCause) {
        self.leaving.get_or_insert(cause);
    }
}

/// Reports whose wait has grown because nobody was there go out as soon as the server answers anything. One that ended or waits for another
/// reason by now is not touched.
fn server_answers(
    cx: &mut Cx<'_>,
    late: &mut Late,
    tasks: &mut BTreeMap<ClaimKey, Task>,
    unreached: &mut BTreeSet<ClaimKey>,
) {
    late.nudge(cx);
    for claim in std::mem::take(unreached) {
        if let Some(task) = tasks.get_mut(&claim) {
            task.server_answers(cx);
        }
    }
}
