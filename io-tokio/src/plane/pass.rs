//! What every request passes: the log, the faults, and then the token.

use super::door::Line;
use super::faults::{Action, Fault};
use super::log::{Answer, Arrival};
use super::reply::{Refused, raw};
use super::shared::Shared;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a request body; more are refused.
const MAX_BODY: usize = 64 << 20;

/// The log and the faults, around everything else.
pub(super) async fn watched(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(line): ConnectInfo<Line>,
    request: Request,
    next: Next,
) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, MAX_BODY).await else {
        return Refused::new(
            413,
            format!("the request body cannot be read, or has more than {MAX_BODY} bytes"),
        )
        .into_response();
    };
    let (number, fault) = shared.arrived(&Arrival {
        at: shared.elapsed(),
        method: parts.method.as_str(),
        path: parts.uri.path(),
        query: parts.uri.query().unwrap_or_default(),
        headers: Some(&parts.headers),
        body: &body,
    });
    let request = Request::from_parts(parts, Body::from(body));
    let Some(fault) = fault else {
        let response = served(&shared, request, next).await;
        shared.answered(number, Answer::Sent(response.status().as_u16()));
        return response;
    };
    match fault.action() {
        Action::DropRequest => {
            shared.answered(number, Answer::Dropped);
            return ended(&line).await;
        }
        Action::Reply { status, body, headers } => {
            shared.answered(number, Answer::Sent(*status));
            return canned(*status, body, headers);
        }
        Action::Flood(bytes) => {
            shared.answered(number, Answer::Sent(200));
            return raw(200, "application/json", flood(*bytes).into_bytes());
        }
        Action::Delay(time) => tokio::time::sleep(*time).await,
        Action::Hold => fault.until_released().await,
        _ => {}
    }
    let response = served(&shared, request, next).await;
    let status = response.status().as_u16();
    if matches!(fault.action(), Action::HoldReply) {
        shared.held(number, status);
    }
    let (answer, response) = spoilt(&fault, &line, response).await;
    shared.answered(number, if answer { Answer::Sent(status) } else { Answer::Lost(status) });
    match response {
        Some(response) => response,
        None => ended(&line).await,
    }
}

/// Acts, and gives the answer when what was done is on the disk: no daemon is told of what could still be forgotten.
async fn served(shared: &Shared, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    match shared.stored().await {
        Ok(()) => response,
        Err(unwritten) => Refused::new(500, unwritten.to_string()).into_response(),
    }
}

/// What the fault leaves of an answer, and whether it counts as sent.
async fn spoilt(fault: &Fault, line: &Line, response: Response) -> (bool, Option<Response>) {
    let (mut parts, body) = match fault.action() {
        Action::LoseReply | Action::Close => return (false, None),
        Action::HoldReply => {
            fault.until_released().await;
            return (true, Some(response));
        }
        Action::Delay(_) | Action::Hold => return (true, Some(response)),
        _ => response.into_parts(),
    };
    // Bodies are made in memory, so they can be read.
    let bytes = to_bytes(body, usize::MAX).await.unwrap_or_default();
    parts.headers.insert(header::CONTENT_LENGTH, bytes.len().into());
    let (whole, body) = match fault.action() {
        Action::Garble(garbage) => {
            parts.headers.remove(header::CONTENT_LENGTH);
            (true, Body::from(garbage.clone()))
        }
        Action::Headers(headers) => {
            put(&mut parts.headers, headers);
            (true, Body::from(bytes))
        }
        Action::Drip { chunk, every } => (true, dripping(bytes, (*chunk).max(1), *every)),
        Action::Stall(first) => (true, stalling(bytes, *first, fault.clone())),
        Action::Cut(first) => (false, cut(&bytes, *first, line.clone(), Line::cut)),
        Action::Reset(first) => (false, cut(&bytes, *first, line.clone(), Line::reset)),
        _ => (false, cut(&bytes, bytes.len() / 2, line.clone(), Line::cut)),
    };
    (whole, Some(Response::from_parts(parts, body)))
}

fn dripping(bytes: Bytes, chunk: usize, every: Duration) -> Body {
    Body::from_stream(stream::unfold(bytes, move |mut left| async move {
        if left.is_empty() {
            return None;
        }
        let drop = left.split_to(chunk.min(left.len()));
        if !left.is_empty() {
            tokio::time::sleep(every).await;
        }
        Some((Ok::<_, std::io::Error>(drop), left))
    }))
}

/// The first bytes of it, and then the end of the connection.
fn cut(bytes: &Bytes, first: usize, line: Line, end: fn(&Line)) -> Body {
    let some = bytes.slice(..first.min(bytes.len()));
    Body::from_stream(stream::unfold(Some(some), move |left| {
        let line = line.clone();
        async move {
            match left {
                Some(some) if !some.is_empty() => Some((Ok(some), None)),
                _ => {
                    // What was given before is on its way when this is asked for again.
                    tokio::task::yield_now().await;
                    end(&line);
                    Some((Err(std::io::Error::other("the answer was cut short on purpose")), None))
                }
            }
        }
    }))
}

/// The first bytes of it, and the rest when the fault is released.
fn stalling(bytes: Bytes, first: usize, fault: Fault) -> Body {
    let mut rest = bytes;
    let some = rest.split_to(first.min(rest.len()));
    Body::from_stream(stream::unfold((some, Some(rest)), move |(now, rest)| {
        let fault = fault.clone();
        async move {
            if !now.is_empty() {
                return Some((Ok::<_, std::io::Error>(now), (Bytes::new(), rest)));
            }
            let rest = rest?;
            fault.until_released().await;
            Some((Ok(rest), (Bytes::new(), None)))
        }
    }))
}

/// JSON of so many bytes that says nothing.
pub(super) fn flood(bytes: usize) -> String {
    let frame = "{\"flood\":\"\"}".len();
    format!("{{\"flood\":\"{}\"}}", "x".repeat(bytes.saturating_sub(frame)))
}

fn canned(status: u16, body: &str, headers: &[(String, String)]) -> Response {
    let mut response = raw(status, "application/json", body.as_bytes().to_vec());
    put(response.headers_mut(), headers);
    response
}

fn put(into: &mut HeaderMap, headers: &[(String, String)]) {
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
            into.insert(name, value);
        }
    }
}

/// Cuts the connection. No byte of the answer given here leaves; the server finds the connection gone and drops it.
async fn ended(line: &Line) -> Response {
    line.cut();
    tokio::task::yield_now().await;
    Response::new(Body::empty())
}

/// Every route wants a token, and a daemon's route nothing that its holder may not see. Handlers find the caller in the request.
pub(super) async fn authorised(
    State(shared): State<Arc<Shared>>,
    mut request: Request,
    next: Next,
) -> Response {
    let given = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let of_daemon = request.uri().path().starts_with("/api/daemon/");
    let refused = match given.and_then(|value| value.strip_prefix("Bearer ")) {
        None => Refused::new(401, "missing authorization header"),
        Some(token) => match shared.caller(token).filter(|caller| of_daemon || caller.is_user()) {
            None => Refused::new(401, "invalid token"),
            Some(caller) if !shared.lock().sees_path(&caller, request.uri().path()) => {
                Refused::new(404, "not found")
            }
            Some(caller) => {
                request.extensions_mut().insert(caller);
                return next.run(request).await;
            }
        },
    };
    if of_daemon {
        return refused.into_response();
    }
    // The user's side of the real server says the same as plain text.
    raw(refused.status, "text/plain; charset=utf-8", format!("{}\n", refused.envelope()).into_bytes())
}
