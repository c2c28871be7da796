//! A run outlives its daemon, and another daemon takes it over.

use crate::bench::{
    Bench, LIMIT, edit, exists, launcher, listen, listen_for, of_run, pids, seq, signal, stat, until,
};
use longshore_io_tokio::supervise::record::{EndedBy, RunDir};
use longshore_io_tokio::supervise::{AttachError, Credit, LaunchSpec, Position};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const RUNS: &str = "LONGSHORE_TEST_RUNS";

/// The daemon of the next test, in a process of its own. Does nothing unless that test starts it.
#[test]
#[ignore = "the other half of a_run_and_no_spare_survives_the_kill_of_its_daemon"]
fn daemon_that_will_be_killed() {
    let Some(runs) = std::env::var_os(RUNS).map(PathBuf::from) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let launcher = launcher(&runs);
        launcher.warm();
        until("there is a spare", || launcher.spares().len() == 1).await;
        let pair = launcher.take().await.expect("a pair");
        until("there is a spare", || launcher.spares().len() == 1).await;
        let mut spec = LaunchSpec::new("task", 1, "/bin/sh", "/");
        let text = "echo one; while read line; do echo \"$line\"; done; echo two; sleep 600 & exit 5";
        spec.args = vec!["-c".into(), text.into()];
        spec.env = vec![("PATH".into(), std::env::var_os("PATH").unwrap_or_default())];
        spec.keep_stdin_open = true;
        spec.credit = Credit::Explicit;
        let mut run = pair.skip_preparation().launch(spec).await.expect("launched");
        listen_for(&mut run, "one\n").await;
        println!("\nlaunched");
        std::future::pending::<()>().await;
    });
}

fn children_of(parent: i32) -> Vec<i32> {
    let parent = parent.to_string();
    pids().into_iter().filter(|pid| stat(*pid).is_some_and(|fields| fields[1] == parent)).collect()
}

/// A run whose daemon, a process of its own, was killed; with the supervisors that this had.
fn killed_daemon(runs: &Path) -> (RunDir, Vec<i32>) {
    let mut daemon = Command::new(std::env::current_exe().expect("this test"))
        .args(["--ignored", "--exact", "--nocapture", "daemon::daemon_that_will_be_killed"])
        .env(RUNS, runs)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let lines = BufReader::new(daemon.stdout.take().expect("a pipe")).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "launched"), "the daemon did not launch");
    let supervisors = children_of(i32::try_from(daemon.id()).expect("a pid"));
    daemon.kill().expect("our child");
    daemon.wait().expect("our child");
    (RunDir::new(runs.join("task-1")), supervisors)
}

#[tokio::test]
async fn a_run_and_no_spare_survives_the_kill_of_its_daemon() {
    let bench = Bench::new();
    let (dir, supervisors) = killed_daemon(&bench.dir.path().join("runs"));
    assert_eq!(supervisors.len(), 2, "the run's and the spare's");

    let status = dir.status().expect("a status");
    for pid in supervisors.into_iter().filter(|pid| *pid != status.supervisor.pid) {
        until("the spare is gone", || !exists(pid)).await;
    }
    assert!(exists(status.agent.pid), "the agent died with the daemon");

    let from = Position { stdout: 2, stderr: 0 };
    let mut run = bench.launcher.attach(dir.path(), from, Credit::Explicit).await.expect("attached");
    assert_eq!(run.pid(), Some(status.agent.pid));
    assert_eq!(listen_for(&mut run, "e\n").await, "e\n", "read from the position");
    run.write_stdin(b"hello again\n").expect("taken");
    listen_for(&mut run, "hello again\n").await;
    run.close_stdin();
    let said = listen(&mut run).await;
    assert_eq!(said.stdout, b"two\n");
    assert_eq!((said.record.ended_by, said.record.code), (EndedBy::Itself, Some(5)));
    assert!(of_run(&dir).is_empty());
}

/// A run without a daemon: its launcher's whole runtime is gone.
pub(crate) fn abandoned(dir: &Path, text: &str) -> RunDir {
    let mut spec = LaunchSpec::new("task", 1, "/bin/sh", dir);
    spec.args = vec!["-c".into(), text.into()];
    spec.env = vec![("PATH".into(), std::env::var_os("PATH").unwrap_or_default())];
    let runs = dir.join("runs");
    let daemon = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let pair = launcher(&runs).take().await.expect("a pair");
            pair.skip_preparation().launch(spec).await.expect("launched").dir().clone()
        })
    });
    daemon.join().expect("no panic")
}

#[tokio::test]
async fn a_run_that_ended_without_a_daemon_is_told_in_full() {
    let bench = Bench::new();
    let dir = abandoned(bench.dir.path(), "seq 1 50000; exit 4");
    until("it has ended", || dir.exit().expect("readable").is_some()).await;
    let mut run =
        bench.launcher.attach(dir.path(), Position::default(), Credit::Explicit).await.expect("attached");
    let said = listen(&mut run).await;
    let expected = seq(50_000);
    assert!(said.stdout == expected.as_bytes());
    assert_eq!(said.record.code, Some(4));
}

#[tokio::test]
async fn an_attached_run_can_be_ended_and_killed() {
    let bench = Bench::new();
    let dir =
        abandoned(bench.dir.path(), "trap 'exit 9' TERM; echo up; while :; do sleep 600 & wait $!; done");
    let mut run =
        bench.launcher.attach(dir.path(), Position::default(), Credit::OnRead).await.expect("attached");
    listen_for(&mut run, "up").await;
    run.end(LIMIT);
    let said = listen(&mut run).await;
    assert_eq!((said.record.ended_by, said.record.code), (EndedBy::Cancel, Some(9)));
    assert!(said.took < Duration::from_secs(2), "{:?}", said.took);
}

#[tokio::test]
async fn a_run_whose_supervisor_died_without_a_daemon_is_cleaned_up_and_told() {
    let bench = Bench::new();
    let dir = abandoned(bench.dir.path(), "(setsid sleep 600 &); echo up; while :; do sleep 600; done");
    let mut run =
        bench.launcher.attach(dir.path(), Position::default(), Credit::OnRead).await.expect("attached");
    listen_for(&mut run, "up").await;
    signal(dir.status().expect("a status").supervisor.pid, Signal::KILL);
    let record = listen(&mut run).await.record;
    assert_eq!(record.ended_by, EndedBy::SupervisorLost);
    assert!(of_run(&dir).is_empty());
}

#[tokio::test]
async fn a_directory_that_is_no_run_is_refused_with_its_path() {
    let bench = Bench::new();
    std::fs::write(bench.dir.path().join("notes"), "mine").expect("written");
    let error = bench.launcher.attach(bench.dir.path(), Position::default(), Credit::OnRead).await.err();
    let error = error.expect("nothing was launched here");
    assert!(matches!(error, AttachError::NoRun { .. }));
    assert!(error.to_string().contains(bench.dir.path().to_str().expect("text")), "{error}");
}

#[tokio::test]
async fn runs_that_a_daemon_left_are_ended_and_their_directories_removed() {
    let bench = Bench::new();
    let mut mine = bench.launch(bench.shell("echo up; exec sleep 600")).await;
    listen_for(&mut mine, "up").await;
    let dir = mine.dir().clone();
    let runs = launcher(&bench.dir.path().join("runs"));
    assert_eq!(runs.end_strays(&BTreeSet::new()).await, 0, "this process lives");
    edit(&dir, "owner.json", |owner| owner["daemon"]["started"] = 1.into());
    assert_eq!(runs.end_strays(&BTreeSet::from([dir.path().to_owned()])).await, 0, "it is to be kept");
    assert_eq!(runs.end_strays(&BTreeSet::new()).await, 1);
    assert!(!dir.path().exists());
    assert_eq!(runs.end_strays(&BTreeSet::new()).await, 0);
    let said = listen(&mut mine).await;
    assert!(!said.record.success(), "{:?}", said.record);
}

#[tokio::test]
async fn a_run_whose_daemon_and_supervisor_were_killed_is_cleaned_up_and_told_within_five_seconds() {
    let bench = Bench::new();
    let (dir, _) = killed_daemon(&bench.dir.path().join("runs"));
    let status = dir.status().expect("a status");
    signal(status.supervisor.pid, Signal::KILL);
    let started = Instant::now();
    let attached = bench.launcher.attach(dir.path(), Position::default(), Credit::Explicit);
    let said = listen(&mut attached.await.expect("attached")).await;
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    assert_eq!(
        (said.stdout.as_slice(), said.record.ended_by),
        (b"one\n".as_slice(), EndedBy::SupervisorLost)
    );
    assert!(of_run(&dir).is_empty());
    until("the agent is gone", || !exists(status.agent.pid)).await;
}
