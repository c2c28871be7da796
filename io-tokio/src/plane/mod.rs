//! The embedded control plane: the pure [`longshore_core::plane`] behind loopback HTTP and WebSocket.
//!
//! [`Server`] is started in a tokio runtime and holds everything in memory; with [`Config::database`] it is in a file as well, and survives
//! the process. Besides the daemon's wire it has an operator's side
//! (enqueue, cancel, look), a log of every request, and [`faults`] that a test can put between the two.

mod access;
mod capabilities;
mod content;
mod database;
mod decode;
mod door;
pub mod faults;
mod links;
mod log;
mod operator;
mod pass;
mod pending;
mod reply;
mod restored;
mod routes;
pub mod scenario;
mod server;
mod shape;
mod shared;
mod skills;
mod socket;
mod waiting;

#[cfg(test)]
mod tests;

pub use access::{Grant, Holder};
pub use content::{Comment, Content, TaskSpec};
pub use database::OpenError;
pub use faults::{Action, Fault, Rule};
pub use log::{Answer, Request};
pub use pending::Outcome;
pub use server::{Config, Server, StartError};
pub use skills::{Skill, SkillFile};
pub use waiting::WaitError;

pub use longshore_core::plane::{
    Ask, Hint, Message, OfflineReason, Payload, Plane, Profile, ProfileSpec, Refusal, Repo, RequestState,
    Runtime, State, Subject, Task,
};
