//! What would be said again and again is said once a minute at most.

use std::time::Duration;
use tokio::time::Instant;

/// From one word of it to the next.
pub(super) const APART: Duration = Duration::from_mins(1);

/// When it may be said again.
#[derive(Debug, Default)]
pub(super) struct Apart(Option<Instant>);

impl Apart {
    /// Whether it may be said at `now`; then not again for a while. What comes too early is for the next one to say.
    pub(super) fn lets(&mut self, now: Instant) -> bool {
        if self.0.is_some_and(|until| now < until) {
            return false;
        }
        self.0 = Some(now + APART);
        true
    }
}
