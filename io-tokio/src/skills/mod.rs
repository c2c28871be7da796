//! Skills that a claim names: fetched once, checked, kept on disk, and shared by all tasks that want them.
//!
//! [`Library::get`] gives a task all skills that its claim names, in that order: from the disk, or with one request each. What it
//! gives is [`Checked`]: nothing else is kept, and nothing else reaches an agent.

mod cache;
mod check;
mod library;
mod prune;

pub use cache::Place;
pub use check::{Checked, Unusable, bundle_hash, file_hash};
pub use library::{Library, MAX_TASK_BYTES, MAX_TASK_SKILLS, Missing, Wanted};
pub use prune::{Pruned, UNUSED, prune};
