//! What must survive the process, as a pure fold of what the core wants kept: an adapter writes these records down, a test keeps them
//! in memory, and both hand them to the next process as events.
//!
//! For an adapter:
//! - Write a record (a file or a row of its own, atomically) before the first effect that comes after its `Keep` is started. A kill needs no fsync; to
//!   survive a power cut, run the fsync beside the work, for nobody was told anything yet. Remove it at `Forget`.
//! - Call [`Ledger::acked`] when a post of messages was taken. It may lag.
//! - Number the claims of the next process above [`Ledger::last_claim`].
//! - A [`Record`]'s `path` is what *this* process called the user's directory: give it the new name ([`Record`] is plain data, [`Ledger::of`] takes them back)
//!   before [`Ledger::recover`].
//! - A `Recovered` that the core counts as a stray (the claim is here already, or the daemon stops) changes nothing: leave the record for the next process.
//!
//! ```
//! use longshore_core::effect::{Effect, Keep};
//! use longshore_core::event::{ClaimKey, Event, Offer, Recovered};
//! use longshore_core::ledger::Ledger;
//!
//! let claim = ClaimKey(7);
//! let offer = Offer {
//!     claim,
//!     task: "t".into(),
//!     runtime: "r".into(),
//!     root: "ws/t".into(),
//!     prior: None,
//!     fault: None,
//!     in_place: false,
//! };
//! let mut ledger = Ledger::default();
//! ledger.apply(&[Effect::Keep { claim, entry: Keep::Claimed { offer, provider: "claude".into() } }]);
//! assert!(matches!(ledger.recover()[..], [Event::Recovered { was: Recovered::Claimed, .. }]));
//! ledger.apply(&[Effect::Forget { claim }]);
//! assert!(ledger.is_empty());
//! ```

use crate::effect::{Effect, Keep};
use crate::event::{ClaimKey, Event, Offer, Recovered};
use crate::id::{PathKey, Provider};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thiserror::Error;

/// The form that records are written in. A record of a later form is refused when it is read.
pub const VERSION: u32 = 1;

/// What is kept about one claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Written", try_from = "Written")]
pub struct Record {
    /// The claim, as it was taken.
    pub offer: Offer,
    /// The agent CLI family of its runtime; empty if the runtime was not here.
    pub provider: Provider,
    /// How far it is.
    pub was: Recovered,
    /// The user's directory that it was launched in, until that is tidied up. The name holds within one process: whoever recovers
    /// the record in another one puts that one's name for the directory here.
    pub path: Option<PathKey>,
}

/// A record that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A later version of this program wrote it.
    #[error("the record has form {found}; this version reads up to form {VERSION}")]
    Version {
        /// The form that it says it has.
        found: u32,
    },
}

/// A record with the form that it is written in.
#[derive(Serialize, Deserialize)]
struct Written {
    version: u32,
    offer: Offer,
    provider: Provider,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<PathKey>,
    #[serde(flatten)]
    was: Recovered,
}

impl From<Record> for Written {
    fn from(record: Record) -> Self {
        let Record { offer, provider, was, path } = record;
        Self { version: VERSION, offer, provider, path, was }
    }
}

impl TryFrom<Written> for Record {
    type Error = RecordError;

    fn try_from(written: Written) -> Result<Self, RecordError> {
        let Written { version, offer, provider, path, was } = written;
        if version > VERSION {
            return Err(RecordError::Version { found: version });
        }
        Ok(Self { offer, provider, was, path })
    }
}

impl Record {
    /// The claim that it is about.
    pub const fn claim(&self) -> ClaimKey {
        self.offer.claim
    }

    /// What a fresh core is told of it.
    pub fn recover(&self) -> Event {
        Event::Recovered {
            offer: self.offer.clone(),
            provider: self.provider.clone(),
            was: self.was,
            path: self.path.clone(),
        }
    }

    /// Takes in what the core wants kept about the claim from now on. What the server is known to have stays known.
    pub fn keep(&mut self, entry: &Keep) {
        let known = acked(&self.was);
        self.path = match entry {
            Keep::Claimed { .. } => None,
            Keep::Launched { path, .. } | Keep::Ended { path, .. } => path.clone(),
        };
        self.was = match entry {
            Keep::Claimed { offer, provider } => {
                (self.offer, self.provider) = (offer.clone(), provider.clone());
                Recovered::Claimed
            }
            Keep::Launched { slot, .. } => Recovered::Launched { slot: *slot, acked: known },
            Keep::Ended { report, have, usage, ran, .. } => {
                Recovered::Ended { report: *report, acked: known, have: *have, usage: *usage, ran: *ran }
            }
        };
    }

    /// The server is known to have the claim's messages up to this number.
    pub fn acked(&mut self, upto: u32) {
        match &mut self.was {
            Recovered::Claimed => {}
            Recovered::Launched { acked, .. } | Recovered::Ended { acked, .. } => *acked = (*acked).max(upto),
        }
    }

    /// Whether nothing is owed any more: the outcome is acknowledged, and so is all that was said.
    pub const fn is_settled(&self) -> bool {
        matches!(self.was, Recovered::Ended { report: None, acked, have, usage: false, .. } if acked >= have)
    }
}

const fn acked(was: &Recovered) -> u32 {
    match was {
        Recovered::Claimed => 0,
        Recovered::Launched { acked, .. } | Recovered::Ended { acked, .. } => *acked,
    }
}

/// All records, by claim.
///
/// A claim's number names its record, so a new process must number its claims above [`Ledger::last_claim`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    records: BTreeMap<ClaimKey, Record>,
}

impl Ledger {
    /// The records that were read from where they were kept. Of two about one claim the later one counts.
    pub fn of(records: impl IntoIterator<Item = Record>) -> Self {
        Self { records: records.into_iter().map(|record| (record.claim(), record)).collect() }
    }

    /// Adds a record, in place of one about the same claim.
    pub fn add(&mut self, record: Record) {
        self.records.insert(record.claim(), record);
    }

    /// Takes in what one step of the core wants kept and forgotten. An adapter does so before it starts any effect of the step that
    /// comes after; other effects are not looked at. What is to be kept about a claim that was never said to be taken is not.
    pub fn apply(&mut self, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::Keep { claim, entry } => self.keep(*claim, entry),
                Effect::Forget { claim } => drop(self.records.remove(claim)),
                _ => {}
            }
        }
    }

    fn keep(&mut self, claim: ClaimKey, entry: &Keep) {
        if let Some(record) = self.records.get_mut(&claim) {
            record.keep(entry);
            if record.is_settled() {
                self.records.remove(&claim);
            }
        } else if let Keep::Claimed { offer, provider } = entry {
            let (offer, provider) = (offer.clone(), provider.clone());
            let record = Record { offer, provider, was: Recovered::Claimed, path: None };
            self.records.insert(claim, record);
        }
    }

    /// The server is known to have the claim's messages up to this number. May come late, or not at all: the next process then asks
    /// the server before it sends one again.
    pub fn acked(&mut self, claim: ClaimKey, upto: u32) {
        if let Some(record) = self.records.get_mut(&claim) {
            record.acked(upto);
            if record.is_settled() {
                self.records.remove(&claim);
            }
        }
    }

    /// What a fresh core is told before anything else, one event for each record, by claim.
    pub fn recover(&self) -> Vec<Event> {
        self.records.values().map(Record::recover).collect()
    }

    /// All records, by claim.
    pub fn iter(&self) -> impl Iterator<Item = &Record> {
        self.records.values()
    }

    /// The record of a claim.
    pub fn get(&self, claim: ClaimKey) -> Option<&Record> {
        self.records.get(&claim)
    }

    /// The highest number of a claim that is kept.
    pub fn last_claim(&self) -> Option<ClaimKey> {
        self.records.keys().next_back().copied()
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::ReportKind;
    use crate::id::SlotIndex;

    const CLAIM: ClaimKey = ClaimKey(3);

    fn claimed() -> Effect {
        let offer = Offer {
            claim: CLAIM,
            task: "t".into(),
            runtime: "r".into(),
            root: "ws/t".into(),
            prior: Some("ws/p".into()),
            fault: None,
            in_place: true,
        };
        keep(Keep::Claimed { offer, provider: "claude".into() })
    }

    fn keep(entry: Keep) -> Effect {
        Effect::Keep { claim: CLAIM, entry }
    }

    fn launched(slot: u16) -> Effect {
        keep(Keep::Launched { slot: SlotIndex(slot), path: Some("dir-1".into()) })
    }

    fn ended(report: Option<ReportKind>, have: u32) -> Effect {
        keep(Keep::Ended { report, have, usage: false, ran: true, path: None })
    }

    #[test]
    fn a_record_replaces_the_one_before_and_keeps_the_offer() {
        let mut ledger = Ledger::default();
        ledger.apply(&[claimed(), launched(2)]);
        ledger.acked(CLAIM, 5);
        ledger.acked(CLAIM, 4);
        ledger.apply(&[ended(Some(ReportKind::Complete), 9)]);
        let was = ledger.get(CLAIM).expect("kept").clone();
        assert_eq!(was.offer.prior, Some("ws/p".into()));
        assert_eq!(
            was.was,
            Recovered::Ended {
                report: Some(ReportKind::Complete),
                acked: 5,
                have: 9,
                usage: false,
                ran: true
            }
        );
        assert_eq!(ledger.recover(), [was.recover()]);
        ledger.apply(&[Effect::Forget { claim: CLAIM }, Effect::Forget { claim: CLAIM }]);
        assert!(ledger.is_empty());
    }

    #[test]
    fn an_acknowledged_outcome_stays_only_for_messages_that_are_left() {
        let mut ledger = Ledger::default();
        ledger.apply(&[claimed(), ended(None, 4)]);
        assert_eq!((ledger.len(), ledger.last_claim()), (1, Some(CLAIM)));
        ledger.acked(CLAIM, 4);
        assert!(ledger.is_empty());
        ledger.apply(&[claimed(), ended(Some(ReportKind::CancelAck), 0), ended(None, 0)]);
        assert!(ledger.is_empty());
    }

    #[test]
    fn the_users_directory_is_kept_until_the_core_says_that_it_is_left() {
        let mut ledger = Ledger::default();
        let path = |ledger: &Ledger| ledger.get(CLAIM).and_then(|record| record.path.clone());
        ledger.apply(&[claimed()]);
        assert_eq!(path(&ledger), None);
        ledger.apply(&[launched(0)]);
        assert_eq!(path(&ledger), Some("dir-1".into()));
        assert!(matches!(&ledger.recover()[..], [Event::Recovered { path: Some(_), .. }]));
        ledger.apply(&[ended(Some(ReportKind::Complete), 0)]);
        assert_eq!(path(&ledger), None);
    }

    #[test]
    fn what_was_never_taken_is_not_kept() {
        let mut ledger = Ledger::default();
        ledger.apply(&[launched(0), ended(None, 0)]);
        ledger.acked(CLAIM, 1);
        assert!(ledger.is_empty());
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_one_of_a_later_form_is_refused() {
        let mut ledger = Ledger::default();
        for step in [claimed(), launched(1), ended(Some(ReportKind::Complete), 2)] {
            ledger.apply(&[step]);
            let record = ledger.get(CLAIM).expect("kept").clone();
            let text = serde_json::to_string(&record).expect("plain data");
            assert_eq!(serde_json::from_str::<Record>(&text).expect("it reads what it wrote"), record);
            assert_eq!(Ledger::of([record]), ledger);
            let later = text.replace(&format!("\"version\":{VERSION}"), "\"version\":99");
            let error = serde_json::from_str::<Record>(&later).expect_err("a later form").to_string();
            assert!(error.contains("form 99"), "{error}");
        }
    }
}
