//! Runs a program for the little that it prints, within bounds of time and size, and leaves no process behind.

use crate::config::Env;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use thiserror::Error;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStdout, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, timeout_at};

/// What is kept of standard output; the rest is read and thrown away.
pub(crate) const MAX_OUTPUT: usize = 64 * 1024;
/// Once the program has ended, its output may come this much later, through processes that it left behind.
const PIPE_GRACE: Duration = Duration::from_secs(2);

/// One program to run.
pub(crate) struct Probe<'a> {
    pub program: &'a Path,
    pub args: &'a [&'a OsStr],
    pub env: &'a Env,
    pub limit: Duration,
    /// Whether what was printed so far is the answer: then nobody waits for more once the program has ended.
    pub enough: fn(&str) -> bool,
    /// The program puts itself at the head of a session of its own, so it must not be at the head of a group.
    pub makes_session: bool,
}

/// Why nothing was captured.
#[derive(Debug, Error)]
pub(crate) enum CaptureError {
    #[error("it could not be started: {0}")]
    Start(io::Error),
    #[error("it did not end within {0:?} and was killed")]
    TimedOut(Duration),
    #[error("it could not be watched: {0}")]
    Watch(io::Error),
    #[error("it ended with {0}")]
    Failed(ExitStatus),
}

impl Probe<'_> {
    /// Standard output, invalid UTF-8 replaced. Standard input is empty and standard error is thrown away.
    /// When this future is done or dropped, the program and its group are gone.
    pub(crate) async fn run(&self) -> Result<String, CaptureError> {
        let mut command = Command::new(self.program);
        command.args(self.args).env_clear().envs(self.env.iter()).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        if !self.makes_session {
            command.process_group(0);
        }
        let mut child = command.spawn().map_err(CaptureError::Start)?;
        let deadline = Instant::now() + self.limit;
        let mut group = Group::led_by(&child);
        let stdout = child.stdout.take();
        let mut output = Output { pipe: stdout, kept: Vec::new() };
        let watched = timeout_at(deadline, watch(group.leader, &mut output, self.enough)).await;
        group.kill();
        if watched.is_err() {
            let _ = child.start_kill();
        }
        let status = child.wait().await.map_err(CaptureError::Watch)?;
        watched.map_err(|_| CaptureError::TimedOut(self.limit))?.map_err(CaptureError::Watch)?;
        if !status.success() {
            return Err(CaptureError::Failed(status));
        }
        Ok(output.text())
    }
}

/// Reads until the program has ended and its output is complete or enough.
async fn watch(leader: Option<Pid>, output: &mut Output, enough: fn(&str) -> bool) -> io::Result<()> {
    let ended = leader_end(leader);
    tokio::pin!(ended);
    loop {
        tokio::select! {
            read = output.read(), if output.pipe.is_some() => read?,
            result = &mut ended => break result?,
        }
    }
    let grace = Instant::now() + PIPE_GRACE;
    while output.pipe.is_some() && !enough(&output.text()) {
        match timeout_at(grace, output.read()).await {
            Ok(read) => read?,
            Err(_) => break,
        }
    }
    Ok(())
}

/// Waits for the end of the program without reaping it: as long as it is not reaped, its process id and with it its
/// group cannot belong to anybody else.
pub(super) async fn leader_end(leader: Option<Pid>) -> io::Result<()> {
    let mut changes = signal(SignalKind::child())?;
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    while let Some(pid) = leader {
        if waitid(WaitId::Pid(pid), look)?.is_some() {
            break;
        }
        changes.recv().await;
    }
    Ok(())
}

struct Output {
    pipe: Option<ChildStdout>,
    kept: Vec<u8>,
}

impl Output {
    /// One read; at the end of the output the pipe is closed. Nothing is lost if this future is dropped.
    async fn read(&mut self) -> io::Result<()> {
        let Some(pipe) = &mut self.pipe else { return Ok(()) };
        let mut buffer = [0; 4096];
        let n = pipe.read(&mut buffer).await?;
        let room = MAX_OUTPUT - self.kept.len();
        self.kept.extend_from_slice(&buffer[..n.min(room)]);
        if n == 0 {
            self.pipe = None;
        }
        Ok(())
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept).into_owned()
    }
}

/// The processes that one program has started, killed when this is dropped.
pub(super) struct Group {
    /// Of a process that is not reaped yet.
    leader: Option<Pid>,
}

impl Group {
    pub(super) fn led_by(child: &Child) -> Self {
        let pid = child.id().and_then(|id| i32::try_from(id).ok());
        Self { leader: pid.and_then(Pid::from_raw) }
    }

    /// Of a process that is not reaped yet.
    pub(super) const fn leader(&self) -> Option<Pid> {
        self.leader
    }

    pub(super) fn kill(&mut self) {
        if let Some(leader) = self.leader.take() {
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::test_kill_process;

    async fn sh(script: &str, limit_ms: u64, enough: fn(&str) -> bool) -> Result<String, CaptureError> {
        let env = Env::from_pairs([("PATH", "/usr/bin:/bin"), ("MARK", "marked")]);
        let args = ["-c", script].map(OsStr::new);
        let limit = Duration::from_millis(limit_ms);
        let program = Path::new("/bin/sh");
        Probe { program, args: &args, env: &env, limit, enough, makes_session: false }.run().await
    }

    fn pid(text: &str) -> Pid {
        Pid::from_raw(text.trim().parse().expect("a process id")).expect("not zero")
    }

    /// The process may be a zombie of another parent for a moment, so its state is read.
    async fn is_gone(pid: Pid) -> bool {
        for _ in 0..500 {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
            let zombie = stat.is_ok_and(|s| s.rsplit(')').next().is_some_and(|s| s.starts_with(" Z")));
            if zombie || test_kill_process(pid).is_err() {
                return true;
            }
            tokio::task::yield_now().await;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        false
    }

    #[tokio::test]
    async fn output_is_captured_with_the_given_environment_alone() {
        let text = sh("echo \"$MARK${HOME}\"; echo noise >&2; cat", 10_000, |_| false).await.expect("output");
        assert_eq!(text, "marked\n");
    }

    #[tokio::test]
    async fn failures_are_told_apart() {
        assert!(
            matches!(sh("exit 3", 10_000, |_| false).await, Err(CaptureError::Failed(s)) if s.code() == Some(3))
        );
        let env = Env::default();
        let program = Path::new("/missing/program");
        let limit = Duration::from_secs(1);
        let probe = Probe { program, args: &[], env: &env, limit, enough: |_| false, makes_session: false };
        assert!(
            matches!(probe.run().await, Err(CaptureError::Start(e)) if e.kind() == io::ErrorKind::NotFound)
        );
    }

    #[tokio::test]
    async fn a_program_that_does_not_end_is_killed_with_its_children() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("pid");
        let script = format!("trap '' TERM; sleep 600 & echo $! > {}; wait", file.display());
        assert!(matches!(sh(&script, 1_000, |_| false).await, Err(CaptureError::TimedOut(_))));
        let child = pid(&std::fs::read_to_string(&file).expect("the child's id"));
        assert!(is_gone(child).await);
    }

    #[tokio::test]
    async fn a_child_that_keeps_the_pipe_open_does_not_delay_an_answer() {
        let text = sh("sleep 600 & echo $!", 60_000, |text| text.contains('\n')).await.expect("output");
        assert!(is_gone(pid(&text)).await);
    }

    #[tokio::test]
    async fn output_without_end_is_bounded() {
        let script = "head -c 1000000 /dev/zero | tr '\\0' x";
        assert_eq!(sh(script, 30_000, |_| false).await.expect("output").len(), MAX_OUTPUT);
    }
}
