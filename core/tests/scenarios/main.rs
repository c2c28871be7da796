//! Scripts by hand: one for each rule that was decided, and one for each bug that the rules found.

mod claims;
mod fleet;
mod late;
mod messages;
mod recovery;
mod rig;
mod runs;
mod start;
mod stop;
