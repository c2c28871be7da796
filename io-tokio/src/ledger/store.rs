//! The records as this process writes them.

use super::facts::{Place, TaskFacts, Words};
use super::load::{self, Found};
use super::record::{Kept, KeptOutcome, WrittenRecord};
use super::sync::Syncer;
use crate::remedy;
use longshore_core::effect::Effect;
use longshore_core::event::ClaimKey;
use longshore_core::ledger::Ledger;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(super) const RECORD: &str = "record.json";
pub(super) const OUTCOME: &str = "outcome.json";
pub(super) const OUTBOX: &str = "outbox.jsonl";
/// Bytes that there must be room for at the start: as much as a record, at least.
const PROBE: usize = 4096;

/// Why there is no ledger.
#[derive(Debug, thiserror::Error)]
#[error(
    "the ledger {} cannot be used: {source}; without it a task could be lost or done twice: {}, and start again",
    path.display(), remedy::for_directory(source)
)]
pub struct LedgerError {
    /// Where it is.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

/// The ledger of a daemon that runs.
#[derive(Clone, Debug)]
pub struct Store(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    dir: PathBuf,
    inner: Mutex<Inner>,
    /// Held while what a run came to is written: one after the other. Only by those who may wait for the disk.
    outcomes: Mutex<()>,
    syncer: Syncer,
}

#[derive(Debug, Default)]
struct Inner {
    ledger: Ledger,
    facts: BTreeMap<ClaimKey, Facts>,
    /// Records that the disk did not take; they are tried again.
    unwritten: BTreeSet<ClaimKey>,
    /// Claims whose run is over while what it came to is not on disk, with the attempt: until it is, their records stay as they are there,
    /// so that the next process reads it from the run directory.
    withheld: BTreeMap<ClaimKey, u32>,
    /// The attempt that was written last by this process. What an earlier one came to, tried again, would take its place.
    newest: BTreeMap<ClaimKey, u32>,
}

/// What is written beside what the core wants kept.
#[derive(Clone, Debug, Default)]
struct Facts {
    task: TaskFacts,
    place: Place,
    words: Words,
}

impl Store {
    /// Reads what earlier processes left, and makes the directory if there is none.
    ///
    /// # Errors
    /// When the directory cannot be made, read or written. Records that cannot be read are no error: see [`Found::aside`].
    pub fn open(dir: impl Into<PathBuf>) -> Result<(Self, Found), LedgerError> {
        let dir = dir.into();
        let failed = |source: io::Error| LedgerError { path: dir.clone(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(&dir).map_err(failed)?;
        // A directory that cannot be written is found now, and not with the first task. A full disk still takes an empty file.
        let mut probe = tempfile::NamedTempFile::new_in(&dir).map_err(failed)?;
        probe.write_all(&[b' '; PROBE]).map_err(failed)?;
        drop(probe);
        let found = load::all(&dir).map_err(failed)?;
        let mut inner = Inner::default();
        for kept in &found.claims {
            let Kept { record, task, place, words } = kept.kept.clone();
            let facts = Facts { task, place, words };
            inner.facts.insert(record.claim(), facts);
            inner.ledger.add(record);
        }
        let syncer = Syncer::default();
        Ok((
            Self(Arc::new(Shared { dir, inner: Mutex::new(inner), outcomes: Mutex::default(), syncer })),
            found,
        ))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The highest number of a claim that is kept; 0 for none.
    pub fn last_claim(&self) -> u64 {
        self.inner().ledger.last_claim().map_or(0, |claim| claim.0)
    }

    /// Takes in what the core wants kept about a claim (`Effect::Keep`), and writes it before it returns; its fsync comes later. Where
    /// the disk does not take it, it is tried again until it does.
    pub fn keep(&self, claim: ClaimKey, effect: &Effect, task: &TaskFacts, place: Place, words: Words) {
        let mut inner = self.inner();
        inner.ledger.apply(std::slice::from_ref(effect));
        if inner.ledger.get(claim).is_none() {
            // Nothing is owed any more.
            self.drop_record(&mut inner, claim);
            return;
        }
        inner.facts.insert(claim, Facts { task: task.clone(), place, words });
        match self.write(&inner, claim) {
            Ok(()) => drop(inner.unwritten.remove(&claim)),
            Err(error) => {
                tracing::error!(task = task.id(), %error, "what is known of the task could not be written down: a kill now would lose it; it is tried again");
                inner.unwritten.insert(claim);
            }
        }
    }

    /// Other words for a claim's report, should it be this daemon's successor that gives it.
    pub fn put_words(&self, claim: ClaimKey, words: Words) {
        let mut inner = self.inner();
        if let Some(facts) = inner.facts.get_mut(&claim) {
            facts.words = words;
            if self.write(&inner, claim).is_err() {
                inner.unwritten.insert(claim);
            }
        }
    }

    /// Whether what is kept of the claim is on disk.
    pub fn is_written(&self, claim: ClaimKey) -> bool {
        !self.inner().unwritten.contains(&claim)
    }

    /// Whether some record is not on disk.
    pub fn owes(&self) -> bool {
        !self.inner().unwritten.is_empty()
    }

    /// Tries again to write what the disk did not take.
    pub fn write_again(&self) {
        let mut inner = self.inner();
        for claim in std::mem::take(&mut inner.unwritten) {
            if self.write(&inner, claim).is_err() {
                inner.unwritten.insert(claim);
            }
        }
        if inner.unwritten.is_empty() {
            tracing::info!("what is known of all tasks is written down again");
        }
    }

    /// Nothing about the claim is needed any more.
    pub fn forget(&self, claim: ClaimKey) {
        let mut inner = self.inner();
        inner.ledger.apply(&[Effect::Forget { claim }]);
        self.drop_record(&mut inner, claim);
    }

    fn drop_record(&self, inner: &mut Inner, claim: ClaimKey) {
        inner.unwritten.remove(&claim);
        inner.withheld.remove(&claim);
        inner.newest.remove(&claim);
        if inner.facts.remove(&claim).is_none() {
            return;
        }
        let dir = self.claim_dir(claim);
        // Without its record a directory means nothing. The rest of it is no matter of this instant.
        let gone = fs::remove_file(dir.join(RECORD));
        if let Err(error) = gone
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::error!(claim = claim.0, %error, "the record of a task that is over cannot be removed; the next daemon will report the task again");
        }
        self.0.syncer.remove(dir);
    }

    /// Writes what an attempt came to, before the core hears of it. Nothing is done for a claim that is forgotten, or of which a later attempt
    /// is written.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep_outcome(&self, claim: ClaimKey, outcome: &KeptOutcome) -> io::Result<()> {
        let _order = self.0.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        let is_late = |inner: &Inner| {
            !inner.facts.contains_key(&claim)
                || inner.newest.get(&claim).is_some_and(|it| *it > outcome.attempt)
        };
        if is_late(&self.inner()) {
            return Ok(());
        }
        self.put(claim, OUTCOME, outcome)?;
        let mut inner = self.inner();
        if inner.facts.contains_key(&claim) {
            inner.newest.insert(claim, outcome.attempt);
        }
        if inner.withheld.get(&claim).is_some_and(|it| *it <= outcome.attempt) {
            inner.withheld.remove(&claim);
        }
        Ok(())
    }

    /// What an attempt came to, or what its agent said, could not be written down: nobody who reads the ledger may take the run for over
    /// before [`Store::keep_outcome`] succeeds for it.
    pub fn withhold(&self, claim: ClaimKey, attempt: u32) {
        let mut inner = self.inner();
        if inner.facts.contains_key(&claim) {
            inner.withheld.insert(claim, attempt);
        }
    }

    /// Where a claim's journal is. Its directory is there as soon as the claim is kept.
    pub fn outbox(&self, claim: ClaimKey) -> PathBuf {
        self.claim_dir(claim).join(OUTBOX)
    }

    /// Makes a file survive a power cut, some time soon.
    pub fn sync(&self, path: &Path) {
        self.0.syncer.sync(path.to_owned());
    }

    /// Waits until all that was asked for so far is done: the end of a process, which nobody waits for in vain.
    pub fn settle(&self) {
        if self.owes() {
            self.write_again();
        }
        self.0.syncer.settle();
    }

    fn write(&self, inner: &Inner, claim: ClaimKey) -> io::Result<()> {
        let (Some(record), Some(facts)) = (inner.ledger.get(claim), inner.facts.get(&claim)) else {
            return Ok(());
        };
        if inner.withheld.contains_key(&claim) {
            return Err(io::Error::other("what its run came to is not written down yet"));
        }
        let Facts { task, place, words } = facts.clone();
        let written = WrittenRecord::from(Kept { record: record.clone(), task, place, words });
        self.put(claim, RECORD, &written)
    }

    /// Writes one of a claim's files, and has it made durable.
    fn put(&self, claim: ClaimKey, name: &str, value: &impl Serialize) -> io::Result<()> {
        let path = self.made(claim)?.join(name);
        replace_json(&path, value)?;
        self.0.syncer.sync(path);
        Ok(())
    }

    fn claim_dir(&self, claim: ClaimKey) -> PathBuf {
        self.0.dir.join(claim.0.to_string())
    }

    fn made(&self, claim: ClaimKey) -> io::Result<PathBuf> {
        let dir = self.claim_dir(claim);
        let make = |dir: &Path| match DirBuilder::new().mode(0o700).create(dir) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        };
        match make(&dir) {
            // Somebody may have removed the ledger since the start. What is above it was moved if it is gone, and is not made anew: nobody
            // would look for a task there.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make(&self.0.dir)?;
                make(&dir)?;
            }
            made => made?,
        }
        Ok(dir)
    }
}

fn replace_json(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(value)?;
    text.push(b'\n');
    replace(path, &text)
}

/// Puts a file in the place of the one of this name, so that a reader sees one or the other.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
