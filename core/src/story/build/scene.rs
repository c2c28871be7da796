//! One step, with everything that it may change.

use super::course::{Course, Held, RuntimeNames};
use crate::effect::{Effect, Fact};
use crate::event::ClaimKey;
use crate::id::RuntimeId;
use crate::story::{
    At, End, Fate, Lease, Moment, Origin, Runtime, RuntimeIx, Span, Story, Task, TaskIx, What,
};
use std::collections::BTreeMap;

/// What a step is told into.
#[derive(Debug)]
pub(super) struct Scene<'a> {
    pub(super) story: &'a mut Story,
    pub(super) course: &'a mut Course,
    pub(super) runtimes: &'a mut RuntimeNames,
    pub(super) earlier: &'a BTreeMap<ClaimKey, TaskIx>,
    pub(super) at: At,
}

/// Whether the core says that an event fitted nothing.
pub(super) const fn is_stray(effect: &Effect) -> bool {
    matches!(effect, Effect::Fact { fact: Fact::Stray { .. } })
}

impl Scene<'_> {
    /// A span that begins now, or was there already: nothing tells the beginning of what a life does not know.
    pub(super) const fn already(&self) -> Span {
        Span::before(self.at)
    }

    pub(super) fn runtime(&mut self, id: &RuntimeId) -> RuntimeIx {
        if let Some(known) = self.runtimes.get(id) {
            return *known;
        }
        let ix = RuntimeIx::next(&self.story.runtimes);
        let (id, online) = (id.clone(), Vec::new());
        self.runtimes.insert(id.clone(), ix);
        self.story.runtimes.push(Runtime { id, provider: None, workspace: None, profile: None, online });
        ix
    }

    /// A task that is new in this life.
    pub(super) fn add_task(&mut self, claim: ClaimKey, origin: Origin, here: Span) -> TaskIx {
        let ix = TaskIx::next(&self.story.tasks);
        self.story.tasks.push(Task {
            life: self.course.life,
            claim,
            id: None,
            runtime: None,
            provider: None,
            root: None,
            in_place: None,
            origin,
            before: None,
            here,
            phases: Vec::new(),
            waits: Vec::new(),
            launches: Vec::new(),
            lease: Lease::default(),
            endings: Vec::new(),
            verdict: None,
            fate: Fate::Open,
            late: None,
            messages: 0,
            requests: Vec::new(),
            forgotten: None,
        });
        self.course.claims.insert(claim, ix);
        self.course.alive.insert(ix, Held::default());
        self.course.hear(ix, self.at);
        ix
    }

    /// The task that an effect names. One that was never told of was there before the records begin, or came while steps were lost.
    pub(super) fn task(&mut self, claim: ClaimKey) -> Option<TaskIx> {
        if let Some(known) = self.course.claims.get(&claim) {
            return Some(*known);
        }
        if self.course.is_whole {
            return None;
        }
        let here = self.already();
        Some(self.add_task(claim, Origin::Unknown, here))
    }

    pub(super) fn moment(&mut self, task: Option<TaskIx>, runtime: Option<RuntimeIx>, what: What) {
        self.story.moments.push(Moment { life: self.course.life, at: self.at, task, runtime, what });
    }

    /// When something ended that ends now, and that the task was last heard to have in step `heard`.
    pub(super) fn ends(&self, task: TaskIx) -> End {
        let heard = self.course.alive.get(&task).map_or(0, |held| held.heard);
        self.course.end(heard, self.at)
    }

    /// The task is over, and this step or a lost one ended it. Everything that it held goes with it.
    pub(super) fn leave(&mut self, task: TaskIx, end: End, slot: End) {
        self.end_phase(task, end);
        self.free_slot(task, slot);
        self.free_path(task, end);
        self.free_marks(task, slot);
        self.story[task].here.close(slot);
        self.lease_over(task, false);
    }

    /// What may have ended while steps were lost is not open at the end of a life.
    pub(super) fn lose_what_is_in_doubt(&mut self) {
        let tasks: Vec<_> = self.course.alive.iter().map(|(task, held)| (*task, held.heard)).collect();
        for (task, heard) in tasks {
            if let Some(before) = self.course.doubt(heard) {
                self.lose_task(task, before);
            }
        }
        let open: Vec<_> =
            self.course.open.iter().filter_map(|op| self.course.ops.get(op).copied()).collect();
        for request in open {
            self.lose_request(request);
        }
        let online: Vec<_> = self.course.online.iter().map(|(runtime, nth)| (*runtime, *nth)).collect();
        for (runtime, nth) in online {
            let span = &mut self.story[runtime].online[nth].span;
            if let Some(before) = self.course.doubt(span.begin.first().n) {
                span.close(End::After(before));
            }
        }
        self.lose_connection();
    }

    /// Nothing was heard of the task since before steps were lost.
    pub(super) fn lose_task(&mut self, task: TaskIx, before: At) {
        let end = End::After(before);
        self.leave(task, end, end);
        self.drop_retries(task, end);
        let told = &mut self.story[task];
        if let Some(late) = &mut told.late {
            late.close(end);
        }
        if told.fate == Fate::Open {
            told.fate = Fate::Unknown;
        }
    }

    /// What is known of the connection and of the credential is lost with the steps that may have changed it.
    pub(super) fn lose_connection(&mut self) {
        let life = &mut self.story[self.course.life];
        for span in life.linked.last_mut().into_iter().chain(life.barred.last_mut()) {
            if let Some(before) = self.course.doubt(span.begin.first().n) {
                span.close(End::After(before));
            }
        }
    }
}
