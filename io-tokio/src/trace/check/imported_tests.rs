//! A log of another daemon, imported and checked.

use super::{Check, Verdict, check};
use crate::trace::import::{Import, import};
use serde_json::Value;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// The process begins, with two slots.
const BEGIN: &str = "\
09:00:00.000 INF starting daemon component=daemon version=0.9.1
09:00:00.010 DBG daemon config resolved component=daemon max_concurrent_tasks=2 poll_interval=500ms heartbeat_interval=2s
09:00:01.000 INF registered runtime component=daemon workspace_id=ws-1 runtime_id=rt-1 provider=claude
";

/// A task up to the launch of its agent: 4 steps.
fn run(task: &str) -> String {
    format!(
        "09:00:02.000 INF task received component=daemon task={task} target=t\n\
         09:00:02.001 INF picked task component=daemon task={task} provider=claude\n\
         09:00:02.002 INF starting agent component=daemon task={task} provider=claude workdir=/w/ws-1/{task}/workdir\n\
         09:00:02.003 INF claude started component=daemon pid=7 cwd=/w/ws-1/{task}/workdir\n"
    )
}

/// Its agent did it, and the server took that: 2 steps.
fn done(task: &str) -> String {
    format!("{}{}", finished(task, "completed"), completed(task))
}

fn finished(task: &str, status: &str) -> String {
    format!(
        "09:00:03.000 INF agent finished component=daemon task={task} status={status} duration=1s tools=0\n"
    )
}

fn completed(task: &str) -> String {
    format!("09:00:03.001 INF task completed component=daemon task={task} status=completed\n")
}

fn failing(task: &str) -> String {
    format!(
        "09:00:03.002 INF task did not complete, reporting failure component=daemon task={task} status=blocked \
         failure_reason=timeout\n"
    )
}

const STOP: &str =
    "09:00:04.000 INF poll loop stopping, waiting for in-flight tasks component=daemon max_wait=30s\n";

/// Imports a log, and checks the trace that comes of it.
fn checked(log: &str, asked: &Check) -> (Verdict, String) {
    let dir = TempDir::new().expect("temp");
    fs::write(dir.path().join("daemon.log"), log).expect("written");
    let into = Import {
        files: vec!["daemon.log".into()],
        output: Some(dir.path().join("t.jsonl")),
        date: Some(jiff::civil::date(2026, 3, 1)),
        time_zone: Some(jiff::tz::TimeZone::UTC),
        ..Import::default()
    };
    import(&into, dir.path(), &mut Vec::new()).expect("imported");
    let asked = Check { file: Path::new("t.jsonl").to_owned(), ..asked.clone() };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let verdict = check(&asked, dir.path(), &mut out, &mut err).expect("writes to memory");
    assert!(err.is_empty(), "{}", String::from_utf8_lossy(&err));
    (verdict, String::from_utf8(out).expect("text"))
}

/// The rules that a log breaks, each with the step.
fn broken(log: &str) -> Vec<(String, u64)> {
    let (verdict, out) = checked(log, &Check { json: true, ..Check::default() });
    let told: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((&told["imported"], &told["held_as_a_log"]), (&true.into(), &told["steps"]), "{out}");
    let all: Vec<_> = told["violations"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| (one["rule"].as_str().expect("an id").to_owned(), one["step"].as_u64().expect("a number")))
        .collect();
    assert_eq!(verdict, if all.is_empty() { Verdict::Kept } else { Verdict::Broken }, "{out}");
    all
}

#[test]
fn a_sound_log_ends_with_0_and_says_how_much_was_judged_and_by_what() {
    let log = [
        BEGIN,
        &run("a"),
        &run("b"),
        &finished("a", "failed"),
        &failing("a"),
        &run("c"),
        STOP,
        &done("b"),
        &done("c"),
    ];
    let (verdict, out) = checked(&log.concat(), &Check::default());
    assert_eq!((verdict, verdict.code()), (Verdict::Kept, 0), "{out}");
    for line in [
        "steps       21: 0 held to all rules, 0 to those that need no beginning, 0 to none\n",
        "imported    21 steps from a log of another daemon: held to the rules that need no more than a log tells\n",
        "result      no rule is broken, as far as the trace allows to check\n",
    ] {
        assert!(out.contains(line), "{line}: {out}");
    }
    let line = |out: &str| out.lines().find(|line| line.starts_with("not checked ")).map(str::to_owned);
    let blind = line(&out).expect("that there are others is said");
    assert!(blind.ends_with(" rules, or not all along; `--verbose` names them"), "{blind}");
    let (_, out) = checked(&log.concat(), &Check { verbose: true, ..Check::default() });
    let blind = line(&out).expect("the others are named");
    let is_blind = |id: &str| blind.split_whitespace().any(|word| word == id);
    assert!(is_blind("I3") && !is_blind("I1") && !is_blind("I8"), "{blind}");
}

#[test]
fn a_breach_in_a_log_ends_with_1_and_is_found_in_its_step() {
    // Steps are numbered from 0, the beginning of the process; the first task comes with step 2.
    let cases = [
        (
            "run twice at once",
            [
                &run("a")[..],
                &run("a").replace("02.00", "02.01"),
                &finished("a", "failed"),
                &finished("a", "completed"),
            ]
            .concat(),
            ("INV-116", 11),
        ),
        ("two ends reported", [&run("a")[..], &done("a"), &failing("a")].concat(), ("I8", 8)),
        ("completed twice", [&run("a")[..], &done("a"), &completed("a")].concat(), ("I8", 8)),
        ("taken after the stop", [STOP, &run("a")].concat(), ("INV-135", 4)),
        (
            "more than slots",
            [run("a"), run("b"), run("c"), done("a"), done("b"), done("c")].concat(),
            ("I1", 16),
        ),
        (
            "complete while it runs",
            [run("a"), completed("a"), finished("a", "completed")].concat(),
            ("INV-96", 7),
        ),
        (
            "complete of a failure",
            [run("a"), finished("a", "timeout"), completed("a")].concat(),
            ("INV-106", 7),
        ),
    ];
    for (name, log, (rule, step)) in cases {
        assert_eq!(broken(&format!("{BEGIN}{log}")), [(rule.to_owned(), step)], "{name}");
    }
    let log = format!("{BEGIN}{}{}", STOP, run("a"));
    let (verdict, out) = checked(&log, &Check::default());
    assert_eq!(verdict.code(), 1);
    assert!(
        out.starts_with("INV-135 at step 4 of life 1: claim 1 came after the stop, and is prepared\n"),
        "{out}"
    );
    assert!(out.contains("claimed [1=a"), "the step in which it came is told: {out}");
    assert!(!out.contains("  recorded  "), "nothing is said of a core that was not there: {out}");
    assert_eq!(checked(&log, &Check { rule: Some("I1"), ..Check::default() }).0, Verdict::Kept);
}

#[test]
fn what_the_log_does_not_say_is_not_judged() {
    // Without the settings nobody knows how many slots there are.
    let (begin, _) = BEGIN.split_once("09:00:00.010").expect("settings");
    let all = [run("a"), run("b"), run("c"), done("a"), done("b"), done("c")].concat();
    let log = format!("{begin}{all}");
    assert_eq!(broken(&log), []);
    let (verdict, out) = checked(&log, &Check { rule: Some("I1"), ..Check::default() });
    assert_eq!(verdict, Verdict::Unreadable);
    assert!(out.contains("nothing could be checked: I1 needs more than this trace has\n"), "{out}");
    // What one process did is nothing to the next one: the server gives a task again.
    let next = format!("{BEGIN}{}", run("a"));
    assert_eq!(broken(&format!("{BEGIN}{}{}", run("a"), next.replace("09:00", "09:05"))), []);
    // What came before the log begins may come again.
    let (_, middle) =
        run("a").split_once("09:00:02.003").map(|(a, b)| (a.to_owned(), b.to_owned())).expect("a part");
    assert_eq!(broken(&format!("09:00:02.003{middle}{}{}", done("a"), run("a"))), []);
}

#[test]
fn what_breaks_a_rule_is_said_in_words() {
    let logs = [
        [&run("a")[..], &done("a"), &failing("a")].concat(),
        [&run("a")[..], &done("a"), &completed("a")].concat(),
        [run("a"), finished("a", "timeout"), completed("a")].concat(),
        [run("a"), finished("a", "completed"), failing("a"), completed("a")].concat(),
    ];
    let said = logs.map(|log| {
        let (verdict, out) = checked(&format!("{BEGIN}{log}"), &Check::default());
        assert_eq!(verdict, Verdict::Broken, "{out}");
        for odd in ["Some(", "None", "Fail {", "Complete", "TaskId", "{ ", "(\""] {
            assert!(!out.contains(odd), "{odd}: {out}");
        }
        out.lines().next().and_then(|line| line.split_once(": ")).expect("a violation").1.to_owned()
    });
    assert_eq!(said[0], "claim 1 is reported as failed (timeout), and was reported as complete");
    assert_eq!(said[1], "claim 1 is reported as complete, and was reported as complete");
    assert_eq!(said[2], "claim 1 is reported as complete; its run ended as failed (timeout)");
}

#[test]
fn lines_that_are_there_twice_are_not_blamed_on_the_daemon() {
    let log = [BEGIN, &run("a"), &done("a"), &run("b"), STOP, &finished("b", "completed"), &completed("b")];
    let log = log.concat();
    assert_eq!(broken(&log), []);
    let lines: Vec<&str> = log.lines().collect();
    for tail in 2..=lines.len() {
        let copied = format!("{log}{}\n", lines[lines.len() - tail..].join("\n"));
        assert_eq!(broken(&copied), [], "{tail}");
    }
}
