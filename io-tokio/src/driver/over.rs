//! Claims over the control connection: a frame goes out, and the frame that names it comes back. What was not begun can be recalled, and
//! then the server never sees it; of everything else nobody knows what the server did with it. So its answer is waited for beyond its time, for as
//! long as no other claim may be sent anyway: the tasks in it count as given out to this daemon.

use super::host::Host;
use super::offers;
use crate::http::{CallError, Limit};
use crate::wire::claim::{ClaimReply, ClaimRequest};
use crate::wire::frame::{Outgoing, RpcRequest, RpcResponse};
use crate::ws::{FrameTicket, LinkSender, Recall};
use longshore_core::effect::ClaimCall;
use longshore_core::event::ApiReply;
use longshore_core::id::ConnGen;
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// What the server may take for a claim, in milliseconds.
const SERVER_BUDGET_MS: u64 = 5_000;
const DOWN: &str = "the control connection is gone";

/// The claims on one connection.
pub(super) struct Line {
    pub(super) conn: ConnGen,
    sender: LinkSender,
    waiting: Mutex<Waiting>,
    /// Somebody does not wait any more.
    fewer: Notify,
}

#[derive(Default)]
struct Waiting {
    answers: BTreeMap<String, oneshot::Sender<RpcResponse>>,
    /// Whether nothing may be begun any more.
    closed: bool,
}

impl Line {
    pub(super) fn new(conn: ConnGen, sender: LinkSender) -> Arc<Self> {
        Arc::new(Self { conn, sender, waiting: Mutex::default(), fewer: Notify::new() })
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An answer came. One that nobody waits for is dropped.
    pub(super) fn answered(&self, response: RpcResponse) {
        let waiting = self.lock().answers.remove(&response.request_id);
        let unwanted = match waiting {
            Some(waiting) => waiting.send(response).err(),
            None => Some(response),
        };
        let Some(response) = unwanted else { return };
        match response.tasks() {
            Ok(reply) if !reply.tasks.is_empty() => tracing::warn!(
                tasks = reply.tasks.len(),
                "an answer with tasks came over the control connection when nobody waited for it any more; the server offers them again after a while"
            ),
            _ => tracing::debug!("an answer came over the control connection that nobody waits for"),
        }
    }

    /// The connection takes no more claims; those that are on their way go on waiting.
    pub(super) fn retire(&self) {
        self.lock().closed = true;
    }

    /// Waits until no claim waits any more.
    pub(super) async fn settled(&self) {
        loop {
            let mut fewer = pin!(self.fewer.notified());
            fewer.as_mut().enable();
            if self.lock().answers.is_empty() {
                return;
            }
            fewer.await;
        }
    }

    /// The connection is gone, and no frame of it is begun any more.
    pub(super) fn detach(&self) {
        let mut waiting = self.lock();
        waiting.closed = true;
        waiting.answers.clear();
    }

    /// Claims. What was begun by the limit is waited for that much longer, unless the daemon is to end.
    async fn claim(
        &self,
        request: ClaimRequest<'_>,
        limit: Limit,
        (longer, stopping): (Duration, &CancellationToken),
    ) -> Result<ClaimReply, CallError> {
        let id = uuid::Uuid::new_v4().to_string();
        let Some((answer, _registered)) = self.expect(&id) else {
            return Err(CallError::NotSent { why: DOWN.to_owned() });
        };
        let frame = Outgoing::Rpc(RpcRequest::claim(&id, request, SERVER_BUDGET_MS));
        let ticket =
            self.sender.send(&frame).map_err(|error| CallError::NotSent { why: error.to_string() })?;
        let mut answer = answer;
        let ended = tokio::select! {
            biased;
            said = &mut answer => Ok(said),
            why = limit.expired() => Err(why),
        };
        match ended {
            Ok(Ok(response)) => read(&response),
            Ok(Err(_)) => Err(fate(ticket, DOWN.to_owned())),
            Err(why) => match fate(ticket, why) {
                unknown @ CallError::Unknown { .. } => tokio::select! {
                    biased;
                    said = answer => said.map_or(Err(unknown), |response| read(&response)),
                    () = stopping.cancelled() => Err(unknown),
                    () = sleep(longer) => Err(unknown),
                },
                error => Err(error),
            },
        }
    }

    /// Where the answer with this id will come, until the second part is dropped. `None` if there will be none.
    fn expect<'a>(&'a self, id: &'a str) -> Option<(oneshot::Receiver<RpcResponse>, Expected<'a>)> {
        let (tell, told) = oneshot::channel();
        let mut waiting = self.lock();
        if waiting.closed {
            return None;
        }
        waiting.answers.insert(id.to_owned(), tell);
        Some((told, Expected { line: self, id }))
    }
}

/// An answer that is waited for.
struct Expected<'a> {
    line: &'a Line,
    id: &'a str,
}

impl Drop for Expected<'_> {
    fn drop(&mut self) {
        self.line.lock().answers.remove(self.id);
        self.line.fewer.notify_waiters();
    }
}

/// What is known of a claim that has no answer.
fn fate(ticket: FrameTicket, why: String) -> CallError {
    match ticket.recall() {
        Recall::NotSent => CallError::NotSent { why },
        Recall::Begun => CallError::Unknown { why },
    }
}

/// An answer means what it would mean over HTTP.
fn read(response: &RpcResponse) -> Result<ClaimReply, CallError> {
    let status = response.status;
    match status {
        200..=299 => response.tasks().map_err(|why| CallError::Undecodable { status, why: why.to_string() }),
        300.. => Err(CallError::from_reply(status, &reqwest::header::HeaderMap::new(), response.refusal())),
        _ => Err(CallError::Undecodable { status, why: "it does not say what it means".to_owned() }),
    }
}

/// Carries out a claim of the core.
pub(super) async fn claim(
    host: &Host,
    conn: ConnGen,
    call: &ClaimCall,
    limit: Limit,
) -> Result<ApiReply, CallError> {
    let Some(line) = host.line(conn) else {
        return Err(CallError::NotSent { why: DOWN.to_owned() });
    };
    let runtime_ids = host.set().in_scope(call.scope());
    let request = ClaimRequest {
        daemon_id: &host.identity.daemon_id,
        runtime_ids: &runtime_ids,
        max_tasks: u32::from(call.max()),
    };
    let beyond = (host.timing.claim_hold_off, &host.stopping);
    line.claim(request, limit, beyond).await.map(|reply| offers::take(host, reply, None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::RejectKind;
    use crate::wire::frame::{self, Inbound};
    use crate::ws::{Link, LinkEvent};
    use longshore_core::id::RuntimeId;
    use tokio::io::{AsyncReadExt, DuplexStream};
    use tokio_util::sync::CancellationToken;

    const LONG: Duration = Duration::from_secs(30);
    /// Of the pipe between a link and its server.
    const PIPE: usize = 256;

    fn response(payload: &str) -> RpcResponse {
        let text = format!(r#"{{"type":"daemon:rpc_response","payload":{payload}}}"#);
        match frame::decode(&text) {
            Some(Inbound::Rpc(response)) => response,
            other => panic!("no answer: {other:?}"),
        }
    }

    async fn piped() -> (Link, Arc<Line>, DuplexStream) {
        let (ours, theirs) = tokio::io::duplex(PIPE);
        let link = Link::over(ours).await;
        let line = Line::new(ConnGen(1), link.sender());
        (link, line, theirs)
    }

    async fn claim(line: Arc<Line>, runtime: String, limit: Limit) -> Result<ClaimReply, CallError> {
        // Whoever ends a claim in a test ends the daemon with it.
        let stopping = limit.token().unwrap_or_default();
        claim_until(line, runtime, limit, stopping).await
    }

    async fn claim_until(
        line: Arc<Line>,
        runtime: String,
        limit: Limit,
        stopping: CancellationToken,
    ) -> Result<ClaimReply, CallError> {
        let runtime_ids = [RuntimeId::new(runtime)];
        let request = ClaimRequest { daemon_id: "d", runtime_ids: &runtime_ids, max_tasks: 1 };
        line.claim(request, limit, (LONG, &stopping)).await
    }

    /// Reads the bytes of one frame of the client, from its head.
    async fn begun(theirs: &mut DuplexStream) {
        theirs.read_u8().await.expect("the start of a frame");
    }

    fn large() -> String {
        "x".repeat(20 * PIPE)
    }

    #[test]
    fn an_answer_means_what_it_means_over_http() {
        let good = response(r#"{"request_id":"q","status":200,"body":{"tasks":[{"id":"t"}]}}"#);
        assert_eq!(read(&good).expect("tasks").tasks.len(), 1);
        for (payload, status) in [
            (r#"{"request_id":"q","status":200}"#, 200),
            (r#"{"request_id":"q","status":200,"body":{"tasks":3}}"#, 200),
            (r#"{"request_id":"q","body":{"tasks":[]}}"#, 0),
            (r#"{"request_id":"q","status":"odd"}"#, 0),
        ] {
            let error = read(&response(payload)).expect_err(payload);
            assert!(matches!(error, CallError::Undecodable { status: s, .. } if s == status), "{error:?}");
        }
        let busy = read(&response(r#"{"request_id":"q","status":429,"error":"busy"}"#)).expect_err("busy");
        assert!(matches!(busy, CallError::Throttled { status: 429, retry_after: None }));
        for status in [500, 503] {
            let text = format!(r#"{{"request_id":"q","status":{status},"error":"no handler"}}"#);
            let error = read(&response(&text)).expect_err("failed");
            assert!(matches!(&error, CallError::ServerError { body_head, .. } if body_head == "no handler"));
        }
        for (payload, kind) in [
            (r#"{"status":404,"error":"unknown method"}"#, RejectKind::Foreign),
            (r#"{"status":403,"body":{"error":"no"}}"#, RejectKind::Forbidden),
            (r#"{"status":404,"body":{"error":"runtime not found"}}"#, RejectKind::RuntimeGone),
        ] {
            assert_eq!(read(&response(payload)).expect_err(payload).rejected_as(), Some(kind));
        }
    }

    #[tokio::test]
    async fn inv_46_a_claim_is_not_sent_only_if_its_frame_was_never_begun() {
        let (link, line, mut theirs) = piped().await;
        let cancel = CancellationToken::new();
        let limit = || Limit::from(LONG).or_when(cancel.clone());
        let first = tokio::spawn(claim(line.clone(), large(), limit()));
        begun(&mut theirs).await;
        // The first does not fit into the pipe, so the second waits behind it.
        let second = tokio::spawn(claim(line.clone(), "second".to_owned(), limit()));
        while line.lock().answers.len() < 2 {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
        let (first, second) = (first.await.expect("ends"), second.await.expect("ends"));
        assert!(matches!(first, Err(CallError::Unknown { .. })), "{first:?}");
        assert!(matches!(second, Err(CallError::NotSent { .. })), "{second:?}");
        assert!(line.lock().answers.is_empty(), "nobody waits any more");
        line.answered(response(r#"{"request_id":"of nobody","status":200}"#));
        drop(link);
    }

    #[tokio::test]
    async fn inv_65_when_the_connection_goes_what_waits_was_not_sent_and_the_rest_is_open() {
        let (link, line, mut theirs) = piped().await;
        let first = tokio::spawn(claim(line.clone(), large(), LONG.into()));
        begun(&mut theirs).await;
        let second = tokio::spawn(claim(line.clone(), "second".to_owned(), LONG.into()));
        while line.lock().answers.len() < 2 {
            tokio::task::yield_now().await;
        }
        link.close().await;
        line.detach();
        assert!(matches!(first.await.expect("ends"), Err(CallError::Unknown { .. })));
        assert!(matches!(second.await.expect("ends"), Err(CallError::NotSent { .. })));
        let late = claim(line, "late".to_owned(), LONG.into()).await;
        assert!(matches!(late, Err(CallError::NotSent { .. })), "{late:?}");
    }

    #[tokio::test]
    async fn an_answer_that_comes_after_the_time_of_its_claim_is_taken() {
        let (_link, line, mut theirs) = piped().await;
        let cancel = CancellationToken::new();
        let limit = Limit::from(LONG).or_when(cancel.clone());
        let late = tokio::spawn(claim_until(line.clone(), large(), limit, CancellationToken::new()));
        begun(&mut theirs).await;
        cancel.cancel();
        // It has the only thread to itself until it waits again.
        tokio::task::yield_now().await;
        assert!(!late.is_finished(), "its frame was begun");
        let id = line.lock().answers.keys().next().cloned().expect("it still waits");
        let said = format!(r#"{{"request_id":"{id}","status":200,"body":{{"tasks":[{{"id":"t"}}]}}}}"#);
        line.answered(response(&said));
        assert_eq!(late.await.expect("ends").expect("tasks").tasks.len(), 1);
    }

    #[tokio::test]
    async fn a_stop_waits_for_no_late_answer() {
        let (_link, line, mut theirs) = piped().await;
        let (cancel, stopping) = (CancellationToken::new(), CancellationToken::new());
        let limit = Limit::from(LONG).or_when(cancel.clone());
        let late = tokio::spawn(claim_until(line.clone(), large(), limit, stopping.clone()));
        begun(&mut theirs).await;
        cancel.cancel();
        tokio::task::yield_now().await;
        assert!(!late.is_finished());
        stopping.cancel();
        assert!(matches!(late.await.expect("ends"), Err(CallError::Unknown { .. })));
    }

    #[tokio::test]
    async fn an_answer_reaches_the_claim_that_it_names() {
        let (mut link, line, theirs) = piped().await;
        let claims = tokio::spawn(claim(line.clone(), "r".to_owned(), LONG.into()));
        let server = tokio::spawn(async move {
            use futures_util::{SinkExt, StreamExt};
            use tokio_tungstenite::tungstenite::{Message, protocol::Role};
            let mut socket =
                tokio_tungstenite::WebSocketStream::from_raw_socket(theirs, Role::Server, None).await;
            let Some(Ok(Message::Text(text))) = socket.next().await else { panic!("no claim") };
            let sent: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            assert_eq!(
                (&sent["payload"]["method"], &sent["payload"]["timeout_ms"]),
                (&"tasks.claim".into(), &5000.into())
            );
            for id in ["another", sent["payload"]["request_id"].as_str().expect("an id")] {
                let answer = serde_json::json!({
                    "type": "daemon:rpc_response",
                    "payload": { "request_id": id, "status": 200, "body": { "tasks": [{ "id": id }] } },
                });
                socket.send(Message::text(answer.to_string())).await.expect("sent");
            }
            sent["payload"]["request_id"].as_str().expect("an id").to_owned()
        });
        for _ in 0..2 {
            let LinkEvent::Frame(Inbound::Rpc(response)) = link.recv().await else { panic!("no answer") };
            line.answered(response);
        }
        let id = server.await.expect("ends");
        assert_eq!(claims.await.expect("ends").expect("tasks").tasks[0].id, id);
    }
}
