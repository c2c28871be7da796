//! Waiting for something to be so, told by the server itself and bounded in time.

use super::shared::{Inner, Shared};
use longshore_core::id::TaskId;
use std::time::Duration;
use thiserror::Error;

/// Requests that a failed wait shows.
const SHOWN: usize = 30;

/// What was waited for did not come.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The time is over.
    #[error("waited {within:?} in vain; the last requests were:\n{recent}")]
    TimedOut {
        /// How long it was waited for.
        within: Duration,
        /// The last requests, one a line.
        recent: String,
    },
    /// The task ended in another way, and will not change any more.
    #[error("task {task} has ended as {state} ({detail}); the last requests were:\n{recent}")]
    EndedOtherwise {
        /// The task.
        task: TaskId,
        /// How it ended.
        state: &'static str,
        /// What was said about it.
        detail: String,
        /// The last requests, one a line.
        recent: String,
    },
}

impl Shared {
    /// Waits until `look` finds something; it looks again whenever something has changed.
    pub(super) async fn until<T>(
        &self,
        within: Duration,
        mut look: impl FnMut(&Inner) -> Option<T>,
    ) -> Result<T, WaitError> {
        let found = async {
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                // Registered before the look, so that no change falls between the two.
                changed.as_mut().enable();
                if let Some(found) = look(&self.lock()) {
                    return found;
                }
                changed.await;
            }
        };
        tokio::time::timeout(within, found)
            .await
            .map_err(|_| WaitError::TimedOut { within, recent: self.lock().recent() })
    }
}

impl Inner {
    /// The last requests, one a line.
    pub(super) fn recent(&self) -> String {
        let mut lines: Vec<_> = self.log.iter().rev().take(SHOWN).map(ToString::to_string).collect();
        lines.reverse();
        lines.join("\n")
    }
}
