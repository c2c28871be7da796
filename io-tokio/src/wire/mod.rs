//! What travels between daemon and server, as types.

pub mod action;
pub mod claim;
pub mod frame;
pub mod gc;
pub mod heartbeat;
pub mod json;
pub mod lenient;
pub mod message;
pub mod register;
pub mod report;
pub mod routes;
pub mod skill;
pub mod status;
pub mod task;

#[cfg(test)]
mod recorded;
