//! From an agent's words to the reason on the wire.
//!
//! The server decides by the reason whether to try again and whether the session may be continued, so the texts that are
//! looked for, and their order, are part of the protocol.

use crate::reason::FailReason;

/// Completed outputs longer than this are taken at their word.
pub const MAX_GAVE_UP: usize = 320;

/// The reason that an error text stands for; the first rule that matches counts.
pub fn classify(error: &str) -> FailReason {
    let text = error.trim().to_lowercase();
    let has = |phrase: &str| text.contains(phrase);
    let any = |phrases: &[&str]| phrases.iter().any(|phrase| text.contains(phrase));
    let code = |codes: &[&str]| codes.iter().any(|code| isolated(&text, |digits| digits == *code));

    if any(&[
        "context length",
        "context_length_exceeded",
        "maximum context",
        "prompt is too long",
        "context size has been exceeded",
        "context window limit",
        "model_context_window_exceeded",
        "prompt_too_long",
    ]) || (has("token") && has("limit"))
    {
        FailReason::ContextOverflow
    } else if any(&["missing environment variable", "no llm provider configured", "no provider configured"])
        || (has("missing") && has("api_key"))
        || (has("api key") && has("required"))
    {
        FailReason::MissingConfig
    } else if code(&["401", "403"])
        || any(&[
            "access token",
            "does not have access",
            "invalid api key",
            "login required",
            "not logged in",
            "please login again",
            "refresh token",
            "subscription access",
            "unauthorized",
            "you may not have access",
        ])
    {
        FailReason::ProviderAuth
    } else if code(&["402"])
        || any(&[
            "balance is too low",
            "credits",
            "insufficient_balance",
            "monthly usage limit",
            "quota",
            "usage limit",
            "you've hit your limit",
            "you\u{2019}ve hit your limit",
        ])
    {
        FailReason::ProviderQuota
    } else if code(&["429", "529"]) || any(&["rate limit", "overloaded", "no capacity available"]) {
        FailReason::ProviderCapacity
    } else if isolated(&text, |digits| digits.len() == 3 && digits.starts_with('5'))
        || any(&[
            "bad gateway",
            "internal error",
            "provider returned error",
            "server had an error",
            "service unavailable",
        ])
    {
        FailReason::ProviderServerError
    } else if any(&[
        "connection closed",
        "connection refused",
        "connectionrefused",
        "deadline exceeded",
        "dial tcp",
        "dns",
        "error sending request",
        "i/o timeout",
        "mid-response",
        "opencode stream ended",
        "stream disconnected",
        "timeout exceeded while awaiting",
        "unable to connect",
    ]) {
        FailReason::ProviderNetwork
    } else if (has("model") && has("not found"))
        || any(&["unknown model", "selected model", "http 404", "404 page not found"])
    {
        FailReason::ModelNotFound
    } else if any(&["returned empty output", "returned no parseable output"]) {
        FailReason::EmptyOutput
    } else if has("timed out after") {
        FailReason::AgentTimeout
    } else if any(&["executable not found", "exec format error"]) {
        FailReason::MissingExecutable
    } else if any(&["below the minimum supported version", "requires a newer version"]) {
        FailReason::UnsupportedVersion
    } else if any(&[
        "exit status",
        "file already closed",
        "initialize failed",
        "panic",
        "pipe has been ended",
        "process exited",
        "signal",
        "sigsegv",
        "start codex:",
    ]) {
        FailReason::ProcessFailure
    } else {
        FailReason::Unknown
    }
}

/// The reason of a run that failed with `error`: a request that can never be accepted, else what [`classify`] says.
pub fn of_failed_run(error: &str) -> FailReason {
    if is_invalid_request(error) { FailReason::ApiInvalidRequest } else { classify(error) }
}

/// Why an output that the agent calls complete is none: a short text by which it says that it gave up.
pub fn gave_up(output: &str) -> Option<FailReason> {
    let output = output.trim();
    if output.len() > MAX_GAVE_UP {
        return None;
    }
    let text = output.to_lowercase();
    let all = |phrases: &[&str]| phrases.iter().all(|phrase| text.contains(phrase));
    if all(&["prompt is too long", "cannot be compacted"])
        || all(&["conversation too long", "press esc twice"])
        || all(&["compaction failed", "reduced below the context limit"])
    {
        Some(FailReason::ContextOverflow)
    } else if all(&["i reached the iteration limit"]) {
        Some(FailReason::IterationLimit)
    } else if all(&["put your final update inside the content string"]) {
        Some(FailReason::AgentFallbackMessage)
    } else {
        None
    }
}

/// Whether `error` says that the session's history has an empty message in it, so that the provider refuses it for ever.
pub fn is_unresumable_history(error: &str) -> bool {
    let text = error.to_lowercase().replace("non-empty", "nonempty");
    let empty = [
        "must not be empty",
        "must be nonempty",
        "must have nonempty",
        "nonempty content",
        "cannot be empty",
        "should not be empty",
    ];
    empty.iter().any(|phrase| text.contains(phrase)) && names_history(&text)
}

/// Whether `error` says that the agent could not tell how to authenticate; a fresh session may know.
pub fn is_auth_unresolved(error: &str) -> bool {
    error.to_lowercase().contains("could not resolve authentication method")
}

fn is_invalid_request(error: &str) -> bool {
    let text = error.to_lowercase();
    let all = |phrases: &[&str]| phrases.iter().all(|phrase| text.contains(phrase));
    all(&["image dimensions exceed max allowed size", "image.source.base64.data"])
        || all(&["invalid_request_error", "400"])
        || is_unresumable_history(error)
}

/// Whether `text` (lower case) points at a message of the history.
fn names_history(text: &str) -> bool {
    let role_assistant = text.match_indices("role").any(|(at, role)| {
        let after = &text[at + role.len()..];
        let between = after.chars().take(3).take_while(|c| !c.is_alphanumeric()).map(char::len_utf8);
        (0..=2).any(|n| {
            let skip: usize = between.clone().take(n).sum();
            after[skip..].starts_with("assistant")
        })
    });
    let numbered = ["messages.", "messages["].iter().any(|start| {
        text.match_indices(start)
            .any(|(at, found)| text[at + found.len()..].starts_with(|c: char| c.is_ascii_digit()))
    });
    role_assistant || numbered || text.contains("assistant message") || text.contains("message at position")
}

/// Whether a run of digits in `text`, with no digit before and behind it, is `wanted`.
fn isolated(text: &str, wanted: impl Fn(&str) -> bool) -> bool {
    text.split(|c: char| !c.is_ascii_digit()).any(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_21_2_every_rule_has_its_text() {
        use FailReason as R;
        let cases = [
            ("", R::Unknown),
            ("  something odd ", R::Unknown),
            ("Prompt is too long", R::ContextOverflow),
            ("the token count is over the limit", R::ContextOverflow),
            ("missing ANTHROPIC_API_KEY", R::MissingConfig),
            ("an API key is required", R::MissingConfig),
            ("HTTP 401", R::ProviderAuth),
            ("Not logged in", R::ProviderAuth),
            ("402 payment", R::ProviderQuota),
            ("You\u{2019}ve hit your limit for today", R::ProviderQuota),
            ("You've hit your limit", R::ProviderQuota),
            ("API Error: 429 slow down", R::ProviderCapacity),
            ("Overloaded", R::ProviderCapacity),
            ("status=503;", R::ProviderServerError),
            ("Bad Gateway", R::ProviderServerError),
            ("dial tcp: no route", R::ProviderNetwork),
            ("context deadline exceeded", R::ProviderNetwork),
            ("model x-1 not found", R::ModelNotFound),
            ("claude returned empty output", R::EmptyOutput),
            ("claude timed out after 2s", R::AgentTimeout),
            ("executable not found at \"/bin/x\"", R::MissingExecutable),
            ("version 1 is below the minimum supported version 2", R::UnsupportedVersion),
            ("claude exited with error: exit status 1", R::ProcessFailure),
            ("claude exited with error: signal: killed", R::ProcessFailure),
        ];
        for (text, reason) in cases {
            assert_eq!(classify(text), reason, "{text}");
        }
    }

    #[test]
    fn agents_21_2_numbers_count_only_alone() {
        assert_eq!(classify("port 54290 in use"), FailReason::Unknown);
        assert_eq!(classify("5023 words"), FailReason::Unknown);
        assert_eq!(classify("code=429"), FailReason::ProviderCapacity);
        assert_eq!(classify("x500x"), FailReason::ProviderServerError);
        assert_eq!(classify("API Error: 400 no"), FailReason::Unknown);
    }

    #[test]
    fn agents_21_2_the_first_rule_wins() {
        assert_eq!(classify("quota: token limit"), FailReason::ContextOverflow);
        assert_eq!(classify("exit status 1; not logged in"), FailReason::ProviderAuth);
        assert_eq!(classify("exit status 1; 429"), FailReason::ProviderCapacity);
    }

    #[test]
    fn agents_21_5_only_a_short_output_can_say_that_the_agent_gave_up() {
        let cases = [
            ("Prompt is too long and cannot be compacted.", FailReason::ContextOverflow),
            ("Conversation too long. Press Esc twice to go back.", FailReason::ContextOverflow),
            ("Compaction failed: could not be reduced below the context limit", FailReason::ContextOverflow),
            ("Sorry, I reached the iteration limit.", FailReason::IterationLimit),
            ("Put your final update inside the content string", FailReason::AgentFallbackMessage),
        ];
        for (text, reason) in cases {
            assert_eq!(gave_up(text), Some(reason), "{text}");
            let long = format!("{text}{}", "x".repeat(MAX_GAVE_UP + 1 - text.len()));
            assert_eq!(gave_up(&long), None);
            let padded = format!("{text}{}", " ".repeat(MAX_GAVE_UP));
            assert_eq!(gave_up(&padded), Some(reason));
        }
        assert_eq!(gave_up("The prompt is too long, so I cut it."), None);
        assert_eq!(gave_up(""), None);
    }

    #[test]
    fn agents_21_5_requests_that_can_never_be_accepted() {
        for text in [
            "API Error: 400 {\"type\":\"invalid_request_error\"}",
            "messages.0.content.1.image.source.base64.data: image dimensions exceed max allowed size",
            "400: messages.12: must have non-empty content",
        ] {
            assert_eq!(of_failed_run(text), FailReason::ApiInvalidRequest, "{text}");
        }
        assert_eq!(of_failed_run("API Error: 400 no"), FailReason::Unknown);
    }

    #[test]
    fn agents_21_4_unresumable_history_needs_both_halves() {
        for text in [
            "The message at position 3 with role 'assistant' must not be empty",
            "message with role: assistant cannot be empty",
            "text content blocks must be nonempty: messages[4]",
            "Assistant message should NOT be empty",
        ] {
            assert!(is_unresumable_history(text), "{text}");
        }
        for text in [
            "title must not be empty",
            "messages.3: wrong",
            "messages.x must not be empty",
            "role of the assistant",
        ] {
            assert!(!is_unresumable_history(text), "{text}");
        }
        assert!(is_auth_unresolved("Could not resolve authentication method."));
    }
}
