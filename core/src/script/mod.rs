//! Scripts of events for tests: a model of the world that answers what the daemon asks, well or badly, in any order.
//!
//! One generator, several drivers: [`World::next`] asks a [`Choose`] for every decision, so the same model is driven by a
//! seed, by the bytes of a property test, or by a fuzzer. A script that breaks a rule is made small by [`shrink()`].

mod address;
#[cfg(feature = "canary")]
mod bug;
mod case;
mod choose;
mod crash;
mod exhaust;
mod heal;
mod label;
mod life;
mod menu;
mod printed;
mod reply;
mod roster;
mod runner;
mod scope;
mod served;
mod shrink;
mod simplify;
mod start;
#[cfg(feature = "proptest")]
mod strategy;
mod swarm;
mod world;

pub use address::Addresses;
#[cfg(feature = "canary")]
pub use bug::Bug;
#[cfg(feature = "canary")]
pub use case::held_to_with;
pub use case::{Case, CaseError, PANIC, Search, Seen, held_to};
pub use choose::{Bytes, Choose, Seeded};
pub use exhaust::{Bounds, Explored};
pub use heal::HEAL_BUDGET;
pub(crate) use label::{api_label, fs_label};
pub use label::{effect_label, event_label, input_label};
pub use life::{Life, Mark};
pub use printed::regression_test;
pub use runner::{Input, Runner, replay};
pub use served::{Served, honest, read_note, untrue};
pub use shrink::shrink;
pub use start::Start;
#[cfg(feature = "proptest")]
pub use strategy::bytes;
pub use swarm::Size;
pub use world::World;
#[cfg(feature = "sim")]
pub(crate) use {
    served::{note, untrue_until, upto},
    shrink::shrink_lines,
};
