//! Scripts by hand: one for each rule that was decided, and one for each bug that the rules found.

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
mod rig;
mod runs;
mod start;
mod stop;
mod stop_kinds;
mod watchdog;
