//! What a run comes to: the agent's word, its exit, who ended it.

use super::super::outcome::Status;
use super::*;
use crate::reason::FailReason;
use std::time::Duration;

const TIMEOUT: EndedBy = EndedBy::Timeout { after: Duration::from_mins(1) };
const IDLE: EndedBy = EndedBy::IdleWatchdog { silent: Duration::from_mins(30), in_tool: false };

fn result(fields: &str) -> String {
    format!("{INIT}{}{{\"type\":\"result\",\"session_id\":\"s-1\",{fields}}}\n", says("partial"))
}

fn with_stderr(stdout: &str, stderr: &str, exit: Exit) -> Outcome {
    let mut fed = feed(stdout);
    fed.run.stderr(stderr.as_bytes());
    fed.end(exit, EndedBy::Itself)
}

#[test]
fn inv_agents_26_30_overruled_a_success_with_a_bad_exit_is_complete_with_a_warning() {
    let outcome = feed([INIT, DONE].concat()).exits(3);
    assert_eq!(
        (outcome.status, outcome.output.as_str(), outcome.reason),
        (Status::Completed, "All done.", None)
    );
    assert!(outcome.warnings[0].contains("exit status 3"), "{:?}", outcome.warnings);
    let killed = feed([INIT, DONE].concat()).end(Exit::signal(9), EndedBy::Itself);
    assert!(killed.status == Status::Completed && killed.warnings[0].contains("signal: killed"));
}

#[test]
fn bug_21_the_exit_of_our_own_kill_after_the_result_says_nothing() {
    for exit in [Exit::signal(15), Exit::signal(9), Exit::code(0), Exit::code(143), Exit::unknown()] {
        let outcome = feed([INIT, DONE].concat()).end(exit, EndedBy::AfterResult);
        assert_eq!((outcome.status, outcome.warnings), (Status::Completed, vec![]));
    }
    for by in [TIMEOUT, IDLE, EndedBy::Shutdown, EndedBy::Lost] {
        let outcome = feed([INIT, DONE].concat()).end(Exit::signal(9), by);
        assert_eq!((outcome.status, outcome.warnings.len()), (Status::Completed, 1), "{by:?}");
    }
}

#[test]
fn bug_23_an_end_without_a_result_is_never_a_success() {
    let some = format!("{INIT}{}", says("partial answer"));
    let vanished = feed(&some).exits(0);
    assert_eq!((vanished.status, vanished.reason), (Status::Failed, Some(FailReason::Unknown)));
    assert_eq!(vanished.error, "claude stream ended without terminal result");
    assert_eq!((vanished.output.as_str(), vanished.session_id.as_deref()), ("", Some("s-1")));

    let silent = feed("").exits(0);
    assert_eq!((silent.status, silent.reason), (Status::Failed, Some(FailReason::EmptyOutput)));
    assert!(silent.error.contains("it wrote nothing"));

    let killed = feed(&some).end(Exit::signal(9), EndedBy::Itself);
    assert_eq!(killed.error, "claude exited with error: signal: killed");
    assert_eq!(killed.reason, Some(FailReason::ProcessFailure));
}

#[test]
fn agents_3_8_a_bad_exit_is_reported_with_the_tail_of_stderr() {
    let outcome = with_stderr(&format!("{INIT}{}", says("x")), "fatal: it broke\n", Exit::code(1));
    assert_eq!(outcome.error, "claude exited with error: exit status 1; claude stderr: fatal: it broke");
    assert_eq!(outcome.reason, Some(FailReason::ProcessFailure));
    let early = with_stderr("", "Not logged in", Exit::code(1));
    assert_eq!((early.reason, early.session_id), (Some(FailReason::ProviderAuth), None));
}

#[test]
fn bug_50_only_a_plain_success_completes() {
    use FailReason as R;
    let complete = [
        r#""subtype":"success","is_error":false,"result":"x""#,
        r#""subtype":"success","result":"x""#,
        r#""subtype":null,"is_error":false,"result":"x""#,
        r#""subtype":"success","is_error":null,"result":"x","terminal_reason":"completed","stop_reason":"end_turn""#,
        r#""subtype":"success","result":"x","stop_reason":null"#,
    ];
    for fields in complete {
        let outcome = feed(result(fields)).exits(0);
        assert_eq!((outcome.status, outcome.output.as_str()), (Status::Completed, "x"), "{fields}");
    }
    let failed = [
        (
            r#""subtype":"success","is_error":true,"result":"API Error: 429 slow down""#,
            R::ProviderCapacity,
            "429",
        ),
        (r#""subtype":"error_max_turns","is_error":false"#, R::IterationLimit, "turns"),
        (r#""subtype":"error_max_turns","is_error":true"#, R::IterationLimit, "turns"),
        (r#""subtype":"blocked","result":"no""#, R::Unknown, "blocked (no)"),
        (r#""subtype":"cancelled""#, R::Cancelled, "cancelled"),
        (r#""subtype":"made_up","result":"x""#, R::Unknown, "unknown status \"made_up\" (x)"),
        (r#""subtype":7,"is_error":false"#, R::Unknown, "unknown status"),
        (r#""subtype":"success","is_error":"false""#, R::Unknown, "without details"),
        (r#""result":"x""#, R::Unknown, "does not say"),
        (r#""subtype":"success","stop_reason":"refusal","result":"x""#, R::Unknown, "refused"),
        (r#""subtype":"success","stop_reason":"max_tokens","result":"x""#, R::Unknown, "cut off"),
        (r#""subtype":"success","stop_reason":"cancelled""#, R::Cancelled, "cancelled"),
        (r#""subtype":"success","terminal_reason":"max_turns""#, R::IterationLimit, "turns"),
        (r#""is_error":true,"errors":["first","second"]"#, R::Unknown, "first; second"),
        (r#""is_error":true,"error":{"message":"overloaded"}"#, R::ProviderCapacity, "overloaded"),
        (r#""is_error":true,"error":"quota""#, R::ProviderQuota, "quota"),
        (r#""is_error":true,"result":"400 invalid_request_error""#, R::ApiInvalidRequest, "400"),
    ];
    for (fields, reason, words) in failed {
        let outcome = feed(result(fields)).exits(0);
        assert_eq!(
            (outcome.status, outcome.reason),
            (Status::Failed, Some(reason)),
            "{fields}: {}",
            outcome.error
        );
        assert!(outcome.error.contains(words), "{fields}: {}", outcome.error);
        assert_eq!((outcome.output.as_str(), outcome.session_id.as_deref()), ("", Some("s-1")));
    }
}

#[test]
fn inv_agents_26_28_a_prompt_that_is_too_long_is_a_failure_even_in_a_success() {
    let fields =
        r#""subtype":"success","is_error":false,"terminal_reason":" prompt_too_long ","result":"too much""#;
    let outcome = feed(result(fields)).exits(0);
    assert_eq!((outcome.status, outcome.reason), (Status::Failed, Some(FailReason::ContextOverflow)));
    assert!(outcome.error.contains("prompt_too_long (too much)"), "{}", outcome.error);
}

#[test]
fn inv_agents_26_29_an_error_without_a_text_has_one() {
    let outcome = feed(result(r#""is_error":true,"result":"  ""#)).exits(0);
    assert_eq!(outcome.error, "claude reported an error without details");
    let text = feed(result(r#""subtype":"success","is_error":true,"result":"API Error: 400 no""#)).exits(0);
    assert_eq!((text.error.as_str(), text.reason), ("API Error: 400 no", Some(FailReason::Unknown)));
}

#[test]
fn inv_agents_26_25_a_task_in_the_background_fails_the_run() {
    let launched = [
        r#"{"status":"async_launched"}"#,
        r#"[{"type":"text"},{"status":"async_launched"}]"#,
        r#"{"content":[{"status":"async_launched"}]}"#,
    ];
    for content in launched {
        let event = format!(
            r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","content":{content}}}]}}}}"#
        );
        let outcome = feed(format!("{INIT}{event}\n{DONE}")).exits(0);
        assert_eq!(outcome.status, Status::Failed, "{content}");
        assert!(outcome.error.contains("background") && outcome.error.contains("foreground"));
    }
    let harmless = r#"{"type":"user","message":{"content":[{"type":"tool_result","content":"\"status\":\"async_launched\""}]}}"#;
    assert_eq!(feed(format!("{harmless}\n{DONE}")).exits(0).status, Status::Completed);
}

#[test]
fn agents_3_8_precedence_of_who_ended_the_run() {
    let some = format!("{INIT}{}", says("x"));
    let cases = [
        (TIMEOUT, Status::Timeout, FailReason::Timeout, "claude timed out after 1m0s"),
        (IDLE, Status::IdleWatchdog, FailReason::IdleWatchdog, "for 30m0s"),
        (EndedBy::Cancel, Status::Cancelled, FailReason::Cancelled, "execution cancelled"),
        (EndedBy::Shutdown, Status::Failed, FailReason::RuntimeOffline, "daemon stops"),
        (EndedBy::Lost, Status::Failed, FailReason::RuntimeRecovery, "left no result"),
    ];
    for (by, status, reason, words) in cases {
        let outcome = feed(&some).end(Exit::signal(15), by);
        assert_eq!((outcome.status, outcome.reason), (status, Some(reason)));
        assert!(outcome.error.contains(words), "{}", outcome.error);
        assert_eq!((outcome.output.as_str(), outcome.session_id.as_deref()), ("", Some("s-1")));
        // What the agent said of its own failure comes first, …
        let said = feed(result(r#""is_error":true,"result":"it broke""#)).end(Exit::signal(15), by);
        assert_eq!((said.status, said.error.as_str()), (Status::Failed, "it broke"), "{by:?}");
    }
    // … but not if it only says that we interrupted it.
    let interrupted = result(r#""subtype":"error_during_execution","is_error":true"#);
    assert_eq!(feed(&interrupted).end(Exit::signal(15), TIMEOUT).status, Status::Timeout);
    assert_eq!(feed(&interrupted).exits(1).status, Status::Failed);
    assert_eq!(feed([INIT, DONE].concat()).end(Exit::code(0), EndedBy::Cancel).status, Status::Cancelled);
}

#[test]
fn bug_31_an_agent_that_closes_stdin_and_still_succeeds_completes() {
    let mut fed = feed(r#"{"type":"result","subtype":"success","result":"x"}"#);
    fed.run.stdin_failed("broken pipe");
    let outcome = fed.exits(0);
    assert_eq!(outcome.status, Status::Completed);
    assert!(outcome.warnings[0].contains("broken pipe"));

    let mut fed = feed("");
    fed.run.stdin_failed("broken pipe");
    fed.run.stdin_failed("a later one");
    let outcome = fed.exits(2);
    assert_eq!(outcome.reason, Some(FailReason::ProcessFailure));
    assert!(outcome.error.contains("prompt: broken pipe") && outcome.error.contains("exit status 2"));
}

#[test]
fn agents_3_8_a_read_error_is_a_failure_unless_the_result_was_read() {
    let mut fed = feed(INIT);
    fed.run.stdout_failed("bad disk");
    let outcome = fed.exits(0);
    assert_eq!(
        (outcome.status, outcome.error.as_str()),
        (Status::Failed, "claude stdout read error: bad disk")
    );
    let mut fed = feed(DONE);
    fed.run.stdout_failed("bad disk");
    let outcome = fed.exits(0);
    assert!(outcome.status == Status::Completed && outcome.warnings[0].contains("bad disk"));
}

#[test]
fn inv_agents_26_32_a_silent_success_is_a_success() {
    let outcome = feed(r#"{"type":"result","subtype":"success","is_error":false}"#).exits(0);
    assert_eq!((outcome.status, outcome.output.as_str(), outcome.session_id), (Status::Completed, "", None));
}

#[test]
fn the_last_of_two_results_counts_and_stdin_is_closed_once() {
    let fed = feed([DONE, &result(r#""is_error":true,"result":"after all""#)].concat());
    assert_eq!(fed.out.iter().filter(|output| **output == Output::Result).count(), 1);
    assert_eq!(fed.exits(0).error, "after all");
}

#[test]
fn a_caller_that_forgets_the_end_of_stdout_does_not_lose_the_result() {
    let mut run = Family::Claude.start(&Options::default());
    run.stdout(DONE.trim_end().as_bytes(), &mut Vec::new());
    assert!(!run.has_result());
    assert_eq!(run.finish(Exit::code(0), EndedBy::Itself).status, Status::Completed);
}
