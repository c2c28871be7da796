//! Scripts by hand: one for each rule that was decided, and one for each bug that the rules found.

mod claim_rules;
mod claims;
mod claims_over;
mod fleet;
mod gate;
mod late;
mod messages;
mod pollers;
mod rig;
mod runs;
mod start;
mod stop;
