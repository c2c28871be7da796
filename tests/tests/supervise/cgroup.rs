//! Runs in a control group of their own, where this machine lets us make one.

use crate::bench::{Bench, exists, inhabitants, listen, listen_for, signal, until};
use crate::escapees::wrapper;
use longshore_io_tokio::supervise::Launcher;
use longshore_io_tokio::supervise::record::EndedBy;
use rustix::fs::{XattrFlags, setxattr};
use rustix::process::Signal;
use std::fs;
use std::path::{Path, PathBuf};

/// A control group that is given to the supervisors of one test.
struct Delegated(PathBuf);

impl Delegated {
    fn new(name: &str) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "))?.split(' ').nth(4)?;
        let path = Path::new(mount).join(format!("longshore-test-{name}-{}", std::process::id()));
        fs::create_dir(&path).ok()?;
        let made = Self(path);
        setxattr(&made.0, "trusted.delegate", b"1", XattrFlags::empty()).ok()?;
        made.0.join("cgroup.kill").exists().then_some(made)
    }

    fn launcher(&self, bench: &Bench) -> Launcher {
        let into = format!("echo $$ >'{}' || exit 1\nexec", self.0.join("cgroup.procs").display());
        Launcher::with_executable(wrapper(bench.dir.path(), &into), bench.dir.path().join("runs"), 0)
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        // Only what is empty can be removed.
        let _ = fs::remove_dir(&self.0);
    }
}

macro_rules! delegated {
    ($name:literal) => {
        match Delegated::new($name) {
            Some(delegated) => delegated,
            None => {
                eprintln!("skipped: this machine does not let us make control groups");
                return;
            }
        }
    };
}

#[tokio::test]
async fn a_run_is_in_a_group_of_its_own_and_ends_with_it() {
    let delegated = delegated!("end");
    let bench = Bench::new();
    let launcher = delegated.launcher(&bench);
    let text = "trap '' TERM; setsid sh -c 'trap \"\" TERM; while :; do sleep 600 & sleep 0.01; done' &
        echo done; read line; while :; do sleep 600; done";
    let ready = launcher.take().await.expect("a pair").skip_preparation();
    let mut run = ready.launch(bench.shell(text)).await.expect("launched");
    listen_for(&mut run, "done").await;
    let status = run.dir().status().expect("a status");
    let group = status.cgroup.expect("a group");
    let of = |pid: i32| fs::read_to_string(format!("/proc/{pid}/cgroup")).expect("it runs");
    let name = group.file_name().expect("a name").to_str().expect("text").to_owned();
    assert!(of(status.agent.pid).contains(&name), "{}", of(status.agent.pid));
    assert!(!of(status.supervisor.pid).contains(&name), "it would kill itself");
    run.kill();
    let record = listen(&mut run).await.record;
    assert_eq!((record.ended_by, record.signal), (EndedBy::Kill, Some(9)));
    assert!(!group.exists(), "the group is left");
    assert!(inhabitants(bench.dir.path()).is_empty());
}

#[tokio::test]
async fn what_a_killed_supervisor_leaves_is_found_by_the_group_also_without_the_mark() {
    let delegated = delegated!("lost");
    let bench = Bench::new();
    let launcher = delegated.launcher(&bench);
    let text = "(env -i setsid sh -c 'trap \"\" TERM; echo $$ >pid; while :; do sleep 600; done' &)
        while ! [ -s pid ]; do sleep 0.01; done; echo done; while :; do sleep 600; done";
    let ready = launcher.take().await.expect("a pair").skip_preparation();
    let mut run = ready.launch(bench.shell(text)).await.expect("launched");
    listen_for(&mut run, "done").await;
    let status = run.dir().status().expect("a status");
    let group = status.cgroup.expect("a group");
    let pid = fs::read_to_string(bench.dir.path().join("pid")).expect("written");
    let pid: i32 = pid.trim().parse().expect("a number");
    signal(status.supervisor.pid, Signal::KILL);
    let record = listen(&mut run).await.record;
    assert_eq!(record.ended_by, EndedBy::SupervisorLost);
    assert!(record.leftovers.iter().any(|process| process.pid == pid), "{record:?}");
    until("the escapee is gone", || !exists(pid)).await;
    assert!(!group.exists(), "the group is left");
}

#[tokio::test]
async fn without_a_group_that_was_given_to_us_there_is_none() {
    let bench = Bench::new();
    let mut run = bench.launch(bench.shell("echo done")).await;
    let status = run.dir().status().expect("a status");
    listen(&mut run).await;
    if rustix::process::geteuid().is_root() {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        if own.lines().any(|line| line == "0::/") {
            assert_eq!(status.cgroup, None, "the root group is nobody's to divide");
        }
    }
    assert!(status.cgroup.is_none_or(|group| !group.exists()));
}
