//! How long a call may take, and who else may end it.

use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Who is to end a call at its deadline may do so that little earlier: the time that the call took to begin.
const TICK: Duration = Duration::from_millis(100);

/// The bounds of one call.
#[derive(Clone, Debug)]
pub struct Limit {
    deadline: Duration,
    /// So long after the deadline it ends by itself.
    grace: Duration,
    cancel: Option<CancellationToken>,
}

impl Limit {
    /// Also ends the call when `cancel` is cancelled. The error then says whether the request was sent, as for a
    /// deadline.
    #[must_use]
    pub fn or_when(self, cancel: CancellationToken) -> Self {
        Self { cancel: Some(cancel), ..self }
    }

    /// Leaves it to the one who may cancel to end the call at the deadline. If that is not done within `grace`, it ends by itself.
    #[must_use]
    pub fn left_to_canceller(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    /// Whether a call that took so long was ended by the one who else may end it, before its deadline.
    pub(crate) fn is_cancelled_after(&self, took: Duration) -> bool {
        self.cancel.as_ref().is_some_and(CancellationToken::is_cancelled) && took + TICK < self.deadline
    }

    /// Who else may end it.
    #[cfg(test)]
    pub(crate) fn token(&self) -> Option<CancellationToken> {
        self.cancel.clone()
    }

    /// Ends when the call has to. Says why in words.
    pub(crate) async fn expired(&self) -> String {
        let begun = Instant::now();
        let cancelled = async {
            match &self.cancel {
                Some(cancel) => cancel.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = cancelled => {}
            () = tokio::time::sleep(self.deadline.saturating_add(self.grace)) => {}
        }
        if self.is_cancelled_after(begun.elapsed()) {
            return "the call was cancelled".to_owned();
        }
        format!("no answer within {:?}", self.in_words())
    }

    /// The deadline, without what passed of it before the call began.
    fn in_words(&self) -> Duration {
        let Ok(ms) = u64::try_from(self.deadline.as_millis()) else { return self.deadline };
        if self.grace.is_zero() { self.deadline } else { Duration::from_millis(ms.next_multiple_of(1000)) }
    }
}

impl From<Duration> for Limit {
    /// The call ends after `deadline` at the latest, answer included.
    fn from(deadline: Duration) -> Self {
        Self { deadline, grace: Duration::ZERO, cancel: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn why(deadline: Duration, grace: Duration, cancelled: Option<Duration>) -> String {
        let cancel = CancellationToken::new();
        let limit = Limit::from(deadline).left_to_canceller(grace).or_when(cancel.clone());
        let ended = async {
            if let Some(after) = cancelled {
                tokio::time::sleep(after).await;
                cancel.cancel();
            }
        };
        tokio::join!(limit.expired(), ended).0
    }

    #[tokio::test]
    async fn a_call_that_is_ended_at_its_deadline_had_no_answer_whoever_ended_it() {
        const SHORT: Duration = Duration::from_millis(200);
        const LONG: Duration = Duration::from_mins(5);
        assert_eq!(why(SHORT, LONG, Some(SHORT)).await, "no answer within 1s");
        assert_eq!(why(SHORT, SHORT, None).await, "no answer within 1s");
        assert_eq!(why(SHORT, Duration::ZERO, None).await, "no answer within 200ms");
        assert_eq!(why(LONG, LONG, Some(SHORT)).await, "the call was cancelled");
    }
}
