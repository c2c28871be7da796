//! Records of the ledger that somebody damaged between two daemons.

use crate::audit::{self, Audit};
use crate::rig::Rig;
use crate::stage::Stage;
use crate::together;
use longshore_core::id::TaskId;
use longshore_io_tokio::plane::State;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    Truncated,
    Junk,
    LaterVersion,
    /// Of what the agent said, the last write is cut short: that can be read from its output again.
    TornOutbox,
}

impl Damage {
    const ALL: [Self; 4] = [Self::Truncated, Self::Junk, Self::LaterVersion, Self::TornOutbox];

    fn done_to(self, dir: &Path) {
        let record = dir.join("record.json");
        match self {
            Self::Truncated => cut(&record, |bytes| bytes / 2),
            Self::Junk => fs::write(&record, [0xff, 0x00, b'{', b'\n']).expect("written"),
            Self::LaterVersion => {
                let text = fs::read_to_string(&record).expect("it is there");
                let later = text.replacen("\"version\":1", "\"version\":99", 1);
                assert_ne!(later, text);
                fs::write(&record, later).expect("written");
            }
            Self::TornOutbox => cut(&dir.join("outbox.jsonl"), |bytes| bytes - 7),
        }
    }
}

fn cut(path: &Path, to: impl FnOnce(u64) -> u64) {
    let file = File::options().write(true).open(path).expect("it is there");
    let bytes = file.metadata().expect("it is there").len();
    file.set_len(to(bytes)).expect("cut");
}

/// The directory of the task's claim.
fn of_task(rig: &Rig, task: &TaskId) -> PathBuf {
    let dirs = fs::read_dir(rig.home.state_dir().join("ledger")).expect("there is a ledger");
    let names = |dir: &PathBuf| {
        fs::read_to_string(dir.join("record.json")).is_ok_and(|text| text.contains(task.as_str()))
    };
    dirs.flatten().map(|entry| entry.path()).find(names).expect("the claim is kept")
}

async fn one_of_two(damage: Damage) -> Audit {
    let mut audit = Audit::default();
    let mut rig = Rig::new(|home| home).await;
    let stages = ["one", "other"].map(|name| Stage::named(&rig, name));
    let mut tasks = Vec::new();
    for stage in &stages {
        tasks.push(stage.in_mid_output(&mut rig).await);
    }
    rig.kill().await;
    damage.done_to(&of_task(&rig, &tasks[0]));
    rig.start_next();
    for stage in &stages {
        stage.open_all(&mut rig);
    }
    let other = rig.over(&tasks[1]).await;
    let aside = rig.home.state_dir().join("ledger/aside");
    let set_aside = fs::read_dir(&aside).into_iter().flatten().flatten().count();
    let is_lost = damage != Damage::TornOutbox;
    audit.require(set_aside == usize::from(is_lost), || format!("{set_aside} records are set aside"));
    let told = rig.log().contains(&aside.display().to_string());
    audit.require(told == is_lost, || "the operator is told of the record, and where it is".to_owned());
    if is_lost {
        fs::remove_dir_all(&aside).expect("it was there");
        let left = rig.home.processes_of(&tasks[0]);
        audit.require(left.is_empty(), || format!("{left:?} work for nobody"));
        // What nobody knows of is failed when the runtime is new and has no other task at work.
        rig.stop().await;
        rig.start_next();
    }
    let one = rig.over(&tasks[0]).await;
    audit::leftovers(&rig, &mut audit).await;
    rig.stop().await;

    audit.wrong.extend(audit::task(&rig, &other, true).wrong);
    if is_lost {
        audit.require(one.len() == 2 && one[0].state == State::Failed, || format!("{one:?}"));
        let mut second = Audit::default();
        second.says = audit::ending(&rig, &one[1], &mut second);
        let said = audit::said(&rig, &one[1], &mut second);
        second.require(said == Stage::whole(), || audit::differ(&said, &Stage::whole()));
        let starts = audit::agents(&rig, &one[1], &mut second);
        second.require(starts == 1 && one[1].state == State::Completed, || {
            format!("{starts}: {}", one[1].state.as_str())
        });
        audit.wrong.extend(second.wrong);
    } else {
        audit.wrong.extend(audit::task(&rig, &one, true).wrong);
    }
    audit
}

#[tokio::test]
#[ignore = "takes longer: four times two or three daemons, and tasks that are given out again"]
async fn a_record_that_cannot_be_read_is_set_aside_and_costs_no_other_task() {
    let scenarios = Damage::ALL.map(|damage| (format!("{damage:?}"), one_of_two(damage)));
    together::all(scenarios.into()).await;
}

#[tokio::test]
async fn whoever_has_the_number_of_a_stale_pid_file_is_left_alone_and_the_daemon_works() {
    let mut stranger = std::process::Command::new("sleep").arg("600").spawn().expect("it starts");
    let rig = Rig::new(|home| {
        let profile = home.home_dir().join(".multica");
        fs::write(profile.join("daemon.pid"), stranger.id().to_string()).expect("written");
        home
    })
    .await;
    let stage = Stage::new(&rig);
    let mut rig = rig;
    stage.open_all(&mut rig);
    let task = rig.enqueue(stage.spec(false));
    let tries = rig.completed(&task).await;
    rig.stop().await;
    assert!(stranger.try_wait().expect("our child").is_none(), "whoever has that number now is left alone");
    stranger.kill().expect("our child");
    stranger.wait().expect("our child");
    assert_eq!(audit::task(&rig, &tries, true).wrong, Vec::<String>::new());
}
