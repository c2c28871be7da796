//! One step, with everything that it may change.

use super::course::{Course, Held, How, RuntimeNames};
use crate::effect::{Effect, Fact};
use crate::event::ClaimKey;
use crate::id::RuntimeId;
use crate::story::{
    At, Begin, End, Fate, Lease, Moment, Origin, Runtime, RuntimeIx, Span, Story, Task, TaskIx, What,
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
        // Where it is not known what the core did, it is here no longer than this step tells.
        let heard = if self.course.step.unrecorded { self.at.n.saturating_sub(1) } else { self.at.n };
        self.course.alive.insert(ix, Held { heard, ..Held::default() });
        self.course.held(ix);
        ix
    }

    /// The task that an effect names. One that was never told of was there before the records begin, or came while steps were lost.
    pub(super) fn task(&mut self, claim: ClaimKey) -> Option<TaskIx> {
        let known = self.course.claims.get(&claim).copied();
        if self.course.is_whole || known.is_some_and(|known| self.story[known].forgotten.is_none()) {
            return known;
        }
        let here = self.already();
        Some(self.add_task(claim, Origin::Unknown, here))
    }

    /// The task that something is about which may also be delivered when the task is over. If it was never told of, nothing says that it is
    /// still here.
    pub(super) fn perhaps_late(&mut self, claim: ClaimKey) -> Option<TaskIx> {
        let known = self.course.claims.get(&claim).copied();
        let task = self.task(claim)?;
        if known != Some(task) {
            self.story[task].here.close(End::Seen(self.at));
        }
        Some(task)
    }

    /// Something says that the task is here in this step.
    pub(super) fn is_here(&mut self, task: TaskIx) -> &mut Held {
        let here = &mut self.story[task].here;
        if matches!(here.begin, Begin::Before(at) if here.end == End::Seen(at)) {
            here.end = End::Open;
        }
        self.course.hear(task, self.at)
    }

    pub(super) fn moment(&mut self, task: Option<TaskIx>, runtime: Option<RuntimeIx>, what: What) {
        self.story.moments.push(Moment { life: self.course.life, at: self.at, task, runtime, what });
    }

    /// The end of something that goes on.
    pub(super) fn end(&self, span: Span, how: How) -> End {
        self.course.end(span, self.at, how)
    }

    /// The task is over, and everything that it held goes with it. What it holds to its end it has held until it is over; its phases may
    /// have ended before, unseen.
    pub(super) fn leave(&mut self, task: TaskIx, how: How) {
        let before = if how == How::Now { How::Over } else { how };
        self.end_phase(task, before);
        self.free_path(task, before);
        // One that works in a directory of the user may have given its slot up, and has got the same again.
        let in_place = self.story[task].in_place != Some(false);
        self.free_slot(task, if in_place { before } else { how });
        self.free_marks(task, how);
        let heard = self.course.alive.get(&task).map_or(0, |held| held.heard);
        let here = &mut self.story[task].here;
        let end = match how {
            How::Now => End::Seen(self.at),
            How::Over | How::Lost => self.course.doubt(heard).map_or(End::Open, End::After),
        };
        here.close(end);
        if how != How::Lost {
            self.lease_over(task, false);
        }
    }

    /// What may have ended while steps were lost is not open at the end of a life.
    pub(super) fn lose_what_is_in_doubt(&mut self) {
        let tasks: Vec<_> = self.course.alive.iter().map(|(task, held)| (*task, held.heard)).collect();
        for (task, heard) in tasks {
            self.lose_task(task, self.course.doubt(heard));
        }
        let open: Vec<_> =
            self.course.open.iter().filter_map(|op| self.course.ops.get(op).copied()).collect();
        for request in open {
            self.lose_request(request);
        }
        let online: Vec<_> = self.course.online.iter().map(|(runtime, nth)| (*runtime, *nth)).collect();
        for (runtime, nth) in online {
            let end = self.end(self.story[runtime].online[nth].span, How::Lost);
            self.story[runtime].online[nth].span.close(end);
        }
        self.lose_connection();
    }

    /// Nothing more is told of the task, and if steps are lost since it was heard of, it may be over.
    pub(super) fn lose_task(&mut self, task: TaskIx, doubt: Option<At>) {
        self.leave(task, How::Lost);
        self.drop_retries(task, How::Lost);
        if let Some(late) = self.story[task].late {
            let end = self.end(late, How::Lost);
            self.story[task].late.iter_mut().for_each(|late| late.close(end));
        }
        if doubt.is_some() && self.story[task].fate == Fate::Open {
            self.story[task].fate = Fate::Unknown;
        }
    }

    /// What is known of the connection and of the credential is lost with the steps that may have changed it.
    pub(super) fn lose_connection(&mut self) {
        let life = &mut self.story[self.course.life];
        for span in life.linked.last_mut().into_iter().chain(life.barred.last_mut()) {
            span.close(self.course.end(*span, self.at, How::Lost));
        }
    }
}
