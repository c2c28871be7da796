//! A control plane, a home, and one daemon after the other in it.

use longshore_core::id::TaskId;
use longshore_core::plane::Plane;
use longshore_io_tokio::plane::{Config, Fault, Request, Rule, Server, State, Task, TaskSpec};
use longshore_io_tokio::supervise::record::{RunDir, Status};
use longshore_tests::{AGENT_WORK, DaemonUnderTest, Ended, Home};
use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

/// The longest wait for what has to come: for a machine with a lot to do, and for backoffs of some tries.
pub(crate) const WITHIN: Duration = Duration::from_secs(90);
/// How often files and processes are looked at, which tell nobody that they have changed.
const LOOK: Duration = Duration::from_millis(20);

/// The binary under test.
pub(crate) fn executable() -> &'static str {
    env!("CARGO_BIN_EXE_longshore-under-test")
}

pub(crate) struct Rig {
    pub(crate) plane: Server,
    pub(crate) home: Home,
    daemon: DaemonUnderTest,
    /// Daemons so far.
    pub(crate) lives: usize,
    /// Length of the log when the present daemon was started.
    log_from: usize,
    /// Gates that are open until the end.
    pub(crate) open: Vec<File>,
}

impl Rig {
    /// A daemon that has registered and is linked, in a home that `furnish` has changed.
    pub(crate) async fn new(furnish: impl FnOnce(Home) -> Home) -> Self {
        Self::of(executable(), furnish).await
    }

    /// The same with another program in place of the binary.
    pub(crate) async fn of(program: impl AsRef<Path>, furnish: impl FnOnce(Home) -> Home) -> Self {
        let plane = Server::start(Config::default()).await.expect("a control plane");
        let home = furnish(Home::new(program.as_ref(), &plane));
        let daemon = home.start();
        let rig = Self { plane, home, daemon, lives: 1, log_from: 0, open: Vec::new() };
        rig.plane.wait_for_runtime("claude", WITHIN).await.expect("a runtime");
        rig.plane.wait_for_links(1, WITHIN).await.expect("a control channel");
        rig
    }

    pub(crate) fn daemon(&self) -> &DaemonUnderTest {
        &self.daemon
    }

    pub(crate) fn enqueue(&self, spec: TaskSpec) -> TaskId {
        // All tries of a task are the same work.
        let work = TaskId::new(format!("work-{}", self.plane.tasks().len()));
        self.plane.enqueue(spec.env(AGENT_WORK, work.as_str())).expect("it is taken")
    }

    pub(crate) async fn kill(&self) {
        self.daemon.kill().await;
    }

    /// Starts the next daemon; the one before must have ended.
    pub(crate) fn start_next(&mut self) {
        assert!(self.daemon.has_ended(), "one daemon after the other");
        self.log_from = self.daemon.log().len();
        self.daemon = self.home.start();
        self.lives += 1;
    }

    /// Waits until the present daemon, which is not the first, has registered.
    pub(crate) async fn registered_since(&self, before: usize) {
        self.plane
            .wait_for_requests(before + 1, WITHIN, is_registration)
            .await
            .expect("the daemon registers");
    }

    pub(crate) fn registrations(&self) -> usize {
        self.plane.requests_where(is_registration).len()
    }

    /// What the present daemon wrote so far.
    pub(crate) fn log(&self) -> String {
        self.daemon.log().split_off(self.log_from)
    }

    /// A fault for one call about any task.
    pub(crate) fn fault(&self, call: &str, rule: impl FnOnce(String) -> Rule) -> Fault {
        self.plane.fault(rule(format!("/api/daemon/tasks/*/{call}")))
    }

    /// The requests about a task with this last part of the path, so far.
    pub(crate) fn calls(&self, task: &TaskId, call: &str) -> Vec<Request> {
        let path = format!("/tasks/{task}/{call}");
        self.plane.requests_where(|request| request.path.ends_with(&path))
    }

    /// Waits until the server has something that the task's agent said.
    pub(crate) async fn spoke(&self, task: &TaskId) {
        let spoke = |plane: &Plane| (!plane.transcript(task).is_empty()).then_some(());
        self.plane.wait_until(WITHIN, spoke).await.expect("the agent speaks");
    }

    /// Waits until the task and every try that followed it has ended; all of them, the first one first.
    pub(crate) async fn over(&self, task: &TaskId) -> Vec<Task> {
        let ended = |plane: &Plane| {
            let tries = tries(plane, task);
            tries.iter().all(|row| row.state.is_terminal()).then_some(tries)
        };
        self.plane.wait_until(WITHIN, ended).await.expect("it ends")
    }

    /// The same, and the last try completes.
    pub(crate) async fn completed(&self, task: &TaskId) -> Vec<Task> {
        let tries = self.over(task).await;
        let last = tries.last().expect("there is one");
        assert_eq!(last.state, State::Completed, "{:?}: {:?}", last.failure_reason, last.error);
        tries
    }

    /// The directory of the run of a task's agent, and whose it is.
    pub(crate) async fn run_of(&self, task: &TaskId) -> (RunDir, Status) {
        let find = || {
            let dirs = fs::read_dir(self.home.state_dir().join("runs")).ok()?;
            let runs = dirs.flatten().map(|dir| RunDir::new(dir.path()));
            let mut known = runs.filter_map(|dir| dir.status().ok().map(|status| (dir, status)));
            known.find(|(_, status)| status.task == task.as_str())
        };
        until("a run directory of the task", find).await
    }

    /// Tells the daemon to stop, and waits until it is gone and all that it started is.
    pub(crate) async fn stop(&self) -> Ended {
        let ended = self.daemon.stop().await;
        assert!(ended.status.success(), "{}", self.log());
        until("the end of all processes", || self.home.processes().is_empty().then_some(())).await;
        ended
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the log of all daemons:\n{}", self.daemon.log());
            let requests = self.plane.requests();
            for request in requests.iter().skip(requests.len().saturating_sub(60)) {
                eprintln!("{request}");
            }
        }
    }
}

fn is_registration(request: &Request) -> bool {
    request.is("POST", "/api/daemon/register")
}

/// A task and the tries that followed it.
fn tries(plane: &Plane, task: &TaskId) -> Vec<Task> {
    let mut tries: Vec<Task> = plane.task(task).into_iter().cloned().collect();
    while let Some(next) = plane
        .tasks()
        .find(|row| row.parent.is_some() && row.parent.as_ref() == tries.last().map(|last| &last.id))
    {
        tries.push(next.clone());
    }
    tries
}

/// Waits until `look` finds something of which nobody can be told.
pub(crate) async fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    let found = within(WITHIN, look).await;
    found.unwrap_or_else(|| panic!("waited {WITHIN:?} in vain for {what}"))
}

/// The same for a time of its own; `None` if it did not come.
pub(crate) async fn within<T>(limit: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let found = async {
        loop {
            if let Some(found) = look() {
                return found;
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(limit, found).await.ok()
}
