//! Links against servers that misbehave.

use super::link::Deadlines;
use super::{DownReason, Link, LinkEvent, MAX_FRAME, MAX_MESSAGE, Recall, SendError, connect};
use crate::http::test_server::{TestServer, client, read_request, reply};
use crate::http::{CallError, RejectKind};
use crate::wire::claim::ClaimRequest;
use crate::wire::frame::{Inbound, Outgoing, RpcRequest};
use crate::wire::heartbeat::HeartbeatRequest;
use futures_util::{SinkExt, StreamExt};
use longshore_core::id::RuntimeId;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(200);
/// Of the pipe between a link and its server.
const PIPE: usize = 1024;

type Socket<S> = WebSocketStream<S>;

fn ids(texts: &[&str]) -> Vec<RuntimeId> {
    texts.iter().copied().map(RuntimeId::from).collect()
}

/// Sends a heartbeat for a runtime of that name.
fn beat(link: &Link, runtime: &str) -> Result<super::FrameTicket, SendError> {
    let runtime_id = &RuntimeId::new(runtime);
    link.send(&Outgoing::Heartbeat(HeartbeatRequest { runtime_id, supports_batch_import: true }))
}

fn beat_text(runtime: &str) -> String {
    format!(
        r#"{{"type":"daemon:heartbeat","payload":{{"runtime_id":"{runtime}","supports_batch_import":true}}}}"#
    )
}

fn ack(runtime: &str) -> Message {
    let payload = format!(r#"{{"runtime_id":"{runtime}","status":"ok","server_capabilities":["rpc-v1"]}}"#);
    Message::text(format!(r#"{{"type":"daemon:heartbeat_ack","payload":{payload}}}"#))
}

async fn text<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin>(socket: &mut Socket<S>) -> String {
    match socket.next().await {
        Some(Ok(Message::Text(text))) => text.to_string(),
        other => panic!("no text: {other:?}"),
    }
}

/// A link over a pipe of [`PIPE`] bytes, with the server's end as it is.
async fn piped(deadlines: Deadlines) -> (Link, DuplexStream) {
    let (ours, theirs) = tokio::io::duplex(PIPE);
    (Link::start(ours, 1, deadlines).await, theirs)
}

async fn server_of(stream: DuplexStream) -> Socket<DuplexStream> {
    WebSocketStream::from_raw_socket(stream, Role::Server, None).await
}

/// A server that does the handshake and then `serve`s; it tells the request line of each.
async fn upgrading<F, Fut>(serve: F) -> (TestServer, mpsc::UnboundedReceiver<String>)
where
    F: Fn(Socket<TcpStream>) -> Fut + Send + Sync + Clone + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let (tell, told) = mpsc::unbounded_channel();
    let server = TestServer::start(move |mut stream, _| {
        let (tell, serve) = (tell.clone(), serve.clone());
        async move {
            let request = read_request(&mut stream).await.expect("a handshake");
            for (name, value) in [("upgrade", "websocket"), ("sec-websocket-version", "13"), ("x-client-platform", "daemon")]
            {
                assert_eq!(request.header(name), Some(value));
            }
            assert!(request.header("authorization").is_some_and(|value| value.starts_with("Bearer ")));
            let accept = derive_accept_key(request.header("sec-websocket-key").expect("a key").as_bytes());
            let head = format!(
                "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).await.expect("written");
            tell.send(request.line).expect("the test listens");
            serve(WebSocketStream::from_raw_socket(stream, Role::Server, None).await).await;
        }
    })
    .await;
    (server, told)
}

#[tokio::test]
async fn a_link_carries_frames_both_ways_until_the_other_side_ends_it() {
    let (server, mut lines) = upgrading(|mut socket| async move {
        assert_eq!(text(&mut socket).await, beat_text("b"));
        socket.send(ack("b")).await.expect("sent");
    })
    .await;
    let mut link = connect(&server.client(), &ids(&["b", "a"]), LONG).await.expect("a link");
    drop(beat(&link, "b").expect("queued"));
    let LinkEvent::Frame(Inbound::HeartbeatAck(ack)) = link.recv().await else { panic!("no ack") };
    assert!(ack.runtime_id == "b" && ack.speaks_rpc());
    assert!(matches!(link.recv().await, LinkEvent::Down(DownReason::Ended)));
    assert!(matches!(link.recv().await, LinkEvent::Down(DownReason::Ended)));
    assert_eq!(beat(&link, "b").expect_err("down"), SendError::Down);
    assert_eq!(lines.recv().await.as_deref(), Some("GET /api/daemon/ws?runtime_ids=a%2Cb HTTP/1.1"));
}

#[tokio::test]
async fn dropping_a_link_closes_the_socket_without_a_close_frame() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let (server, mut lines) = upgrading(move |socket| {
        let tell = tell.clone();
        async move {
            let mut rest = Vec::new();
            let read = socket.into_inner().read_to_end(&mut rest).await;
            tell.send((read.is_ok(), rest)).expect("the test listens");
        }
    })
    .await;
    let client = server.client();
    drop(connect(&client, &[], LONG).await.expect("a link"));
    connect(&client, &[], LONG).await.expect("a link").close().await;
    for _ in 0..2 {
        assert_eq!(told.recv().await, Some((true, Vec::new())));
        assert_eq!(lines.recv().await.as_deref(), Some("GET /api/daemon/ws HTTP/1.1"));
    }
}

#[tokio::test]
async fn a_refused_handshake_is_told_by_its_status_and_words() {
    for (status, body, kind) in [
        (404, r#"{"error":"runtime not found"}"#, RejectKind::RuntimeGone),
        (404, "404 page not found\n", RejectKind::RouteMissing),
        (401, r#"{"error":"invalid token"}"#, RejectKind::Unauthorized),
        (400, r#"{"error":"bad id"}"#, RejectKind::Other),
    ] {
        let server = TestServer::answering(reply(status, "", body)).await;
        let error = connect(&server.client(), &ids(&["r"]), LONG).await.expect_err("refused");
        assert_eq!((error.status(), error.rejected_as()), (Some(status), Some(kind)));
    }
    let server = TestServer::answering(reply(503, "", "")).await;
    let error = connect(&server.client(), &ids(&["r"]), LONG).await.expect_err("refused");
    assert!(matches!(error, CallError::ServerError { status: 503, .. }));
}

#[tokio::test]
async fn what_does_not_speak_websocket_is_undecodable() {
    let wrong =
        "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: AAAA\r\n\r\n";
    for answer in [reply(200, "", "<html>"), wrong.into()] {
        let server = TestServer::answering(answer).await;
        let error = connect(&server.client(), &[], LONG).await.expect_err("no link");
        assert!(matches!(&error, CallError::Undecodable { why, .. } if why.contains("WebSocket")), "{error}");
    }
}

#[tokio::test]
async fn a_dial_that_reaches_nobody_ends() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let client = client(&format!("http://{}", listener.local_addr().expect("an address")));
    let error = connect(&client, &[], SHORT).await.expect_err("silent");
    assert!(matches!(error, CallError::Unknown { .. }), "{error}");
    drop(listener);
    let error = connect(&client, &[], LONG).await.expect_err("refused");
    assert!(matches!(error, CallError::NotSent { .. }), "{error}");
}

#[tokio::test]
async fn more_runtimes_than_a_handshake_can_name_are_refused_here() {
    let many: Vec<RuntimeId> = (0..10_000).map(|n| RuntimeId::new(format!("{n:036}"))).collect();
    let error = connect(&client("http://127.0.0.1:1"), &many, LONG).await.expect_err("too many");
    assert!(matches!(&error, CallError::NotSent { why } if why.contains("10000")), "{error}");
}

#[tokio::test]
async fn inv_46_a_recalled_frame_is_never_written() {
    let (link, theirs) = piped(Deadlines::default()).await;
    let mut server = server_of(theirs).await;
    let first = beat(&link, "first").expect("queued");
    assert_eq!(text(&mut server).await, beat_text("first"));
    assert_eq!(first.recall(), Recall::Begun);

    // Larger than the pipe, so that it is begun and cannot end before somebody reads.
    let large = "x".repeat(10 * PIPE);
    let begun = beat(&link, &large).expect("queued");
    let mut raw = server.into_inner();
    let mut start = [0; 2];
    raw.read_exact(&mut start).await.expect("the start of a frame");
    let recalled = beat(&link, "recalled").expect("queued");
    let kept = beat(&link, "kept").expect("queued");
    assert_eq!((begun.recall(), recalled.recall()), (Recall::Begun, Recall::NotSent));

    // The server reads on, from the start of the frame.
    let mut server = WebSocketStream::from_partially_read(raw, start.to_vec(), Role::Server, None).await;
    assert_eq!(text(&mut server).await, beat_text(&large));
    assert_eq!(text(&mut server).await, beat_text("kept"));
    assert_eq!(kept.recall(), Recall::Begun);
}

#[tokio::test]
async fn inv_65_nothing_that_waits_is_written_after_the_link_is_dropped() {
    let (link, mut theirs) = piped(Deadlines::default()).await;
    let sender = link.sender();
    let begun = beat(&link, &"x".repeat(10 * PIPE)).expect("queued");
    theirs.read_u8().await.expect("the start of a frame");
    let waiting = beat(&link, "waiting").expect("queued");
    link.close().await;
    assert_eq!((begun.recall(), waiting.recall()), (Recall::Begun, Recall::NotSent));
    let late = HeartbeatRequest { runtime_id: &RuntimeId::new("late"), supports_batch_import: true };
    assert_eq!(sender.send(&Outgoing::Heartbeat(late)).expect_err("down"), SendError::Down);
    let mut rest = Vec::new();
    theirs.read_to_end(&mut rest).await.expect("the end");
    assert!(rest.len() < 2 * PIPE, "{}", rest.len());
}

#[tokio::test]
async fn inv_66_the_queue_is_bounded_and_takes_a_round_of_heartbeats() {
    for (runtimes, room) in [(1, 16), (50, 100)] {
        let (ours, mut theirs) = tokio::io::duplex(PIPE);
        let link = Link::start(ours, runtimes, Deadlines::default()).await;
        drop(beat(&link, &"x".repeat(10 * PIPE)).expect("queued"));
        theirs.read_u8().await.expect("the start of a frame");
        for n in 0..room {
            drop(beat(&link, &n.to_string()).expect("there is room"));
        }
        assert_eq!(beat(&link, "too many").expect_err("full"), SendError::Full(room));
    }
}

#[tokio::test]
async fn a_claim_that_is_too_large_for_a_frame_is_refused_here() {
    let (link, _theirs) = piped(Deadlines::default()).await;
    let many: Vec<RuntimeId> = (0..2000).map(|n| RuntimeId::new(format!("{n:036}"))).collect();
    let body = ClaimRequest { daemon_id: "d", runtime_ids: &many, max_tasks: 1 };
    let error = link.send(&Outgoing::Rpc(RpcRequest::claim("q", body, 5000))).expect_err("too large");
    assert!(matches!(error, SendError::TooLarge(size) if size > MAX_FRAME), "{error}");
}

#[tokio::test]
async fn inv_68_silence_ends_a_link() {
    let (mut link, _theirs) = piped(Deadlines { read: SHORT, write: LONG }).await;
    assert!(matches!(link.recv().await, LinkEvent::Down(DownReason::Silent)));
}

#[tokio::test]
async fn any_frame_keeps_a_link_up() {
    let (mut link, theirs) = piped(Deadlines { read: Duration::from_secs(2), write: LONG }).await;
    let mut server = server_of(theirs).await;
    let mut tick = tokio::time::interval(Duration::from_millis(250));
    // The first tick is at once: 2.5 s in all.
    for n in 0..11_u8 {
        tick.tick().await;
        server.send(Message::Ping(vec![n].into())).await.expect("sent");
        match server.next().await {
            Some(Ok(Message::Pong(payload))) => assert_eq!(payload[..], [n]),
            other => panic!("no pong: {other:?}"),
        }
    }
    server.send(ack("r")).await.expect("sent");
    assert!(matches!(link.recv().await, LinkEvent::Frame(Inbound::HeartbeatAck(_))));
}

#[tokio::test]
async fn a_frame_that_cannot_be_written_ends_a_link() {
    let (mut link, _theirs) = piped(Deadlines { read: LONG, write: SHORT }).await;
    drop(beat(&link, &"x".repeat(10 * PIPE)).expect("queued"));
    assert!(matches!(link.recv().await, LinkEvent::Down(DownReason::Stalled)));
}

#[tokio::test]
async fn pings_are_answered_while_nobody_takes_frames() {
    let (mut link, theirs) = piped(Deadlines::default()).await;
    let mut server = server_of(theirs).await;
    for _ in 0..super::MAX_QUEUED_HINTS + 100 {
        let hint = r#"{"type":"daemon:task_available","payload":{"runtime_id":"r","task_id":"t"}}"#;
        server.send(Message::text(hint)).await.expect("sent");
    }
    server.send(ack("r")).await.expect("sent");
    server.send(Message::Ping(vec![7].into())).await.expect("sent");
    assert!(matches!(server.next().await, Some(Ok(Message::Pong(_)))));

    assert!(matches!(link.recv().await, LinkEvent::HintsLost));
    for _ in 0..super::MAX_QUEUED_HINTS {
        assert!(matches!(link.recv().await, LinkEvent::Frame(Inbound::TaskAvailable { .. })));
    }
    assert!(matches!(link.recv().await, LinkEvent::Frame(Inbound::HeartbeatAck(_))));
}

#[tokio::test]
async fn t14_frames_that_are_not_understood_are_counted_and_change_nothing() {
    let (mut link, theirs) = piped(Deadlines::default()).await;
    let mut server = server_of(theirs).await;
    for message in
        [Message::text("nonsense"), Message::text(r#"{"type":"task:x"}"#), Message::binary(vec![0, 255])]
    {
        server.send(message).await.expect("sent");
    }
    server.send(ack("r")).await.expect("sent");
    assert!(matches!(link.recv().await, LinkEvent::Frame(Inbound::HeartbeatAck(_))));
    assert_eq!(link.ignored(), 3);
}

#[tokio::test]
async fn inv_67_a_large_answer_arrives() {
    let (server, _lines) = upgrading(|mut socket| async move {
        let request: serde_json::Value = serde_json::from_str(&text(&mut socket).await).expect("json");
        let task = format!(r#"{{"id":"t","chat_message":"{}"}}"#, "x".repeat(8 << 20));
        let payload = format!(
            r#"{{"request_id":{},"status":200,"body":{{"tasks":[{task}]}}}}"#,
            request["payload"]["request_id"]
        );
        let frame = format!(r#"{{"type":"daemon:rpc_response","payload":{payload}}}"#);
        socket.send(Message::text(frame)).await.expect("sent");
    })
    .await;
    let runtimes = ids(&["r"]);
    let mut link = connect(&server.client(), &runtimes, LONG).await.expect("a link");
    let body = ClaimRequest { daemon_id: "d", runtime_ids: &runtimes, max_tasks: 1 };
    drop(link.send(&Outgoing::Rpc(RpcRequest::claim("q1", body, 5000))).expect("queued"));
    let LinkEvent::Frame(Inbound::Rpc(response)) = link.recv().await else { panic!("no answer") };
    assert_eq!(response.request_id, "q1");
    assert_eq!(response.tasks().expect("tasks").tasks[0].chat_message.len(), 8 << 20);
}

#[tokio::test]
async fn a_message_beyond_the_bound_ends_a_link() {
    let (mut link, mut theirs) = piped(Deadlines::default()).await;
    let mut head = vec![0x81, 127];
    head.extend_from_slice(&(MAX_MESSAGE as u64 + 1).to_be_bytes());
    theirs.write_all(&head).await.expect("written");
    assert!(matches!(link.recv().await, LinkEvent::Down(DownReason::TooLarge)));
}

#[tokio::test]
async fn a_close_frame_is_not_answered() {
    let (mut link, mut theirs) = piped(Deadlines::default()).await;
    theirs.write_all(&[0x88, 0]).await.expect("written");
    assert!(matches!(link.recv().await, LinkEvent::Down(DownReason::Ended)));
    let mut rest = Vec::new();
    theirs.read_to_end(&mut rest).await.expect("the end");
    assert!(rest.is_empty(), "{rest:?}");
}
