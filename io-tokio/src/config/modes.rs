//! Knobs that are one of a few words.

use std::str::FromStr;

/// How tasks are claimed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClaimMode {
    /// One call for all runtimes while the server has it, else one for each.
    #[default]
    Auto,
    /// Always one call for each runtime.
    PerRuntime,
    /// Always one call for all runtimes.
    Batch,
}

impl FromStr for ClaimMode {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::Auto),
            "per-runtime" => Ok(Self::PerRuntime),
            "batch" => Ok(Self::Batch),
            _ => Err("auto, per-runtime or batch"),
        }
    }
}

/// What SIGTERM does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnSigterm {
    /// End the runs and report them as retryable.
    #[default]
    Stop,
    /// Take no more tasks and wait for the runs to end.
    Drain,
    /// Leave the runs alone for the daemon that starts next.
    Detach,
}

impl FromStr for OnSigterm {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "stop" => Ok(Self::Stop),
            "drain" => Ok(Self::Drain),
            "detach" => Ok(Self::Detach),
            _ => Err("stop, drain or detach"),
        }
    }
}
