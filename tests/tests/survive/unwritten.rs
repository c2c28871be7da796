//! What the disk did not take, or gives back damaged, while agents are at work.

use crate::rig::{Rig, until};
use crate::stage::{ANSWER, Stage};
use longshore_core::id::TaskId;
use longshore_io_tokio::agent_double::Step;
use longshore_io_tokio::plane::{Action, Rule, State, Task, TaskSpec};
use std::fs;
use std::path::PathBuf;

/// The directory of the first claim.
fn first_claim(rig: &Rig) -> PathBuf {
    rig.home.state_dir().join("ledger/1")
}

/// Waits until the first try has failed, and looks that nothing of it is at work.
async fn given_back(rig: &Rig, task: &TaskId) {
    let failed = |row: &Task| row.state == State::Failed;
    until("the first try to be given back", || rig.plane.task(task).filter(failed)).await;
    until("the end of all that the first try had started", || {
        rig.home.processes_of(task).is_empty().then_some(())
    })
    .await;
}

/// A run whose agent waits before its first words.
async fn at_work(rig: &mut Rig, stage: &Stage) -> TaskId {
    let task = rig.enqueue(stage.spec(false));
    stage.pass(&stage.born, rig).await;
    task
}

async fn done_by_the_next_try(mut rig: Rig, stage: &Stage, task: &TaskId) {
    stage.open_all(&mut rig);
    let tries = rig.completed(task).await;
    assert_eq!(tries.len(), 2, "{tries:?}");
    rig.stop().await;
    let runs = fs::read_dir(rig.home.state_dir().join("runs")).expect("listed").count();
    assert_eq!(runs, 0, "run directories are left");
}

#[tokio::test]
async fn a_run_whose_state_is_damaged_is_ended_before_its_task_is_given_out_again() {
    let mut rig = Rig::new(|home| home).await;
    let stage = Stage::new(&rig);
    let task = at_work(&mut rig, &stage).await;
    let (dir, _) = rig.run_of(&task).await;
    rig.kill().await;
    fs::write(dir.file("status.json"), "junk").expect("written");
    rig.start_next();
    given_back(&rig, &task).await;
    done_by_the_next_try(rig, &stage, &task).await;
}

#[tokio::test]
async fn an_agent_whose_launch_the_disk_did_not_take_is_ended_before_its_task_is_given_out_again() {
    let mut rig = Rig::new(|home| home).await;
    let stage = Stage::new(&rig);
    let task = at_work(&mut rig, &stage).await;
    rig.run_of(&task).await;
    rig.kill().await;
    let record = first_claim(&rig).join("record.json");
    let mut written: serde_json::Value =
        serde_json::from_slice(&fs::read(&record).expect("there is a record")).expect("JSON");
    let what = written["record"].as_object_mut().expect("an object");
    assert_eq!(what.insert("was".into(), "claimed".into()), Some("launched".into()));
    what.retain(|name, _| name != "slot" && name != "acked");
    fs::write(&record, written.to_string()).expect("as it was before the launch");
    rig.start_next();
    given_back(&rig, &task).await;
    done_by_the_next_try(rig, &stage, &task).await;
}

#[tokio::test]
async fn what_the_disk_did_not_take_is_tried_again_however_much_an_agent_says() {
    let rig = Rig::new(|home| home).await;
    let until_file = rig.home.dir().join("enough");
    let count = Step::Count { until: until_file.display().to_string(), every: 10, bytes: 7 };
    // Also for root there can be no directory where a file is.
    fs::write(first_claim(&rig), "in the way").expect("written");
    let task = rig.enqueue(TaskSpec::new("claude").script(&[count]));
    rig.run_of(&task).await;
    fs::remove_file(first_claim(&rig)).expect("removed");
    until("the record of the run", || first_claim(&rig).join("record.json").exists().then_some(())).await;
    rig.spoke(&task).await;
    fs::write(&until_file, "").expect("written");
    assert_eq!(rig.completed(&task).await.len(), 1);
    rig.stop().await;
}

#[tokio::test]
async fn what_a_run_came_to_is_not_lost_where_the_disk_does_not_take_it() {
    let mut rig = Rig::new(|home| home).await;
    let stage = Stage::new(&rig);
    let task = at_work(&mut rig, &stage).await;
    let fault = rig.fault("complete", |path| Rule::new("POST", &path, Action::error(503, "not now")));
    fs::create_dir(first_claim(&rig).join("outcome.json")).expect("made");
    stage.open_all(&mut rig);
    until("the report", || (!rig.calls(&task, "complete").is_empty()).then_some(())).await;
    rig.kill().await;
    fault.remove();
    fs::remove_dir(first_claim(&rig).join("outcome.json")).expect("removed");
    rig.start_next();
    let tries = rig.completed(&task).await;
    let output = tries[0].result.as_ref().map(|result| &*result.output);
    assert_eq!((tries.len(), output), (1, Some(ANSWER)));
    rig.stop().await;
}

#[tokio::test]
async fn the_session_of_a_run_is_pinned_again_by_the_next_daemon() {
    let mut rig = Rig::new(|home| home).await;
    let stage = Stage::new(&rig);
    let task = rig.enqueue(stage.spec(false));
    rig.open.extend([stage.born.open(), stage.first.open()]);
    rig.spoke(&task).await;
    let pins = |rig: &Rig| rig.calls(&task, "session");
    let first = until("the session to be pinned", || pins(&rig).into_iter().next()).await;
    rig.kill().await;
    let before = pins(&rig).len();
    rig.start_next();
    let next = until("the session to be pinned again", || pins(&rig).into_iter().nth(before)).await;
    assert!(next.body["session_id"].as_str().is_some_and(|session| !session.is_empty()), "{}", next.body);
    assert_eq!(next.body["session_id"], first.body["session_id"]);
    stage.open_all(&mut rig);
    rig.completed(&task).await;
    rig.stop().await;
}
