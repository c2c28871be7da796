//! Commands about traces whose reader has gone, as that of `| head -1` does.

use crate::traces::alone;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Stdio};

/// What is said to each command that prints a result.
const ALL: [&[&str]; 11] = [
    &["replay", "run.jsonl"],
    &["replay", "--rebase", "run.jsonl"],
    &["check", "run.jsonl"],
    &["check", "--json", "run.jsonl"],
    &["show", "run.jsonl"],
    &["stats", "run.jsonl"],
    &["diff", "run.jsonl", "stopped.jsonl"],
    &["export", "--chrome", "run.jsonl"],
    &["render", "run.jsonl", "-o", "run.svg"],
    &["import", "--from", "multica-log", "--date", "2026-03-01", "daemon.log"],
    &["simulate", "--seeds", "1", "--steps", "50"],
];

#[test]
fn a_command_that_nobody_listens_to_ends_quietly_and_without_a_verdict() {
    let home = alone();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (name, of) in [
        ("run.jsonl", "traces/demo/six-tasks.jsonl"),
        ("stopped.jsonl", "traces/found/a-second-stop-made-it-longer.jsonl"),
        ("daemon.log", "fixtures/daemon.log"),
    ] {
        std::fs::copy(tests.join(of), home.dir().join(name)).expect("copies");
    }
    for words in ALL {
        // Gone before the command begins, so that its first word is refused.
        let (reader, writer) = io::pipe().expect("a pipe");
        drop(reader);
        let said = home.dir().join("said");
        let ended = Command::new(env!("CARGO_BIN_EXE_longshore-under-test"))
            .arg("trace")
            .args(words)
            .current_dir(home.dir())
            .env_clear()
            .env("HOME", home.dir())
            .stdin(Stdio::null())
            .stdout(writer)
            .stderr(File::create(&said).expect("a file"))
            .status()
            .expect("it runs");
        let mut err = String::new();
        File::open(&said).expect("is there").read_to_string(&mut err).expect("text");
        // As a shell says of a program that SIGPIPE has ended; neither a verdict nor a failure to be told.
        assert_eq!(ended.code(), Some(141), "{words:?}: {err}");
        // How to end it is said by this one before it begins.
        let said = err.strip_prefix("Ctrl-C ends it, and tells what was found until then\n").unwrap_or(&err);
        assert_eq!(said, "", "{words:?}");
    }
}
