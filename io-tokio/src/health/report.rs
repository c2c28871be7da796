//! The object that `GET /health` answers with.

use crate::config::{GoDuration, Settings};
use crate::identity::Identity;
use longshore_core::time::Instant;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// What does not change while the daemon runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HealthIdentity {
    /// The profile's name; empty for the default one.
    pub profile: String,
    /// The daemon's id.
    pub daemon_id: String,
    /// The label of this machine.
    pub device_name: String,
    /// The server's address, `http` or `https`.
    pub server_url: String,
    /// The version told to the server.
    pub cli_version: String,
    /// Who started the daemon; empty if nobody said.
    pub launched_by: String,
}

impl HealthIdentity {
    /// What the settings and the identity say.
    pub fn new(settings: &Settings, identity: &Identity) -> Self {
        Self {
            profile: settings.profile.name().to_owned(),
            daemon_id: identity.daemon_id.clone(),
            device_name: identity.device_name.clone(),
            server_url: settings.server_url.clone(),
            cli_version: identity.cli_version.clone(),
            launched_by: identity.launched_by.clone(),
        }
    }
}

/// Where the daemon is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DaemonState {
    /// Runtimes are not registered yet.
    #[default]
    Starting,
    /// Tasks are claimed.
    Running,
    /// No task is claimed any more; runs go on.
    Draining,
    /// Runs are being ended.
    Stopping,
}

impl DaemonState {
    /// Whether the end was asked for already.
    pub const fn is_ending(self) -> bool {
        matches!(self, Self::Draining | Self::Stopping)
    }

    /// Programs that know two words only take anything but `running` for a daemon that is gone, and start another.
    fn status(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running | Self::Draining | Self::Stopping => "running",
        }
    }
}

/// What changes; published by the daemon whenever it does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HealthSnapshot {
    /// Where the daemon is in its life.
    pub state: DaemonState,
    /// Tasks claimed and not yet done with.
    pub active_task_count: u32,
    /// Tasks whose agent runs.
    pub running_task_count: u32,
    /// Tasks that wait for a local directory.
    pub resource_wait_task_count: u32,
    /// Repositories under maintenance.
    pub repo_maintenance_active: u32,
    /// Checkouts that wait for a repository.
    pub repo_checkout_waiters: u32,
    /// Providers that can be used.
    pub agents: Vec<String>,
    /// Providers that cannot, with the reason.
    pub skipped_agents: BTreeMap<String, String>,
    /// Why a restart is due; empty if none is.
    pub reload_pending_reason: String,
    /// Whether the server refuses the credential, so that nothing is claimed.
    pub access_refused: bool,
    /// The workspaces served.
    pub workspaces: Vec<WorkspaceHealth>,
}

/// One workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WorkspaceHealth {
    /// Its id.
    pub id: String,
    /// The ids of its runtimes on this machine.
    pub runtimes: Vec<String>,
}

/// The order of the fields is the order in which they are sent.
#[derive(Serialize)]
struct Report<'a> {
    status: &'a str,
    pid: u32,
    os: &'a str,
    uptime: String,
    profile: &'a str,
    daemon_id: &'a str,
    device_name: &'a str,
    server_url: &'a str,
    cli_version: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    launched_by: &'a str,
    active_task_count: u32,
    running_task_count: u32,
    resource_wait_task_count: u32,
    #[serde(skip_serializing_if = "is_zero")]
    repo_maintenance_active: u32,
    #[serde(skip_serializing_if = "is_zero")]
    repo_checkout_waiters: u32,
    agents: &'a [String],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    skipped_agents: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "str::is_empty")]
    reload_pending_reason: &'a str,
    workspaces: &'a [WorkspaceHealth],
    state: DaemonState,
    #[serde(skip_serializing_if = "str::is_empty")]
    server_access: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    process_start: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// The object as text with a line end. `uptime` is the time since the daemon's start.
pub(super) fn render(identity: &HealthIdentity, now: &HealthSnapshot, uptime: Instant) -> String {
    let uptime = Duration::from_secs(uptime.as_millis() / 1000);
    let report = Report {
        status: now.state.status(),
        pid: std::process::id(),
        os: os_name(),
        uptime: GoDuration(uptime).to_string(),
        profile: &identity.profile,
        daemon_id: &identity.daemon_id,
        device_name: &identity.device_name,
        server_url: &identity.server_url,
        cli_version: &identity.cli_version,
        launched_by: &identity.launched_by,
        active_task_count: now.active_task_count,
        running_task_count: now.running_task_count,
        resource_wait_task_count: now.resource_wait_task_count,
        repo_maintenance_active: now.repo_maintenance_active,
        repo_checkout_waiters: now.repo_checkout_waiters,
        agents: &now.agents,
        skipped_agents: &now.skipped_agents,
        reload_pending_reason: &now.reload_pending_reason,
        workspaces: &now.workspaces,
        state: now.state,
        server_access: if now.access_refused { "refused" } else { "" },
        process_start: process_start(std::process::id()),
    };
    let mut text =
        serde_json::to_string(&report).expect("texts, numbers and maps with text keys are always JSON");
    text.push('\n');
    text
}

/// When a process began, in clock ticks since the machine's start, where the system tells: with its id this names one process, also
/// after its id was given to another.
pub fn process_start(pid: u32) -> Option<u64> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The command is in parentheses and may itself hold some: the last one closes it.
    let text = String::from_utf8_lossy(&stat);
    text.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()
}

/// The name that Go has for this system.
fn os_name() -> &'static str {
    match std::env::consts::OS {
        "macos" => "darwin",
        same => same,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> HealthIdentity {
        HealthIdentity { daemon_id: "d-1".into(), server_url: "http://h".into(), ..HealthIdentity::default() }
    }

    /// The keys of a JSON object in the order in which they stand.
    fn keys(text: &str) -> Vec<String> {
        let value: serde_json::Value = serde_json::from_str(text).expect("JSON");
        let mut keys: Vec<String> = value.as_object().expect("an object").keys().cloned().collect();
        keys.sort_by_key(|key| text.find(&format!("\"{key}\":")));
        keys
    }

    #[test]
    fn cli_32_fields_come_in_order_and_empty_ones_are_left_out() {
        let always = [
            "status",
            "pid",
            "os",
            "uptime",
            "profile",
            "daemon_id",
            "device_name",
            "server_url",
            "cli_version",
            "active_task_count",
            "running_task_count",
            "resource_wait_task_count",
            "agents",
            "workspaces",
            "state",
            #[cfg(target_os = "linux")]
            "process_start",
        ];
        let text = render(&identity(), &HealthSnapshot::default(), Instant::ZERO);
        assert_eq!(keys(&text), always);
        assert!(text.contains("\"profile\":\"\"") && text.contains("\"agents\":[]") && text.ends_with("}\n"));
        let full = HealthSnapshot {
            repo_maintenance_active: 1,
            repo_checkout_waiters: 2,
            skipped_agents: BTreeMap::from([("codex".into(), "too old".into())]),
            reload_pending_reason: "new binary".into(),
            ..HealthSnapshot::default()
        };
        let text =
            render(&HealthIdentity { launched_by: "desktop".into(), ..identity() }, &full, Instant::ZERO);
        let keys = keys(&text);
        assert_eq!(keys.len(), always.len() + 5, "{text}");
        assert_eq!(keys[9], "launched_by");
        assert_eq!(
            keys[13..19],
            [
                "repo_maintenance_active",
                "repo_checkout_waiters",
                "agents",
                "skipped_agents",
                "reload_pending_reason",
                "workspaces"
            ]
        );
    }

    #[test]
    fn cli_33_a_draining_daemon_still_counts_as_running() {
        let fields = |state| {
            let now = HealthSnapshot { state, ..HealthSnapshot::default() };
            let text = render(&identity(), &now, Instant::ZERO);
            let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            (
                value["status"].as_str().expect("text").to_owned(),
                value["state"].as_str().expect("text").to_owned(),
            )
        };
        assert_eq!(fields(DaemonState::Starting), ("starting".into(), "starting".into()));
        assert_eq!(fields(DaemonState::Running), ("running".into(), "running".into()));
        assert_eq!(fields(DaemonState::Draining), ("running".into(), "draining".into()));
        assert_eq!(fields(DaemonState::Stopping), ("running".into(), "stopping".into()));
    }

    #[test]
    fn cli_34_uptime_is_whole_seconds_as_go_prints_them() {
        for (ms, want) in
            [(999, "0s"), (59_999, "59s"), (60_000, "1m0s"), (3_605_000, "1h0m5s"), (90_000_000, "25h0m0s")]
        {
            let text = render(&identity(), &HealthSnapshot::default(), Instant::from_millis(ms));
            assert!(text.contains(&format!("\"uptime\":\"{want}\"")), "{text}");
        }
    }
}
