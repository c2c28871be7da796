//! The rules that need no more than a log tells: what became of tasks, and in which order.
//!
//! A log names neither requests nor state, so most rules have nothing to look at. Those that are left are the same as in the other files, and
//! have their ids. What a log leaves out is never blamed: of a claim that was not seen to come, less is asked.

use super::{Found, Violation};
use crate::config::Config;
use crate::effect::{Effect, Fact, Keep, PhaseName, ReportKind};
use crate::event::{ApiReply, ClaimKey, Event, RunEnd, RunEvent};
use crate::id::TaskId;
use crate::reason::FailReason;
use std::collections::BTreeMap;

/// Claims that are remembered: more than can be here at once. The oldest go first.
const MOST_CLAIMS: usize = 2 * Config::MAX_SLOTS as usize;

/// How far a claim is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Here,
    Running,
    /// Its run has ended.
    Ended,
    /// Its slot is free.
    Over,
}

/// What the log said of one claim.
#[derive(Clone, Debug, Default)]
struct Told {
    /// Which task it is, if the log says when it came.
    task: Option<TaskId>,
    stage: Stage,
    /// Whether it came after a stop was asked for.
    late: bool,
    /// Whether its task was at work before, which is said once.
    twice: bool,
    /// Whether an earlier process launched it: it may have no slot.
    recovered: bool,
    end: Option<RunEnd>,
    /// The report that is owed.
    owed: Option<ReportKind>,
    /// The report that was taken.
    reported: Option<ReportKind>,
}

/// The rules that [need no more than a log](super::needs_no_more_than_a_log), for one life of a daemon.
#[derive(Clone, Debug)]
pub struct LogRules {
    /// How many tasks may be at work, if that is known.
    slots: Option<u16>,
    found: Found,
    claims: BTreeMap<ClaimKey, Told>,
    stopping: bool,
}

impl LogRules {
    /// Rules for a daemon with these settings, of which nothing is known yet. With [`Config::MAX_SLOTS`] slots it is taken to have no bound
    /// that is known.
    pub fn new(cfg: &Config) -> Self {
        let slots = Some(cfg.slots).filter(|slots| *slots < Config::MAX_SLOTS);
        Self { slots, found: Found::default(), claims: BTreeMap::new(), stopping: false }
    }

    /// Whether it is known how many tasks may be at work.
    pub const fn is_bounded(&self) -> bool {
        self.slots.is_some()
    }

    /// What is broken so far, at most 64 times, and 8 times for each rule.
    pub fn violations(&self) -> &[Violation] {
        &self.found.list
    }

    /// Looks at step `n`. Steps are shown in order; some may be missing if nothing of a task was lost with them.
    pub fn observe(&mut self, n: u64, event: Option<&Event>, effects: &[Effect]) {
        self.found.step = n;
        let mut end = None;
        match event {
            Some(Event::Stop { .. }) => self.stopping = true,
            Some(Event::Api { r: Ok(ApiReply::Claimed { offers, .. }), .. }) => {
                for offer in offers {
                    let late = self.stopping;
                    let came = || Told { task: Some(offer.task.clone()), late, ..Told::default() };
                    self.claims.entry(offer.claim).or_insert_with(came);
                }
            }
            Some(Event::Run { run: RunEvent::Ended { outcome }, .. }) if settles(effects) == 1 => {
                end = Some(outcome.end);
            }
            _ => {}
        }
        let mut twice = None;
        for effect in effects {
            match effect {
                Effect::Fact { fact: Fact::Phase { claim, phase } } => self.phase(*claim, *phase, end),
                // It begins anew in this process.
                Effect::Fact { fact: Fact::Recovered { claim, .. } } => {
                    self.claims.insert(*claim, Told { recovered: true, ..Told::default() });
                }
                Effect::Keep { claim, entry: Keep::Ended { report: Some(report), .. } } => {
                    self.owed(*claim, *report);
                }
                Effect::Fact { fact: Fact::Reported { claim, report, .. } } => {
                    let again = self.reported(*claim, *report);
                    twice = again.then_some(*claim).or(twice);
                }
                Effect::Fact { fact: Fact::Released { claim, .. } } => {
                    let stage = self.told(*claim).stage;
                    // Of two reports that is the least.
                    self.found.require(stage != Stage::Over || twice == Some(*claim), "I13", || {
                        format!("the slot of claim {} is free twice", claim.0)
                    });
                    self.ends(*claim, Stage::Over);
                }
                _ => {}
            }
        }
        while self.claims.len() > MOST_CLAIMS {
            self.claims.pop_first();
        }
    }

    fn told(&mut self, claim: ClaimKey) -> &mut Told {
        self.claims.entry(claim).or_default()
    }

    fn phase(&mut self, claim: ClaimKey, phase: PhaseName, end: Option<RunEnd>) {
        match phase {
            PhaseName::Preparing | PhaseName::Starting => self.begins(claim, phase),
            PhaseName::Running => {
                self.begins(claim, phase);
                let told = self.told(claim);
                if told.stage == Stage::Here {
                    told.stage = Stage::Running;
                    self.slots(claim);
                }
            }
            PhaseName::Settling => {
                let told = self.told(claim);
                told.end = end.or(told.end);
                self.ends(claim, Stage::Ended);
            }
            PhaseName::Reporting | PhaseName::Sealing => self.ends(claim, Stage::Ended),
            _ => {}
        }
    }

    /// A claim is worked on.
    fn begins(&mut self, claim: ClaimKey, phase: PhaseName) {
        let told = self.told(claim).clone();
        let found = &mut self.found;
        // What comes again may have come again without a word.
        let ended = told.task.is_some() && matches!(told.stage, Stage::Ended | Stage::Over);
        // An agent may be started a second time in one run, which the log says when it ends.
        found.require(!ended || phase == PhaseName::Starting, "INV-72", || {
            format!("claim {} is {} after its end", claim.0, word(phase))
        });
        found.require(!told.late, "INV-135", || {
            format!("claim {} came after the stop, and is {}", claim.0, word(phase))
        });
        let again = |of: ClaimKey| of != claim || phase == PhaseName::Preparing;
        let same = |other: &Told| told.task.is_some() && other.task == told.task;
        let other = self
            .claims
            .iter()
            .find(|(of, other)| {
                again(**of) && other.stage == Stage::Running && (**of == claim || same(other))
            })
            .map(|(of, _)| *of);
        found.require(told.twice || other.is_none(), "INV-116", || {
            let other = other.unwrap_or(claim).0;
            format!("claim {} is {} while its task is at work as claim {other}", claim.0, word(phase))
        });
        let told = self.told(claim);
        told.twice |= other.is_some();
        told.late = false;
    }

    /// A run, or all of the claim, has ended. A log names tasks: an end is the end of whatever was at work for the task.
    fn ends(&mut self, claim: ClaimKey, stage: Stage) {
        let told = self.told(claim);
        if told.stage != Stage::Over {
            told.stage = stage;
        }
        let Some(task) = told.task.clone() else { return };
        for other in self.claims.values_mut() {
            if other.stage == Stage::Running && other.task.as_ref() == Some(&task) {
                other.stage = Stage::Ended;
            }
        }
    }

    /// No more tasks are at work than there are slots.
    fn slots(&mut self, claim: ClaimKey) {
        let Some(slots) = self.slots else { return };
        let at_work = |told: &&Told| told.stage == Stage::Running && !told.recovered;
        let running = self.claims.values().filter(at_work).count();
        self.found.require(running <= usize::from(slots), "I1", || {
            format!("with claim {} there are {running} tasks at work, and {slots} slots", claim.0)
        });
    }

    /// It is written down what is to be reported.
    fn owed(&mut self, claim: ClaimKey, report: ReportKind) {
        let told = self.told(claim);
        let (before, reported) = (told.owed.replace(report), told.reported);
        let replaced = matches!((before, report), (Some(ReportKind::Fail { .. }), ReportKind::Complete));
        // Two that were taken are another matter.
        self.found.require(!replaced || reported.is_some(), "INV-107", || {
            format!("claim {} was to be reported as failed, and is to be reported as complete", claim.0)
        });
    }

    /// A report was taken. Says whether another one was before.
    fn reported(&mut self, claim: ClaimKey, report: ReportKind) -> bool {
        let told = self.told(claim);
        let (stage, end, before) = (told.stage, told.end, told.reported.replace(report));
        let found = &mut self.found;
        found.require(before.is_none(), "I8", || {
            format!("claim {} is reported as {report:?}, and was reported as {before:?}", claim.0)
        });
        if before.is_none() && report == ReportKind::Complete {
            found.require(stage != Stage::Running, "INV-96", || {
                format!("claim {} is reported as complete while it runs", claim.0)
            });
            // With no reason the log does not say how it ended.
            let failed = matches!(end, Some(RunEnd::Failed { reason }) if reason != FailReason::Unknown);
            found.require(!failed, "INV-106", || {
                format!("claim {} is reported as complete; its run ended as {end:?}", claim.0)
            });
        }
        self.ends(claim, Stage::Ended);
        before.is_some()
    }
}

/// How many runs end in a step.
fn settles(effects: &[Effect]) -> usize {
    let settles = |effect: &&Effect| {
        matches!(effect, Effect::Fact { fact: Fact::Phase { phase: PhaseName::Settling, .. } })
    };
    effects.iter().filter(settles).count()
}

const fn word(phase: PhaseName) -> &'static str {
    match phase {
        PhaseName::Preparing => "prepared",
        PhaseName::Starting => "started",
        _ => "run",
    }
}
