//! Holds a recorded history to all rules.
//!
//! A rule looks at events and effects as they were recorded, and at the daemon, which the replay provides. So a life is judged from its creation
//! on; behind a gap, or where the recorded core did something else than this one, it is judged from the next checkpoint on by those rules
//! that [hold from the middle](holds_from_the_middle). What was imported cannot be replayed: it is judged by those that
//! [need no more than a log](needs_no_more_than_a_log).

use super::format::{FORMAT, Header, Record, StepNumber};
use super::replay::{Mode, Replay, ReplayError, Report, Seen};
use super::trouble::Place;
use crate::daemon::Daemon;
use crate::effect::{Effect, Effects};
use crate::event::Event;
use crate::id::OpId;
use crate::observe::{LogRules, Rules, Step, Violation, holds_from_the_middle, needs_no_more_than_a_log};
use crate::script::{effect_label, event_label};
use crate::time::Instant;
use std::collections::{BTreeSet, VecDeque};

/// Steps among which those are looked for that have to do with a violation.
const NEAR: usize = 256;
/// Most of them that are named.
const MOST_NEAR: usize = 12;
/// Violations that are kept.
const MOST: usize = 1_000;
/// Places that are kept where the recorded core did something else.
const MOST_DIVERGED: usize = 20;

/// A step that has to do with a violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Near {
    /// The step.
    pub n: StepNumber,
    /// When it was.
    pub at: Instant,
    /// What happened, and what the daemon did about it, in short.
    pub text: String,
}

/// A rule that a history breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// In which life, from 1, as they are in the trace.
    pub life: u64,
    /// Where the step stands.
    pub at: Place,
    /// Which rule, in which step, and how.
    pub violation: Violation,
    /// Whether the effects of the step are others than those of this core: then it is they that break the rule, not this core.
    pub recorded_only: bool,
    /// The steps that have to do with it, the last one being the step itself.
    pub near: Vec<Near>,
}

/// What came of it, but for the findings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audited {
    /// Steps that were judged by all rules.
    pub whole: u64,
    /// Steps that were judged by the rules that hold from the middle.
    pub middle: u64,
    /// Steps of another daemon's log that were judged by the rules that need no more than that.
    pub logged: u64,
    /// Whether a log does not say how many slots there are: then it is not known how many tasks may be at work.
    pub unbounded: bool,
    /// Steps whose effects nobody recorded, or that cannot be read: what this core does in them was judged.
    pub unrecorded: u64,
    /// Steps where the recorded core did something else, each with its life, from 1: the first 20.
    pub diverged: Vec<(u64, StepNumber)>,
    /// How many there are.
    pub divergences: u64,
    /// Violations that were left out, being too many.
    pub more: u64,
}

impl Audited {
    /// Steps that were judged by any rules.
    pub const fn judged(&self) -> u64 {
        self.whole + self.middle + self.logged
    }
}

#[derive(Debug)]
struct Lately {
    n: StepNumber,
    at: Instant,
    event: Option<Event>,
    effects: Vec<Effect>,
}

/// What is found, with what it is told by.
#[derive(Debug, Default)]
struct Findings {
    list: Vec<Finding>,
    lately: VecDeque<Lately>,
    life: u64,
}

/// A history that is being judged, record by record.
#[derive(Debug)]
pub struct Audit {
    replay: Replay,
    header: Option<Header>,
    rules: Option<Rules>,
    /// The rules for what was imported.
    logged: Option<LogRules>,
    /// Whether the rules have not even seen the creation.
    fresh: bool,
    middle: bool,
    findings: Findings,
    audited: Audited,
}

impl Default for Audit {
    fn default() -> Self {
        Self {
            replay: Replay::new(Mode::Strict),
            header: None,
            rules: None,
            logged: None,
            fresh: false,
            middle: false,
            findings: Findings::default(),
            audited: Audited::default(),
        }
    }
}

impl Audit {
    /// The rules that are broken so far, at most 1 000 times.
    pub fn findings(&self) -> &[Finding] {
        &self.findings.list
    }

    /// What was judged so far.
    pub const fn audited(&self) -> &Audited {
        &self.audited
    }

    /// What was replayed so far.
    pub const fn report(&self) -> &Report {
        self.replay.report()
    }

    /// Judges one record; the first one is a header.
    ///
    /// # Errors
    /// If the record is of no use: settings that are none, or a checkpoint that cannot be gone on from. What follows can be judged
    /// nevertheless.
    pub fn record(&mut self, at: Place, record: Record) -> Result<(), ReplayError> {
        let knew = self.replay.knows_state();
        let begins = match &record {
            Record::Header(header) => {
                let same = self.header.as_ref().is_some_and(|old| old.same_life(header));
                self.findings.life += u64::from(!same);
                if !same {
                    self.logged = header.is_imported().then(|| LogRules::new(&header.config));
                }
                let begins = header.from.is_none();
                self.header = Some((**header).clone());
                begins
            }
            _ => false,
        };
        let point = match &record {
            Record::Checkpoint(point) => Some(point.clone()),
            _ => None,
        };
        let n = point.as_ref().map_or(0, |point| point.n);
        let done = if self.logged.is_some() { self.as_logged(at, record) } else { self.replayed(at, record) };
        let config = self.header.as_ref().map(|header| &header.config);
        match (done, config) {
            (Ok(()), Some(config)) if self.replay.knows_state() => {
                if begins {
                    (self.rules, self.fresh, self.middle) = (Some(Rules::new(config)), true, false);
                    self.findings.lately.clear();
                } else if !knew {
                    (self.rules, self.fresh) = (Some(Rules::from_the_middle(config, n)), false);
                    self.middle = true;
                    self.findings.lately.clear();
                }
                Ok(())
            }
            (Err(ReplayError::Diverged(what)), _) => {
                self.audited.divergences += 1;
                if self.audited.diverged.len() < MOST_DIVERGED {
                    self.audited.diverged.push((what.life, what.n));
                }
                self.lose();
                // The state is another one, and it is all there.
                point.map_or(Ok(()), |point| self.record(at, Record::Checkpoint(point)))
            }
            (Err(error @ ReplayError::Config { .. }), _) => {
                self.lose();
                Err(error)
            }
            (done, _) => {
                if !self.replay.knows_state() {
                    self.rules = None;
                }
                done
            }
        }
    }

    fn lose(&mut self) {
        self.replay.lose_state();
        self.rules = None;
    }

    fn replayed(&mut self, at: Place, record: Record) -> Result<(), ReplayError> {
        let Self { replay, rules, fresh, findings, audited, middle, header, .. } = self;
        // Another version may do something else for good reasons.
        let comparable =
            header.as_ref().is_some_and(|header| header.is_of_this_release() && header.format == FORMAT);
        replay.record(at.line, record, &mut |seen: Seen<'_>| {
            let Some(rules) = rules else { return };
            if std::mem::take(fresh)
                && seen.n > 0
                && let Some(header) = header
            {
                created(rules, header);
            }
            let effects = seen.recorded.unwrap_or(seen.effects);
            let recorded_only = effects != seen.effects;
            if recorded_only && !comparable {
                return;
            }
            let before = rules.violations().len();
            rules.observe(&Step {
                now: seen.now,
                event: seen.event,
                effects,
                view: seen.daemon.view(),
                wakeup: seen.daemon.next_wakeup().map(|(at, _)| at),
            });
            let judged = if *middle { &mut audited.middle } else { &mut audited.whole };
            *judged += 1;
            audited.unrecorded += u64::from(seen.recorded.is_none());
            let (event, effects) = (seen.event.cloned(), effects.to_vec());
            findings.saw(Lately { n: seen.n, at: seen.now.mono, event, effects });
            audited.more += findings.take(at, &rules.violations()[before..], recorded_only);
        })
    }

    /// Judges a record of what was imported.
    fn as_logged(&mut self, at: Place, record: Record) -> Result<(), ReplayError> {
        let step = match &record {
            Record::Step(step) => Some(step.clone()),
            _ => None,
        };
        let gaps = self.replay.report().gaps;
        let done = self.replayed(at, record);
        let unread = step.as_ref().is_some_and(|step| step.effects.is_none());
        let whole = self.replay.report().gaps == gaps && !unread;
        let Self { header: Some(header), logged: Some(rules), findings, audited, .. } = self else {
            return done;
        };
        if !whole || done.is_err() {
            // What is missing may be the end of whatever is on.
            *rules = LogRules::new(&header.config);
            findings.lately.clear();
        }
        if let (Ok(()), Some(step)) = (&done, step) {
            let (before, effects) = (rules.violations().len(), step.effects.unwrap_or_default());
            rules.observe(step.n, step.event.as_ref(), &effects);
            audited.logged += 1;
            audited.unbounded |= !rules.is_bounded();
            findings.saw(Lately { n: step.n, at: step.mono, event: step.event, effects });
            audited.more += findings.take(at, &rules.violations()[before..], false);
        }
        done
    }

    /// Whether this rule was held to a step at least.
    pub fn has_held(&self, id: &str) -> bool {
        let audited = &self.audited;
        let held = audited.whole > 0
            || (audited.middle > 0 && holds_from_the_middle(id))
            || (audited.logged > 0 && self.is_logged(id));
        held && !crate::observe::needs_rest(id)
    }

    fn is_logged(&self, id: &str) -> bool {
        needs_no_more_than_a_log(id) && !(self.audited.unbounded && id == "I1")
    }

    /// The rules that could not be held to all of the trace. Those that need a daemon at rest are none of them.
    pub fn blind(&self) -> impl Iterator<Item = &'static str> {
        let audited = &self.audited;
        let partly = audited.middle > 0 || audited.whole + audited.logged < self.replay.report().steps;
        crate::observe::catalog::rules()
            .map(|entry| entry.id)
            .filter(move |id| {
                audited.judged() == 0
                    || (partly && !holds_from_the_middle(id))
                    || (audited.logged > 0 && !self.is_logged(id))
            })
            .filter(|id| !crate::observe::needs_rest(id))
    }
}

impl Findings {
    fn saw(&mut self, step: Lately) {
        if self.lately.len() == NEAR {
            self.lately.pop_front();
        }
        self.lately.push_back(step);
    }

    /// Takes what the last step breaks. Returns how much is too much.
    fn take(&mut self, at: Place, broken: &[Violation], recorded_only: bool) -> u64 {
        let n = self.lately.back().map_or(0, |last| last.n);
        let mut more = 0;
        for violation in broken {
            if self.list.len() == MOST {
                more += 1;
                continue;
            }
            let violation = Violation { step: n, ..violation.clone() };
            let near = near(&self.lately, &violation.story);
            self.list.push(Finding { life: self.life, at, violation, recorded_only, near });
        }
        more
    }
}

/// Shows the rules a creation that was not recorded.
fn created(rules: &mut Rules, header: &Header) {
    let mut effects = Effects::new();
    let (now, config) = (header.start, header.config.clone());
    if let Ok(daemon) = Daemon::new(config, header.seed, now, &mut effects) {
        let wakeup = daemon.next_wakeup().map(|(at, _)| at);
        rules.observe(&Step { now, event: None, effects: effects.as_slice(), view: daemon.view(), wakeup });
    }
}

/// The steps that have to do with the last one, by what the story names: a claim, or ids.
fn near(lately: &VecDeque<Lately>, story: &str) -> Vec<Near> {
    let marks = marks(story);
    let mut ops = BTreeSet::new();
    let mut all = Vec::new();
    for (nth, step) in lately.iter().enumerate() {
        let mut concerned = nth + 1 == lately.len();
        concerned |= step
            .event
            .as_ref()
            .is_some_and(|event| op_of(event).is_some_and(|op| ops.contains(&op)) || named(event, &marks));
        let mut texts =
            vec![step.event.as_ref().map_or_else(|| "the daemon is created".to_owned(), event_label)];
        for effect in &step.effects {
            let by_op = match effect {
                Effect::Cancel { op } | Effect::Kill { op, .. } => ops.contains(op),
                _ => false,
            };
            if !by_op && !named(effect, &marks) {
                continue;
            }
            concerned = true;
            if let Effect::Api { op, .. } | Effect::Fs { op, .. } | Effect::Run { op, .. } = effect {
                ops.insert(*op);
            }
            texts.push(effect_label(effect));
        }
        if concerned {
            all.push(Near { n: step.n, at: step.at, text: texts.join("; ") });
        }
    }
    all.split_off(all.len().saturating_sub(MOST_NEAR))
}

/// What the story names, as it stands in JSON.
fn marks(story: &str) -> Vec<String> {
    let word = |c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':'));
    let words: Vec<&str> = story.split(word).filter(|word| !word.is_empty()).collect();
    let claims = words
        .windows(2)
        .filter(|pair| matches!(pair[0], "claim" | "ClaimKey") && pair[1].parse::<u64>().is_ok());
    let mut marks: Vec<String> = claims.map(|pair| format!("\"claim\":{}", pair[1])).collect();
    if marks.is_empty() {
        let id = |word: &&&str| word.contains(['-', '/']) && word.len() > 2;
        marks.extend(words.iter().filter(id).map(|word| format!("\"{}\"", word.trim_end_matches(':'))));
    }
    marks
}

fn named(of: &impl serde::Serialize, marks: &[String]) -> bool {
    let Ok(json) = serde_json::to_string(of) else { return false };
    marks.iter().any(|mark| {
        json.match_indices(mark.as_str())
            .any(|(at, _)| !json[at + mark.len()..].starts_with(|c: char| c.is_ascii_digit()))
    })
}

const fn op_of(event: &Event) -> Option<OpId> {
    match event {
        Event::Api { op, .. } | Event::Fs { op, .. } | Event::Run { op, .. } => Some(*op),
        _ => None,
    }
}
