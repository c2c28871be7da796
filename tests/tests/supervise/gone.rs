//! Supervisors and agents that are killed or stopped from outside, or by each other.

use crate::bench::{Bench, exists, inhabitants, listen, listen_for, of_run, signal, until};
use crate::daemon::abandoned;
use longshore_io_tokio::supervise::record::EndedBy;
use longshore_io_tokio::supervise::{Credit, LaunchError, Position, RunEvent};
use rustix::process::Signal;
use std::time::{Duration, Instant};

#[tokio::test]
async fn the_agent_dies_with_its_supervisor_also_when_no_daemon_is_there() {
    let bench = Bench::new();
    let dir = abandoned(bench.dir.path(), "trap '' TERM HUP INT; echo up; while :; do sleep 600; done");
    let status = dir.status().expect("a status");
    signal(status.supervisor.pid, Signal::KILL);
    until("the agent is gone", || !exists(status.agent.pid)).await;
    // What it had started is for the next daemon.
    let mut run =
        bench.launcher.attach(dir.path(), Position::default(), Credit::OnRead).await.expect("attached");
    listen(&mut run).await;
    assert!(of_run(&dir).is_empty());
}

#[tokio::test]
async fn what_a_killed_supervisor_leaves_is_killed_within_five_seconds_and_named() {
    let bench = Bench::new();
    // The last one has no mark; its parent has.
    let text = "(setsid sh -c 'trap \"\" TERM; while :; do sleep 600; done' &)
        setsid sh -c 'env -u LONGSHORE_RUN sleep 601; :' & echo up; while :; do sleep 600; done";
    let mut run = bench.launch(bench.shell(text)).await;
    listen_for(&mut run, "up").await;
    until("all have started", || inhabitants(bench.dir.path()).len() >= 6).await;
    let started = Instant::now();
    signal(run.dir().status().expect("a status").supervisor.pid, Signal::KILL);
    let record = listen(&mut run).await.record;
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    assert_eq!(record.ended_by, EndedBy::SupervisorLost);
    assert!(record.leftovers.iter().any(|process| process.command == "sleep"), "{record:?}");
    until("nothing is left", || inhabitants(bench.dir.path()).is_empty()).await;
}

#[tokio::test]
async fn what_a_killed_agent_leaves_is_ended_and_named() {
    let bench = Bench::new();
    let mut run = bench.launch(bench.shell("(setsid sleep 600 &); sleep 601 & echo up; wait")).await;
    listen_for(&mut run, "up").await;
    let sleeping = || inhabitants(bench.dir.path()).iter().filter(|(_, name)| name == "sleep\n").count();
    until("both sleep", || sleeping() == 2).await;
    signal(run.pid().expect("an agent"), Signal::KILL);
    let said = listen(&mut run).await;
    assert_eq!((said.record.ended_by, said.record.signal), (EndedBy::Itself, Some(9)));
    assert!(said.record.leftovers.iter().any(|process| process.command == "sleep"), "{:?}", said.record);
    assert!(said.took < Duration::from_secs(2), "{:?}", said.took);
    assert!(inhabitants(bench.dir.path()).is_empty());
}

#[tokio::test]
async fn an_agent_that_stops_its_supervisor_does_not_hang_the_run() {
    let bench = Bench::new();
    let mut run = bench.launch(bench.shell("kill -STOP $PPID; echo said; sleep 600 & exit 3")).await;
    let said = listen(&mut run).await;
    assert_eq!((said.stdout.as_slice(), said.record.code), (b"said\n".as_slice(), Some(3)));
    assert!(inhabitants(bench.dir.path()).is_empty());
}

#[tokio::test]
async fn a_stopped_supervisor_of_an_earlier_daemon_is_woken() {
    let bench = Bench::new();
    let dir = abandoned(bench.dir.path(), "kill -STOP $PPID; echo said; exit 4");
    let mut run =
        bench.launcher.attach(dir.path(), Position::default(), Credit::OnRead).await.expect("attached");
    let said = listen(&mut run).await;
    assert_eq!((said.stdout.as_slice(), said.record.code), (b"said\n".as_slice(), Some(4)));
}

#[tokio::test]
#[ignore = "takes longer: the supervisor is given some seconds"]
async fn an_agent_that_stops_its_supervisor_again_and_again_can_be_killed() {
    let bench = Bench::new();
    match bench.try_launch(bench.shell("trap '' TERM; while :; do kill -STOP $PPID; done")).await {
        Ok(mut run) => {
            run.kill();
            let record = listen(&mut run).await.record;
            // Whichever of the two is faster.
            assert!(matches!(record.ended_by, EndedBy::Kill | EndedBy::SupervisorLost), "{record:?}");
        }
        // It was stopped before it could say that the agent is there.
        Err(LaunchError::Timeout(_)) => {}
        Err(error) => panic!("{error}"),
    }
    until("nothing is left", || inhabitants(bench.dir.path()).is_empty()).await;
}

#[tokio::test]
async fn a_call_of_next_that_is_dropped_while_a_lost_run_is_cleaned_up_loses_nothing() {
    let bench = Bench::new();
    let mut run =
        bench.launch(bench.shell("(setsid sleep 600 &); echo up; while :; do sleep 600; done")).await;
    listen_for(&mut run, "up").await;
    let sleeping = || inhabitants(bench.dir.path()).iter().filter(|(_, name)| name == "sleep\n").count();
    until("both sleep", || sleeping() == 2).await;
    signal(run.dir().status().expect("a status").supervisor.pid, Signal::KILL);
    let record = loop {
        tokio::select! {
            biased;
            () = tokio::task::yield_now() => {}
            event = run.next() => match event {
                RunEvent::Ended(record) => break record,
                other => panic!("{other:?}"),
            },
        }
    };
    assert_eq!(record.ended_by, EndedBy::SupervisorLost);
    assert!(record.leftovers.iter().any(|process| process.command == "sleep"), "{record:?}");
}
