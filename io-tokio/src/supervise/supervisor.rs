//! The supervisor: a small process between the daemon and one agent, which outlives the daemon.
//!
//! Plain blocking code around `poll`; it holds no job, no argument and no secret. Before the launch it belongs to
//! the daemon: when its control socket ends, it kills the helper and goes. After the launch it belongs to the run
//! directory, and nothing but the end of the run (or a signal to itself) ends it.

mod feed;
mod launch;
mod run;
mod spool;

use super::frame::{self, Kind};
use super::protocol::{self, Answer, HelperExit, LaunchOrder, Order};
use super::tree::{self, Children, Ending};
use crate::ignored::is_ignored;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Pid;
use signal_hook::consts::{SIGCHLD, SIGINT, SIGTERM};
use std::fs::File;
use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How much of the helper's stderr is kept, in bytes.
const STDERR_TAIL: usize = 8 * 1024;

/// Runs `longshore supervise`: stdin is the control socket to the daemon, stdout the one that the helper speaks on.
///
/// The exit code says nothing about the run: that is in the run directory.
pub fn main() -> ExitCode {
    match supervise() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("longshore supervise: {error}");
            ExitCode::FAILURE
        }
    }
}

fn supervise() -> io::Result<()> {
    close_inherited_descriptors();
    nix::sys::signal::SigSet::empty().thread_set_mask()?;
    // Fails for a group leader, which one is only when started by hand.
    let _ = rustix::process::setsid();
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let signals = Signals::register()?;
    let mut warm = Warm::start(signals)?;
    name_this_process("longshore-supe");
    match warm.wait()? {
        Some(order) => launch::launch(warm, &order),
        None => Ok(()),
    }
}

/// A run outlives the daemon, so it must not hold what the daemon was started with (a lock, a pipe that somebody reads
/// to its end). What longshore opens itself is close-on-exec; this is for what came from outside.
fn close_inherited_descriptors() {
    let Ok(entries) = std::fs::read_dir("/dev/fd") else { return };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    // Collected first: the listing has a descriptor of its own, which is closed by then.
    let numbers: Vec<i32> = names.filter(|number| *number > 2).collect();
    for number in numbers {
        let _ = nix::unistd::close(number);
    }
}

/// What `ps` and `/proc/<pid>/comm` show; without it they show the name of a link in `/proc`.
pub(super) fn name_this_process(name: &str) {
    // Cosmetic, and there is no such file on other systems.
    let _ = std::fs::write("/proc/self/comm", name);
}

/// Signals as bytes on a socket. Nothing is blocked and handlers end at an exec, so no child inherits anything.
struct Signals {
    woken: UnixStream,
    stop: Arc<AtomicBool>,
}

impl Signals {
    fn register() -> io::Result<Self> {
        let (woken, wake) = UnixStream::pair()?;
        woken.set_nonblocking(true)?;
        let stop = Arc::new(AtomicBool::new(false));
        let wanted = |signal: &i32| *signal == SIGTERM || !is_ignored(*signal);
        for signal in [SIGTERM, SIGINT].into_iter().filter(wanted) {
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
            signal_hook::low_level::pipe::register(signal, wake.try_clone()?)?;
        }
        signal_hook::low_level::pipe::register(SIGCHLD, wake)?;
        Ok(Self { woken, stop })
    }

    /// Empties the socket; true when somebody asked this process to stop.
    fn take(&mut self) -> bool {
        let mut bytes = [0; 64];
        while matches!(self.woken.read(&mut bytes), Ok(1..)) {}
        self.stop.swap(false, Ordering::Relaxed)
    }
}

/// A supervisor that was given no run yet.
struct Warm {
    signals: Signals,
    /// The daemon, for as long as it is our parent.
    parent: Option<Pid>,
    daemon: UnixStream,
    helper: Pid,
    /// To the helper: descriptors, and the result of the exec.
    helper_socket: UnixStream,
    helper_stderr: Option<PipeReader>,
    stderr_tail: Vec<u8>,
}

impl Warm {
    fn start(signals: Signals) -> io::Result<Self> {
        let daemon = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        let preparation = io::stdout().as_fd().try_clone_to_owned()?;
        let null = File::options().read(true).write(true).open("/dev/null")?;
        // Only the helper may hold the preparation socket: its end tells the daemon that the helper is gone.
        nix::unistd::dup2_stdin(&null)?;
        nix::unistd::dup2_stdout(&null)?;
        let (helper_socket, socket_of_helper) = UnixStream::pair()?;
        let (helper_stderr, stderr_of_helper) = io::pipe()?;
        rustix::io::ioctl_fionbio(&helper_stderr, true)?;
        let child = Command::new(own_executable()?)
            .arg0("longshore")
            .arg("helper")
            .arg(std::process::id().to_string())
            .stdin(Stdio::from(preparation))
            .stdout(Stdio::from(OwnedFd::from(socket_of_helper)))
            .stderr(Stdio::from(stderr_of_helper))
            .spawn()?;
        let helper = Pid::from_child(&child);
        let warm = Self {
            signals,
            parent: rustix::process::getppid(),
            daemon,
            helper,
            helper_socket,
            helper_stderr: Some(helper_stderr),
            stderr_tail: Vec::new(),
        };
        // Nothing must hold the file system that the daemon was started on.
        std::env::set_current_dir("/")?;
        warm.answer(&Answer::Ready { version: protocol::VERSION, helper: helper.as_raw_nonzero().get() });
        Ok(warm)
    }

    /// Serves until there is a run to launch; `None` when there will be none and all is cleaned up.
    fn wait(&mut self) -> io::Result<Option<LaunchOrder>> {
        loop {
            let (signalled, ordered) = self.poll()?;
            if signalled {
                if self.signals.take() {
                    self.abort();
                    return Ok(None);
                }
                if tree::reap_all_but(self.helper) == Children::LeaderEnded {
                    self.helper_died();
                    return Ok(None);
                }
            }
            if ordered {
                match self.order() {
                    Some(Order::Launch(order)) => return Ok(Some(order)),
                    Some(Order::Abort) => {
                        let left = self.abort();
                        self.answer(&Answer::Aborted { left });
                        return Ok(None);
                    }
                    None => {
                        self.abort();
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Waits for a signal or an order, and collects the helper's stderr meanwhile.
    fn poll(&mut self) -> io::Result<(bool, bool)> {
        let mut fds =
            vec![PollFd::new(&self.signals.woken, PollFlags::IN), PollFd::new(&self.daemon, PollFlags::IN)];
        if let Some(stderr) = &self.helper_stderr {
            fds.push(PollFd::new(stderr, PollFlags::IN));
        }
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        if ready.get(2) == Some(&true) {
            self.read_stderr();
        }
        Ok((ready.first() == Some(&true), ready.get(1) == Some(&true)))
    }

    /// The next order; `None` when the daemon is gone or does not speak our language.
    fn order(&self) -> Option<Order> {
        match frame::read(&self.daemon) {
            Ok(Some((Kind::Message, payload))) => serde_json::from_slice(&payload).ok(),
            _ => None,
        }
    }

    fn answer(&self, answer: &Answer) {
        if let Ok(payload) = serde_json::to_vec(answer) {
            // A daemon that is gone needs no answer.
            let _ = frame::write(&self.daemon, Kind::Message, &payload);
        }
    }

    fn read_stderr(&mut self) {
        let mut bytes = [0; 4096];
        while let Some(pipe) = &mut self.helper_stderr {
            match pipe.read(&mut bytes) {
                Ok(0) => self.helper_stderr = None,
                Ok(count) => {
                    self.stderr_tail.extend_from_slice(bytes.get(..count).unwrap_or_default());
                    let over = self.stderr_tail.len().saturating_sub(STDERR_TAIL);
                    self.stderr_tail.drain(..over);
                }
                Err(_) => return,
            }
        }
    }

    /// Kills the helper and everything that it started.
    fn abort(&mut self) -> Vec<super::record::Process> {
        tree::kill_all(Some(self.helper), &self.signals.woken, || {}).left
    }

    fn helper_exit(&mut self) -> HelperExit {
        let ending = tree::kill_all(Some(self.helper), &self.signals.woken, || {}).ending;
        self.read_stderr();
        let Ending { code, signal } = ending.unwrap_or_default();
        HelperExit { code, signal, stderr: String::from_utf8_lossy(&self.stderr_tail).into_owned() }
    }

    fn helper_died(&mut self) {
        let exit = self.helper_exit();
        self.answer(&Answer::HelperDied(exit));
    }
}

/// Our own program, also after the file was replaced by a newer one.
fn own_executable() -> io::Result<std::path::PathBuf> {
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() }
}
