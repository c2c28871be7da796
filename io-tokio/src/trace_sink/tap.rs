//! A way to what a flight recorder has, for who wants to see it while it records.

use super::drawn::Drawn;
use super::queue::Queue;
use std::io;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Gives out what one flight recorder has. It is of use as long as the recorder is.
#[derive(Clone, Debug)]
pub struct Tap(Arc<Queue>);

impl Tap {
    pub(super) const fn new(queue: Arc<Queue>) -> Self {
        Self(queue)
    }

    /// Everything up to the last step that was recorded before this call, and what earlier lives left. Waits for the disk, which the recorder does
    /// not.
    ///
    /// # Errors
    /// If the directory cannot be read, or the recorder is closed.
    pub async fn draw(&self) -> io::Result<Drawn> {
        let (asked, answer) = oneshot::channel();
        self.0.ask(asked);
        let closed = |_| io::Error::other("the flight recorder is closed");
        answer.await.map_err(closed)?.map(Drawn::new)
    }
}
