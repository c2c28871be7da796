//! Reads a trace, record by record.

mod course;
mod events;
mod facts;
mod flow;
mod holds;
mod requests;
mod restored;
mod scene;
mod waits;

use super::{At, Begins, Fate, Gap, Life, LifeEnd, LifeIx, Moment, Story, TaskIx, What};
use crate::effect::{Effect, ExitReport};
use crate::event::ClaimKey;
use crate::id::TaskId;
use crate::trace::{self, Checkpoint, Header, Record, Step, StepNumber};
use course::{Course, InStep, RuntimeNames};
use scene::Scene;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Makes a [`Story`] of the header and the records of a trace, taken in their order.
///
/// ```
/// use longshore_core::{
///     config::Config, daemon::Daemon, effect::Effects, event::Event, rng::Seed, story::Story, time::Now,
///     trace::{Header, Record, Step},
/// };
///
/// let (config, now, mut fx) = (Config::default(), Now::default(), Effects::new());
/// let mut builder = Story::builder();
/// builder.header(&Header::new("example", config.clone(), Seed(1), now));
/// let mut daemon = Daemon::new(config, Seed(1), now, &mut fx).expect("defaults are in bounds");
/// for (n, event) in [(0, None), (1, Some(Event::stop()))] {
///     event.iter().for_each(|event| daemon.handle(now, event, &mut fx));
///     let effects = Some(fx.drain().collect());
///     builder.record(&Record::Step(Step { n, mono: now.mono, wall: now.wall, slept: 0, event, effects }));
/// }
/// let story = builder.finish();
/// assert_eq!((story.lives.len(), story.tasks.len()), (1, 0));
/// assert_eq!(story.lives[0].stopping[0].0.n, 1);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Builder {
    story: Story,
    course: Option<Course>,
    runtimes: RuntimeNames,
    /// Claims of earlier lives.
    earlier: BTreeMap<ClaimKey, TaskIx>,
}

impl Builder {
    /// The first line of a segment. One of the same life as before goes on with it, another begins a new life.
    pub fn header(&mut self, header: &Header) {
        if let Some(course) = self.course.as_ref().filter(|course| course.header.same_life(header)) {
            let last = course.last;
            if let Some(from) = header.from
                && last.is_none_or(|last| last < from.n)
            {
                self.missing(last.map_or(0, |last| last + 1), from.n);
            }
            return;
        }
        self.end_life();
        let life = LifeIx::next(&self.story.lives);
        self.story.lives.push(Life {
            source: header.source.clone(),
            core: header.core.clone(),
            slots: header.knows_slots().then_some(header.config.slots),
            start: header.start,
            offset: self.offset(header),
            begins: header.from.map_or(Begins::Created, |from| Begins::Middle(from.n)),
            first: None,
            last: None,
            end: LifeEnd::Unsaid,
            steps: 0,
            without_effects: 0,
            gaps: Vec::new(),
            ready: None,
            linked: Vec::new(),
            barred: Vec::new(),
            stopping: Vec::new(),
        });
        let mut course = Course::new(life, header);
        if let Some(trace::Gap { n, lost }) = header.from.and_then(trace::Origin::gap) {
            self.story[life].gaps.push(Gap { n, lost, after: None, until: None, restored: false });
            course.in_gap = true;
        }
        self.course = Some(course);
    }

    /// Where a life has its place on a common axis: by its wall clock, and never before the end of the one before it.
    fn offset(&self, header: &Header) -> Duration {
        let (Some(first), Some(before)) = (self.story.lives.first(), self.story.lives.last()) else {
            return Duration::ZERO;
        };
        let wall = header.start.wall.0.saturating_sub(first.start.wall.0);
        let wall = Duration::from_millis(u64::try_from(wall).unwrap_or(0));
        wall.max(before.since_story(before.until()))
    }

    /// A record of the life that the last header has begun; without one, nothing is known of what it means, and it is left out. So is a step
    /// that was there already.
    pub fn record(&mut self, record: &Record) {
        match record {
            Record::Header(header) => self.header(header),
            Record::Step(step) => self.step(step),
            Record::Gap(gap) => {
                let begins = self.course.as_ref().and_then(|course| course.last);
                if gap.lost > 0 && begins.is_none_or(|last| last < gap.n) {
                    self.missing(gap.n, gap.n.saturating_add(gap.lost - 1));
                }
            }
            Record::Checkpoint(point) => self.checkpoint(point),
            Record::Note(note) => {
                if let Some(course) = &self.course {
                    let at = At { n: note.n, at: course.now.mono };
                    let (life, what) = (course.life, What::Note(note.text.clone()));
                    self.story.moments.push(Moment { life, at, task: None, runtime: None, what });
                }
            }
            Record::End(end) => {
                if let Some(course) = &self.course {
                    let life = &mut self.story[course.life];
                    if !matches!(life.end, LifeEnd::Exit { .. }) {
                        life.end = LifeEnd::Recording { n: end.n, why: end.why.clone() };
                    }
                }
            }
            Record::Digest(_) => {}
        }
    }

    /// Steps from `n` to `upto` are missing.
    fn missing(&mut self, n: StepNumber, upto: StepNumber) {
        let Some(course) = &mut self.course else { return };
        let life = &mut self.story[course.life];
        let after = life.last;
        let lost = (upto - n).saturating_add(1);
        life.gaps.push(Gap { n, lost, after, until: None, restored: false });
        course.doubt_after(after.unwrap_or(At { n: 0, at: course.header.start.mono }));
        course.in_gap = true;
        course.last = Some(upto);
    }

    fn step(&mut self, step: &Step) {
        let Some(course) = &mut self.course else { return };
        if course.exited || course.last.is_some_and(|last| last >= step.n) {
            return;
        }
        let expected = match (course.last, course.header.from) {
            (Some(last), _) => last + 1,
            (None, Some(from)) => from.n.saturating_add(1),
            (None, None) => 0,
        };
        if expected < step.n {
            self.missing(expected, step.n - 1);
        }
        let Some(course) = &mut self.course else { return };
        course.now.advance(step.now());
        let at = At { n: step.n, at: course.now.mono };
        let life = &mut self.story[course.life];
        if std::mem::take(&mut course.in_gap)
            && let Some(gap) = life.gaps.last_mut()
        {
            gap.until = Some(at);
        }
        if step.effects.is_none() {
            let before = life.last.unwrap_or(At { n: step.n.saturating_sub(1), at: at.at });
            course.doubt_after(before);
            life.without_effects += 1;
        }
        life.first.get_or_insert(at);
        life.last = Some(at);
        life.steps += 1;
        // What was the end of the recording is none.
        if matches!(life.end, LifeEnd::Recording { .. }) {
            life.end = LifeEnd::Unsaid;
        }
        course.last = Some(step.n);
        let effects = step.effects.as_deref();
        course.step = InStep { unrecorded: effects.is_none(), ..InStep::default() };
        let mut scene = Scene {
            story: &mut self.story,
            course,
            runtimes: &mut self.runtimes,
            earlier: &self.earlier,
            at,
        };
        scene.course.step.stray = effects.is_some_and(|effects| effects.iter().any(scene::is_stray));
        if let Some(event) = &step.event {
            scene.event(event);
        }
        for effect in effects.unwrap_or_default() {
            scene.effect(effect, step.event.as_ref());
        }
        scene.finish_step();
        if let Some(Effect::Exit { report }) = effects.and_then(<[Effect]>::last) {
            self.exit(at, report);
        }
    }

    fn exit(&mut self, at: At, report: &ExitReport) {
        let Some(course) = &mut self.course else { return };
        course.exited = true;
        let abandoned: BTreeSet<&TaskId> = report.abandoned.iter().collect();
        let kept: BTreeSet<&TaskId> = report.kept.iter().collect();
        for task in course.alive.keys() {
            let task = &mut self.story[*task];
            let Some(id) = task.id.as_ref().filter(|_| task.fate == Fate::Open) else { continue };
            if kept.contains(id) {
                task.fate = Fate::Kept;
            } else if abandoned.contains(id) {
                task.fate = Fate::Abandoned;
            }
        }
        self.story[course.life].end = LifeEnd::Exit { at, report: report.clone() };
        let what = What::Exit(report.clone());
        self.story.moments.push(Moment { life: course.life, at, task: None, runtime: None, what });
    }

    fn checkpoint(&mut self, point: &Checkpoint) {
        let Some(course) = &mut self.course else { return };
        let begins = course.header.from.is_some_and(|from| from.n == point.n) && course.last.is_none();
        let follows = course.last.is_some_and(|last| last <= point.n);
        // A life of which nothing is unknown needs none.
        let tells = begins || (follows && course.is_in_doubt());
        if !tells {
            return;
        }
        let mut scene = Scene {
            at: At { n: point.n, at: course.now.mono },
            story: &mut self.story,
            course,
            runtimes: &mut self.runtimes,
            earlier: &self.earlier,
        };
        if !scene.restore(&point.state) {
            return;
        }
        let life = &mut self.story[course.life];
        if begins {
            life.begins = Begins::Checkpoint(point.n);
        }
        if let Some(gap) = life.gaps.last_mut().filter(|_| course.in_gap) {
            gap.restored = true;
        }
        course.last = Some(point.n);
    }

    /// What is known so far: things that go on are open in it.
    pub const fn so_far(&self) -> &Story {
        &self.story
    }

    /// Ends the story where the records end.
    pub fn finish(mut self) -> Story {
        self.end_life();
        self.story
    }

    /// Nothing more is told of this life: what steps were lost after may have ended unseen.
    fn end_life(&mut self) {
        let Some(mut course) = self.course.take() else { return };
        let at = self.story[course.life].last.unwrap_or_default();
        let (runtimes, earlier) = (&mut self.runtimes, &self.earlier);
        Scene { story: &mut self.story, course: &mut course, runtimes, earlier, at }.lose_what_is_in_doubt();
        // Not by `append`, which takes all that there is apart for every life.
        self.earlier.extend(course.claims);
    }
}
