//! What the daemon knows of each claim and the core must not see: payloads, texts, secrets, directories, processes. Kept by the
//! number of the claim, from the claim's reply until the core says that it can be forgotten.

mod entry;
mod keeping;
mod outbox;
mod stream;
mod tools;

pub use entry::{Disk, Ending, Entry};
pub use outbox::{MAX_BATCH, MAX_UNSENT, Outbox};
pub use stream::Stream;
pub use tools::Tools;

use crate::ledger::{Journal, Set, Store};
use crate::wire::task::Task;
use longshore_core::event::ClaimKey;
use longshore_core::id::ProfileId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// All claims.
#[derive(Debug)]
pub struct Book {
    ledger: Store,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    entries: BTreeMap<ClaimKey, Arc<Entry>>,
}

impl Book {
    /// A book without claims; new ones are numbered above those of the ledger.
    pub fn new(ledger: Store) -> Self {
        let next = ledger.last_claim();
        Self { ledger, inner: Mutex::new(Inner { next, entries: BTreeMap::new() }) }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a claimed task in, and numbers the claim.
    pub fn add(&self, task: Task, provider: String, profile: Option<ProfileId>) -> Arc<Entry> {
        let mut inner = self.inner();
        inner.next += 1;
        let claim = ClaimKey(inner.next);
        let journal = Journal::new(self.ledger.outbox(claim), 0);
        let mut entry = Entry::new(claim, task, provider, journal);
        entry.profile = profile;
        let entry = Arc::new(entry);
        inner.entries.insert(claim, entry.clone());
        entry
    }

    /// Takes a claim of an earlier process in, under its number.
    pub fn take_over(&self, set: Set) -> Arc<Entry> {
        let claim = set.kept.record.claim();
        let journal = Journal::new(self.ledger.outbox(claim), set.said.whole);
        let entry = Arc::new(Entry::taken_over(set, journal));
        self.inner().entries.insert(claim, entry.clone());
        entry
    }

    /// One claim; `None` if it was forgotten.
    pub fn get(&self, claim: ClaimKey) -> Option<Arc<Entry>> {
        self.inner().entries.get(&claim).cloned()
    }

    /// All claims, by their number.
    pub fn all(&self) -> Vec<Arc<Entry>> {
        self.inner().entries.values().cloned().collect()
    }

    /// Forgets a claim.
    pub fn forget(&self, claim: ClaimKey) {
        self.inner().entries.remove(&claim);
    }
}
