//! What is left of tasks when the daemon, its supervisors or its agents are killed, seen from the server, over the real binary. What the tests
//! observe is what `docs/reliability.md` says; see [`document`].
//!
//! Most of them take longer and are run with `-- --ignored`.
#![cfg(target_os = "linux")]

mod audit;
mod backlog;
mod damaged;
mod document;
mod endings;
mod full_disk;
mod instants;
mod matrix;
mod noticed;
mod outages;
mod restarts;
mod rig;
mod sockets;
mod stage;
mod together;
mod unwritten;
mod victims;
mod volume;
