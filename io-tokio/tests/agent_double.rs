//! The agent double as the program that a daemon starts.

use longshore_io_tokio::agent_double::{SCRIPT_ENV, Step, script_text};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

const PROMPT: &str = r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"go"}]}}"#;

fn double(steps: &[Step]) -> Child {
    let mut child = Command::new(env!("CARGO_BIN_EXE_longshore"))
        .args(["agent-double", "-p", "--output-format", "stream-json", "--resume", "s-9"])
        .env(SCRIPT_ENV, script_text(steps))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    writeln!(child.stdin.as_mut().expect("piped"), "{PROMPT}").expect("written");
    child
}

/// Reads its output up to the line that has `text`.
fn read_to(child: &mut Child, text: &str) -> BufReader<std::process::ChildStdout> {
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    while !line.contains(text) {
        line.clear();
        assert_ne!(out.read_line(&mut line).expect("read"), 0, "it ended before it said {text}");
    }
    out
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("it is there");
}

#[test]
fn it_tells_a_version_that_discovery_takes() {
    let out = Command::new(env!("CARGO_BIN_EXE_longshore"))
        .args(["agent-double", "--version"])
        .output()
        .expect("started");
    assert_eq!(String::from_utf8_lossy(&out.stdout), "2.1.197 (Claude Code)\n");
    assert!(out.status.success());
}

#[test]
fn it_reports_and_then_waits_for_the_end_of_its_input() {
    let mut child = double(&[Step::Say("hi".into()), Step::Stderr("a note".into())]);
    let _out = read_to(&mut child, "\"result\":\"hi\"");
    assert!(child.try_wait().expect("asked").is_none(), "its input is open");
    drop(child.stdin.take());
    let ended = child.wait_with_output().expect("ended");
    assert_eq!((ended.status.code(), String::from_utf8_lossy(&ended.stderr).as_ref()), (Some(0), "a note\n"));
}

#[test]
fn it_goes_on_with_the_session_that_it_is_given_and_exits_as_told() {
    let child = double(&[Step::Exit(7)]);
    let ended = child.wait_with_output().expect("ended");
    assert_eq!(ended.status.code(), Some(7));
    assert!(String::from_utf8_lossy(&ended.stdout).contains("\"session_id\":\"s-9\""));
}

#[test]
fn a_term_ends_it_unless_it_is_told_to_ignore_it() {
    let mut meek = double(&[Step::Say("ready".into()), Step::Hang]);
    let _out = read_to(&mut meek, "ready");
    signal(&meek, Signal::TERM);
    assert_eq!(meek.wait().expect("ended").signal(), Some(15));

    let mut stubborn = double(&[Step::IgnoreTerm, Step::Say("ready".into()), Step::HangUntilEof]);
    let _out = read_to(&mut stubborn, "ready");
    signal(&stubborn, Signal::TERM);
    drop(stubborn.stdin.take());
    assert_eq!(stubborn.wait().expect("ended").code(), Some(0));
}

#[test]
fn it_waits_for_the_answer_to_what_it_asks() {
    let ask = Step::Ask { tool: "Bash".into(), input: serde_json::json!({ "command": "ls" }) };
    let mut child = double(&[ask, Step::Result("allowed".into()), Step::Exit(0)]);
    let mut out = read_to(&mut child, "control_request");
    let answer = r#"{"type":"control_response","response":{"subtype":"success","request_id":"ask-1"}}"#;
    writeln!(child.stdin.as_mut().expect("piped"), "{answer}").expect("written");
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("read");
    assert!(rest.contains("allowed"));
    assert!(child.wait().expect("ended").success());
}

#[test]
fn its_child_holds_the_output_open_after_it_has_ended() {
    for own_session in [false, true] {
        let dir = tempfile::tempdir().expect("a directory");
        let pid_file = dir.path().join("pid");
        let spawn =
            Step::Spawn { ms: 600_000, own_session, pid_file: Some(pid_file.to_str().expect("text").into()) };
        let mut child = double(&[spawn, Step::Result("left a child".into()), Step::Exit(0)]);
        let mut out = read_to(&mut child, "left a child");
        assert!(child.wait().expect("ended").success());
        let pid = std::fs::read_to_string(pid_file).expect("written").parse().expect("a number");
        kill_process(Pid::from_raw(pid).expect("positive"), Signal::KILL).expect("the child is there");
        let mut rest = Vec::new();
        out.read_to_end(&mut rest).expect("the output ends with the child");
        assert!(rest.is_empty());
    }
}
