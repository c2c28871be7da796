//! The local HTTP server: how other programs of this machine see the daemon, and ask it to stop.
//!
//! It answers from a snapshot that the daemon publishes, so it answers whatever the daemon is waiting for.

mod connection;
mod guard;
mod report;
mod server;
mod socket_owner;
mod trace;

pub(crate) use socket_owner::of_listener;
#[cfg(target_os = "linux")]
pub(crate) use socket_owner::socket_of_listener;
pub(crate) use trace::{PATH as TRACE_PATH, REFUSED as TRACE_REFUSED, REMEDY as TRACE_REMEDY};

pub use connection::{HEAD_LIMIT, HEAD_TIMEOUT, MAX_WAITING};
pub use report::{DaemonState, HealthIdentity, HealthSnapshot, WorkspaceHealth, process_start};
pub use server::{BindError, HealthListener, ShutdownRequest};
