//! What is said of a log that is odd in some way, and what becomes of it.

use super::tests::{DAY, Imported, asked, good, imported};
use super::*;
use crate::trace::show::{Show, show};
use longshore_core::event::Event;
use std::fs;
use tempfile::TempDir;

/// A log and what it is called when several are.
pub(super) fn import_all(logs: &[(&str, &str)]) -> Imported {
    let dir = TempDir::new().expect("temp");
    let mut files = Vec::new();
    for (name, text) in logs {
        files.push(dir.path().join(name));
        fs::write(dir.path().join(name), text).expect("written");
    }
    imported(&asked(files, &dir.path().join("out.jsonl"))).expect("imported")
}

/// What `show` says of a trace.
fn shown(trace: &str) -> String {
    let dir = TempDir::new().expect("temp");
    fs::write(dir.path().join("t.jsonl"), trace).expect("written");
    let asked = Show { file: "t.jsonl".into(), ..Show::default() };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    assert!(show(&asked, dir.path(), &mut out, &mut err).expect("writes to memory"));
    assert!(err.is_empty(), "{}", String::from_utf8_lossy(&err));
    String::from_utf8(out).expect("text")
}

#[test]
fn a_tail_that_is_there_twice_is_used_once_and_said() {
    let once = good(DAY);
    let lines: Vec<&str> = DAY.lines().collect();
    for tail in [2, 5, 20, lines.len()] {
        let copied = format!("{DAY}{}\n", lines[lines.len() - tail..].join("\n"));
        let first = lines.len() - tail + 1;
        let said =
            format!("repeated    {tail} lines are there twice, used once: line 28 is line {first} again");
        for both in [good(&copied), import_all(&[("a.log", DAY), ("b.log", &copied[DAY.len()..])])] {
            assert_eq!((&both.headers, &both.steps), (&once.headers, &once.steps), "{tail}");
            assert!(both.said.contains(&said), "{tail}: {}", both.said);
            assert!(both.notes[0].contains(&format!("; {tail} lines are there twice and used once")));
        }
    }
    // A copy that was made earlier, and the log that went on.
    let early = import_all(&[("early.log", &DAY[..DAY.len() / 2]), ("daemon.log", DAY)]);
    assert_eq!(early.steps, once.steps, "{}", early.said);
    assert!(!once.said.contains("repeated"));
}

#[test]
fn two_lives_that_begin_in_the_same_second_are_two() {
    let line = |message: &str| {
        format!(
            r#"{{"time":"2026-03-01T10:00:00Z","level":"INFO","msg":"{message}","component":"daemon","version":"0.9.1"}}"#
        )
    };
    let one = format!("{}\n{}\n", line("starting daemon"), line("authenticated"));
    let registered =
        r#"{"time":"2026-03-01T10:00:00Z","level":"INFO","msg":"registered runtime","runtime_id":"rt-1"}"#;
    let twice = good(&format!("{one}{one}{registered}\n"));
    assert_eq!(twice.headers.len(), 2);
    assert_eq!(twice.headers[0].start, twice.headers[1].start);
    assert!(!twice.headers[0].same_life(&twice.headers[1]));
    let shown = shown(&twice.text);
    assert!(shown.contains("life 1: ") && shown.contains("life 2: "), "{shown}");
    assert!(!twice.said.contains("repeated"), "{}", twice.said);
}

#[test]
fn ids_of_tasks_that_are_none_are_counted_and_the_first_is_named() {
    let odd = DAY.replace("cccc3333", "../cc\u{202e}cc");
    let day = good(&odd);
    assert_eq!(day.offers().len(), 2);
    let said =
        "odd ids     3 lines name a task by what is no id, left out: first \"../cc\\u{202e}cc\" in line 23";
    assert!(day.said.contains(said), "{}", day.said);
    assert!(
        day.notes[0].contains("3 lines are left out that name a task by what is no id"),
        "{:?}",
        day.notes
    );
    assert!(!day.text.contains("../cc"));
    assert!(!good(DAY).said.contains("odd ids"));
}

#[test]
fn a_stamp_without_a_zone_keeps_its_date() {
    let json = r#"{"time":"2025-07-04T10:00:00.250","level":"INFO","msg":"starting daemon"}
{"time":"2025-07-05 09:00:00","level":"INFO","msg":"registered runtime","runtime_id":"rt-1"}
"#;
    let dir = TempDir::new().expect("temp");
    fs::write(dir.path().join("daemon.log"), json).expect("written");
    let mut asked = asked(vec![dir.path().join("daemon.log")], &dir.path().join("t"));
    (asked.date, asked.time_zone) = (None, Some(zone("+02:00").expect("a zone")));
    let read = imported(&asked).expect("imported");
    assert_eq!(read.headers[0].start.wall.0, 1_751_616_000_250, "2025-07-04T08:00:00.250Z");
    assert_eq!(read.steps[1].mono.as_millis(), 23 * 3_600_000 - 250);
    for said in [&read.said, &read.notes[0]] {
        assert!(!said.contains("no date") && !said.contains("by hand"), "{said}");
    }
}

#[test]
fn where_every_line_has_a_date_nothing_is_said_of_those_that_have_none() {
    let json = r#"{"time":"2026-03-01T10:00:00Z","level":"INFO","msg":"starting daemon"}"#;
    let read = good(json);
    assert_eq!(read.notes[0], "imported from a log of 1 line, of which 1 was understood");
    assert!(read.said.contains(": 1 step from 1 line\nunderstood  1 line\n"), "{}", read.said);
    let mixed = good(&format!("{}\n{DAY}", json.replace("10:00", "08:00")));
    assert!(mixed.notes[0].ends_with("where lines have no date it was taken from lines that have one"));
}

#[test]
fn what_was_guessed_is_said() {
    let log = format!(
        "{}{}",
        DAY, "20:00:00.000 DBG agent component=daemon\n07:00:00.000 DBG agent component=daemon\n"
    );
    let day = good(&log);
    let guess = "in line 29 the time of day goes back by 13 h 0 min";
    assert!(!day.said.contains("guessed"), "{guess}: {}", day.said);
    let day = good(&log.replace("07:00:00.000", "11:00:00.000"));
    let guess = "in line 29 the time of day goes back by 9 h 0 min: taken for a midnight, and not for a clock that was set back";
    assert!(day.said.contains(&format!("guessed     {guess}\n")), "{}", day.said);
    assert!(day.notes[0].ends_with(&format!("; guessed: {guess}")), "{:?}", day.notes);
    let day = good(&log.replace("07:00:00.000", "19:00:00.000"));
    assert!(day.said.contains("by 1 h 0 min: taken for a clock that was set back"), "{}", day.said);
}

#[test]
fn the_hour_that_comes_twice_is_said() {
    let dir = TempDir::new().expect("temp");
    let log = "02:50:00.000 INF starting daemon component=daemon\n02:10:00.000 INF registered runtime component=daemon runtime_id=r\n";
    fs::write(dir.path().join("daemon.log"), log).expect("written");
    let mut asked = asked(vec![dir.path().join("daemon.log")], &dir.path().join("t"));
    asked.date = Some(jiff::civil::date(2026, 10, 25));
    asked.time_zone = Some(TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").expect("a zone"));
    let read = imported(&asked).expect("imported");
    assert_eq!(read.steps[1].mono.as_millis(), 20 * 60_000);
    assert!(read.said.contains("guessed     2 lines are of the hour that comes twice"), "{}", read.said);
}

#[test]
fn the_trace_is_called_as_it_was_named() {
    let dir = TempDir::new().expect("temp");
    fs::write(dir.path().join("daemon.log"), format!("{DAY}09:00:13.000 INF wh")).expect("written");
    let mut asked = asked(vec!["daemon.log".into()], Path::new("./there.jsonl"));
    let mut said = Vec::new();
    import(&asked, dir.path(), &mut said).expect("imported");
    let said = String::from_utf8(said).expect("text");
    assert!(said.starts_with("./there.jsonl: 23 steps from 28 lines; "), "{said}");
    assert!(said.contains("the last line of daemon.log has no line end") && !said.contains("tmp"), "{said}");
    asked.files = vec!["none.log".into()];
    asked.output = Some("other.jsonl".into());
    let error = import(&asked, dir.path(), &mut Vec::new()).expect_err("refused").to_string();
    assert!(error.starts_with("none.log cannot be read: "), "{error}");
}

#[test]
fn a_story_of_a_log_says_only_what_the_log_says() {
    let day = good(DAY);
    let shown = shown(&day.text);
    for line in [
        "life 1: imported from the log of multica 0.9.1, 3 slots, begun 2026-03-01T09:00:00.000Z\n",
        "  hint: a task of runtime rt-1 (claude, ws-1) ended\n",
        "  claim brings task aaaa1111\n",
        "  task aaaa1111 came for runtime rt-1 (claude, ws-1)\n",
        "  task bbbb2222 came, for a runtime that the log does not name\n",
        "  task aaaa1111 is reported as completed\n",
        "  task cccc3333 is over after 1.5 s: not reported: the server ended it\n",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    for odd in ["no claim follows", "unknown (", "runtime  ", "recorded by", "offered", "at the first try"] {
        assert!(!shown.contains(odd), "{odd}: {shown}");
    }
    let claimed = day.steps.iter().filter(|step| matches!(step.event, Some(Event::Api { .. }))).count();
    assert!(claimed > 3);
}
