//! From a warm supervisor to one with an agent.

use super::run::{self, Run};
use super::spool::Spool;
use super::{Warm, feed::Feed};
use crate::supervise::cgroup::Group;
use crate::supervise::frame::{self, Kind};
use crate::supervise::protocol::{self, Answer, Failure, FailureClass, LaunchOrder};
use crate::supervise::record::{EndedBy, ExitRecord, Identity, RunDir, Status, boot_id};
use nix::sys::stat::Mode;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::fs::File;
use std::io::{self, IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::time::Duration;

/// From "go" to the agent's first instruction; loading a program from a slow disk may take a while.
const EXEC_LIMIT: Duration = Duration::from_secs(10);

/// Makes the helper the agent and stays until the run is over, or says why it could not.
pub(super) fn launch(mut warm: Warm, order: &LaunchOrder) -> io::Result<()> {
    let dir = RunDir::new(&order.run_dir);
    let alive = match claim(order, &dir) {
        Ok(alive) => alive,
        Err(failure) => {
            // The directory is another one's, or nobody's: nothing is left in it.
            warm.abort();
            warm.answer(&Answer::LaunchFailed(failure));
            return Ok(());
        }
    };
    let group = Group::make(&order.marker, warm.helper.as_raw_nonzero().get());
    match start(&mut warm, order, &dir, group.as_ref()) {
        Ok(run) => {
            warm.answer(&Answer::Launched);
            let done = run::supervise(Run { group, ..run }, warm.signals, warm.parent, &dir);
            drop(alive);
            done
        }
        Err(mut failure) => {
            let exit = warm.helper_exit();
            if let Some(group) = &group {
                group.end();
            }
            if failure.class == FailureClass::HelperDied {
                failure.text = exit.to_string();
            }
            let mut record = ExitRecord::new(EndedBy::LaunchFailed);
            record.note = Some(failure.text.clone());
            // A daemon that died since the order learns it from the directory; without one there is no run to tell of.
            let _ = dir.write_json("exit.json", &record);
            drop(alive);
            warm.answer(&Answer::LaunchFailed(failure));
            Ok(())
        }
    }
}

/// Takes the lock that says that this launch goes on. A daemon that came since the order may have given the launch up: it removes
/// the file while it holds the lock.
fn claim(order: &LaunchOrder, dir: &RunDir) -> Result<File, Failure> {
    let path = dir.file("alive");
    let failed = |text: String| Failure { class: FailureClass::RunDir, text };
    let with = |error: io::Error| failed(format!("{}: {error}", path.display()));
    let mut alive = File::open(&path).map_err(with)?;
    // Whoever looks at the directory just now holds it for a moment only.
    alive.lock().map_err(with)?;
    let mut marker = String::new();
    alive.read_to_string(&mut marker).map_err(with)?;
    let (held, there) = (alive.metadata().map_err(with)?, path.metadata().map_err(with)?);
    if marker != order.marker || (held.dev(), held.ino()) != (there.dev(), there.ino()) {
        return Err(failed(format!("{} is of another launch", path.display())));
    }
    Ok(alive)
}

fn start(warm: &mut Warm, order: &LaunchOrder, dir: &RunDir, group: Option<&Group>) -> Result<Run, Failure> {
    if order.version != protocol::VERSION {
        let text =
            format!("the daemon speaks version {}, this supervisor {}", order.version, protocol::VERSION);
        return Err(Failure { class: FailureClass::Other, text });
    }
    let at = |what: &str, error: io::Error| Failure {
        class: FailureClass::RunDir,
        text: format!("{what} in {}: {error}", dir.path().display()),
    };
    let stdout = create(dir, "stdout").map_err(|error| at("stdout", error))?;
    let stderr = create(dir, "stderr").map_err(|error| at("stderr", error))?;
    let control = fifo(dir, "control").map_err(|error| at("control", error))?;
    let stdin = fifo(dir, "stdin").map_err(|error| at("stdin", error))?;
    let prompt = File::open(dir.file("prompt")).map_err(|error| at("prompt", error))?;
    // Before the agent runs, so that no agent is ever without a record.
    dir.write_json("status.json", &status(warm, order, group)).map_err(|error| at("status.json", error))?;

    let other = |error: io::Error| Failure { class: FailureClass::Other, text: error.to_string() };
    let (agent_stdin, our_stdin) = io::pipe().map_err(other)?;
    let (our_stdout, agent_stdout) = io::pipe().map_err(other)?;
    let (our_stderr, agent_stderr) = io::pipe().map_err(other)?;
    for ours in [our_stdin.as_fd(), our_stdout.as_fd(), our_stderr.as_fd()] {
        rustix::io::ioctl_fionbio(ours, true).map_err(|error| other(error.into()))?;
    }
    let theirs = [agent_stdin.as_fd(), agent_stdout.as_fd(), agent_stderr.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control_message = SendAncillaryBuffer::new(&mut space);
    control_message.push(SendAncillaryMessage::ScmRights(&theirs));
    sendmsg(&warm.helper_socket, &[IoSlice::new(b"!")], &mut control_message, SendFlags::empty())
        .map_err(|_| Failure { class: FailureClass::HelperDied, text: String::new() })?;
    drop((agent_stdin, agent_stdout, agent_stderr));
    wait_for_exec(warm)?;

    let run = Run {
        agent: warm.helper,
        control,
        stdout: Spool::new(our_stdout, stdout, order.spool_budget),
        stderr: Spool::new(our_stderr, stderr, order.spool_budget),
        feed: Feed::new(our_stdin, prompt, stdin, !order.keep_stdin_open),
        leftover_grace: Duration::from_millis(order.leftover_grace_ms),
        group: None,
    };
    Ok(run)
}

/// The helper's socket is close-on-exec: after "going" its end means that the agent runs.
fn wait_for_exec(warm: &Warm) -> Result<(), Failure> {
    let io = |error: io::Error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Failure {
            class: FailureClass::Timeout,
            text: format!("the program did not start within {} s", EXEC_LIMIT.as_secs()),
        },
        _ => Failure { class: FailureClass::HelperDied, text: String::new() },
    };
    warm.helper_socket.set_read_timeout(Some(EXEC_LIMIT)).map_err(io)?;
    let mut going = false;
    loop {
        match frame::read(&warm.helper_socket).map_err(io)? {
            Some((Kind::Going, _)) => going = true,
            Some((Kind::Failed, payload)) => {
                return Err(serde_json::from_slice(&payload).unwrap_or(Failure {
                    class: FailureClass::Other,
                    text: "the helper's report is garbled".into(),
                }));
            }
            None if going => return Ok(()),
            None | Some(_) => return Err(Failure { class: FailureClass::HelperDied, text: String::new() }),
        }
    }
}

fn create(dir: &RunDir, name: &str) -> io::Result<File> {
    File::options().append(true).create_new(true).mode(0o600).open(dir.file(name))
}

/// Open for reading and writing: there is always a reader for the daemon and never an end of input.
fn fifo(dir: &RunDir, name: &str) -> io::Result<File> {
    let path = dir.file(name);
    nix::unistd::mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR)?;
    let file = File::options().read(true).write(true).open(path)?;
    rustix::io::ioctl_fionbio(&file, true)?;
    Ok(file)
}

fn status(warm: &Warm, order: &LaunchOrder, group: Option<&Group>) -> Status {
    Status {
        version: crate::supervise::record::VERSION,
        task: order.task.clone(),
        attempt: order.attempt,
        supervisor: identity(rustix::process::getpid()),
        agent: identity(warm.helper),
        boot_id: boot_id(),
        marker: order.marker.clone(),
        spool_budget: order.spool_budget,
        cgroup: group.map(|group| group.path().to_owned()),
    }
}

fn identity(pid: rustix::process::Pid) -> Identity {
    Identity::of(pid.as_raw_nonzero().get())
}
