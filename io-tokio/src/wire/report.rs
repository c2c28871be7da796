//! What a daemon says of a run: progress, session, usage and how it ended. Empty texts are left out.

use super::json;
use serde::Serialize;

/// A line for whoever watches; nothing is stored.
#[derive(Clone, Debug, Serialize)]
pub struct ProgressRequest<'a> {
    /// What is happening.
    pub summary: &'a str,
    /// From 1.
    pub step: u32,
    /// Of how many.
    pub total: u32,
}

/// Why a task waits for the user's directory.
#[derive(Clone, Debug, Serialize)]
pub struct WaitRequest<'a> {
    /// Shown to users: a label, never an absolute path.
    pub reason: &'a str,
}

/// Names the session to resume. At least one of the two must be there.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SessionRequest<'a> {
    /// The agent's session.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub session_id: &'a str,
    /// Where it ran.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub work_dir: &'a str,
}

/// What a run used.
#[derive(Clone, Debug, Serialize)]
pub struct UsageRequest<'a> {
    /// One entry per model; not empty.
    pub usage: &'a [Usage],
}

/// What a run used of one model: totals of the whole task, so that sending it again is safe.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// In lower case.
    pub provider: String,
    /// Model.
    pub model: String,
    /// Tokens read.
    pub input_tokens: i64,
    /// Tokens written.
    pub output_tokens: i64,
    /// Tokens read from the cache.
    pub cache_read_tokens: i64,
    /// Tokens written to the cache.
    pub cache_write_tokens: i64,
    /// Price in 1e-10 USD as the provider says; `None` if it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd_ticks: Option<i64>,
}

/// Where a run's work is. A completion overwrites what the server has, also with nothing; a failure keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pointers {
    /// Branch that holds the work.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub branch_name: String,
    /// Session to resume.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub session_id: String,
    /// Directory that was used.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub work_dir: String,
    /// The user's own directory, where a disposable worktree of it was used.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub durable_work_dir: String,
    /// There was a session, but it cannot be resumed.
    #[serde(skip_serializing_if = "json::is_false")]
    pub session_rollout_missing: bool,
    /// A session that was found dead in this run.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub retired_session_id: String,
}

/// The run ended well.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CompleteRequest {
    /// The final answer; may be empty.
    pub output: String,
    /// Where the work is.
    #[serde(flatten)]
    pub pointers: Pointers,
}

/// The run did not end well.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FailRequest {
    /// The agent's or our own words, undecorated: the server reads them too.
    pub error: String,
    /// The reason, of the server's vocabulary.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub failure_reason: String,
    /// Where the work is.
    #[serde(flatten)]
    pub pointers: Pointers,
}

/// A cancelled run is over and all of its transcript is delivered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CancelAckRequest {
    /// Branch that holds the work.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub branch_name: String,
    /// The user's own directory.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub durable_work_dir: String,
    /// Only if unsaved work was put somewhere that the user must know of.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error_message: String,
    /// Goes with `error_message`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub failure_reason: String,
}
