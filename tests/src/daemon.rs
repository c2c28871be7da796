//! The binary under test as a daemon in the foreground.

use crate::home::Home;
use crate::processes::{ignores, signal, wait_for_end};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The most time that the end of a daemon is waited for; one that is told to end gives its tasks 30 s.
const END: Duration = Duration::from_secs(45);

/// A running daemon. Dropped, it is killed.
#[derive(Debug)]
pub struct DaemonUnderTest {
    id: i32,
    child: Mutex<Child>,
    log: PathBuf,
}

/// How a daemon ended.
#[derive(Debug)]
pub struct Ended {
    /// Its exit.
    pub status: ExitStatus,
    /// All that it wrote to standard output and standard error.
    pub log: String,
}

impl DaemonUnderTest {
    pub(crate) fn start(home: &Home) -> Self {
        let log = home.dir().join("daemon.log");
        let out = File::options().create(true).append(true).open(&log).expect("a log file");
        let err = out.try_clone().expect("a second handle");
        let child = home
            .command(&["daemon", "start", "--foreground"])
            .args(home.flags())
            .stdout(out)
            .stderr(err)
            .spawn()
            .expect("the binary under test starts");
        let id = i32::try_from(child.id()).expect("process ids are small");
        Self { id, child: Mutex::new(child), log }
    }

    /// Its process id.
    pub const fn id(&self) -> i32 {
        self.id
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it wrote so far.
    pub fn log(&self) -> String {
        fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        signal(self.id(), Signal::TERM);
    }

    /// Stops all of its threads where they are.
    pub async fn freeze(&self) {
        signal(self.id(), Signal::STOP);
        let id = Pid::from_raw(self.id()).expect("a process id");
        // A process is said to have stopped when its last thread has.
        let stopped = move || waitid(WaitId::Pid(id), WaitIdOptions::STOPPED);
        let stopped = tokio::task::spawn_blocking(stopped).await.expect("no panic");
        assert!(
            stopped.is_ok_and(|status| status.is_some_and(|status| status.stopped())),
            "it does not stop"
        );
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.child().try_wait().expect("a child of ours").is_some()
    }

    /// The most memory that it has had so far, in bytes.
    pub fn peak_memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id())).expect("it runs");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
        peak.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
    }

    /// Kills it, and waits until it is gone. What it started is not touched.
    pub async fn kill(&self) {
        signal(self.id(), Signal::KILL);
        self.ended().await;
    }

    /// Sends SIGINT, as Ctrl-C does.
    pub fn interrupt(&self) {
        signal(self.id(), Signal::INT);
    }

    /// Sends SIGHUP, as a terminal that is closed does.
    pub fn hang_up(&self) {
        signal(self.id(), Signal::HUP);
    }

    /// Whether it was started with SIGHUP ignored, as under `nohup`.
    pub fn ignores_hang_up(&self) -> bool {
        self.ignores(Signal::HUP)
    }

    /// Whether it was started with this signal ignored, as a script does for SIGINT of what it starts in the background.
    pub fn ignores(&self, signal: Signal) -> bool {
        ignores(&self.id().to_string(), signal)
    }

    /// Waits until it has ended.
    pub async fn ended(&self) -> Ended {
        assert!(wait_for_end(self.id(), END).await, "the daemon did not end within {END:?}:\n{}", self.log());
        let status = self.child().wait().expect("a child that has ended");
        Ended { status, log: self.log() }
    }

    /// Ends it with SIGTERM, and waits until it has ended.
    pub async fn stop(&self) -> Ended {
        self.terminate();
        self.ended().await
    }
}

impl Drop for DaemonUnderTest {
    fn drop(&mut self) {
        // One that has ended and was waited for takes neither.
        let mut child = self.child();
        let _ = child.kill();
        let _ = child.wait();
    }
}
