//! What the server says of the things that directories were for.

use super::json::{self, DecodeError};
use super::lenient;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Most issues of one request.
pub const MAX_ISSUES: usize = 500;
/// Most bytes of one request.
pub const MAX_REQUEST: usize = 64 * 1024;

/// Asks about issues of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IssuesRequest<'a> {
    issue_ids: Vec<&'a str>,
}

impl<'a> IssuesRequest<'a> {
    /// As many of the ids, from the first on and each once, as one request may name. At least one is taken; empty ones never are.
    pub fn of(ids: impl IntoIterator<Item = &'a str>) -> Self {
        let mut issue_ids: Vec<&str> = Vec::new();
        // `{"issue_ids":[]}`; with each id go two quotes and a comma, and each of its bytes may be written as six.
        let mut bytes = 16;
        for id in ids {
            if id.is_empty() || issue_ids.contains(&id) {
                continue;
            }
            bytes += 3 + 6 * id.len();
            if issue_ids.len() == MAX_ISSUES || (bytes > MAX_REQUEST && !issue_ids.is_empty()) {
                break;
            }
            issue_ids.push(id);
        }
        Self { issue_ids }
    }

    /// The ids that it names.
    pub fn ids(&self) -> &[&'a str] {
        &self.issue_ids
    }
}

/// One of the things that were asked about. What is not understood is absent, and nothing is freed for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Subject {
    /// Which issue; empty in the answer about a single thing.
    #[serde(deserialize_with = "lenient::field")]
    pub id: String,
    /// Whether there is one, in the answer about several; `None` if it does not say.
    #[serde(deserialize_with = "lenient::field")]
    pub found: Option<bool>,
    /// Its state; for an issue the category that its status is of.
    #[serde(deserialize_with = "lenient::field")]
    pub status: String,
    /// When it was last touched, RFC 3339.
    #[serde(deserialize_with = "lenient::field")]
    updated_at: String,
    /// When it was completed, RFC 3339.
    #[serde(deserialize_with = "lenient::field")]
    completed_at: String,
}

impl Subject {
    /// When it was last touched, if that is known.
    pub fn updated_at(&self) -> Option<Timestamp> {
        time(&self.updated_at)
    }

    /// When it was completed, if it was.
    pub fn completed_at(&self) -> Option<Timestamp> {
        time(&self.completed_at)
    }
}

/// A time on the wire; the year 1 stands for none.
pub fn time(text: &str) -> Option<Timestamp> {
    text.parse::<Timestamp>().ok().filter(|time| time.as_second() > 0)
}

/// Reads the answer about several issues.
///
/// # Errors
/// If it is not one.
pub fn issues(text: &str) -> Result<Vec<Subject>, DecodeError> {
    #[derive(Deserialize)]
    struct Reply {
        #[serde(deserialize_with = "lenient::list")]
        issues: Vec<Subject>,
    }
    json::decode::<Reply>(text, "a list of issues").map(|reply| reply.issues)
}

/// Reads the answer about one thing.
///
/// # Errors
/// If it is not one.
pub fn subject(text: &str) -> Result<Subject, DecodeError> {
    json::decode(text, "a status")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gc_8_a_request_names_500_issues_at_most_and_each_once() {
        let ids: Vec<String> = (0..501).map(|n| format!("issue-{n}")).collect();
        let request = IssuesRequest::of(ids.iter().map(String::as_str).chain(["issue-0"]));
        assert_eq!(request.ids().len(), MAX_ISSUES);
        assert_eq!(IssuesRequest::of(["a", "", "a", "b", "a"]).ids(), ["a", "b"]);
        let long = "\u{1}".repeat(500);
        let ids: Vec<String> = (0..100).map(|n| format!("{n}{long}")).collect();
        let request = IssuesRequest::of(ids.iter().map(String::as_str));
        let sent = json::encode(&request).expect("JSON");
        assert!(sent.len() <= MAX_REQUEST && request.ids().len() > 10, "{}", sent.len());
    }

    #[test]
    fn answers_are_read_leniently_and_the_year_one_is_no_time() {
        let all = issues(
            r#"{"issues":[{"id":"a","found":true,"status":"done","updated_at":"2026-01-01T00:06:25.91548Z"},7,
                {"id":"b","found":false},{"id":"c","found":"yes","status":7}]}"#,
        )
        .expect("a list");
        assert_eq!(all.len(), 3);
        assert_eq!((all[0].found, all[0].updated_at().is_some()), (Some(true), true));
        assert_eq!((all[1].found, all[1].status.as_str()), (Some(false), ""));
        assert_eq!((all[2].found, all[2].status.as_str()), (None, ""));
        let run = subject(r#"{"status":"running","completed_at":"0001-01-01T00:00:00Z"}"#).expect("a status");
        assert_eq!((run.completed_at(), run.updated_at()), (None, None));
        assert!(issues("{}").is_err() && issues("<html>").is_err());
    }
}
