//! What may be freed of a directory, from what is known of it and what the server says. A pure function: all ages are from times that it is given.

use super::asked::Question;
use super::look::Look;
use crate::config::GcSettings;
use jiff::Timestamp;
use std::time::Duration;

/// What the server says of the thing that a directory was for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing: it said no word about it, or could not be asked.
    Silent,
    /// It is not there, or not for us.
    Gone,
    /// It is there.
    Is {
        /// Its state.
        status: String,
        /// When it was last touched.
        updated_at: Option<Timestamp>,
    },
}

/// What may be freed; a later one frees more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Nothing.
    Keep,
    /// The copies of its program that codex makes again.
    Managed,
    /// What can be made again.
    Artifacts,
    /// All of it.
    All,
}

impl Verdict {
    /// In a word, for people.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Keep => "nothing",
            Self::Managed => "managed",
            Self::Artifacts => "artifacts",
            Self::All => "all",
        }
    }
}

/// Why all of it may go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    Over,
    Orphan,
}

enum Found {
    Keep,
    Managed,
    Artifacts,
    All(Why),
}

/// Decides, by the first of the rules that fits. `answer` counts for nothing where there was nothing to ask.
pub fn decide(look: &Look, answer: &Answer, settings: &GcSettings, now: Timestamp) -> Verdict {
    let rules = Rules { look, settings, now };
    let artifacts_are_due = rules.is_older(look.completed_at, settings.artifact_ttl);
    let verdict = match (rules.first(answer), look.local) {
        (_, true) if settings.artifact_ttl.is_none() => return Verdict::Keep,
        // What is left of a task in a person's directory is the record of it: it stays.
        (Found::All(Why::Over), true) | (Found::Artifacts, _) => Verdict::Artifacts,
        (Found::All(Why::Orphan), true) | (Found::Managed, _) => Verdict::Managed,
        (Found::All(_), false) => Verdict::All,
        (Found::Keep, _) if artifacts_are_due => Verdict::Managed,
        (Found::Keep, _) => Verdict::Keep,
    };
    if verdict == Verdict::Managed && !look.has_managed { Verdict::Keep } else { verdict }
}

struct Rules<'a> {
    look: &'a Look,
    settings: &'a GcSettings,
    now: Timestamp,
}

impl Rules<'_> {
    /// Whether `since` is longer ago than `limit`; never if either is not known.
    fn is_older(&self, since: Option<Timestamp>, limit: Option<Duration>) -> bool {
        let (Some(since), Some(limit)) = (since, limit) else { return false };
        Duration::try_from(self.now.duration_since(since)).is_ok_and(|age| age > limit)
    }

    fn orphan(&self) -> Found {
        if self.is_older(Some(self.look.touched_at), self.settings.orphan_ttl) {
            Found::All(Why::Orphan)
        } else {
            Found::Keep
        }
    }

    fn first(&self, answer: &Answer) -> Found {
        let Some(question) = &self.look.question else { return self.orphan() };
        match (question, answer) {
            (_, Answer::Silent) => Found::Keep,
            (Question::Chat { .. }, Answer::Gone) => Found::All(Why::Over),
            (_, Answer::Gone) => self.orphan(),
            (Question::Issue { .. }, Answer::Is { status, updated_at }) => self.issue(status, *updated_at),
            (Question::Chat { .. }, Answer::Is { status, updated_at }) => {
                let over = status == "archived" && self.is_older(*updated_at, self.settings.ttl);
                if over { Found::All(Why::Over) } else { Found::Keep }
            }
            (Question::AutopilotRun { .. }, Answer::Is { status, .. }) => {
                over_if(["completed", "failed", "skipped", "issue_created"].contains(&status.as_str()))
            }
            (Question::QuickCreate { .. }, Answer::Is { status, .. }) => {
                over_if(["completed", "failed", "cancelled"].contains(&status.as_str()))
            }
        }
    }

    fn issue(&self, status: &str, updated_at: Option<Timestamp>) -> Found {
        let (look, settings) = (self.look, self.settings);
        let over = ["done", "cancelled"].contains(&status);
        let known = over || ["backlog", "todo", "in_progress", "in_review", "blocked"].contains(&status);
        if over && self.is_older(updated_at, settings.ttl) {
            return Found::All(Why::Over);
        }
        if known && !look.local && self.is_older(look.completed_at, settings.completed_task_ttl) {
            return Found::All(Why::Over);
        }
        if self.is_older(look.completed_at, settings.artifact_ttl) {
            return Found::Artifacts;
        }
        let never_ended = look.completed_at.is_none() && settings.artifact_ttl.is_some();
        if never_ended && self.is_older(look.noted_at, settings.orphan_ttl) {
            return Found::Managed;
        }
        Found::Keep
    }
}

fn over_if(over: bool) -> Found {
    if over { Found::All(Why::Over) } else { Found::Keep }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3600;

    fn now() -> Timestamp {
        "2026-06-01T00:00:00Z".parse().expect("a time")
    }

    /// So many seconds ago.
    fn ago(seconds: i64) -> Timestamp {
        Timestamp::from_second(now().as_second() - seconds).expect("a time")
    }

    fn settings() -> GcSettings {
        let hours = |hours: u64| Some(Duration::from_secs(hours * 3600));
        GcSettings {
            enabled: true,
            interval: Duration::from_hours(2),
            ttl: hours(24),
            completed_task_ttl: None,
            orphan_ttl: hours(72),
            artifact_ttl: hours(12),
            artifact_patterns: Vec::new(),
            repo_ttl: None,
            repo_maintenance: false,
            codex_session_ttl: None,
            hermes_memory_ttl: None,
            hermes_session_ttl: None,
            task_temp_legacy_ttl: None,
        }
    }

    fn look(kind: &str) -> Look {
        let id = "i".to_owned();
        let question = match kind {
            "issue" => Some(Question::Issue { workspace: "w".into(), id }),
            "chat" => Some(Question::Chat { id }),
            "autopilot" => Some(Question::AutopilotRun { id }),
            "quick" => Some(Question::QuickCreate { id }),
            _ => None,
        };
        Look {
            question,
            completed_at: Some(ago(HOUR)),
            local: false,
            touched_at: ago(HOUR),
            noted_at: Some(ago(HOUR)),
            has_managed: true,
        }
    }

    fn is(status: &str, updated: i64) -> Answer {
        Answer::Is { status: status.into(), updated_at: Some(ago(updated)) }
    }

    fn verdict(look: &Look, answer: &Answer) -> Verdict {
        decide(look, answer, &settings(), now())
    }

    /// A rule with one limit: kept at it, `then` a second later.
    fn limit(kind: &str, hours: i64, then: Verdict, set: impl Fn(&mut Look, i64) -> Answer) {
        for (seconds, want) in [(hours * HOUR, Verdict::Keep), (hours * HOUR + 1, then)] {
            let mut look = look(kind);
            let answer = set(&mut look, seconds);
            assert_eq!(verdict(&look, &answer), want, "{kind} {seconds} {answer:?}");
        }
    }

    #[test]
    fn gc_1_each_rule_holds_from_the_first_second_after_its_limit() {
        let orphan = |answer: Answer| {
            move |look: &mut Look, age| {
                look.touched_at = ago(age);
                answer.clone()
            }
        };
        limit("none", 72, Verdict::All, orphan(Answer::Silent));
        for kind in ["issue", "autopilot", "quick"] {
            limit(kind, 72, Verdict::All, orphan(Answer::Gone));
        }
        for status in ["done", "cancelled"] {
            limit("issue", 24, Verdict::All, |_, age| is(status, age));
        }
        limit("chat", 24, Verdict::All, |_, age| is("archived", age));
        limit("issue", 12, Verdict::Artifacts, |look, age| {
            look.completed_at = Some(ago(age));
            is("todo", 0)
        });
        limit("issue", 72, Verdict::Managed, |look, age| {
            (look.completed_at, look.noted_at) = (None, Some(ago(age)));
            is("todo", 0)
        });
        for kind in ["issue", "chat", "autopilot", "quick"] {
            limit(kind, 12, Verdict::Managed, |look, age| {
                look.completed_at = Some(ago(age));
                Answer::Silent
            });
        }
    }

    #[test]
    fn what_is_over_by_its_state_goes_at_once() {
        assert_eq!(verdict(&look("chat"), &Answer::Gone), Verdict::All);
        for status in ["completed", "failed", "skipped", "issue_created"] {
            assert_eq!(verdict(&look("autopilot"), &is(status, 0)), Verdict::All, "{status}");
        }
        for status in ["completed", "failed", "cancelled"] {
            assert_eq!(verdict(&look("quick"), &is(status, 0)), Verdict::All, "{status}");
        }
        for (kind, status) in [("autopilot", "running"), ("quick", "running"), ("chat", "active")] {
            assert_eq!(verdict(&look(kind), &is(status, 999 * HOUR)), Verdict::Keep, "{kind}");
        }
    }

    #[test]
    fn gc_5_an_unknown_status_frees_nothing_but_what_can_be_made_again() {
        let hosted = GcSettings { completed_task_ttl: Some(Duration::from_hours(24)), ..settings() };
        let mut old = look("issue");
        old.completed_at = Some(ago(999 * HOUR));
        let of = |status| decide(&old, &is(status, 0), &hosted, now());
        assert_eq!(of("some_new_state"), Verdict::Artifacts);
        assert_eq!(of("in_progress"), Verdict::All);
        old.local = true;
        assert_eq!(decide(&old, &is("in_progress", 0), &hosted, now()), Verdict::Artifacts);
        assert_eq!(verdict(&look("issue"), &is("done_too", 999 * HOUR)), Verdict::Keep);
    }

    #[test]
    fn gc_6_without_an_answer_nothing_of_worth_goes() {
        for kind in ["issue", "chat", "autopilot", "quick"] {
            let mut old = look(kind);
            (old.touched_at, old.completed_at) = (ago(9999 * HOUR), Some(ago(9999 * HOUR)));
            assert_eq!(verdict(&old, &Answer::Silent), Verdict::Managed, "{kind}");
            old.has_managed = false;
            assert_eq!(verdict(&old, &Answer::Silent), Verdict::Keep, "gc_12: {kind}");
        }
    }

    #[test]
    fn gc_13_a_task_in_a_persons_directory_keeps_its_record() {
        let mut local = look("issue");
        (local.local, local.touched_at) = (true, ago(99 * HOUR));
        assert_eq!(verdict(&local, &is("done", 99 * HOUR)), Verdict::Artifacts);
        assert_eq!(verdict(&local, &Answer::Gone), Verdict::Managed);
        let off = GcSettings { artifact_ttl: None, ..settings() };
        for answer in [is("done", 99 * HOUR), Answer::Gone] {
            assert_eq!(decide(&local, &answer, &off, now()), Verdict::Keep);
        }
    }

    #[test]
    fn gc_17_an_idle_chat_gives_back_what_codex_makes_again() {
        let mut chat = look("chat");
        chat.completed_at = Some(ago(13 * HOUR));
        assert_eq!(verdict(&chat, &is("active", 0)), Verdict::Managed);
    }

    #[test]
    fn times_of_the_future_and_limits_that_are_off_free_nothing() {
        let never = GcSettings {
            ttl: None,
            orphan_ttl: None,
            artifact_ttl: None,
            completed_task_ttl: None,
            ..settings()
        };
        let mut old = look("none");
        (old.touched_at, old.completed_at) = (ago(9999 * HOUR), None);
        assert_eq!(decide(&old, &Answer::Silent, &never, now()), Verdict::Keep);
        old.question = look("issue").question;
        for answer in [is("done", 9999 * HOUR), Answer::Gone] {
            assert_eq!(decide(&old, &answer, &never, now()), Verdict::Keep);
        }
        assert_eq!(verdict(&look("issue"), &is("done", -9999 * HOUR)), Verdict::Keep);
        let no_time = Answer::Is { status: "done".into(), updated_at: None };
        assert_eq!(verdict(&look("issue"), &no_time), Verdict::Keep);
    }
}
