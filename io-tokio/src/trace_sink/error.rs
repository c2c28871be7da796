//! Why there is no recorder.

use super::MIN_BUDGET;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why nothing can be recorded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SinkError {
    /// The budget is too small for what it must hold.
    #[error("a flight recorder needs at least {MIN_BUDGET} bytes, not {got}")]
    Budget {
        /// What was asked for.
        got: u64,
    },
    /// The file exists.
    #[error("{} exists already: name a file that does not, or move it away", path.display())]
    Exists {
        /// Which one.
        path: PathBuf,
    },
    /// The file cannot be made.
    #[error("{} cannot be recorded to: {error}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// The writing thread cannot be started.
    #[error("the thread that writes the trace cannot be started: {0}")]
    Thread(io::Error),
}

impl SinkError {
    /// The same, with the name that people know the file by.
    #[must_use]
    pub fn called(self, name: &Path) -> Self {
        match self {
            Self::Exists { .. } => Self::Exists { path: name.to_owned() },
            Self::File { error, .. } => Self::File { path: name.to_owned(), error },
            other @ (Self::Budget { .. } | Self::Thread(_)) => other,
        }
    }
}
