//! The connections to a supervisor and its helper, and the words on them.

use super::error::{PrepareError, SpawnError};
use crate::supervise::exec_call::ExecCall;
use crate::supervise::frame::{self, Kind};
use crate::supervise::protocol::{self, Answer, LaunchOrder, Order};
use crate::supervise::record::Process;
use rustix::process::{Pid, Signal, kill_process};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// From the start of a supervisor to its "ready".
const READY_LIMIT: Duration = Duration::from_secs(10);

/// How long a supervisor may take to kill and reap; it gives up by itself a little earlier.
const ABORT_LIMIT: Duration = Duration::from_secs(12);

/// From the order to launch to the first look whether the supervisor was stopped, and from one to the next.
const WAKE: Duration = Duration::from_millis(500);

/// How long the end of a supervisor that was killed is waited for.
const REAP_LIMIT: Duration = Duration::from_secs(2);

/// All that a supervisor gets of the daemon's environment, which an agent could read in `/proc`: the daemon's own credential may
/// be in it. What the agent itself gets comes with its launch.
const INHERITED: [&str; 6] = ["HOME", "LANG", "PATH", "RUST_BACKTRACE", "TMPDIR", "TZ"];

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
            .env_clear()
            .envs(INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
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

    pub(super) fn helper_pid(&self) -> i32 {
        self.helper
    }

    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Closes the connections; what is left is the process to wait for.
    pub(super) fn release(self) -> Child {
        self.child
    }

    async fn answer(&mut self) -> io::Result<Answer> {
        answer(&mut self.control).await
    }

    async fn order(&mut self, order: &Order) -> io::Result<()> {
        frame::send(&mut self.control, Kind::Message, &serde_json::to_vec(order)?).await
    }

    /// One job and its reply; that the helper or the supervisor is gone is an `UnexpectedEof`.
    pub(super) async fn exchange(&mut self, job: &[u8]) -> io::Result<Vec<u8>> {
        tokio::select! {
            biased;
            reply = exchange(&mut self.helper_socket, job) => reply,
            // The supervisor speaks only when the helper has died, and its own end is as bad.
            () = something_to_read(&self.control) => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// The helper's socket has ended: waits for the supervisor's word on it.
    pub(super) async fn helper_died(mut self) -> PrepareError {
        match timeout(ABORT_LIMIT, self.answer()).await {
            Ok(Ok(Answer::HelperDied(exit))) => {
                self.reaped().await;
                PrepareError::HelperDied(exit)
            }
            Ok(Ok(other)) => PrepareError::SupervisorFailed(format!("it answered {other:?}")),
            Ok(Err(error)) => PrepareError::SupervisorFailed(error.to_string()),
            Err(_) => {
                self.kill().await;
                PrepareError::SupervisorFailed("no answer after its helper ended".into())
            }
        }
    }

    /// Tells the helper what to become and the supervisor to let it. Not cancel-safe.
    pub(super) async fn launch(&mut self, call: &ExecCall, order: LaunchOrder) -> io::Result<Answer> {
        // A helper that is gone cannot take it; the supervisor says why.
        let sent = frame::send(&mut self.helper_socket, Kind::Exec, &call.encode()).await;
        if let Err(error) = sent
            && error.kind() == io::ErrorKind::InvalidData
        {
            return Err(error);
        }
        let _ = self.order(&Order::Launch(order)).await;
        let Self { child, control, .. } = self;
        let mut answer = std::pin::pin!(answer(control));
        // The agent may stop its supervisor before this has said that it runs.
        loop {
            match timeout(WAKE, &mut answer).await {
                Ok(answer) => return answer,
                Err(_) => wake(child),
            }
        }
    }

    /// Waits for the end of a supervisor that has said its last word.
    pub(super) async fn reaped(&mut self) {
        let _ = timeout(REAP_LIMIT, self.child.wait()).await;
    }

    /// Has everything killed and reaped; an error when something could not be, or when nobody can say.
    pub(super) async fn abort(mut self) -> Result<(), PrepareError> {
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
    pub(super) async fn kill(&mut self) {
        #[cfg(target_os = "linux")]
        if let Some(group) = Pid::from_raw(self.helper)
            && crate::supervise::procfs::Stat::of(self.helper).is_some_and(|it| it.parent == self.supervisor)
        {
            // The supervisor has not reaped it, so the number is its own.
            crate::supervise::tree::signal_group(group, Signal::KILL);
        }
        let _ = self.child.start_kill();
        self.reaped().await;
    }
}

/// Lets a supervisor that was stopped go on.
pub(super) fn wake(supervisor: &Child) {
    // Not reaped, so the number is its own.
    if let Some(pid) = supervisor.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)) {
        let _ = kill_process(pid, Signal::CONT);
    }
}

async fn answer(control: &mut UnixStream) -> io::Result<Answer> {
    match frame::receive(control).await? {
        Some((Kind::Message, payload)) => Ok(serde_json::from_slice(&payload)?),
        Some((kind, _)) => Err(invalid(format!("the supervisor sent a {kind:?} frame"))),
        None => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the supervisor ended without an answer")),
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
