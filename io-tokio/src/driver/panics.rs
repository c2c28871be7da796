//! A panic in what the core asked for: a bug, but no reason for the core to wait for an answer for ever.

use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;

/// What `work` comes to, or `otherwise` if it panics. The panic itself was told when it happened.
pub(super) async fn answered<T>(work: impl Future<Output = T>, otherwise: T) -> T {
    // What it may have left half done is behind locks that are taken although poisoned, or is its own.
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!("something that was to be done for a task or for the server ended with a panic; this is a bug, and it counts as failed");
        otherwise
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_answer_too() {
        assert_eq!(answered(async { 1 }, 2).await, 1);
        let broken = async {
            tokio::task::yield_now().await;
            "nothing".parse::<u8>().expect("a panic that is meant")
        };
        assert_eq!(answered(broken, 2).await, 2);
    }
}
