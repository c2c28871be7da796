//! Where a task is on the server.

use super::json::{self, DecodeError};
use serde::Deserialize;

/// Fields of a task row as `/start`, `/complete`, `/fail`, `/prepare-lease` and `/wait-local-directory` answer it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Row {
    /// Where the task is now. A 200 alone proves nothing, so one that does not say this is none.
    pub status: TaskStatus,
}

/// Where a task is on the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Waits to be claimed.
    Queued,
    /// Claimed.
    Dispatched,
    /// Claimed, and waits for the user's directory.
    WaitingLocalDirectory,
    /// Started.
    Running,
    /// Ended well.
    Completed,
    /// Ended badly.
    Failed,
    /// Ended by somebody.
    Cancelled,
    /// Waits for its time.
    Deferred,
    /// Something that this version does not know, or nothing.
    #[default]
    #[serde(other)]
    Unknown,
}

impl TaskStatus {
    /// Reads the reply to `status`.
    ///
    /// # Errors
    /// If it is no object with a text `status`. A text that is not known is [`TaskStatus::Unknown`].
    pub fn reply(text: &str) -> Result<Self, DecodeError> {
        #[derive(Deserialize)]
        struct Reply {
            status: TaskStatus,
        }
        json::decode::<Reply>(text, "an object with a text `status`").map(|reply| reply.status)
    }

    /// Whether the task has ended.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_status_is_no_error_and_no_status_is() {
        assert_eq!(TaskStatus::reply(r#"{"status":"running"}"#), Ok(TaskStatus::Running));
        assert_eq!(TaskStatus::reply(r#"{"status":"napping","x":1}"#), Ok(TaskStatus::Unknown));
        for text in ["{}", r#"{"status":null}"#, "[]"] {
            assert!(TaskStatus::reply(text).is_err(), "{text}");
        }
    }
}
