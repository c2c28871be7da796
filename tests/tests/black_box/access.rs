//! A credential that is refused, a runtime that costs the link, a storm of hints, and a machine that sleeps.

use crate::bed::{Bed, WITHIN, executable, is_claim};
use longshore_core::id::{RuntimeId, TaskId};
use longshore_core::plane::Hint;
use longshore_io_tokio::agent_double::Step;
use longshore_io_tokio::plane::{Action, Config, Request, Rule, Server, TaskSpec};
use longshore_io_tokio::secret::Secret;
use longshore_tests::{Gate, Home};
use std::time::Duration;

const NEW: &str = "another-token-for-the-same-daemon";
const LOG_IN: &str = "log in again with `multica login`";
const NOTHING: &str = "the server takes nothing from this daemon";
/// So long it is looked whether anything comes that must not.
const WATCHED: Duration = Duration::from_secs(9);

fn is_refused(request: &Request) -> bool {
    request.status() == Some(401)
}

/// The time by which the log of the plane goes.
fn now(plane: &Server) -> Duration {
    Duration::from_millis(plane.with_plane(|_, now| now.mono.as_millis()))
}

/// The server takes only another token from now on, and no connection of before is left.
async fn revoke<D>(bed: &Bed<D>) {
    bed.plane.replace_token(Secret::new(NEW));
    bed.plane.pause().await;
    bed.plane.resume().await;
}

#[tokio::test]
async fn bug_27_a_with_a_dead_token_nothing_is_claimed_and_little_is_said_until_there_is_another_one() {
    let bed = Bed::new().await;
    bed.linked().await;
    revoke(&bed).await;
    let first = bed.plane.wait_for_request(WITHIN, is_refused).await.expect("it is noticed").at;
    let later = |request: &Request| request.at > first + Duration::from_secs(3);
    let claim = bed.plane.wait_for_request(WATCHED, |request| is_claim(request) && later(request)).await;
    assert!(claim.is_err(), "no claim: {claim:?}");
    let asked = bed.plane.requests_where(later);
    assert!(asked.len() <= 1, "in a few seconds one look at most: {asked:?}");
    let said = bed.daemon.log();
    // That nobody was there while the server was down is another matter.
    let is_loud =
        |line: &&str| line.contains(" ERR ") || (line.contains(" WRN ") && !line.contains("does not answer"));
    let loud = said.lines().filter(is_loud).count();
    assert_eq!((said.matches(LOG_IN).count(), said.matches(NOTHING).count(), loud), (1, 1, 2), "{said}");

    let task = bed.enqueue(TaskSpec::new("claude"));
    let before = now(&bed.plane);
    bed.home.log_in(NEW);
    let taken = |request: &Request| is_claim(request) && request.status() == Some(200) && request.at > before;
    let claimed = bed.plane.wait_for_request(WITHIN, taken).await.expect("claims go on").at;
    // Two seconds; and as much again for a machine with a lot to do. A poll would have come after 30.
    assert!(claimed.saturating_sub(before) < Duration::from_secs(4), "{:?}", claimed.saturating_sub(before));
    bed.completed(&task).await;
    bed.linked().await;
    let ended = bed.daemon.stop().await;
    assert!(ended.status.success() && !ended.log.contains(NEW), "{}", ended.log);
}

#[tokio::test]
async fn bug_27_two_results_that_are_there_while_the_token_is_refused_are_reported_after_the_login() {
    let bed = Bed::new().await;
    bed.linked().await;
    let gates = ["first", "second"].map(|name| Gate::new(bed.home.dir().join(name)));
    let tasks = gates.each_ref().map(|gate| {
        let script = [Step::Say("before".into()), gate.wait(), Step::Say(" and after".into())];
        bed.enqueue(TaskSpec::new("claude").script(&script))
    });
    for task in &tasks {
        bed.spoke(task).await;
    }
    revoke(&bed).await;
    let open = gates.each_ref().map(Gate::open);
    for task in &tasks {
        let refused = |request: &Request| is_refused(request) && request.path.contains(task.as_str());
        bed.plane.wait_for_request(WITHIN, refused).await.expect("what it has to say is refused");
    }
    drop(open);
    bed.home.log_in(NEW);
    for task in &tasks {
        bed.completed(task).await;
        assert_eq!(bed.said(task), "before and after");
        let taken = bed.calls(task, "complete").iter().filter(|call| call.status() == Some(200)).count();
        assert_eq!((taken, bed.calls(task, "fail").len()), (1, 0));
    }
    assert_eq!(bed.home.agent_starts().len(), 2, "none was started again");
    assert!(bed.daemon.stop().await.status.success());
}

#[tokio::test]
async fn bug_26_a_daemon_that_starts_with_a_wrong_clock_says_so_and_serves_once_it_is_right() {
    let plane = Server::start(Config::default()).await.expect("a control plane");
    let ahead = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(2);
    let date = ahead.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let skewed = Action::Reply {
        status: 401,
        body: r#"{"error":"token used before issued"}"#.into(),
        headers: vec![("date".into(), date)],
    };
    let fault = plane.fault(Rule::new("*", "/**", skewed));
    let home = Home::new(executable(), &plane);
    let daemon = home.start();
    let lists = |request: &Request| request.is("GET", "/workspaces");
    plane.wait_for_requests(3, WITHIN, lists).await.expect("it tries on");
    assert!(!daemon.has_ended());
    let id = daemon.id();
    fault.remove();
    plane.wait_for_runtime("claude", WITHIN).await.expect("it is registered without a restart");
    assert_eq!(daemon.id(), id);
    let ended = daemon.stop().await;
    assert!(ended.status.success(), "{}", ended.log);
    let loud = ended.log.lines().filter(|line| !line.contains(" DBG "));
    assert_eq!(loud.filter(|line| line.contains("about 2 h ahead")).count(), 1, "{}", ended.log);
    assert!(!ended.log.contains(LOG_IN), "the credential may be good: {}", ended.log);
}

#[tokio::test]
async fn w_14_a_runtime_that_is_gone_costs_the_link_no_more_than_a_beat() {
    let bed = Bed::new().await;
    bed.linked().await;
    let old = bed.runtime("claude").await;
    assert!(bed.plane.with_plane(|plane, now| plane.delete_runtime(now, &old)));
    bed.plane.cut_connections().await;
    let refused = |request: &Request| request.path == "/api/daemon/ws" && request.status() == Some(404);
    bed.plane.wait_for_request(WITHIN, refused).await.expect("the dial names a runtime that is gone");
    bed.runtime("claude").await;
    bed.linked().await;
    let task = bed.enqueue(TaskSpec::new("claude"));
    bed.completed(&task).await;
    assert_eq!(bed.plane.requests_where(refused).len(), 1, "it is not dialled for that one again");
    assert!(bed.daemon.stop().await.status.success());
}

/// Pushes so many hints that name no task, as fast as the link takes them.
async fn storm(bed: &Bed, runtime: &RuntimeId, hints: usize) {
    let mut tick = tokio::time::interval(Duration::from_millis(2));
    for n in 0..hints {
        if n % 8 == 0 {
            tick.tick().await;
        }
        bed.plane.push(&Hint::TaskAvailable { runtime: runtime.clone(), task: None });
    }
}

fn looks(bed: &Bed, task: &TaskId) -> usize {
    bed.calls(task, "status").len()
}

#[tokio::test]
async fn a_storm_of_hints_is_no_storm_of_requests_and_a_cancel_in_it_is_seen_at_once() {
    let bed = Bed::new().await;
    bed.linked().await;
    let task = bed.enqueue(TaskSpec::new("claude").script(&[Step::Say("working".into()), Step::Hang]));
    bed.spoke(&task).await;
    let runtime = bed.runtime("claude").await;
    let (began, before) = (now(&bed.plane), looks(&bed, &task));
    storm(&bed, &runtime, 5_000).await;
    let took = now(&bed.plane).saturating_sub(began);
    let most = 4 + 2 * usize::try_from(took.as_secs()).expect("a test's time");
    let looked = looks(&bed, &task) - before;
    assert!(looked <= most, "{looked} looks in {took:?}");
    // A full queue may have cost the link; then it is dialled again.
    bed.linked().await;
    assert_eq!(bed.plane.cancel(&task), Ok(longshore_io_tokio::plane::State::Cancelled));
    let ack = bed.call(&task, "cancel-ack").await;
    let cancelled = bed.plane.task(&task).expect("there").ended_at.expect("cancelled").mono;
    let took = ack.at.saturating_sub(Duration::from_millis(cancelled.as_millis()));
    eprintln!("{looked} looks; the cancel was acknowledged after {took:?}");
    assert!(took < Duration::from_secs(4), "{took:?}: a look of its own comes after 5 s");
    assert!(bed.daemon.stop().await.status.success());
}

#[tokio::test]
async fn after_a_sleep_of_eight_hours_the_link_is_dialled_again_and_the_run_goes_on() {
    let tune = |core: &mut longshore_core::config::Config| core.timers.prepare = Duration::from_hours(24);
    let bed = Bed::driven(Config::default(), Home::with_codex, tune).await;
    bed.linked().await;
    let gate = Gate::new(bed.home.dir().join("gate"));
    let script = [Step::Say("before".into()), gate.wait(), Step::Say(" and after".into())];
    let runs = bed.enqueue(TaskSpec::new("claude").script(&script));
    bed.spoke(&runs).await;
    // This one is being prepared for as long as nobody writes to the other end.
    let shared = Gate::new(bed.home.codex_home().join("config.json"));
    let prepares = bed.enqueue(TaskSpec::new("codex"));
    let reader = shared.reached().await;

    let before = now(&bed.plane);
    bed.daemon.sleep(Duration::from_hours(8));
    let since = |request: &Request| request.at >= before;
    for (method, path) in [("GET", "/api/daemon/ws"), ("POST", "/heartbeat"), ("POST", "/prepare-lease")] {
        let comes = |request: &Request| request.is(method, path) && since(request);
        let at = bed.plane.wait_for_request(WITHIN, comes).await.expect("it goes out").at;
        // Without a sleep the next of each would be due after 15 s.
        assert!(
            at.saturating_sub(before) < Duration::from_secs(8),
            "{path}: {:?}",
            at.saturating_sub(before)
        );
    }
    bed.linked().await;
    drop(reader);
    shared.replace_by_file("{}");
    let _open = gate.open();
    bed.completed(&runs).await;
    assert_eq!(bed.said(&runs), "before and after");
    // Its agent cannot be run yet; that it was started says that the claim outlived the sleep.
    bed.failed(&prepares).await;
    assert_eq!((bed.calls(&prepares, "start").len(), bed.calls(&runs, "fail").len()), (1, 0));
    bed.daemon.stop().await;
}

#[tokio::test]
async fn bug_29_b_a_link_that_is_closed_again_and_again_is_dialled_less_and_less_and_tasks_are_claimed_all_the_while()
 {
    let tune = |core: &mut longshore_core::config::Config| {
        core.timers.link_backoff.base = Duration::from_millis(10);
        core.timers.link_backoff.cap = Duration::from_millis(400);
        core.timers.poll = Duration::from_millis(100);
    };
    let bed = Bed::driven(Config::default(), |home| home, tune).await;
    let mut cut_at = Vec::new();
    for n in 0..20 {
        bed.linked().await;
        cut_at.push(now(&bed.plane));
        bed.plane.cut_connections().await;
        if n == 15 {
            let task = bed.enqueue(TaskSpec::new("claude"));
            bed.completed(&task).await;
        }
    }
    bed.linked().await;
    let dials = bed.plane.requests_where(|request| request.is("GET", "/api/daemon/ws"));
    // From each cut to the dial that follows it.
    let waits: Vec<Duration> = cut_at
        .iter()
        .filter_map(|cut| dials.iter().find(|dial| dial.at > *cut).map(|dial| dial.at.saturating_sub(*cut)))
        .collect();
    assert!(waits.len() >= 15, "{waits:?}");
    let late = &waits[8..waits.len().min(14)];
    assert!(late.iter().all(|wait| *wait >= Duration::from_millis(300)), "the waits have grown: {waits:?}");
    bed.daemon.stop().await;
}

#[tokio::test]
async fn a_list_of_workspaces_that_is_refused_from_the_start_is_said_once_with_the_reason() {
    let plane = Server::start(Config::default()).await.expect("a control plane");
    let list = "/api/daemon/workspaces";
    let refused = plane.fault(Rule::new("GET", list, Action::error(400, "not like this")));
    let home = Home::new(executable(), &plane);
    let daemon = home.start();
    let asked = |request: &Request| request.is("GET", list) && request.status() == Some(400);
    plane.wait_for_requests(2, WITHIN, asked).await.expect("it is asked again");
    refused.remove();
    plane.wait_for_runtime("claude", WITHIN).await.expect("registered");
    let ended = daemon.stop().await;
    let said: Vec<_> =
        ended.log.lines().filter(|line| line.contains("does not tell the workspaces")).collect();
    assert!(matches!(&said[..], [one] if one.contains(" WRN ") && one.contains("not like this")), "{said:?}");
}
