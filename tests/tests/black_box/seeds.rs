//! The contracts that everything else rests on.

use crate::bed::{BREAK, Bed, WITHIN, executable, is_claim, polled};
use longshore_core::id::{RuntimeId, TaskId};
use longshore_io_tokio::agent_double::Step;
use longshore_io_tokio::plane::{Action, Config, Request, Rule, State, TaskSpec};
use longshore_io_tokio::prepare::{self, Claim, Job, PrepareError, Setup, layout};
use longshore_io_tokio::supervise::{self, Launcher};
use longshore_io_tokio::wire::task::Task as WireTask;
use longshore_tests::Gate;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

const ID: &str = "0197a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b";

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[tokio::test]
async fn seed_prepare_isolated_fifo() {
    let bed = Bed::with(Config::default(), |home| {
        // With one slot the next claim comes when the first execution has let go of everything.
        home.with_codex()
            .env("LONGSHORE_PREPARE_TIMEOUT", "1s")
            .env("MULTICA_DAEMON_MAX_CONCURRENT_TASKS", "1")
    })
    .await;
    let shared = Gate::new(bed.home.codex_home().join("config.json"));
    let id = TaskId::new(ID);
    let spec = TaskSpec { id: Some(id.clone()), max_attempts: 1, ..TaskSpec::new("codex") };
    bed.enqueue(spec.clone());
    let task = bed.failed(&id).await;
    assert!(!shared.has_reader(), "whoever prepared is gone before the failure is told");
    assert_eq!(task.failure_reason.as_deref(), Some("timeout"), "{:?}", task.error);
    let (from, to) = (task.dispatched_at.expect("claimed"), task.ended_at.expect("ended"));
    assert!(to.mono.since(from.mono) < Duration::from_secs(3), "a deadline of 1 s was kept late");
    assert!(bed.calls(&id, "start").is_empty(), "nothing was prepared");
    let root = bed.env_root(&id);
    assert_eq!(fs::read_to_string(root.join(layout::OWNER)).expect("half-made, and marked as whose"), ID);
    assert!(!root.join(layout::CODEX_HOME).join("config.json").exists());
    assert!(!root.join(layout::GC_META).exists(), "the collector's record is for what ran");

    shared.replace_by_file("{}\n");
    assert!(bed.plane.with_plane(|plane, _| plane.delete_task(&id)));
    bed.enqueue(spec);
    bed.call(&id, "start").await;
    assert_eq!(fs::read(root.join(layout::CODEX_HOME).join("config.json")).expect("copied"), b"{}\n");
    bed.failed(&id).await;
}

#[tokio::test]
async fn seed_prepare_isolated_fifo_in_process() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &str| dir.path().join(name);
    for name in ["ws", "codex-home"] {
        fs::create_dir(at(name)).expect("a directory");
    }
    let (root, codex_home) = (at("ws"), at("codex-home"));
    let shared = Gate::new(codex_home.join("config.json"));
    let task = json!({ "id": ID, "workspace_id": "ws-1", "issue_id": "i", "agent": { "id": "a" } });
    let task: WireTask = serde_json::from_value(task).expect("a task");
    let setup = Setup {
        workspaces_root: &root,
        provider: "codex",
        reuse: None,
        local_workdir: None,
        home: None,
        codex_home: Some(&codex_home),
        fetched: &[],
    };
    let job = Job::for_task(&task, &setup).unclaimed().to_bytes().expect("bytes");
    let launcher = Launcher::with_executable(executable(), at("runs"), 0);

    let pair = launcher.take().await.expect("a pair");
    let helper = pair.helper_pid();
    let begun = Instant::now();
    let deadline = Duration::from_millis(300);
    let refused = pair.prepare(&job, deadline, std::future::pending()).await.err().expect("it blocks");
    assert!(matches!(refused, supervise::PrepareError::Deadline { after } if after == deadline), "{refused}");
    assert!(!Path::new(&format!("/proc/{helper}")).exists(), "the helper is reaped by then");
    assert!(!shared.has_reader());
    assert!(begun.elapsed() < Duration::from_secs(3));

    shared.replace_by_file("{}\n");
    let pair = launcher.take().await.expect("a pair");
    let (reply, ready) = pair.prepare(&job, WITHIN, std::future::pending()).await.expect("prepared");
    let prepared = prepare::read_reply(&reply).expect("an answer");
    let predicted = prepare::predicted_root("ws-1", ID).expect("safe ids");
    assert_eq!(prepared.root, prepare::path_of(&root, &predicted));
    prepared.verify().expect("it is there");
    ready.discard().await.expect("it ends");
    launcher.close().await;
}

#[tokio::test]
async fn seed_outer_handler_never_starts() {
    let bed = Bed::with(polled(), |home| home.with_codex().env("MULTICA_DAEMON_POLL_INTERVAL", "20ms")).await;
    let shared = Gate::new(bed.home.codex_home().join("config.json"));
    let task = bed.enqueue(TaskSpec::new("codex"));
    let reader = shared.reached().await;
    // Ten polls are time enough for a start that does not wait.
    bed.claims_are(bed.claims().len() + 10, WITHIN).await;
    assert!(bed.calls(&task, "start").is_empty(), "a task was started before it was prepared");
    assert_eq!(bed.plane.task(&task).expect("there").state, State::Dispatched);
    reader.feed("{}\n");
    bed.call(&task, "start").await;
    bed.failed(&task).await;
}

#[tokio::test]
async fn seed_start_after_workdir() {
    let bed = Bed::new().await;
    let hold = bed.fault("start", |path| Rule::new("POST", &path, Action::Hold));
    let task = bed.enqueue(TaskSpec::new("claude"));
    hold.reached(1).await;
    let root = bed.env_root(&task);
    assert!(root.join(layout::WORKDIR).is_dir());
    assert_eq!(mode(&root), 0o700, "nobody else can look into it");
    assert!(bed.home.agent_starts().is_empty(), "the agent waits for the server's word");
    hold.remove();
    bed.completed(&task).await;

    fs::remove_file(bed.home.agent("claude")).expect("it was there");
    let task = bed.enqueue(TaskSpec::new("claude"));
    let failed = bed.failed(&task).await;
    assert_eq!(bed.calls(&task, "start").len(), 1, "a program that is missing does not stop the start");
    assert_eq!(failed.failure_reason.as_deref(), Some("agent_error.runtime_missing_executable"));
    assert!(bed.env_root(&task).join(layout::WORKDIR).is_dir());
}

#[tokio::test]
async fn seed_private_temp_dir() {
    let bed = Bed::with(Config::default(), |home| {
        let long = home.workspaces_root().join("a-workspaces-root-of-some-length/".repeat(8));
        home.env("MULTICA_WORKSPACES_ROOT", long.display().to_string()).without_env("MULTICA_AGENT_TEMP_BASE")
    })
    .await;
    let gate = Gate::new(bed.home.dir().join("gate"));
    let names = ["TMPDIR", "TMP", "TEMP"];
    let mut script: Vec<_> = names.map(|name| Step::SayEnv(name.into())).into();
    script.extend([gate.wait(), Step::Say("done".into())]);
    let spec = TaskSpec::new("claude").script(&script);
    let task = bed.enqueue(names.into_iter().fold(spec, |spec, name| spec.env(name, "/shared/tmp")));
    let whole = |plane: &longshore_core::plane::Plane| {
        let text: String = plane.transcript(&task).iter().filter_map(|m| m.content.as_deref()).collect();
        text.contains("TEMP=").then(|| text.replace(BREAK, ""))
    };
    let text = bed.plane.wait_until(WITHIN, whole).await.expect("it speaks");
    let rest = text.strip_prefix("TMPDIR=").expect("the first variable");
    let (temp, rest) = rest.split_once("TMP=").expect("the second variable");
    assert_eq!(rest, format!("{temp}TEMP={temp}"), "all three are the same");
    let temp = Path::new(temp);
    assert_eq!(mode(temp), 0o700, "it is there while the agent runs, and private");
    assert!(temp.is_absolute() && temp.as_os_str().len() <= 80, "{}", temp.display());
    assert!(!temp.starts_with(bed.home.workspaces_root()) && temp != Path::new("/shared/tmp"));
    let hold = bed.fault("complete", |path| Rule::new("POST", &path, Action::Hold));
    let _open = gate.open();
    hold.reached(1).await;
    assert!(!temp.exists(), "it goes before the end is told");
    hold.release();
    bed.completed(&task).await;
}

#[tokio::test]
async fn seed_lease_during_start() {
    let bed = Bed::driven(
        Config::default(),
        |home| home,
        |core| {
            core.timers.lease = Duration::from_millis(10);
        },
    )
    .await;
    let hold = bed.fault("start", |path| Rule::new("POST", &path, Action::Hold));
    let task = bed.enqueue(TaskSpec::new("claude"));
    let start = bed.call(&task, "start").await;
    let refresh =
        |request: &Request| request.number > start.number && request.path.ends_with("/prepare-lease");
    bed.plane.wait_for_requests(3, WITHIN, refresh).await.expect("the lease is kept during the start");
    hold.release();
    bed.completed(&task).await;
    let start = bed.calls(&task, "start").remove(0);
    let late = bed.plane.requests_where(|request| {
        request.path.ends_with("/prepare-lease") && Some(request.at) > start.answered_at
    });
    assert!(late.len() <= 1, "the lease ends with the start: {late:?}");
    bed.daemon.stop().await;
}

#[tokio::test]
async fn seed_env_root_active_across_complete() {
    let bed = Bed::with(Config::default(), |home| home.env("MULTICA_DAEMON_MAX_CONCURRENT_TASKS", "1")).await;
    let hold = bed.fault("complete", |path| Rule::new("POST", &path, Action::Hold));
    let task = bed.enqueue(TaskSpec::new("claude"));
    hold.reached(1).await;
    let root = bed.env_root(&task);
    let claim = || Claim::take(&bed.home.workspaces_root(), "ws-1", task.as_str());
    assert!(matches!(claim(), Err(PrepareError::Busy { .. })), "it is in use");
    assert!(root.join(layout::WORKDIR).is_dir() && !root.join(layout::GC_META).exists());
    let claims = bed.claims().len();
    hold.release();
    bed.completed(&task).await;
    // The slot comes back after the directory.
    bed.claims_are(claims + 1, WITHIN).await;
    let meta = fs::read(root.join(layout::GC_META)).expect("the collector's record");
    let meta: serde_json::Value = serde_json::from_slice(&meta).expect("JSON");
    assert_eq!(meta["workspace_id"], "ws-1");
    claim().expect("nobody holds it").release();
}

#[tokio::test]
async fn seed_poller_isolates_slow_runtime() {
    let old = Config { batch_claim: false, ..polled() };
    let bed = Bed::with(old, |home| home.with_codex().env("MULTICA_DAEMON_POLL_INTERVAL", "50ms")).await;
    let path = |runtime: &RuntimeId| format!("/api/daemon/runtimes/{runtime}/tasks/claim");
    let (slow, fast) = (path(&bed.runtime("codex").await), path(&bed.runtime("claude").await));
    let hang = bed.plane.fault(Rule::new("POST", &slow, Action::Hold));
    hang.reached(1).await;
    let of_fast = |request: &Request| request.path == fast;
    let before = bed.plane.requests_where(of_fast).len();
    bed.plane
        .wait_for_requests(before + 3, Duration::from_secs(2), of_fast)
        .await
        .expect("a claim that hangs delays no other runtime");
    assert_eq!(hang.hits(), 1, "and is not repeated meanwhile");
}

#[tokio::test]
async fn seed_no_claim_at_capacity() {
    let bed = Bed::with(polled(), |home| {
        home.env("MULTICA_DAEMON_POLL_INTERVAL", "20ms").env("MULTICA_DAEMON_MAX_CONCURRENT_TASKS", "1")
    })
    .await;
    let task =
        bed.enqueue(TaskSpec::new("claude").script(&[Step::Sleep(400), Step::Say("that was long".into())]));
    bed.call(&task, "start").await;
    let next = bed.enqueue(TaskSpec::new("claude"));
    bed.completed(&next).await;
    let (start, end) = (bed.calls(&task, "start").remove(0), bed.answered(&task, "complete").await);
    let full = start.at..end.answered_at.expect("answered");
    assert!(full.end.saturating_sub(full.start) >= Duration::from_millis(400), "twenty polls fit in");
    let claims = bed.plane.requests_where(|request| is_claim(request) && full.contains(&request.at));
    assert!(claims.is_empty(), "claims without a free slot: {claims:?}");
}

#[tokio::test]
async fn seed_claim_when_slot_frees() {
    let bed = Bed::with(Config::default(), |home| {
        home.env("MULTICA_DAEMON_POLL_INTERVAL", "1h").env("MULTICA_DAEMON_MAX_CONCURRENT_TASKS", "1")
    })
    .await;
    bed.linked().await;
    let hold = bed.fault("complete", |path| Rule::new("POST", &path, Action::Hold).first(1));
    let first = bed.enqueue(TaskSpec::new("claude"));
    hold.reached(1).await;
    let claims = bed.claims().len();
    let second = bed.enqueue(TaskSpec::new("claude"));
    bed.wake(None);
    // An answered beat, or any later request of the first task, would be no sign that the wakeup has come: the slot's return is.
    hold.release();
    bed.completed(&first).await;
    bed.claims_are(claims + 1, Duration::from_secs(2)).await;
    bed.completed(&second).await;
    let freed = bed.calls(&first, "complete").remove(0).answered_at.expect("answered");
    let early = bed.claims().iter().skip(claims).filter(|claim| claim.at < freed).count();
    assert_eq!(early, 0, "a wakeup at capacity claims nothing");
}

#[tokio::test]
async fn seed_shutdown_waits_for_pollers() {
    let bed = Bed::with(polled(), |home| home).await;
    let claim = bed.plane.fault(Rule::new("POST", "/api/daemon/tasks/claim", Action::Hold));
    // Held as well, so that the server still gives the runtime work when the claim is let go.
    let goodbye = bed.plane.fault(Rule::new("POST", "/api/daemon/deregister", Action::Hold));
    claim.reached(1).await;
    let task = bed.enqueue(TaskSpec::new("claude"));
    let begun = Instant::now();
    bed.daemon.terminate();
    goodbye.reached(1).await;
    claim.release();
    let failed = bed.failed(&task).await;
    assert_eq!(failed.failure_reason.as_deref(), Some("runtime_offline"), "the server tries it again");
    assert!(bed.calls(&task, "start").is_empty());
    goodbye.release();
    let ended = bed.daemon.ended().await;
    assert!(ended.status.success(), "{}", ended.log);
    assert!(begun.elapsed() < Duration::from_secs(5));
}

/// The runtimes that a claim is for.
fn claimed_for(request: &Request) -> Vec<String> {
    match request.body["runtime_ids"].as_array() {
        Some(ids) => ids.iter().filter_map(|id| id.as_str()).map(str::to_owned).collect(),
        None => request.path.split('/').rev().nth(2).map(str::to_owned).into_iter().collect(),
    }
}

/// Waits until no claim has come for a while; how many there are then.
async fn claims_rest(bed: &Bed) -> usize {
    loop {
        let count = bed.claims().len();
        let more = bed.plane.wait_for_requests(count + 1, Duration::from_millis(250), is_claim);
        if more.await.is_err() {
            return count;
        }
    }
}

async fn targeted_wakeup(config: Config) {
    let bed = Bed::with(config, |home| home.with_codex().env("MULTICA_DAEMON_POLL_INTERVAL", "1h")).await;
    let (one, other) = (bed.runtime("claude").await, bed.runtime("codex").await);
    bed.linked().await;
    let linked = |request: &Request| request.is("WS", "/heartbeat");
    bed.plane.wait_for_request(WITHIN, linked).await.expect("the first beat on the channel");
    let since = async |before: usize| -> Vec<String> {
        bed.claims_are(before + 1, Duration::from_secs(2)).await;
        claims_rest(&bed).await;
        let mut ids: Vec<_> = bed.claims()[before..].iter().flat_map(claimed_for).collect();
        ids.sort();
        ids
    };
    let mut both = vec![one.as_str().to_owned(), other.as_str().to_owned()];
    both.sort();

    let before = claims_rest(&bed).await;
    bed.wake(None);
    assert_eq!(since(before).await, both, "an empty wakeup is for all");
    for runtime in [&one, &other] {
        let before = bed.claims().len();
        bed.wake(Some(runtime));
        assert_eq!(since(before).await, [runtime.as_str()], "a wakeup with a name is for that runtime alone");
    }
}

#[tokio::test]
async fn seed_targeted_wakeup() {
    targeted_wakeup(Config::default()).await;
}

#[tokio::test]
async fn seed_targeted_wakeup_per_runtime() {
    targeted_wakeup(Config { batch_claim: false, ..Config::default() }).await;
}

#[tokio::test]
async fn seed_heartbeat_isolation() {
    let bed =
        Bed::with(polled(), |home| home.with_codex().env("MULTICA_DAEMON_HEARTBEAT_INTERVAL", "50ms")).await;
    let hang = bed.plane.fault(Rule::new("POST", "/api/daemon/heartbeat", Action::Hold).nth(1));
    hang.reached(1).await;
    let beat = |request: &Request| request.is("POST", "/heartbeat");
    let held = bed.plane.requests_where(|request| beat(request) && request.answered_at.is_none());
    let slow = held.first().expect("the one that hangs").body["runtime_id"].clone();
    let of_other = |request: &Request| beat(request) && request.body["runtime_id"] != slow;
    let before = bed.plane.requests_where(of_other).len();
    bed.plane
        .wait_for_requests(before + 3, Duration::from_secs(2), of_other)
        .await
        .expect("a beat that hangs delays no other");
}
