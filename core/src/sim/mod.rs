//! A simulator: one daemon in a modelled world, in virtual time, with everything going wrong that a seed can think of.
//!
//! [`run()`] lets a world of [`SimConfig::swarm`] go wrong for ten virtual minutes: the server ([`crate::plane`] as its model), the network,
//! the disk, the agents' processes, the clocks, the adapter, and the daemon itself, which is killed and started again with what it wrote
//! down. Every rule of [`crate::observe`] holds at every step. Then everything works again, the daemon must come to rest, and every
//! task that the server handed to it must have exactly one end: the one that its agent truly came to.
//!
//! ```
//! use longshore_core::sim::{SimConfig, run};
//!
//! let outcome = run(&SimConfig::calm(1));
//! assert!(outcome.failure.is_none() && outcome.steps > 100);
//! assert_eq!(outcome.digest, run(&SimConfig::calm(1)).digest, "the same seed is the same world");
//! ```
//!
//! A failing one is made small by [`shrink`], and written as a trace by [`Shrunk::trace`].
//!
//! The world acts upon no [`crate::effect::Fact`], so that lost facts cannot matter.

mod agents;
mod book;
mod clis;
mod config;
mod disk;
mod fault;
mod judge;
mod life;
mod marks;
mod net;
mod operator;
mod perform;
mod property;
mod queue;
mod run;
mod server;
mod users;
mod world;

#[cfg(feature = "canary")]
pub use config::Canary;
pub use config::{Load, SimConfig};
pub use fault::{Fault, Faults};
pub use judge::{BUDGET, Pending};
pub use marks::{Mark, Marks};
pub use property::Property;
pub use run::{Failure, FailureKind, Outcome, Shrunk, run, run_until, shrink, shrink_until};
pub use world::World;
