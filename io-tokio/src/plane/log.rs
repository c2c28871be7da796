//! Every request that came in, for tests and for people who look.

use axum::http::{HeaderMap, header};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of request bodies that are kept in all; above them the oldest requests are forgotten.
const MAX_LOGGED_BYTES: usize = 128 << 20;

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing yet.
    Pending,
    /// An answer with this status.
    Sent(u16),
    /// It was acted upon with this status, and the answer was thrown away, or is held back.
    Lost(u16),
    /// It was thrown away unread.
    Dropped,
}

/// One request. A frame of the control channel is one too, with the method `WS` and the path of the HTTP call that does the same.
#[derive(Clone, Debug)]
pub struct Request {
    /// Its place among all requests, from 0.
    pub number: u64,
    /// When it had arrived, counted from the server's start.
    pub at: Duration,
    /// When the answer went out.
    pub answered_at: Option<Duration>,
    /// `GET`, `POST` or `WS`.
    pub method: String,
    /// The path without the query.
    pub path: String,
    /// The query, without the question mark.
    pub query: String,
    /// The headers in lower case. `authorization` is never among them.
    pub headers: BTreeMap<String, String>,
    /// The body: null if there was none, a string if it is no JSON.
    pub body: Arc<Value>,
    /// Bytes of the body.
    pub size: usize,
    /// What became of it.
    pub answer: Answer,
}

impl Request {
    /// Whether it is this call; `path` may end in `…/name` parts only, as in `/complete`.
    pub fn is(&self, method: &str, path_end: &str) -> bool {
        self.method == method && self.path.ends_with(path_end)
    }

    /// The time from its arrival to its answer.
    pub fn took(&self) -> Option<Duration> {
        self.answered_at.map(|at| at.saturating_sub(self.at))
    }

    /// The status of the answer that went out.
    pub fn status(&self) -> Option<u16> {
        if let Answer::Sent(status) = self.answer { Some(status) } else { None }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:9.3}s {} {} -> {:?}", self.at.as_secs_f64(), self.method, self.path, self.answer)
    }
}

/// What the log takes of a request that has arrived.
pub(super) struct Arrival<'a> {
    pub(super) at: Duration,
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) query: &'a str,
    pub(super) headers: Option<&'a HeaderMap>,
    pub(super) body: &'a [u8],
}

/// The last requests.
#[derive(Debug)]
pub(super) struct Log {
    kept: VecDeque<Request>,
    bytes: usize,
    next: u64,
    most: usize,
}

impl Log {
    /// A log of at most `most` requests.
    pub(super) fn new(most: usize) -> Self {
        Self { kept: VecDeque::new(), bytes: 0, next: 0, most }
    }

    /// Notes a request; its number.
    pub(super) fn arrived(&mut self, of: &Arrival<'_>) -> u64 {
        let headers = of.headers.into_iter().flatten().filter(|(name, _)| *name != header::AUTHORIZATION);
        let headers = headers.map(|(name, value)| {
            (name.as_str().into(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        });
        let body = if of.body.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(of.body)
                .unwrap_or_else(|_| String::from_utf8_lossy(of.body).into_owned().into())
        };
        let number = self.next;
        self.next += 1;
        self.bytes += of.body.len();
        self.kept.push_back(Request {
            number,
            at: of.at,
            answered_at: None,
            method: of.method.into(),
            path: of.path.into(),
            query: of.query.into(),
            headers: headers.collect(),
            body: Arc::new(body),
            size: of.body.len(),
            answer: Answer::Pending,
        });
        while self.kept.len() > self.most || self.bytes > MAX_LOGGED_BYTES {
            let Some(gone) = self.kept.pop_front() else { break };
            self.bytes -= gone.size;
        }
        number
    }

    /// Notes what became of it, if it is still there.
    pub(super) fn answered(&mut self, number: u64, at: Duration, answer: Answer) {
        if let Some(request) = self.at(number) {
            request.answered_at = Some(at);
            request.answer = answer;
        }
    }

    /// Notes that it was acted upon and that its answer is held back, perhaps for ever.
    pub(super) fn held(&mut self, number: u64, status: u16) {
        if let Some(request) = self.at(number) {
            request.answer = Answer::Lost(status);
        }
    }

    fn at(&mut self, number: u64) -> Option<&mut Request> {
        let first = self.next - self.kept.len() as u64;
        let place = number.checked_sub(first).and_then(|place| usize::try_from(place).ok());
        place.and_then(|place| self.kept.get_mut(place))
    }

    /// The requests that are kept, oldest first.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Request> {
        self.kept.iter()
    }
}
