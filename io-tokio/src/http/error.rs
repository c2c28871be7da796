//! How a call failed, and what is known about the request's fate.

use super::retry_after::{http_date, retry_after};
use super::skew::Skew;
use jiff::Timestamp;
use longshore_core::time::UnixMillis;
use reqwest::header::{DATE, HeaderMap, LOCATION, RETRY_AFTER};
use std::fmt;
use std::time::Duration;

/// Most characters of the server's words that an error's text repeats.
const MAX_QUOTE: usize = 200;

/// How a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// No byte of the request left this machine.
    #[error("the request was not sent: {why}")]
    NotSent {
        /// In words.
        why: String,
    },
    /// The request may have been carried out.
    #[error("whether the request was carried out is not known: {why}")]
    Unknown {
        /// In words.
        why: String,
    },
    /// The server, or something before it, said no. Saying the same again will not change that, other than for
    /// [`RejectKind::TryAgain`] and [`RejectKind::Unauthorized`].
    #[error("{0}")]
    Rejected(Rejection),
    /// The server asks for a pause: 429, or 503 with `Retry-After`.
    #[error("the server asks for fewer requests ({status}){}", wait_text(.retry_after.as_ref()))]
    Throttled {
        /// 429 or 503.
        status: u16,
        /// For how long, from 1 s to 5 min; `None` if the server does not say.
        retry_after: Option<Duration>,
    },
    /// The server failed; the request may have been carried out.
    #[error("the server failed ({status}): {}", quote(.body_head))]
    ServerError {
        /// From 500.
        status: u16,
        /// The first bytes of what it said.
        body_head: String,
    },
    /// The server took the request, but what it answered cannot be used.
    #[error("the server answered {status}, but {why}")]
    Undecodable {
        /// Below 400.
        status: u16,
        /// In words.
        why: String,
    },
}

/// A request that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// From 300 to 499.
    pub status: u16,
    /// What it means.
    pub kind: RejectKind,
    /// The first [`super::MAX_ERROR_BODY`] bytes of what was said.
    pub body_head: String,
    /// The server's clock. If it is far from ours, a refused token may be due to that.
    pub server_time: Option<UnixMillis>,
}

/// What a refusal means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RejectKind {
    /// The task is not there any more.
    TaskGone,
    /// The runtime is not there any more.
    RuntimeGone,
    /// The workspace is not there any more, or we are no member.
    WorkspaceGone,
    /// A pending request of the server expired.
    RequestGone,
    /// A skill is not there any more.
    SkillGone,
    /// This server has no such route.
    RouteMissing,
    /// It is there, but not for this token.
    AccessLost,
    /// The token is missing, unknown or expired.
    Unauthorized,
    /// The account may not do this.
    Forbidden,
    /// Not in this state.
    Conflict,
    /// 408 or 425: the same request may succeed later.
    TryAgain,
    /// The server sends us elsewhere, where we do not go.
    Redirected,
    /// A refusal that is not in the server's own words, such as a proxy's page. It says nothing about a task,
    /// runtime or workspace, and passes when the server can be reached again.
    Foreign,
    /// Another refusal.
    Other,
}

impl CallError {
    /// Whether the same request may well succeed later.
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::NotSent { .. }
            | Self::Unknown { .. }
            | Self::Throttled { .. }
            | Self::ServerError { .. } => true,
            Self::Rejected(rejection) => matches!(rejection.kind, RejectKind::TryAgain),
            Self::Undecodable { .. } => false,
        }
    }

    /// What the refusal means, if it is one.
    pub const fn rejected_as(&self) -> Option<RejectKind> {
        match self {
            Self::Rejected(rejection) => Some(rejection.kind),
            _ => None,
        }
    }

    /// The status that the server answered with, if it did.
    pub const fn status(&self) -> Option<u16> {
        match self {
            Self::NotSent { .. } | Self::Unknown { .. } => None,
            Self::Rejected(rejection) => Some(rejection.status),
            Self::Throttled { status, .. }
            | Self::ServerError { status, .. }
            | Self::Undecodable { status, .. } => Some(*status),
        }
    }

    /// Reads a reply that is no success.
    pub(crate) fn from_reply(status: u16, headers: &HeaderMap, body_head: String) -> Self {
        let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let server_time = header(DATE).and_then(http_date);
        let wait = header(RETRY_AFTER)
            .and_then(|text| retry_after(text, server_time.unwrap_or_else(Timestamp::now)));
        match status {
            429 => Self::Throttled { status, retry_after: wait },
            503 if wait.is_some() => Self::Throttled { status, retry_after: wait },
            500.. => Self::ServerError { status, body_head },
            _ => {
                let kind = RejectKind::of(status, &body_head);
                let body_head = match header(LOCATION) {
                    Some(place) if kind == RejectKind::Redirected => place.to_owned(),
                    _ => body_head,
                };
                let server_time = server_time.map(|time| UnixMillis(time.as_millisecond()));
                Self::Rejected(Rejection { status, kind, body_head, server_time })
            }
        }
    }
}

impl RejectKind {
    /// Only the server's exact phrases count as "gone": what looks at them ends runs and drops runtimes.
    fn of(status: u16, body: &str) -> Self {
        let is_page = body.trim_start().starts_with('<');
        match status {
            // No answer to a request that asks for none.
            ..200 => Self::TryAgain,
            300..=399 => Self::Redirected,
            401 => Self::Unauthorized,
            403 => Self::Forbidden,
            // Proxies say this of requests that are too large, and those stay so.
            413 | 414 | 431 => Self::Other,
            407 | 421 => Self::Foreign,
            _ if is_page => Self::Foreign,
            404 => {
                let said = body.to_ascii_lowercase();
                [
                    ("404 page not found", Self::RouteMissing),
                    ("task not found", Self::TaskGone),
                    ("runtime not found", Self::RuntimeGone),
                    ("workspace not found", Self::WorkspaceGone),
                    ("request not found", Self::RequestGone),
                    ("update not found", Self::RequestGone),
                    ("skill bundle not found", Self::SkillGone),
                    ("not found", Self::AccessLost),
                ]
                .into_iter()
                .find_map(|(phrase, kind)| said.contains(phrase).then_some(kind))
                .unwrap_or(if is_ours(body) { Self::Other } else { Self::Foreign })
            }
            405 => Self::RouteMissing,
            408 | 425 => Self::TryAgain,
            409 => Self::Conflict,
            _ => Self::Other,
        }
    }
}

/// Whether this is how the server words an error: an object with a text `error`.
fn is_ours(body: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(body).is_ok_and(|said| said["error"].is_string())
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (status, said) = (self.status, quote(&self.body_head));
        match self.kind {
            _ if status == 407 => write!(
                f,
                "a proxy on the way wants a login ({status}): put user and password into the proxy's URL in HTTP_PROXY, HTTPS_PROXY or ALL_PROXY"
            ),
            RejectKind::Unauthorized => {
                write!(f, "the server does not take our token ({status}: {said}); log in again")?;
                match self.skew().filter(|skew| skew.is_worth_a_word()) {
                    Some(skew) => write!(f, ", or set the clock: the server's is {skew}"),
                    None => Ok(()),
                }
            }
            RejectKind::Forbidden => write!(f, "this account may not do that ({status}): {said}"),
            RejectKind::Redirected => {
                write!(
                    f,
                    "the server sends us elsewhere ({status}: {said}); set the server URL to where it really is"
                )
            }
            RejectKind::RouteMissing => write!(f, "this server has no such route ({status})"),
            RejectKind::Foreign => {
                write!(
                    f,
                    "refused ({status}), but not by the server itself; check the server URL and any proxy: {said}"
                )
            }
            _ => write!(f, "the server refused it ({status}): {said}"),
        }
    }
}

impl Rejection {
    /// Whether the clocks are so far apart that a token may be refused because of that.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.skew().is_some_and(Skew::is_doubtful)
    }

    /// How far the server's clock is from ours, if it told.
    fn skew(&self) -> Option<Skew> {
        self.server_time.map(Skew::of)
    }
}

/// What the server said, short and on one line.
fn quote(body: &str) -> String {
    #[derive(serde::Deserialize)]
    struct Envelope {
        error: String,
    }
    let said = serde_json::from_str::<Envelope>(body)
        .map_or_else(|_| body.trim().to_owned(), |envelope| envelope.error);
    if said.is_empty() {
        return "no reason given".to_owned();
    }
    let mut line: String =
        said.chars().take(MAX_QUOTE).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if line.len() < said.len() {
        line.push('…');
    }
    line
}

fn wait_text(wait: Option<&Duration>) -> String {
    wait.map(|wait| format!("; next try in {} s", wait.as_secs())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(status: u16, headers: &[(reqwest::header::HeaderName, &'static str)], body: &str) -> CallError {
        let headers =
            headers.iter().map(|(name, value)| (name.clone(), value.parse().expect("a value"))).collect();
        CallError::from_reply(status, &headers, body.to_owned())
    }

    #[test]
    fn a_404_has_a_meaning_by_its_words() {
        for (body, kind) in [
            (r#"{"error":"Task not found"}"#, RejectKind::TaskGone),
            (r#"{"error":"runtime not found"}"#, RejectKind::RuntimeGone),
            (r#"{"error":"workspace not found"}"#, RejectKind::WorkspaceGone),
            (r#"{"error":"request not found"}"#, RejectKind::RequestGone),
            (r#"{"error":"update not found"}"#, RejectKind::RequestGone),
            (r#"{"error":"skill bundle not found"}"#, RejectKind::SkillGone),
            ("404 page not found\n", RejectKind::RouteMissing),
            (r#"{"error":"not found"}"#, RejectKind::AccessLost),
            ("<html><h1>404 Not Found</h1><p>task not found", RejectKind::Foreign),
            ("default backend - 404", RejectKind::Foreign),
            ("", RejectKind::Foreign),
        ] {
            assert_eq!(reply(404, &[], body).rejected_as(), Some(kind), "{body}");
        }
    }

    #[test]
    fn the_words_of_another_status_mean_nothing() {
        assert_eq!(reply(400, &[], "task not found").rejected_as(), Some(RejectKind::Other));
        assert_eq!(reply(500, &[], "runtime not found").rejected_as(), None);
    }

    #[test]
    fn each_status_has_its_class() {
        for (status, kind) in [
            (301, RejectKind::Redirected),
            (400, RejectKind::Other),
            (401, RejectKind::Unauthorized),
            (403, RejectKind::Forbidden),
            (405, RejectKind::RouteMissing),
            (408, RejectKind::TryAgain),
            (409, RejectKind::Conflict),
            (422, RejectKind::Other),
            (425, RejectKind::TryAgain),
        ] {
            let error = reply(status, &[], "x");
            assert_eq!((error.rejected_as(), error.status()), (Some(kind), Some(status)));
            assert_eq!(error.is_transient(), kind == RejectKind::TryAgain, "{status}");
        }
        assert_eq!(reply(429, &[], ""), CallError::Throttled { status: 429, retry_after: None });
        let wait = Some(Duration::from_secs(7));
        assert_eq!(
            reply(429, &[(RETRY_AFTER, "7")], ""),
            CallError::Throttled { status: 429, retry_after: wait }
        );
        assert_eq!(
            reply(503, &[(RETRY_AFTER, "7")], ""),
            CallError::Throttled { status: 503, retry_after: wait }
        );
        for status in [500, 502, 503, 504, 599] {
            assert!(matches!(reply(status, &[], ""), CallError::ServerError { .. }), "{status}");
        }
    }

    #[test]
    fn bug_28_a_date_is_compared_with_the_servers_clock() {
        let headers =
            [(DATE, "Sun, 06 Nov 1994 08:49:37 GMT"), (RETRY_AFTER, "Sun, 06 Nov 1994 08:49:57 GMT")];
        let wait = Some(Duration::from_secs(20));
        assert_eq!(reply(429, &headers, ""), CallError::Throttled { status: 429, retry_after: wait });
    }

    #[test]
    fn bug_26_a_refused_token_names_the_clocks() {
        let error = reply(401, &[(DATE, "Sun, 06 Nov 2094 08:49:37 GMT")], r#"{"error":"invalid token"}"#);
        let text = error.to_string();
        assert!(
            text.contains("invalid token") && text.contains("log in again") && text.contains("set the clock"),
            "{text}"
        );
        assert!(!reply(401, &[], "").to_string().contains("clock"));
    }

    #[test]
    fn an_errors_text_is_one_short_line() {
        let error = reply(400, &[], &format!("{{\"error\":\"a\\nb\\u001b[31m{}\"}}", "x".repeat(5000)));
        let text = error.to_string();
        assert!(text.starts_with("the server refused it (400): a b [31mx"), "{text}");
        assert!(text.chars().count() < 300 && !text.contains(char::is_control));
        assert!(reply(301, &[(LOCATION, "https://new.test/")], "").to_string().contains("https://new.test/"));
    }
}
