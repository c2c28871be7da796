//! The flags of `daemon start`, as typed: their values are read together with the other places.

use std::path::PathBuf;

/// What was given on the command line; `None` is "not given".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `--profile`; empty is the default profile.
    pub profile: String,
    /// `--server-url`
    pub server_url: Option<String>,
    /// `--daemon-id`
    pub daemon_id: Option<String>,
    /// `--device-name`
    pub device_name: Option<String>,
    /// `--runtime-name`: accepted for compatibility, without effect.
    pub runtime_name: Option<String>,
    /// `--workspaces-root`
    pub workspaces_root: Option<PathBuf>,
    /// `--poll-interval`
    pub poll_interval: Option<String>,
    /// `--heartbeat-interval`
    pub heartbeat_interval: Option<String>,
    /// `--agent-timeout`
    pub agent_timeout: Option<String>,
    /// `--codex-semantic-inactivity-timeout`
    pub codex_semantic_inactivity_timeout: Option<String>,
    /// `--codex-handshake-timeout`
    pub codex_handshake_timeout: Option<String>,
    /// `--max-concurrent-tasks`
    pub max_concurrent_tasks: Option<String>,
    /// `--no-auto-update`
    pub no_auto_update: bool,
    /// `--auto-update-interval`
    pub auto_update_interval: Option<String>,
    /// `--no-auto-reload`
    pub no_auto_reload: bool,
    /// `--health-port`
    pub health_port: Option<String>,
    /// `--claim-mode`
    pub claim_mode: Option<String>,
    /// `--disk-budget`
    pub disk_budget: Option<String>,
    /// `--trace-budget`
    pub trace_budget: Option<String>,
    /// `--min-free-space`
    pub min_free_space: Option<String>,
    /// `--on-sigterm`
    pub on_sigterm: Option<String>,
    /// `--log-level`
    pub log_level: Option<String>,
    /// `--log-format`
    pub log_format: Option<String>,
}
