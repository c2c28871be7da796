//! A daemon that dies around the order to launch: the next one gets the run, or an agent never starts there.

use crate::bench::{Bench, LIMIT, listen, stat, until};
use crate::raw::{Raw, make_dir};
use longshore_io_tokio::supervise::record::{EndedBy, RunDir};
use longshore_io_tokio::supervise::{AttachError, Credit, Position, Run};
use std::fs::{self, File};
use std::time::Duration;

/// A run directory as a daemon makes it, and an agent that leaves a trace of itself.
struct Launch {
    bench: Bench,
    dir: RunDir,
}

impl Launch {
    fn new() -> Self {
        let bench = Bench::new();
        let dir = RunDir::new(bench.launcher.run_dir("task", 1));
        Self { bench, dir }
    }

    /// Everything up to the order is sent, and the supervisor has not read it yet.
    fn ordered(&self) -> Raw {
        make_dir(&self.dir);
        let mut raw = Raw::start();
        raw.stop();
        raw.exec("/bin/sh", &["-c", "echo ran; : >ran"], self.bench.dir.path());
        raw.write(&Raw::order(&self.dir));
        raw
    }

    fn ran(&self) -> bool {
        self.bench.dir.path().join("ran").exists()
    }

    async fn attach(&self) -> Result<Run, AttachError> {
        let attached = self.bench.launcher.attach(self.dir.path(), Position::default(), Credit::Explicit);
        tokio::time::timeout(LIMIT, attached).await.expect("an answer")
    }

    async fn never(&self) {
        let error = self.attach().await.err().expect("no run");
        assert!(matches!(&error, AttachError::NeverLaunched { path } if path == self.dir.path()), "{error}");
        assert!(!self.dir.path().exists(), "what the launch left is left");
        assert!(!self.ran());
    }
}

#[tokio::test]
async fn a_directory_that_was_not_made_or_not_filled_never_gets_a_run() {
    let launch = Launch::new();
    launch.never().await;
    fs::create_dir_all(launch.dir.path()).expect("made");
    launch.never().await;
    fs::create_dir_all(launch.dir.path()).expect("made");
    fs::write(launch.dir.file("prompt"), "half").expect("written");
    launch.never().await;
    make_dir(&launch.dir);
    launch.never().await;
    launch.never().await;
}

#[tokio::test]
async fn an_order_that_is_read_before_the_next_daemon_comes_gives_it_the_run() {
    let launch = Launch::new();
    let raw = launch.ordered();
    let orphan = raw.die();
    Raw::go(orphan.pid());
    until("there is a status", || launch.dir.status().is_ok()).await;
    let mut run = launch.attach().await.expect("a run");
    let said = listen(&mut run).await;
    assert_eq!(said.stdout, b"ran\n");
    assert!(said.record.success() && launch.ran(), "{:?}", said.record);
    assert!(orphan.ended().await.success());
}

#[tokio::test]
async fn an_order_that_is_read_after_the_next_daemon_came_starts_nothing() {
    let launch = Launch::new();
    let orphan = launch.ordered().die();
    launch.never().await;
    Raw::go(orphan.pid());
    assert!(orphan.ended().await.success());
    assert!(!launch.ran(), "an agent started after its launch was given up");
    assert!(!launch.dir.path().exists());
}

#[tokio::test]
async fn an_order_of_a_launch_that_was_given_up_does_not_start_in_the_directory_of_the_next_one() {
    let launch = Launch::new();
    let orphan = launch.ordered().die();
    launch.never().await;
    make_dir(&launch.dir);
    fs::write(launch.dir.file("alive"), "marker of the next launch").expect("written");
    Raw::go(orphan.pid());
    assert!(orphan.ended().await.success());
    assert!(!launch.ran());
    let mut names: Vec<_> =
        fs::read_dir(launch.dir.path()).expect("there").flatten().map(|it| it.file_name()).collect();
    names.sort_unstable();
    assert_eq!(names, ["alive", "prompt"], "it is not touched");
}

#[tokio::test]
async fn supervisor_and_next_daemon_at_the_same_time_agree() {
    for _ in 0..10 {
        let launch = Launch::new();
        let orphan = launch.ordered().die();
        Raw::go(orphan.pid());
        match launch.attach().await {
            Ok(mut run) => {
                let said = listen(&mut run).await;
                assert!(
                    said.record.success() && said.stdout == b"ran\n" && launch.ran(),
                    "{:?}",
                    said.record
                );
                assert!(orphan.ended().await.success());
            }
            Err(error) => {
                assert!(matches!(error, AttachError::NeverLaunched { .. }), "{error}");
                assert!(orphan.ended().await.success());
                assert!(!launch.ran(), "an agent started after its launch was given up");
            }
        }
    }
}

#[tokio::test]
async fn an_order_that_is_cut_short_by_the_death_of_the_daemon_starts_nothing() {
    let launch = Launch::new();
    make_dir(&launch.dir);
    let mut raw = Raw::start();
    raw.exec("/bin/sh", &["-c", ": >ran"], launch.bench.dir.path());
    let order = Raw::order(&launch.dir);
    raw.write(order.get(..order.len() - 1).expect("longer"));
    assert!(raw.die().ended().await.success());
    launch.never().await;
}

#[tokio::test]
async fn a_launch_that_fails_without_a_daemon_is_told_to_the_next_one() {
    let launch = Launch::new();
    make_dir(&launch.dir);
    let mut raw = Raw::start();
    raw.stop();
    raw.exec("/no/such/program", &[], launch.bench.dir.path());
    raw.write(&Raw::order(&launch.dir));
    let orphan = raw.die();
    Raw::go(orphan.pid());
    assert!(orphan.ended().await.success());
    let record = listen(&mut launch.attach().await.expect("a record")).await.record;
    assert_eq!(record.ended_by, EndedBy::LaunchFailed);
    assert!(record.note.is_some_and(|note| note.contains("No such file")));
}

#[tokio::test]
async fn a_supervisor_in_the_middle_of_its_launch_is_waited_for() {
    let launch = Launch::new();
    make_dir(&launch.dir);
    let alive = File::open(launch.dir.file("alive")).expect("there");
    alive.lock().expect("locked");
    let mut attaching = Box::pin(launch.attach());
    let waits = tokio::time::timeout(Duration::from_millis(200), &mut attaching).await;
    assert!(waits.is_err(), "the launch goes on and was not waited for");
    drop(alive);
    assert!(matches!(attaching.await, Err(AttachError::NeverLaunched { .. })));
}

#[tokio::test]
#[ignore = "takes longer: a launch has ten seconds"]
async fn a_supervisor_that_hangs_in_its_launch_is_killed() {
    let launch = Launch::new();
    make_dir(&launch.dir);
    let mut hanging = std::process::Command::new("flock")
        .args(["--no-fork".as_ref(), launch.dir.file("alive").as_os_str(), "sleep".as_ref(), "600".as_ref()])
        .spawn()
        .expect("it runs");
    until("the lock is held", || launch.dir.is_supervised().expect("readable")).await;
    let pid = i32::try_from(hanging.id()).expect("a pid");
    let me = stat(pid).expect("it runs");
    let started: u64 = me.get(19).expect("a start time").parse().expect("a number");
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("Linux");
    let owner = serde_json::json!({
        "version": 1, "daemon": { "pid": 1, "started": 0 },
        "supervisor": { "pid": pid, "started": started }, "boot_id": boot.trim(),
    });
    fs::write(launch.dir.file("owner.json"), owner.to_string()).expect("written");
    launch.never().await;
    assert!(!hanging.wait().expect("our child").success());
}

#[tokio::test]
async fn a_stray_that_was_never_launched_is_removed_and_one_that_is_being_launched_is_not() {
    let launch = Launch::new();
    make_dir(&launch.dir);
    let none = std::collections::BTreeSet::new();
    assert_eq!(launch.bench.launcher.end_strays(&none).await, 0);
    assert!(launch.dir.path().exists(), "it is younger than a minute and says nothing of its daemon");
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("Linux");
    let owner = |daemon: u32, started: u64| {
        let text = serde_json::json!({
            "version": 1, "daemon": { "pid": daemon, "started": started },
            "supervisor": { "pid": 1, "started": 1 }, "boot_id": boot.trim(),
        });
        fs::write(launch.dir.file("owner.json"), text.to_string()).expect("written");
    };
    let me = std::process::id();
    let stat = stat(i32::try_from(me).expect("a pid")).expect("we run");
    let started: u64 = stat.get(19).expect("a start time").parse().expect("a number");
    owner(me, started);
    assert_eq!(launch.bench.launcher.end_strays(&none).await, 0);
    assert!(launch.dir.path().exists(), "its daemon lives");
    owner(me, started - 1);
    assert_eq!(launch.bench.launcher.end_strays(&none).await, 0);
    assert!(!launch.dir.path().exists(), "its daemon is gone");
}
