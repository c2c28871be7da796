//! A history that is there as a whole: nothing is unknown, and at every step the story says of the daemon what the daemon says of itself.

use super::*;
use crate::daemon::View;
use crate::effect::{Effect, Fact, PhaseName, StopPhase};
use crate::event::{ClaimKey, Recovered};
use crate::id::{OpId, RuntimeId, SlotIndex, TaskId};
use crate::story::{Fate, LifeIx, Origin, TaskIx};
use std::collections::{BTreeMap, BTreeSet};

type Here<'a> = (ClaimKey, &'a TaskId, &'a RuntimeId, Option<SlotIndex>, Option<PhaseName>);

fn here(story: &Story, life: LifeIx) -> BTreeMap<ClaimKey, Here<'_>> {
    let slots: BTreeMap<TaskIx, SlotIndex> =
        story.slots.iter().filter(|held| held.span.is_open()).map(|held| (held.task, held.slot)).collect();
    let open = story.tasks.iter().enumerate().filter(|(_, task)| task.life == life && task.here.is_open());
    let told = open.map(|(nth, task)| {
        let ix = TaskIx(u32::try_from(nth).expect("few"));
        let id = task.id.as_ref().expect("nothing is unknown");
        let runtime = &story[task.runtime.expect("nothing is unknown")].id;
        let phase = task.phases.last().filter(|phase| phase.span.is_open()).map(|phase| phase.name);
        (task.claim, (task.claim, id, runtime, slots.get(&ix).copied(), phase))
    });
    told.collect()
}

fn count(spans: impl Iterator<Item = (LifeIx, Span)>, life: LifeIx) -> usize {
    spans.filter(|(of, span)| *of == life && span.is_open()).count()
}

/// Compares what the story says of the last life at this moment with the daemon.
fn compare(story: &Story, view: View<'_>) {
    let life = LifeIx(u32::try_from(story.lives.len() - 1).expect("few"));
    let told = &story[life];
    if view.stop_phase() == StopPhase::Exited {
        return;
    }
    let daemon: BTreeMap<ClaimKey, Here<'_>> = view
        .tasks()
        .map(|task| (task.claim, (task.claim, task.task, task.runtime, task.slot, task.phase)))
        .collect();
    assert_eq!(here(story, life), daemon, "tasks");
    let slots = count(story.slots.iter().map(|held| (held.life, held.span)), life);
    let claims: Vec<_> = story
        .claims
        .iter()
        .filter(|claim| claim.life == life && story[claim.request].span.is_open())
        .collect();
    assert_eq!(claims.len(), view.claims() as usize, "claims");
    let held: usize = claims.iter().map(|claim| usize::from(claim.max.expect("it was seen"))).sum();
    let all = told.slots.expect("it is no imported trace");
    assert_eq!(usize::from(all) - slots - held, usize::from(view.free_slots()), "free slots");
    let marks = count(story.marks.iter().map(|mark| (mark.life, mark.span)), life);
    assert_eq!(marks as u64, view.marks(), "marks on directories");
    let paths = count(story.paths.iter().map(|path| (path.life, path.span)), life);
    assert_eq!(paths, view.path_locks(), "directories of users");
    let requests = count(story.requests.iter().map(|request| (request.life, request.span)), life);
    assert_eq!(requests, view.open_ops(), "requests");
    let online = story.runtimes.iter().filter(|runtime| {
        runtime.online.last().is_some_and(|online| online.life == life && online.span.is_open())
    });
    let online: BTreeSet<_> = online.map(|runtime| &runtime.id).collect();
    assert_eq!(online, view.runtimes().collect(), "runtimes");
    let parked = story.tasks.iter().filter(|task| task.life == life).flat_map(|task| &task.waits);
    let parked = parked.filter(|wait| {
        let without_slot =
            matches!(wait.reason, WaitReason::Slot | WaitReason::Directory { parked: true, .. });
        without_slot && wait.span.is_open()
    });
    assert_eq!(parked.count(), view.parked_tasks(), "parked tasks");
    let is_late = |task: &&crate::story::Task| {
        task.life == life && !task.here.is_open() && task.late.is_some_and(|late| late.is_open())
    };
    assert_eq!(story.tasks.iter().any(|task| is_late(&task)), view.has_late_reports(), "late reports");
    assert_eq!(told.linked.last().is_some_and(Span::is_open), view.is_linked(), "the control connection");
    assert_eq!(told.barred.last().is_some_and(Span::is_open), !view.has_access(), "the credential");
    let stop = told.stopping.last().map_or(StopPhase::Serving, |(_, phase)| *phase);
    assert_eq!(stop, view.stop_phase(), "the stop");
    assert_eq!(told.ready.is_some(), view.is_ready(), "the start");
}

#[test]
fn at_every_step_the_story_and_the_daemon_say_the_same() {
    for seed in 0..cases() {
        let mut step = 0;
        History::of(seed, &mut |story, view| {
            let same = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| compare(story, view)));
            assert!(same.is_ok(), "seed {seed}, step {step} of all");
            step += 1;
        });
    }
}

#[test]
fn every_task_that_was_taken_is_in_the_story_once() {
    let mut taken = 0;
    for history in histories() {
        let story = history.story();
        let mut expected: Vec<(usize, ClaimKey, TaskId)> = Vec::new();
        for (life, lived) in history.lives.iter().enumerate() {
            for effects in lived.steps.iter().filter_map(|step| step.effects.as_deref()) {
                let recovered = |of: ClaimKey| {
                    effects.iter().any(|effect| {
                        matches!(effect, Effect::Fact { fact: Fact::Recovered { claim, .. } } if *claim == of)
                    })
                };
                for effect in effects {
                    match effect {
                        Effect::Fact {
                            fact: Fact::Admitted { claim, task, .. } | Fact::Recovered { claim, task, .. },
                        } => expected.push((life, *claim, task.clone())),
                        Effect::Fact { fact: Fact::HandedBack { claim, task, .. } } if !recovered(*claim) => {
                            expected.push((life, *claim, task.clone()));
                        }
                        _ => {}
                    }
                }
            }
        }
        let told = story.tasks.iter().map(|task| (task.life.get(), task.claim, task.id.clone()));
        let told: Vec<_> = told.map(|(life, claim, id)| (life, claim, id.expect("named"))).collect();
        assert_eq!(told, expected, "seed {}", history.seed);
        taken += told.len();
    }
    assert!(taken > 100, "the histories have tasks: {taken}");
}

#[test]
fn a_task_that_comes_back_in_a_later_life_leads_to_its_earlier_self() {
    let (mut linked, mut over_lives) = (0, 0);
    for history in histories() {
        let (story, seed) = (history.story(), history.seed);
        for (nth, task) in story.tasks.iter().enumerate() {
            // What the first life takes over was there before the records begin.
            let is_back = matches!(task.origin, Origin::Recovered(_));
            let same = |other: &&crate::story::Task| {
                is_back && other.life < task.life && (other.claim, &other.id) == (task.claim, &task.id)
            };
            let earlier = story.tasks[..nth].iter().rfind(same);
            let before = task.before.map(|before| &story[before]);
            assert_eq!(before, earlier, "seed {seed}: claim {}", task.claim.0);
            let Some(before) = before else { continue };
            linked += 1;
            over_lives += usize::from(before.before.is_some());
        }
    }
    assert!(linked > 20 && over_lives > 0, "tasks come back: {linked}, and do so again: {over_lives}");
}

#[test]
fn only_what_began_in_an_earlier_process_is_a_part_of_a_phase() {
    let (mut parts, mut whole) = (0, 0);
    for history in histories() {
        for task in &history.story().tasks {
            for (nth, phase) in task.phases.iter().enumerate() {
                let goes_on = task.goes_on_in(nth);
                let Origin::Recovered(was) = task.origin else {
                    assert!(!goes_on, "seed {}: {task:?}", history.seed);
                    continue;
                };
                let followed = task.launches.iter().any(|launch| launch.attached);
                let runs_on = phase.name == PhaseName::Running && followed;
                let told_on =
                    matches!(was, Some(Recovered::Ended { .. })) && phase.name != PhaseName::Sealing;
                assert_eq!(goes_on, runs_on || told_on, "seed {}: {phase:?} of {task:?}", history.seed);
                (parts, whole) = (parts + usize::from(goes_on), whole + usize::from(!goes_on));
            }
            assert!(!task.goes_on_in(task.phases.len()));
        }
    }
    assert!(parts > 10 && whole > 10, "{parts}, {whole}");
}

#[test]
fn phases_follow_each_other_and_nothing_is_held_by_two() {
    for history in histories() {
        let story = history.story();
        let seed = history.seed;
        for task in &story.tasks {
            let claim = task.claim.0;
            for pair in task.phases.windows(2) {
                let (End::Seen(end), Begin::Seen(begin)) = (pair[0].span.end, pair[1].span.begin) else {
                    panic!("seed {seed}: claim {claim}: {:?} and {:?}", pair[0], pair[1]);
                };
                assert_eq!(end, begin, "seed {seed}: claim {claim}: a hole between phases");
                assert_ne!(pair[0].name, pair[1].name, "seed {seed}: claim {claim}");
            }
            if let (Some(first), Some(last)) = (task.phases.first(), task.phases.last()) {
                assert_eq!(first.span.begin, task.here.begin, "seed {seed}: claim {claim}");
                assert_eq!(last.span.end, task.here.end, "seed {seed}: claim {claim}");
            }
            for span in task.waits.iter().map(|wait| wait.span) {
                assert!(known_to_be_whole(span), "seed {seed}: claim {claim}: {span:?}");
            }
            // What became of one whose end was told before is in the story of that life.
            let told = matches!(task.origin, Origin::Recovered(Some(Recovered::Ended { report: None, .. })));
            assert!(task.fate != Fate::Unknown || told, "seed {seed}: claim {claim}");
            assert!(
                !(task.fate == Fate::Silent && told),
                "seed {seed}: claim {claim}: the server did not end it"
            );
            assert_ne!(task.origin, Origin::Unknown, "seed {seed}: claim {claim}");
        }
        apart(story.slots.iter().map(|held| ((held.life, held.slot), held.span)), "slot", seed);
        apart(story.paths.iter().map(|held| ((held.life, held.path.clone()), held.span)), "directory", seed);
    }
}

fn known_to_be_whole(span: Span) -> bool {
    matches!((span.begin, span.end), (Begin::Seen(from), End::Seen(to)) if from <= to)
        || (matches!(span.begin, Begin::Seen(_)) && span.is_open())
}

/// No two of the same key are there at the same time.
fn apart<K: Ord + std::fmt::Debug>(held: impl Iterator<Item = (K, Span)>, what: &str, seed: u64) {
    let mut last: BTreeMap<K, Span> = BTreeMap::new();
    for (key, span) in held {
        assert!(known_to_be_whole(span), "seed {seed}: {what} {key:?}: {span:?}");
        if let Some(before) = last.get(&key) {
            let over = matches!(before.end, End::Seen(end) if end <= span.begin.first());
            assert!(over, "seed {seed}: {what} {key:?} is held twice: {before:?} and {span:?}");
        }
        last.insert(key, span);
    }
}

#[test]
fn every_request_that_ended_has_a_beginning_and_belongs_to_what_it_says() {
    for history in histories() {
        let (story, seed) = (history.story(), history.seed);
        let mut numbers: BTreeSet<(LifeIx, OpId)> = BTreeSet::new();
        for (nth, request) in story.requests.iter().enumerate() {
            assert!(request.is_begun() && known_to_be_whole(request.span), "seed {seed}: {request:?}");
            assert_eq!(request.ending.is_some(), !request.span.is_open(), "seed {seed}: {request:?}");
            assert!(numbers.insert((request.life, request.op)), "seed {seed}: {request:?} is told twice");
            if let Some(task) = request.task {
                let told = &story[task];
                assert_eq!(told.life, request.life);
                assert!(told.requests.iter().any(|of| of.get() == nth), "seed {seed}: {request:?}");
            }
        }
        for hint in &story.hints {
            let Some(claim) = hint.claim else { continue };
            let request = &story[story[claim].request];
            assert!(request.life == hint.life && request.kind.is_claim(), "seed {seed}: {hint:?}");
            assert!(request.span.begin.first() >= hint.at, "seed {seed}: {hint:?}");
            assert_eq!(hint.waited.is_some(), request.span.begin.first() > hint.at, "seed {seed}: {hint:?}");
        }
        for (nth, claim) in story.claims.iter().enumerate() {
            for task in &claim.tasks {
                let by = story[*task].origin.claim().expect("it was brought");
                assert_eq!(by.get(), nth, "seed {seed}");
                assert_eq!(
                    story[*task].here.begin.seen(),
                    story[claim.request].span.end.seen(),
                    "seed {seed}"
                );
            }
        }
    }
}
