//! Scripts by hand: one for each rule that was decided, and one for each bug that the rules found.

mod access;
mod actions;
mod agent_clis;
mod claims;
mod claims_over;
mod fleet;
mod gate;
mod gc;
mod incidents;
mod late;
mod messages;
mod paths;
mod pollers;
mod recovery;
mod refused_dials;
mod rig;
mod runs;
mod sleep;
mod start;
mod stop;
mod stop_kinds;
mod storms;
mod watchdog;
