//! What the daemon knows of each claim and the core must not see: payloads, texts, secrets, directories, processes. Kept by the
//! number of the claim, from the claim's reply until the core says that it can be forgotten.

mod entry;
mod outbox;

pub use entry::{Disk, Ending, Entry};
pub use outbox::{MAX_BATCH, MAX_UNSENT, Outbox};

use crate::wire::task::Task;
use longshore_core::event::ClaimKey;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// All claims.
#[derive(Debug, Default)]
pub struct Book {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    entries: BTreeMap<ClaimKey, Arc<Entry>>,
}

impl Book {
    /// Takes a claimed task in, and numbers the claim.
    pub fn add(&self, task: Task, provider: String) -> Arc<Entry> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.next += 1;
        let claim = ClaimKey(inner.next);
        let entry = Arc::new(Entry::new(claim, task, provider));
        inner.entries.insert(claim, entry.clone());
        entry
    }

    /// One claim; `None` if it was forgotten.
    pub fn get(&self, claim: ClaimKey) -> Option<Arc<Entry>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).entries.get(&claim).cloned()
    }

    /// Forgets a claim.
    pub fn forget(&self, claim: ClaimKey) {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).entries.remove(&claim);
    }
}
