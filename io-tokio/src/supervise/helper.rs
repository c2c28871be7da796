//! The helper: prepares, then becomes the agent.
//!
//! Its stdin is a socket to the daemon (jobs, replies, what to exec), its stdout one to the supervisor (the agent's
//! three descriptors, the result of the exec). Both are moved away at once, so that nothing which a preparation
//! starts or prints can reach them. They are close-on-exec: the supervisor takes the end of its socket after
//! "going" as the proof that the agent runs.

use super::exec_call::ExecCall;
use super::frame::{self, Kind};
use super::protocol::{Failure, FailureClass};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// Runs `longshore helper SUPERVISOR_PID` until it becomes the agent, or until nobody needs it any more.
///
/// `prepare` takes a job and gives the reply; its panic ends the process, which the daemon sees as a helper that
/// died. It may run any number of times.
pub fn main(prepare: fn(&[u8]) -> Vec<u8>) -> ExitCode {
    match serve(prepare) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("longshore helper: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(prepare: fn(&[u8]) -> Vec<u8>) -> io::Result<()> {
    // A session and group of its own, which the agent keeps: one signal reaches all that stays in it.
    rustix::process::setsid()?;
    die_with_the_supervisor()?;
    let daemon = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let supervisor = UnixStream::from(io::stdout().as_fd().try_clone_to_owned()?);
    nix::unistd::dup2_stdin(File::open("/dev/null")?)?;
    nix::unistd::dup2_stdout(io::stderr())?;
    super::supervisor::name_this_process("longshore-help");
    frame::write(&daemon, Kind::Hello, &[])?;

    while let Some((kind, payload)) = frame::read(&daemon)? {
        match kind {
            Kind::Job => frame::write(&daemon, Kind::Reply, &prepare(&payload))?,
            Kind::Exec => {
                let call = ExecCall::decode(&payload)?;
                drop(payload);
                if let Some(stdio) = receive_stdio(&supervisor)? {
                    let failure = become_agent(&call, stdio, &supervisor);
                    frame::write(&supervisor, Kind::Failed, &serde_json::to_vec(&failure)?)?;
                }
                return Ok(());
            }
            other => {
                let text = format!("the daemon sent a {other:?} frame");
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
        }
    }
    Ok(())
}

/// The kernel kills this process, and so the agent, when the supervisor is gone.
#[cfg(target_os = "linux")]
fn die_with_the_supervisor() -> io::Result<()> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let expected = std::env::args().nth(2).and_then(|text| text.parse().ok());
    let actual = getppid().map(|pid| pid.as_raw_nonzero().get());
    if expected.is_none() || expected != actual {
        let text = "the supervisor that started this helper is gone, or this was not started by one";
        return Err(io::Error::new(io::ErrorKind::NotFound, text));
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn die_with_the_supervisor() -> io::Result<()> {
    Ok(())
}

/// Waits for the agent's stdin, stdout and stderr; `None` when the supervisor is gone.
fn receive_stdio(supervisor: &UnixStream) -> io::Result<Option<[OwnedFd; 3]>> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    #[cfg(target_os = "linux")]
    let flags = RecvFlags::CMSG_CLOEXEC;
    #[cfg(not(target_os = "linux"))]
    let flags = RecvFlags::empty();
    let got = recvmsg(supervisor, &mut [IoSliceMut::new(&mut byte)], &mut control, flags)?;
    if got.bytes == 0 {
        return Ok(None);
    }
    let mut received = Vec::with_capacity(3);
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            received.extend(fds);
        }
    }
    received.try_into().map(Some).map_err(|other: Vec<_>| {
        let text = format!("the supervisor sent {} descriptors instead of 3", other.len());
        io::Error::new(io::ErrorKind::InvalidData, text)
    })
}

/// Does not come back when it succeeds.
fn become_agent(call: &ExecCall, [stdin, stdout, stderr]: [OwnedFd; 3], supervisor: &UnixStream) -> Failure {
    if let Err(error) = std::env::set_current_dir(&call.cwd) {
        let class = match error.kind() {
            io::ErrorKind::NotFound => FailureClass::WorkdirMissing,
            _ => FailureClass::WorkdirUnusable,
        };
        return Failure { class, text: error.to_string() };
    }
    // The agent must not inherit a blocked signal (std leaves the mask as it is); std resets SIGPIPE, we ignore
    // nothing else, and handlers end at the exec.
    let unblocked = nix::sys::signal::SigSet::empty().thread_set_mask().map_err(io::Error::from);
    if let Err(error) = unblocked.and_then(|()| frame::write(supervisor, Kind::Going, &[])) {
        return Failure { class: FailureClass::Other, text: error.to_string() };
    }
    let error = Command::new(&call.program)
        .args(&call.args)
        .env_clear()
        .envs(call.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::from(stdout))
        .stderr(Stdio::from(stderr))
        .exec();
    Failure { class: classify(&error, call), text: error.to_string() }
}

/// The system says "not found" for a missing program and for one whose interpreter is missing.
fn classify(error: &io::Error, call: &ExecCall) -> FailureClass {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT | Errno::NOTDIR) => {
            if program_file(call).is_some() {
                FailureClass::InterpreterMissing
            } else {
                FailureClass::ProgramMissing
            }
        }
        Some(Errno::ACCESS | Errno::PERM | Errno::ISDIR) => FailureClass::NotExecutable,
        Some(Errno::TOOBIG) => FailureClass::TooLarge,
        Some(Errno::NOEXEC) => FailureClass::BadFormat,
        _ => FailureClass::Other,
    }
}

/// The file that the program's name stands for, in the agent's own search path where it is a bare name.
fn program_file(call: &ExecCall) -> Option<PathBuf> {
    let is_file = |path: &Path| path.metadata().is_ok_and(|meta| meta.is_file());
    if call.program.as_os_str().as_bytes().contains(&b'/') {
        return is_file(&call.program).then(|| call.program.clone());
    }
    let (_, path) = call.env.iter().rev().find(|(name, _)| name == "PATH")?;
    std::env::split_paths(path).map(|dir| dir.join(&call.program)).find(|path| is_file(path))
}
