//! Every number of the control plane.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long a claim, and each renewal while preparing, keeps a task from being handed out again.
pub const PREPARE_LEASE: Duration = Duration::from_secs(45);
/// The least age of a dispatch that a claim may deliver again, if its lease has run out too.
pub const REDELIVER_AFTER: Duration = Duration::from_secs(90);
/// The age at which the sweep fails a dispatched task whose lease has run out.
pub const DISPATCHED_TIMEOUT: Duration = Duration::from_mins(5);
/// The silence after which a runtime is offline and gets no work.
pub const RUNTIME_STALE: Duration = Duration::from_secs(150);
/// The silence after which the tasks of an offline runtime are failed.
pub const RECONNECT_GRACE: Duration = Duration::from_hours(3);
/// The age at which a running task is failed, if its runtime was silent for the whole [`RECONNECT_GRACE`].
pub const RUNNING_TIMEOUT: Duration = Duration::from_mins(150);
/// How long a task may wait in the queue.
pub const QUEUED_TTL: Duration = Duration::from_hours(2);
/// The silence after which an offline runtime without open tasks is forgotten.
pub const RUNTIME_FORGOTTEN: Duration = Duration::from_hours(7 * 24);
/// How often the sweep is to run.
pub const SWEEP_EVERY: Duration = Duration::from_secs(30);
/// How long the retry of a task whose runtime went away waits before a claim may promote it.
pub const OFFLINE_RETRY_DELAY: Duration = Duration::from_secs(1);
/// How long the third try after network trouble waits before a claim may promote it.
pub const NETWORK_RETRY_DELAY: Duration = Duration::from_secs(5);
/// The most tasks that one claim gives.
pub const CLAIM_BATCH: usize = 32;
/// Tries of a piece of work, the first included.
pub const MAX_ATTEMPTS: u32 = 2;
/// The same where the provider's network was the trouble.
pub const MAX_NETWORK_ATTEMPTS: u32 = 3;
/// How many tasks of one agent may be dispatched, waiting or running at once, unless it is told otherwise.
pub const AGENT_CAP: usize = 6;
/// Hints that are kept until they are taken.
pub const HINTS: usize = 4096;

/// Bounds on what is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Limits {
    /// Workspaces.
    pub workspaces: usize,
    /// Runtimes, over all workspaces.
    pub runtimes: usize,
    /// Runtime profiles, over all workspaces.
    pub profiles: usize,
    /// Repositories of one workspace.
    pub repos: usize,
    /// Tasks that have not ended; at the bound no task is taken.
    pub open_tasks: usize,
    /// Ended tasks; above the bound the one that ended first is forgotten.
    pub ended_tasks: usize,
    /// Messages of one task.
    pub task_messages: usize,
    /// Bytes of all transcripts; above the bound those of the tasks that ended first are forgotten.
    pub transcript_bytes: usize,
    /// Usage rows of one task: one per provider and model.
    pub task_usage: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            workspaces: 1024,
            runtimes: 65_536,
            profiles: 4096,
            repos: 1024,
            open_tasks: 65_536,
            ended_tasks: 10_000,
            task_messages: 200_000,
            transcript_bytes: 256 << 20,
            task_usage: 64,
        }
    }
}
