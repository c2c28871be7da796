//! A private place for one daemon: its home directory, config, workspaces root, agents and environment.

use crate::agents::{Agents, Invocation};
use crate::daemon::DaemonUnderTest;
use crate::driver::DriverUnderTest;
use crate::port::ReservedPort;
use crate::processes::{carrying, heed_interrupts, kill_carrying};
use longshore_core::config::Config;
use longshore_core::id::{TaskId, WorkspaceId};
use longshore_io_tokio::plane::Server;
use longshore_io_tokio::prepare::{path_of, predicted_root};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// The place. Dropped, it ends every process that carries it in its environment, and is removed.
#[derive(Debug)]
pub struct Home {
    dir: TempDir,
    executable: PathBuf,
    agents: Agents,
    env: BTreeMap<String, String>,
    config: Map<String, Value>,
    flags: Vec<String>,
    record: Option<PathBuf>,
    port: ReservedPort,
}

impl Home {
    /// A place for a daemon of `server`. `executable` is the binary under test. There is a `claude`, which is the agent
    /// double.
    pub fn new(executable: impl Into<PathBuf>, server: &Server) -> Self {
        Self::at(executable, &server.url(), server.token().expose())
    }

    /// The same for a daemon of the server at this URL, with this token.
    pub fn at(executable: impl Into<PathBuf>, server_url: &str, token: &str) -> Self {
        heed_interrupts();
        let executable = executable.into();
        let dir = tempfile::Builder::new().prefix("ls-").tempdir_in("/tmp").expect("a directory");
        let at = |name: &str| dir.path().join(name);
        for name in ["home/.multica", "ws", "t"] {
            fs::create_dir_all(at(name)).expect("a directory");
        }
        let agents = Agents::new(at("bin"), &executable);
        let port = ReservedPort::new();
        let text = |path: PathBuf| path.display().to_string();
        let env = [
            ("PATH", "/usr/local/bin:/usr/bin:/bin".to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
            ("HOME", text(at("home"))),
            // The double obeys nobody but its script: it needs no other sandbox to be started by root.
            ("IS_SANDBOX", "1".to_owned()),
            ("MULTICA_SERVER_URL", server_url.to_owned()),
            ("MULTICA_WORKSPACES_ROOT", text(at("ws"))),
            ("MULTICA_AGENT_TEMP_BASE", text(at("t"))),
            ("MULTICA_CLAUDE_PATH", text(agents.path("claude"))),
            ("MULTICA_DAEMON_HEALTH_PORT", port.port().to_string()),
            ("MULTICA_DAEMON_POLL_INTERVAL", "100ms".to_owned()),
        ];
        let env = env.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let config = json!({ "token": token });
        let Value::Object(config) = config else { unreachable!("it is an object") };
        Self { dir, executable, agents, env, config, flags: Vec::new(), record: None, port }
    }

    /// With one more variable in the daemon's environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Without a variable in the daemon's environment.
    #[must_use]
    pub fn without_env(mut self, name: &str) -> Self {
        self.env.remove(name);
        self
    }

    /// With a key in the config file; null takes it out.
    #[must_use]
    pub fn config(mut self, key: &str, value: Value) -> Self {
        match value {
            Value::Null => drop(self.config.remove(key)),
            value => drop(self.config.insert(key.into(), value)),
        }
        self
    }

    /// With one more argument of `daemon start`.
    #[must_use]
    pub fn flag(mut self, flag: &str) -> Self {
        self.flags.push(flag.into());
        self
    }

    /// With a file that an adapter inside of the test records to; the binary takes a flag for that.
    #[must_use]
    pub fn recorded_to(mut self, file: &str) -> Self {
        self.record = Some(self.dir().join(file));
        self
    }

    pub(crate) fn record(&self) -> Option<&Path> {
        self.record.as_deref()
    }

    /// With a `codex` that knows its version and nothing else, and a shared codex home, see [`codex_home`](Self::codex_home).
    #[must_use]
    pub fn with_codex(self) -> Self {
        self.agents
            .add("codex", "case \"$*\" in *--version*) echo 'codex-cli 0.144.1' ;; *) exit 3 ;; esac\n");
        fs::create_dir(self.codex_home()).expect("a directory");
        let (program, home) = (self.agents.path("codex"), self.codex_home());
        self.env("MULTICA_CODEX_PATH", program.display().to_string())
            .env("CODEX_HOME", home.display().to_string())
    }

    /// Starts the binary.
    pub fn start(&self) -> DaemonUnderTest {
        self.write_config();
        DaemonUnderTest::start(self)
    }

    /// Starts the adapter inside of this process, with what `tune` makes of the core's settings.
    pub async fn drive(&self, tune: impl FnOnce(&mut Config)) -> DriverUnderTest {
        self.write_config();
        DriverUnderTest::start(self, tune).await
    }

    /// The binary with these arguments, in the home's environment and directory.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.executable);
        command.args(args).current_dir(self.dir()).env_clear().envs(&self.env).stdin(Stdio::null());
        command
    }

    /// Writes another token into the config file, as a login does: at once or not at all.
    pub fn log_in(&self, token: &str) {
        let mut config = self.config.clone();
        config.insert("token".into(), token.into());
        self.write(config);
    }

    /// Writes the config file, for a command that is not a start of [`start`](Self::start).
    pub fn write_config(&self) {
        self.write(self.config.clone());
    }

    fn write(&self, config: Map<String, Value>) {
        let (path, new) = (self.config_file(), self.dir().join("config.new"));
        fs::write(&new, Value::Object(config).to_string()).expect("written");
        fs::set_permissions(&new, fs::Permissions::from_mode(0o600)).expect("made private");
        fs::rename(&new, &path).expect("renamed");
    }

    /// The directory with everything in it.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The daemon's home directory.
    pub fn home_dir(&self) -> PathBuf {
        self.dir().join("home")
    }

    /// The config file of the profile.
    pub fn config_file(&self) -> PathBuf {
        self.home_dir().join(".multica/config.json")
    }

    /// Where the daemon's own state is.
    pub fn state_dir(&self) -> PathBuf {
        self.home_dir().join(".multica/longshore")
    }

    /// The workspaces root.
    pub fn workspaces_root(&self) -> PathBuf {
        self.env["MULTICA_WORKSPACES_ROOT"].clone().into()
    }

    /// The folder that tasks' temp dirs are made in, unless the environment says otherwise.
    pub fn temp_base(&self) -> PathBuf {
        self.dir().join("t")
    }

    /// The codex home that is shared by all tasks.
    pub fn codex_home(&self) -> PathBuf {
        self.dir().join("codex-home")
    }

    /// The env root that a task of `workspace` gets if it uses no earlier one.
    pub fn env_root(&self, workspace: &WorkspaceId, task: &TaskId) -> PathBuf {
        let root = predicted_root(workspace.as_str(), task.as_str()).expect("safe ids");
        path_of(&self.workspaces_root(), &root)
    }

    /// Puts a shell script among the agents' programs, at once or not at all, in place of one that there may be.
    pub fn install(&self, name: &str, script: &str) {
        self.agents.install(name, &format!("#!/bin/sh\n{script}\n"));
    }

    /// Puts a file there that may be run, and that the system cannot run.
    pub fn install_broken(&self, name: &str) {
        self.agents.install(name, "\u{7f}?");
    }

    /// The line of a shell script that becomes the agent double.
    pub fn double(&self) -> String {
        format!("exec '{}' agent-double \"$@\"", self.executable.display())
    }

    /// A `PATH` on which the agents' programs are.
    pub fn path_with_agents(&self) -> String {
        format!("{}:{}", self.agents.path("").display(), self.env["PATH"])
    }

    /// Where an agent's program is.
    pub fn agent(&self, name: &str) -> PathBuf {
        self.agents.path(name)
    }

    /// The starts of `claude` for tasks so far, oldest first.
    pub fn agent_starts(&self) -> Vec<Invocation> {
        self.agents.starts()
    }

    /// The tasks whose `claude` was started while another one for the same work was alive, see [`AGENT_WORK`](crate::AGENT_WORK).
    pub fn overlapping_agents(&self) -> Vec<String> {
        self.agents.overlaps()
    }

    /// Every living process that carries this home: the daemon, what it started, and what that started.
    pub fn processes(&self) -> Vec<i32> {
        carrying(&self.home_entry())
    }

    /// The living processes of a task's agent and of what it started.
    pub fn processes_of(&self, task: &TaskId) -> Vec<i32> {
        let ours = self.processes();
        carrying(&format!("MULTICA_TASK_ID={task}")).into_iter().filter(|id| ours.contains(id)).collect()
    }

    /// The port of the daemon's local HTTP server.
    pub fn health_port(&self) -> u16 {
        self.port.port()
    }

    pub(crate) fn executable(&self) -> &Path {
        &self.executable
    }

    /// Its processes that have a file of this directory open.
    pub fn processes_with_open(&self, dir: &Path) -> Vec<i32> {
        let has_open = |id: &i32| {
            let open = fs::read_dir(format!("/proc/{id}/fd")).into_iter().flatten().flatten();
            open.filter_map(|fd| fs::read_link(fd.path()).ok()).any(|file| file.starts_with(dir))
        };
        self.processes().into_iter().filter(has_open).collect()
    }

    pub(crate) fn environment(&self) -> &BTreeMap<String, String> {
        &self.env
    }

    pub(crate) fn flags(&self) -> &[String] {
        &self.flags
    }

    fn home_entry(&self) -> String {
        format!("HOME={}", self.home_dir().display())
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        kill_carrying(&self.home_entry());
    }
}
