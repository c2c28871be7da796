//! The daemon's log: one line per event on standard error or in a file, as text for people or as JSON for machines.

mod format;
mod layer;
mod redact;
mod rotating;
mod tee;

pub use format::LogFormat;
pub use layer::{LogInitError, LogLayer, init, init_to};
pub use redact::{MAX_SECRETS, MIN_SECRET_LEN, Redactor, Registration};
pub use rotating::LogFile;
pub use tee::Tee;

use std::str::FromStr;
use tracing::level_filters::LevelFilter;

/// The least important events that are logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogLevel {
    /// Everything of the daemon's own; the default.
    #[default]
    Debug,
    /// What happens.
    Info,
    /// What should not happen.
    Warn,
    /// What stops something from working.
    Error,
}

impl FromStr for LogLevel {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.to_ascii_lowercase().as_str() {
            "debug" => Ok(Self::Debug),
            "info" => Ok(Self::Info),
            "warn" | "warning" => Ok(Self::Warn),
            "error" => Ok(Self::Error),
            _ => Err("debug, info, warn or error"),
        }
    }
}

impl LogLevel {
    fn filter(self) -> LevelFilter {
        match self {
            Self::Debug => LevelFilter::DEBUG,
            Self::Info => LevelFilter::INFO,
            Self::Warn => LevelFilter::WARN,
            Self::Error => LevelFilter::ERROR,
        }
    }
}
