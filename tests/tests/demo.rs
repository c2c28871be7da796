//! `longshore demo` as a user runs it.

mod run;

use run::{Bench, after, texts};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::Stdio;

const TASKS: [&str; 6] = ["quick", "chatty", "tools", "failing", "cancelled", "two-tries"];

/// The work directories that the text lists, in the order of the tasks.
fn work_dirs(out: &str) -> Vec<PathBuf> {
    let (_, list) = out.split_once("Work directories\n").expect("a list");
    TASKS.iter().map(|task| after(list, task).to_owned()).collect()
}

#[test]
fn each_of_the_six_ends_as_it_should_and_leaves_what_is_printed_and_no_process() {
    let bench = Bench::new();
    let output = bench.command(&["demo", "--record", "whole.jsonl"]).output().expect("it ran");
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{out}\n{err}");
    assert_eq!(bench.processes(), [""; 0]);
    let rows: Vec<_> = out.lines().filter(|line| line.contains('✔')).collect();
    assert_eq!(rows.len(), 6, "{out}");
    for (task, row) in TASKS.iter().zip(&rows) {
        assert!(row.trim_start().starts_with(task), "{row}");
    }
    for (task, end) in [(3, "✔ failed"), (4, "✔ cancelled"), (5, "✔ completed")] {
        assert!(rows[task].contains(end), "{}", rows[task]);
    }
    assert!(!out.contains('✘'), "{out}");
    for dir in work_dirs(&out) {
        assert!(dir.is_dir() && dir.starts_with(bench.path()), "{}", dir.display());
    }
    assert_eq!(std::fs::read_to_string(work_dirs(&out)[2].join("sum.txt")).expect("written"), "sum = 0\n");
    let log = std::fs::read_to_string(after(&out, "Log")).expect("the log");
    assert!(log.contains("task completed") && !err.contains("task completed"), "{log}");
    assert_eq!(out.matches("Trace ").count(), 1, "{out}");
    // Each of them said something.
    let messages = |row: &&str| row.split_whitespace().rev().nth(2).and_then(|word| word.parse::<u32>().ok());
    assert!(rows.iter().all(|row| messages(row).is_some_and(|count| count > 0)), "{out}");
    let own = after(&out, "Trace").to_str().expect("UTF-8");
    // As they can be typed where the demo was.
    assert!(out.contains(&format!(": ./longshore trace show {own}\n")), "{out}");
    assert!(out.contains("       the same was recorded to whole.jsonl\n"), "{out}");
    for trace in [own, "whole.jsonl"] {
        let replayed = bench.command(&["trace", "replay", trace]).output().expect("it ran");
        assert!(replayed.status.success(), "{:?}", texts(&replayed));
    }
}

#[test]
fn the_users_home_and_settings_are_not_touched() {
    let bench = Bench::new();
    let home = bench.path().join("users-home");
    std::fs::create_dir_all(home.join(".multica")).expect("directories");
    std::fs::write(home.join(".multica/config.json"), "{ this is no JSON").expect("written");
    let output = bench
        .command(&["demo"])
        .env("HOME", &home)
        .env("MULTICA_SERVER_URL", "http://127.0.0.1:9")
        .env("MULTICA_CLAUDE_PATH", "/missing/claude")
        .output()
        .expect("it ran");
    assert!(output.status.success(), "{:?}", texts(&output));
    let left: Vec<_> = std::fs::read_dir(&home).expect("listed").flatten().map(|it| it.file_name()).collect();
    assert_eq!(left, [".multica"]);
    assert_eq!(std::fs::read_dir(home.join(".multica")).expect("listed").count(), 1);
}

#[test]
fn a_recording_that_is_incomplete_is_told_at_the_end() {
    let bench = Bench::new();
    let record = bench.path().join("whole.jsonl");
    let mut command = bench.command(&["demo", "--record", "whole.jsonl"]);
    let mut running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    // It is there before the first task is.
    while std::fs::remove_file(&record).is_err() {
        assert!(running.try_wait().expect("a child").is_none(), "it has ended without a recording");
        std::thread::yield_now();
    }
    let output = running.wait_with_output().expect("it ran");
    let (out, err) = texts(&output);
    assert!(output.status.success(), "the tasks ended as they should: {out}\n{err}");
    assert!(out.contains("       the same was recorded to whole.jsonl (incomplete)\n"), "{out}");
    assert_eq!(out.matches("(incomplete)").count(), 1, "the other one is whole: {out}");
    assert!(
        err.contains("warning: the recording whole.jsonl is incomplete: ")
            && err.contains("(the file was removed while it was recorded to)\n"),
        "{err}"
    );
}

#[test]
fn two_demos_run_at_the_same_time() {
    let bench = Bench::new();
    let start = || {
        let mut command = bench.command(&["demo"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started")
    };
    let both = [start(), start()].map(|demo| demo.wait_with_output().expect("it ran"));
    let dirs = both.map(|output| {
        let (out, err) = texts(&output);
        assert!(output.status.success(), "{out}\n{err}");
        work_dirs(&out)
    });
    assert!(dirs[0].iter().all(|dir| dir.is_dir() && !dirs[1].contains(dir)));
    assert_eq!(bench.processes(), [""; 0]);
}

#[test]
fn an_interrupted_demo_says_so_and_leaves_no_process() {
    let bench = Bench::new();
    let mut command = bench.command(&["demo"]);
    let mut demo = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    let mut err = BufReader::new(demo.stderr.take().expect("piped"));
    let mut line = String::new();
    while !line.contains("two-tries  running") {
        line.clear();
        assert_ne!(err.read_line(&mut line).expect("read"), 0, "it ended before the last task ran");
    }
    kill_process(Pid::from_child(&demo), Signal::INT).expect("it is there");
    let mut said = String::new();
    err.read_to_string(&mut said).expect("read");
    let output = demo.wait_with_output().expect("it ran");
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("error: the demo did not come to its end: it was interrupted"), "{said}");
    assert!(said.contains("chatty: failed instead of completed"), "{said}");
    let (out, _) = texts(&output);
    assert!(out.contains('✘') && Path::new(after(&out, "Log")).is_file(), "{out}");
    assert_eq!(bench.processes(), [""; 0]);
}

#[test]
fn what_the_demo_cannot_do_is_refused_in_words() {
    let bench = Bench::new();
    std::fs::write(bench.path().join("there"), "").expect("written");
    let names = || {
        let listed = std::fs::read_dir(bench.path()).expect("listed");
        let mut names: Vec<_> = listed.map(|entry| entry.expect("an entry").file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    for (args, words) in [
        (["demo", "--server-url", "http://127.0.0.1:9"].as_slice(), "leave out --server-url"),
        (&["demo", "--record", "there"], "error: there exists already: name a file that does not"),
        (&["demo", "--record", "none/file"], "error: none/file cannot be recorded to"),
        (&["demo", "--log-level", "loud"], "--log-level"),
    ] {
        let output = bench.command(args).output().expect("it ran");
        let (out, err) = texts(&output);
        assert_eq!((output.status.code(), out.as_str()), (Some(1), ""), "{err}");
        assert!(err.contains(words), "{err}");
        assert_eq!(names(), before, "the demo's directory does not stay: {err}");
    }
    assert_eq!(bench.processes(), [""; 0]);
}
