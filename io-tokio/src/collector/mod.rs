//! What of the directories of ended tasks may be freed, and the freeing: the adapter's side of the collector. When it works, and what is
//! reserved meanwhile, is the core's.
//!
//! [`Look`] says what a directory was for, [`Asked`] what the server says of that, [`decide`] what follows, [`scan()`] finds the directories, and
//! [`free()`] frees one. Each of them keeps what it does not understand.

mod asked;
mod free;
mod look;
mod policy;
mod scan;

pub use asked::{Asked, Question};
pub use free::{FreeError, Freed, free};
pub use look::Look;
pub use policy::{Answer, Verdict, decide};
pub(crate) use scan::for_core;
pub use scan::{Scan, scan};
