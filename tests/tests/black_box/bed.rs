//! A control plane and a daemon of it.

use longshore_core::id::{RuntimeId, TaskId};
use longshore_core::plane::Hint;
use longshore_io_tokio::plane::{Config, Fault, Request, Rule, Server, State, Task, TaskSpec};
use longshore_tests::{DaemonUnderTest, DriverUnderTest, Home};
use std::path::PathBuf;
use std::time::Duration;

/// The longest wait for what has to come: for a machine with a lot to do.
pub(crate) const WITHIN: Duration = Duration::from_secs(30);

/// The binary under test.
pub(crate) fn executable() -> &'static str {
    env!("CARGO_BIN_EXE_longshore-under-test")
}

/// A control plane with a daemon that has registered.
pub(crate) struct Bed<D = DaemonUnderTest> {
    pub(crate) daemon: D,
    pub(crate) home: Home,
    pub(crate) plane: Server,
}

/// A control plane as old servers are: no control channel, so that daemons poll.
pub(crate) fn polled() -> Config {
    Config { websocket: false, ..Config::default() }
}

/// Stands between two blocks of text that go out as one message.
pub(crate) const BREAK: &str = "\n\n";

impl Bed {
    /// A daemon with one runtime, `claude`.
    pub(crate) async fn new() -> Self {
        Self::with(Config::default(), |home| home).await
    }

    /// A daemon in a home that `furnish` has changed; all its runtimes are there.
    pub(crate) async fn with(config: Config, furnish: impl FnOnce(Home) -> Home) -> Self {
        let plane = Server::start(config).await.expect("a control plane");
        let home = furnish(Home::new(executable(), &plane));
        let daemon = home.start();
        let bed = Self { daemon, home, plane };
        bed.registered().await;
        bed
    }

    /// Waits until the daemon's log has this.
    pub(crate) async fn logs(&self, text: &str) {
        let mut look = tokio::time::interval(Duration::from_millis(20));
        let said = async {
            while !self.daemon.log().contains(text) {
                look.tick().await;
            }
        };
        let said = tokio::time::timeout(WITHIN, said).await;
        said.unwrap_or_else(|_| panic!("it does not say {text:?}: {}", self.daemon.log()));
    }
}

impl Bed<DriverUnderTest> {
    /// The same with the adapter inside of the test, and other delays of the core.
    pub(crate) async fn driven(
        config: Config,
        furnish: impl FnOnce(Home) -> Home,
        tune: impl FnOnce(&mut longshore_core::config::Config),
    ) -> Self {
        let plane = Server::start(config).await.expect("a control plane");
        let home = furnish(Home::new(executable(), &plane));
        let daemon = home.drive(tune).await;
        let bed = Self { daemon, home, plane };
        bed.registered().await;
        bed
    }
}

impl<D> Bed<D> {
    async fn registered(&self) {
        self.runtime("claude").await;
        if self.home.agent("codex").exists() {
            self.runtime("codex").await;
        }
    }

    /// The runtime of a provider, as soon as it is online.
    pub(crate) async fn runtime(&self, provider: &str) -> RuntimeId {
        self.plane.wait_for_runtime(provider, WITHIN).await.expect("a runtime")
    }

    /// Waits for the control channel, by which hints come.
    pub(crate) async fn linked(&self) {
        self.plane.wait_for_links(1, WITHIN).await.expect("a control channel");
    }

    /// Waits for the control channel that is the `n`th: the daemon dials anew when its runtimes change, and what is on its way over the one before
    /// may be lost.
    pub(crate) async fn dialled(&self, n: usize) {
        let up = |request: &Request| request.path == "/api/daemon/ws" && request.status() == Some(101);
        self.plane.wait_for_requests(n, WITHIN, up).await.expect("another control channel");
        self.linked().await;
    }

    pub(crate) fn enqueue(&self, spec: TaskSpec) -> TaskId {
        self.plane.enqueue(spec).expect("it is taken")
    }

    pub(crate) async fn completed(&self, task: &TaskId) -> Task {
        self.plane.wait_for(task, State::Completed, WITHIN).await.expect("it completes")
    }

    pub(crate) async fn failed(&self, task: &TaskId) -> Task {
        self.plane.wait_for(task, State::Failed, WITHIN).await.expect("it fails")
    }

    /// The requests about a task with this last part of the path, so far.
    pub(crate) fn calls(&self, task: &TaskId, call: &str) -> Vec<Request> {
        self.plane.requests_where(about(task, call))
    }

    /// The bodies that reports of the task had.
    pub(crate) fn bodies(&self, task: &TaskId, call: &str) -> Vec<serde_json::Value> {
        self.calls(task, call).into_iter().map(|request| (*request.body).clone()).collect()
    }

    /// The first request about a task with this last part of the path, as soon as it arrives.
    pub(crate) async fn call(&self, task: &TaskId, call: &str) -> Request {
        self.plane.wait_for_request(WITHIN, about(task, call)).await.expect("the request comes")
    }

    /// The same, as soon as it is answered.
    pub(crate) async fn answered(&self, task: &TaskId, call: &str) -> Request {
        let about = about(task, call);
        self.plane
            .wait_for_request(WITHIN, |request| about(request) && request.answered_at.is_some())
            .await
            .expect("the request comes and is answered")
    }

    /// A fault for one call about any task.
    pub(crate) fn fault(&self, call: &str, rule: impl FnOnce(String) -> Rule) -> Fault {
        self.plane.fault(rule(format!("/api/daemon/tasks/*/{call}")))
    }

    /// Waits until the task's agent has said something.
    pub(crate) async fn spoke(&self, task: &TaskId) {
        let spoke = |plane: &longshore_core::plane::Plane| (!plane.transcript(task).is_empty()).then_some(());
        self.plane.wait_until(WITHIN, spoke).await.expect("the agent speaks");
    }

    /// What the task's agent has said, without the borders between messages.
    /// Without the breaks between blocks, which depend on what went out together.
    pub(crate) fn said(&self, task: &TaskId) -> String {
        let messages = self.plane.transcript(task);
        let said: String = messages.iter().filter_map(|message| message.content.as_deref()).collect();
        said.replace(BREAK, "")
    }

    /// The claims so far, for all runtimes and for single ones.
    pub(crate) fn claims(&self) -> Vec<Request> {
        self.plane.requests_where(is_claim)
    }

    /// Waits for so many claims in all.
    pub(crate) async fn claims_are(&self, count: usize, within: Duration) -> Request {
        self.plane.wait_for_requests(count, within, is_claim).await.expect("the daemon claims")
    }

    /// Pushes a wakeup; for no runtime in particular if there is none.
    pub(crate) fn wake(&self, runtime: Option<&RuntimeId>) {
        let runtime = runtime.cloned().unwrap_or_else(|| RuntimeId::new(""));
        self.plane.push(&Hint::TaskAvailable { runtime, task: None });
    }

    /// The env root of a task.
    pub(crate) fn env_root(&self, task: &TaskId) -> PathBuf {
        let workspace = self.plane.task(task).expect("it is there").workspace;
        self.home.env_root(&workspace, task)
    }
}

impl<D> Drop for Bed<D> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = std::fs::read(self.home.dir().join("daemon.log")).unwrap_or_default();
            eprintln!("the daemon's log:\n{}", String::from_utf8_lossy(&log));
        }
    }
}

pub(crate) fn is_claim(request: &Request) -> bool {
    request.path.ends_with("/tasks/claim")
}

/// The numbers from 1 on, each filled up to so many digits, as the double's flood says them.
pub(crate) fn numbers(to: u64, digits: usize) -> String {
    use std::fmt::Write;
    (1..=to).fold(String::new(), |mut text, n| {
        let _ = write!(text, "{n:0digits$}");
        text
    })
}

fn about(task: &TaskId, call: &str) -> impl Fn(&Request) -> bool + use<> {
    let path = format!("/tasks/{task}/{call}");
    move |request| request.path.ends_with(&path)
}
