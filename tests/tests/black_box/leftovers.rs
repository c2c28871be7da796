//! What a daemon that was killed leaves, and what the next one makes of it.

use crate::bed::{WITHIN, executable};
use longshore_core::id::TaskId;
use longshore_io_tokio::agent_double::Step;
use longshore_io_tokio::plane::{Config, Server, State, TaskSpec};
use longshore_tests::{DaemonUnderTest, Gate, Home, ReservedPort, is_alive, wait_for_end};
use std::fs;

const ENDED: &str = "agents that an earlier daemon left at work were ended";

/// A daemon whose agent is at work.
async fn at_work(plane: &Server, home: &Home) -> (DaemonUnderTest, TaskId) {
    let daemon = home.start();
    plane.wait_for_runtime("claude", WITHIN).await.expect("a runtime");
    let script = [Step::Say("busy".into()), Step::Hang];
    let task = plane.enqueue(TaskSpec::new("claude").script(&script)).expect("it is taken");
    let spoke = |plane: &longshore_core::plane::Plane| (!plane.transcript(&task).is_empty()).then_some(());
    plane.wait_until(WITHIN, spoke).await.expect("the agent speaks");
    (daemon, task)
}

async fn registered_again(plane: &Server) {
    plane
        .wait_for_requests(2, WITHIN, |request| request.is("POST", "/register"))
        .await
        .expect("the second daemon registers");
}

#[tokio::test]
async fn w_1_a_run_goes_on_without_its_daemon_and_is_followed_by_the_next_one() {
    let plane = Server::start(Config::default()).await.expect("a control plane");
    let home = Home::new(executable(), &plane);
    let gate = Gate::new(home.dir().join("gate"));
    let daemon = home.start();
    plane.wait_for_runtime("claude", WITHIN).await.expect("a runtime");
    let script =
        [Step::Say("before".into()), gate.wait(), Step::Say("after".into()), Step::Result("done".into())];
    let task = plane.enqueue(TaskSpec::new("claude").script(&script)).expect("it is taken");
    let said = |plane: &longshore_core::plane::Plane| (!plane.transcript(&task).is_empty()).then_some(());
    plane.wait_until(WITHIN, said).await.expect("it speaks");
    let agents = home.processes_of(&task);
    drop(daemon);
    assert!(agents.iter().any(|agent| is_alive(*agent)), "the agent outlives a kill of its daemon");

    let next = home.start();
    registered_again(&plane).await;
    let _open = gate.open();
    plane.wait_for(&task, State::Completed, WITHIN).await.expect("it completes");
    let transcript = plane.transcript(&task);
    let all: Vec<_> = transcript.iter().map(|m| (m.seq, m.content.as_deref().unwrap_or_default())).collect();
    assert_eq!(all, [(1, "before"), (2, "after")]);
    let ended = next.stop().await;
    assert!(ended.status.success(), "{}", ended.log);
    for dir in ["runs", "ledger"] {
        assert_eq!(fs::read_dir(home.state_dir().join(dir)).map_or(0, Iterator::count), 0, "{dir}");
    }
    assert_eq!(fs::read_dir(home.temp_base()).expect("there").count(), 0);
    for agent in agents {
        assert!(wait_for_end(agent, WITHIN).await);
    }
}

#[tokio::test]
async fn agents_of_a_daemon_that_lives_are_not_touched_by_another_one_of_its_profile() {
    // Found by a second daemon on another port: it took the agents of the first one for leftovers.
    let plane = Server::start(Config::default()).await.expect("a control plane");
    let home = Home::new(executable(), &plane);
    let (daemon, _task) = at_work(&plane, &home).await;
    let port = ReservedPort::new();
    // With an id of its own, as otherwise it would not start.
    let home = home.env("MULTICA_DAEMON_HEALTH_PORT", port.port().to_string()).flag("--daemon-id=another");
    let second = home.start();
    registered_again(&plane).await;
    assert!(!second.log().contains(ENDED), "{}", second.log());
    for daemon in [&second, &daemon] {
        assert!(daemon.stop().await.status.success(), "{}", daemon.log());
    }
}

#[tokio::test]
async fn what_a_program_leaves_that_was_asked_for_its_version_does_not_outlive_a_killed_daemon_for_long() {
    let plane = Server::start(Config::default()).await.expect("a control plane");
    let home = Home::new(executable(), &plane);
    let double = home.double();
    let started = home.dir().join("started");
    // The shell goes on once the process leads its session: until then it ends with those that were asked.
    let leads = "$(setsid sh -c 'echo $$; exec sleep 600 >/dev/null 2>&1' &)";
    let escapes = format!("echo {leads} >>'{}'", started.display());
    home.install("claude", &format!("case $* in *--version*) {escapes} ;; esac\n{double}"));
    let daemon = home.start();
    plane.wait_for_runtime("claude", WITHIN).await.expect("a runtime");
    let started = fs::read_to_string(&started).expect("it was asked");
    let escaped: i32 = started.lines().next().expect("a process").parse().expect("a number");
    daemon.kill().await;
    assert!(is_alive(escaped), "it leads a session of its own");

    let next = home.start();
    registered_again(&plane).await;
    assert!(wait_for_end(escaped, WITHIN).await, "{}", next.log());
    let ended = next.stop().await;
    assert!(ended.status.success() && ended.log.contains("had asked for a version"), "{}", ended.log);
    assert_eq!(home.processes(), [0; 0], "an orderly end leaves nothing of that kind");
}

#[tokio::test]
async fn what_is_no_file_among_the_runs_of_an_earlier_daemon_keeps_no_daemon_from_its_work() {
    let plane = Server::start(Config::default()).await.expect("a control plane");
    let home = Home::new(executable(), &plane);
    let runs = home.state_dir().join("runs");
    for name in ["status.json", "owner.json", "alive", "exit.json", "stdout"] {
        let run = runs.join(name.replace('.', "-"));
        fs::create_dir_all(&run).expect("made");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            run.join(name),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .expect("made");
        // As if a daemon of long ago had made it.
        let old = std::time::SystemTime::now() - std::time::Duration::from_hours(24);
        fs::File::open(&run).and_then(|run| run.set_modified(old)).expect("set");
    }
    let daemon = home.start();
    plane.wait_for_runtime("claude", WITHIN).await.expect("a runtime");
    let task = plane.enqueue(TaskSpec::new("claude")).expect("it is taken");
    plane.wait_for(&task, State::Completed, WITHIN).await.expect("it completes");
    let ended = daemon.stop().await;
    assert!(ended.status.success() && ended.log.contains("cannot be read"), "{}", ended.log);
    assert_eq!(fs::read_dir(&runs).map_or(0, Iterator::count), 0, "nothing of them is left");
}
