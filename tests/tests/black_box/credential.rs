//! A credential that changes while the daemon runs.

use crate::bed::{Bed, WITHIN, is_claim};
use longshore_core::plane::Hint;
use longshore_io_tokio::agent_double::Step;
use longshore_io_tokio::plane::{Action, Request, Rule, TaskSpec};
use longshore_io_tokio::secret::Secret;
use longshore_tests::Gate;

/// Without the prefix by which the log knows a token.
const NEW: &str = "another-token-for-the-same-daemon";
const HINT: &str = "log in again with `multica login`";

#[tokio::test]
async fn bug_27_a_new_token_in_the_config_file_is_used_without_a_restart_and_the_report_arrives_once() {
    let bed = Bed::new().await;
    bed.linked().await;
    let gate = Gate::new(bed.home.dir().join("gate"));
    let script = [Step::Say("before".into()), gate.wait(), Step::Say(" and after".into())];
    let task = bed.enqueue(TaskSpec::new("claude").script(&script));
    bed.spoke(&task).await;

    bed.plane.replace_token(Secret::new(NEW));
    let _open = gate.open();
    let refused = |request: &Request| request.path.contains(task.as_str()) && request.status() == Some(401);
    bed.plane.wait_for_request(WITHIN, refused).await.expect("what the task has to say is refused");
    bed.home.log_in(NEW);
    bed.completed(&task).await;
    assert_eq!(bed.said(&task), "before and after", "{:#?}", bed.calls(&task, "messages"));
    let taken = bed.calls(&task, "complete").iter().filter(|request| request.status() == Some(200)).count();
    assert_eq!((taken, bed.calls(&task, "fail").len(), bed.home.agent_starts().len()), (1, 0, 1));

    // The control connection is one of the new token too.
    let dialled = |request: &Request| request.path == "/api/daemon/ws";
    bed.plane.wait_for_requests(2, WITHIN, dialled).await.expect("it is dialled again");
    bed.linked().await;
    let next = bed.enqueue(TaskSpec::new("claude"));
    bed.completed(&next).await;
    assert_eq!(
        bed.plane.requests_where(|request| request.is("POST", "/register")).len(),
        1,
        "it is the same daemon"
    );

    let ended = bed.daemon.stop().await;
    assert!(ended.status.success(), "{}", ended.log);
    assert!(ended.log.contains("another token"), "{}", ended.log);
    assert_eq!(ended.log.matches(HINT).count(), 1, "it is said once: {}", ended.log);
    assert!(!ended.log.contains(NEW), "{}", ended.log);
}

#[tokio::test]
async fn bug_27_a_daemon_whose_every_call_was_refused_works_again_after_a_login() {
    let bed = Bed::new().await;
    bed.linked().await;
    bed.plane.replace_token(Secret::new(NEW));
    // Cuts the control connection, which was good for as long as it was open.
    bed.plane.pause().await;
    bed.plane.resume().await;
    let refused = |request: &Request| request.status() == Some(401);
    bed.plane.wait_for_request(WITHIN, refused).await.expect("it is noticed");
    let task = bed.enqueue(TaskSpec::new("claude"));
    // What is no token for this server changes nothing.
    bed.home.log_in("mul_of_somebody_else");
    let refused = |request: &Request| is_claim(request) && request.status() == Some(401);
    bed.plane.wait_for_request(WITHIN, refused).await.expect("it is tried, and refused");
    bed.home.log_in(NEW);
    bed.completed(&task).await;
    bed.linked().await;
    assert_eq!(
        bed.plane.requests_where(|request| request.is("POST", "/register")).len(),
        1,
        "it is the same daemon"
    );
    assert!(bed.daemon.stop().await.status.success(), "{}", bed.daemon.log());
}

#[tokio::test]
async fn bug_27_a_login_as_somebody_else_is_seen_too_where_the_account_was_refused() {
    let bed = Bed::new().await;
    bed.linked().await;
    let list = "/api/daemon/workspaces";
    let refused = bed.plane.fault(Rule::new("GET", list, Action::error(403, "forbidden")));
    bed.plane.push(&Hint::WorkspacesChanged);
    bed.logs("the server takes nothing from this daemon").await;
    // Nothing is asked for a while now, so that there is no 401 either.
    refused.remove();
    bed.plane.replace_token(Secret::new(NEW));
    bed.home.log_in(NEW);
    bed.logs("another token").await;
    let task = bed.enqueue(TaskSpec::new("claude"));
    bed.completed(&task).await;
    assert!(bed.daemon.stop().await.status.success(), "{}", bed.daemon.log());
}
