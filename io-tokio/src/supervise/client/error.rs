//! What can go wrong with processes, in the words of somebody who can do something about it.

use crate::supervise::protocol::{Failure, FailureClass, HelperExit};
use crate::supervise::record::Process;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A warm pair could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// The executable could not be started.
    #[error("cannot start a supervisor from {}: {source}; check process and memory limits", .exe.display())]
    Start {
        /// The executable.
        exe: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// It was started and did not say that it is ready.
    #[error("the supervisor started from {} did not become ready: {reason}", .exe.display())]
    NotReady {
        /// The executable.
        exe: PathBuf,
        /// What it did instead.
        reason: String,
    },
}

/// A preparation gave no reply. No process of it is left, except after [`NotReaped`](Self::NotReaped) and perhaps
/// [`SupervisorFailed`](Self::SupervisorFailed).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrepareError {
    /// It took too long.
    #[error("the preparation did not finish within {} ms: deadline exceeded", .after.as_millis())]
    Deadline {
        /// The time that it had.
        after: Duration,
    },
    /// The caller's cancel came first.
    #[error("the preparation was cancelled")]
    Cancelled,
    /// The helper ended without a reply.
    #[error("the preparation helper failed: {0}")]
    HelperDied(HelperExit),
    /// The supervisor ended, or broke the protocol. The kernel kills the helper with it, but what the helper had
    /// started may be left.
    #[error("the supervisor of the preparation failed: {0}")]
    SupervisorFailed(String),
    /// The job is larger than a frame.
    #[error("the preparation job has {length} bytes, more than the limit of {limit}")]
    TooLarge {
        /// The job's length in bytes.
        length: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// Processes of the preparation could not be killed (uninterruptible sleep, as on a dead network file system).
    /// They may still write, so the directory that was being prepared must not be used again.
    #[error("processes of the preparation cannot be killed: {left:?}; do not use its directory again")]
    NotReaped {
        /// What is left, as far as it is known.
        left: Vec<Process>,
    },
}

/// The agent was not started. No process of it is left and its run directory is removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The task id cannot name a directory.
    #[error("the task id {0:?} cannot be part of a file name")]
    UnsafeTask(String),
    /// The run directory could not be made or filled.
    #[error("cannot set up the run directory {}: {reason}; check free space and permissions", .path.display())]
    RunDir {
        /// The run directory.
        path: PathBuf,
        /// The system's reason.
        reason: String,
    },
    /// The work directory vanished after its preparation.
    #[error("workdir missing: {} was removed before the agent started", .path.display())]
    WorkdirMissing {
        /// The work directory.
        path: PathBuf,
    },
    /// The work directory cannot be entered.
    #[error("workdir unusable: cannot enter {}: {reason}", .path.display())]
    WorkdirUnusable {
        /// The work directory.
        path: PathBuf,
        /// The system's reason.
        reason: String,
    },
    /// There is no such program.
    #[error("agent program missing: {} was not found; install it or correct its path", .program.display())]
    ProgramMissing {
        /// The program as it was asked for.
        program: PathBuf,
    },
    /// The program's file may not be executed.
    #[error("agent program not executable: {} ({reason}); check its mode and that it is a file", .program.display())]
    NotExecutable {
        /// The program as it was asked for.
        program: PathBuf,
        /// The system's reason.
        reason: String,
    },
    /// The program is there, and what is to run it is not.
    #[error("agent program has no interpreter: what the first line (or the loader entry) of {} names is not installed", .program.display())]
    InterpreterMissing {
        /// The program as it was asked for.
        program: PathBuf,
    },
    /// The system cannot run such a file.
    #[error("agent program has the wrong format: {} ({reason}); is it for another machine?", .program.display())]
    BadFormat {
        /// The program as it was asked for.
        program: PathBuf,
        /// The system's reason.
        reason: String,
    },
    /// Arguments and environment together are too large.
    #[error("arguments and environment of {} are too large for the system ({reason})", .program.display())]
    TooLarge {
        /// The program as it was asked for.
        program: PathBuf,
        /// The system's reason.
        reason: String,
    },
    /// The helper ended before it became the agent.
    #[error("the helper ended before it became the agent: {0}")]
    HelperDied(String),
    /// No answer in time.
    #[error("the agent did not start in time: {0}")]
    Timeout(String),
    /// Anything else.
    #[error("cannot start {}: {reason}", .program.display())]
    Other {
        /// The program as it was asked for.
        program: PathBuf,
        /// The reason.
        reason: String,
    },
}

impl LaunchError {
    pub(super) fn new(failure: Failure, program: &Path, cwd: &Path, run_dir: &Path) -> Self {
        let Failure { class, text: reason } = failure;
        let (program, path) = (program.to_owned(), cwd.to_owned());
        match class {
            FailureClass::WorkdirMissing => Self::WorkdirMissing { path },
            FailureClass::WorkdirUnusable => Self::WorkdirUnusable { path, reason },
            FailureClass::ProgramMissing => Self::ProgramMissing { program },
            FailureClass::NotExecutable => Self::NotExecutable { program, reason },
            FailureClass::InterpreterMissing => Self::InterpreterMissing { program },
            FailureClass::TooLarge => Self::TooLarge { program, reason },
            FailureClass::BadFormat => Self::BadFormat { program, reason },
            FailureClass::RunDir => Self::RunDir { path: run_dir.to_owned(), reason },
            FailureClass::HelperDied => Self::HelperDied(reason),
            FailureClass::Timeout => Self::Timeout(reason),
            FailureClass::Other => Self::Other { program, reason },
        }
    }
}

/// A text for the agent's stdin was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StdinError {
    /// The agent does not read, and as much as we hold for it is held.
    #[error("the agent does not read its input: {held} bytes are waiting already")]
    Full {
        /// Bytes that are waiting in the daemon.
        held: usize,
    },
    /// [`close_stdin`](super::Run::close_stdin) was called before, or the run is over.
    #[error("the agent's input is closed")]
    Closed,
}

/// A run of an earlier daemon could not be taken over.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// No agent was started in this directory, and none ever will be. What a launch had left there is removed.
    #[error("no agent was started in {}; the task can be given out again", .path.display())]
    NeverLaunched {
        /// The run directory.
        path: PathBuf,
    },
    /// What is in the directory cannot be read as a run: its files are damaged or foreign.
    #[error("{} holds no run that can be attached: {source}", .path.display())]
    NoRun {
        /// The run directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}
