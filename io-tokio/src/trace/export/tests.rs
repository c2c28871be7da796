//! What is written is held to the rules of the format: each kind of event has what it must have, bars of a thread are beside or inside of each
//! other, arrows have both ends, and each end is at a bar.

use super::*;
use crate::trace::TraceCommand;
use crate::trace::test_traces::{self, over_lives, recorded, six_tasks, stopped, told};
use clap::Parser;
use longshore_core::story::{Origin, Story};
use longshore_core::trace::{Gap, Record};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use tempfile::TempDir;

type Thread = (u64, u64);

fn exported(story: &Story) -> Vec<Value> {
    let mut text = Vec::new();
    chrome::write(story, &mut text).expect("writes to memory");
    let mut all: Value = serde_json::from_slice(&text).expect("JSON");
    assert_eq!(all["displayTimeUnit"], "ms");
    assert_eq!(all["otherData"]["lives"], story.lives.len());
    match all["traceEvents"].take() {
        Value::Array(events) => events,
        other => panic!("{other} is no list"),
    }
}

fn number(event: &Value, field: &str) -> u64 {
    event[field].as_u64().unwrap_or_else(|| panic!("{field} of {event}"))
}

fn thread(event: &Value) -> Thread {
    (number(event, "pid"), number(event, "tid"))
}

fn of<'a>(events: &'a [Value], ph: &'static str) -> impl Iterator<Item = &'a Value> {
    events.iter().filter(move |event| event["ph"] == ph)
}

/// Holds events to the rules of the format.
fn hold(events: &[Value], what: &str) {
    let mut named: BTreeSet<(&str, Thread)> = BTreeSet::new();
    for event in events {
        assert!(event["name"].is_string(), "{what}: {event}");
        let at = thread(event);
        match event["ph"].as_str() {
            Some("M") => match event["name"].as_str() {
                Some(kind @ ("process_name" | "thread_name")) => {
                    assert!(event["args"]["name"].is_string(), "{what}: {event}");
                    named.insert((kind, at));
                }
                Some("process_sort_index" | "thread_sort_index") => {
                    number(&event["args"], "sort_index");
                }
                _ => panic!("{what}: {event}"),
            },
            Some("X") => assert!(event["ts"].is_u64() && event["dur"].is_u64(), "{what}: {event}"),
            Some("i") => assert!(event["ts"].is_u64() && event["s"] == "t", "{what}: {event}"),
            Some("s") => assert!(event["ts"].is_u64() && event["id"].is_u64(), "{what}: {event}"),
            Some("f") => {
                assert!(
                    event["ts"].is_u64() && event["id"].is_u64() && event["bp"] == "e",
                    "{what}: {event}"
                );
            }
            _ => panic!("{what}: {event} is of no kind that is written"),
        }
    }
    for event in events.iter().filter(|event| event["ph"] != "M") {
        let (pid, tid) = thread(event);
        assert!(named.contains(&("process_name", (pid, 0))), "{what}: nobody names process {pid}");
        assert!(
            named.contains(&("thread_name", (pid, tid))),
            "{what}: nobody names thread {pid}/{tid}: {event}"
        );
    }
    let bars = bars(events, what);
    arrows(events, &bars, what);
}

/// Beginnings and ends of the bars of each thread.
fn bars(events: &[Value], what: &str) -> BTreeMap<Thread, Vec<(u64, u64)>> {
    let mut threads: BTreeMap<Thread, Vec<(u64, u64)>> = BTreeMap::new();
    for bar in of(events, "X") {
        let from = number(bar, "ts");
        threads.entry(thread(bar)).or_default().push((from, from + number(bar, "dur")));
    }
    for (thread, bars) in &mut threads {
        bars.sort_by_key(|(from, to)| (*from, std::cmp::Reverse(*to)));
        let mut around: Vec<u64> = Vec::new();
        for (from, to) in bars.iter() {
            while around.pop_if(|end| *end <= *from && (*end < *to || *from < *to)).is_some() {}
            let inside = around.last().is_none_or(|end| to <= end);
            assert!(
                inside,
                "{what}: a bar of thread {thread:?} from {from} to {to} ends outside of {around:?}"
            );
            around.push(*to);
        }
    }
    threads
}

fn arrows(events: &[Value], bars: &BTreeMap<Thread, Vec<(u64, u64)>>, what: &str) {
    let by_id = |ph| -> BTreeMap<u64, &Value> {
        let mut all = BTreeMap::new();
        for event in of(events, ph) {
            assert!(all.insert(number(event, "id"), event).is_none(), "{what}: {event} is there twice");
        }
        all
    };
    let (begins, ends) = (by_id("s"), by_id("f"));
    assert_eq!(begins.keys().collect::<Vec<_>>(), ends.keys().collect::<Vec<_>>(), "{what}: arrows pair");
    for (id, begin) in &begins {
        let end = ends[id];
        assert_eq!((&begin["name"], &begin["cat"]), (&end["name"], &end["cat"]), "{what}");
        assert!(number(begin, "ts") <= number(end, "ts"), "{what}: {begin} and {end}");
    }
    for end in begins.values().chain(ends.values()) {
        let ts = number(end, "ts");
        let at = bars
            .get(&thread(end))
            .is_some_and(|bars| bars.iter().any(|(from, to)| (*from..=*to).contains(&ts)));
        assert!(at, "{what}: {end} is at no bar");
    }
}

#[test]
fn every_story_is_written_by_the_rules_of_the_format() {
    let dir = TempDir::new().expect("temp");
    let files = (1..6).map(|seed| recorded(&dir, seed, 1500)).chain([six_tasks(), stopped()]);
    for path in files {
        let records = test_traces::records(&path);
        let story = records::story(records.clone());
        let events = exported(&story);
        hold(&events, &path.display().to_string());
        assert!(of(&events, "X").count() > story.requests.len());
        for task in &story.tasks {
            let bars = of(&events, "X").filter(|bar| bar["args"]["claim"] == task.claim.0);
            assert_eq!(bars.count(), 1, "claim {} has one bar", task.claim.0);
        }
        // The same with steps that are missing, and without what the daemon did.
        let cut = records.len() / 2;
        let n = |record: &Record| if let Record::Step(step) = record { Some(step.n) } else { None };
        let from = records[cut..].iter().find_map(n).expect("more than half of it are steps");
        let lost = 40.min(records[cut..].iter().filter_map(n).count() as u64 / 2);
        let gap = Record::Gap(Gap { n: from, lost });
        let after = records[cut..].iter().filter(|record| n(record).is_some_and(|n| n >= from + lost));
        let holed: Vec<_> = records[..cut].iter().cloned().chain([gap]).chain(after.cloned()).collect();
        let story = records::story(holed);
        assert_eq!(story.lives[0].gaps.len(), 1);
        hold(&exported(&story), "with a gap");
        let bare = records.into_iter().map(|mut record| {
            if let Record::Step(step) = &mut record {
                step.effects = None;
            }
            record
        });
        hold(&exported(&records::story(bare)), "without effects");
    }
}

/// `trace show` says of the same that it lasted so long at least.
#[test]
fn a_bar_of_which_a_life_has_only_a_part_says_so() {
    let mut parts = 0;
    for seed in 0..24 {
        let story = records::story(over_lives(seed));
        let events = exported(&story);
        // The threads of tasks, but for the bars of the tasks as a whole.
        let is_phase = |bar: &&Value| {
            number(bar, "pid") % 10 == 3 && number(bar, "tid") % 8 == 1 && bar["args"]["claim"].is_null()
        };
        let bars: Vec<&Value> = of(&events, "X").filter(is_phase).collect();
        let phases = story.tasks.iter().flat_map(|task| {
            task.phases.iter().enumerate().map(|(nth, phase)| (task.goes_on_in(nth), phase))
        });
        let phases: Vec<_> = phases.collect();
        assert_eq!(bars.len(), phases.len(), "seed {seed}");
        for (bar, (is_rest, phase)) in bars.into_iter().zip(phases) {
            let args = &bar["args"];
            let is_at_least = args["lasted"].as_str().is_some_and(|lasted| lasted.starts_with("at least "));
            if is_rest {
                assert!(is_at_least && args["begin"] == "in an earlier process", "seed {seed}: {bar}");
                parts += 1;
            } else if phase.span.duration().is_some() {
                assert!(args["lasted"].is_null() && args["begin"].is_null(), "seed {seed}: {bar}");
            } else {
                assert!(args["lasted"].is_string(), "seed {seed}: {bar}");
            }
        }
        // Those of the tasks as a whole, in the same order.
        let is_task = |bar: &&Value| number(bar, "pid") % 10 == 3 && !bar["args"]["claim"].is_null();
        for (bar, task) in of(&events, "X").filter(is_task).zip(&story.tasks) {
            assert_eq!(bar["args"]["claim"], task.claim.0, "seed {seed}");
            let is_rest = matches!(task.origin, Origin::Recovered(_));
            assert_eq!(bar["args"]["begin"] == "in an earlier process", is_rest, "seed {seed}: {bar}");
        }
    }
    assert!(parts > 5, "{parts}");
}

#[test]
fn arrows_go_from_hints_to_claims_and_from_claims_to_tasks() {
    let story = records::story(test_traces::records(&six_tasks()));
    let events = exported(&story);
    let arrows = |name: &str| of(&events, "s").filter(|event| event["name"] == name).count();
    assert_eq!(arrows("claim"), 6);
    assert_eq!(arrows("hint"), story.hints.iter().filter(|hint| hint.claim.is_some()).count());
    assert!(arrows("hint") >= 5);
    let retried =
        of(&events, "X").filter(|bar| bar["name"] == "waits to send complete again: server failed with 503");
    assert_eq!(retried.map(|bar| number(bar, "dur")).collect::<Vec<_>>(), [4_209_000]);
}

#[test]
fn a_file_is_written_whole_and_never_in_place_of_another() {
    let dir = TempDir::new().expect("temp");
    let path = dir.path().join("out.json");
    let asked = Export { chrome: true, file: six_tasks(), out: Some(path.clone()) };
    let (done, out, err) = told(|out, err| export(&asked, dir.path(), out, err));
    assert_eq!((done, out.as_str(), err.as_str()), (true, "", ""));
    let written = fs::read_to_string(&path).expect("is there");
    let to_out = Export { out: None, ..asked.clone() };
    let (done, out, _) = told(|out, err| export(&to_out, dir.path(), out, err));
    assert!(done && out == written, "the same goes to standard output");
    let (done, _, err) = told(|out, err| export(&asked, dir.path(), out, err));
    assert!(!done && err.contains("exists already"), "{err}");
    let none = Export { file: dir.path().join("none"), ..asked };
    assert!(!told(|out, err| export(&none, dir.path(), out, err)).0);
}

#[test]
fn the_command_line_asks_for_a_format() {
    #[derive(Parser)]
    struct Line {
        #[command(subcommand)]
        command: TraceCommand,
    }
    let parsed = |line: &str| Line::try_parse_from(line.split(' ')).map(|line| line.command);
    let asked = Export { chrome: true, file: "t".into(), out: Some("o".into()) };
    assert_eq!(parsed("trace export --chrome t -o o").expect("is right"), TraceCommand::Export(asked));
    let refused = parsed("trace export t").expect_err("which format?").to_string();
    assert!(refused.contains("--chrome"), "{refused}");
}
