//! The ledger as the core wants it: written before anything that comes after it is started.

use super::{Driver, run};
use crate::ledger::{Place, TaskFacts, Words};
use longshore_core::effect::{Effect, EndReason, Keep};
use longshore_core::event::ClaimKey;
use std::time::Duration;
use tokio::time::Instant;

/// What the ledger could not write is tried again so much later.
const WRITE_AGAIN: Duration = Duration::from_secs(2);

impl Driver {
    /// Tries again what the ledger could not write, once it is time; when that is next. However much there is to do meanwhile.
    pub(super) fn write_again(&mut self) -> Option<Instant> {
        let now = Instant::now();
        if self.write_again_at.is_some_and(|at| at <= now) {
            self.write_again_at = None;
            if self.host.ledger.owes() {
                self.host.ledger.write_again();
            }
        }
        if !self.host.ledger.owes() {
            self.write_again_at = None;
            return None;
        }
        Some(*self.write_again_at.get_or_insert(now + WRITE_AGAIN))
    }

    /// Writes down what the core wants kept, before anything that comes after it is started.
    pub(super) fn keep(&self, claim: ClaimKey, effect: &Effect) {
        let Some(entry) = self.host.book.get(claim) else { return };
        let place = Place::of(&entry.disk());
        let words = Words::of(&entry.ending());
        self.host.ledger.keep(claim, effect, &TaskFacts::of(&entry.task), place, words);
        let is_over = matches!(effect, Effect::Keep { entry: Keep::Ended { .. }, .. });
        if matches!(effect, Effect::Keep { entry: Keep::Ended { ran: false, .. }, .. }) {
            // It has no slot and no directory any more.
            entry.outbox.put_away();
        }
        if is_over && self.host.ledger.is_written(claim) {
            self.remove_runs(claim);
        }
    }

    /// What the agent wrote is needed no more: all that came of it is in the ledger, or with the server.
    pub(super) fn remove_runs(&self, claim: ClaimKey) {
        let Some(entry) = self.host.book.get(claim) else { return };
        run::remove_dirs(&self.host, &entry);
    }

    /// The core ends a task before its time: which words its report will have. What is done about it comes by itself.
    pub(super) fn note_ending(&self, claim: ClaimKey, why: EndReason) {
        let Some(entry) = self.host.book.get(claim) else { return };
        entry.ending().why = Some(why);
        self.host.ledger.put_words(claim, Words::of(&entry.ending()));
    }

    /// Nothing about a claim is needed any more.
    pub(super) fn forget(&self, claim: ClaimKey) {
        self.host.ledger.forget(claim);
        self.remove_runs(claim);
        self.host.book.forget(claim);
        self.host.forget_secret(claim.0);
    }
}
