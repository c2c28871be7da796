//! How a run ends: by itself, asked, killed; and that nothing of it stays.

use crate::bench::{Bench, exists, listen, listen_for, of_run, pids, signal, stat, until};
use longshore_io_tokio::supervise::record::EndedBy;
use rustix::process::Signal;
use std::time::Duration;

#[tokio::test]
async fn bug_15_everything_that_a_finished_agent_left_is_ended_and_strangers_live() {
    let bench = Bench::new();
    let chain = bench.dir.path().join("chain.sh");
    std::fs::write(&chain, "sleep 0.005; sh \"$0\" & exit 0").expect("written");
    // The same program without the run's mark.
    let mut decoy =
        tokio::process::Command::new("sleep").arg("600").kill_on_drop(true).spawn().expect("runs");
    let text = "sleep 600 &
        (setsid sh -c 'sleep 600 & sleep 600' &)
        (trap '' TERM; sleep 600; sleep 600) &
        setsid sh -c 'trap \"\" TERM INT HUP; while :; do sleep 1; done' &
        sh chain.sh &
        sleep 0.05; echo done";
    let mut run = bench.launch(bench.shell(text)).await;
    let said = listen(&mut run).await;
    assert_eq!(said.stdout, b"done\n");
    assert!(said.record.success(), "{:?}", said.record);
    assert!(said.record.leftovers.iter().any(|process| process.command == "sleep"), "{:?}", said.record);
    assert!(of_run(run.dir()).is_empty());
    assert!(said.took < Duration::from_secs(3), "{:?}", said.took);
    assert!(decoy.try_wait().expect("our child").is_none(), "the decoy was hit");
    decoy.kill().await.expect("our child");
}

#[tokio::test]
async fn bug_19_a_child_that_holds_the_output_does_not_delay_the_end_and_the_last_line_is_whole() {
    let bench = Bench::new();
    let quiet = "head -c 204800 /dev/zero | tr '\\0' x; echo; sleep 600 & exit 0";
    let noisy = "head -c 204800 /dev/zero | tr '\\0' x; echo
        (trap '' TERM; while :; do printf .; sleep 0.05; done) & exit 0";
    for (attempt, text) in (1..).zip([quiet, noisy]) {
        let mut spec = bench.shell(text);
        spec.attempt = attempt;
        let mut run = bench.launch(spec).await;
        let said = listen(&mut run).await;
        assert!(said.record.success());
        let line = said.stdout.split(|byte| *byte == b'\n').next().expect("a line");
        assert!(line.len() == 204_800 && line.iter().all(|byte| *byte == b'x'));
        assert!(said.took < Duration::from_secs(2), "{:?}", said.took);
        assert!(of_run(run.dir()).is_empty());
    }
}

#[tokio::test]
async fn an_agent_that_is_asked_to_end_says_goodbye() {
    let bench = Bench::new();
    let text = "trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 600 & wait $!; done";
    let mut run = bench.launch(bench.shell(text)).await;
    listen_for(&mut run, "up").await;
    run.end(Duration::from_secs(10));
    let said = listen(&mut run).await;
    assert_eq!(said.stdout, b"bye\n");
    assert_eq!((said.record.ended_by, said.record.code), (EndedBy::Cancel, Some(7)));
    assert!(said.took < Duration::from_secs(3), "{:?}", said.took);
    assert!(of_run(run.dir()).is_empty());
}

#[tokio::test]
async fn a_stopped_agent_hears_the_polite_signal() {
    let bench = Bench::new();
    let mut spec = bench.shell("trap 'exit 7' TERM; echo up; read line");
    spec.keep_stdin_open = true;
    let mut run = bench.launch(spec).await;
    listen_for(&mut run, "up").await;
    signal(run.pid().expect("an agent"), Signal::STOP);
    run.end(Duration::from_secs(15));
    let said = listen(&mut run).await;
    assert_eq!(
        (said.record.ended_by, said.record.code, said.record.signal),
        (EndedBy::Cancel, Some(7), None)
    );
}

#[tokio::test]
async fn bug_14_cancel_takes_the_worker_that_ignores_it_and_the_tree_is_gone_when_it_is_told() {
    let bench = Bench::new();
    let ticks = bench.dir.path().join("ticks");
    let text = "trap '' TERM; (setsid sh -c 'trap \"\" TERM; while :; do echo t >>ticks; sleep 0.02; done' &)
        (while :; do echo t >>ticks; sleep 0.02; done) & echo up; while :; do sleep 600; done";
    let mut run = bench.launch(bench.shell(text)).await;
    listen_for(&mut run, "up").await;
    until("the workers tick", || ticks.metadata().is_ok_and(|meta| meta.len() > 4)).await;
    run.end(Duration::from_millis(300));
    let said = listen(&mut run).await;
    let size = ticks.metadata().expect("there").len();
    assert_eq!((said.record.ended_by, said.record.signal), (EndedBy::Cancel, Some(9)));
    assert!(said.took >= Duration::from_millis(290) && said.took < Duration::from_secs(2), "{:?}", said.took);
    assert!(of_run(run.dir()).is_empty());
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(ticks.metadata().expect("there").len(), size, "a worker still ticks");
}

#[tokio::test]
async fn kill_cuts_a_grace_short() {
    let bench = Bench::new();
    let mut run = bench.launch(bench.shell("trap '' TERM; echo up; while :; do sleep 600; done")).await;
    listen_for(&mut run, "up").await;
    run.end(Duration::from_mins(10));
    run.kill();
    let said = listen(&mut run).await;
    assert_eq!((said.record.ended_by, said.record.signal), (EndedBy::Kill, Some(9)));
    assert!(said.took < Duration::from_secs(2), "{:?}", said.took);
}

#[tokio::test]
async fn bug_21_an_agent_that_waits_on_its_open_input_ends_when_it_is_closed() {
    let bench = Bench::new();
    let mut spec = bench.shell("echo result; cat >/dev/null");
    spec.keep_stdin_open = true;
    let mut run = bench.launch(spec).await;
    listen_for(&mut run, "result").await;
    run.close_stdin();
    let said = listen(&mut run).await;
    assert!(said.record.success());
    assert!(said.took < Duration::from_secs(1), "{:?}", said.took);
}

#[tokio::test]
async fn an_agent_that_dies_of_a_signal_is_told_as_such() {
    let bench = Bench::new();
    let mut run = bench.launch(bench.shell("kill -SEGV $$")).await;
    let record = listen(&mut run).await.record;
    assert_eq!((record.ended_by, record.code, record.signal), (EndedBy::Itself, None, Some(11)));
}

#[tokio::test]
async fn orphans_are_reaped_while_the_run_goes_on() {
    let bench = Bench::new();
    let mut spec =
        bench.shell("i=0; while [ $i -lt 20 ]; do (sleep 0.01 &); i=$((i+1)); done; echo up; read line");
    spec.keep_stdin_open = true;
    let mut run = bench.launch(spec).await;
    listen_for(&mut run, "up").await;
    let supervisor = run.dir().status().expect("a status").supervisor.pid.to_string();
    let agent = run.pid().expect("an agent");
    until("the supervisor has no child but the agent", || {
        let children = |pid: &i32| stat(*pid).is_some_and(|fields| fields[1] == supervisor);
        pids().into_iter().filter(children).collect::<Vec<_>>() == [agent]
    })
    .await;
    run.close_stdin();
    assert!(listen(&mut run).await.record.leftovers.is_empty());
}

#[tokio::test]
async fn a_signal_to_the_supervisor_ends_the_run_politely_and_is_told() {
    let bench = Bench::new();
    let mut spec = bench.shell("trap 'echo bye; exit 0' TERM; echo up; read line");
    spec.keep_stdin_open = true;
    let mut run = bench.launch(spec).await;
    listen_for(&mut run, "up").await;
    signal(run.dir().status().expect("a status").supervisor.pid, Signal::TERM);
    let said = listen(&mut run).await;
    assert_eq!((said.stdout.as_slice(), said.record.ended_by), (&b"bye\n"[..], EndedBy::SupervisorStopped));
}

#[tokio::test]
async fn a_supervisor_that_is_killed_takes_the_agent_along_and_the_rest_is_found() {
    let bench = Bench::new();
    let text = "sleep 600 & (setsid sleep 600 &); echo up; while :; do sleep 600; done";
    let mut run = bench.launch(bench.shell(text)).await;
    listen_for(&mut run, "up").await;
    let supervisor = run.dir().status().expect("a status").supervisor.pid;
    until("all of the run is there", || of_run(run.dir()).len() == 4).await;
    signal(supervisor, Signal::KILL);
    let record = listen(&mut run).await.record;
    assert_eq!((record.ended_by, record.code, record.signal), (EndedBy::SupervisorLost, None, None));
    assert!(record.note.as_ref().is_some_and(|note| note.contains("signal: 9")), "{:?}", record.note);
    assert!(record.leftovers.len() >= 2, "{:?}", record.leftovers);
    assert!(of_run(run.dir()).is_empty());
    assert!(!exists(supervisor));
}

#[tokio::test]
async fn bug_17_many_short_runs_leave_this_process_and_no_other_behind() {
    let bench = Bench::new();
    bench.launcher.warm();
    for attempt in 0..20 {
        let mut spec = bench.shell("(sleep 600 &); exit 0");
        spec.attempt = attempt;
        spec.leftover_grace = Duration::ZERO;
        let mut run = bench.launch(spec).await;
        assert!(listen(&mut run).await.record.success());
        assert!(of_run(run.dir()).is_empty());
    }
    bench.launcher.close().await;
    assert!(bench.launcher.spares().is_empty());
}

#[tokio::test]
async fn an_agent_that_stops_its_supervisor_is_ended_all_the_same() {
    let bench = Bench::new();
    let mut run = bench.launch(bench.shell("echo up; exec sleep 600")).await;
    listen_for(&mut run, "up").await;
    signal(run.dir().status().expect("a status").supervisor.pid, Signal::STOP);
    run.kill();
    let said = listen(&mut run).await;
    assert_eq!(said.record.ended_by, EndedBy::Kill);
    assert!(of_run(run.dir()).is_empty());
}
