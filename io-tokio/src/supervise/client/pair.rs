//! A supervisor and a helper from their start to the launch.

use super::error::{LaunchError, PrepareError, SpawnError};
use super::launcher::Shared;
use super::lost;
use super::run::Run;
use crate::supervise::exec_call::ExecCall;
use crate::supervise::frame::{self, Kind, MAX_PAYLOAD};
use crate::supervise::protocol::{self, Answer, LaunchOrder, Order};
use crate::supervise::record::{MARKER_VARIABLE, Process, RunDir};
use longshore_core::id::is_safe_component;
use std::ffi::OsString;
use std::fmt;
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// From the start of a supervisor to its "ready".
const READY_LIMIT: Duration = Duration::from_secs(10);

/// How long a supervisor may take to kill and reap; it gives up by itself a little earlier.
const ABORT_LIMIT: Duration = Duration::from_secs(12);

/// From the order to launch to the answer; the supervisor gives up by itself a little earlier.
const LAUNCH_LIMIT: Duration = Duration::from_secs(25);

/// How long the end of a supervisor that was killed is waited for.
const REAP_LIMIT: Duration = Duration::from_secs(2);

/// Default of [`LaunchSpec::spool_budget`]: 64 MiB, and room for one line of the longest kind that is still read
/// (64 MiB), since a position is acknowledged at line ends.
pub const DEFAULT_SPOOL_BUDGET: u64 = 128 * 1024 * 1024;

/// Default of [`LaunchSpec::leftover_grace`].
pub const DEFAULT_LEFTOVER_GRACE: Duration = Duration::from_millis(500);

/// The connections to a supervisor and its helper. Dropped before a launch, both end by themselves.
pub(super) struct Link {
    child: Child,
    control: UnixStream,
    helper_socket: UnixStream,
    supervisor: i32,
    helper: i32,
}

impl Link {
    pub(super) async fn spawn(exe: &Path) -> Result<Self, SpawnError> {
        let start = |source| SpawnError::Start { exe: exe.to_owned(), source };
        let (control, theirs) = socket_pair().map_err(start)?;
        let (helper_socket, helpers) = socket_pair().map_err(start)?;
        let mut command = Command::new(exe);
        command
            .arg0("longshore")
            .arg("supervise")
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::from(helpers))
            // A run outlives the daemon, and whoever reads the daemon's stderr must see its end.
            .stderr(Stdio::null())
            .kill_on_drop(false);
        let child = command.spawn().map_err(start)?;
        // It holds the other ends of the sockets, whose end is how a death is seen.
        drop(command);
        let supervisor = child.id().and_then(|id| i32::try_from(id).ok()).unwrap_or(0);
        let mut link = Self { child, control, helper_socket, supervisor, helper: 0 };
        let reason = match timeout(READY_LIMIT, link.meet()).await {
            Ok(Ok(())) => return Ok(link),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {} s", READY_LIMIT.as_secs()),
        };
        link.kill().await;
        Err(SpawnError::NotReady { exe: exe.to_owned(), reason })
    }

    /// Waits until both processes are where nothing can be left of them.
    async fn meet(&mut self) -> io::Result<()> {
        match self.answer().await? {
            Answer::Ready { version, helper } if version == protocol::VERSION => self.helper = helper,
            other => return Err(invalid(format!("it answered {other:?}"))),
        }
        match frame::receive(&mut self.helper_socket).await? {
            Some((Kind::Hello, _)) => Ok(()),
            Some((kind, _)) => Err(invalid(format!("its helper sent a {kind:?} frame"))),
            None => Err(invalid("its helper ended at once".into())),
        }
    }

    pub(super) fn supervisor_pid(&self) -> i32 {
        self.supervisor
    }

    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Closes the connections; what is left is the process to wait for.
    pub(super) fn release(self) -> Child {
        self.child
    }

    async fn answer(&mut self) -> io::Result<Answer> {
        match frame::receive(&mut self.control).await? {
            Some((Kind::Message, payload)) => Ok(serde_json::from_slice(&payload)?),
            Some((kind, _)) => Err(invalid(format!("the supervisor sent a {kind:?} frame"))),
            None => {
                Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the supervisor ended without an answer"))
            }
        }
    }

    async fn order(&mut self, order: &Order) -> io::Result<()> {
        frame::send(&mut self.control, Kind::Message, &serde_json::to_vec(order)?).await
    }

    /// Has everything killed and reaped. Gives what could not be; an error when nobody can say.
    async fn abort(mut self) -> Result<(), PrepareError> {
        let told = timeout(ABORT_LIMIT, async {
            // Fails when the supervisor is ending already; its last answer says how.
            let _ = self.order(&Order::Abort).await;
            let answer = self.answer().await;
            let _ = self.child.wait().await;
            answer
        });
        match told.await {
            Ok(Ok(Answer::Aborted { left })) if !left.is_empty() => Err(PrepareError::NotReaped { left }),
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(PrepareError::SupervisorFailed(error.to_string())),
            Err(_) => {
                let helper = Process { pid: self.helper, command: "longshore helper".into() };
                self.kill().await;
                Err(PrepareError::NotReaped { left: vec![helper] })
            }
        }
    }

    /// The back-stop for a supervisor that does not do its work: kills it, and the kernel the helper with it.
    async fn kill(&mut self) {
        #[cfg(target_os = "linux")]
        if let Some(group) = rustix::process::Pid::from_raw(self.helper)
            && crate::supervise::procfs::Stat::of(self.helper).is_some_and(|it| it.parent == self.supervisor)
        {
            // The supervisor has not reaped it, so the number is its own.
            crate::supervise::tree::signal_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.start_kill();
        let _ = timeout(REAP_LIMIT, self.child.wait()).await;
    }
}

/// One job and its reply; an end of the socket is an error.
async fn exchange(helper: &mut UnixStream, job: &[u8]) -> io::Result<Vec<u8>> {
    frame::send(&mut *helper, Kind::Job, job).await?;
    match frame::receive(helper).await? {
        Some((Kind::Reply, reply)) => Ok(reply),
        Some((kind, _)) => Err(invalid(format!("the helper sent a {kind:?} frame"))),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Waits until there is a byte, an end or an error, and takes nothing. Cancel-safe.
async fn something_to_read(socket: &UnixStream) {
    use rustix::net::{RecvFlags, recv};
    while socket.readable().await.is_ok() {
        // Readiness may be left from an earlier read: only a look that would block clears it.
        let look = socket.try_io(Interest::READABLE, || Ok(recv(socket, &mut [0; 1], RecvFlags::PEEK)?));
        if !look.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            return;
        }
    }
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

fn socket_pair() -> io::Result<(UnixStream, OwnedFd)> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    Ok((UnixStream::from_std(ours)?, theirs.into()))
}

/// A warm supervisor with its helper, for one task. Dropped, both end by themselves.
pub struct Pair {
    link: Link,
    shared: Arc<Shared>,
}

impl Pair {
    pub(super) fn new(link: Link, shared: Arc<Shared>) -> Self {
        Self { link, shared }
    }

    /// The process id of the helper, which will be the agent's.
    pub fn helper_pid(&self) -> i32 {
        self.link.helper
    }

    /// The process id of the supervisor.
    pub fn supervisor_pid(&self) -> i32 {
        self.link.supervisor
    }

    /// Has the helper prepare: gives its reply to `job` (at most 64 MiB each), and the pair for the launch.
    ///
    /// When the deadline passes or `cancel` completes first, the helper and everything that it started are killed
    /// and reaped *before* this returns, so whoever tries again is the only writer. Dropping the future kills them
    /// as well, a little later.
    ///
    /// # Errors
    /// See [`PrepareError`]; the pair is gone then.
    pub async fn prepare(
        self,
        job: &[u8],
        deadline: Duration,
        cancel: impl Future<Output = ()>,
    ) -> Result<(Vec<u8>, Ready), PrepareError> {
        let Self { mut link, shared } = self;
        if job.len() > MAX_PAYLOAD {
            link.abort().await?;
            return Err(PrepareError::TooLarge { length: job.len(), limit: MAX_PAYLOAD });
        }
        let outcome = tokio::select! {
            biased;
            () = cancel => Err(PrepareError::Cancelled),
            reply = exchange(&mut link.helper_socket, job) => Ok(reply),
            // The supervisor speaks only when the helper has died, and its own end is as bad.
            () = something_to_read(&link.control) => Ok(Err(io::ErrorKind::UnexpectedEof.into())),
            () = tokio::time::sleep(deadline) => Err(PrepareError::Deadline { after: deadline }),
        };
        match outcome {
            Ok(Ok(reply)) => Ok((reply, Ready { link, shared })),
            Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => {
                link.abort().await?;
                Err(PrepareError::SupervisorFailed(error.to_string()))
            }
            Ok(Err(_)) => Err(helper_died(link).await),
            Err(why) => {
                link.abort().await?;
                Err(why)
            }
        }
    }

    /// Goes on without a preparation.
    pub fn skip_preparation(self) -> Ready {
        Ready { link: self.link, shared: self.shared }
    }
}

async fn helper_died(mut link: Link) -> PrepareError {
    match timeout(ABORT_LIMIT, link.answer()).await {
        Ok(Ok(Answer::HelperDied(exit))) => {
            let _ = timeout(REAP_LIMIT, link.child.wait()).await;
            PrepareError::HelperDied(exit)
        }
        Ok(Ok(other)) => PrepareError::SupervisorFailed(format!("it answered {other:?}")),
        Ok(Err(error)) => PrepareError::SupervisorFailed(error.to_string()),
        Err(_) => {
            link.kill().await;
            PrepareError::SupervisorFailed("no answer after its helper ended".into())
        }
    }
}

/// When the space of what was read is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credit {
    /// As it is read: what a daemon has read and not dealt with is lost if it is killed.
    OnRead,
    /// When [`Run::acknowledge`] is called: a later daemon can attach at the last acknowledged position. Whoever
    /// acknowledges at line ends only must also do so inside a line that is longer than the spool's budget.
    Explicit,
}

/// A run to launch.
pub struct LaunchSpec {
    /// The task's id; must be a safe path component.
    pub task: String,
    /// Which attempt at the task this is; a pair of task and attempt is used once.
    pub attempt: u32,
    /// The program: a path, or a name that is looked up in the `PATH` of [`env`](Self::env).
    pub program: PathBuf,
    /// Its arguments, without the program's own name.
    pub args: Vec<OsString>,
    /// The directory it starts in.
    pub cwd: PathBuf,
    /// The complete environment; nothing is inherited. `LONGSHORE_RUN` is added.
    pub env: Vec<(OsString, OsString)>,
    /// What the agent reads first.
    pub prompt: Vec<u8>,
    /// Whether more may follow ([`Run::write_stdin`]); otherwise the end of the prompt is the end of the input.
    pub keep_stdin_open: bool,
    /// When the space of what was read is given back.
    pub credit: Credit,
    /// Bytes that one spool may be ahead of the credit; there the agent is made to wait.
    pub spool_budget: u64,
    /// What the agent leaves behind gets this long from the polite signal to the kill.
    pub leftover_grace: Duration,
}

impl LaunchSpec {
    /// A run with no arguments, an empty environment and an empty input.
    pub fn new(
        task: impl Into<String>,
        attempt: u32,
        program: impl Into<PathBuf>,
        cwd: impl Into<PathBuf>,
    ) -> Self {
        Self {
            task: task.into(),
            attempt,
            program: program.into(),
            args: Vec::new(),
            cwd: cwd.into(),
            env: Vec::new(),
            prompt: Vec::new(),
            keep_stdin_open: false,
            credit: Credit::OnRead,
            spool_budget: DEFAULT_SPOOL_BUDGET,
            leftover_grace: DEFAULT_LEFTOVER_GRACE,
        }
    }
}

/// Arguments, environment and prompt hold secrets: only their sizes are shown.
impl fmt::Debug for LaunchSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaunchSpec")
            .field("task", &self.task)
            .field("attempt", &self.attempt)
            .field("program", &self.program)
            .field("args", &self.args.len())
            .field("cwd", &self.cwd)
            .field("env", &self.env.len())
            .field("prompt", &self.prompt.len())
            .finish_non_exhaustive()
    }
}

/// A pair that is prepared. Dropped, both processes end by themselves.
pub struct Ready {
    link: Link,
    shared: Arc<Shared>,
}

impl Ready {
    /// The process id that the agent will have.
    pub fn helper_pid(&self) -> i32 {
        self.link.helper
    }

    /// Starts the agent. From here on the run goes on also when the daemon is gone.
    ///
    /// Not cancel-safe: a run that was launched by a future that was dropped is found in the runs directory.
    ///
    /// # Errors
    /// See [`LaunchError`]; the pair is gone then, and so is the run directory.
    pub async fn launch(self, spec: LaunchSpec) -> Result<Run, LaunchError> {
        if !is_safe_component(&spec.task) {
            self.end_unused().await;
            return Err(LaunchError::UnsafeTask(spec.task));
        }
        let dir = RunDir::new(self.shared.runs_dir.join(format!("{}-{}", spec.task, spec.attempt)));
        let path = dir.path().to_owned();
        let LaunchSpec { prompt, .. } = spec;
        let made = {
            let dir = dir.clone();
            tokio::task::spawn_blocking(move || make_dir(&dir, &prompt)).await
        };
        if let Err(error) = made.map_err(io::Error::other).and_then(|made| made) {
            self.end_unused().await;
            return Err(LaunchError::RunDir { path, reason: error.to_string() });
        }

        let Self { mut link, shared } = self;
        let marker = uuid::Uuid::new_v4().to_string();
        let order = LaunchOrder {
            version: protocol::VERSION,
            task: spec.task,
            attempt: spec.attempt,
            marker: marker.clone(),
            run_dir: dir.path().to_owned(),
            keep_stdin_open: spec.keep_stdin_open,
            spool_budget: spec.spool_budget,
            leftover_grace_ms: u64::try_from(spec.leftover_grace.as_millis()).unwrap_or(u64::MAX),
        };
        let mut env = spec.env;
        env.push((MARKER_VARIABLE.into(), marker.into()));
        let call = ExecCall { program: spec.program, cwd: spec.cwd, args: spec.args, env };

        let launched = match timeout(LAUNCH_LIMIT, order_launch(&mut link, &call, order)).await {
            Ok(Ok(Answer::Launched)) => {
                Run::launched(&shared, dir.clone(), link.helper, spec.credit, spec.spool_budget)
            }
            Ok(Ok(Answer::LaunchFailed(failure))) => {
                let _ = timeout(REAP_LIMIT, link.child.wait()).await;
                remove(dir).await;
                return Err(LaunchError::new(failure, &call.program, &call.cwd, &path));
            }
            Ok(Ok(Answer::HelperDied(exit))) => Err(LaunchError::HelperDied(exit.to_string())),
            Ok(Ok(other)) => Err(LaunchError::HelperDied(format!("the supervisor answered {other:?}"))),
            Ok(Err(error)) => Err(LaunchError::HelperDied(error.to_string())),
            Err(_) => {
                let reason = format!("no answer from the supervisor within {} s", LAUNCH_LIMIT.as_secs());
                Err(LaunchError::Timeout(reason))
            }
        };
        match launched {
            Ok(run) => Ok(run.owning(link.release())),
            Err(error) => {
                link.kill().await;
                let settled = dir.clone();
                let _ =
                    tokio::task::spawn_blocking(move || lost::settle(&settled, "it was not launched")).await;
                remove(dir).await;
                Err(error)
            }
        }
    }

    async fn end_unused(self) {
        // An idle helper is killed in no time; if not, that is no news for who wanted to launch.
        let _ = self.discard().await;
    }

    /// Ends the pair and waits until everything of it is reaped.
    ///
    /// # Errors
    /// When something could not be killed.
    pub async fn discard(self) -> Result<(), PrepareError> {
        self.link.abort().await
    }
}

async fn order_launch(link: &mut Link, call: &ExecCall, order: LaunchOrder) -> io::Result<Answer> {
    // A helper that is gone cannot take it; the supervisor says why.
    let sent = frame::send(&mut link.helper_socket, Kind::Exec, &call.encode()).await;
    if let Err(error) = sent
        && error.kind() == io::ErrorKind::InvalidData
    {
        return Err(error);
    }
    let _ = link.order(&Order::Launch(order)).await;
    link.answer().await
}

fn make_dir(dir: &RunDir, prompt: &[u8]) -> io::Result<()> {
    if let Some(parent) = dir.path().parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    }
    DirBuilder::new().mode(0o700).create(dir.path())?;
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(dir.file("prompt"))?;
    file.write_all(prompt)
}

async fn remove(dir: RunDir) {
    let removed = tokio::task::spawn_blocking(move || dir.remove()).await;
    if let Ok(Err(error)) = removed {
        tracing::warn!(%error, "the run directory of a run that did not start is left");
    }
}
