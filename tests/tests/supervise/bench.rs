//! What every test of the process layer needs: a launcher in a directory of its own, agents as shell texts, and
//! ways to ask the system which processes are there.

use longshore_io_tokio::supervise::record::{ExitRecord, MARKER_VARIABLE, RunDir};
use longshore_io_tokio::supervise::{LaunchError, LaunchSpec, Launcher, Run, RunEvent};
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// No test waits longer for anything.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// A launcher with its directories.
pub(crate) struct Bench {
    pub(crate) dir: TempDir,
    pub(crate) launcher: Launcher,
}

/// All that a run said.
pub(crate) struct Said {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) record: ExitRecord,
    /// From the end of the reading of the last output to the end of the run.
    pub(crate) took: Duration,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let launcher = launcher(&dir.path().join("runs"));
        Self { dir, launcher }
    }

    /// An agent that is a shell text.
    pub(crate) fn shell(&self, text: &str) -> LaunchSpec {
        let mut spec = self.program("/bin/sh");
        spec.args = vec!["-c".into(), text.into()];
        spec
    }

    pub(crate) fn program(&self, program: impl AsRef<Path>) -> LaunchSpec {
        let mut spec = LaunchSpec::new("task", 1, program.as_ref(), self.dir.path());
        spec.env = vec![("PATH".into(), std::env::var_os("PATH").unwrap_or_default())];
        spec
    }

    pub(crate) async fn launch(&self, spec: LaunchSpec) -> Run {
        self.try_launch(spec).await.expect("launched")
    }

    pub(crate) async fn try_launch(&self, spec: LaunchSpec) -> Result<Run, LaunchError> {
        self.launcher.take().await.expect("a pair").skip_preparation().launch(spec).await
    }
}

pub(crate) fn launcher(runs: &Path) -> Launcher {
    Launcher::with_executable(env!("CARGO_BIN_EXE_longshore-under-test"), runs, 1)
}

/// Reads a run to its end.
pub(crate) async fn listen(run: &mut Run) -> Said {
    let started = Instant::now();
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let record = loop {
        match tokio::time::timeout(LIMIT, run.next()).await.expect("the run goes on") {
            RunEvent::Stdout(bytes) => stdout.extend_from_slice(&bytes),
            RunEvent::Stderr(bytes) => stderr.extend_from_slice(&bytes),
            RunEvent::Ended(record) => break record,
        }
    };
    assert_eq!(record.lost_output, 0);
    assert!(record.unkilled.is_empty());
    Said { stdout, stderr, record, took: started.elapsed() }
}

/// Reads stdout until it holds `text`.
pub(crate) async fn listen_for(run: &mut Run, text: &str) -> String {
    let mut heard = String::new();
    while !heard.contains(text) {
        match tokio::time::timeout(LIMIT, run.next()).await.expect("the run goes on") {
            RunEvent::Stdout(bytes) => heard.push_str(&String::from_utf8_lossy(&bytes)),
            RunEvent::Stderr(bytes) => panic!("on stderr: {}", String::from_utf8_lossy(&bytes)),
            RunEvent::Ended(record) => panic!("ended before {text:?}: {record:?}"),
        }
    }
    heard
}

/// The fields of `/proc/<pid>/stat` from the state on; `None` when there is no such process.
pub(crate) fn stat(pid: i32) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(text.rsplit_once(") ")?.1.split(' ').map(str::to_owned).collect())
}

/// Whether the process is there, also as a zombie.
pub(crate) fn exists(pid: i32) -> bool {
    stat(pid).is_some()
}

pub(crate) fn pids() -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").expect("Linux").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The processes that carry the mark of a run.
pub(crate) fn of_run(dir: &RunDir) -> Vec<i32> {
    let mark = format!("{MARKER_VARIABLE}={}", dir.status().expect("a status").marker);
    let marked = |pid: &i32| {
        std::fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|text| text.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes()))
    };
    pids().into_iter().filter(marked).collect()
}

/// Waits until something is so. Only for what the system tells nobody about.
pub(crate) async fn until(what: &str, mut so: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !so() {
        assert!(Instant::now() < end, "not so after {LIMIT:?}: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

pub(crate) fn signal(pid: i32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid).expect("a process id");
    rustix::process::kill_process(pid, signal).expect("our process");
}

/// What `seq 1 UPTO` writes.
pub(crate) fn seq(upto: u32) -> String {
    (1..=upto).fold(String::new(), |text, n| text + &n.to_string() + "\n")
}

/// The living processes that work in a directory or below it, whatever their environment says.
pub(crate) fn inhabitants(dir: &Path) -> Vec<(i32, String)> {
    let lives_here =
        |pid: &i32| std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(dir));
    let name = |pid: i32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    pids().into_iter().filter(lives_here).map(|pid| (pid, name(pid))).collect()
}

/// Changes one value in a file of a run directory.
pub(crate) fn edit(dir: &RunDir, file: &str, change: impl FnOnce(&mut serde_json::Value)) {
    let path = dir.file(file);
    let mut value = serde_json::from_slice(&std::fs::read(&path).expect("there")).expect("JSON");
    change(&mut value);
    std::fs::write(path, value.to_string()).expect("written");
}
