//! Processes: a supervisor and a helper for each task, and the daemon's side of both.
//!
//! For each task there are two processes of our own binary, started ahead of need as a warm pair:
//!
//! - The **supervisor** (`longshore supervise`) owns everything that the task leaves running. It lives until the
//!   last of it is gone, also when the daemon is killed, and writes down how the run ended.
//! - The **helper** (`longshore helper`) is its child. It prepares the work directory, where a call may block for
//!   ever, and then *becomes* the agent.
//!
//! ```text
//! daemon ──(control: orders, answers)── supervisor ──(descriptors, exec result)── helper ─exec→ agent
//!    └───────────(job, reply, what to exec: never on disk, never in argv)────────────┘
//! ```
//!
//! The daemon speaks with the helper directly, so the supervisor never sees a job, an argument or a secret, and
//! cannot be blocked by a helper that hangs. Once the agent runs, all that connects the daemon with the run is its
//! directory (see [`record`]), which is why a daemon can die and another one [`attach`](Launcher::attach).

mod cgroup;
mod client;
mod exec_call;
mod frame;
pub mod helper;
#[cfg(target_os = "linux")]
mod procfs;
mod protocol;
pub mod record;
pub mod supervisor;
mod tree;

pub use client::{
    AttachError, Credit, DEFAULT_LEFTOVER_GRACE, DEFAULT_SPOOL_BUDGET, LaunchError, LaunchSpec, Launcher,
    Pair, Position, PrepareError, Ready, Run, RunEvent, SpawnError, StdinError,
};
pub use protocol::HelperExit;
