//! A stop at once.

use crate::bed::{Bed, WITHIN, refused, succeeded};
use longshore_io_tokio::plane::{Action, Rule};
use longshore_tests::is_alive;
use rustix::process::{Pid, Signal, kill_process};
use std::time::Instant;

#[tokio::test]
async fn cli_69_a_stop_with_nothing_running_is_done_already() {
    let bed = Bed::new().await;
    let said = bed.home.run(&["daemon", "stop"]).await;
    succeeded(&said);
    assert!(said.out.is_empty() && said.err.contains("not running"), "{said:?}");
    let drain = bed.home.run(&["daemon", "stop", "--drain=1m"]).await;
    succeeded(&drain);
    let unknown = bed.home.run(&["daemon", "stop", "--profile", "nobody"]).await;
    assert!(refused(&unknown).contains("nobody"), "{unknown:?}");
}

#[tokio::test]
async fn cli_75_83_a_stop_ends_runs_and_is_over_when_the_process_is_gone() {
    let bed = Bed::new().await;
    let daemon = bed.daemon().await;
    assert_eq!(bed.pid_file(), Some(daemon.id().to_string()), "one in the foreground writes it as well");
    let (task, _gate) = bed.at_work("gate").await;
    let agents = bed.home.processes_of(&task);
    let said = bed.home.run(&["daemon", "stop"]).await;
    succeeded(&said);
    assert!(said.out.is_empty() && said.err.contains("stopped"), "{said:?}");
    assert!(!is_alive(daemon.id()) && bed.is_port_free());
    assert!(!agents.is_empty() && !agents.iter().any(|agent| is_alive(*agent)));
    assert_eq!(bed.reason_of(&task).as_deref(), Some("runtime_offline"));
    assert_eq!((bed.off_line(), bed.pid_file()), (1, None));
    assert!(daemon.ended().await.status.success());
}

#[tokio::test]
async fn a_second_stop_hurries() {
    let bed = Bed::new().await;
    let daemon = bed.daemon().await;
    let hold = bed.plane.fault(Rule::new("POST", "/api/daemon/tasks/*/fail", Action::Hold));
    let (_task, _gate) = bed.at_work("gate").await;
    let first = bed.home.begin(&["daemon", "stop"]);
    hold.reached(1).await;
    let begun = Instant::now();
    succeeded(&bed.home.run(&["daemon", "stop"]).await);
    assert!(begun.elapsed() < WITHIN / 2, "the first stop alone would wait for 30 s");
    succeeded(&first.ended().await);
    let ended = daemon.ended().await;
    assert!(ended.status.success() && ended.log.contains("could not be reported"), "{}", ended.log);
    hold.release();
}

#[tokio::test]
async fn cli_71_a_daemon_that_hangs_is_told_and_not_shot() {
    let bed = Bed::new().await;
    let daemon = bed.daemon().await;
    let process = Pid::from_raw(daemon.id()).expect("a process");
    kill_process(process, Signal::STOP).expect("stopped");
    let said = bed.home.run(&["daemon", "stop"]).await;
    assert!(refused(&said).contains(&bed.home.health_port().to_string()), "{said:?}");
    let status = bed.home.run(&["daemon", "status", "--exit-code"]).await;
    assert_eq!(status.code, Some(5), "{status:?}");
    assert!(is_alive(daemon.id()));
    kill_process(process, Signal::CONT).expect("goes on");
    succeeded(&bed.home.run(&["daemon", "stop"]).await);
    assert!(daemon.ended().await.status.success());
}

#[tokio::test]
async fn cli_106_a_task_cannot_end_the_daemon_that_runs_it() {
    let bed = Bed::new().await;
    let daemon = bed.daemon().await;
    let port = bed.home.health_port().to_string();
    let in_task = [("MULTICA_TASK_ID", "t"), ("MULTICA_DAEMON_PORT", port.as_str())];
    for words in
        [&["daemon", "stop"][..], &["daemon", "stop", "--drain"], &["daemon", "restart"], &["daemon", "logs"]]
    {
        let said = bed.home.run_with(words, &in_task).await;
        assert!(refused(&said).contains("MULTICA_TASK_ID"), "{said:?}");
    }
    let status = bed.home.run_with(&["daemon", "status"], &in_task).await;
    succeeded(&status);
    assert!(status.out.contains(&format!("(pid {}", daemon.id())), "{status:?}");
    assert!(daemon.stop().await.status.success());
}
