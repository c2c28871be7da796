//! A task's private work directory: claimed, prepared, kept for the next turn, sealed; and the agent's environment.
//!
//! The order is: [`Claim::take`] in the daemon; [`reuse::decide`] where the task offers an earlier directory;
//! [`Job::for_task`], whose bytes go to the helper process, which runs [`helper()`]; [`read_reply`] and
//! [`Prepared::verify`]; [`reuse::resume`]; [`environment::build`]; and at the end [`seal::unwind`],
//! [`seal::write_meta`] and [`Claim::release`]. All of it blocks: it is for blocking threads and the helper process,
//! and what can hang for ever (provider homes on dead network mounts, FIFOs) is touched in the helper alone.

pub(crate) mod beneath;
mod claude;
mod codex;
mod context;
pub mod environment;
mod error;
pub(crate) mod frontmatter;
mod helper;
mod job;
pub mod layout;
mod lock;
mod manifest;
pub mod marker;
mod mounts;
pub mod reuse;
pub mod seal;
mod share;
pub mod skill;
#[cfg(test)]
mod test_task;
pub mod tree;

pub use beneath::{Dir, Identity};
pub use codex::shared_home as shared_codex_home;
pub use error::PrepareError;
pub use helper::{helper, read_reply, run};
pub use job::{Job, Prepared, Setup};
pub use layout::{path_of, predicted_root, prior_root, task_key};
pub use lock::{Claim, PriorLock};
pub use marker::ensure_root_marker;

pub(crate) use beneath::read_bounded;
pub(crate) use lock::LockFile;
