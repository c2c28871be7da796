//! The binary under test as a command that does something and ends.

use crate::home::Home;
use crate::processes::signal;
use rustix::process::Signal;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdin, Command};
use tokio::time::timeout;

/// The most time that a command may take; a start waits for 45 s.
const END: Duration = Duration::from_secs(90);
/// The longest wait for a line.
const LINE: Duration = Duration::from_secs(30);

/// How a command ended.
#[derive(Debug)]
pub struct Said {
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// What it wrote to standard output.
    pub out: String,
    /// What it wrote to standard error.
    pub err: String,
}

/// A command at work. Dropped, it is killed.
#[derive(Debug)]
pub struct RunningCommand {
    child: Child,
    errors: Lines<BufReader<ChildStderr>>,
    err: String,
}

impl Home {
    /// Runs the binary with these words and no more flags, in the environment of this home, and waits for its end.
    pub async fn run(&self, words: &[&str]) -> Said {
        self.run_with(words, &[]).await
    }

    /// The same, with more variables.
    pub async fn run_with(&self, words: &[&str], env: &[(&str, &str)]) -> Said {
        self.begin_with(words, env, Stdio::null()).ended().await
    }

    /// The same, with these bytes on standard input, as far as it takes them.
    pub async fn run_fed(&self, words: &[&str], input: &[u8]) -> Said {
        let (command, mut to) = self.begin_fed(words);
        let feed = async {
            // It may have seen enough.
            let _ = to.write_all(input).await;
            drop(to);
        };
        tokio::join!(command.ended(), feed).0
    }

    /// Begins to run the binary with these words.
    pub fn begin(&self, words: &[&str]) -> RunningCommand {
        self.begin_with(words, &[], Stdio::null())
    }

    /// The same, with a standard input that is open as long as what is given back.
    pub fn begin_fed(&self, words: &[&str]) -> (RunningCommand, ChildStdin) {
        let mut command = self.begin_with(words, &[], Stdio::piped());
        let stdin = command.child.stdin.take().expect("a pipe");
        (command, stdin)
    }

    fn begin_with(&self, words: &[&str], env: &[(&str, &str)], stdin: Stdio) -> RunningCommand {
        let mut child = Command::new(self.executable())
            .args(words)
            .current_dir(self.dir())
            .env_clear()
            .envs(self.environment())
            .envs(env.iter().copied())
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the binary under test starts");
        let errors = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        RunningCommand { child, errors, err: String::new() }
    }
}

impl RunningCommand {
    /// Waits until a line of standard error has this in it.
    pub async fn says(&mut self, words: &str) {
        let mut line = String::new();
        while !line.contains(words) {
            let next = timeout(LINE, self.errors.next_line()).await;
            let next = next.unwrap_or_else(|_| panic!("no {words:?} in time after {:?}", self.err));
            line = next.expect("UTF-8").unwrap_or_else(|| panic!("no {words:?} in {:?}", self.err));
            self.err.push_str(&line);
            self.err.push('\n');
        }
    }

    /// What it writes to standard output up to this line, with it.
    pub async fn shown_until(&mut self, last: &str) -> String {
        let mut lines = BufReader::new(self.child.stdout.take().expect("asked for once")).lines();
        let mut shown = String::new();
        loop {
            let line = timeout(LINE, lines.next_line()).await;
            let line = line.unwrap_or_else(|_| panic!("no {last:?} in time after {shown:?}"));
            let line = line.expect("UTF-8").unwrap_or_else(|| panic!("no {last:?} in {shown:?}"));
            shown.push_str(&line);
            shown.push('\n');
            if line == last {
                return shown;
            }
        }
    }

    /// The process, which has not ended.
    pub fn id(&self) -> i32 {
        self.child.id().and_then(|id| i32::try_from(id).ok()).expect("it has not ended")
    }

    /// Presses Ctrl-C.
    pub fn interrupt(&self) {
        let id = self.id();
        // Tests that run in the background of a script have it ignored, and so has the command.
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("it runs");
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("a mask");
        let ignored = u64::from_str_radix(mask.trim(), 16).expect("a mask") & 2 != 0;
        signal(id, if ignored { Signal::TERM } else { Signal::INT });
    }

    /// Waits for its end.
    pub async fn ended(mut self) -> Said {
        let mut stdout = self.child.stdout.take().expect("a pipe");
        let mut out = String::new();
        let all = async {
            let errors = async {
                while let Some(line) = self.errors.next_line().await.expect("UTF-8") {
                    self.err.push_str(&line);
                    self.err.push('\n');
                }
            };
            let (read, ()) = tokio::join!(stdout.read_to_string(&mut out), errors);
            read.expect("UTF-8");
            self.child.wait().await.expect("a child")
        };
        let status = timeout(END, all).await.expect("the command ends in time");
        Said { code: status.code(), out, err: self.err }
    }
}
