//! Pairs, and the preparation that may hang. What the helper does with a job is not of interest here.

use crate::bench::{Bench, LIMIT, exists, listen, pids, signal, stat, until};
use longshore_io_tokio::supervise::{Launcher, Pair, PrepareError};
use rustix::process::Signal;
use std::future::pending;
use std::time::{Duration, Instant};

/// A helper that hangs: stopped, it reads and writes nothing, and only a kill reaches it.
async fn hang(pair: &Pair) {
    let helper = pair.helper_pid();
    signal(helper, Signal::STOP);
    until("the helper is stopped", || stat(helper).is_some_and(|fields| fields[0] == "T")).await;
}

#[tokio::test]
async fn a_pair_prepares_and_its_helper_becomes_the_agent() {
    let bench = Bench::new();
    let pair = bench.launcher.take().await.expect("a pair");
    let helper = pair.helper_pid();
    let (_reply, ready) = pair.prepare(b"{}", LIMIT, pending()).await.expect("a reply");
    let mut run = ready.launch(bench.shell("echo $$")).await.expect("launched");
    assert_eq!(listen(&mut run).await.stdout, format!("{helper}\n").as_bytes());
}

#[tokio::test]
async fn inv_iso_7_after_a_deadline_nothing_of_the_preparation_is_left_and_a_retry_works() {
    let bench = Bench::new();
    let pair = bench.launcher.take().await.expect("a pair");
    hang(&pair).await;
    let (helper, supervisor) = (pair.helper_pid(), pair.supervisor_pid());
    let started = Instant::now();
    let deadline = Duration::from_millis(300);
    let error = pair.prepare(&vec![b'x'; 5_000_000], deadline, pending()).await.err().expect("a deadline");
    let left = (exists(helper), exists(supervisor));
    assert!(matches!(error, PrepareError::Deadline { after } if after == deadline), "{error}");
    assert!(error.to_string().contains("deadline exceeded"));
    assert_eq!(left, (false, false));
    assert!(started.elapsed() >= deadline && started.elapsed() < Duration::from_secs(2), "{started:?}");

    let pair = bench.launcher.take().await.expect("a pair");
    let (_reply, ready) = pair.prepare(b"{}", LIMIT, pending()).await.expect("a reply");
    ready.discard().await.expect("ended");
}

#[tokio::test]
async fn a_cancel_ends_a_preparation_in_the_same_way() {
    let bench = Bench::new();
    let pair = bench.launcher.take().await.expect("a pair");
    hang(&pair).await;
    let (helper, supervisor) = (pair.helper_pid(), pair.supervisor_pid());
    let cancel = tokio::time::sleep(Duration::from_millis(20));
    let error = pair.prepare(b"{}", LIMIT, cancel).await.err().expect("a cancel");
    assert!(matches!(error, PrepareError::Cancelled), "{error}");
    assert_eq!((exists(helper), exists(supervisor)), (false, false));
}

#[tokio::test]
async fn inv_iso_4_a_helper_that_dies_is_told_with_its_status() {
    let bench = Bench::new();
    let pair = bench.launcher.take().await.expect("a pair");
    hang(&pair).await;
    let (helper, supervisor) = (pair.helper_pid(), pair.supervisor_pid());
    let (outcome, ()) = tokio::join!(pair.prepare(b"{}", LIMIT, pending()), async {
        signal(helper, Signal::KILL);
    });
    match outcome.err().expect("a death") {
        PrepareError::HelperDied(exit) => assert_eq!((exit.code, exit.signal), (None, Some(9))),
        other => panic!("{other}"),
    }
    assert_eq!((exists(helper), exists(supervisor)), (false, false));
}

#[tokio::test]
async fn a_supervisor_that_dies_is_told_and_its_helper_dies_with_it() {
    let bench = Bench::new();
    let pair = bench.launcher.take().await.expect("a pair");
    hang(&pair).await;
    let (helper, supervisor) = (pair.helper_pid(), pair.supervisor_pid());
    let (outcome, ()) = tokio::join!(pair.prepare(b"{}", LIMIT, pending()), async {
        signal(supervisor, Signal::KILL);
    });
    let error = outcome.err().expect("a death");
    assert!(matches!(error, PrepareError::SupervisorFailed(_)), "{error}");
    until("the helper is gone", || !exists(helper)).await;
}

#[tokio::test]
async fn a_pair_that_is_dropped_ends_by_itself() {
    let bench = Bench::new();
    let pair = bench.launcher.take().await.expect("a pair");
    let pids = [pair.helper_pid(), pair.supervisor_pid()];
    drop(pair);
    until("both are gone", || pids.iter().all(|pid| !exists(*pid))).await;
}

#[tokio::test]
async fn a_spare_is_taken_replaced_and_ended_at_close() {
    let bench = Bench::new();
    bench.launcher.warm();
    until("there is a spare", || bench.launcher.spares().len() == 1).await;
    let pair = bench.launcher.take().await.expect("a pair");
    assert!(bench.launcher.spares().is_empty(), "the spare was not taken");
    until("there is a new spare", || bench.launcher.spares().len() == 1).await;
    bench.launcher.close().await;
    assert!(bench.launcher.spares().is_empty());
    pair.skip_preparation().discard().await.expect("a pair that was taken is not touched by close");
}

#[tokio::test]
async fn close_waits_for_a_spare_that_is_just_being_started() {
    // A program of its own name, so that its processes can be told from those of other tests.
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let program = dir.path().canonicalize().expect("a real path").join("program");
    std::fs::hard_link(env!("CARGO_BIN_EXE_longshore-under-test"), &program).expect("a link");
    let ours = || {
        let runs = |pid: &i32| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program);
        pids().into_iter().filter(runs).count()
    };
    let launcher = Launcher::with_executable(&program, dir.path().join("runs"), 1);
    launcher.warm();
    until("its first process is there", || ours() > 0).await;
    launcher.close().await;
    assert_eq!(ours(), 0);
}

#[tokio::test]
async fn a_spare_that_died_is_not_given_out() {
    let bench = Bench::new();
    bench.launcher.warm();
    until("there is a spare", || bench.launcher.spares().len() == 1).await;
    let doomed = bench.launcher.spares().pop().expect("a spare");
    signal(doomed, Signal::KILL);
    until("it is dead", || stat(doomed).is_none_or(|fields| fields[0] == "Z")).await;
    let next = bench.launcher.take().await.expect("a pair");
    assert_ne!(next.supervisor_pid(), doomed);
    let (_reply, ready) = next.prepare(b"{}", LIMIT, pending()).await.expect("a living pair");
    ready.discard().await.expect("ended");
    bench.launcher.close().await;
}
