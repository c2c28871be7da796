//! How long a call may take, and who else may end it.

use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The bounds of one call.
#[derive(Clone, Debug)]
pub struct Limit {
    pub(super) deadline: Duration,
    pub(super) cancel: Option<CancellationToken>,
}

impl Limit {
    /// Also ends the call when `cancel` is cancelled. The error then says whether the request was sent, as for a
    /// deadline.
    #[must_use]
    pub fn or_when(self, cancel: CancellationToken) -> Self {
        Self { cancel: Some(cancel), ..self }
    }

    /// Whether the one who else may end the call has done so.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.as_ref().is_some_and(CancellationToken::is_cancelled)
    }

    /// Who else may end it.
    #[cfg(test)]
    pub(crate) fn token(&self) -> Option<CancellationToken> {
        self.cancel.clone()
    }

    /// Ends when the call has to. Says why in words.
    pub(crate) async fn expired(&self) -> String {
        let cancelled = async {
            match &self.cancel {
                Some(cancel) => cancel.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = cancelled => "the call was cancelled".to_owned(),
            () = tokio::time::sleep(self.deadline) => format!("no answer within {:?}", self.deadline),
        }
    }
}

impl From<Duration> for Limit {
    /// The call ends after `deadline` at the latest, answer included.
    fn from(deadline: Duration) -> Self {
        Self { deadline, cancel: None }
    }
}
