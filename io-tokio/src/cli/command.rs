//! What was typed, as values.

use crate::config::Flags;
use crate::trace::TraceCommand;
use clap::ValueEnum;
use std::path::PathBuf;
use std::time::Duration;

/// What was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// `daemon start`
    DaemonStart(Box<DaemonStart>),
    /// `daemon stop`
    DaemonStop(DaemonStop),
    /// `daemon restart`
    DaemonRestart(Box<DaemonStart>),
    /// `daemon status`
    DaemonStatus(DaemonStatus),
    /// `daemon logs`
    DaemonLogs(DaemonLogs),
    /// `demo`
    Demo(Demo),
    /// `local`
    Local(Local),
    /// `trace …`
    Trace(TraceCommand),
    /// `version`, `--version`
    Version(VersionOutput),
}

/// `daemon start`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DaemonStart {
    /// The flags that are settings.
    pub flags: Flags,
    /// Whether to stay in the foreground.
    pub foreground: bool,
    /// Whether this is the process that a start in the background has made.
    pub detached: bool,
    /// Where the log goes; without a word to standard error, or to the file where the daemon is in the background.
    pub log_target: Option<LogTarget>,
    /// Where the whole run is recorded as a trace, if anywhere.
    pub record: Option<PathBuf>,
    /// Whether errors are shown with their causes.
    pub debug: bool,
}

/// Where the log goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogTarget {
    /// Standard error.
    Stderr,
    /// `daemon.log` in the profile's directory.
    File,
    /// Both of them.
    Both,
}

impl LogTarget {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stderr => "stderr",
            Self::File => "file",
            Self::Both => "both",
        }
    }
}

/// Which daemon is meant: that of a profile, at its port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Which {
    /// The profile's name; empty for the default one.
    pub profile: String,
    /// Its port as typed, where it is not the one that follows from the profile.
    pub health_port: Option<String>,
}

/// `daemon stop`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DaemonStop {
    /// The daemon.
    pub which: Which,
    /// Whether runs are waited for, and for how long.
    pub drain: Option<DrainFor>,
    /// Whether errors are shown with their causes.
    pub debug: bool,
}

/// How long a drain may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainFor {
    /// As long as it takes.
    Ever,
    /// So long; then runs are ended.
    Within(Duration),
}

/// `daemon status`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DaemonStatus {
    /// The daemon.
    pub which: Which,
    /// Whether the answer is JSON; else it is text for people.
    pub json: bool,
    /// Whether the exit code tells the state.
    pub exit_code: bool,
    /// Whether errors are shown with their causes.
    pub debug: bool,
}

/// `daemon logs`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DaemonLogs {
    /// The profile's name; empty for the default one.
    pub profile: String,
    /// Whether what comes is shown as well.
    pub follow: bool,
    /// The number of lines from the end to begin with.
    pub lines: usize,
    /// Whether errors are shown with their causes.
    pub debug: bool,
}

/// `demo`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demo {
    /// Where the run is recorded as a trace, if anywhere.
    pub record: Option<PathBuf>,
    /// The flags that are settings; those of `daemon start` alone are not given.
    pub flags: Flags,
    /// Whether errors are shown with their causes.
    pub debug: bool,
}

/// `local`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Local {
    /// What the agent is asked to do; empty only where a run is resumed.
    pub prompt: String,
    /// The directory below which its work directory is made; without one the state directory of the user's daemon.
    pub dir: Option<PathBuf>,
    /// The directory of a run that was cut off, to go on with it.
    pub resume: Option<PathBuf>,
    /// Where the run is recorded as a trace, if anywhere.
    pub record: Option<PathBuf>,
    /// The flags that are settings; those of `daemon start` alone are not given.
    pub flags: Flags,
    /// Whether errors are shown with their causes.
    pub debug: bool,
}

/// How a version is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum VersionOutput {
    /// One line.
    #[default]
    Text,
    /// A JSON object.
    Json,
}
