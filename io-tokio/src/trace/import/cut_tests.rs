//! A line of which only a part is there tells what the whole line tells, or nothing; and that is said.

use super::build::tests::all;
use super::clock::Clocks;
use super::heard::Heard;
use super::line::Line;
use super::source::{Done, LONGEST, LineEnd};
use super::tests::{DAY, good, import_text};
use super::told::Count;
use super::told_tests::import_all;
use crate::trace::stats::{Stats, stats};
use jiff::civil::date;
use jiff::tz::TimeZone;
use longshore_core::trace::Record;
use std::fs;
use tempfile::TempDir;

const WRITTEN: &str = include_str!("../../../../tests/fixtures/daemon.log");

/// Messages that the logs above do not have, or with all that is read of them.
const MORE: &str = r#"01:24:00.000 INF starting daemon component=daemon version=0.9.1 agents=[claude codex]
01:24:00.001 DBG daemon config resolved component=daemon poll_interval=1s heartbeat_interval=2s agent_timeout=1h0m0s idle_watchdog=15m0s opencode_idle_watchdog=30m0s max_concurrent_tasks=12 gc_enabled=true n=1
01:24:02.000 DBG task wakeup received component=daemon runtime_id=rt-east task_id=000000b1
01:24:02.100 INF task received component=daemon task=000000b1 target=t
01:24:02.200 INF picked task component=daemon task=000000b1 issue=t agent="an \"agent\" = ä" provider=claude n=1
01:24:02.300 INF starting agent component=daemon provider=claude workdir=/srv/tasks/garden/000000b1/workdir task=000000b1 n=1
01:24:02.400 INF claude started component=daemon cwd=/srv/tasks/garden/000000b1/workdir pid=12 n=1
01:24:02.500 WRN [claude:stderr] a warning component=daemon task=000000b1 text="x y"
01:24:02.600 DBG agent component=daemon task=000000b1 text="a \n word"
01:24:02.700 INF task did not complete, reporting failure component=daemon task=000000b1 status=blocked failure_reason=timeout n=1
01:24:02.800 ERR nobody knows this one component=daemon task=000000b1 error="no \"answer\""
01:24:02.900 INF task received without=component task=000000b2 target=t
01:24:03.000 INF task received component=daemon task=000000b3 target=t
"#;

fn records(lines: &[Heard]) -> Vec<Record> {
    let clocks = Clocks::new(vec![(0, date(2026, 3, 1))], TimeZone::UTC);
    all(lines, &clocks)
}

fn whole(text: &str) -> Option<Heard> {
    Count::default().read(text, LineEnd::There)
}

/// Cuts each line of a log at each byte, and compares what comes of it, at the end of a log and in front of another one. How often the cut line
/// was taken, and how often it was not.
fn cut_everywhere(log: &[String]) -> (usize, usize) {
    let lines: Vec<Heard> = log.iter().map(|line| whole(line).expect("a line of the log")).collect();
    let (mut taken, mut left_out) = (0, 0);
    for (at, text) in log.iter().enumerate() {
        let of = |line: Option<&Heard>| {
            let begun: Vec<Heard> = lines[..at].iter().chain(line).cloned().collect();
            let all: Vec<Heard> = begun.iter().chain(&lines[at + 1..]).cloned().collect();
            [records(&begun), records(&all)]
        };
        let (with, without) = (of(Some(&lines[at])), of(None));
        let mut before = None;
        for end in 1..text.len() {
            let mut count = Count::default();
            let part = String::from_utf8_lossy(&text.as_bytes()[..end]).into_owned();
            let line = count.read(&part, LineEnd::Missing);
            count.end_of("a.log", Done::default());
            let said = count.cut_ends() == ["a.log"];
            assert_eq!(said, line.is_none() && !part.trim().is_empty(), "{part:?}");
            let Some(mut line) = line else {
                left_out += 1;
                continue;
            };
            taken += 1;
            (line.print, line.nth) = (0, 0);
            // What is the same as the part that is one byte shorter tells the same.
            if before.as_ref() != Some(&line) {
                assert_eq!(of(Some(&line)), with, "{part:?}");
                before = Some(line);
            }
        }
        assert!(without.iter().all(|told| !told.is_empty()) || at == 0, "{text}");
    }
    (taken, left_out)
}

#[test]
fn a_last_line_that_is_cut_tells_what_the_whole_one_tells_or_nothing() {
    let plain: Vec<String> = WRITTEN.lines().chain(MORE.lines()).map(str::to_owned).collect();
    let of_day: Vec<String> = DAY.lines().map(str::to_owned).collect();
    for log in [&plain, &of_day] {
        let (taken, left_out) = cut_everywhere(log);
        assert!(taken > 50 && left_out > 10 * log.len(), "{taken} taken, {left_out} left out");
    }
}

#[test]
fn colours_carriage_returns_and_json_are_cut_like_the_rest() {
    let coloured = |line: &str| {
        line.replace(" INF ", " \u{1b}[92mINF\u{1b}[0m ")
            .replace(" component=", " \u{1b}[2mcomponent=\u{1b}[0m")
            .replace(" task=", " \u{1b}[2mtask=\u{1b}[0m")
    };
    let json = |line: &str| {
        let of = Line::read(line).expect("a line of the log");
        let mut all = serde_json::json!({ "time": &line[..12], "level": &line[13..16], "msg": of.message });
        let fields = of.fields.iter().map(|(key, value)| (key.clone(), value.as_str().into()));
        all.as_object_mut().expect("an object").extend(fields);
        all.to_string()
    };
    let all = |how: &dyn Fn(&str) -> String| MORE.lines().map(how).collect::<Vec<String>>();
    let (taken, _) = cut_everywhere(&all(&coloured));
    assert!(taken > 15, "{taken}");
    let (taken, _) = cut_everywhere(&all(&|line| format!("{line}\r")));
    assert!(taken > 15, "{taken}");
    let (taken, _) = cut_everywhere(&all(&json));
    assert_eq!(taken, 0, "an object is whole or none");
}

#[test]
fn a_line_whose_end_is_only_missing_is_left_out_where_it_may_be_half() {
    let all = good(DAY);
    let id_last = DAY.find("\n09:00:12.000").expect("a part");
    let stripped = good(DAY.trim_end());
    assert_eq!(stripped.steps, all.steps, "nothing is read of its last field");
    assert!(!stripped.said.contains("cut  "), "{}", stripped.said);
    let half = good(&DAY[..id_last]);
    let before = &DAY[..=DAY[..id_last].rfind('\n').expect("a line")];
    assert_eq!(half.steps, good(before).steps, "it ends with an id");
    let said = "daemon.log has no line end: left out, as what it says may be half\n";
    assert!(half.said.contains("understood  24 lines\ncut  ") && half.said.ends_with(said), "{}", half.said);
    // Of several logs it is said which one.
    let two = import_all(&[("a.log", &DAY[..DAY.len() - 60]), ("b.log", "09:00:12.100 INF deregis")]);
    assert!(two.said.contains("b.log has no line end"), "{}", two.said);
    let only = import_text(b"09:00:00.000 INF starting daemon component=daemon version=0.9");
    let error = only.err().expect("refused").to_string();
    assert!(error.starts_with("what it has of the log is cut, so there is nothing to import"), "{error}");
}

#[test]
fn a_run_whose_end_is_cut_has_not_failed() {
    let end = WRITTEN.find("status=completed duration=4s").expect("a part");
    let day = good(&WRITTEN[..end]);
    assert!(day.said.contains("understood  41 lines\ncut  "), "{}", day.said);
    let dir = TempDir::new().expect("temp");
    fs::write(dir.path().join("t.jsonl"), &day.text).expect("written");
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let asked = Stats { file: "t.jsonl".into(), ..Stats::default() };
    assert!(stats(&asked, dir.path(), &mut out, &mut err).expect("writes to memory"));
    let out = String::from_utf8(out).expect("text");
    assert!(out.contains("process_failure") && !out.contains("unknown\n"), "{out}");
    assert!(!out.contains("agent_error.unknown"), "{out}");
}

#[test]
fn lines_that_are_too_long_are_said_to_be_that() {
    let text = "x".repeat(LONGEST);
    let spoke = format!("09:00:13.000 DBG agent component=daemon task=aaaa1111 text=\"{text}\"\n");
    let day = good(&format!("{DAY}{spoke}"));
    let said = "understood  28 lines\ntoo long    1 line is longer than 256 KiB, and not read behind that: all that is read of such a line is there\n";
    assert!(day.said.ends_with(said), "{}", day.said);
    assert_eq!(day.steps.len(), good(DAY).steps.len() + 1);
    // One whose id is behind that is left out.
    let late = format!("09:00:13.000 DBG agent component=daemon text=\"{text}\" task=aaaa1111\n");
    let day = good(&format!("{DAY}{late}{late}{spoke}"));
    let said = "understood  28 lines\ntoo long    3 lines are longer than 256 KiB, and not read behind that: 2 are left out, as what they say may be half\n";
    assert!(day.said.ends_with(said), "{}", day.said);
    assert_eq!(day.steps.len(), good(DAY).steps.len() + 1);
}

#[test]
fn a_quote_that_is_not_closed_is_said() {
    let odd = "09:00:13.000 INF task received component=daemon task=\"dddd4\n09:00:13.000 INF task received component=daemon task=eeee5555 target=\"t\n";
    let day = good(&format!("{DAY}{odd}"));
    assert_eq!(day.offers().len(), 4);
    let said = "understood  28 lines\ncut         2 lines have a quote that is not closed: 1 is left out, as what it says may be half\n";
    assert!(day.said.ends_with(said), "{}", day.said);
}
