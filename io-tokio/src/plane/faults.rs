//! What a test can put between a daemon and the plane: answers that are wrong, late, lost or broken.
//!
//! A [`Rule`] says for which requests (method and path with stars, the first, the nth, from the nth on) and an [`Action`] what
//! happens to them. Heartbeats and claims on a control channel are requests too, with the method `WS` and the path of the HTTP call that does
//! the same; each action says what it is there, if that differs.
//!
//! | trouble | action |
//! |---|---|
//! | any status, body, type, headers (`retry-after`, `date`) | [`Action::Reply`], [`Action::error`], [`Action::error_retry_after`], [`Action::page`] |
//! | the true answer with other headers | [`Action::Headers`] |
//! | late, or not before the test says so | [`Action::Delay`], [`Action::Hold`], [`Action::HoldReply`] |
//! | not done, or done and not answered | [`Action::DropRequest`], [`Action::LoseReply`] |
//! | a body that ends too early, by the end of the connection or by its reset | [`Action::Truncate`], [`Action::Cut`], [`Action::Reset`] |
//! | a body that stops, or comes a byte at a time | [`Action::Stall`], [`Action::Drip`] |
//! | a body that is no answer, or has no end | [`Action::Garble`], [`Action::Flood`] |
//! | a control channel that says goodbye | [`Action::Close`] |
//!
//! What is not about one request is with the [`super::Server`]: an outage (`pause`, `resume`), `cut_connections`, and for control channels
//! `push_text`, `close_links` and `stall_links`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// What happens to a request instead of, or beside, being served.
#[derive(Clone, Debug)]
pub enum Action {
    /// Answer this and do not act. Headers such as `retry-after` can be added.
    Reply {
        /// The status.
        status: u16,
        /// The body as it is.
        body: String,
        /// More headers.
        headers: Vec<(String, String)>,
    },
    /// Wait, then serve.
    Delay(Duration),
    /// Serve when [`Fault::release`] is called.
    Hold,
    /// Act at once, and answer when [`Fault::release`] is called.
    HoldReply,
    /// Act, then drop the connection without an answer.
    LoseReply,
    /// Drop the connection and do not act.
    DropRequest,
    /// Act, and answer `chunk` bytes (at least 1) at a time with a pause after each. On a frame: as it is.
    Drip {
        /// Bytes at a time.
        chunk: usize,
        /// The pause.
        every: Duration,
    },
    /// Act, and answer these bytes under the true status and type.
    Garble(Vec<u8>),
    /// Act, send half of the answer's body, and drop the connection. On a frame: half of its text.
    Truncate,
    /// Act, send so many bytes of the answer's body, and drop the connection. On a frame: so much of its text.
    Cut(usize),
    /// The same, and the connection is reset: what the daemon has not read yet may be lost too. On a frame: the channel is reset.
    Reset(usize),
    /// Act, send so many bytes of the answer's body, and the rest when [`Fault::release`] is called. On a frame: nothing, and then all of it.
    Stall(usize),
    /// Act, and answer with these headers added to the true ones. On a frame: nothing changes.
    Headers(Vec<(String, String)>),
    /// Do not act, and answer 200 with so many bytes of JSON. On a frame: one of that size.
    Flood(usize),
    /// Act, and say goodbye on the control channel in place of the answer. On a request of HTTP: as [`Action::LoseReply`].
    Close,
}

impl Action {
    /// An error of the server with the envelope that goes with it.
    pub fn error(status: u16, text: &str) -> Self {
        let body = serde_json::json!({ "error": text }).to_string();
        Self::Reply { status, body, headers: Vec::new() }
    }

    /// The same with a `Retry-After` of so many seconds.
    pub fn error_retry_after(status: u16, text: &str, seconds: u64) -> Self {
        let body = serde_json::json!({ "error": text }).to_string();
        Self::Reply { status, body, headers: vec![("retry-after".into(), seconds.to_string())] }
    }

    /// A page for people, as a proxy on the way answers.
    pub fn page(status: u16, html: &str) -> Self {
        let headers = vec![("content-type".into(), "text/html; charset=utf-8".into())];
        Self::Reply { status, body: html.into(), headers }
    }
}

/// Which requests an [`Action`] is for.
#[derive(Clone, Debug)]
pub struct Rule {
    method: String,
    path: Vec<String>,
    from: u64,
    to: u64,
    action: Action,
}

impl Rule {
    /// For every request with this method (`*` for any) and path. In the path `*` stands for one segment and a final `**`
    /// for any rest, as in `/api/daemon/tasks/*/complete`.
    pub fn new(method: &str, path: &str, action: Action) -> Self {
        let path = path.trim_matches('/').split('/').map(Into::into).collect();
        Self { method: method.into(), path, from: 1, to: u64::MAX, action }
    }

    /// Only for the first `n` of them.
    #[must_use]
    pub fn first(mut self, n: u64) -> Self {
        (self.from, self.to) = (1, n);
        self
    }

    /// Only for the `n`th of them, from 1.
    #[must_use]
    pub fn nth(mut self, n: u64) -> Self {
        (self.from, self.to) = (n, n);
        self
    }

    /// Only from the `n`th of them on, from 1.
    #[must_use]
    pub fn from(mut self, n: u64) -> Self {
        (self.from, self.to) = (n, u64::MAX);
        self
    }

    fn matches(&self, method: &str, path: &str) -> bool {
        if self.method != "*" && self.method != method {
            return false;
        }
        let mut given = path.trim_matches('/').split('/');
        for (n, want) in self.path.iter().enumerate() {
            if want == "**" && n + 1 == self.path.len() {
                return true;
            }
            match given.next() {
                Some(got) if want == "*" || want == got => {}
                _ => return false,
            }
        }
        given.next().is_none()
    }
}

#[derive(Debug)]
struct Inner {
    rule: Rule,
    seen: AtomicU64,
    hits: watch::Sender<u64>,
    released: watch::Sender<bool>,
    removed: AtomicBool,
}

/// A rule in force. Dropping it leaves the rule in force.
#[derive(Clone, Debug)]
pub struct Fault(Arc<Inner>);

impl Fault {
    pub(super) fn new(rule: Rule) -> Self {
        Self(Arc::new(Inner {
            rule,
            seen: AtomicU64::new(0),
            hits: watch::Sender::new(0),
            released: watch::Sender::new(false),
            removed: AtomicBool::new(false),
        }))
    }

    /// How many requests it was applied to.
    pub fn hits(&self) -> u64 {
        *self.0.hits.borrow()
    }

    /// Waits until it was applied to `n` requests.
    pub async fn reached(&self, n: u64) {
        // The sender lives in self, so the wait cannot fail.
        let _ = self.0.hits.subscribe().wait_for(|hits| *hits >= n).await;
    }

    /// Lets go of every request that it holds, and holds none from now on.
    pub fn release(&self) {
        self.0.released.send_replace(true);
    }

    /// Ends the rule and lets go of what it holds.
    pub fn remove(&self) {
        self.0.removed.store(true, Ordering::Release);
        self.release();
    }

    pub(super) fn is_removed(&self) -> bool {
        self.0.removed.load(Ordering::Acquire)
    }

    pub(super) fn action(&self) -> &Action {
        &self.0.rule.action
    }

    /// Counts a request, and tells whether the rule is for it.
    pub(super) fn takes(&self, method: &str, path: &str) -> bool {
        if self.is_removed() || !self.0.rule.matches(method, path) {
            return false;
        }
        let call = self.0.seen.fetch_add(1, Ordering::AcqRel) + 1;
        (self.0.rule.from..=self.0.rule.to).contains(&call)
    }

    pub(super) fn hit(&self) {
        self.0.hits.send_modify(|hits| *hits += 1);
    }

    pub(super) async fn until_released(&self) {
        let _ = self.0.released.subscribe().wait_for(|released| *released).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_pattern_has_one_segment_and_any_rest_stars() {
        let rule = |method, path| Rule::new(method, path, Action::Hold);
        for (method, pattern, path, matches) in [
            ("POST", "/api/tasks/*/start", "/api/tasks/t/start", true),
            ("POST", "/api/tasks/*/start", "/api/tasks/t/u/start", false),
            ("POST", "/api/tasks/*/start", "/api/tasks/t", false),
            ("GET", "/api/tasks/*/start", "/api/tasks/t/start", false),
            ("*", "/api/**", "/api/tasks/t/start", true),
            ("*", "**", "/", true),
            ("*", "/api/tasks", "/api/tasks/t", false),
        ] {
            assert_eq!(rule(method, pattern).matches("POST", path), matches, "{method} {pattern} {path}");
        }
    }

    #[test]
    fn a_window_counts_only_what_matches() {
        let fault = Fault::new(Rule::new("POST", "/a", Action::Hold).nth(2));
        let taken: Vec<_> = ["/a", "/b", "/a", "/a"].iter().map(|path| fault.takes("POST", path)).collect();
        assert_eq!(taken, [false, false, true, false]);
    }
}
