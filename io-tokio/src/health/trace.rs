//! `GET /trace`: what the flight recorder has, as one trace that ends with the last step.

use super::server::plain;
use crate::trace_sink::{Drawn, Refusal, Tap};
use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use std::io;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Where it is asked for.
pub(crate) const PATH: &str = "/trace";

/// The header that says that nothing is recorded at the moment: since when (RFC 3339), a blank, and why.
pub(crate) const REFUSED: HeaderName = HeaderName::from_static("longshore-trace-refused");

/// The header that says what a person can do about that.
pub(crate) const REMEDY: HeaderName = HeaderName::from_static("longshore-trace-remedy");

/// Answers that may be on their way at once: each holds all segments open.
const AT_ONCE: usize = 4;

/// The recorder, as requests see it.
pub(super) struct Recording {
    tap: Option<Tap>,
    readers: Arc<Semaphore>,
}

/// One answer on its way.
struct Answer {
    lines: Drawn,
    _reader: OwnedSemaphorePermit,
}

impl Recording {
    pub(super) fn new(tap: Option<Tap>) -> Self {
        Self { tap, readers: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// The trace, or one line that says why there is none.
    pub(super) async fn answer(&self) -> Response {
        let Some(tap) = &self.tap else {
            return plain(StatusCode::NOT_FOUND, "this daemon has no flight recorder");
        };
        let Ok(reader) = Arc::clone(&self.readers).try_acquire_owned() else {
            return plain(StatusCode::SERVICE_UNAVAILABLE, "the trace is being read by too many already");
        };
        match tap.draw().await {
            Ok((lines, refusal)) => {
                let mut answer = body(Answer { lines, _reader: reader });
                if let Some(Refusal { since, why, remedy }) = refusal {
                    let refused = in_a_header(&format!("{since} {why}"));
                    let remedy = remedy.as_deref().and_then(in_a_header);
                    let headers = [(REFUSED, refused), (REMEDY, remedy)];
                    let said = headers.into_iter().filter_map(|(name, said)| Some((name, said?)));
                    answer.headers_mut().extend(said);
                }
                answer
            }
            Err(error) => {
                tracing::warn!(%error, "the flight recorder's directory cannot be read");
                plain(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "the flight recorder's directory cannot be read; see the log",
                )
            }
        }
    }
}

/// `None` if it cannot be said, which no text is known to do.
fn in_a_header(text: &str) -> Option<HeaderValue> {
    let visible = |c: char| if c.is_ascii() && !c.is_ascii_control() { c } else { '?' };
    let said: String = text.chars().map(visible).collect();
    HeaderValue::from_str(&said).ok()
}

/// Reads only as fast as it is read, and on a thread that may wait for the disk.
fn body(answer: Answer) -> Response {
    let pieces = stream::try_unfold(answer, async |mut answer| {
        let read = move || {
            let lines = answer.lines.next().transpose()?;
            Ok::<_, io::Error>(lines.map(|lines| (Bytes::from(lines), answer)))
        };
        tokio::task::spawn_blocking(read).await.map_err(io::Error::other)?
    });
    ([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(pieces)).into_response()
}
