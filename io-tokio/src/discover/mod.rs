//! Finding the agent CLIs of this machine.

pub mod registry;
