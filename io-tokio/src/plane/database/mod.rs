//! What the control plane knows, in one file: every row that a call changed is in it before the call is answered.
//!
//! The file belongs to one process at a time. A thread of its own writes it, one transaction for all changes that have gathered since the last
//! one, so that many calls share one wait for the disk. At the start all rows are read and checked; a file that cannot be
//! understood is put aside, never overwritten.

mod content;
mod file;
mod writer;

pub use file::OpenError;

pub(super) use content::{read_content, write_content};
pub(super) use file::open;
pub(super) use writer::{Unwritten, Writer};

use longshore_core::plane::Rows;

/// Rows that are not the plane's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    /// Of the plane.
    Plane(Rows),
    /// What tasks are to do and are given, by number.
    Contents,
    /// Skills by agent.
    Skills,
    /// What there is one of: see [`CLOCK`] and [`TOKENS`].
    Singles,
}

/// The plane's clock at the last change, in [`Table::Singles`].
pub(super) const CLOCK: &str = "clock";
/// The tokens, by their digests, in [`Table::Singles`].
pub(super) const TOKENS: &str = "tokens";

impl Table {
    const fn name(self) -> &'static str {
        match self {
            Self::Plane(rows) => rows.as_str(),
            Self::Contents => "contents",
            Self::Skills => "skills",
            Self::Singles => "singles",
        }
    }

    fn all() -> impl Iterator<Item = Self> {
        Rows::ALL.into_iter().map(Self::Plane).chain([Self::Contents, Self::Skills, Self::Singles])
    }
}

/// A row to be written, or removed where there is no value.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) table: Table,
    pub(super) key: String,
    pub(super) value: Option<Vec<u8>>,
}
