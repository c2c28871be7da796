//! Stories of histories from the small world: beside the daemon itself, and with parts left out.

mod history;
mod many;
mod partial;
mod whole;

use super::{Begin, End, Span, Story, WaitReason};
use history::{History, Lived};

/// How many histories are tried; `LONGSHORE_CASES` raises it.
fn cases() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "a test's settings, not the core's")]
    let asked = std::env::var("LONGSHORE_CASES").ok().and_then(|n| n.parse().ok());
    asked.unwrap_or(96)
}

/// Every history that a test looks at.
fn histories() -> impl Iterator<Item = History> {
    (0..cases()).map(|seed| History::of(seed, &mut |_, _| ()))
}
