//! A way to what a flight recorder has, for who wants to see it while it records.

use super::drawn::{Drawn, Piece};
use super::queue::Queue;
use jiff::Timestamp;
use std::io;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Gives out what one flight recorder has. It is of use as long as the recorder is.
#[derive(Clone, Debug)]
pub struct Tap(Arc<Queue>);

/// Nothing is recorded at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Since when, by the wall clock.
    pub since: Timestamp,
    /// Why, as the system says it.
    pub why: String,
    /// What a person can do about it, as part of a sentence, unless the reason says that.
    pub remedy: Option<String>,
}

/// What has been written.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) pieces: Vec<Piece>,
    pub(super) refusal: Option<Refusal>,
}

impl Tap {
    pub(super) const fn new(queue: Arc<Queue>) -> Self {
        Self(queue)
    }

    /// Everything up to the last step that was recorded before this call, and what earlier lives left; and whether the disk refuses to take more.
    /// Waits for the disk, which the recorder does not.
    ///
    /// # Errors
    /// If the directory cannot be read, or the recorder is closed.
    pub async fn draw(&self) -> io::Result<(Drawn, Option<Refusal>)> {
        let (asked, answer) = oneshot::channel();
        self.0.ask(asked);
        let closed = |_| io::Error::other("the flight recorder is closed");
        let written = answer.await.map_err(closed)??;
        Ok((Drawn::new(written.pieces), written.refusal))
    }
}
