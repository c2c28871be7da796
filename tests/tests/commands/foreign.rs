//! A daemon that is another program: what it is asked, and what is not done to it.

use crate::bed::{Bed, Bystander, refused, succeeded};
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::routing::{get, post};
use longshore_tests::is_alive;
use rustix::process::{Pid, Signal, kill_process};
use std::net::Ipv4Addr;
use std::os::unix::process::ExitStatusExt;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;

/// What it was asked, and its end.
type Shared = (Arc<Mutex<Vec<String>>>, Arc<Notify>);

/// Answers as a daemon that knows nothing of longshore, with the id of a process that is none.
struct Foreign {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
    bystander: Bystander,
}

impl Foreign {
    /// One that answers a request to stop with `status`, and goes if that is a success. It says that it is the bystander.
    async fn new(status: StatusCode) -> Self {
        let bystander = Bystander::new();
        let id = format!(r#""pid":{}"#, bystander.id());
        Self::saying(&id, bystander, status).await
    }

    /// The same, with these fields about its process.
    async fn saying(process: &str, bystander: Bystander, status: StatusCode) -> Self {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let over = Arc::new(Notify::new());
        let health =
            format!(r#"{{"status":"running",{process},"profile":"","uptime":"1m0s","active_task_count":1}}"#);
        let shutdown = async move |State((asked, over)): State<Shared>, uri: Uri| {
            asked.lock().expect("no panic").push(uri.to_string());
            if status.is_success() {
                over.notify_one();
            }
            (status, "{\"status\":\"shutting down\"}\n")
        };
        let routes = Router::new()
            .route("/health", get(async move || health))
            .route("/shutdown", post(shutdown))
            .with_state((Arc::clone(&asked), Arc::clone(&over)));
        let serve =
            axum::serve(listener, routes).with_graceful_shutdown(async move { over.notified().await });
        tokio::spawn(async move { serve.await });
        Self { port, asked, bystander }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no panic").clone()
    }
}

#[tokio::test]
async fn cli_70_a_daemon_of_another_make_is_asked_as_it_knows_it() {
    let mut foreign = Foreign::new(StatusCode::OK).await;
    let port = foreign.port.to_string();
    let bed = Bed::with(|home| home.env("MULTICA_DAEMON_HEALTH_PORT", &port)).await;
    let drain = bed.home.run(&["daemon", "stop", "--drain"]).await;
    assert!(refused(&drain).contains("cannot let its runs end"), "{drain:?}");
    assert!(foreign.asked().is_empty(), "a request that it does not understand would end its runs");
    let said = bed.home.run(&["daemon", "stop"]).await;
    succeeded(&said);
    assert_eq!(foreign.asked(), ["/shutdown"]);
    assert!(said.err.contains("cannot be told"), "its process is none that is known: {said:?}");
    assert!(foreign.bystander.is_alive());
}

#[tokio::test]
async fn a_dump_where_no_daemon_answers_says_so_in_words_of_its_own() {
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let port = listener.local_addr().expect("bound").port().to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut asked = [0; 512];
            if stream.read(&mut asked).await.is_ok() {
                // Who asks may have gone.
                let _ = stream.write_all(b"no such thing here\n").await;
            }
        }
    });
    let bed = Bed::new().await;
    let said = bed.home.run(&["trace", "dump", "--health-port", &port]).await;
    let told = format!("what listens on port {port} does not answer as a daemon does (");
    assert!(refused(&said).contains(&told) && said.err.contains("there is nothing recorded"), "{said:?}");
    assert!(!said.err.contains("end it yourself"), "nothing is to be ended: {said:?}");
}

#[tokio::test]
async fn cli_71_a_process_is_not_ended_by_its_number_alone() {
    let mut foreign = Foreign::new(StatusCode::INTERNAL_SERVER_ERROR).await;
    let port = foreign.port.to_string();
    let bed = Bed::with(|home| home.env("MULTICA_DAEMON_HEALTH_PORT", &port)).await;
    for command in ["stop", "restart"] {
        let said = bed.home.run(&["daemon", command]).await;
        assert!(refused(&said).contains(&foreign.bystander.id().to_string()), "{said:?}");
    }
    assert_eq!(foreign.asked(), ["/shutdown", "/shutdown"]);
    assert!(foreign.bystander.is_alive());
}

#[tokio::test]
async fn cli_71_a_daemon_that_does_not_take_the_request_is_ended_once_it_is_sure_which_it_is() {
    let bed = Bed::new().await;
    let daemon = bed.daemon().await;
    let health = bed.status().await;
    let (pid, start) = (daemon.id(), health["process_start"].as_u64().expect("Linux tells"));
    let said = async |start: u64| {
        let process = format!(r#""pid":{pid},"process_start":{start}"#);
        let foreign = Foreign::saying(&process, Bystander::new(), StatusCode::INTERNAL_SERVER_ERROR).await;
        bed.home.run(&["daemon", "stop", "--health-port", &foreign.port.to_string()]).await
    };
    let earlier = said(start - 1).await;
    assert!(refused(&earlier).contains(&pid.to_string()), "another had this number: {earlier:?}");
    assert!(is_alive(pid));
    let sure = said(start).await;
    succeeded(&sure);
    assert!(sure.err.contains("SIGTERM") && sure.err.contains("stopped"), "{sure:?}");
    assert!(daemon.ended().await.status.success(), "in good order");
}

#[tokio::test]
#[ignore = "takes longer: the polite signal gets 10 s"]
async fn cli_71_a_daemon_that_takes_no_signal_either_is_killed() {
    let bed = Bed::new().await;
    let daemon = bed.daemon().await;
    let health = bed.status().await;
    let (pid, start) = (daemon.id(), &health["process_start"]);
    let process = format!(r#""pid":{pid},"process_start":{start}"#);
    let foreign = Foreign::saying(&process, Bystander::new(), StatusCode::INTERNAL_SERVER_ERROR).await;
    kill_process(Pid::from_raw(pid).expect("a process"), Signal::STOP).expect("stopped");
    let said = bed.home.run(&["daemon", "stop", "--health-port", &foreign.port.to_string()]).await;
    succeeded(&said);
    assert!(said.err.contains("SIGKILL"), "{said:?}");
    assert_eq!(daemon.ended().await.status.signal(), Some(9));
    assert_eq!(bed.pid_file(), None, "its file goes with it");
}
