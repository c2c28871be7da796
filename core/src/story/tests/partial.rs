//! A history of which parts are missing: what is told is true, and what is not known is not told.

use super::history::tell;
use super::*;
use crate::event::ClaimKey;
use crate::id::OpId;
use crate::story::{Begins, Builder, Life, Origin, RequestKind};
use crate::trace::{Gap, Record, Step};
use std::collections::BTreeMap;
use std::time::Duration;

/// Whether all that is told of a span is so: `whole` is the same one with nothing missing. Where it is not known what the clock said before, it
/// may go back to that: so steps are compared.
fn is_true(told: Span, whole: Span) -> bool {
    let begin = match told.begin {
        Begin::Seen(at) => whole.begin.seen().is_some_and(|begin| begin.n == at.n),
        Begin::Before(at) => whole.begin.first().n <= at.n,
    };
    let end = match (told.end, whole.end) {
        (End::Seen(at), End::Seen(end)) => at.n == end.n,
        (End::After(at), End::Seen(end)) => at.n <= end.n,
        (End::After(_) | End::Open, End::Open) => true,
        _ => false,
    };
    begin && end
}

/// That everything in the story of a life with missing parts is in that of the whole life, and no more is said of it.
fn agree(told: &Story, whole: &Story, what: &str) {
    let mut tasks: BTreeMap<ClaimKey, Vec<_>> = BTreeMap::new();
    for task in &whole.tasks {
        tasks.entry(task.claim).or_default().push(task);
    }
    // An adapter must not use the number of a claim twice. The world does so now and then, and a story that has lost steps cannot tell two such
    // claims apart.
    let reused = |claim: ClaimKey| tasks.get(&claim).is_some_and(|all| all.len() > 1);
    for task in told.tasks.iter().filter(|task| !reused(task.claim)) {
        let what = format!("{what}: claim {}: {task:?}", task.claim.0);
        let all = tasks.get(&task.claim).map_or(&[][..], Vec::as_slice);
        let same =
            all.iter().find(|of| is_true(task.here, of.here) && (task.id.is_none() || task.id == of.id));
        let Some(other) = same.or(all.last()) else {
            assert!(matches!(task.origin, Origin::Offered(_)), "{what}: it was never taken");
            continue;
        };
        assert!(task.id.is_none() || task.id == other.id, "{what}: {other:?}");
        assert!(task.provider.is_none() || task.provider == other.provider, "{what}: {other:?}");
        assert!(task.root.is_none() || task.root == other.root, "{what}");
        let over = task.here.begin.first().n == task.here.end.seen().map_or(u64::MAX, |at| at.n);
        assert!(is_true(task.here, other.here) || over, "{what}: {:?}", other.here);
        for phase in &task.phases {
            let same = other.phases.iter().find(|of| of.name == phase.name);
            assert!(same.is_some_and(|same| is_true(phase.span, same.span)), "{what}: {phase:?}, {same:?}");
        }
        for launch in &task.launches {
            let same = other.launches.iter().any(|of| is_true(launch.span, of.span));
            assert!(same, "{what}: {launch:?}, {:?}", other.launches);
        }
    }
    let requests: BTreeMap<OpId, _> = whole.requests.iter().map(|request| (request.op, request)).collect();
    for request in &told.requests {
        let unknown = matches!(request.kind, RequestKind::UnknownApi | RequestKind::UnknownFs);
        let fits = |other: &&&crate::story::Request| other.kind.domain() == request.kind.domain();
        let Some(other) = requests.get(&request.op).filter(fits) else {
            // Nobody recorded that the event which names it is nonsense.
            let nameless = (unknown || request.kind == RequestKind::Run) && request.task.is_none();
            assert!(nameless && told.lives[0].without_effects > 0, "{what}: {request:?} was never sent");
            continue;
        };
        assert!(unknown || request.kind == other.kind, "{what}: {request:?}, {other:?}");
        assert!(is_true(request.span, other.span), "{what}: {request:?}, {other:?}");
        assert!(request.ending.is_none() || request.ending == other.ending, "{what}: {request:?}, {other:?}");
    }
    for held in told.slots.iter().filter(|of| !reused(told[of.task].claim)) {
        let claim = told[held.task].claim;
        let same = whole.slots.iter().filter(|of| of.slot == held.slot && whole[of.task].claim == claim);
        assert!(same.clone().any(|of| is_true(held.span, of.span)), "{what}: {held:?}");
    }
    for mark in told.marks.iter().filter(|of| !reused(told[of.task].claim)) {
        let claim = told[mark.task].claim;
        let mut same = whole.marks.iter().filter(|of| of.root == mark.root && whole[of.task].claim == claim);
        assert!(same.any(|of| is_true(mark.span, of.span)), "{what}: {mark:?}");
    }
    for path in told.paths.iter().filter(|of| !reused(told[of.task].claim)) {
        let claim = told[path.task].claim;
        let mut same = whole.paths.iter().filter(|of| of.path == path.path && whole[of.task].claim == claim);
        assert!(same.any(|of| is_true(path.span, of.span)), "{what}: {path:?}");
    }
    for runtime in &told.runtimes {
        let other = whole.runtimes.iter().find(|of| of.id == runtime.id);
        for online in &runtime.online {
            let same = other.is_some_and(|other| other.online.iter().any(|of| is_true(online.span, of.span)));
            assert!(same, "{what}: {runtime:?}, {other:?}");
        }
    }
}

fn story_of(lived: &Lived) -> Story {
    let mut builder = Builder::default();
    builder.header(&lived.header);
    tell(&mut builder, &lived.steps);
    builder.finish()
}

fn open(story: &Story) -> (usize, usize, usize, usize) {
    let open = |spans: &mut dyn Iterator<Item = Span>| spans.filter(Span::is_open).count();
    (
        open(&mut story.tasks.iter().map(|task| task.here)),
        open(&mut story.requests.iter().map(|request| request.span)),
        open(&mut story.slots.iter().map(|held| held.span)),
        open(&mut story.marks.iter().map(|mark| mark.span)),
    )
}

/// That a life has these steps and no others, and lasts from the first to the last of them.
fn is_recorded(life: &Life, steps: &[Step], what: &str) {
    let (Some(first), Some(last)) = (steps.first(), steps.last()) else {
        assert_eq!((life.duration(), life.steps), (Duration::ZERO, 0), "{what}");
        return;
    };
    assert!((first.n..=last.n).all(|n| life.has_step(n)), "{what}");
    assert!(!life.has_step(last.n + 1) && (first.n == 0 || !life.has_step(first.n - 1)), "{what}");
    let (from, until) = (life.first.expect("there is one"), life.last.expect("there is one"));
    assert_eq!(life.duration(), until.at.since(from.at), "{what}: what is not recorded does not count");
}

#[test]
fn a_story_from_a_checkpoint_agrees_with_the_whole_one() {
    let mut checked = 0;
    for history in histories() {
        for lived in &history.lives {
            let whole = story_of(lived);
            for point in &lived.checkpoints {
                let mut builder = Builder::default();
                builder.header(&lived.header_from(point));
                builder.record(&Record::Checkpoint(point.clone()));
                tell(&mut builder, lived.from(point.n + 1));
                let told = builder.finish();
                let what = format!("seed {} from step {}", history.seed, point.n);
                assert_eq!(told.lives[0].begins, Begins::Checkpoint(point.n), "{what}");
                is_recorded(&told.lives[0], lived.from(point.n + 1), &what);
                assert!(!told.lives[0].has_step(point.n), "{what}: the step of the checkpoint is not there");
                agree(&told, &whole, &what);
                assert_eq!(open(&told), open(&whole), "{what}: what is open at the end");
                let later =
                    whole.requests.iter().filter(|of| of.span.end.seen().is_none_or(|at| at.n > point.n));
                assert_eq!(told.requests.len(), later.count(), "{what}: requests");
                checked += 1;
            }
        }
    }
    assert!(checked > 100, "there are checkpoints: {checked}");
}

#[test]
fn steps_before_the_beginning_that_were_lost_are_told_as_a_gap() {
    let mut checked = 0;
    for history in histories() {
        for lived in &history.lives {
            let whole = story_of(lived);
            for point in &lived.checkpoints {
                let mut header = lived.header_from(point);
                header.from.as_mut().expect("in the middle").lost = point.n + 1;
                let mut builder = Builder::default();
                builder.header(&header);
                builder.record(&Record::Checkpoint(point.clone()));
                tell(&mut builder, lived.from(point.n + 1));
                let told = builder.finish();
                let (what, life) = (format!("seed {} from step {}", history.seed, point.n), &told.lives[0]);
                let gaps: Vec<_> = life
                    .gaps
                    .iter()
                    .map(|gap| (gap.n, gap.lost, gap.after, gap.until, gap.restored))
                    .collect();
                assert_eq!(gaps, [(0, point.n + 1, None, life.first, true)], "{what}");
                assert_eq!(life.begins, Begins::Checkpoint(point.n), "{what}");
                agree(&told, &whole, &what);
                assert_eq!(open(&told), open(&whole), "{what}: what is open at the end");
                checked += 1;
            }
        }
    }
    assert!(checked > 100, "there are checkpoints: {checked}");
}

#[test]
fn what_is_told_around_a_gap_is_true() {
    for history in histories() {
        for lived in &history.lives {
            let whole = story_of(lived);
            for pair in lived.checkpoints.windows(2) {
                let (from, point) = (pair[0].n, &pair[1]);
                for with_checkpoint in [true, false] {
                    let mut builder = Builder::default();
                    builder.header(&lived.header);
                    let kept = usize::try_from(from).expect("fits");
                    tell(&mut builder, &lived.steps[..=kept]);
                    builder.record(&Record::Gap(Gap { n: from + 1, lost: point.n - from }));
                    if with_checkpoint {
                        builder.record(&Record::Checkpoint(point.clone()));
                    }
                    tell(&mut builder, lived.from(point.n + 1));
                    let told = builder.finish();
                    let what = format!(
                        "seed {}, gap {from}..{}, checkpoint {with_checkpoint}",
                        history.seed, point.n
                    );
                    assert_eq!(told.lives[0].gaps.len(), 1, "{what}");
                    assert_eq!(told.lives[0].gaps[0].restored, with_checkpoint, "{what}");
                    let has = |n| told.lives[0].has_step(n);
                    assert!(
                        has(from) && !(from + 1..=point.n).any(has),
                        "{what}: no step of the gap is there"
                    );
                    agree(&told, &whole, &what);
                    if with_checkpoint {
                        assert_eq!(open(&told), open(&whole), "{what}: what is open at the end");
                    }
                }
            }
        }
    }
}

#[test]
fn a_segment_without_its_checkpoint_tells_only_what_is_named_in_it() {
    for history in histories() {
        for lived in &history.lives {
            let whole = story_of(lived);
            for point in &lived.checkpoints {
                let mut builder = Builder::default();
                builder.header(&lived.header_from(point));
                tell(&mut builder, lived.from(point.n + 1));
                let told = builder.finish();
                assert_eq!(told.lives[0].begins, Begins::Middle(point.n));
                agree(&told, &whole, &format!("seed {} in the middle, from step {}", history.seed, point.n));
                // And one that comes later tells the rest.
                let Some(next) = lived.checkpoints.iter().find(|next| next.n > point.n) else { continue };
                let mut builder = Builder::default();
                builder.header(&lived.header_from(point));
                let kept = usize::try_from(next.n - point.n).expect("fits");
                tell(&mut builder, &lived.from(point.n + 1)[..kept]);
                builder.record(&Record::Checkpoint(next.clone()));
                tell(&mut builder, lived.from(next.n + 1));
                let told = builder.finish();
                let what = format!("seed {}, from step {} with {}", history.seed, point.n, next.n);
                agree(&told, &whole, &what);
                assert_eq!(open(&told), open(&whole), "{what}: what is open at the end");
            }
        }
    }
}

#[test]
fn without_effects_only_what_came_from_outside_is_told() {
    let strip = |step: &Step| Step { effects: None, ..step.clone() };
    for history in histories() {
        for (nth, lived) in history.lives.iter().enumerate() {
            let whole = story_of(lived);
            let steps: Vec<Step> = lived.steps.iter().map(strip).collect();
            let mut builder = Builder::default();
            builder.header(&lived.header);
            tell(&mut builder, &steps);
            let told = builder.finish();
            assert_eq!(told.lives[0].without_effects, steps.len() as u64);
            assert!(told.slots.is_empty() && told.marks.is_empty() && told.paths.is_empty());
            assert!(told.tasks.iter().all(|task| task.phases.is_empty() && !task.here.is_open()));
            // And where only some steps are without.
            let some =
                lived.steps.iter().map(|step| if step.n % 7 == 3 { strip(step) } else { step.clone() });
            let some: Vec<Step> = some.collect();
            let mut builder = Builder::default();
            builder.header(&lived.header);
            for step in &some {
                tell(&mut builder, std::slice::from_ref(step));
                for point in lived.checkpoints.iter().filter(|point| point.n == step.n) {
                    builder.record(&Record::Checkpoint(point.clone()));
                }
            }
            agree(&builder.finish(), &whole, &format!("seed {}, life {nth}, holes", history.seed));
        }
    }
}
