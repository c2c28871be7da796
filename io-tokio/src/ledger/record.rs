//! The forms of `record.json` and `outcome.json`.

use super::VERSION;
use super::facts::{Place, TaskFacts, Words};
use longshore_core::codec::outcome::Outcome;
use longshore_core::event::RunOutcome;
use longshore_core::ledger::Record;
use serde::{Deserialize, Serialize};

/// All that is kept of a claim beside what its agent said and came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// As the core wants it.
    pub record: Record,
    /// The task.
    pub task: TaskFacts,
    /// Where it is on this machine.
    pub place: Place,
    /// What its report says.
    pub words: Words,
}

/// `record.json`.
#[derive(Serialize, Deserialize)]
pub(super) struct WrittenRecord {
    version: u32,
    record: Record,
    task: TaskFacts,
    #[serde(default)]
    place: Place,
    #[serde(default)]
    words: Words,
}

impl From<Kept> for WrittenRecord {
    fn from(kept: Kept) -> Self {
        let Kept { record, task, place, words } = kept;
        Self { version: VERSION, record, task, place, words }
    }
}

impl From<WrittenRecord> for Kept {
    fn from(written: WrittenRecord) -> Self {
        let WrittenRecord { record, task, place, words, .. } = written;
        Self { record, task, place, words }
    }
}

/// `outcome.json`: what an attempt at a task came to, as the core hears it and as it is reported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptOutcome {
    version: u32,
    /// Which attempt: the number that names its run directory.
    pub attempt: u32,
    /// What it came to, together with the attempt before.
    pub outcome: Outcome,
    /// As the core hears it.
    pub told: RunOutcome,
    /// Session that the agent named.
    #[serde(default)]
    pub session: Option<String>,
    /// A session that turned out dead.
    #[serde(default)]
    pub retired_session: Option<String>,
}

impl KeptOutcome {
    /// What is written of an attempt.
    pub fn new(attempt: u32, outcome: Outcome, told: RunOutcome) -> Self {
        Self { version: VERSION, attempt, outcome, told, session: None, retired_session: None }
    }
}

/// Reads only the form, so that a later one is told apart from a damaged file.
#[derive(Deserialize)]
pub(super) struct Versioned {
    pub(super) version: u32,
}
