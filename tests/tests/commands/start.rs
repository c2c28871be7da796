//! A start in the background.

use crate::bed::{Bed, Bystander, refused, succeeded};
use longshore_io_tokio::plane::{Action, Rule};
use longshore_tests::{is_alive, wait_for_end};
use rustix::process::{Pid, Signal, getsid, kill_process};
use serde_json::json;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;

#[tokio::test]
async fn cli_63_67_a_start_is_over_when_the_daemon_is_up_and_leaves_it_on_its_own() {
    let bed = Bed::new().await;
    let said = bed.home.run(&["daemon", "start"]).await;
    succeeded(&said);
    assert_eq!(said.out, "");
    let health = bed.status().await;
    assert_eq!((&health["status"], &health["state"]), (&json!("running"), &json!("running")));
    let pid = bed.pid().await;
    let log = bed.file("daemon.log");
    let version = health["cli_version"].as_str().expect("a version");
    for part in [&pid.to_string(), version, &log.display().to_string()] {
        assert!(said.err.contains(part), "{part} in {}", said.err);
    }
    assert_eq!(bed.pid_file(), Some(pid.to_string()));
    let session = getsid(Pid::from_raw(pid)).expect("it lives").as_raw_nonzero().get();
    assert_eq!(session, pid, "it leads a session of its own");
    let descriptor = |n: u8| fs::read_link(format!("/proc/{pid}/fd/{n}")).expect("open");
    assert_eq!(descriptor(0).to_str(), Some("/dev/null"));
    assert_eq!((descriptor(1), descriptor(2)), (bed.file("daemon.err.log"), bed.file("daemon.err.log")));
    assert_eq!(fs::read_link(format!("/proc/{pid}/cwd")).expect("there").to_str(), Some("/"));
    assert!(fs::read_to_string(&log).expect("a log").contains("ready"));
    assert_eq!(fs::metadata(&log).expect("there").permissions().mode() & 0o777, 0o600);

    let again = bed.home.run(&["daemon", "start"]).await;
    let line = refused(&again);
    assert!(line.contains("already running") && line.contains(&pid.to_string()), "{line}");

    succeeded(&bed.home.run(&["daemon", "stop"]).await);
    assert!(!is_alive(pid) && bed.is_port_free());
    assert_eq!(bed.pid_file(), None);
    assert_eq!(fs::read_to_string(bed.file("daemon.err.log")).expect("there"), "");
}

#[tokio::test]
async fn cli_61_without_a_token_nothing_is_started() {
    let bed = Bed::with(|home| home.config("token", json!(null))).await;
    let said = bed.home.run(&["daemon", "start"]).await;
    assert!(refused(&said).contains("multica login"), "{said:?}");
    assert!(!bed.file("daemon.err.log").exists());
}

#[tokio::test]
async fn cli_64_a_credential_that_the_server_refuses_is_told_at_once() {
    let bed = Bed::with(|home| home.config("token", json!("mul_of_somebody_else"))).await;
    let said = bed.home.run(&["daemon", "start"]).await;
    assert!(refused(&said).contains("multica login") && !said.err.contains("mul_of_somebody"), "{said:?}");
    assert!(bed.home.processes().is_empty() && bed.pid_file().is_none());
}

#[tokio::test]
async fn cli_64_a_credential_that_is_refused_later_is_told_by_the_daemon() {
    // The first look succeeds, so that the new process meets it.
    let bed = Bed::new().await;
    let _late =
        bed.plane.fault(Rule::new("GET", "/api/daemon/workspaces", Action::error(401, "unauthorized")));
    let said = bed.home.run(&["daemon", "start"]).await;
    let line = refused(&said);
    assert!(line.contains("multica login") && line.contains("daemon.log"), "{line}");
    assert!(bed.home.processes().is_empty() && bed.pid_file().is_none());
}

#[tokio::test]
async fn cli_65_a_server_that_is_not_there_is_named() {
    // Nobody listens at a port that is only kept.
    let nobody = longshore_tests::ReservedPort::new();
    let url = format!("http://127.0.0.1:{}", nobody.port());
    let bed = Bed::new().await;
    let said = bed.home.run(&["daemon", "start", "--server-url", &url]).await;
    assert!(refused(&said).contains(&url), "{said:?}");
    assert!(bed.home.processes().is_empty());
}

#[tokio::test]
async fn a_machine_without_agents_is_told_what_to_install() {
    let bed = Bed::with(|home| home.env("MULTICA_CLAUDE_PATH", "/missing/claude")).await;
    let said = bed.home.run(&["daemon", "start"]).await;
    let line = refused(&said);
    assert!(line.contains("/missing/claude") && line.contains("MULTICA_CLAUDE_PATH"), "{line}");
    assert!(bed.home.processes().is_empty() && bed.pid_file().is_none());
}

#[tokio::test]
async fn a_bad_value_is_named_before_anything_is_started() {
    let bed = Bed::new().await;
    let said = bed.home.run(&["daemon", "start", "--poll-interval", "soon"]).await;
    assert!(refused(&said).contains("--poll-interval"), "{said:?}");
    assert!(bed.plane.requests().is_empty() && !bed.file("daemon.err.log").exists());
}

#[tokio::test]
async fn cli_31_a_port_that_something_else_has_is_told_by_the_daemon() {
    let squatter = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = squatter.local_addr().expect("bound").port().to_string();
    let bed = Bed::with(|home| home.env("MULTICA_DAEMON_HEALTH_PORT", &port)).await;
    let said = bed.home.run(&["daemon", "start"]).await;
    let line = refused(&said);
    assert!(line.contains(&port) && line.contains("in use"), "{line}");
    assert!(bed.home.processes().is_empty() && bed.pid_file().is_none());
}

#[tokio::test]
async fn cli_62_a_daemon_of_another_profile_at_the_port_is_named() {
    let bed = Bed::with(|home| home.flag("--profile=other")).await;
    let other = bed.file("profiles/other");
    fs::create_dir_all(&other).expect("a directory");
    fs::copy(bed.home.config_file(), other.join("config.json")).expect("copied");
    let daemon = bed.daemon().await;
    let said = bed.home.run(&["daemon", "start"]).await;
    let line = refused(&said);
    let port = bed.home.health_port().to_string();
    assert!(["default", "other", port.as_str()].iter().all(|part| line.contains(part)), "{line}");
    for command in ["stop", "restart"] {
        assert!(refused(&bed.home.run(&["daemon", command]).await).contains("other"), "{command}");
    }
    let json = bed.status().await;
    assert_eq!(json["port_conflict"], json!({ "port": bed.home.health_port(), "profile": "other" }));
    assert!(is_alive(daemon.id()));
    assert!(daemon.stop().await.status.success());
}

#[tokio::test]
async fn cli_64_a_daemon_that_dies_without_a_word_is_told_with_its_signal() {
    let bed = Bed::new().await;
    let hold = bed.plane.fault(Rule::new("POST", "/api/daemon/register", Action::Hold));
    let mut start = bed.home.begin(&["daemon", "start"]);
    hold.reached(1).await;
    let pid = bed.pid().await;
    let again = bed.home.run(&["daemon", "start"]).await;
    assert!(refused(&again).contains("starting"), "{again:?}");
    kill_process(Pid::from_raw(pid).expect("a process"), Signal::KILL).expect("killed");
    start.says("signal 9").await;
    let said = start.ended().await;
    assert!(refused(&said).contains("daemon.err.log"), "{said:?}");
}

#[tokio::test]
async fn cli_128_a_stale_pid_file_is_no_obstacle_and_its_process_no_target() {
    let bed = Bed::new().await;
    let mut bystander = Bystander::new();
    fs::write(bed.file("daemon.pid"), bystander.id().to_string()).expect("written");
    let nothing = bed.home.run(&["daemon", "stop"]).await;
    succeeded(&nothing);
    assert!(nothing.err.contains("not running"), "{nothing:?}");
    succeeded(&bed.home.run(&["daemon", "start"]).await);
    let pid = bed.pid().await;
    assert_eq!(bed.pid_file(), Some(pid.to_string()));
    // While it runs the file may say anything as well.
    fs::write(bed.file("daemon.pid"), bystander.id().to_string()).expect("written");
    succeeded(&bed.home.run(&["daemon", "stop"]).await);
    assert!(wait_for_end(pid, crate::bed::WITHIN).await);
    assert!(bystander.is_alive());
}

#[tokio::test]
#[ignore = "takes longer: a start is waited for for 45 s"]
async fn cli_66_a_start_that_takes_its_time_is_no_failure() {
    let bed = Bed::new().await;
    let hold = bed.plane.fault(Rule::new("GET", "/api/daemon/workspaces", Action::Hold));
    let said = bed.home.run(&["daemon", "start"]).await;
    succeeded(&said);
    assert!(said.err.contains("still starting"), "{said:?}");
    let pid = bed.pid().await;
    assert!(said.err.contains(&pid.to_string()), "{said:?}");
    hold.release();
    succeeded(&bed.home.run(&["daemon", "stop"]).await);
    assert!(!is_alive(pid));
}
