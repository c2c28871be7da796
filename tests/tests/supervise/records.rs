//! What the files of a run say, and whom a daemon believes.

use crate::bench::{Bench, edit, inhabitants, listen, listen_for, signal, until};
use crate::daemon::abandoned;
use longshore_io_tokio::supervise::record::{EndedBy, MARKER_VARIABLE, RunDir};
use longshore_io_tokio::supervise::{AttachError, Credit, Position, Run};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::fs;

async fn attach(bench: &Bench, dir: &RunDir) -> Result<Run, AttachError> {
    bench.launcher.attach(dir.path(), Position::default(), Credit::Explicit).await
}

/// A run that has said "up" and whose supervisor was killed; nobody has looked at it since.
async fn lost(bench: &Bench) -> RunDir {
    // It dies with its supervisor, and leaves nothing to a daemon that is not allowed to signal anything.
    let dir = abandoned(bench.dir.path(), "echo up; exec sleep 600");
    until("it is up", || fs::read(dir.file("stdout")).is_ok_and(|text| text == b"up\n")).await;
    signal(dir.status().expect("a status").supervisor.pid, Signal::KILL);
    until("the lock is free", || !dir.is_supervised().expect("readable")).await;
    dir
}

/// A process that must stay alive.
struct Decoy(std::process::Child);

impl Decoy {
    fn new(marker: &str) -> Self {
        Self(
            std::process::Command::new("sleep")
                .arg("600")
                .env(MARKER_VARIABLE, marker)
                .spawn()
                .expect("runs"),
        )
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.0.id()).expect("a pid")
    }

    fn assert_alive(mut self) {
        let ended = self.0.try_wait().expect("our child");
        self.0.kill().expect("our child");
        self.0.wait().expect("our child");
        assert_eq!(ended, None, "the decoy was hit");
    }
}

#[tokio::test]
async fn after_a_restart_of_the_machine_nothing_is_signalled_and_the_run_is_told_as_lost() {
    let bench = Bench::new();
    let dir = lost(&bench).await;
    let decoy = Decoy::new(&dir.status().expect("a status").marker);
    let pid = decoy.pid();
    edit(&dir, "status.json", |status| {
        status["boot_id"] = "an earlier boot".into();
        status["supervisor"]["pid"] = pid.into();
        status["agent"]["pid"] = pid.into();
    });
    let mut run = attach(&bench, &dir).await.expect("attached");
    assert_eq!(run.pid(), None, "the number is another process's");
    run.kill();
    let said = listen(&mut run).await;
    assert_eq!((said.stdout.as_slice(), said.record.ended_by), (b"up\n".as_slice(), EndedBy::SupervisorLost));
    assert!(said.record.note.is_some_and(|note| note.contains("machine was restarted")));
    decoy.assert_alive();
}

#[tokio::test]
async fn a_number_that_another_process_has_now_is_not_signalled() {
    let bench = Bench::new();
    let dir = lost(&bench).await;
    let decoy = Decoy::new("another run");
    let pid = decoy.pid();
    edit(&dir, "status.json", |status| {
        status["supervisor"]["pid"] = pid.into();
        status["agent"]["pid"] = pid.into();
    });
    let mut run = attach(&bench, &dir).await.expect("attached");
    run.kill();
    assert_eq!(listen(&mut run).await.record.ended_by, EndedBy::SupervisorLost);
    decoy.assert_alive();
}

#[tokio::test]
async fn a_torn_or_foreign_status_costs_that_run_only() {
    let bench = Bench::new();
    let dir = abandoned(bench.dir.path(), "echo up; (setsid sleep 600 &); while :; do sleep 600; done");
    let mut other = bench.shell("echo other; read line");
    (other.attempt, other.keep_stdin_open) = (2, true);
    let mut other = bench.launch(other).await;
    for text in ["{\"version\":1,\"task\":\"ta", "", r#"{"version":77}"#] {
        fs::write(dir.file("status.json"), text).expect("written");
        let error = attach(&bench, &dir).await.err().expect("it cannot be read");
        assert!(matches!(error, AttachError::NoRun { .. }));
        assert!(error.to_string().contains("status.json"), "{error}");
    }
    edit(&dir, "owner.json", |owner| owner["daemon"]["started"] = 1.into());
    assert_eq!(bench.launcher.end_strays(&BTreeSet::new()).await, 1);
    assert!(!dir.path().exists());
    let left: Vec<_> =
        inhabitants(bench.dir.path()).into_iter().filter(|it| Some(it.0) != other.pid()).collect();
    assert!(left.is_empty(), "{left:?}");
    other.close_stdin();
    assert_eq!(listen(&mut other).await.stdout, b"other\n", "the other one is not touched");
}

#[tokio::test]
async fn a_torn_record_is_no_record_and_is_told() {
    let bench = Bench::new();
    let dir = abandoned(bench.dir.path(), "echo said; exit 4");
    until("it has ended", || dir.exit().expect("readable").is_some()).await;
    fs::write(dir.file("exit.json"), "{\"version\":1,\"co").expect("written");
    until("the supervisor is gone", || !dir.is_supervised().expect("readable")).await;
    let said = listen(&mut attach(&bench, &dir).await.expect("attached")).await;
    assert_eq!(
        (said.stdout.as_slice(), said.record.ended_by),
        (b"said\n".as_slice(), EndedBy::SupervisorLost)
    );
    assert!(said.record.note.is_some_and(|note| note.contains("exit.json is damaged")));
}

#[tokio::test]
async fn bug_46_a_record_that_the_disk_refuses_for_a_while_is_written_and_the_supervisor_ends_without_a_daemon()
 {
    let bench = Bench::new();
    let dir = abandoned(bench.dir.path(), "echo up; while :; do sleep 600; done");
    until("it is up", || fs::read(dir.file("stdout")).is_ok_and(|text| text == b"up\n")).await;
    // A directory in its place: nothing can be written there.
    fs::create_dir(dir.file("exit.json.new")).expect("made");
    let status = dir.status().expect("a status");
    signal(status.agent.pid, Signal::KILL);
    until("the agent is reaped", || !crate::bench::exists(status.agent.pid)).await;
    assert!(dir.exit().expect("readable").is_none() && dir.is_supervised().expect("readable"));
    fs::remove_dir(dir.file("exit.json.new")).expect("removed");
    until("there is a record", || dir.exit().expect("readable").is_some()).await;
    until("the supervisor is gone", || !crate::bench::exists(status.supervisor.pid)).await;
    let record = listen(&mut attach(&bench, &dir).await.expect("attached")).await.record;
    assert_eq!((record.ended_by, record.signal), (EndedBy::Itself, Some(9)));
}

#[tokio::test]
async fn a_run_knows_its_daemon_and_the_one_that_took_it_over() {
    let bench = Bench::new();
    let mut spec = bench.shell("echo up; read line");
    spec.keep_stdin_open = true;
    let mut run = bench.launch(spec).await;
    listen_for(&mut run, "up").await;
    let me = i32::try_from(std::process::id()).expect("a pid");
    let owner = run.dir().owner().expect("written");
    assert_eq!(
        (owner.daemon.pid, &owner.supervisor),
        (me, &run.dir().status().expect("a status").supervisor)
    );
    edit(run.dir(), "owner.json", |owner| owner["daemon"]["pid"] = 1.into());
    let mut again = attach(&bench, run.dir()).await.expect("attached");
    assert_eq!(run.dir().owner().expect("written"), owner);
    again.kill();
    listen(&mut again).await;
}
