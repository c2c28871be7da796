//! Secrets are where they have to be, and nowhere else.

use crate::bed::Bed;
use longshore_io_tokio::agent_double::Step;
use longshore_io_tokio::plane::{Config, TaskSpec};
use longshore_tests::Gate;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const CUSTOM: &str = "custom-sentinel-5f1d";
const MCP: &str = "mcp-sentinel-90ab";

fn files(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files(&entry.path(), into),
            Ok(kind) if kind.is_file() => into.push(entry.path()),
            _ => {}
        }
    }
}

#[tokio::test]
async fn bug_48_no_secret_is_in_the_log_in_an_argument_or_left_on_the_disk() {
    let bed = Bed::with(Config::default(), |home| home.env("LOG_LEVEL", "debug")).await;
    let gate = Gate::new(bed.home.dir().join("gate"));
    let script = [Step::SayEnv("MULTICA_TOKEN".into()), Step::SayEnv("API_KEY".into()), gate.wait()];
    let mut spec = TaskSpec::new("claude").script(&script).env("API_KEY", CUSTOM);
    let servers = json!({ "mcpServers": { "x": { "command": "y", "env": { "KEY": MCP } } } });
    spec.content.agent_fields.insert("mcp_config".into(), servers);
    let task = bed.enqueue(spec);
    let known = |plane: &longshore_core::plane::Plane| {
        let text: String = plane.transcript(&task).iter().filter_map(|m| m.content.as_deref()).collect();
        let (_, rest) = text.split_once("MULTICA_TOKEN=")?;
        rest.split_once("API_KEY=").map(|(token, key)| (token.to_owned(), key.to_owned()))
    };
    let (token, key) = bed.plane.wait_until(crate::bed::WITHIN, known).await.expect("the agent has both");
    assert!(token.starts_with("mat_") && key == CUSTOM, "the agent gets what is its own");
    let owner = bed.plane.token().expose().to_owned();
    assert_ne!(token, owner, "and never what is the daemon's");
    let secrets = [owner.as_str(), &token, CUSTOM, MCP];

    for process in bed.home.processes() {
        let arguments = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        let arguments = String::from_utf8_lossy(&arguments).into_owned();
        for secret in secrets {
            assert!(!arguments.contains(secret), "process {process}: {arguments}");
        }
    }
    for agent in bed.home.processes_of(&task) {
        let environment = fs::read(format!("/proc/{agent}/environ")).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&environment).contains(&owner), "bug 14: the owner's credential");
    }
    for start in bed.home.agent_starts() {
        assert!(secrets.iter().all(|secret| !start.arguments.contains(secret)), "{}", start.arguments);
        assert!(start.arguments.contains("--mcp-config"), "it is given as a file: {}", start.arguments);
    }
    let _open = gate.open();
    bed.completed(&task).await;
    let log = bed.daemon.stop().await.log;
    assert!(log.contains("task completed"), "the log is the one to look into");
    for secret in secrets {
        assert!(!log.contains(secret), "{log}");
    }
    let mut left = Vec::new();
    files(bed.home.dir(), &mut left);
    for path in left.iter().filter(|path| **path != bed.home.config_file()) {
        let content = fs::read(path).unwrap_or_default();
        let content = String::from_utf8_lossy(&content);
        for secret in secrets {
            assert!(!content.contains(secret), "{} keeps a secret", path.display());
        }
    }
    let mut ours = Vec::new();
    files(&bed.home.state_dir(), &mut ours);
    for path in ours {
        let mode = fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o077, 0, "{} can be read by others", path.display());
    }
}
