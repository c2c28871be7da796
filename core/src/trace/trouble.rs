//! What is wrong with a trace that was read nevertheless, and what was done about it.

use super::format::{FORMAT, StepNumber, Version};
use super::reader::MAX_LINE;
use std::fmt;
use thiserror::Error;

/// Troubles that are kept; of more only the number is.
const MOST: usize = 50;

/// Where something stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// In which source, from 0: a trace may be in several files.
    pub source: usize,
    /// Its line there, from 1.
    pub line: u64,
    /// Where that begins, in bytes from the start of the source, uncompressed.
    pub byte: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} (byte {})", self.line, self.byte)
    }
}

/// What is wrong. The text says what was done, too.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Damage {
    /// A source has no byte.
    #[error("it is empty; it was left out")]
    Empty,
    /// The first line of a source is no header.
    #[error("no header of a trace: {why}; everything up to the next header was left out")]
    NoHeader {
        /// Why it is none.
        why: String,
    },
    /// A header of a version that cannot be read.
    #[error(
        "the trace has format {found}, and this program reads {}.x: it was left out; use the version that recorded it",
        FORMAT.major
    )]
    Major {
        /// Version of the file.
        found: Version,
    },
    /// A header of a newer minor version.
    #[error(
        "the trace has format {found}, and this program knows {FORMAT}: what it does not know is left out"
    )]
    Newer {
        /// Version of the file.
        found: Version,
    },
    /// A kind of record that this version does not know.
    #[error("`{kind}` is no kind of record in format {FORMAT}; it was left out")]
    Kind {
        /// The kind.
        kind: String,
    },
    /// A line that is no record.
    #[error("no record of a trace: {why}; it was left out")]
    Line {
        /// What is wrong with it.
        why: String,
    },
    /// A step whose event can be read, and whose effects cannot.
    #[error(
        "the effects of step {n} cannot be read: {why}; its event was used, and they are compared with nothing"
    )]
    Effects {
        /// The step.
        n: StepNumber,
        /// What is wrong with them.
        why: String,
    },
    /// The creation has an event, or another step has none.
    #[error("step {n} must have {}; it was left out", if *n == 0 { "no event, as it is the creation" } else { "an event" })]
    Event {
        /// The step.
        n: StepNumber,
    },
    /// A line that is too long.
    #[error("longer than {MAX_LINE} bytes; it was left out")]
    Long,
    /// A last line without its end.
    #[error("broken off after {bytes} bytes; it was left out")]
    Torn {
        /// How many bytes of it are there.
        bytes: usize,
    },
    /// The source fails from here on.
    #[error("from here on nothing can be read: {why}; what came before was used")]
    Source {
        /// How.
        why: String,
    },
    /// What is of a number that was there already.
    #[error("{what} {n} is here after step {last}; it was left out")]
    Behind {
        /// What kind of record.
        what: &'static str,
        /// Its number.
        n: StepNumber,
        /// What came before.
        last: StepNumber,
    },
    /// A number that fits neither what comes before nor what comes after.
    #[error("{what} {n} does not fit what comes before and after it; it was left out")]
    Stray {
        /// What kind of record.
        what: &'static str,
        /// Its number.
        n: StepNumber,
    },
    /// Two lines stand the wrong way round.
    #[error("{what} {n} stands one line too early; it was put in its place")]
    Swapped {
        /// What kind of record.
        what: &'static str,
        /// Its number.
        n: StepNumber,
    },
    /// Steps are not there, and nothing says so.
    #[error("{}; that is taken as a gap", missing(*from, *lost))]
    Missing {
        /// The first of them.
        from: StepNumber,
        /// How many.
        lost: u64,
    },
    /// Sources that belong between others are not there.
    #[error("{what}; what is in it is missing, and reading went on behind it")]
    Absent {
        /// Which ones, and why they are thought to have been there.
        what: String,
    },
    /// An archive of sources ends before its end.
    #[error(
        "{why}; what stands before that in the archive was used, and what stands behind it was not read: there may be more segments"
    )]
    Archive {
        /// How.
        why: String,
    },
    /// A life begins that was there already.
    #[error("a header of what was read before; it was left out")]
    Again,
}

impl Damage {
    /// Whether something may be lost by it that other records would have told. A last line without its end is what a killed process leaves.
    pub const fn loses(&self) -> bool {
        !matches!(self, Self::Empty | Self::Newer { .. } | Self::Swapped { .. } | Self::Torn { .. })
    }
}

fn missing(from: StepNumber, lost: u64) -> String {
    match lost {
        1 => format!("step {from} is missing"),
        _ => format!("steps {from} to {} are missing", from.saturating_add(lost - 1)),
    }
}

/// Something wrong at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Where.
    pub at: Place,
    /// In which life, from 1, as they are in the trace; 0 before the first.
    pub life: u64,
    /// What.
    pub what: Damage,
}

/// All that is wrong: the first 50, and how many more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Troubles {
    list: Vec<Trouble>,
    more: u64,
    /// Where the last thing is that may have lost something, by source and line.
    last_loss: Option<(usize, u64)>,
}

impl Troubles {
    /// The first ones, in the order of the trace.
    pub fn first(&self) -> &[Trouble] {
        &self.list
    }

    /// How many more there were.
    pub const fn more(&self) -> u64 {
        self.more
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether something may be lost by them, see [`Damage::loses`].
    pub const fn lose(&self) -> bool {
        self.last_loss.is_some()
    }

    /// Whether something may be lost by them that would come after the record at this place. Of an archive that breaks off nobody knows what
    /// would have come.
    pub fn lose_after(&self, at: Place) -> bool {
        self.last_loss.is_some_and(|loss| loss > (at.source, at.line))
    }

    pub(super) fn add(&mut self, at: Place, life: u64, what: Damage) {
        if what.loses() {
            let here = match what {
                Damage::Archive { .. } => (usize::MAX, u64::MAX),
                _ => (at.source, at.line),
            };
            self.last_loss = self.last_loss.max(Some(here));
        }
        if self.list.len() < MOST {
            self.list.push(Trouble { at, life, what });
        } else {
            self.more += 1;
        }
    }
}
