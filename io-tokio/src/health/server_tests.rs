use super::super::connection::{HEAD_LIMIT, MAX_WAITING};
use super::super::report::DaemonState;
use super::*;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Far more than an answer takes, so that a hang fails the test.
const PATIENCE: Duration = Duration::from_secs(20);

struct Running {
    port: u16,
    snapshots: watch::Sender<HealthSnapshot>,
    shutdowns: mpsc::Receiver<ShutdownRequest>,
    server: JoinHandle<io::Result<()>>,
}

fn start() -> Running {
    start_with(None)
}

fn start_with(recorder: Option<Tap>) -> Running {
    let listener = HealthListener::bind(0).expect("a free port");
    let port = listener.port();
    let (snapshots, seen) = watch::channel(HealthSnapshot::default());
    let (wishes, shutdowns) = mpsc::channel(4);
    let identity = HealthIdentity { daemon_id: "d-1".into(), ..HealthIdentity::default() };
    let server = tokio::spawn(listener.serve(identity, Arc::new(Clock::start()), seen, recorder, wishes));
    Running { port, snapshots, shutdowns, server }
}

impl Running {
    /// Sends a text as it is, and reads until the server closes.
    async fn send(&self, request: &str) -> String {
        let exchange = async {
            let mut tcp = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await.expect("connected");
            let _ = tcp.write_all(request.as_bytes()).await;
            let mut answer = Vec::new();
            let _ = tcp.read_to_end(&mut answer).await;
            String::from_utf8(answer).expect("UTF-8")
        };
        timeout(PATIENCE, exchange).await.expect("an answer in time")
    }

    async fn ask(&self, line: &str, headers: &str) -> String {
        self.send(&format!("{line} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n{headers}\r\n", self.port)).await
    }
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("none")
}

#[tokio::test]
async fn health_shows_the_newest_snapshot() {
    let running = start();
    let first = running.ask("GET /health", "").await;
    assert_eq!(status(&first), "200");
    assert!(first.contains("content-type: application/json\r\n"), "{first}");
    assert!(first.contains("\"status\":\"starting\"") && first.contains("\"daemon_id\":\"d-1\""), "{first}");
    assert!(first.ends_with("}\n"), "{first}");
    running.snapshots.send_modify(|now| {
        now.state = DaemonState::Running;
        (now.active_task_count, now.running_task_count, now.resource_wait_task_count) = (2, 1, 1);
    });
    let second = running.ask("POST /health", "content-length: 0\r\n").await;
    assert!(second.contains("\"status\":\"running\""), "{second}");
    let counts = "\"active_task_count\":2,\"running_task_count\":1,\"resource_wait_task_count\":1";
    assert!(second.contains(counts), "{second}");
    assert_eq!(status(&running.ask("HEAD /health", "").await), "200");
}

#[tokio::test]
async fn inv_02_nothing_is_answered_before_the_daemon_serves() {
    let listener = HealthListener::bind(0).expect("a free port");
    let mut tcp = TcpStream::connect((Ipv4Addr::LOCALHOST, listener.port())).await.expect("connected");
    tcp.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("sent");
    let mut answer = Vec::new();
    assert!(timeout(Duration::from_millis(100), tcp.read_to_end(&mut answer)).await.is_err());
    let (_snapshots, seen) = watch::channel(HealthSnapshot::default());
    let (wishes, _shutdowns) = mpsc::channel(1);
    tokio::spawn(listener.serve(HealthIdentity::default(), Arc::new(Clock::start()), seen, None, wishes));
    timeout(PATIENCE, tcp.read_to_end(&mut answer)).await.expect("in time").expect("answered");
    assert!(answer.starts_with(b"HTTP/1.1 200"));
}

#[tokio::test]
async fn cli_38_shutdown_is_answered_in_full_and_then_told() {
    let mut running = start();
    assert_eq!(status(&running.ask("GET /shutdown", "").await), "405");
    assert!(running.shutdowns.try_recv().is_err());
    let answer = running.ask("POST /shutdown", "content-length: 0\r\n").await;
    assert_eq!(status(&answer), "200");
    assert!(answer.ends_with("{\"status\":\"shutting down\"}\n"), "{answer}");
    let told = timeout(PATIENCE, running.shutdowns.recv()).await.expect("in time");
    assert_eq!(told, Some(ShutdownRequest { how: StopKind::Now }));
    running.ask("POST /shutdown", "content-length: 0\r\n").await;
    assert!(timeout(PATIENCE, running.shutdowns.recv()).await.expect("in time").is_some());
}

#[tokio::test]
async fn cli_81_the_kind_of_stop_can_be_said() {
    let drain = |within_ms| StopKind::Drain { within_ms };
    for (query, want) in [
        ("how=stop", StopKind::Now),
        ("other=1", StopKind::Now),
        ("how=restart", StopKind::Restart),
        ("how=drain", drain(None)),
        ("how=drain&within=1m30s", drain(Some(90_000))),
    ] {
        let mut running = start();
        let answer = running.ask(&format!("POST /shutdown?{query}"), "content-length: 0\r\n").await;
        assert_eq!(status(&answer), "200", "{query}: {answer}");
        let told = timeout(PATIENCE, running.shutdowns.recv()).await.expect("in time");
        assert_eq!(told, Some(ShutdownRequest { how: want }), "{query}");
    }
    let mut running = start();
    for query in
        ["how=now", "how=drain&within=soon", "how=drain&within=-1s", "within=1m", "how=stop&within=1m"]
    {
        let answer = running.ask(&format!("POST /shutdown?{query}"), "content-length: 0\r\n").await;
        assert_eq!(status(&answer), "400", "{query}: {answer}");
    }
    assert!(running.shutdowns.try_recv().is_err(), "the daemon goes on");
}

#[tokio::test]
async fn cli_81_a_second_drain_does_not_hurry_the_first() {
    let mut running = start();
    let post = async |path: &str| running.ask(&format!("POST {path}"), "content-length: 0\r\n").await;
    for path in ["/shutdown?how=drain", "/shutdown?how=drain", "/shutdown?how=restart", "/shutdown"] {
        assert_eq!(status(&post(path).await), "200", "{path}");
    }
    let mut told = Vec::new();
    for _ in 0..2 {
        let next = timeout(PATIENCE, running.shutdowns.recv()).await.expect("in time");
        told.push(next.expect("it is served").how);
    }
    assert_eq!(told, [StopKind::Drain { within_ms: None }, StopKind::Now]);
    assert!(running.shutdowns.try_recv().is_err());
}

#[tokio::test]
async fn cli_39_42_pages_get_nothing() {
    let mut running = start();
    for headers in ["Origin: http://evil.example\r\n", "Sec-Fetch-Site: cross-site\r\n"] {
        for line in ["GET /health", "POST /shutdown", "GET /other"] {
            let answer = running.ask(line, headers).await;
            assert_eq!(status(&answer), "403", "{line} {headers}");
            assert!(!answer.to_ascii_lowercase().contains("access-control"), "{answer}");
        }
    }
    let rebound = running.send("POST /shutdown HTTP/1.1\r\nHost: evil.example\r\n\r\n").await;
    assert_eq!(status(&rebound), "403");
    assert!(!status(&running.ask("OPTIONS /health", "").await).starts_with('2'));
    assert!(running.shutdowns.try_recv().is_err(), "the daemon goes on");
    assert_eq!(status(&running.ask("GET /health", "").await), "200");
}

#[tokio::test]
async fn errors_are_plain_lines() {
    let running = start();
    let answer = running.ask("GET /nothing", "").await;
    assert_eq!(status(&answer), "404");
    assert!(answer.contains("content-type: text/plain; charset=utf-8\r\n"), "{answer}");
    assert!(answer.contains("x-content-type-options: nosniff\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\nnot found\n"), "{answer}");
}

#[tokio::test]
async fn cli_41_silent_connections_do_not_stall_health() {
    let running = start();
    let mut silent = Vec::new();
    for _ in 0..MAX_WAITING * 3 {
        silent.push(TcpStream::connect((Ipv4Addr::LOCALHOST, running.port)).await.expect("connected"));
    }
    assert_eq!(status(&running.ask("GET /health", "").await), "200");
    let mut oldest = silent.swap_remove(0);
    let closed = timeout(PATIENCE, oldest.read(&mut [0; 16])).await.expect("closed in time");
    assert!(matches!(closed, Ok(0) | Err(_)), "{closed:?}");
}

#[tokio::test]
async fn cli_41_a_head_without_end_is_cut_off() {
    let running = start();
    let padding = format!("X-Padding: {}\r\n", "x".repeat(HEAD_LIMIT * 8));
    let answer = running.ask("GET /health", &padding).await;
    assert!(!status(&answer).starts_with('2'), "{answer}");
    assert_eq!(status(&running.ask("GET /health", "").await), "200");
}

#[tokio::test]
async fn cli_41_a_slow_head_is_cut_off() {
    let running = start();
    // No blank line follows, so the request never begins.
    let answer = running.send(&format!("GET /health HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n", running.port)).await;
    assert!(!status(&answer).starts_with('2'), "{answer}");
}

#[tokio::test]
async fn the_server_ends_with_its_daemon() {
    let Running { snapshots, server, .. } = start();
    drop(snapshots);
    timeout(PATIENCE, server).await.expect("in time").expect("no panic").expect("no error");
}

#[tokio::test]
async fn cli_31_a_second_daemon_is_told_who_has_the_port() {
    let first = HealthListener::bind(0).expect("a free port");
    let error = HealthListener::bind(first.port()).expect_err("in use").to_string();
    assert!(error.contains("already in use") && error.contains("--health-port"), "{error}");
    assert!(error.contains(&first.port().to_string()), "{error}");
    if cfg!(target_os = "linux") {
        let me = rustix::process::geteuid().as_raw();
        assert!(error.contains(&format!("user id {me}")), "{error}");
    }
}

#[tokio::test]
async fn the_trace_is_given_up_to_the_last_step() {
    use crate::trace_sink::tests::life::Life;
    use crate::trace_sink::tests::{header, record};
    use crate::trace_sink::{MIN_BUDGET, Sink};
    use longshore_core::trace::{Mode, Reader, Replay};
    let dir = tempfile::tempdir().expect("a directory");
    let mut life = Life::new(2);
    let first = life.fx.as_slice();
    let mut sink = Sink::flight(dir.path(), MIN_BUDGET, header(&life), first).expect("a recorder");
    record(&mut sink, &mut life, 20);
    let running = start_with(sink.tap());
    // An answer of HTTP/1.0 is the body as it is, up to the end of the connection.
    let answer = running.send("GET /trace HTTP/1.0\r\nHost: localhost\r\n\r\n").await;
    assert_eq!(status(&answer), "200", "{answer}");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.contains("content-type: application/x-ndjson"), "{head}");
    let report =
        Replay::new(Mode::Strict).run(Reader::new(body.as_bytes()).expect("a trace")).expect("replays");
    assert_eq!((report.steps, report.compared), (21, 21));
    assert_eq!(status(&running.ask("GET /trace", "Origin: http://evil.example\r\n").await), "403");
    assert_eq!(status(&running.ask("POST /trace", "content-length: 0\r\n").await), "405");

    sink.close("stopped", &life.daemon);
    let closed = running.ask("GET /trace", "").await;
    assert!(status(&closed) == "500" && closed.contains("see the log"), "{closed}");
    let none = start().ask("GET /trace", "").await;
    assert!(status(&none) == "404" && none.contains("no flight recorder"), "{none}");
}

/// Asks as a user who is neither root nor the owner of the server. Only root can.
#[cfg(target_os = "linux")]
fn ask_as_another_user(port: u16, line: &str) -> String {
    use nix::unistd::{Uid, setfsuid};
    use std::io::{Read as _, Write as _};
    const NOBODY: u32 = 65534;
    // It is of the thread alone, and new sockets belong to it.
    setfsuid(Uid::from_raw(NOBODY));
    assert_eq!(setfsuid(Uid::from_raw(NOBODY)).as_raw(), NOBODY, "root can be anybody");
    let mut tcp = std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("connected");
    tcp.set_read_timeout(Some(PATIENCE)).expect("set");
    let length = if line.starts_with("POST") { "Content-Length: 0\r\n" } else { "" };
    tcp.write_all(format!("{line} HTTP/1.1\r\nHost: localhost\r\n{length}\r\n").as_bytes()).expect("sent");
    let mut answer = String::new();
    tcp.read_to_string(&mut answer).expect("answered");
    answer
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn another_user_gets_health_and_nothing_else() {
    use crate::trace_sink::tests::life::Life;
    use crate::trace_sink::tests::{header, record};
    use crate::trace_sink::{MIN_BUDGET, Sink};
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can be another user; how it is decided has a test of its own");
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let mut life = Life::new(2);
    let mut sink =
        Sink::flight(dir.path(), MIN_BUDGET, header(&life), life.fx.as_slice()).expect("a recorder");
    record(&mut sink, &mut life, 5);
    let mut running = start_with(sink.tap());
    let port = running.port;
    let ask = |line: &'static str| {
        let asked = std::thread::spawn(move || ask_as_another_user(port, line));
        async move { tokio::task::spawn_blocking(|| asked.join()).await.expect("no panic").expect("no panic") }
    };
    assert_eq!(status(&ask("GET /health").await), "200");
    for line in ["GET /trace", "HEAD /trace", "POST /shutdown", "POST /shutdown?how=drain"] {
        let answer = ask(line).await;
        assert_eq!(status(&answer), "403", "{line}: {answer}");
        assert!(!answer.contains("\"rec\""), "{line}: {answer}");
        assert!(line.starts_with("HEAD") || answer.contains("belongs to another user"), "{line}: {answer}");
    }
    assert!(running.shutdowns.try_recv().is_err());
    assert_eq!(status(&running.ask("GET /trace", "").await), "200", "its owner has it");
    sink.close("stopped", &life.daemon);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_request_of_somebody_who_has_gone_stops_nothing() {
    let listener = HealthListener::bind(0).expect("a free port");
    let mut tcp = TcpStream::connect((Ipv4Addr::LOCALHOST, listener.port())).await.expect("connected");
    let request = "POST /shutdown HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";
    tcp.write_all(request.as_bytes()).await.expect("sent");
    drop(tcp);
    let (_snapshots, seen) = watch::channel(HealthSnapshot::default());
    let (wishes, mut shutdowns) = mpsc::channel(1);
    let port = listener.port();
    tokio::spawn(listener.serve(HealthIdentity::default(), Arc::new(Clock::start()), seen, None, wishes));
    // Connections are taken in their order, and the wish of one that has gone is told when it ends.
    let mut next = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.expect("connected");
    next.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    timeout(PATIENCE, next.read_to_string(&mut answer)).await.expect("in time").expect("answered");
    assert_eq!(status(&answer), "200", "{answer}");
    assert!(timeout(PATIENCE, shutdowns.recv()).await.expect("in time").is_some());
    assert!(shutdowns.try_recv().is_err(), "one of two");
}
