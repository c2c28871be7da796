//! Keeping what an agent said: written down before a server hears of it, so that a later process goes on just there.

use super::entry::Entry;
use crate::ledger::{At, Journal, JournalError};
use crate::supervise::Position;
use std::io;
use std::sync::Arc;
use tokio::sync::{Mutex, watch};

/// What one claim's output is written down with.
#[derive(Debug)]
pub(super) struct Keeping {
    /// One writer at a time, and in order.
    journal: Arc<Mutex<Journal>>,
    /// Up to where the output is written down.
    durable: watch::Sender<Position>,
}

impl Keeping {
    pub(super) fn new(journal: Journal) -> Self {
        Self { journal: Arc::new(Mutex::new(journal)), durable: watch::Sender::default() }
    }

    pub(super) fn is_durable_up_to(&self, position: Position) {
        self.durable.send_replace(position);
    }
}

impl Entry {
    /// Writes down all that the agent said so far, and where reading goes on; at once if nothing is new. To be awaited before messages
    /// are handed to a request for the first time. After a kill that comes later they have the same numbers and texts.
    ///
    /// # Errors
    /// When the disk does not take it: then nothing is lost, and it can be tried again.
    pub async fn write_down(self: &Arc<Self>) -> io::Result<()> {
        let mut journal = self.keeping.journal.clone().lock_owned().await;
        if self.outbox.is_away() {
            return Ok(());
        }
        let bloated = journal.is_bloated(self.outbox.bytes());
        let (messages, at, taken) = {
            // Held together, so that the messages are those that came of the output up to there.
            let stream = self.stream();
            let Some(stream) = &*stream else { return Ok(()) };
            let same = *self.keeping.durable.borrow() == stream.position();
            if same && self.outbox.last_written() == self.outbox.last() && journal.is_made() {
                return Ok(());
            }
            let (messages, last, taken) = self.outbox.seal(bloated);
            (messages, At::of(stream, last), taken)
        };
        let entry = self.clone();
        let written = tokio::task::spawn_blocking(move || {
            if bloated { journal.write_anew(&messages, &at, taken) } else { journal.add(&messages, &at) }?;
            // Before the next writer has its turn, and though nobody may wait for this one any more: else that one writes the same again.
            entry.outbox.written(at.last);
            entry.keeping.is_durable_up_to(at.position());
            drop(journal);
            Ok(())
        });
        written.await.map_err(io::Error::other)?
    }

    /// Brings messages back that were put away. To be awaited before they are sent, with the outbox held.
    ///
    /// # Errors
    /// When the disk does not give them: then nothing is lost, and it can be tried again.
    pub async fn bring_back(self: &Arc<Self>) -> Result<(), JournalError> {
        let journal = self.keeping.journal.clone().lock_owned().await;
        if !self.outbox.is_away() {
            return Ok(());
        }
        let read = tokio::task::spawn_blocking(move || journal.replay()).await;
        let said = read.map_err(io::Error::other)??;
        if said.last < self.outbox.last() {
            let missing = self.outbox.last() - said.last;
            tracing::error!(task = %self.id, missing, "messages of the task that were written down are not on the disk any more");
        }
        self.outbox.bring_back(said.unsent);
        Ok(())
    }

    /// Notes what the server is known to have. It may come late: a later process asks the server.
    pub fn note_taken(&self) {
        // While something is written the next note says it as well.
        if let Ok(mut journal) = self.keeping.journal.try_lock()
            && let Err(error) = journal.taken(self.outbox.last_taken())
        {
            tracing::debug!(task = %self.id, %error, "what the server has could not be written down");
        }
    }

    /// Up to where the agent's output is written down, as it changes: its space can be given back.
    pub fn durable(&self) -> watch::Receiver<Position> {
        self.keeping.durable.subscribe()
    }
}
