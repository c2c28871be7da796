//! Calls against a server that misbehaves.

use super::body::TrackedBody;
use super::endpoints::Workspaces;
use super::test_server::{Seen, TOKEN, TestServer, client, read_request, reply};
use super::{CallError, Client, Limit, MAX_ERROR_BODY, RejectKind, Request};
use crate::secret::Secret;
use crate::wire::claim::ClaimRequest;
use crate::wire::report::{FailRequest, SessionRequest};
use crate::wire::routes;
use crate::wire::status::TaskStatus;
use bytes::Bytes;
use longshore_core::id::{RuntimeId, TaskId};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Longer than any call here takes.
const LONG: Duration = Duration::from_secs(30);
/// Shorter than a server that never answers.
const SHORT: Duration = Duration::from_millis(500);

fn start() -> Request {
    Request::new(routes::START, &["t"]).expect("a request")
}

async fn start_error(client: &Client, limit: impl Into<Limit>) -> CallError {
    client.call(start(), limit).await.expect_err("no success")
}

/// A server that answers `response` and passes on what it saw.
async fn watched(response: Vec<u8>) -> (TestServer, mpsc::UnboundedReceiver<Seen>) {
    let (tell, seen) = mpsc::unbounded_channel();
    let server = TestServer::start(move |mut stream, _| {
        let (tell, response) = (tell.clone(), response.clone());
        async move {
            while let Some(request) = read_request(&mut stream).await {
                drop(tell.send(request));
                drop(stream.write_all(&response).await);
            }
        }
    })
    .await;
    (server, seen)
}

#[tokio::test]
async fn every_request_has_the_same_headers() {
    let (server, mut seen) = watched(reply(200, "", r#"{"status":"running"}"#)).await;
    let client = server.client();
    client.start(&TaskId::new("a b"), LONG).await.expect("started");
    let post = seen.recv().await.expect("a request");
    assert_eq!(
        (post.line.as_str(), post.body.as_str()),
        ("POST /api/daemon/tasks/a%20b/start HTTP/1.1", "{}")
    );
    assert_eq!(post.header("content-type"), Some("application/json"));

    client.status(&TaskId::new("t"), LONG).await.expect("a status");
    let get = seen.recv().await.expect("a request");
    assert_eq!(get.header("content-type"), None);
    for request in [post, get] {
        assert_eq!(request.header("authorization"), Some(format!("Bearer {TOKEN}").as_str()));
        assert_eq!(request.header("x-client-platform"), Some("daemon"));
        assert_eq!(request.header("x-client-version"), Some("0.4.30"));
        assert_eq!(request.header("x-client-os"), Some("linux"));
        assert_eq!(
            request.header("x-client-capabilities"),
            Some("skill-bundles-v1,coalesced-comments-v1,rpc-v1")
        );
    }
}

#[tokio::test]
async fn a_path_in_the_server_url_is_a_prefix() {
    let (server, mut seen) = watched(reply(200, "", r#"{"status":"running"}"#)).await;
    let client = client(&format!("ws://{}/some/where/?x=1", server.address));
    client.start(&TaskId::new("t"), LONG).await.expect("started");
    assert_eq!(
        seen.recv().await.expect("a request").line,
        "POST /some/where/api/daemon/tasks/t/start HTTP/1.1"
    );
}

#[tokio::test]
async fn bug_27_a_new_token_is_used_from_the_next_call_on() {
    let (server, mut seen) = watched(reply(200, "", r#"{"status":"running"}"#)).await;
    let client = server.client();
    client.credential().replace(&Secret::new("mul_new")).expect("a token");
    assert!(client.credential().replace(&Secret::new("bad\ntoken")).is_err());
    assert!(client.credential().replace(&Secret::new("")).is_err());
    client.call(start(), LONG).await.expect("a reply");
    assert_eq!(seen.recv().await.expect("a request").header("authorization"), Some("Bearer mul_new"));
}

#[tokio::test]
async fn bug_13_no_nul_leaves_this_machine() {
    let (server, mut seen) = watched(reply(200, "", r#"{"status":"failed"}"#)).await;
    let client = server.client();
    let request = FailRequest { error: "ok\0end".into(), ..FailRequest::default() };
    client.fail(&TaskId::new("t"), &request, LONG).await.expect("taken");
    assert_eq!(seen.recv().await.expect("a request").body, r#"{"error":"okend"}"#);
}

#[tokio::test]
async fn an_unchanged_list_of_workspaces_is_not_sent_again() {
    let (server, mut seen) = watched(reply(304, "ETag: W/\"1\"\r\n", "")).await;
    let answer = server.client().workspaces(Some("W/\"1\""), LONG).await.expect("an answer");
    assert_eq!(answer, Workspaces::Unchanged);
    assert_eq!(seen.recv().await.expect("a request").header("if-none-match"), Some("W/\"1\""));

    let server = TestServer::answering(reply(200, "ETag: W/\"2\"\r\n", r#"[{"id":"w","name":"W"}]"#)).await;
    let answer = server.client().workspaces(None, LONG).await.expect("an answer");
    let Workspaces::List { list, etag } = answer else { panic!("{answer:?}") };
    assert_eq!((list.items.len(), etag.as_deref()), (1, Some("W/\"2\"")));
}

#[tokio::test]
async fn t18_an_unchanged_answer_to_an_unconditional_question_is_an_error() {
    let server = TestServer::answering(reply(304, "", "")).await;
    let error = server.client().workspaces(None, LONG).await.expect_err("no list");
    assert_eq!(error.status(), Some(304));
}

#[tokio::test]
async fn a_refused_connection_is_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let client = client(&format!("http://{address}"));
    let error = start_error(&client, LONG).await;
    assert!(matches!(&error, CallError::NotSent { why } if why.contains("refused")), "{error}");
    let error = client.status(&TaskId::new("t"), LONG).await.expect_err("refused");
    assert!(matches!(error, CallError::NotSent { .. }), "{error}");
}

#[tokio::test]
async fn an_unknown_host_is_not_sent() {
    let error = start_error(&client("http://no-such-host.invalid"), LONG).await;
    assert!(matches!(error, CallError::NotSent { .. }), "{error}");
}

#[tokio::test]
async fn a_failed_tls_handshake_is_not_sent() {
    let server = TestServer::start(|mut stream, _| async move {
        drop(stream.write_all(b"HTTP/1.1 400 this is no TLS\r\n\r\n").await);
    })
    .await;
    let error = start_error(&client(&format!("https://{}", server.address)), LONG).await;
    assert!(matches!(error, CallError::NotSent { .. }), "{error}");
}

#[tokio::test]
async fn a_deadline_during_the_tls_handshake_is_not_sent() {
    let server = TestServer::start(|mut stream, _| async move {
        // Takes what comes and says nothing.
        let mut sink = Vec::new();
        drop(stream.read_to_end(&mut sink).await);
    })
    .await;
    let error = start_error(&client(&format!("https://{}", server.address)), SHORT).await;
    assert!(matches!(error, CallError::NotSent { .. }), "{error}");
}

#[tokio::test]
async fn an_id_that_fits_no_path_is_not_sent() {
    let error =
        server_that_must_not_be_called().await.start(&TaskId::new(".."), LONG).await.expect_err("refused");
    assert!(matches!(error, CallError::NotSent { .. }), "{error}");
}

async fn server_that_must_not_be_called() -> Client {
    TestServer::start(|_, _| async { panic!("called") }).await.client()
}

#[tokio::test]
async fn bug_01_no_answer_is_of_unknown_fate() {
    let server = TestServer::start(|mut stream, _| async move {
        read_request(&mut stream).await;
        std::future::pending::<()>().await;
    })
    .await;
    let error = start_error(&server.client(), SHORT).await;
    assert!(matches!(&error, CallError::Unknown { why } if why.contains("500ms")), "{error}");
}

#[tokio::test]
async fn a_connection_that_nobody_accepts_is_of_unknown_fate() {
    // The kernel takes the connection and the request, so bytes have left.
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let client = client(&format!("http://{}", listener.local_addr().expect("an address")));
    let error = start_error(&client, SHORT).await;
    assert!(matches!(error, CallError::Unknown { .. }), "{error}");
}

#[tokio::test]
async fn a_connection_that_is_cut_without_an_answer_is_of_unknown_fate() {
    let server = TestServer::start(|mut stream, _| async move {
        read_request(&mut stream).await;
    })
    .await;
    let error = start_error(&server.client(), LONG).await;
    assert!(matches!(error, CallError::Unknown { .. }), "{error}");
}

#[tokio::test]
async fn a_connection_that_is_cut_at_once_is_transient() {
    // Whether the request was handed over before the end was seen is a race, and either answer is then true.
    let server = TestServer::start(|_, _| async {}).await;
    let error = start_error(&server.client(), LONG).await;
    assert!(matches!(error, CallError::Unknown { .. } | CallError::NotSent { .. }), "{error}");
    assert!(error.is_transient());
}

#[tokio::test]
async fn a_request_is_never_repeated_on_its_own() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let server = TestServer::start(move |mut stream, number| {
        let tell = tell.clone();
        async move {
            read_request(&mut stream).await;
            tell.send(number).expect("the test listens");
        }
    })
    .await;
    let client = server.client();
    assert!(matches!(start_error(&client, LONG).await, CallError::Unknown { .. }));
    // The second call's number says how many connections the first one made.
    assert!(matches!(start_error(&client, LONG).await, CallError::Unknown { .. }));
    assert_eq!((told.recv().await, told.recv().await), (Some(0), Some(1)));
}

#[tokio::test]
async fn a_cancelled_call_says_whether_it_was_sent() {
    let cancel = CancellationToken::new();
    let server = TestServer::start({
        let cancel = cancel.clone();
        move |mut stream, _| {
            let cancel = cancel.clone();
            async move {
                read_request(&mut stream).await;
                cancel.cancel();
                std::future::pending::<()>().await;
            }
        }
    })
    .await;
    let error = start_error(&server.client(), Limit::from(LONG).or_when(cancel)).await;
    assert!(matches!(&error, CallError::Unknown { why } if why.contains("cancelled")), "{error}");

    let cancelled = CancellationToken::new();
    cancelled.cancel();
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let client = client(&format!("https://{}", silent.local_addr().expect("an address")));
    let error = start_error(&client, Limit::from(LONG).or_when(cancelled)).await;
    assert!(matches!(error, CallError::NotSent { .. }), "{error}");
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_of_unknown_fate() {
    let server = TestServer::start(|mut stream, _| async move {
        read_request(&mut stream).await;
        drop(stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"tasks\":[").await);
    })
    .await;
    let error = start_error(&server.client(), LONG).await;
    assert!(matches!(&error, CallError::Unknown { why } if why.contains("200")), "{error}");
}

#[tokio::test]
async fn a_refusal_that_breaks_off_or_stalls_is_still_a_refusal() {
    for stall in [true, false] {
        let server = TestServer::start(move |mut stream, _| async move {
            read_request(&mut stream).await;
            let part = b"HTTP/1.1 404 X\r\nContent-Length: 100\r\n\r\n{\"error\":\"task not found\"";
            drop(stream.write_all(part).await);
            if stall {
                std::future::pending::<()>().await;
            }
        })
        .await;
        let error = start_error(&server.client(), SHORT).await;
        assert_eq!(error.rejected_as(), Some(RejectKind::TaskGone), "{stall} {error}");
    }
}

#[tokio::test]
async fn a_dripping_answer_ends_at_the_deadline() {
    let server = TestServer::start(|mut stream, _| async move {
        read_request(&mut stream).await;
        drop(stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n").await);
        let mut drip = tokio::time::interval(Duration::from_millis(20));
        loop {
            drip.tick().await;
            if stream.write_all(b" ").await.is_err() {
                return;
            }
        }
    })
    .await;
    let before = std::time::Instant::now();
    let error = start_error(&server.client(), SHORT).await;
    assert!(matches!(error, CallError::Unknown { .. }), "{error}");
    assert!(before.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_huge_answer_is_not_taken() {
    // Announced, and not.
    for head in ["Content-Length: 104857600", "Transfer-Encoding: chunked"] {
        let server = TestServer::start(move |mut stream, _| async move {
            read_request(&mut stream).await;
            drop(stream.write_all(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n").as_bytes()).await);
            let mut chunk = b"100000\r\n".to_vec();
            chunk.resize(chunk.len() + 0x10_0000, b' ');
            chunk.extend_from_slice(b"\r\n");
            for _ in 0..100 {
                if stream.write_all(&chunk).await.is_err() {
                    return;
                }
            }
        })
        .await;
        let error = start_error(&server.client(), LONG).await;
        assert!(
            matches!(&error, CallError::Undecodable { status: 200, why } if why.contains("64 MiB")),
            "{error}"
        );
    }
}

#[tokio::test]
async fn an_answer_that_says_more_than_its_route_can_is_not_taken() {
    let padded = |bytes: usize| {
        let said = r#"{"status":"running"}"#;
        reply(200, "", &format!("{said}{}", " ".repeat(bytes - said.len())))
    };
    let most = routes::STATUS.most;
    let server = TestServer::answering(padded(most)).await;
    let status = server.client().status(&TaskId::new("t"), LONG).await.expect("within its bound");
    assert_eq!(status, TaskStatus::Running);
    let server = TestServer::answering(padded(most + 1)).await;
    let error = server.client().status(&TaskId::new("t"), LONG).await.expect_err("too large");
    assert!(
        matches!(&error, CallError::Undecodable { status: 200, why } if why.contains("1 MiB")),
        "{error}"
    );
    let server = TestServer::answering(padded(most + 1)).await;
    server.client().start(&TaskId::new("t"), LONG).await.expect("a task's row may be larger");
}

#[tokio::test]
async fn of_a_huge_refusal_the_head_is_read() {
    let body = format!("{}task not found", "x".repeat(MAX_ERROR_BODY));
    let server = TestServer::answering(reply(404, "", &body)).await;
    let CallError::Rejected(rejection) = start_error(&server.client(), LONG).await else {
        panic!("no refusal")
    };
    assert_eq!((rejection.kind, rejection.body_head.len()), (RejectKind::Foreign, MAX_ERROR_BODY));
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let (server, mut seen) = watched(reply(307, "Location: /elsewhere\r\n", "")).await;
    let error = start_error(&server.client(), LONG).await;
    assert_eq!(error.rejected_as(), Some(RejectKind::Redirected));
    assert!(error.to_string().contains("/elsewhere"), "{error}");
    assert!(seen.recv().await.is_some());
    assert!(seen.try_recv().is_err());
}

#[tokio::test]
async fn bug_28_refusals_and_failures_are_told_apart() {
    for (status, headers, body, check) in [
        (500, "", r#"{"error":"x"}"#, "the server failed (500): x"),
        (502, "", "<html>", "the server failed (502): <html>"),
        (429, "Retry-After: 7\r\n", "", "the server asks for fewer requests (429); next try in 7 s"),
        (503, "Retry-After: 999999\r\n", "", "the server asks for fewer requests (503); next try in 300 s"),
        (400, "", r#"{"error":"bad"}"#, "the server refused it (400): bad"),
        (409, "", r#"{"error":"no"}"#, "the server refused it (409): no"),
        (
            401,
            "",
            r#"{"error":"invalid token"}"#,
            "the server does not take our token (401: invalid token); log in again",
        ),
    ] {
        let server = TestServer::answering(reply(status, headers, body)).await;
        assert_eq!(start_error(&server.client(), LONG).await.to_string(), check);
    }
}

#[tokio::test]
async fn a_success_that_is_no_json_of_ours_is_undecodable() {
    for (body, word) in [
        ("<!DOCTYPE html>", "HTML"),
        (r#"{"tasks":[{"id":"t""#, "ends before"),
        ("", "empty"),
        ("[]", "`tasks`"),
    ] {
        let server = TestServer::answering(reply(200, "Content-Type: application/json\r\n", body)).await;
        let request = ClaimRequest { daemon_id: "d", runtime_ids: &[RuntimeId::new("r")], max_tasks: 1 };
        let error = server.client().claim_batch(&request, LONG).await.expect_err(body);
        assert!(
            matches!(&error, CallError::Undecodable { status: 200, why } if why.contains(word)),
            "{error}"
        );
    }
}

#[tokio::test]
async fn an_acknowledgement_may_be_empty_but_no_page() {
    let pin = SessionRequest { session_id: "s", work_dir: "" };
    let task = TaskId::new("t");
    for (status, body, good) in
        [(204, "", true), (200, r#"{"status":"ok"}"#, true), (200, "<p>sign in", false)]
    {
        let server = TestServer::answering(if body.is_empty() {
            b"HTTP/1.1 204 X\r\n\r\n".to_vec()
        } else {
            reply(status, "", body)
        })
        .await;
        assert_eq!(server.client().pin_session(&task, &pin, LONG).await.is_ok(), good, "{body}");
    }
}

#[tokio::test]
async fn invalid_utf8_in_an_answer_is_replaced() {
    let server = TestServer::answering(
        b"HTTP/1.1 200 X\r\nContent-Length: 26\r\n\r\n{\"status\":\"running\",\"x\":\"\xff".to_vec(),
    )
    .await;
    // Cut off on purpose: what counts is that the bad byte is no reason of its own.
    let error = server.client().status(&TaskId::new("t"), LONG).await.expect_err("cut off");
    assert!(error.to_string().contains("ends before"), "{error}");
    let server = TestServer::answering(
        b"HTTP/1.1 200 X\r\nContent-Length: 27\r\n\r\n{\"x\":\"\xff\",\"status\":\"failed\"}".to_vec(),
    )
    .await;
    assert_eq!(server.client().status(&TaskId::new("t"), LONG).await, Ok(TaskStatus::Failed));
}

#[tokio::test]
async fn connections_are_reused_until_they_are_dropped() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let server = TestServer::start(move |mut stream, number| {
        let tell = tell.clone();
        async move {
            while read_request(&mut stream).await.is_some() {
                tell.send(number).expect("the test listens");
                drop(stream.write_all(&reply(200, "", "{}")).await);
            }
        }
    })
    .await;
    let client = server.client();
    client.call(start(), LONG).await.expect("a reply");
    client.call(start(), LONG).await.expect("a reply");
    client.drop_idle().expect("still set up");
    client.call(start(), LONG).await.expect("a reply");
    assert_eq!([told.recv().await, told.recv().await, told.recv().await], [Some(0), Some(0), Some(1)]);
}

#[tokio::test]
async fn of_a_request_that_was_given_up_before_its_body_was_asked_for_no_byte_leaves() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let server = TestServer::start(move |mut stream, number| {
        let tell = tell.clone();
        async move {
            if number == 1 {
                read_request(&mut stream).await.expect("a request");
                stream.write_all(&reply(200, "", "{}")).await.expect("written");
            }
            let mut rest = Vec::new();
            let read = stream.read_to_end(&mut rest).await;
            tell.send((read.is_ok(), rest)).expect("the test listens");
        }
    })
    .await;
    let client = server.client();
    let give_up = async || {
        let (body, handover) = TrackedBody::new(Bytes::from_static(b"{}"));
        assert!(handover.revoke());
        let request = client.builder(routes::Method::Post, "/x").body(reqwest::Body::wrap(body));
        assert!(request.send().await.is_err());
    };
    give_up().await;
    assert_eq!(told.recv().await, Some((true, Vec::new())));
    client.call(start(), LONG).await.expect("a reply");
    // Now there is a connection that was used before.
    give_up().await;
    drop(client);
    assert_eq!(told.recv().await, Some((true, Vec::new())));
}

#[test]
fn inv_i25_nothing_that_prints_holds_the_token() {
    let client = client("http://127.0.0.1:1");
    assert!(!format!("{client:?} {:?}", client.builder(routes::Method::Get, "/")).contains(TOKEN));
    let reply = super::Reply { status: 200, etag: None, text: TOKEN.to_owned() };
    assert_eq!(format!("{reply:?} {:?}", start()), "200 (14 bytes) POST /api/daemon/tasks/t/start (2 bytes)");
}
