//! What the server says of the things that directories were for. Issues are asked for many at a time: an answer counts for a minute, and names
//! also those whose directories come next.

use super::policy::Answer;
use crate::http::{CallError, Client, Limit, RejectKind};
use crate::wire::gc::{IssuesRequest, Subject};
use longshore_core::id::WorkspaceId;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long an answer counts.
const FRESH: Duration = Duration::from_mins(1);
/// What a server says that cannot be asked about several issues, and nobody else says.
const NO_ROUTE: &str = "404 page not found";

/// What to ask about a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// What became of an issue.
    Issue {
        /// Its workspace.
        workspace: String,
        /// The issue.
        id: String,
    },
    /// What became of a chat.
    Chat {
        /// The chat.
        id: String,
    },
    /// What became of an autopilot's run.
    AutopilotRun {
        /// The run.
        id: String,
    },
    /// What became of a task that was to make an issue.
    QuickCreate {
        /// The task.
        id: String,
    },
}

/// What was asked, and what is going to be.
#[derive(Debug, Default)]
pub struct Asked {
    /// The server cannot be asked about several issues: for the rest of the process.
    one_by_one: AtomicBool,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Issues with a directory, by workspace, in the order in which their turn comes.
    next: BTreeMap<String, Vec<String>>,
    answers: BTreeMap<(String, String), (Answer, Instant)>,
}

impl Asked {
    /// The directories of this round are for these things.
    pub fn round(&self, questions: impl IntoIterator<Item = Question>) {
        let mut next: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for question in questions {
            if let Question::Issue { workspace, id } = question {
                next.entry(workspace).or_default().push(id);
            }
        }
        let mut known = self.known();
        known.next = next;
        known.answers.clear();
    }

    /// What the server says of this.
    ///
    /// # Errors
    /// If it could not be asked, or did not answer as it should: then nothing is known. An answer that there is no such thing is none of them.
    pub async fn answer(
        &self,
        client: &Client,
        question: &Question,
        limit: Limit,
    ) -> Result<Answer, CallError> {
        match question {
            Question::Issue { workspace, id } => self.issue(client, workspace, id, limit).await,
            Question::Chat { id } => of_one(client.gc_chat(id, limit).await),
            Question::AutopilotRun { id } => of_one(client.gc_autopilot_run(id, limit).await),
            Question::QuickCreate { id } => of_one(client.gc_task(id, limit).await),
        }
    }

    async fn issue(
        &self,
        client: &Client,
        workspace: &str,
        id: &str,
        limit: Limit,
    ) -> Result<Answer, CallError> {
        if let Some(answer) = self.known().fresh(workspace, id, Instant::now()) {
            return Ok(answer);
        }
        if self.one_by_one.load(Ordering::Relaxed) {
            return of_one(client.gc_issue(id, limit).await);
        }
        let ids = self.known().batch(workspace, id);
        let request = IssuesRequest::of(ids.iter().map(String::as_str));
        let at = WorkspaceId::new(workspace);
        match client.gc_issues(&at, &request, limit.clone()).await {
            Ok(issues) => {
                let mut known = self.known();
                let now = Instant::now();
                known.learn(workspace, request.ids(), |id| of_several(&issues, id), now);
                Ok(known.fresh(workspace, id, now).unwrap_or(Answer::Silent))
            }
            Err(error) if is_no_route(&error) => {
                tracing::info!("the server is asked about each issue on its own, as it knows no other way");
                self.one_by_one.store(true, Ordering::Relaxed);
                of_one(client.gc_issue(id, limit).await)
            }
            // These are not for us: to ask for each of them would be the same question many times.
            Err(CallError::Rejected(rejection)) if rejection.status == 404 => {
                self.known().learn(workspace, request.ids(), |_| Answer::Silent, Instant::now());
                Ok(Answer::Silent)
            }
            Err(error) => Err(error),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn fresh(&self, workspace: &str, id: &str, now: Instant) -> Option<Answer> {
        let (answer, at) = self.answers.get(&(workspace.to_owned(), id.to_owned()))?;
        (now.duration_since(*at) < FRESH).then(|| answer.clone())
    }

    /// This one, and those that come after it.
    fn batch(&self, workspace: &str, id: &str) -> Vec<String> {
        let next = self.next.get(workspace).map(Vec::as_slice).unwrap_or_default();
        let after = next.iter().position(|next| next == id).map_or(next, |at| &next[at + 1..]);
        std::iter::once(id.to_owned())
            .chain(after.iter().take(crate::wire::gc::MAX_ISSUES).cloned())
            .collect()
    }

    fn learn(&mut self, workspace: &str, ids: &[&str], answer: impl Fn(&str) -> Answer, now: Instant) {
        for id in ids {
            self.answers.insert((workspace.to_owned(), (*id).to_owned()), (answer(id), now));
        }
    }
}

fn of_several(issues: &[Subject], id: &str) -> Answer {
    match issues.iter().find(|issue| issue.id == id) {
        Some(issue) if issue.found == Some(true) => is(issue),
        Some(issue) if issue.found == Some(false) => Answer::Gone,
        // No word about it, or one that is not understood.
        _ => Answer::Silent,
    }
}

fn of_one(reply: Result<Subject, CallError>) -> Result<Answer, CallError> {
    match reply {
        Ok(subject) => Ok(is(&subject)),
        Err(error) => match error.rejected_as() {
            Some(RejectKind::AccessLost | RejectKind::TaskGone) => Ok(Answer::Gone),
            _ => Err(error),
        },
    }
}

fn is(subject: &Subject) -> Answer {
    Answer::Is { status: subject.status.clone(), updated_at: subject.updated_at() }
}

fn is_no_route(error: &CallError) -> bool {
    matches!(error, CallError::Rejected(rejection) if rejection.status == 404 && rejection.body_head.trim() == NO_ROUTE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::test_server::{TestServer, read_request, reply};
    use std::sync::Arc;
    use tokio::io::AsyncWriteExt;

    const LONG: Duration = Duration::from_secs(20);
    type Lines = Arc<Mutex<Vec<(String, String)>>>;

    async fn server(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> (TestServer, Lines) {
        let (lines, answer) = (Lines::default(), Arc::new(answer));
        let seen = lines.clone();
        let server = TestServer::start(move |mut stream, _| {
            let (seen, answer) = (seen.clone(), answer.clone());
            async move {
                while let Some(request) = read_request(&mut stream).await {
                    let text = answer(&request.line);
                    seen.lock().expect("no panic").push((request.line, request.body));
                    if stream.write_all(&text).await.is_err() {
                        return;
                    }
                }
            }
        })
        .await;
        (server, lines)
    }

    fn issue(id: &str) -> Question {
        Question::Issue { workspace: "w".into(), id: id.into() }
    }

    async fn ask(asked: &Asked, server: &TestServer, question: &Question) -> Result<Answer, CallError> {
        asked.answer(&server.client(), question, Limit::from(LONG)).await
    }

    fn count(lines: &Lines) -> usize {
        lines.lock().expect("no panic").len()
    }

    const THREE: &str = r#"{"issues":[{"id":"a","found":true,"status":"done","updated_at":"2026-01-01T00:00:00Z"},{"id":"b","found":false}]}"#;

    #[tokio::test]
    async fn gc_8_one_request_answers_for_all_issues_of_a_round() {
        let (server, lines) = server(|_| reply(200, "", THREE)).await;
        let asked = Asked::default();
        asked.round(["a", "b", "a", "c"].map(issue));
        let done = ask(&asked, &server, &issue("a")).await.expect("answered");
        assert!(matches!(done, Answer::Is { status, updated_at: Some(_) } if status == "done"));
        assert_eq!(ask(&asked, &server, &issue("b")).await.expect("answered"), Answer::Gone);
        assert_eq!(ask(&asked, &server, &issue("c")).await.expect("no word"), Answer::Silent);
        let lines = lines.lock().expect("no panic");
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].0, "POST /api/daemon/workspaces/w/issues/gc-check HTTP/1.1");
        assert_eq!(lines[0].1, r#"{"issue_ids":["a","b","c"]}"#);
    }

    #[test]
    fn an_answer_counts_for_a_minute() {
        let mut known = Known::default();
        let begun = Instant::now();
        known.learn("w", &["a"], |_| Answer::Gone, begun);
        let nearly = FRESH.saturating_sub(Duration::from_millis(1));
        assert_eq!(known.fresh("w", "a", begun + nearly), Some(Answer::Gone));
        assert_eq!(known.fresh("w", "a", begun + FRESH), None);
        assert_eq!((known.fresh("x", "a", begun), known.fresh("w", "b", begun)), (None, None));
    }

    #[tokio::test]
    async fn t11_a_server_without_the_route_is_asked_one_by_one_from_then_on() {
        let (server, lines) = server(|line| {
            if line.starts_with("POST") {
                reply(404, "", "404 page not found\n")
            } else {
                reply(200, "", r#"{"status":"done","updated_at":"2026-01-01T00:00:00Z"}"#)
            }
        })
        .await;
        let asked = Asked::default();
        asked.round(["a", "b"].map(issue));
        for id in ["a", "b"] {
            assert!(matches!(ask(&asked, &server, &issue(id)).await.expect("answered"), Answer::Is { .. }));
        }
        asked.round(["c"].map(issue));
        ask(&asked, &server, &issue("c")).await.expect("answered");
        let lines: Vec<_> = lines.lock().expect("no panic").iter().map(|(line, _)| line.clone()).collect();
        assert_eq!(lines.len(), 4, "{lines:?}");
        assert!(lines[0].starts_with("POST") && lines[1..].iter().all(|line| line.starts_with("GET")));
        assert_eq!(lines[3], "GET /api/daemon/issues/c/gc-check HTTP/1.1");
    }

    #[tokio::test]
    async fn t11_gc_7_a_denied_access_keeps_everything_and_asks_nothing_more() {
        let (server, lines) = server(|_| reply(404, "", r#"{"error":"not found"}"#)).await;
        let asked = Asked::default();
        asked.round(["a", "b"].map(issue));
        for id in ["a", "b"] {
            assert_eq!(ask(&asked, &server, &issue(id)).await.expect("kept"), Answer::Silent);
        }
        assert_eq!(count(&lines), 1);
        assert!(!asked.one_by_one.load(Ordering::Relaxed));
    }

    #[tokio::test]
    async fn a_server_that_fails_has_said_nothing() {
        for failure in
            [reply(500, "", ""), reply(401, "", "{}"), reply(200, "", "<html>"), reply(429, "", "")]
        {
            let (server, _) = server(move |_| failure.clone()).await;
            let asked = Asked::default();
            for question in [
                issue("a"),
                Question::Chat { id: "c".into() },
                Question::AutopilotRun { id: "r".into() },
                Question::QuickCreate { id: "t".into() },
            ] {
                ask(&asked, &server, &question).await.expect_err("no answer");
            }
        }
    }

    #[tokio::test]
    async fn of_single_things_only_the_servers_own_word_says_that_they_are_gone() {
        let chat = Question::Chat { id: "c".into() };
        for (body, gone) in [
            (r#"{"error":"chat session not found"}"#, true),
            (r#"{"error":"task not found"}"#, true),
            ("404 page not found\n", false),
            ("<html>not found", false),
            ("nothing here", false),
        ] {
            let (server, _) = server(move |_| reply(404, "", body)).await;
            let answer = ask(&Asked::default(), &server, &chat).await;
            assert_eq!(answer.is_ok_and(|answer| answer == Answer::Gone), gone, "{body}");
        }
    }
}
