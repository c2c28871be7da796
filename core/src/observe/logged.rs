//! The rules that need no more than a log tells: what became of tasks, and in which order.
//!
//! A log names neither requests nor state, so most rules have nothing to look at. Those that are left are the same as in the other files, and
//! have their ids. A line that is not there proves nothing: a log is rotated, cut and torn. So a rule is broken only by what was said, and that
//! something went on is known up to the line that says that it ended, not up to where that line should be.

use super::{Found, Violation};
use crate::config::Config;
use crate::effect::{Effect, Fact, Keep, PhaseName, ReportKind};
use crate::event::{ApiReply, ClaimKey, Event, Registered, RunEnd, RunEvent};
use crate::id::{RuntimeId, TaskId};
use crate::reason::FailReason;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Claims, and runs, that are remembered: more than can be here at once. The oldest go first.
const MOST_CLAIMS: usize = 2 * Config::MAX_SLOTS as usize;

/// Runtimes that are remembered.
const MOST_RUNTIMES: usize = 10_000;

/// How far a claim is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
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
    /// In which step its agent was launched last.
    launched: Option<u64>,
    /// The claim for which its task was at work when this one began, as far as the log says, until that is settled.
    beside: Option<ClaimKey>,
    /// Whether a run of its task ended after this one was launched.
    one_ended: bool,
    /// Whether an earlier process launched it: it may have no slot.
    recovered: bool,
    end: Option<RunEnd>,
    /// The report that is owed.
    owed: Option<ReportKind>,
    /// The report that was taken.
    reported: Option<ReportKind>,
}

/// A run from its launch to its end, both in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ran {
    from: u64,
    to: u64,
}

/// The rules that [need no more than a log](super::needs_no_more_than_a_log), for one life of a daemon.
#[derive(Clone, Debug)]
pub struct LogRules {
    /// How many tasks may be at work, if that is known.
    slots: Option<u16>,
    found: Found,
    claims: BTreeMap<ClaimKey, Told>,
    /// Runs of which both ends were said.
    ran: VecDeque<Ran>,
    /// Steps in which too many tasks were at work, and that was said.
    crowded: BTreeSet<u64>,
    /// Runtimes that were registered.
    runtimes: BTreeSet<RuntimeId>,
    stopping: bool,
}

impl LogRules {
    /// Rules for a daemon with these settings, of which nothing is known yet. With [`Config::MAX_SLOTS`] slots it is taken to have no bound
    /// that is known.
    pub fn new(cfg: &Config) -> Self {
        let slots = Some(cfg.slots).filter(|slots| *slots < Config::MAX_SLOTS);
        Self {
            slots,
            found: Found::default(),
            claims: BTreeMap::new(),
            ran: VecDeque::new(),
            crowded: BTreeSet::new(),
            runtimes: BTreeSet::new(),
            stopping: false,
        }
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
            Some(Event::Api { r: Ok(ApiReply::Registered { runtimes }), .. }) => self.registered(runtimes),
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

    /// A runtime that is registered again may be so in another process, whose first lines are missing: nothing is known any more.
    fn registered(&mut self, runtimes: &[Registered]) {
        let mut again = false;
        for runtime in runtimes {
            again |= !self.runtimes.insert(runtime.id.clone());
        }
        if again {
            self.claims.clear();
            self.ran.clear();
            self.stopping = false;
        }
        while self.runtimes.len() > MOST_RUNTIMES {
            self.runtimes.pop_first();
        }
    }

    fn phase(&mut self, claim: ClaimKey, phase: PhaseName, end: Option<RunEnd>) {
        match phase {
            PhaseName::Preparing | PhaseName::Starting => self.begins(claim, phase),
            PhaseName::Running => {
                self.begins(claim, phase);
                let n = self.found.step;
                let told = self.told(claim);
                (told.launched, told.one_ended) = (Some(n), false);
                told.stage = told.stage.max(Stage::Running);
            }
            PhaseName::Settling => {
                let ran = end.and_then(|end| self.run_ends(claim, end));
                self.ends(claim, Stage::Ended);
                if let Some(ran) = ran {
                    self.slots(ran);
                }
            }
            PhaseName::Reporting | PhaseName::Sealing => self.ends(claim, Stage::Ended),
            _ => {}
        }
    }

    /// A claim is worked on.
    fn begins(&mut self, claim: ClaimKey, phase: PhaseName) {
        let told = self.told(claim);
        // What was over has come again without a word: of that it is known only that it begins. An agent may be started a second time in one
        // run, which the log says when it ends.
        if told.stage == Stage::Over || (told.stage == Stage::Ended && phase == PhaseName::Preparing) {
            *told = Told { task: told.task.take(), late: told.late, ..Told::default() };
        }
        let late = std::mem::take(&mut told.late);
        let (task, beside) = (told.task.clone(), told.beside);
        self.found.require(!late, "INV-135", || {
            format!("claim {} came after the stop, and is {}", claim.0, word(phase))
        });
        let again = |of: ClaimKey| of != claim || phase == PhaseName::Preparing;
        let same = |other: &Told| task.is_some() && other.task == task;
        let other = self
            .claims
            .iter()
            .find(|(of, other)| {
                again(**of) && other.stage == Stage::Running && (**of == claim || same(other))
            })
            .map(|(of, _)| *of);
        // An end that comes now may be that of this one.
        for (_, earlier) in self.claims.iter_mut().filter(|(of, other)| **of != claim && same(other)) {
            earlier.beside = None;
        }
        let told = self.told(claim);
        told.beside = beside.or(other);
        if other == Some(claim) {
            // Which of the two ends next is not known.
            told.launched = None;
        }
    }

    /// A run has ended. A log names tasks: it is one of whatever was at work for the task. Returns it, if it is known when it began.
    fn run_ends(&mut self, claim: ClaimKey, end: RunEnd) -> Option<Ran> {
        let to = self.found.step;
        let told = self.told(claim);
        told.end = Some(end);
        let (task, reported) = (told.task.clone(), told.reported);
        let from = told.launched.filter(|_| !told.recovered && told.stage == Stage::Running);
        self.found.require(reported != Some(ReportKind::Complete), "INV-96", || {
            format!("claim {} was reported as complete while it ran: its run ends only now", claim.0)
        });
        let same = |of: ClaimKey, other: &Told| of == claim || (task.is_some() && other.task == task);
        let two = self.claims.iter_mut().find(|(of, other)| same(**of, other) && other.beside.is_some());
        if let Some((of, two)) = two {
            let again = std::mem::replace(&mut two.one_ended, true);
            let settled = two.launched.is_none() || again;
            if let Some(beside) = two.beside.take_if(|_| settled).filter(|_| again) {
                self.found.require(false, "INV-116", || {
                    format!(
                        "claim {} was run while its task was at work as claim {}: the second of the two ends now",
                        of.0, beside.0
                    )
                });
            }
        }
        Some(Ran { from: from?, to })
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

    /// No more tasks are at work than there are slots. That a task was at work is known once its run has ended; at the moment of its launch it is
    /// known at once.
    fn slots(&mut self, last: Ran) {
        if self.ran.len() == MOST_CLAIMS {
            self.ran.pop_front();
        }
        self.ran.push_back(last);
        let Some(slots) = self.slots else { return };
        let on = |told: &&Told| told.stage == Stage::Running && !told.recovered;
        let launched: BTreeSet<u64> =
            self.claims.values().filter(on).filter_map(|told| told.launched).collect();
        let begun = self.ran.iter().map(|ran| ran.from).chain(launched.iter().copied());
        let at_work = |n: u64| {
            let ran = self.ran.iter().filter(|ran| (ran.from..ran.to).contains(&n)).count();
            (ran + usize::from(launched.contains(&n)), n)
        };
        let most = begun.filter(|n| (last.from..last.to).contains(n)).map(at_work).max();
        let Some((tasks, n)) = most.filter(|(tasks, _)| *tasks > usize::from(slots)) else { return };
        // It is said once.
        let new = self.crowded.insert(n);
        self.found.require(!new, "I1", || {
            format!("in step {n} there were {tasks} tasks at work, and there are {slots} slots")
        });
        if self.crowded.len() > MOST_CLAIMS {
            self.crowded.pop_first();
        }
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
        let (end, before) = (told.end, told.reported.replace(report));
        let found = &mut self.found;
        found.require(before.is_none(), "I8", || {
            let before = before.map_or_else(String::new, said_of);
            format!("claim {} is reported as {}, and was reported as {before}", claim.0, said_of(report))
        });
        if before.is_none() && report == ReportKind::Complete {
            // With no reason the log does not say how it ended.
            let failed = matches!(end, Some(RunEnd::Failed { reason }) if reason != FailReason::Unknown);
            found.require(!failed, "INV-106", || {
                let end = match end {
                    Some(RunEnd::Failed { reason }) => format!("failed ({})", reason.as_str()),
                    _ => "completed".to_owned(),
                };
                format!("claim {} is reported as complete; its run ended as {end}", claim.0)
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

fn said_of(report: ReportKind) -> String {
    match report {
        ReportKind::Complete => "complete".to_owned(),
        ReportKind::Fail { reason } => format!("failed ({})", reason.as_str()),
        ReportKind::CancelAck => "cancelled".to_owned(),
    }
}

const fn word(phase: PhaseName) -> &'static str {
    match phase {
        PhaseName::Preparing => "prepared",
        PhaseName::Starting => "started",
        _ => "run",
    }
}
