//! What must survive the process, on disk: for each claim a directory that is there from the claim until everything about it is
//! acknowledged.
//!
//! ```text
//! <state>/longshore/ledger/
//!     17/                  the number of the claim
//!         record.json      how far it is, which task, where on this machine; written before the step that depends on it
//!         outcome.json     what its agent came to; written before the core hears of it
//!         outbox.jsonl     what its agent said and the server may not have, and where reading goes on
//!     aside/17-…           records that could not be read, for a person to look at
//! ```
//!
//! A record is replaced in one step, so a kill leaves the one before or the one after. The write comes before the step, its fsync runs
//! beside it: a kill needs none, and a power cut before it is hardly different from one some milliseconds earlier.
//!
//! Nothing in here is a secret, a prompt or a setting of an agent: a run that is launched needs none of them any more, and one that is
//! not is given back. What the agent said is in here until the server has it. Directories are 0700 and files 0600.

mod facts;
mod journal;
mod load;
mod record;
mod store;
mod sync;

pub use facts::{Place, TaskFacts, Words};
pub use journal::{At, Journal, JournalError, Replayed};
pub use load::{Found, Set};
pub use record::{Kept, KeptOutcome};
pub use store::{LedgerError, Store};

/// The form that all files here are written in; a later one is set aside, unread.
pub const VERSION: u32 = 1;
