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
//!
//! # A daemon that dies around a launch
//!
//! The daemon makes the directory (the lock file `alive` last, with the launch's own marker in it), tells the helper what to
//! become, and then orders the supervisor to launch. The supervisor locks `alive`, checks the marker and that the path still leads
//! to the locked file, writes `status.json`, and only then hands over what the helper waits for. A daemon that attaches looks for a
//! status or a record; if there is neither, it takes the same lock and removes `alive`. So at each instant one of them is first:
//! either there is a run (or a record that says why not), or nothing starts in that directory any more.
//!
//! # What ends with a run
//!
//! All descendants, found again and again until the kernel says that there is no child; before that, where a control group was
//! delegated, everything in the run's own group. When the supervisor itself is killed, the kernel kills the agent with it, and the
//! daemon ends what carries the run's marker in its environment, what that has started, and what is in the group. An agent can stop
//! its supervisor: the daemon sends it SIGCONT when a run is silent for a second, which costs less than asking whether it has to.
//!
//! Numbers of processes are believed only together with their start time and the boot id.

pub mod asked;
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
