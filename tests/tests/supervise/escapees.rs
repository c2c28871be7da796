//! Descendants that do not want to end with their run.

use crate::bench::{Bench, exists, inhabitants, listen, listen_for, of_run};
use longshore_io_tokio::supervise::Run;
use longshore_io_tokio::supervise::record::{EndedBy, ExitRecord};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

const SETSID: &str = "setsid sleep 600 &";
const DOUBLE_FORK: &str = "(setsid sh -c '(sleep 600 &) ; exit 0' &)";
const FORKS: &str = "setsid sh -c 'trap \"\" TERM
    i=0; while [ $i -lt 200 ]; do sleep 600 & i=$((i+1)); done; : >forked
    while :; do sleep 600 & sleep 0.01; done' &
    while ! [ -e forked ]; do sleep 0.01; done";
/// Each one is gone before a look at all processes is over, and its successor is in yet another session.
const CHAIN: &str = "echo 'setsid sh chain & exit 0' >chain; sh chain";
const HOLDS_OUTPUT: &str = "(trap '' TERM; while :; do sleep 0.05; echo noise; done) &";
const IGNORES_ALL: &str =
    "sh -c 'trap \"\" TERM INT HUP QUIT USR1 USR2 PIPE ALRM CONT TSTP TTIN TTOU XCPU ABRT
    : >deaf; while :; do sleep 600; done' & while ! [ -e deaf ]; do sleep 0.01; done";
const STOPS_ITSELF: &str = "sh -c 'kill -STOP $$; sleep 600' & setsid sh -c 'kill -STOP $$; sleep 600' &";
const OTHER_MARKER: &str = "LONGSHORE_RUN=other setsid sh -c 'sleep 600; :' & env -i setsid sleep 600 &";

/// Reads the run to its end, of which nothing must be left.
async fn end_of(bench: &Bench, run: &mut Run) -> ExitRecord {
    let started = Instant::now();
    let record = listen(run).await.record;
    let took = started.elapsed();
    // Some are never in the directory of the run alone, so each way of looking is taken.
    assert!(inhabitants(bench.dir.path()).is_empty(), "{:?}", inhabitants(bench.dir.path()));
    assert!(of_run(run.dir()).is_empty());
    assert!(!exists(run.dir().status().expect("a status").supervisor.pid), "a zombie is left");
    assert!(took < Duration::from_secs(2), "{took:?}");
    record
}

/// The agent ends by itself, and leaves it behind.
async fn left_behind(escapee: &str) {
    let bench = Bench::new();
    let mut run = bench.launch(bench.shell(&format!("{escapee}\nsleep 0.05; echo done; exit 0"))).await;
    listen_for(&mut run, "done").await;
    let record = end_of(&bench, &mut run).await;
    assert!(record.success(), "{record:?}");
    assert!(!record.leftovers.is_empty(), "what was left is not named");
}

/// The agent is asked to end and does not want to, either.
async fn cancelled(escapee: &str) {
    let bench = Bench::new();
    let text = format!("trap '' TERM\n{escapee}\necho done; while :; do sleep 600; done");
    let mut run = bench.launch(bench.shell(&text)).await;
    listen_for(&mut run, "done").await;
    run.end(Duration::from_millis(300));
    let record = end_of(&bench, &mut run).await;
    assert_eq!((record.ended_by, record.signal), (EndedBy::Cancel, Some(9)));
}

macro_rules! escapees {
    ($($name:ident: $text:expr;)*) => {
        $(mod $name {
            #[tokio::test]
            async fn bug_15_is_ended_with_a_run_that_ends() {
                super::left_behind($text).await;
            }

            #[tokio::test]
            async fn bug_14_is_ended_with_a_run_that_is_cancelled() {
                super::cancelled($text).await;
            }
        })*
    };
}

escapees! {
    one_in_a_session_of_its_own: super::SETSID;
    one_that_forked_twice: super::DOUBLE_FORK;
    two_hundred_that_go_on_forking: super::FORKS;
    a_chain_of_sessions: super::CHAIN;
    one_that_holds_the_output: super::HOLDS_OUTPUT;
    one_that_ignores_every_signal: super::IGNORES_ALL;
    one_that_stops_itself: super::STOPS_ITSELF;
    one_without_the_mark: super::OTHER_MARKER;
}

/// A program that puts the supervisor where a test wants it.
pub(crate) fn wrapper(dir: &Path, before: &str) -> std::path::PathBuf {
    let path = dir.join("wrapper");
    let text = format!("#!/bin/sh\n{before} '{}' \"$@\"\n", env!("CARGO_BIN_EXE_longshore-under-test"));
    // Written by another process: a descriptor of ours, inherited by a fork of a test beside this one, makes the file busy.
    let written = std::process::Command::new("/bin/sh")
        .args(["-c", "printf '%s' \"$2\" >\"$1\" && chmod 755 \"$1\"", "sh"])
        .arg(&path)
        .arg(text)
        .status();
    assert!(written.expect("sh runs").success());
    assert_eq!(path.metadata().expect("there").permissions().mode() & 0o777, 0o755);
    path
}

#[tokio::test]
async fn everything_is_reaped_where_the_supervisor_is_the_first_process_of_a_container() {
    let into = ["--pid", "--fork", "--mount-proc"];
    let allowed = std::process::Command::new("unshare").args(into).arg("true").output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: this machine does not let us make process namespaces");
        return;
    }
    let bench = Bench::new();
    let exe = wrapper(bench.dir.path(), "exec unshare --pid --fork --mount-proc --");
    let inside =
        longshore_io_tokio::supervise::Launcher::with_executable(exe, bench.dir.path().join("inside"), 0);
    let text = format!(
        "{DOUBLE_FORK}\n{FORKS}\n{CHAIN}\n{IGNORES_ALL}\n
        i=0; while [ $i -lt 50 ]; do (sleep 0.01 &); i=$((i+1)); done; sleep 0.2
        cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z '; echo done; exit 0"
    );
    let ready = inside.take().await.expect("a pair").skip_preparation();
    let mut run = ready.launch(bench.shell(&text)).await.expect("launched");
    assert_eq!(run.dir().status().expect("a status").supervisor.pid, 1);
    let heard = listen_for(&mut run, "done").await;
    let record = listen(&mut run).await.record;
    assert!(record.success() && !record.leftovers.is_empty(), "{record:?}");
    assert!(of_run(run.dir()).is_empty());
    assert!(inhabitants(bench.dir.path()).is_empty());
    let zombies: u32 = heard.lines().next().and_then(|line| line.parse().ok()).expect("a number");
    assert!(zombies < 20, "{zombies} of 50 orphans are not reaped");
}
