//! A control plane, and a home for a daemon that the tests start as they like.

use longshore_core::id::TaskId;
use longshore_io_tokio::agent_double::Step;
use longshore_io_tokio::plane::{Config, Server, State, TaskSpec};
use longshore_tests::{DaemonUnderTest, Gate, Home, Said};
use serde_json::Value;
use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The longest wait for what has to come.
pub(crate) const WITHIN: Duration = Duration::from_secs(30);

/// A home without a daemon, its config file written.
pub(crate) struct Bed {
    pub(crate) home: Home,
    pub(crate) plane: Server,
}

impl Bed {
    pub(crate) async fn new() -> Self {
        Self::with(|home| home).await
    }

    pub(crate) async fn with(furnish: impl FnOnce(Home) -> Home) -> Self {
        let plane = Server::start(Config::default()).await.expect("a control plane");
        let home = furnish(Home::new(env!("CARGO_BIN_EXE_longshore-under-test"), &plane));
        home.write_config();
        Self { home, plane }
    }

    /// A daemon in the foreground that is up.
    pub(crate) async fn daemon(&self) -> DaemonUnderTest {
        let daemon = self.home.start();
        self.plane.wait_for_runtime("claude", WITHIN).await.expect("a runtime");
        self.plane.wait_for_links(1, WITHIN).await.expect("a control channel");
        daemon
    }

    /// A task whose agent is at work, and goes on when the gate opens.
    pub(crate) async fn at_work(&self, gate: &str) -> (TaskId, Gate) {
        let gate = Gate::new(self.home.dir().join(gate));
        let script = [Step::Say("busy".into()), gate.wait(), Step::Say("done".into())];
        let task = self.plane.enqueue(TaskSpec::new("claude").script(&script)).expect("it is taken");
        let spoke =
            |plane: &longshore_core::plane::Plane| (!plane.transcript(&task).is_empty()).then_some(());
        self.plane.wait_until(WITHIN, spoke).await.expect("the agent speaks");
        (task, gate)
    }

    pub(crate) fn state_of(&self, task: &TaskId) -> State {
        self.plane.task(task).expect("there").state
    }

    pub(crate) fn reason_of(&self, task: &TaskId) -> Option<String> {
        self.plane.task(task).expect("there").failure_reason.map(|reason| reason.to_string())
    }

    /// Requests that take runtimes off line.
    pub(crate) fn off_line(&self) -> usize {
        self.plane.requests_where(|request| request.path.ends_with("/deregister")).len()
    }

    /// What `daemon status --output json` says.
    pub(crate) async fn status(&self) -> Value {
        let said = self.home.run(&["daemon", "status", "--output", "json"]).await;
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
        serde_json::from_str(&said.out).expect("JSON")
    }

    /// The process of the daemon that answers.
    pub(crate) async fn pid(&self) -> i32 {
        let pid = self.status().await["pid"].as_i64().expect("a daemon answers");
        i32::try_from(pid).expect("a process id")
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.home.home_dir().join(".multica").join(name)
    }

    /// What `daemon.pid` says, if it is there.
    pub(crate) fn pid_file(&self) -> Option<String> {
        fs::read_to_string(self.file("daemon.pid")).ok()
    }

    pub(crate) fn is_port_free(&self) -> bool {
        TcpStream::connect((Ipv4Addr::LOCALHOST, self.home.health_port())).is_err()
    }
}

/// Fails with what the command said.
pub(crate) fn succeeded(said: &Said) {
    assert_eq!(said.code, Some(0), "{said:?}");
}

/// The one line that a command refused with.
pub(crate) fn refused(said: &Said) -> &str {
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{said:?}");
    let line = said.err.lines().last().unwrap_or_default();
    assert!(line.starts_with("error: "), "{said:?}");
    line
}

/// A process that has nothing to do with any daemon.
pub(crate) struct Bystander(Child);

impl Bystander {
    pub(crate) fn new() -> Self {
        let mut command = Command::new("sleep");
        Self(command.arg("1000").stdin(Stdio::null()).spawn().expect("started"))
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.0.try_wait().expect("a child").is_none()
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
