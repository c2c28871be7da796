//! Claims over the control channel.

use crate::bed::{Bed, WITHIN, is_claim};
use longshore_core::config::Timing;
use longshore_io_tokio::plane::{Action, Config, Request, Rule, TaskSpec};
use longshore_tests::DriverUnderTest;
use std::time::Duration;

const CLAIM: &str = "/api/daemon/tasks/claim";
/// In place of the seven seconds after a claim of unknown fate.
const HOLD_OFF: Duration = Duration::from_millis(400);
/// As the control plane sees it at least: the daemon counts in whole milliseconds, and drops what is left of the last one.
const HELD_OFF: Duration = Duration::from_millis(399);
/// A time without a claim after which none is to be expected.
const QUIET: Duration = Duration::from_millis(250);

fn over(request: &Request) -> bool {
    is_claim(request) && request.method == "WS"
}

/// A daemon that knows that its channel takes claims, and polls no more in the test's time.
async fn linked() -> Bed<DriverUnderTest> {
    linked_with(|timers| timers.claim_hold_off = HOLD_OFF).await
}

async fn linked_with(tune: impl FnOnce(&mut Timing)) -> Bed<DriverUnderTest> {
    let furnish = |home: longshore_tests::Home| home.env("MULTICA_DAEMON_POLL_INTERVAL", "1h");
    let bed = Bed::driven(Config::default(), furnish, |core| tune(&mut core.timers)).await;
    bed.linked().await;
    let beaten = |request: &Request| request.is("WS", "/heartbeat") && request.answered_at.is_some();
    bed.plane.wait_for_request(WITHIN, beaten).await.expect("the first beat on the channel is answered");
    // The answer may still be on its way: each hint leads to a claim, until one goes over the channel.
    while bed.plane.requests_where(over).is_empty() {
        let claims = bed.claims().len();
        bed.wake(None);
        bed.claims_are(claims + 1, WITHIN).await;
    }
    // A hint that came during a claim leads to one more.
    loop {
        let more = bed.plane.wait_for_requests(bed.claims().len() + 1, QUIET, is_claim);
        if more.await.is_err() {
            return bed;
        }
    }
}

#[tokio::test]
async fn tasks_are_claimed_over_a_channel_that_takes_claims() {
    let bed = linked().await;
    let before = bed.plane.requests_where(|request| is_claim(request) && !over(request)).len();
    for _ in 0..3 {
        let task = bed.enqueue(TaskSpec::new("claude"));
        bed.completed(&task).await;
    }
    let after = bed.plane.requests_where(|request| is_claim(request) && !over(request)).len();
    assert_eq!(before, after, "none of them over HTTP");
}

#[tokio::test]
async fn a_claim_that_the_channel_refuses_is_sent_over_http_at_once() {
    let bed = linked().await;
    let busy = bed.plane.fault(Rule::new("WS", CLAIM, Action::error(429, "busy")));
    let task = bed.enqueue(TaskSpec::new("claude"));
    bed.completed(&task).await;
    assert!(busy.hits() >= 1);
    let claims = bed.claims();
    let refused = claims.iter().rposition(over).expect("there is one");
    let http = claims.iter().skip(refused).find(|claim| claim.method == "POST").expect("over HTTP");
    assert_eq!(http.body["max_tasks"], claims[refused].body["max_tasks"], "the same claim");
}

#[tokio::test]
async fn inv_42_inv_43_incident_r16_a_claim_that_is_lost_with_its_channel_is_followed_by_one_over_http_in_its_time()
 {
    let bed = linked().await;
    let cut = bed.plane.fault(Rule::new("WS", CLAIM, Action::DropRequest).first(1));
    let before = bed.claims().len();
    let task = bed.enqueue(TaskSpec::new("claude"));
    cut.reached(1).await;
    bed.completed(&task).await;
    let claims = bed.claims();
    let (lost, next) = (&claims[before], &claims[before + 1]);
    assert!(over(lost) && next.method == "POST", "{claims:?}");
    let waited = next.at.saturating_sub(lost.at);
    assert!(waited >= HELD_OFF, "the next claim came after {waited:?}");
    assert_eq!(bed.calls(&task, "start").len(), 1);
}

#[tokio::test]
async fn a_claim_whose_answer_cannot_be_read_is_one_of_unknown_fate() {
    let bed = linked().await;
    let answer = Action::Reply { status: 200, body: r#"{"tasks":"no"}"#.into(), headers: Vec::new() };
    bed.plane.fault(Rule::new("WS", CLAIM, answer).first(1));
    let before = bed.claims().len();
    let task = bed.enqueue(TaskSpec::new("claude"));
    bed.completed(&task).await;
    let claims = bed.claims();
    assert!(over(&claims[before]) && claims[before + 1].method == "POST", "{claims:?}");
    let waited = claims[before + 1].at.saturating_sub(claims[before].at);
    assert!(waited >= HELD_OFF, "the next claim came after {waited:?}");
}

#[tokio::test]
async fn a_task_that_comes_over_the_channel_after_its_claims_time_is_taken() {
    const CLAIM_OVER: Duration = Duration::from_millis(200);
    let bed = linked_with(|timers| (timers.claim_over, timers.claim_hold_off) = (CLAIM_OVER, WITHIN)).await;
    let late = bed.plane.fault(Rule::new("WS", CLAIM, Action::HoldReply).first(1));
    let before = bed.claims().len();
    let task = bed.enqueue(TaskSpec::new("claude"));
    late.reached(1).await;
    // Only time can make it late; one that the daemon still takes for punctual proves less, and no less than before.
    tokio::time::sleep(CLAIM_OVER * 2).await;
    assert_eq!(bed.claims().len(), before + 1, "nothing else is claimed while it is waited for");
    late.release();
    bed.completed(&task).await;
    assert_eq!(bed.calls(&task, "start").len(), 1);
}
