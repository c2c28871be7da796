//! What a run came to.

use super::classify;
use crate::reason::FailReason;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Bytes of an error text that are kept, without the tail of stderr.
pub const MAX_ERROR: usize = 64 << 10;

/// How many warnings an outcome carries.
pub const MAX_WARNINGS: usize = 32;

/// Models whose usage is counted apart; a run that names more has the rest dropped with a warning.
pub const MAX_MODELS: usize = 256;

/// What was used of one model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Input tokens that did not come from the cache.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Input tokens read from the cache.
    pub cache_read: u64,
    /// Input tokens written to the cache.
    pub cache_write: u64,
    /// What it cost, in units of 1e-10 USD; 0 if the agent does not say.
    pub cost_usd_ticks: u64,
}

impl Usage {
    /// Whether all four token counts are zero: such an entry is not reported.
    pub const fn is_zero(&self) -> bool {
        self.input == 0 && self.output == 0 && self.cache_read == 0 && self.cache_write == 0
    }

    /// Adds `other`, each count at most `u64::MAX`.
    pub const fn add(&mut self, other: &Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.cost_usd_ticks = self.cost_usd_ticks.saturating_add(other.cost_usd_ticks);
    }
}

/// Usage by model.
pub type UsageByModel = BTreeMap<String, Usage>;

/// How the agent's process ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Exit {
    /// Its exit code, if it exited.
    pub code: Option<i32>,
    /// The signal that killed it, if one did. Neither this nor a code: nobody knows how it ended.
    pub signal: Option<i32>,
}

impl Exit {
    /// It exited with `code`.
    pub const fn code(code: i32) -> Self {
        Self { code: Some(code), signal: None }
    }

    /// `signal` killed it.
    pub const fn signal(signal: i32) -> Self {
        Self { code: None, signal: Some(signal) }
    }

    /// Nobody knows how it ended.
    pub const fn unknown() -> Self {
        Self { code: None, signal: None }
    }

    /// Whether it exited with code 0.
    pub const fn is_success(self) -> bool {
        matches!(self, Self { code: Some(0), signal: None })
    }
}

impl fmt::Display for Exit {
    /// `exit status 3` or `signal: killed`: the spelling that the server's classifier knows.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let signal = match (self.signal, self.code) {
            (None, Some(code)) => return write!(f, "exit status {code}"),
            (None, None) => return f.write_str("process exited in an unknown way"),
            (Some(signal), _) => signal,
        };
        // Numbers that are the same on every Unix.
        let name = match signal {
            1 => "hangup",
            2 => "interrupt",
            3 => "quit",
            4 => "illegal instruction",
            5 => "trace/breakpoint trap",
            6 => "aborted",
            8 => "floating point exception",
            9 => "killed",
            11 => "segmentation fault",
            13 => "broken pipe",
            14 => "alarm clock",
            15 => "terminated",
            other => return write!(f, "signal {other}"),
        };
        write!(f, "signal: {name}")
    }
}

/// Who ended the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum EndedBy {
    /// The agent left by itself.
    Itself,
    /// We did, as it stayed after its result: how it exited says nothing.
    AfterResult,
    /// We did, as the task was cancelled.
    Cancel,
    /// We did, at the run's deadline.
    Timeout {
        /// How long the run was allowed to take.
        after: Duration,
    },
    /// We did, as nothing came from it.
    IdleWatchdog {
        /// For how long nothing came.
        silent: Duration,
        /// Whether a tool was running, so that the longer window counted.
        in_tool: bool,
    },
    /// We did, as the daemon stops.
    Shutdown,
    /// The run was gone when the daemon looked for it, and how it ended is not known.
    Lost,
}

impl EndedBy {
    /// Whether the agent was made to end before it was done.
    pub const fn is_us(self) -> bool {
        matches!(self, Self::Cancel | Self::Timeout { .. } | Self::IdleWatchdog { .. } | Self::Shutdown)
    }
}

/// What kind of end it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The agent said that it is done.
    Completed,
    /// It did not.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// The deadline passed.
    Timeout,
    /// Nothing came from it for too long.
    IdleWatchdog,
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// What kind of end it was.
    pub status: Status,
    /// What the agent delivers; empty unless completed, and may be empty then.
    pub output: String,
    /// The session that a later run can continue, if there is one.
    pub session_id: Option<String>,
    /// Why it did not complete, for people; empty if it did.
    pub error: String,
    /// Why it did not complete, for the server; `None` exactly if it did.
    pub reason: Option<FailReason>,
    /// What was used, without models of which nothing was.
    pub usage: UsageByModel,
    /// How many tool calls were seen.
    pub tools_started: u64,
    /// Whether it is certain that the session which was to be resumed cannot be.
    pub resume_rejected: bool,
    /// What the operator should know although it changed nothing; at most [`MAX_WARNINGS`].
    pub warnings: Vec<String>,
}

impl Outcome {
    /// A run that ended with `status`, which has to be another than completed.
    pub fn failed(status: Status, reason: FailReason, error: String) -> Self {
        Self {
            status,
            output: String::new(),
            session_id: None,
            error,
            reason: Some(reason),
            usage: UsageByModel::new(),
            tools_started: 0,
            resume_rejected: false,
            warnings: Vec::new(),
        }
    }

    /// A run whose agent said that it is done and delivers `output`; failed all the same if the output is one of the short
    /// texts by which agents say that they gave up.
    pub fn completed(output: String) -> Self {
        match classify::gave_up(&output) {
            Some(reason) => Self::failed(Status::Failed, reason, output.trim().to_owned()),
            None => Self {
                status: Status::Completed,
                output,
                reason: None,
                ..Self::failed(Status::Completed, FailReason::Unknown, String::new())
            },
        }
    }

    /// Adds a warning, unless there are too many.
    pub fn warn(&mut self, warning: String) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(warning);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exits_are_spelled_as_the_classifier_knows_them() {
        assert_eq!(Exit::code(3).to_string(), "exit status 3");
        assert_eq!(Exit::signal(9).to_string(), "signal: killed");
        assert_eq!(Exit::signal(15).to_string(), "signal: terminated");
        assert_eq!(Exit::signal(40).to_string(), "signal 40");
        for exit in [Exit::code(1), Exit::signal(9), Exit::signal(40), Exit::unknown()] {
            assert!(!exit.is_success());
            assert_eq!(classify::classify(&exit.to_string()), FailReason::ProcessFailure, "{exit}");
        }
    }

    #[test]
    fn a_completed_run_that_only_says_it_gave_up_is_a_failed_one() {
        let done = Outcome::completed("All is well.".into());
        assert_eq!((done.status, done.reason, done.error.as_str()), (Status::Completed, None, ""));
        let empty = Outcome::completed(String::new());
        assert_eq!((empty.status, empty.reason), (Status::Completed, None));
        let gave_up = Outcome::completed(" I reached the iteration limit. ".into());
        assert_eq!(gave_up.status, Status::Failed);
        assert_eq!(gave_up.reason, Some(FailReason::IterationLimit));
        assert_eq!((gave_up.error.as_str(), gave_up.output.as_str()), ("I reached the iteration limit.", ""));
    }

    #[test]
    fn usage_saturates() {
        let mut sum = Usage { input: u64::MAX, ..Usage::default() };
        sum.add(&Usage { input: 1, output: 2, ..Usage::default() });
        assert_eq!((sum.input, sum.output), (u64::MAX, 2));
        assert!(Usage { cost_usd_ticks: 5, ..Usage::default() }.is_zero());
    }
}
