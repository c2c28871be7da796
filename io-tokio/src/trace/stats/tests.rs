use super::*;
use crate::trace::figures::Spread;
use crate::trace::records::story;
use crate::trace::test_traces::{from_the_middle, over_lives, recorded, six_tasks, told};
use longshore_core::effect::PhaseName;
use longshore_core::story::{Begin, End, Fate, Task, TaskIx};
use serde_json::Value;
use std::collections::BTreeSet;
use tempfile::TempDir;

fn counted(file: PathBuf, json: bool) -> (bool, String, String) {
    told(|out, err| stats(&Stats { file, json }, Path::new("/"), out, err))
}

#[test]
fn percentiles_are_values_that_occur() {
    let spread = Spread::of((1..=10).rev().collect());
    assert_eq!((spread.count, spread.p50, spread.p90), (10, Some(5), Some(9)));
    assert_eq!((spread.p99, spread.max), (Some(10), Some(10)));
    let one = Spread::of(vec![7]);
    assert_eq!([one.p50, one.p90, one.p99, one.max], [Some(7); 4]);
    assert_eq!(Spread::of(Vec::new()), Spread::default());
    let many = Spread::of((1..=1000).collect());
    assert_eq!((many.p50, many.p90, many.p99, many.max), (Some(500), Some(900), Some(990), Some(1000)));
}

#[test]
fn the_table_has_what_the_run_came_to() {
    let (done, out, err) = counted(six_tasks(), false);
    assert_eq!((done, err.as_str()), (true, ""));
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = out.lines().map(words).collect();
    for line in [
        "lives 1, steps 146 in 4.5 s",
        "runtimes 1, tasks 6",
        "completed 4",
        "cancelled 1",
        "failed (agent_error.unknown) 1",
        "preparing 6 86 ms 146 ms 146 ms 146 ms",
        "retry 1 4.2 s 4.2 s 4.2 s 4.2 s",
        "complete 5 4 8 ms 14 ms 14 ms 1 server failed with 503",
        "run 6 4 73 ms 2.6 s 2.6 s 1 ended as it was told to, 1 failed:",
        "status 13 12 6 ms 17 ms 17 ms 1 cancelled",
    ] {
        assert!(lines.iter().any(|known| known == line), "{line}\n{out}");
    }
    assert!(out.lines().all(|line| line.chars().count() <= usize::from(WIDTH) + 40), "{out}");
}

#[test]
fn the_object_has_the_same_numbers_and_they_add_up() {
    let dir = TempDir::new().expect("temp");
    let mut tasks = 0;
    for path in (1..5).map(|seed| recorded(&dir, seed, 1500)).chain([six_tasks()]) {
        let (done, out, _) = counted(path, true);
        let json: Value = serde_json::from_str(&out).expect("JSON");
        let number = |value: &Value| value.as_u64().expect("a number");
        let sum = |list: &Value| {
            list.as_array().expect("a list").iter().map(|of| number(&of["count"])).sum::<u64>()
        };
        assert!(done);
        assert_eq!(sum(&json["outcomes"]), number(&json["tasks"]), "each task has one outcome");
        for kind in json["requests"].as_array().expect("a list") {
            let ends = number(&kind["done"]) + sum(&kind["failed"]) + number(&kind["no_end"]);
            assert_eq!(ends, number(&kind["count"]), "each request ends once: {kind}");
        }
        let claims = &json["claims"];
        let known = ["brought", "empty", "failed"].map(|name| number(&claims[name])).iter().sum::<u64>();
        assert!(known <= number(&claims["sent"]) && number(&claims["brought"]) <= number(&claims["tasks"]));
        tasks += number(&json["tasks"]);
    }
    assert!(tasks > 20, "{tasks}");
}

#[test]
fn a_task_that_goes_on_in_the_next_life_is_one() {
    let mut carried = 0;
    for seed in 0..48 {
        let story = story(over_lives(seed));
        let figures = figures(&story);
        // The same claim of the same task, taken over.
        let again = story.tasks.iter().filter(|task| task.before.is_some()).count();
        assert_eq!(figures.tasks, story.tasks.len() - again, "seed {seed}");
        let outcomes: usize = figures.outcomes.iter().map(|of| of.count).sum();
        assert_eq!(outcomes, figures.tasks, "seed {seed}: each task has one outcome");
        let taken_over: BTreeSet<usize> =
            story.tasks.iter().filter_map(|task| task.before).map(TaskIx::get).collect();
        let left = |name: &str| figures.outcomes.iter().find(|of| of.name == name).map_or(0, |of| of.count);
        let kept = story.tasks.iter().enumerate();
        let kept = kept.filter(|(nth, task)| task.fate == Fate::Kept && !taken_over.contains(nth)).count();
        assert!(left("left to the next daemon") <= kept, "seed {seed}: one that is taken over is not left");
        carried += figures.carried_over;
        assert_eq!(figures.carried_over == 0, again == 0, "seed {seed}");
    }
    assert!(carried > 10, "{carried}");
}

#[test]
fn the_rest_of_a_run_that_an_earlier_process_launched_is_no_whole_run() {
    let (mut followed, mut whole) = (0, 0);
    for seed in 0..48 {
        let story = story(over_lives(seed));
        let figures = figures(&story);
        let phases =
            || story.tasks.iter().flat_map(|task| task.phases.iter().map(move |phase| (task, phase)));
        let runs = phases().filter(|(_, phase)| phase.name == PhaseName::Running);
        let is_rest = |task: &&Task| task.launches.iter().any(|launch| launch.attached);
        let expected = runs.clone().filter(|(task, phase)| {
            !is_rest(task) && matches!((phase.span.begin, phase.span.end), (Begin::Seen(_), End::Seen(_)))
        });
        let running = figures.latencies.iter().find(|timed| timed.name == "running");
        assert_eq!(running.map_or(0, |of| of.spread.count), expected.count(), "seed {seed}");
        let rests = runs.filter(|(task, _)| is_rest(task)).count();
        assert!(running.map_or(0, |of| of.spread.left_out) >= usize::from(rests > 0), "seed {seed}");
        let run = figures.requests.iter().find(|of| of.kind == "run");
        assert_eq!(run.map_or(0, |of| of.begun_before), rests, "seed {seed}");
        (followed, whole) = (followed + rests, whole + running.map_or(0, |of| of.spread.count));
    }
    assert!(followed > 5 && whole > 20, "{followed}, {whole}");
}

#[test]
fn a_trace_that_begins_in_the_middle_counts_from_there_and_says_what_is_left_out() {
    let dir = TempDir::new().expect("temp");
    let mut left_out = 0;
    for seed in 1..8 {
        let path = from_the_middle(&dir, seed, 400, 400);
        let story = records::read(&path, Path::new("/"), &mut Vec::new()).expect("reads").expect("a trace");
        let (life, figures) = (&story.lives[0], figures(&story));
        let (first, last) = (life.first.expect("a step").at, life.last.expect("a step").at);
        assert_eq!(figures.recorded_ms, i64::try_from(last.since(first).as_millis()).expect("fits"));
        assert!(first > life.start.mono && figures.begun_before == 1);
        for phase in story.tasks.iter().flat_map(|task| &task.phases) {
            let timed = figures.latencies.iter().find(|timed| timed.name == words::phase(phase.name));
            let spread = timed.expect("each phase is counted").spread;
            let all = story.tasks.iter().flat_map(|task| &task.phases).filter(|of| of.name == phase.name);
            let whole = all.clone().filter(|of| of.span.duration().is_some()).count();
            assert_eq!(
                (spread.count, spread.left_out),
                (whole, all.count() - whole),
                "seed {seed}: {phase:?}"
            );
        }
        let here: usize = figures.latencies.iter().map(|timed| timed.spread.left_out).sum();
        let (_, out, _) = counted(path, false);
        assert_eq!(out.contains("Left out"), here > 0, "{out}");
        assert!(out.contains("of some things only a part is known: 1\n"), "{out}");
        left_out += here;
    }
    assert!(left_out > 5, "{left_out}");
}

#[test]
fn leases_are_told_in_words_however_near_they_came_to_their_end() {
    let told = |of: Margins| {
        let mut out = Vec::new();
        leases(&of, &mut out).expect("writes to memory");
        String::from_utf8(out).expect("text")
    };
    assert_eq!(told(Margins::default()), "Leases: none\n");
    let some = Margins { count: 2, expired: 1, min: Some(-7_384_000), p50: Some(30_000) };
    assert_eq!(
        told(some),
        "Leases: extended or not needed any more 2 times, at the latest 2 h 3 min after it had run out, in the middle \
         30.0 s before it ran out; 1 had run out\n"
    );
}

#[test]
fn what_cannot_be_read_has_no_numbers() {
    let (done, out, err) = counted("/nowhere/at/all".into(), false);
    assert_eq!((done, out.as_str()), (false, ""));
    assert!(err.starts_with("error: /nowhere/at/all: "), "{err}");
}
