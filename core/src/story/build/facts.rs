//! What the core did and stated.

use super::course::{How, Tried};
use super::scene::Scene;
use crate::effect::{Effect, Fact, GateAnswer, Keep, PhaseName, RuntimeChange, WsCmd};
use crate::event::{ClaimKey, Event, Recovered};
use crate::id::{RuntimeId, SlotIndex, TaskId};
use crate::story::{
    Begin, End, Fate, Grant, Online, Origin, Phase, RuntimeIx, Span, TaskIx, WaitReason, What,
};

impl Scene<'_> {
    pub(super) fn effect(&mut self, effect: &Effect, event: Option<&Event>) {
        match effect {
            Effect::Api { op, call, deadline } => self.api_sent(*op, call, *deadline),
            Effect::Fs { op, call } => self.fs_sent(*op, call),
            Effect::Run { op, call } => self.launched(*op, call),
            Effect::Cancel { op } => self.cancelled(*op),
            Effect::Kill { op, step } => {
                let task = self.course.ops.get(op).and_then(|request| self.story[*request].task);
                self.moment(task, None, What::Kill(*step));
            }
            Effect::Runtime { runtime, change, .. } => self.runtime_changed(runtime, change),
            Effect::Keep { claim, entry } => self.kept(*claim, entry),
            Effect::Gate { owner, answer } => {
                self.course.gate = *answer == GateAnswer::Granted;
                self.moment(None, None, What::Gate { owner: *owner, answer: *answer });
            }
            Effect::Forget { claim } => self.forgotten(*claim),
            Effect::Fact { fact } => self.fact(fact, event),
            Effect::Ws { cmd: WsCmd::Close, .. } => {
                let end = End::Seen(self.at);
                if let Some(linked) = self.story[self.course.life].linked.last_mut() {
                    linked.close(end);
                }
            }
            Effect::Ws { .. }
            | Effect::Progress { .. }
            | Effect::ForgetAction { .. }
            | Effect::DropIdleConnections
            | Effect::Exit { .. } => {}
        }
    }

    fn runtime_changed(&mut self, id: &RuntimeId, change: &RuntimeChange) {
        let runtime = self.runtime(id);
        let life = self.course.life;
        match change {
            RuntimeChange::Added { workspace, provider, profile } => {
                self.off_line(runtime, How::Over);
                let span = Span::from(self.at);
                let told = &mut self.story[runtime];
                told.workspace = Some(workspace.clone());
                told.provider = Some(provider.clone());
                told.profile.clone_from(profile);
                self.course.online.insert(runtime, told.online.len());
                told.online.push(Online { life, span, claimable: None, gone: None });
            }
            RuntimeChange::Claimable => {
                let nth = self.online(runtime);
                self.story[runtime].online[nth].claimable.get_or_insert(self.at);
            }
            RuntimeChange::Removed => {
                self.online(runtime);
                self.off_line(runtime, How::Now);
            }
        }
    }

    /// The place of the time in which the runtime is registered. If steps are lost since it began, it may have ended and begun anew.
    fn online(&mut self, runtime: RuntimeIx) -> usize {
        if let Some(nth) = self.course.online.get(&runtime).copied() {
            let span = self.story[runtime].online[nth].span;
            if matches!(self.end(span, How::Over), End::Seen(_)) {
                return nth;
            }
            self.off_line(runtime, How::Over);
        }
        let (life, span) = (self.course.life, self.already());
        let online = &mut self.story[runtime].online;
        online.push(Online { life, span, claimable: None, gone: None });
        self.course.online.insert(runtime, online.len() - 1);
        online.len() - 1
    }

    fn off_line(&mut self, runtime: RuntimeIx, how: How) {
        if let Some(nth) = self.course.online.remove(&runtime) {
            let end = self.end(self.story[runtime].online[nth].span, how);
            self.story[runtime].online[nth].span.close(end);
        }
    }

    fn kept(&mut self, claim: ClaimKey, entry: &Keep) {
        match entry {
            Keep::Claimed { offer, provider } => {
                self.course.step.taken.insert(claim, (offer.clone(), provider.clone()));
            }
            Keep::Launched { .. } => {}
            Keep::Ended { report, have, .. } => {
                let Some(task) = self.perhaps_late(claim) else { return };
                let told = &mut self.story[task];
                told.messages = told.messages.max(*have);
                if report.is_some() || told.fate == Fate::Open {
                    told.verdict = *report;
                }
            }
        }
    }

    fn forgotten(&mut self, claim: ClaimKey) {
        let Some(task) = self.course.claims.get(&claim).copied() else { return };
        let end = End::Seen(self.at);
        if !self.course.alive.contains_key(&task) {
            return;
        }
        self.course.held(task);
        if self.story[task].here.is_open() {
            // What ended it is lost.
            self.leave(task, How::Over);
        }
        self.drop_retries(task, How::Over);
        self.course.alive.remove(&task);
        let told = &mut self.story[task];
        told.forgotten = Some(self.at);
        if let Some(late) = &mut told.late {
            late.close(end);
        }
        if told.fate == Fate::Open {
            // The end of one that was over in an earlier process was told there.
            let earlier =
                matches!(told.origin, Origin::Recovered(None | Some(Recovered::Ended { report: None, .. })));
            // A log names every report that was taken.
            let told_all = self.course.is_whole && !earlier || self.course.header.is_imported();
            told.fate = if told_all { Fate::Silent } else { Fate::Unknown };
        }
    }

    /// A task is new. What is written down of it comes first.
    fn came(&mut self, (claim, id, runtime): (ClaimKey, &TaskId, &RuntimeId), origin: Origin) -> TaskIx {
        let task = self.add_task(claim, origin, Span::from(self.at));
        if let Some((offer, provider)) = self.course.step.taken.remove(&claim) {
            self.name(task, &offer, Some(&provider));
        } else {
            let runtime = self.runtime(runtime);
            let provider = self.story[runtime].provider.clone();
            let told = &mut self.story[task];
            (told.id, told.runtime, told.provider) = (Some(id.clone()), Some(runtime), provider);
        }
        if let Some(claim) = origin.claim() {
            self.story[claim].tasks.push(task);
        }
        task
    }

    fn admitted(&mut self, who: (ClaimKey, &TaskId, &RuntimeId), slot: SlotIndex) {
        let by = self.course.step.claim;
        let task = self.came(who, Origin::Admitted(by));
        self.take_slot(task, slot, Span::from(self.at));
        if let Some(claim) = by {
            self.lease_granted(task, self.story[claim].request);
        } else {
            let grant = Grant { at: self.at, by: None, margin_ms: None };
            self.story[task].lease.grants.push(grant);
        }
    }

    fn recovered(
        &mut self,
        who: (ClaimKey, &TaskId, &RuntimeId),
        slot: Option<SlotIndex>,
        event: Option<&Event>,
    ) {
        let told = match event {
            Some(Event::Recovered { offer, provider, was, path }) if offer.claim == who.0 => {
                self.course.step.taken.insert(offer.claim, (offer.clone(), provider.clone()));
                Some((offer, *was, path.as_ref()))
            }
            _ => None,
        };
        let was = told.map(|(_, was, _)| was);
        let task = self.came(who, Origin::Recovered(was));
        let before = self.earlier.get(&who.0).copied();
        self.story[task].before = before.filter(|before| self.story[*before].id.as_ref() == Some(who.1));
        if let Some(slot) = slot {
            self.take_slot(task, slot, Span::from(self.at));
        }
        let works =
            matches!(was, Some(Recovered::Launched { .. } | Recovered::Ended { report: Some(_), .. }));
        if works {
            self.mark_all(task, Span::from(self.at));
        }
        if let Some((_, _, Some(path))) = told.filter(|(offer, ..)| works && offer.in_place) {
            self.take_over_path(task, path);
        }
        if let Some(Recovered::Ended { report, have, .. }) = was {
            let told = &mut self.story[task];
            (told.verdict, told.messages) = (report, have);
            if report.is_none() {
                // It is no task any more: its end is told, and only messages or usage are left.
                told.here.close(End::Seen(self.at));
            }
        }
    }

    fn phase(&mut self, claim: ClaimKey, name: PhaseName) {
        let Some(mut task) = self.task(claim) else { return };
        if self.phase_of(task) > Some(name) && !self.course.is_whole {
            // Phases never go back: this is another task with the same number, whose beginning is lost.
            self.lose_task(task, Some(self.at));
            self.course.alive.remove(&task);
            let here = self.already();
            task = self.add_task(claim, Origin::Unknown, here);
        }
        let span = Span::from(self.at);
        let marked = self.marked_by_now(task);
        self.end_phase(task, How::Over);
        let entered = self.entered_by_now(task);
        self.story[task].phases.push(Phase { name, span });
        let held = self.is_here(task);
        let (parked, starts) = (held.parked, name == PhaseName::Starting);
        if !starts {
            held.asking = None;
            self.end_retry(task, Tried::Start, How::Over);
        }
        match name {
            PhaseName::AwaitingDirectory => {
                let holder = parked.and_then(|holder| self.task(holder));
                let reason = WaitReason::Directory { holder, parked: parked.is_some() };
                self.wait_in_phase(task, reason, span);
            }
            PhaseName::AwaitingSlot => {
                self.take_path(task, entered);
                self.wait_in_phase(task, WaitReason::Slot, span);
            }
            PhaseName::AwaitingRoot => {
                self.take_path(task, entered);
                // Where it is not known what the collector does, the marks are known when the preparation begins.
                if !self.course.is_in_doubt() && self.mark_all(task, span) {
                    self.wait_in_phase(task, WaitReason::Collector, span);
                }
            }
            PhaseName::Preparing => {
                for root in self.course.held(task).roots.clone() {
                    self.mark_once(task, &root, marked);
                }
            }
            PhaseName::Running => self.lease_over(task, true),
            PhaseName::Settling => self.lease_over(task, false),
            PhaseName::Reporting | PhaseName::Sealing => {
                self.lease_over(task, false);
                self.free_path(task, How::Over);
            }
            PhaseName::Resolving | PhaseName::Starting => {}
        }
    }

    fn fact(&mut self, fact: &Fact, event: Option<&Event>) {
        match fact {
            Fact::Ready => self.story[self.course.life].ready = Some(self.at),
            Fact::Admitted { claim, task, runtime, slot } => self.admitted((*claim, task, runtime), *slot),
            Fact::Recovered { claim, task, runtime, slot } => {
                self.recovered((*claim, task, runtime), *slot, event);
            }
            Fact::HandedBack { claim, task, reason } => self.handed_back(*claim, task, *reason),
            Fact::Duplicate { task } => {
                if let Some(claim) = self.course.step.claim {
                    self.story[claim].duplicates.push(task.clone());
                } else {
                    self.moment(None, None, What::Fact(fact.clone()));
                }
            }
            Fact::Parked { claim, holder } => {
                let Some(task) = self.task(*claim) else { return };
                let of = self.task(*holder);
                self.free_slot(task, How::Now);
                self.is_here(task).parked = Some(*holder);
                self.waits_for_directory(task, of, true);
            }
            Fact::Unparked { claim, slot } => {
                let Some(task) = self.task(*claim) else { return };
                self.is_here(task).parked = None;
                self.take_slot(task, *slot, Span::from(self.at));
            }
            Fact::Phase { claim, phase } => self.phase(*claim, *phase),
            Fact::Released { claim, .. } => {
                let Some(task) = self.task(*claim) else { return };
                self.is_here(task);
                self.leave(task, How::Now);
            }
            Fact::Reported { .. } | Fact::ReportSuperseded { .. } | Fact::ReportRefused { .. } => {
                self.report_ended(fact);
            }
            Fact::ReportLate { claim } => {
                let Some(task) = self.perhaps_late(*claim) else { return };
                self.course.held(task);
                self.story[task].late.get_or_insert(Span::from(self.at));
            }
            Fact::Ending { claim, why } => {
                let Some(task) = self.task(*claim) else { return };
                self.is_here(task);
                self.story[task].endings.push((self.at, *why));
            }
            Fact::Stopping { phase } => {
                self.course.stopping = true;
                let at = self.at;
                self.story[self.course.life].stopping.push((at, *phase));
            }
            Fact::AccessLost => {
                let span = Span::from(self.at);
                self.story[self.course.life].barred.push(span);
            }
            Fact::AccessBack => {
                let (end, already) = (End::Seen(self.at), self.already());
                let life = &mut self.story[self.course.life];
                if !life.barred.last().is_some_and(Span::is_open) {
                    life.barred.push(already);
                }
                life.barred.iter_mut().rev().take(1).for_each(|barred| barred.close(end));
            }
            Fact::RuntimeGone { runtime } => {
                let runtime = self.runtime(runtime);
                if self.course.online.contains_key(&runtime) || !self.course.is_whole {
                    let nth = self.online(runtime);
                    self.story[runtime].online[nth].gone.get_or_insert(self.at);
                }
                self.moment(None, Some(runtime), What::Fact(fact.clone()));
            }
            Fact::HeldOff => {
                self.course.held_off = true;
                self.moment(None, None, What::Fact(fact.clone()));
            }
            Fact::MessagesRefused { claim, .. } | Fact::UsageLate { claim } | Fact::UsageLost { claim } => {
                let task = self.perhaps_late(*claim);
                self.moment(task, None, What::Fact(fact.clone()));
            }
            _ => self.moment(None, None, What::Fact(fact.clone())),
        }
    }

    fn handed_back(&mut self, claim: ClaimKey, id: &TaskId, reason: crate::reason::FailReason) {
        // One that is taken over from an earlier process was told of already, in this step.
        let again = self.course.claims.get(&claim).copied();
        if again.is_some_and(|task| self.story[task].here.begin.first() == self.at) {
            return;
        }
        let by = self.course.step.claim;
        let runtime = self.course.step.taken.get(&claim).map(|(offer, _)| offer.runtime.clone());
        if let Some(runtime) = runtime {
            self.came((claim, id, &runtime), Origin::HandedBack(by, reason));
        } else {
            let task = self.add_task(claim, Origin::HandedBack(by, reason), Span::from(self.at));
            self.story[task].id = Some(id.clone());
        }
    }

    fn report_ended(&mut self, fact: &Fact) {
        let at = self.at;
        let (claim, fate) = match *fact {
            Fact::Reported { claim, report, tries } => (claim, Fate::Reported { at, report, tries }),
            Fact::ReportSuperseded { claim, status } => (claim, Fate::Superseded { at, status }),
            Fact::ReportRefused { claim, status } => (claim, Fate::Refused { at, status }),
            _ => return,
        };
        let Some(task) = self.perhaps_late(claim) else { return };
        self.course.held(task);
        self.end_retry(task, Tried::Report, How::Over);
        self.story[task].fate = fate;
    }

    /// What follows once everything of a step is told.
    pub(super) fn finish_step(&mut self) {
        for task in std::mem::take(&mut self.course.step.touched) {
            self.settle_retries(task);
            self.settle_start(task);
            let told = &mut self.story[task];
            let known = matches!(told.here.begin, Begin::Seen(_)) || told.here.begin.first() < self.at;
            let over = told.here.end == End::Seen(self.at) && known;
            // Something of it is still to be delivered.
            if over && told.forgotten.is_none() && told.late.is_none() && !self.course.step.unrecorded {
                told.late = Some(Span::from(self.at));
            }
        }
        self.settle_hint();
    }
}
