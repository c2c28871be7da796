//! What to launch.

#[cfg(doc)]
use super::Run;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Default of [`LaunchSpec::spool_budget`]: 64 MiB, and room for one line of the longest kind that is still read
/// (64 MiB), since a position is acknowledged at line ends.
pub const DEFAULT_SPOOL_BUDGET: u64 = 128 * 1024 * 1024;

/// Default of [`LaunchSpec::leftover_grace`].
pub const DEFAULT_LEFTOVER_GRACE: Duration = Duration::from_millis(500);

/// When the space of what was read is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credit {
    /// As it is read: what a daemon has read and not dealt with is lost if it is killed.
    OnRead,
    /// When [`Run::acknowledge`] is called: a later daemon can attach at the last acknowledged position. Whoever
    /// acknowledges at line ends only must also do so inside a line that is longer than the spool's budget.
    Explicit,
}

/// A run to launch.
pub struct LaunchSpec {
    /// The task's id; must be a safe path component.
    pub task: String,
    /// Which attempt at the task this is; a pair of task and attempt is used once.
    pub attempt: u32,
    /// The program: a path, or a name that is looked up in the `PATH` of [`env`](Self::env).
    pub program: PathBuf,
    /// Its arguments, without the program's own name.
    pub args: Vec<OsString>,
    /// The directory it starts in.
    pub cwd: PathBuf,
    /// The complete environment; nothing is inherited. `LONGSHORE_RUN` is added.
    pub env: Vec<(OsString, OsString)>,
    /// What the agent reads first.
    pub prompt: Vec<u8>,
    /// Whether more may follow ([`Run::write_stdin`]); otherwise the end of the prompt is the end of the input.
    pub keep_stdin_open: bool,
    /// When the space of what was read is given back.
    pub credit: Credit,
    /// Bytes that one spool may be ahead of the credit; there the agent is made to wait.
    pub spool_budget: u64,
    /// What the agent leaves behind gets this long from the polite signal to the kill.
    pub leftover_grace: Duration,
}

impl LaunchSpec {
    /// A run with no arguments, an empty environment and an empty input.
    pub fn new(
        task: impl Into<String>,
        attempt: u32,
        program: impl Into<PathBuf>,
        cwd: impl Into<PathBuf>,
    ) -> Self {
        Self {
            task: task.into(),
            attempt,
            program: program.into(),
            args: Vec::new(),
            cwd: cwd.into(),
            env: Vec::new(),
            prompt: Vec::new(),
            keep_stdin_open: false,
            credit: Credit::OnRead,
            spool_budget: DEFAULT_SPOOL_BUDGET,
            leftover_grace: DEFAULT_LEFTOVER_GRACE,
        }
    }
}

/// Arguments, environment and prompt hold secrets: only their sizes are shown.
impl fmt::Debug for LaunchSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaunchSpec")
            .field("task", &self.task)
            .field("attempt", &self.attempt)
            .field("program", &self.program)
            .field("args", &self.args.len())
            .field("cwd", &self.cwd)
            .field("env", &self.env.len())
            .field("prompt", &self.prompt.len())
            .finish_non_exhaustive()
    }
}
