//! Commands about traces that are ended: soon, with what they have, and without a file that is left.

use crate::traces::{alone, names, whole};
use longshore_tests::{Home, RunningCommand, signal};
use rustix::process::Signal;
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;

/// More than a pipe and a reader hold together: once it is taken, the command is at its work.
const MUCH: usize = 1 << 20;

/// A command that has begun to read, and waits for more.
async fn at_work(home: &Home, words: &[&str], first: &str) -> (RunningCommand, ChildStdin) {
    let (command, mut to) = home.begin_fed(words);
    to.write_all(first.as_bytes()).await.expect("it reads");
    to.write_all(&vec![b'\n'; MUCH]).await.expect("it reads");
    (command, to)
}

fn end(command: &RunningCommand, by: Signal) {
    if by == Signal::INT { command.interrupt() } else { signal(command.id(), by) }
}

#[tokio::test]
async fn whatever_ends_a_command_that_writes_a_file_leaves_none() {
    let home = alone();
    let text = whole();
    let header = &text[..=text.find('\n').expect("a line")];
    let before = names(&home);
    let commands: [(&[&str], &str); 4] = [
        (&["trace", "import", "--from", "multica-log", "-", "-o", "new.jsonl"], ""),
        (&["trace", "replay", "--rebase", "-", "-o", "new.jsonl.gz"], header),
        (&["trace", "render", "-", "-o", "new.svg"], header),
        (&["trace", "shrink", "-", "-o", "new.jsonl"], header),
    ];
    for (words, first) in commands {
        for by in [Signal::INT, Signal::TERM, Signal::KILL] {
            let (command, open) = at_work(&home, words, first).await;
            assert_eq!(names(&home), before, "{words:?}: it has no name before it is whole");
            end(&command, by);
            let said = command.ended().await;
            drop(open);
            assert_eq!(
                (said.code, said.out.as_str()),
                (None, ""),
                "{words:?} is ended by the signal: {said:?}"
            );
            assert_eq!(names(&home), before, "{words:?} after {by:?}");
        }
    }
}

/// One world of a whole day, which takes minutes: long before its end it is interrupted.
#[tokio::test]
async fn one_signal_ends_a_sweep_within_a_long_world() {
    let home = alone();
    let before = names(&home);
    for by in [Signal::INT, Signal::TERM] {
        let mut command = home.begin(&[
            "trace",
            "simulate",
            "--seeds",
            "1",
            "--from",
            "1",
            "--only",
            "late-tick",
            "--steps",
            "50000000",
        ]);
        command.says("Ctrl-C ends it").await;
        end(&command, by);
        let said = command.ended().await;
        assert_eq!(said.code, Some(130), "{said:?}");
        assert!(said.out.starts_with("seeds     0, then stopped, failures 0\nsteps     "), "{said:?}");
        assert_eq!(names(&home), before);
    }
}
