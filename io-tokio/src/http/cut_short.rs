//! Answers that end at any byte, by an end of the connection or by a reset.

use super::test_server::{TestServer, read_request, reply};
use super::{CallError, RejectKind};
use crate::wire::status::TaskStatus;
use longshore_core::id::TaskId;
use std::time::Duration;
use tokio::io::AsyncWriteExt;

/// Longer than any call here takes.
const LONG: Duration = Duration::from_secs(30);

/// Answers each connection's first request with so many bytes of `answer` as the connection's number says, and ends it.
async fn shorter(answer: &'static [u8], reset: bool) -> TestServer {
    TestServer::start(move |mut stream, number| async move {
        if read_request(&mut stream).await.is_none() {
            return;
        }
        // Nobody may be there any more.
        let _ = stream.write_all(&answer[..number.min(answer.len())]).await;
        if reset {
            let _ = stream.set_zero_linger();
        }
    })
    .await
}

fn leaked(bytes: Vec<u8>) -> &'static [u8] {
    Box::leak(bytes.into_boxed_slice())
}

#[tokio::test]
async fn a_good_answer_that_ends_at_any_byte_is_of_unknown_fate_until_it_is_whole() {
    let answer = leaked(reply(200, "Content-Type: application/json\r\n", r#"{"status":"running"}"#));
    for reset in [false, true] {
        let server = shorter(answer, reset).await;
        let client = server.client();
        // Each call makes a connection of its own, as the one before is gone.
        for bytes in 0..answer.len() {
            let error = client.status(&TaskId::new("t"), LONG).await.expect_err("not whole");
            assert!(matches!(error, CallError::Unknown { .. }), "{bytes} bytes, {reset}: {error}");
        }
        if !reset {
            let whole = client.status(&TaskId::new("t"), LONG).await.expect("all of it");
            assert_eq!(whole, TaskStatus::Running);
        }
    }
}

#[tokio::test]
async fn a_refusal_that_ends_at_any_byte_ends_no_run_until_its_words_are_there() {
    const WORDS: &str = r#"{"error":"task not found"}"#;
    let answer = leaked(reply(404, "Content-Type: application/json\r\n", WORDS));
    let head = answer.len() - WORDS.len();
    // From here on the server has said it.
    let said = head + r#"{"error":"task not found"#.len();
    let server = shorter(answer, false).await;
    let client = server.client();
    for bytes in 0..=answer.len() {
        let error = client.status(&TaskId::new("t"), LONG).await.expect_err("no status");
        match error.rejected_as() {
            None => assert!(bytes < head && matches!(error, CallError::Unknown { .. }), "{bytes}: {error}"),
            Some(RejectKind::TaskGone) => assert!(bytes >= said, "{bytes}: {error}"),
            Some(_) => assert!((head..said).contains(&bytes), "{bytes}: {error}"),
        }
    }
}
