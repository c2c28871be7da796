//! Many restarts under tasks that never stop to speak.

use crate::audit::{self, Audit};
use crate::rig::{Rig, WITHIN};
use crate::stage::numbers;
use longshore_core::id::TaskId;
use longshore_core::plane::Plane;
use longshore_io_tokio::agent_double::Step;
use longshore_io_tokio::plane::{State, TaskSpec};
use std::fs;

const RESTARTS: usize = 20;
const TASKS: usize = 10;
/// Milliseconds between two lines of an agent.
const EVERY: u64 = 10;
const WIDTH: usize = 7;

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// SIGKILL.
    Killed,
    /// SIGTERM to a daemon that leaves its runs to the next one.
    Detached,
}

/// How many of the tasks have more messages than were counted before.
fn grown(plane: &Plane, tasks: &[TaskId], before: &[usize]) -> usize {
    let more = |(task, count): (&TaskId, &usize)| plane.transcript(task).len() > *count;
    tasks.iter().zip(before).filter(|pair| more(*pair)).count()
}

async fn restarted_under_tasks(how: How) {
    let mut rig = Rig::new(|home| match how {
        How::Killed => home,
        How::Detached => home.flag("--on-sigterm=detach"),
    })
    .await;
    let until = rig.home.dir().join("enough");
    let count = Step::Count { until: until.display().to_string(), every: EVERY, bytes: WIDTH };
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| rig.enqueue(TaskSpec::new("claude").script(std::slice::from_ref(&count))))
        .collect();
    for round in 0..=RESTARTS {
        let before: Vec<_> = tasks.iter().map(|task| rig.plane.transcript(task).len()).collect();
        // Another instant each time: of some tasks much is on its way, of others little.
        let speak = if round == 0 { TASKS } else { round % TASKS + 1 };
        let spoke = |plane: &Plane| (grown(plane, &tasks, &before) >= speak).then_some(());
        rig.plane.wait_until(WITHIN, spoke).await.expect("the runs go on under each daemon");
        if round == RESTARTS {
            break;
        }
        match how {
            How::Killed => rig.kill().await,
            How::Detached => {
                let ended = rig.daemon().stop().await;
                assert!(ended.status.success(), "{}", rig.log());
            }
        }
        rig.start_next();
    }
    assert_eq!(rig.lives, RESTARTS + 1);
    fs::write(&until, "").expect("written");
    let mut audit = Audit::default();
    let mut lines = 0;
    for task in &tasks {
        let tries = rig.over(task).await;
        let row = &tries[0];
        audit.require(tries.len() == 1 && row.state == State::Completed, || format!("{tries:?}"));
        audit::ending(&rig, row, &mut audit);
        let last: u64 = row.result.as_ref().and_then(|result| result.output.parse().ok()).unwrap_or_default();
        let (said, want) = (audit::said(&rig, row, &mut audit), numbers(last, WIDTH));
        audit.require(last > 0 && said == want, || audit::differ(&said, &want));
        let starts = audit::agents(&rig, row, &mut audit);
        audit.require(starts == 1, || format!("{starts} agents of {task}"));
        lines += last;
    }
    audit::leftovers(&rig, &mut audit).await;
    rig.stop().await;
    assert!(audit.wrong.is_empty(), "{:#?}", audit.wrong);
    println!("{lines} lines of {TASKS} agents arrived once and in order under {} daemons", rig.lives);
}

#[tokio::test]
#[ignore = "takes longer: the daemon is killed 20 times under 10 tasks"]
async fn every_line_arrives_once_and_in_order_under_20_daemons_that_are_killed() {
    restarted_under_tasks(How::Killed).await;
}

#[tokio::test]
#[ignore = "takes longer: the daemon is restarted 20 times under 10 tasks"]
async fn every_line_arrives_once_and_in_order_under_20_daemons_that_leave_their_runs_to_the_next() {
    restarted_under_tasks(How::Detached).await;
}
