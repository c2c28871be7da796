//! The agent's own word on how its run ended.
//!
//! Only a plain success counts as one: a result that says both, or something unknown, is a failure.

use super::LABEL;
use crate::codec::json::Json;
use crate::codec::message::cut;
use crate::codec::outcome::MAX_ERROR;
use crate::reason::FailReason;
use serde::{Deserialize, Serialize};

/// How the run ended, says the agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub(super) enum Verdict {
    /// It is done; the text may be empty.
    Success { text: String },
    /// It is not.
    Failure {
        error: String,
        /// If it is certain; else the text has to be classified.
        reason: Option<FailReason>,
        /// Whether the agent was merely interrupted, as it is when we end it.
        interrupted: bool,
    },
}

/// Ends other than success that have a known meaning, in words, with their reason if the text should not decide.
fn known_end(state: &str) -> Option<(&'static str, Option<FailReason>)> {
    Some(match state {
        "error_max_turns" | "max_turns" => ("it used up its turns", Some(FailReason::IterationLimit)),
        "error_max_budget_usd" => ("it used up its budget", Some(FailReason::ProviderQuota)),
        "error_during_execution" => ("it was interrupted by an error", None),
        "max_tokens" => {
            ("its answer was cut off at the longest that the model gives", Some(FailReason::Unknown))
        }
        "model_context_window_exceeded" => {
            ("the conversation no longer fits the model", Some(FailReason::ContextOverflow))
        }
        "refusal" => ("the model refused to answer", Some(FailReason::Unknown)),
        "blocked" => ("it was blocked", Some(FailReason::Unknown)),
        "cancelled" | "canceled" | "aborted_streaming" | "aborted_tools" => {
            ("it was cancelled", Some(FailReason::Cancelled))
        }
        _ => return None,
    })
}

impl Verdict {
    /// Reads a `result` event.
    pub(super) fn of(event: Json<'_>) -> Self {
        let [subtype, is_error, terminal, stop, result] =
            event.fields(["subtype", "is_error", "terminal_reason", "stop_reason", "result"]);
        let text = result.and_then(Json::string).unwrap_or_default();
        let terminal = terminal.and_then(Json::string).unwrap_or_default();
        let (subtype, is_error) = (present(subtype), present(is_error));
        let status = subtype.map(|subtype| subtype.string().unwrap_or_else(|| subtype.raw().into()));
        let status = status.as_deref();

        let failure = |error: String, reason| Self::Failure {
            error: cut(&error, MAX_ERROR).to_owned(),
            reason,
            interrupted: status == Some("error_during_execution"),
        };
        if terminal.trim() == "prompt_too_long" {
            return failure(
                with_details("the prompt is too long for the model: prompt_too_long", text.trim()),
                None,
            );
        }
        // What is neither true nor false is no word for success.
        if is_error.is_some_and(|flag| flag.bool() != Some(false)) {
            let known = status.and_then(known_end).or_else(|| known_end(terminal.trim()));
            let error = match (details(event, &text), known) {
                (Some(details), _) => details,
                (None, Some((words, _))) => with_details(words, ""),
                (None, None) => format!("{LABEL} reported an error without details"),
            };
            return failure(error, known.and_then(|(_, reason)| reason));
        }
        let bad_end = match status {
            Some("success") => None,
            None if is_error.is_some() => None,
            None => Some("its result does not say whether it succeeded".to_owned()),
            Some(status) if known_end(status).is_none() => {
                Some(format!("it ended with the unknown status {:?}", cut(status, 100)))
            }
            Some(_) => Some(String::new()),
        };
        if let Some(unknown) = bad_end {
            let (words, reason) = status.and_then(known_end).unwrap_or((&unknown, None));
            return failure(with_details(words, &details(event, &text).unwrap_or_default()), reason);
        }
        let stop = stop.and_then(Json::string).unwrap_or_default();
        match known_end(terminal.trim()).or_else(|| known_end(stop.trim())) {
            Some((words, reason)) => failure(with_details(words, text.trim()), reason),
            None => Self::Success { text: text.into_owned() },
        }
    }
}

/// A field that is there and not null.
fn present(field: Option<Json<'_>>) -> Option<Json<'_>> {
    field.filter(|field| !field.is_null())
}

fn with_details(words: &str, details: &str) -> String {
    let details = if details.is_empty() { String::new() } else { format!(" ({details})") };
    format!("{LABEL} did not complete: {words}{details}")
}

/// What the result says about the error, wherever it says it.
fn details(event: Json<'_>, text: &str) -> Option<String> {
    if !text.trim().is_empty() {
        return Some(text.trim().to_owned());
    }
    let [errors, error] = event.fields(["errors", "error"]);
    let mut found: Vec<String> = Vec::new();
    if let Some(errors) = errors {
        errors.each_item(|error| {
            if found.len() < 8 {
                found.extend(error.string().map(|error| error.trim().to_owned()));
            }
        });
    }
    if found.is_empty()
        && let Some(error) = error
    {
        let message = error.string().unwrap_or_else(|| error.text("message"));
        found.push(message.trim().to_owned());
    }
    found.retain(|text| !text.is_empty());
    (!found.is_empty()).then(|| found.join("; "))
}
