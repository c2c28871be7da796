//! The numbers of a story: how long things took, how they ended, how often they were tried.

mod over_lives;

use super::{parts, words};
use longshore_core::story::{Begins, Ending, Fate, Hint, Origin, RequestKind, Span, Story, Task};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How a set of durations is spread. Milliseconds; percentiles are values that occur (nearest rank).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Spread {
    /// How many there are whose beginning and end are known.
    pub(super) count: usize,
    /// How many are left out, because the trace has only a part of them.
    pub(super) left_out: usize,
    pub(super) p50: Option<i64>,
    pub(super) p90: Option<i64>,
    pub(super) p99: Option<i64>,
    pub(super) max: Option<i64>,
}

impl Spread {
    pub(super) fn of(mut ms: Vec<i64>) -> Self {
        ms.sort_unstable();
        let rank = |percent: usize| {
            let nth = (ms.len() * percent).div_ceil(100).max(1) - 1;
            ms.get(nth).copied()
        };
        let (count, max) = (ms.len(), ms.last().copied());
        Self { count, left_out: 0, p50: rank(50), p90: rank(90), p99: rank(99), max }
    }

    /// The same, beside so many that are left out.
    const fn beside(self, left_out: usize) -> Self {
        Self { left_out, ..self }
    }
}

/// How long leases had left when they were granted anew or not needed any more, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Margins {
    /// How many are known.
    pub(super) count: usize,
    /// How many of them had run out.
    pub(super) expired: usize,
    pub(super) min: Option<i64>,
    pub(super) p50: Option<i64>,
}

/// Something that took time, by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Timed {
    pub(super) name: &'static str,
    #[serde(flatten)]
    pub(super) spread: Spread,
}

/// How often something was so, by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Counted {
    pub(super) name: String,
    pub(super) count: usize,
}

/// Requests of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Requests {
    pub(super) kind: &'static str,
    pub(super) count: usize,
    pub(super) done: usize,
    /// Those that ended otherwise, by how; all that the daemon itself has cancelled are one.
    pub(super) failed: Vec<Counted>,
    /// Those whose end the trace does not have.
    pub(super) no_end: usize,
    /// Those whose beginning it does not have.
    pub(super) begun_before: usize,
    pub(super) took: Spread,
}

/// Claims, whichever way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Claims {
    pub(super) sent: usize,
    /// Those that brought something new.
    pub(super) brought: usize,
    /// Those that worked and brought nothing new.
    pub(super) empty: usize,
    pub(super) failed: usize,
    pub(super) tasks: usize,
    /// Tasks that were here already.
    pub(super) duplicates: usize,
    /// Tasks that could not be named to the server.
    pub(super) unusable: usize,
}

/// How often something had to be done again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Retries {
    /// `/start` of tasks, beyond the first of each.
    pub(super) starts: usize,
    /// Launches without a session that turned out dead.
    pub(super) sessions: usize,
    /// Terminal reports, beyond the first of each task.
    pub(super) reports: usize,
    /// Tasks whose end was told in the background.
    pub(super) late: usize,
}

/// Everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Figures {
    pub(super) lives: usize,
    pub(super) steps: u64,
    /// Steps that are known to be missing.
    pub(super) missing: u64,
    /// Steps of which it is not known what the daemon did.
    pub(super) without_effects: u64,
    /// Lives whose beginning is not recorded.
    pub(super) begun_before: usize,
    /// From the first to the last step of each life, gaps included.
    pub(super) recorded_ms: i64,
    pub(super) runtimes: usize,
    /// Tasks; one that goes on in the next life is one.
    pub(super) tasks: usize,
    /// Those of them that are in more than one life.
    pub(super) carried_over: usize,
    pub(super) outcomes: Vec<Counted>,
    pub(super) latencies: Vec<Timed>,
    pub(super) waits: Vec<Timed>,
    pub(super) retries: Retries,
    pub(super) claims: Claims,
    pub(super) lease_margins: Margins,
    pub(super) requests: Vec<Requests>,
}

fn ms(of: Duration) -> i64 {
    i64::try_from(of.as_millis()).unwrap_or(i64::MAX)
}

/// The numbers of a story.
pub(super) fn figures(story: &Story) -> Figures {
    let lives = &story.lives;
    let claims_of = over_lives::claims(story);
    Figures {
        lives: lives.len(),
        steps: lives.iter().map(|life| life.steps).sum(),
        missing: story.missing(),
        without_effects: lives.iter().map(|life| life.without_effects).sum(),
        begun_before: lives.iter().filter(|life| life.begins != Begins::Created).count(),
        recorded_ms: lives.iter().map(|life| ms(life.duration())).fold(0, i64::saturating_add),
        runtimes: story.runtimes.len(),
        tasks: claims_of.len(),
        carried_over: claims_of.iter().filter(|of| of.len() > 1).count(),
        outcomes: counted(claims_of.iter().map(|of| words::fate(over_lives::outcome(of)))),
        latencies: latencies(story),
        waits: waits(story),
        retries: retries(story, &claims_of),
        claims: claims(story),
        lease_margins: margins(story),
        requests: requests(story),
    }
}

/// How often each name occurs; the most frequent first.
fn counted(names: impl Iterator<Item = String>) -> Vec<Counted> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    names.for_each(|name| *counts.entry(name).or_default() += 1);
    let mut list: Vec<_> = counts.into_iter().map(|(name, count)| Counted { name, count }).collect();
    list.sort_by_key(|counted| std::cmp::Reverse(counted.count));
    list
}

/// Spreads by name, in the order in which the names came first.
#[derive(Debug, Default)]
struct ByName {
    list: Vec<(&'static str, Vec<i64>, usize)>,
}

impl ByName {
    /// `None` is one of which only a part is known.
    fn add(&mut self, name: &'static str, of: Option<Duration>) {
        let nth = self.list.iter().position(|(known, ..)| *known == name).unwrap_or_else(|| {
            self.list.push((name, Vec::new(), 0));
            self.list.len() - 1
        });
        let (_, known, left_out) = &mut self.list[nth];
        match of {
            Some(of) => known.push(ms(of)),
            None => *left_out += 1,
        }
    }

    fn spreads(self) -> Vec<Timed> {
        let of = |(name, ms, left_out)| Timed { name, spread: Spread::of(ms).beside(left_out) };
        self.list.into_iter().map(of).collect()
    }
}

/// Names of what every task goes through, in order; phases that only some have come where they belong.
const ORDER: &[&str] = &[
    "hint to claim",
    "claim",
    "resolving",
    "awaiting directory",
    "awaiting slot",
    "awaiting root",
    "preparing",
    "starting",
    "claimed to launched",
    "launched to first word",
    "running",
    "settling",
    "reporting",
    "sealing",
    "claimed to over",
    "late delivery",
];

fn latencies(story: &Story) -> Vec<Timed> {
    let mut by_name = ByName::default();
    for Hint { claim, at, .. } in &story.hints {
        let sent = claim.and_then(|claim| story[story[claim].request].span.begin.seen());
        if let Some(sent) = sent {
            by_name.add("hint to claim", Some(sent.at.since(at.at)));
        }
    }
    for claim in story.claims.iter().filter(|claim| !claim.tasks.is_empty()) {
        by_name.add("claim", story[claim.request].span.duration());
    }
    let goes_on = over_lives::gone_on(story);
    for (task, goes_on) in story.tasks.iter().zip(&goes_on) {
        for (nth, (phase, span)) in task.phases.iter().zip(parts::phases(task)).enumerate() {
            let is_last = nth + 1 == task.phases.len() && phase.span.is_open();
            if is_last && *goes_on == Some(phase.name) {
                // Its rest in the next life stands for all of it.
                continue;
            }
            by_name.add(words::phase(phase.name), span.duration());
        }
        if matches!(task.origin, Origin::Admitted(_)) {
            let begun = task.here.begin.seen();
            let launch = task.launches.first();
            let launched = launch.and_then(|launch| launch.launched);
            if let (Some(begun), Some(launched)) = (begun, launched) {
                by_name.add("claimed to launched", Some(launched.at.since(begun.at)));
            }
            if let Some((launched, spoke)) = launched.zip(launch.and_then(|launch| launch.spoke)) {
                by_name.add("launched to first word", Some(spoke.at.since(launched.at)));
            }
            by_name.add("claimed to over", task.here.duration());
        }
        if let Some(late) = parts::late(task) {
            by_name.add("late delivery", late.duration());
        }
    }
    let mut list = by_name.spreads();
    list.sort_by_key(|timed| ORDER.iter().position(|name| *name == timed.name));
    list
}

fn waits(story: &Story) -> Vec<Timed> {
    let mut by_name = ByName::default();
    for wait in story.tasks.iter().flat_map(|task| &task.waits) {
        by_name.add(words::wait_kind(wait.reason), wait.span.duration());
    }
    let mut list = by_name.spreads();
    list.sort_by_key(|timed| timed.name);
    list
}

fn retries(story: &Story, claims: &[Vec<&Task>]) -> Retries {
    let mut sum = Retries::default();
    for claim in claims {
        let requests = || claim.iter().flat_map(|task| &task.requests).map(|ix| story[*ix].kind);
        sum.starts += requests().filter(|kind| *kind == RequestKind::Start).count().saturating_sub(1);
        sum.reports += requests().filter(|kind| kind.is_report()).count().saturating_sub(1);
        sum.sessions += claim.iter().flat_map(|task| &task.launches).filter(|launch| launch.fresh).count();
        sum.late += usize::from(claim.iter().any(|task| told_late(task)));
    }
    sum
}

/// Whether the end of a task was told, or given up, after it was over.
fn told_late(task: &Task) -> bool {
    let told = match task.fate {
        Fate::Reported { at, .. } | Fate::Superseded { at, .. } | Fate::Refused { at, .. } => at,
        Fate::Abandoned | Fate::Open => return task.late.as_ref().is_some_and(Span::is_open),
        Fate::Silent | Fate::Kept | Fate::Unknown => return false,
    };
    task.late.is_some_and(|late| late.begin.first().n < told.n)
}

fn claims(story: &Story) -> Claims {
    let mut sum = Claims { sent: story.claims.len(), ..Claims::default() };
    for claim in &story.claims {
        let ending = story[claim.request].ending;
        sum.tasks += claim.tasks.len();
        sum.duplicates += claim.duplicates.len();
        sum.unusable += usize::from(claim.unusable);
        if !claim.tasks.is_empty() {
            sum.brought += 1;
        } else if ending.is_some_and(Ending::is_done) {
            sum.empty += 1;
        } else if ending.is_some() {
            sum.failed += 1;
        }
    }
    sum
}

fn margins(story: &Story) -> Margins {
    let all: Vec<i64> = story.tasks.iter().flat_map(|task| task.lease.margins()).collect();
    let expired = all.iter().filter(|ms| **ms < 0).count();
    let min = all.iter().min().copied();
    let spread = Spread::of(all);
    Margins { count: spread.count, expired, min, p50: spread.p50 }
}

fn requests(story: &Story) -> Vec<Requests> {
    let mut by_kind: BTreeMap<RequestKind, (Requests, Vec<String>, Vec<i64>)> = BTreeMap::new();
    let followed: BTreeSet<usize> = story
        .tasks
        .iter()
        .flat_map(|task| &task.launches)
        .filter(|launch| launch.attached)
        .map(|launch| launch.request.get())
        .collect();
    for (nth, request) in story.requests.iter().enumerate() {
        let kind = request.kind.as_str();
        let empty = Requests {
            kind,
            count: 0,
            done: 0,
            failed: Vec::new(),
            no_end: 0,
            begun_before: 0,
            took: Spread::default(),
        };
        let (of, failed, took) = by_kind.entry(request.kind).or_insert((empty, Vec::new(), Vec::new()));
        of.count += 1;
        match request.ending {
            None => of.no_end += 1,
            Some(ending) if ending.is_done() => of.done += 1,
            Some(_) if request.cancelled.is_some() => failed.push("cancelled".to_owned()),
            Some(_) => failed.extend(words::request_ending(request, story)),
        }
        let is_rest = !request.is_begun() || followed.contains(&nth);
        of.begun_before += usize::from(is_rest);
        took.extend(request.span.duration().filter(|_| !is_rest).map(ms));
    }
    let all = by_kind.into_values();
    all.map(|(of, failed, took)| {
        let left_out = of.count - took.len();
        Requests { failed: counted(failed.into_iter()), took: Spread::of(took).beside(left_out), ..of }
    })
    .collect()
}
