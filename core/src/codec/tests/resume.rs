//! Which session is resumed, announced, kept or given up.

use super::super::outcome::Status;
use super::super::retry::{reconcile, wants_fresh_session};
use super::*;

fn resuming(id: &str, stdout: impl AsRef<[u8]>) -> Fed {
    feed_with(&Options { resume_session: id.into(), ..Options::default() }, stdout)
}

fn init(id: &str) -> String {
    INIT.replace("s-1", id)
}

fn failed(id: &str) -> String {
    format!("{{\"type\":\"result\",\"is_error\":true,\"result\":\"it broke\",\"session_id\":\"{id}\"}}\n")
}

/// The rest of the daemon in small: one run, and a fresh one if it is called for. Gives the id that is stored at the
/// end, how many fresh runs there were, and whether the old id was given up.
fn turn(asked: Option<&str>, stdout: &str, fresh: &str) -> (Option<String>, usize, bool) {
    let options = Options { resume_session: asked.unwrap_or_default().to_owned(), ..Options::default() };
    let first = feed_with(&options, stdout).exits(0);
    if asked.is_none() || !wants_fresh_session(&first, Family::Claude.rejection_signs()) {
        return (first.session_id, 0, false);
    }
    let second = feed(fresh).exits(0);
    (reconcile(first, second).session_id, 1, true)
}

#[test]
fn bug_49_which_id_is_stored_and_when_a_fresh_run_is_started() {
    let fresh = format!("{}{}{}", init("fresh"), says("x"), DONE.replace("s-1", "fresh"));
    let no_prompt =
        format!("{{\"type\":\"system\",\"subtype\":\"hook_started\",\"session_id\":\"h\"}}\n{}", failed("h"));
    let id = |id: &str| Some(id.to_owned());

    let ok = format!("{}{}{}", init("old"), says("x"), DONE.replace("s-1", "old"));
    assert_eq!(turn(Some("old"), &ok, &fresh), (id("old"), 0, false), "a");
    let mid_turn = format!("{}{}{}", init("old"), says("x"), failed("old"));
    assert_eq!(turn(Some("old"), &mid_turn, &fresh), (id("old"), 0, false), "b");
    assert_eq!(turn(Some("dead"), &failed("new"), &fresh), (id("fresh"), 1, true), "c");
    let moved = format!("{}{}{}", init("new"), says("x"), DONE.replace("s-1", "new"));
    assert_eq!(turn(Some("dead"), &moved, &fresh), (id("new"), 0, false), "d");
    let gone = r#"{"type":"result","is_error":true,"result":"No conversation found with that id"}"#;
    assert_eq!(turn(Some("dead"), gone, &fresh), (id("fresh"), 1, true), "e");
    assert_eq!(turn(None, &no_prompt, &fresh), (None, 0, false), "f");
    assert_eq!(turn(Some("dead"), &failed("new"), &no_prompt), (None, 1, true), "g");
}

#[test]
fn bug_49_an_id_is_announced_once_and_only_with_proof() {
    let hook = "{\"type\":\"system\",\"subtype\":\"hook_started\",\"session_id\":\"s-1\"}\n";
    assert_eq!(feed(hook).sessions(), [""; 0]);
    assert_eq!(feed([hook, INIT, INIT].concat()).sessions(), ["s-1"]);
    assert_eq!(feed(r#"{"type":"system","session_id":"s-1"}"#).sessions(), ["s-1"]);
    assert_eq!(resuming("s-1", INIT).sessions(), ["s-1"]);
    // Another one than asked for may be the trace of a failed resume, until the model answers.
    assert_eq!(resuming("old", INIT).sessions(), [""; 0]);
    assert_eq!(resuming("old", [INIT, &says("x")].concat()).sessions(), ["s-1"]);
}

#[test]
fn inv_agents_26_34_the_words_of_a_lost_session_count_only_in_a_resume() {
    let phrases = [
        "No conversation found with session ID x",
        "no saved session found",
        "会话已绑定另外账号",
        "this session is Bound to another account",
        "bound to a different account",
    ];
    for phrase in phrases {
        let mut fed = resuming("old", "");
        fed.run.stderr(phrase.as_bytes());
        let outcome = fed.exits(1);
        assert!(outcome.resume_rejected && outcome.session_id.is_none(), "{phrase}");

        let mut fed = feed("");
        fed.run.stderr(phrase.as_bytes());
        assert!(!fed.exits(1).resume_rejected, "{phrase}");
    }
}

#[test]
fn inv_agents_26_35_another_id_is_a_rejection_if_failed_and_adopted_if_completed() {
    let rejected = resuming("old", [INIT, &failed("s-1")].concat()).exits(1);
    assert!(rejected.resume_rejected && rejected.session_id.is_none());
    let adopted = resuming("old", [INIT, DONE].concat()).exits(0);
    assert_eq!((adopted.resume_rejected, adopted.session_id.as_deref()), (false, Some("s-1")));
    let same = resuming("s-1", [INIT, &failed("s-1")].concat()).exits(1);
    assert_eq!((same.resume_rejected, same.session_id.as_deref()), (false, Some("s-1")));
}

#[test]
fn a_run_that_we_ended_proves_nothing_about_its_resume() {
    for by in [EndedBy::Cancel, EndedBy::Shutdown, EndedBy::Lost] {
        let outcome = resuming("old", INIT).end(Exit::signal(15), by);
        assert!(!outcome.resume_rejected && outcome.session_id.is_none(), "{by:?}");
    }
}

#[test]
fn agents_3_4_the_result_has_the_last_word_on_the_session() {
    let result = |id: &str| format!("{{\"type\":\"result\",\"subtype\":\"success\"{id}}}");
    let other = feed([INIT, &result(",\"session_id\":\"s-2\"")].concat()).exits(0);
    assert_eq!(other.session_id.as_deref(), Some("s-2"));
    let none = feed([INIT, &result(",\"session_id\":\"\"")].concat()).exits(0);
    assert_eq!((none.status, none.session_id), (Status::Completed, None));
    let silent = feed([INIT, &result("")].concat()).exits(0);
    assert_eq!(silent.session_id.as_deref(), Some("s-1"));
}
