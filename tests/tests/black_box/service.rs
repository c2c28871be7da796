//! The daemon as a service: its start, its local port, its end.

use crate::bed::{Bed, WITHIN, executable};
use longshore_io_tokio::agent_double::Step;
use longshore_io_tokio::plane::{Action, Config, Rule, Server, TaskSpec};
use longshore_tests::{Ended, Home};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// One request to the daemon's local port: the status line's code and the body.
pub(crate) async fn local(home: &Home, method: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, home.health_port())).await.expect("it listens");
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        home.health_port()
    );
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    tokio::time::timeout(WITHIN, stream.read_to_string(&mut answer)).await.expect("in time").expect("read");
    let (head, body) = answer.split_once("\r\n\r\n").expect("an HTTP answer");
    (head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status"), body.to_owned())
}

#[tokio::test]
async fn health_tells_who_and_what_is_there_and_a_shutdown_can_be_asked_for() {
    let bed = Bed::new().await;
    bed.linked().await;
    let hold = bed.fault("complete", |path| Rule::new("POST", &path, Action::Hold));
    let task = bed.enqueue(TaskSpec::new("claude"));
    hold.reached(1).await;
    let (status, body) = local(&bed.home, "GET", "/health").await;
    let health: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!((status, &health["status"], &health["state"]), (200, &json!("running"), &json!("running")));
    assert_eq!(health["pid"], bed.daemon.id());
    assert_eq!(health["agents"], json!(["claude"]));
    assert_eq!(health["active_task_count"], 1);
    let runtime = bed.runtime("claude").await;
    assert_eq!(health["workspaces"], json!([{ "id": "ws-1", "runtimes": [runtime.as_str()] }]));
    hold.release();
    bed.completed(&task).await;

    let (status, _) = local(&bed.home, "POST", "/shutdown").await;
    assert_eq!(status, 200);
    let ended = bed.daemon.ended().await;
    assert!(ended.status.success(), "{}", ended.log);
    assert_eq!(bed.plane.requests_where(|request| request.is("POST", "/deregister")).len(), 1);
}

#[tokio::test]
async fn a_stop_ends_runs_and_reports_them_as_to_be_tried_again() {
    let bed = Bed::new().await;
    let task = bed.enqueue(TaskSpec::new("claude").script(&[Step::Say("busy".into()), Step::Hang]));
    bed.spoke(&task).await;
    let ended = bed.daemon.stop().await;
    assert!(ended.status.success(), "{}", ended.log);
    assert_eq!(bed.plane.task(&task).expect("there").failure_reason.as_deref(), Some("runtime_offline"));
    assert!(bed.home.processes_of(&task).is_empty());
    assert_eq!(bed.calls(&task, "fail").len(), 1);
}

#[tokio::test]
async fn a_second_signal_hurries() {
    let bed = Bed::new().await;
    let hold = bed.fault("fail", |path| Rule::new("POST", &path, Action::Hold));
    let task = bed.enqueue(TaskSpec::new("claude").script(&[Step::Say("busy".into()), Step::Hang]));
    bed.spoke(&task).await;
    bed.daemon.terminate();
    hold.reached(1).await;
    let begun = Instant::now();
    bed.daemon.terminate();
    let ended = bed.daemon.ended().await;
    assert!(begun.elapsed() < Duration::from_secs(5), "the first signal alone would wait for 30 s");
    assert!(ended.status.success());
    assert!(ended.log.contains("could not be reported"), "what is left open is said: {}", ended.log);
    hold.release();
}

/// What a daemon says that does not come to work.
async fn refused(furnish: impl FnOnce(Home) -> Home) -> Ended {
    let plane = Server::start(Config::default()).await.expect("a control plane");
    let home = furnish(Home::new(executable(), &plane));
    let ended = home.start().ended().await;
    assert_eq!(ended.status.code(), Some(1), "{}", ended.log);
    assert!(plane.runtimes().is_empty());
    ended
}

#[tokio::test]
async fn a_missing_token_is_named_with_its_file_and_what_to_do() {
    let mut file = String::new();
    let ended = refused(|home| {
        file = home.config_file().display().to_string();
        home.config("token", Value::Null)
    })
    .await;
    assert!(ended.log.contains(&file) && ended.log.contains("multica login"), "{}", ended.log);
}

#[tokio::test]
async fn a_bad_value_is_named_with_its_place() {
    let of_env = refused(|home| home.env("MULTICA_DAEMON_POLL_INTERVAL", "soon")).await.log;
    assert!(of_env.contains("MULTICA_DAEMON_POLL_INTERVAL") && of_env.contains("soon"), "{of_env}");
    let of_flag = refused(|home| home.flag("--claim-mode=never")).await.log;
    assert!(of_flag.contains("--claim-mode") && of_flag.contains("never"), "{of_flag}");
    let mut file = String::new();
    let of_file = refused(|home| {
        file = home.config_file().display().to_string();
        home.config("heartbeat_interval", json!("-1s"))
    })
    .await
    .log;
    assert!(of_file.contains(&file) && of_file.contains("heartbeat_interval"), "{of_file}");
    for text in [of_env, of_flag, of_file] {
        assert_eq!(text.lines().count(), 1, "one line for people: {text}");
    }
}

#[tokio::test]
async fn a_port_in_use_is_named_before_the_server_is_contacted() {
    let squatter = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = squatter.local_addr().expect("bound").port().to_string();
    let plane = Server::start(Config::default()).await.expect("a control plane");
    let home = Home::new(executable(), &plane).env("MULTICA_DAEMON_HEALTH_PORT", port.clone());
    let ended = home.start().ended().await;
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.log.contains(&port) && ended.log.contains("in use"), "{}", ended.log);
    assert!(plane.requests().is_empty());
}

#[tokio::test]
async fn a_refused_credential_at_the_start_ends_the_daemon_with_a_hint() {
    let ended = refused(|home| home.config("token", json!("mul_of_somebody_else"))).await;
    assert!(ended.log.contains("multica login"), "{}", ended.log);
    assert!(!ended.log.contains("mul_of_somebody_else"));
}

#[tokio::test]
async fn a_machine_without_agents_is_told_what_to_install() {
    let ended =
        refused(|home| home.env("MULTICA_CLAUDE_PATH", "/missing/claude").env("PATH", "/usr/bin:/bin")).await;
    assert!(
        ended.log.contains("/missing/claude") && ended.log.contains("MULTICA_CLAUDE_PATH"),
        "{}",
        ended.log
    );
}

#[tokio::test]
async fn a_server_that_restarts_finds_the_daemon_again() {
    let bed = Bed::new().await;
    bed.linked().await;
    bed.plane.pause().await;
    bed.plane.resume().await;
    let task = bed.enqueue(TaskSpec::new("claude"));
    bed.completed(&task).await;
}

#[tokio::test]
async fn a_terminal_that_is_closed_is_a_stop() {
    // Found by a look at all signals: the daemon died of SIGHUP at once, and its agents worked on for nobody.
    let bed = Bed::new().await;
    let task = bed.enqueue(TaskSpec::new("claude").script(&[Step::Say("busy".into()), Step::Hang]));
    bed.spoke(&task).await;
    let ignored = bed.daemon.ignores_hang_up();
    bed.daemon.hang_up();
    if ignored {
        // These tests run under `nohup`, and so does the daemon: it works on.
        let next = bed.enqueue(TaskSpec::new("claude").script(&[Step::Result("still here".into())]));
        bed.completed(&next).await;
        bed.daemon.terminate();
    }
    let ended = bed.daemon.ended().await;
    assert!(ended.status.success(), "{}", ended.log);
    assert_eq!(bed.plane.task(&task).expect("there").failure_reason.as_deref(), Some("runtime_offline"));
    assert!(bed.home.processes_of(&task).is_empty());
}
