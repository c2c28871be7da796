//! The messages between daemon, supervisor and helper, and the commands on a run's control FIFO.

use super::record::Process;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Version of the messages; both sides are the same executable, so a difference means a mix-up.
pub(crate) const VERSION: u32 = 1;

/// Daemon to supervisor.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    /// Kill the helper and everything below it, reap, answer `Aborted`, exit.
    Abort,
    /// Make the helper the agent; its program comes to it from the daemon.
    Launch(LaunchOrder),
}

/// What the supervisor must know of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LaunchOrder {
    pub(crate) version: u32,
    pub(crate) task: String,
    pub(crate) attempt: u32,
    /// Value of the environment variable that marks the run's processes.
    pub(crate) marker: String,
    pub(crate) run_dir: PathBuf,
    pub(crate) keep_stdin_open: bool,
    /// Unacknowledged bytes of one spool at which its pipe is no longer read.
    pub(crate) spool_budget: u64,
    /// From the polite signal to what the agent left behind until the kill, in milliseconds.
    pub(crate) leftover_grace_ms: u64,
}

/// Supervisor to daemon.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    Ready { version: u32, helper: i32 },
    HelperDied(HelperExit),
    Aborted { left: Vec<Process> },
    Launched,
    LaunchFailed(Failure),
}

/// How a helper ended that was to prepare, with the end of what it wrote to stderr.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HelperExit {
    /// Its exit code, when it ended by itself.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// At most the last 8 KiB of its standard error, as text.
    pub stderr: String,
}

impl std::fmt::Display for HelperExit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "exit code {code}")?,
            (None, Some(signal)) => write!(f, "signal {signal}")?,
            (None, None) => write!(f, "unknown status")?,
        }
        let stderr = self.stderr.trim();
        if stderr.is_empty() { Ok(()) } else { write!(f, ": {stderr}") }
    }
}

/// Why a helper did not become the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) class: FailureClass,
    /// The operating system's words, or ours.
    pub(crate) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FailureClass {
    /// The work directory is not there.
    WorkdirMissing,
    /// The work directory is there and cannot be entered.
    WorkdirUnusable,
    /// There is no such program.
    ProgramMissing,
    /// The program may not be executed.
    NotExecutable,
    /// The program is there; the interpreter or loader that it names is not.
    InterpreterMissing,
    /// Arguments and environment are more than the system takes.
    TooLarge,
    /// The system cannot run a file of this kind.
    BadFormat,
    /// The run directory could not be filled.
    RunDir,
    /// The helper ended first.
    HelperDied,
    /// The exec did not happen in time.
    Timeout,
    /// Anything else.
    Other,
}

/// Daemon to a supervisor with a running agent: one JSON line each on the control FIFO.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Command {
    /// Everything in the stdin FIFO at this point goes to the agent, then its stdin is closed.
    CloseStdin,
    /// Polite signal, grace, kill.
    End { grace_ms: u64 },
    /// Kill now.
    Kill,
    /// Up to here the spools are read for good.
    Credit { stdout: u64, stderr: u64 },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_the_documented_text() {
        let text = |command: &Command| serde_json::to_string(command).expect("plain data");
        assert_eq!(text(&Command::CloseStdin), r#""close_stdin""#);
        assert_eq!(text(&Command::End { grace_ms: 5000 }), r#"{"end":{"grace_ms":5000}}"#);
        assert_eq!(text(&Command::Credit { stdout: 1, stderr: 2 }), r#"{"credit":{"stdout":1,"stderr":2}}"#);
    }

    #[test]
    fn a_helper_exit_reads_as_a_sentence_part() {
        let exit = HelperExit { code: Some(101), signal: None, stderr: "boom\n".into() };
        assert_eq!(exit.to_string(), "exit code 101: boom");
        let exit = HelperExit { code: None, signal: Some(9), stderr: String::new() };
        assert_eq!(exit.to_string(), "signal 9");
    }
}
