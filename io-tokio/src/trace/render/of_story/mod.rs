//! The drawing of a story: lanes for the daemon, for what it asks for, for runtimes, slots and tasks.

mod fleet;
mod steps;
mod tasks;

pub use steps::Steps;

use super::axis::duration;
use super::drawing::{Arrow, Bar, Drawing, Group, Lane, Open, Point, StepIndex, Unknown, Violation};
use super::look::{ArrowKind, Kind};
use super::text::Text;
use crate::trace::words::count;
use longshore_core::observe::catalog;
use longshore_core::story::{At, Begin, Begins, ClaimIx, Hint, Life, Span, Story};
use longshore_core::time::Instant;
use std::time::Duration;

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// In which life; the first is 0.
    pub life: usize,
    /// In which step of that life.
    pub n: u64,
    /// Id of the rule.
    pub rule: &'static str,
    /// What happened.
    pub story: String,
}

/// What is needed to draw a story, and where its lanes are.
struct Scene<'a> {
    story: &'a Story,
    steps: &'a Steps,
    /// The beginning of the drawing, in milliseconds of the story.
    base: u64,
    /// Lane of each task; tasks that are the same claim in several lives share one.
    task_lanes: Vec<u32>,
    /// Numbers of the first lanes of requests, of runtimes and of tasks.
    requests: u32,
    runtimes: u32,
    tasks: u32,
}

/// Draws a story. `facts` are what else there is to say about the whole; who judged the steps says how many.
pub fn of_story(
    title: &str,
    story: &Story,
    steps: Steps,
    broken: &[Broken],
    facts: Vec<(Text, Text)>,
) -> Drawing {
    let slots = fleet::slot_numbers(story);
    let runtimes = fleet::DAEMON_LANES + fleet::REQUEST_LANES;
    let scene = Scene {
        story,
        steps: &steps,
        base: base(story, &steps),
        task_lanes: tasks::lanes(story),
        requests: fleet::DAEMON_LANES,
        runtimes,
        tasks: runtimes + story.runtimes.len() as u32 + slots.len() as u32,
    };
    let groups = vec![
        group("Daemon", [scene.daemon(), scene.requests()].concat()),
        group("Runtimes", scene.runtimes()),
        group("Slots", scene.slots(&slots)),
        group("Tasks", scene.tasks()),
    ];
    let mut drawing = Drawing {
        title: title.into(),
        facts: scene.facts(facts),
        start: scene.wall(),
        begin: 0,
        end: 0,
        groups,
        arrows: scene.arrows(),
        judged: 0,
        violations: broken.iter().map(|it| scene.violation(it)).collect(),
        unknown: scene.unknown(),
        steps: Vec::new(),
    };
    let base = scene.base;
    drawing.steps = steps.rows(story, base);
    drawing.end = end(&drawing);
    drawing
}

/// Where the axis of the drawing has its 0: the first step that is there, in milliseconds after the beginning of the first life.
pub fn base(story: &Story, steps: &Steps) -> u64 {
    let first = steps.first().and_then(|(life, at)| Some(story.lives.get(life)?.since_story(at)));
    first.map_or(0, millis)
}

fn group(name: &str, lanes: Vec<Lane>) -> Group {
    Group { name: name.into(), lanes }
}

/// Where the drawing ends: with the last of everything.
fn end(drawing: &Drawing) -> u64 {
    let bars = drawing.lanes().flat_map(|(_, lane)| lane.bars.iter().map(|bar| bar.end));
    let marks = drawing.lanes().flat_map(|(_, lane)| lane.marks.iter().map(|mark| mark.at));
    bars.chain(marks).chain(drawing.steps.iter().map(|row| row.at)).max().unwrap_or(0)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Scene<'_> {
    /// A time of a life in the drawing.
    fn at(&self, life: usize, at: Instant) -> u64 {
        millis(self.story.lives[life].since_story(at)).saturating_sub(self.base)
    }

    fn step(&self, life: usize, at: At) -> Option<StepIndex> {
        self.steps.index(life, at.n)
    }

    /// A bar for a span of a life.
    fn bar(&self, kind: Kind, label: impl Into<Text>, life: usize, span: &Span) -> Bar {
        let (from, to) = span.known(self.story.lives[life].until());
        let mut bar = Bar::new(kind, label, self.at(life, from), self.at(life, to));
        bar.open = Open { begin: matches!(span.begin, Begin::Before(_)), end: span.end.seen().is_none() };
        bar.first = span.begin.seen().and_then(|at| self.step(life, at));
        bar.last = span.end.seen().and_then(|at| self.step(life, at));
        bar
    }

    /// Lane and time at which a claim was sent, and at which its answer came.
    fn claim(&self, claim: ClaimIx) -> (Point, Point) {
        let request = &self.story[self.story[claim].request];
        let lane = self.request_lane(request);
        let (from, to) = request.span.known(self.story[request.life].until());
        (
            Point { lane, at: self.at(request.life.get(), from) },
            Point { lane, at: self.at(request.life.get(), to) },
        )
    }

    fn arrows(&self) -> Vec<Arrow> {
        let hints = self.story.hints.iter().filter_map(|hint| {
            let from = Point { lane: self.hint_lane(hint), at: self.at(hint.life.get(), hint.at.at) };
            let claim = hint.claim?;
            let sent = self.story[self.story[claim].request].span.begin.seen();
            let step = sent.and_then(|at| self.step(hint.life.get(), at));
            Some(Arrow { kind: ArrowKind::Hint, from, to: self.claim(claim).0, step })
        });
        let claims = self.story.tasks.iter().enumerate().filter_map(|(i, task)| {
            let from = self.claim(task.origin.claim()?).1;
            let begin = task.here.begin.seen()?;
            let to = Point { lane: self.tasks + self.task_lanes[i], at: self.at(task.life.get(), begin.at) };
            Some(Arrow { kind: ArrowKind::Claim, from, to, step: self.step(task.life.get(), begin) })
        });
        hints.chain(claims).collect()
    }

    fn hint_lane(&self, hint: &Hint) -> u32 {
        hint.runtime.map_or(self.requests, |runtime| self.runtimes + runtime.get() as u32)
    }

    fn violation(&self, broken: &Broken) -> Violation {
        let step = self.steps.index(broken.life, broken.n);
        let life = self.story.lives.get(broken.life);
        let at = step.and_then(|step| self.steps.instant(step)).zip(life);
        let says = catalog().iter().flat_map(|family| family.entries).find(|entry| entry.id == broken.rule);
        Violation {
            rule: broken.rule.into(),
            says: says.map_or("", |entry| entry.says).into(),
            story: broken.story.as_str().into(),
            at: at.map_or(0, |(at, life)| millis(life.since_story(at)).saturating_sub(self.base)),
            step,
        }
    }

    /// Gaps, and the times between lives.
    fn unknown(&self) -> Vec<Unknown> {
        let mut all = Vec::new();
        let mut before: Option<u64> = None;
        for life in &self.story.lives {
            let at = |at: Instant| millis(life.since_story(at)).saturating_sub(self.base);
            let (Some(first), Some(last)) = (life.first, life.last) else { continue };
            if let Some(end) = before
                && at(first.at) > end
            {
                let why = "no daemon was recorded".into();
                all.push(Unknown { begin: end, end: at(first.at), why });
            }
            for gap in &life.gaps {
                let (Some(after), Some(until)) = (gap.after, gap.until) else { continue };
                let why = format!("{} not recorded", count(gap.lost, "step was", "steps were")).into();
                all.push(Unknown { begin: at(after.at), end: at(until.at), why });
            }
            before = Some(at(last.at));
        }
        all
    }

    fn wall(&self) -> Option<i64> {
        let life = self.story.lives.first()?;
        life.start.wall.0.checked_add(i64::try_from(self.base).ok()?)
    }

    fn facts(&self, more: Vec<(Text, Text)>) -> Vec<(Text, Text)> {
        let story = self.story;
        let mut facts: Vec<(Text, Text)> = Vec::new();
        let mut add = |name: &str, value: String| facts.push((name.into(), value.into()));
        if let Some(life) = story.lives.first() {
            if life.is_imported() {
                add("imported from", format!("the log of {}", life.core));
            } else {
                add("recorded by", format!("{} of core {}", life.source, life.core));
            }
        }
        let (steps, lives) = (story.lives.iter().map(|life| life.steps).sum::<u64>(), story.lives.len());
        add("steps", steps.to_string());
        if lives > 1 {
            add("lives", lives.to_string());
        }
        if let Some(Begins::Checkpoint(n) | Begins::Middle(n)) = story.lives.first().map(|life| life.begins) {
            add("begins", format!("after step {n}"));
        }
        add("tasks", story.tasks.len().to_string());
        let known: u64 = story.lives.iter().filter_map(recorded).sum();
        add("recorded for", duration(known));
        let without: u64 = story.lives.iter().map(|life| life.without_effects).sum();
        if without > 0 {
            add("steps without effects", without.to_string());
        }
        if story.missing() > 0 {
            add("steps that are missing", story.missing().to_string());
        }
        facts.extend(more);
        facts
    }
}

/// How long a life was recorded, in milliseconds.
fn recorded(life: &Life) -> Option<u64> {
    Some(millis(life.last?.at.since(life.first?.at)))
}
