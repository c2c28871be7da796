//! A life in which a rule is broken: found in a trace, made small, and written down as a trace or as a test.

use super::address::Addresses;
use super::runner::{Input, Runner};
use super::shrink::{Budget, shrink_from};
use super::simplify::simplify;
use super::start::Start;
use crate::observe::Violation;
use crate::time::Now;
use crate::trace::{Header, Reader, Record, Step, TraceError, encode};
use std::panic::{AssertUnwindSafe, catch_unwind};
use thiserror::Error;

/// The rule that stands for a panic of the core.
pub const PANIC: &str = "panic";

/// A script that breaks a rule in a daemon of this core.
#[derive(Clone, Debug)]
pub struct Case {
    /// How the daemon is created.
    pub start: Start,
    /// What happens to it.
    pub script: Vec<Input>,
    /// The rule.
    pub rule: String,
    /// How it is broken.
    pub story: String,
    /// Whether it is broken only when the world works again and the daemon does not come to rest.
    pub healed: bool,
}

/// Looks for a case in the records of a trace.
#[derive(Debug)]
pub struct Search {
    rule: Option<String>,
    life: Option<Life>,
    found: Option<Case>,
    /// Lives that do not begin with a creation.
    headless: u64,
    /// Made from the log of another daemon: no core decided what is in them.
    imported: u64,
    lives: u64,
    /// Events that were gone through.
    events: u64,
    /// Lives of which steps are missing, so that they were gone through up to there.
    cut: u64,
    /// What is put in beside what the header says, for tests.
    #[cfg(feature = "canary")]
    bug: Option<super::bug::Bug>,
}

/// What a search has gone through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Lives that were gone through from their beginning.
    pub lives: u64,
    /// Lives that were left out, as they begin in their middle.
    pub headless: u64,
    /// Lives that were left out, as they were made from the log of another daemon.
    pub imported: u64,
    /// Events of those that were gone through.
    pub events: u64,
    /// How many of those were gone through up to a gap alone.
    pub cut: u64,
}

#[derive(Debug)]
struct Life {
    start: Start,
    runner: Runner,
    addresses: Addresses,
    /// Steps are missing: what follows says nothing.
    broken_off: bool,
}

impl Search {
    /// Looks for this rule, or for any.
    pub fn new(rule: Option<&str>) -> Self {
        Self {
            rule: rule.map(str::to_owned),
            life: None,
            found: None,
            headless: 0,
            imported: 0,
            lives: 0,
            events: 0,
            cut: 0,
            #[cfg(feature = "canary")]
            bug: None,
        }
    }

    /// The same in a core with a bug.
    #[cfg(feature = "canary")]
    #[must_use]
    pub fn with(self, bug: super::bug::Bug) -> Self {
        Self { bug: Some(bug), ..self }
    }

    /// What was gone through so far, and what could not be.
    pub const fn seen(&self) -> Seen {
        let Self { lives, headless, imported, events, cut, .. } = *self;
        Seen { lives, headless, imported, events, cut }
    }

    /// Takes one record. Returns whether a case is found; then nothing more is needed.
    pub fn record(&mut self, record: Record) -> bool {
        match record {
            Record::Header(header) => {
                self.end_life();
                if self.found.is_none() {
                    self.begin(&header);
                }
            }
            Record::Step(step) => self.step(step),
            Record::Gap(_) => {
                if let Some(life) = self.life.as_mut().filter(|life| !life.broken_off) {
                    life.broken_off = true;
                    self.cut += 1;
                }
            }
            _ => {}
        }
        self.found.is_some()
    }

    /// Ends the search. A rule about what a daemon comes to is looked for at the end of a life.
    pub fn finish(mut self) -> Option<Case> {
        self.end_life();
        self.found
    }

    fn begin(&mut self, header: &Header) {
        if header.is_imported() {
            self.imported += 1;
            return;
        }
        if header.from.is_some() {
            self.headless += 1;
            return;
        }
        #[allow(unused_mut, reason = "with the feature it is changed")]
        let mut start = Start::of(header);
        #[cfg(feature = "canary")]
        {
            start.bug = self.bug;
        }
        let Ok(runner) = Runner::begin(&start) else { return };
        let mut addresses = Addresses::new();
        addresses.asked_here(runner.effects());
        self.lives += 1;
        self.life = Some(Life { start, runner, addresses, broken_off: false });
    }

    fn step(&mut self, step: Step) {
        let Some(life) = self.life.as_mut().filter(|life| !life.broken_off) else { return };
        let now = step.now();
        if let Some(mut event) = step.event
            && life.addresses.translate(&mut event)
        {
            self.events += 1;
            let fed = catch_unwind(AssertUnwindSafe(|| life.runner.feed(now, event).len()));
            let broken = match fed {
                Ok(_) => first(life.runner.violations(), self.rule.as_deref()),
                Err(_) => Some((PANIC.to_owned(), "the core panics".to_owned())),
            };
            if let Some((rule, story)) = broken {
                let Some(Life { start, runner, .. }) = self.life.take() else { return };
                let script = runner.script;
                self.found = Some(Case { start, script, rule, story, healed: false });
                return;
            }
            life.addresses.asked_here(life.runner.effects());
        }
        life.addresses.asked_there(step.effects.as_deref().unwrap_or_default());
    }

    fn end_life(&mut self) {
        let Some(Life { start, mut runner, .. }) = self.life.take() else { return };
        if self.found.is_some() {
            return;
        }
        let script = runner.script.clone();
        runner.heal();
        if let Some((rule, story)) = first(runner.violations(), self.rule.as_deref()) {
            self.found = Some(Case { start, script, rule, story, healed: true });
        }
    }
}

fn first(violations: &[Violation], rule: Option<&str>) -> Option<(String, String)> {
    let found = violations.iter().find(|found| rule.is_none_or(|rule| rule == found.rule))?;
    Some((found.rule.to_owned(), found.story.clone()))
}

impl Case {
    /// Makes it small: leaves out lines, then makes settings, times and ids plain, as long as the same rule is broken. Ends early, with the best so far, once
    /// `stop` says so; `see` is told how many lines are left.
    #[must_use]
    pub fn shrunk(&self, stop: &dyn Fn() -> bool, see: &mut dyn FnMut(usize)) -> Self {
        let mut small = self.clone();
        for _ in 0..2 {
            let mut story = small.story.clone();
            let fails = |script: &[Input]| match breaks(&small.start, script, &self.rule, self.healed, stop) {
                // What fails is kept, so that it is the story of the best.
                Some(found) => {
                    story = found;
                    see(script.len());
                    true
                }
                None => false,
            };
            let script = shrink_from(&small.start, &small.script, Budget { stop }, fails);
            (small.script, small.story) = (script, story);
            simplify(&mut small, stop);
        }
        small
    }

    /// As a trace, with what this core does.
    ///
    /// # Errors
    /// If serialisation fails, which no record is known to make it do.
    pub fn trace(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut out = Vec::new();
        let Start { config, seed, now, .. } = &self.start;
        let Ok(mut runner) = Runner::begin(&self.start) else { return Ok(out) };
        encode::header(&mut out, &Header::new("shrink", config.clone(), *seed, *now))?;
        encode::start(&mut out, *now, runner.effects())?;
        encode::note(&mut out, 0, &format!("rule {}: {}", self.rule, self.story))?;
        for (n, input) in (1..).zip(&self.script) {
            let Input::Event { now, event } = input else { continue };
            let fed = catch_unwind(AssertUnwindSafe(|| runner.feed(*now, event.clone()).len()));
            encode::step(&mut out, n, *now, event, runner.effects())?;
            if fed.is_err() {
                break;
            }
        }
        Ok(out)
    }
}

/// How a script breaks a rule, if it does. It is said not to once `stop` says so, which is asked before each line.
pub(super) fn breaks(
    start: &Start,
    script: &[Input],
    rule: &str,
    heal: bool,
    stop: &dyn Fn() -> bool,
) -> Option<String> {
    let story = |runner: &Runner| first(runner.violations(), Some(rule)).map(|(_, story)| story);
    let ran = catch_unwind(AssertUnwindSafe(|| {
        let mut runner = Runner::begin(start).ok()?;
        for input in script {
            if stop() {
                return None;
            }
            runner.take(input);
            if let Some(story) = story(&runner) {
                // One that is broken sooner needs no healing: it is another failure.
                return Some(story).filter(|_| !heal);
            }
        }
        if heal {
            runner.heal();
        }
        story(&runner)
    }));
    match ran {
        Ok(story) => story.filter(|_| rule != PANIC),
        Err(_) => Some("the core panics".to_owned()).filter(|_| rule == PANIC),
    }
}

/// Why a trace cannot be held to a rule.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CaseError {
    /// It cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// It is not one life from its beginning.
    #[error("line {line}: a trace of one life from its beginning is needed")]
    NoLife {
        /// Where it is something else.
        line: u64,
    },
}

/// Plays the events of a trace to this core, which may number its requests otherwise than the one that recorded, and lets the world work again at the
/// end. Returns how the rule is broken: not at all, if all is well.
///
/// # Errors
/// If it cannot be read, or is not one life from its beginning.
pub fn held_to(trace: &str, rule: &str) -> Result<Vec<Violation>, CaseError> {
    held(trace, rule, |_| ())
}

/// The same for a core with a bug.
///
/// # Errors
/// As [`held_to`].
#[cfg(feature = "canary")]
pub fn held_to_with(trace: &str, rule: &str, bug: super::bug::Bug) -> Result<Vec<Violation>, CaseError> {
    held(trace, rule, |start| start.bug = Some(bug))
}

fn held(trace: &str, rule: &str, change: impl FnOnce(&mut Start)) -> Result<Vec<Violation>, CaseError> {
    let mut reader = Reader::new(trace.as_bytes())?;
    let mut start = Start::of(reader.header());
    change(&mut start);
    let life = reader.header().from.is_none();
    let mut runner = Runner::begin(&start).ok().filter(|_| life).ok_or(CaseError::NoLife { line: 1 })?;
    let mut addresses = Addresses::new();
    addresses.asked_here(runner.effects());
    while let Some(record) = reader.next() {
        let step = match record? {
            Record::Step(step) => step,
            Record::Header(_) | Record::Gap(_) => return Err(CaseError::NoLife { line: reader.line() }),
            _ => continue,
        };
        let now: Now = step.now();
        if let Some(mut event) = step.event
            && addresses.translate(&mut event)
        {
            runner.feed(now, event);
            addresses.asked_here(runner.effects());
        }
        addresses.asked_there(step.effects.as_deref().unwrap_or_default());
    }
    if runner.violations().iter().all(|found| found.rule != rule) {
        runner.heal();
    }
    Ok(runner.violations().iter().filter(|found| found.rule == rule).cloned().collect())
}
