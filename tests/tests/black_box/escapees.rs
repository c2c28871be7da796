//! Descendants of an agent that do not want to end, and supervisors that are killed: nothing stays, and the task gets its result.

use crate::bed::{Bed, WITHIN, executable};
use longshore_core::id::TaskId;
use longshore_io_tokio::agent_double::Step;
use longshore_io_tokio::plane::{Action, Config, Rule, Server, State, TaskSpec};
use longshore_io_tokio::supervise::record::RunDir;
use longshore_tests::{Home, is_alive};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

const LOGGED: &str = "processes that the agent left behind were ended";

/// Each one writes a file once it is there, as far as it takes time.
const ESCAPEES: [(&str, &str); 8] = [
    ("one in a session of its own", "setsid sleep 600 &"),
    ("one that forked twice", "(setsid sh -c '(sleep 600 &); exit 0' &)"),
    (
        "two hundred that go on forking",
        "setsid sh -c 'trap \"\" TERM
            i=0; while [ $i -lt 200 ]; do sleep 600 & i=$((i+1)); done; : >forked
            while :; do sleep 600 & sleep 0.01; done' &
            while ! [ -e forked ]; do sleep 0.01; done",
    ),
    ("a chain of sessions", "echo 'setsid sh chain & exit 0' >chain; sh chain"),
    ("one that holds the output", "(trap '' TERM; while :; do sleep 0.05; echo noise; done) &"),
    (
        "one that ignores every signal",
        "sh -c 'trap \"\" TERM INT HUP QUIT USR1 USR2 PIPE ALRM CONT TSTP TTIN TTOU XCPU ABRT
            : >deaf; while :; do sleep 600; done' & while ! [ -e deaf ]; do sleep 0.01; done",
    ),
    ("one that stops itself", "sh -c 'kill -STOP $$; sleep 600' & setsid sh -c 'kill -STOP $$; sleep 600' &"),
    ("one without the mark", "env -i setsid sleep 600 & LONGSHORE_RUN=other setsid sh -c 'sleep 600; :' &"),
];

/// The processes that work below a directory, whatever their environment says.
fn inhabitants(dir: &Path) -> Vec<i32> {
    let lives_here =
        |pid: &i32| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(dir));
    let entries = fs::read_dir("/proc").expect("Linux").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(lives_here).collect()
}

/// What is left of a task at the time when its report comes, which is held until this was looked at.
fn nothing_is_left(bed: &Bed, task: &TaskId, what: &str) {
    assert!(bed.home.processes_of(task).is_empty(), "{what}");
    let left = inhabitants(&bed.env_root(task));
    assert!(left.is_empty(), "{what}: {left:?}");
}

#[tokio::test]
async fn bug_15_no_escapee_outlives_its_task_or_delays_its_result() {
    let bed = Bed::new().await;
    for (what, escapee) in ESCAPEES {
        let hold = bed.fault("complete", |path| Rule::new("POST", &path, Action::Hold).first(1));
        let script = [Step::Shell(escapee.into()), Step::Result(what.into())];
        let task = bed.enqueue(TaskSpec::new("claude").script(&script));
        hold.reached(1).await;
        nothing_is_left(&bed, &task, what);
        hold.release();
        assert_eq!(&*bed.completed(&task).await.result.expect("a report").output, what);
    }
    let ended = bed.daemon.stop().await;
    assert!(ended.status.success(), "{}", ended.log);
    assert_eq!(ended.log.matches(LOGGED).count(), ESCAPEES.len(), "the log does not name all: {}", ended.log);
}

#[tokio::test]
async fn bug_14_no_escapee_outlives_the_cancel_of_its_task() {
    let brief =
        |core: &mut longshore_core::config::Config| core.timers.kill_grace = Duration::from_millis(200);
    let bed = Bed::driven(Config::default(), |home| home, brief).await;
    bed.linked().await;
    for (what, escapee) in ESCAPEES {
        let ack = bed.fault("cancel-ack", |path| Rule::new("POST", &path, Action::Hold).first(1));
        let script =
            [Step::Shell(escapee.into()), Step::IgnoreTerm, Step::Say("here I stay".into()), Step::Hang];
        let task = bed.enqueue(TaskSpec::new("claude").script(&script));
        bed.spoke(&task).await;
        assert_eq!(bed.plane.cancel(&task), Ok(State::Cancelled));
        ack.reached(1).await;
        let left = inhabitants(&bed.env_root(&task));
        assert!(left.is_empty() && bed.home.processes_of(&task).is_empty(), "{what}: {left:?}");
        ack.release();
    }
    bed.daemon.stop().await;
}

const STUBBORN: &str = "(trap '' TERM; setsid sh -c 'trap \"\" TERM; while :; do sleep 600; done' &)
    setsid sh -c 'env -u LONGSHORE_RUN sleep 600; :' &";

/// A task whose agent is at work with descendants; with its supervisor.
async fn at_work(bed: &Bed) -> (TaskId, Pid) {
    let script = [Step::Shell(STUBBORN.into()), Step::Say("busy".into()), Step::Hang];
    let task = bed.enqueue(TaskSpec::new("claude").script(&script));
    bed.spoke(&task).await;
    let runs = fs::read_dir(bed.home.state_dir().join("runs")).expect("there").flatten();
    let mut statuses = runs.map(|run| RunDir::new(run.path()).status().expect("a status"));
    let status = statuses.find(|status| status.task == task.as_str()).expect("its run");
    (task, Pid::from_raw(status.supervisor.pid).expect("a process id"))
}

async fn gone_within(bed: &Bed, task: &TaskId, limit: Duration) {
    let started = Instant::now();
    loop {
        let mut left = inhabitants(&bed.env_root(task));
        left.extend(bed.home.processes_of(task));
        left.retain(|pid| is_alive(*pid));
        if left.is_empty() {
            return;
        }
        assert!(started.elapsed() < limit, "after {limit:?}: {left:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_task_whose_supervisor_is_killed_fails_and_leaves_nothing() {
    let bed = Bed::new().await;
    let (task, supervisor) = at_work(&bed).await;
    kill_process(supervisor, Signal::KILL).expect("it runs");
    gone_within(&bed, &task, Duration::from_secs(5)).await;
    bed.failed(&task).await;
    let ended = bed.daemon.stop().await;
    assert!(ended.status.success() && ended.log.contains(LOGGED), "{}", ended.log);
}

/// The fields of `/proc/<pid>/stat` from the state on.
fn stat(pid: i32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(text.rsplit_once(") ")?.1.split(' ').map(str::to_owned).collect())
}

fn parent_of(pid: i32) -> i32 {
    stat(pid).expect("it runs").get(1).expect("a parent").parse().expect("a number")
}

#[tokio::test]
async fn a_daemon_that_is_the_first_process_of_a_container_reaps_what_a_killed_supervisor_leaves() {
    let into = ["--pid", "--fork", "--kill-child", "--mount-proc"];
    let allowed = std::process::Command::new("unshare").args(into).arg("true").output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: this machine does not let us make process namespaces");
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let wrapper = dir.path().join("longshore");
    let text = format!(
        "#!/bin/sh\ncase $1 in daemon) exec unshare {} -- '{exe}' \"$@\" ;; *) exec '{exe}' \"$@\" ;; esac\n",
        into.join(" "),
        exe = executable()
    );
    // Written by another process: a descriptor of ours, inherited by a fork of a test beside this one, makes the file busy.
    let written = std::process::Command::new("/bin/sh")
        .args(["-c", "printf '%s' \"$2\" >\"$1\" && chmod 755 \"$1\"", "sh"])
        .arg(&wrapper)
        .arg(text)
        .status();
    assert!(written.expect("sh runs").success());
    let plane = Server::start(Config::default()).await.expect("a control plane");
    let home = Home::new(&wrapper, &plane);
    let bed = Bed { daemon: home.start(), home, plane };
    bed.runtime("claude").await;

    let script = [Step::Shell(STUBBORN.into()), Step::Say("busy".into()), Step::Hang];
    let task = bed.enqueue(TaskSpec::new("claude").script(&script));
    bed.spoke(&task).await;
    let is_supervisor = |pid: &i32| {
        fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.ends_with(b"longshore\0supervise\0"))
    };
    let supervisor = bed.home.processes_of(&task).into_iter().map(parent_of).find(is_supervisor);
    let supervisor = supervisor.expect("the agent has one");
    let daemon = parent_of(supervisor);
    kill_process(Pid::from_raw(supervisor).expect("a process id"), Signal::KILL).expect("it runs");
    gone_within(&bed, &task, Duration::from_secs(5)).await;
    bed.failed(&task).await;
    let zombies = || {
        let entries = fs::read_dir("/proc").expect("Linux").flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let of_daemon = |pid: &i32| stat(*pid).is_some_and(|it| it[0] == "Z" && it[1] == daemon.to_string());
        pids.filter(of_daemon).collect::<Vec<i32>>()
    };
    let started = Instant::now();
    while !zombies().is_empty() {
        assert!(started.elapsed() < Duration::from_secs(15), "not reaped: {:?}", zombies());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn what_a_killed_daemon_with_a_killed_supervisor_leaves_is_ended_by_the_next_daemon() {
    let bed = Bed::new().await;
    let (task, supervisor) = at_work(&bed).await;
    kill_process(Pid::from_raw(bed.daemon.id()).expect("a process id"), Signal::KILL).expect("it runs");
    kill_process(supervisor, Signal::KILL).expect("it runs");
    bed.daemon.ended().await;
    assert!(!inhabitants(&bed.env_root(&task)).is_empty(), "nothing is left to be ended");
    let next = bed.home.start();
    bed.plane
        .wait_for_requests(2, WITHIN, |request| request.is("POST", "/register"))
        .await
        .expect("the next daemon registers");
    gone_within(&bed, &task, Duration::from_secs(5)).await;
    next.stop().await;
}
