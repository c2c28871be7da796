//! Custom runtimes of a workspace: registered, run with their own program and arguments, changed and removed while the daemon runs.

use crate::bed::{Bed, WITHIN, executable};
use crate::service::local;
use longshore_core::id::{ProfileId, RuntimeId};
use longshore_core::plane::{Plane, ProfileSpec, Repo};
use longshore_io_tokio::plane::{Action, Config, Request, Rule, Server, TaskSpec};
use longshore_tests::{DaemonUnderTest, Home};
use serde_json::Value;
use std::fs;
use std::time::Duration;

const WORKSPACE: &str = "ws-1";

/// A daemon on whose `PATH` there is a `my-agent`, which notes its arguments and goes on without the first two of them.
fn bed_of(plane: Server) -> Bed<DaemonUnderTest> {
    let home = Home::new(executable(), &plane);
    let path = home.path_with_agents();
    let home = home.env("PATH", path);
    home.install(
        "my-agent",
        &format!("printf '%s\\n' \"$*\" >> \"$0.args\"\n[ \"$1\" = code ] && shift 2\n{}", home.double()),
    );
    let daemon = home.start();
    Bed { daemon, home, plane }
}

/// A custom runtime that this machine can use.
fn mine() -> ProfileSpec {
    let fixed_args = vec!["code".into(), "--fast".into()];
    ProfileSpec { fixed_args, ..ProfileSpec::new("Mine", "claude", "my-agent") }
}

/// The runtime of a profile, as soon as it is online or off line.
async fn runtime_of(plane: &Server, profile: &ProfileId, online: bool) -> RuntimeId {
    let row = |plane: &Plane| {
        let row =
            plane.runtimes().find(|row| row.profile.as_ref() == Some(profile) && row.online == online)?;
        Some(row.id.clone())
    };
    plane.wait_until(WITHIN, row).await.expect("the runtime of a profile")
}

fn of(runtime: &RuntimeId) -> TaskSpec {
    TaskSpec { runtime: Some(runtime.clone()), ..TaskSpec::new("claude") }
}

fn is_fetch(request: &Request) -> bool {
    request.is("GET", "/runtime-profiles") && request.answered_at.is_some()
}

#[tokio::test]
async fn gh_7046_tasks_of_a_custom_runtime_run_its_program_with_its_arguments_first() {
    let plane = Server::start(Config::default()).await.expect("a control plane");
    let profile = plane.add_profile(WORKSPACE, mine()).expect("a profile");
    let bed = bed_of(plane);
    let runtime = runtime_of(&bed.plane, &profile, true).await;
    let row = bed.plane.with_plane(|plane, _| plane.runtime(&runtime).cloned()).expect("a row");
    assert!(row.name.starts_with("Mine ("), "{}", row.name);
    assert!(row.version.contains('.'), "it was asked for its version: {}", row.version);
    let task = bed.enqueue(of(&runtime));
    bed.completed(&task).await;
    let args = fs::read_to_string(bed.home.agent("my-agent.args")).expect("it was started");
    assert!(args.lines().any(|line| line == "code --fast --version"), "{args}");
    let run = args.lines().find(|line| !line.contains("--version")).expect("a run");
    assert!(run.starts_with("code --fast -p --output-format stream-json"), "{run}");
    assert_eq!(bed.home.agent_starts(), [], "the built-in program has nothing to do with it");

    let own = bed
        .plane
        .with_plane(|plane, _| plane.runtimes().find(|row| row.profile.is_none()).map(|row| row.id.clone()));
    let task = bed.enqueue(of(&own.expect("the built-in runtime is there too")));
    bed.completed(&task).await;
    assert_eq!(bed.home.agent_starts().len(), 1);
    bed.daemon.stop().await;
}

#[tokio::test]
async fn a_custom_runtime_that_cannot_be_used_here_is_told_with_its_reason() {
    let plane = Server::start(Config::default()).await.expect("a control plane");
    let absent =
        plane.add_profile(WORKSPACE, ProfileSpec::new("Absent", "claude", "not-there")).expect("a profile");
    let odd = plane.add_profile(WORKSPACE, ProfileSpec::new("Odd", "cobol", "my-agent")).expect("a profile");
    let bed = bed_of(plane);
    bed.runtime("claude").await;
    for profile in [&absent, &odd] {
        runtime_of(&bed.plane, profile, false).await;
    }
    let named =
        |request: &Request| request.is("POST", "/register") && !request.body["failed_profiles"].is_null();
    let request = bed.plane.wait_for_request(WITHIN, named).await.expect("a registration");
    let failed = request.body["failed_profiles"].as_array().expect("a list").clone();
    let reason = |of: &ProfileId| {
        let one = failed.iter().find(|one| one["profile_id"] == of.as_str()).expect("it is named");
        (one["command_name"].clone(), one["reason"].as_str().expect("a reason").to_owned())
    };
    let (command, why) = reason(&absent);
    assert_eq!(command, Value::from("not-there"));
    assert!(
        why.contains("not-there") && why.contains("PATH") && why.contains("profile_command_overrides"),
        "{why}"
    );
    assert!(reason(&odd).1.contains("cobol"), "{failed:?}");
    let task = bed.enqueue(TaskSpec::new("claude"));
    bed.completed(&task).await;

    // Whoever installs the program and saves the profile again has it at work.
    bed.linked().await;
    bed.home.install("not-there", &bed.home.double());
    bed.plane.change_profile(&absent, |_| {}).expect("changed");
    let runtime = runtime_of(&bed.plane, &absent, true).await;
    let task = bed.enqueue(of(&runtime));
    bed.completed(&task).await;
    bed.daemon.stop().await;
}

#[tokio::test]
async fn changes_of_custom_runtimes_come_by_hint() {
    let plane = Server::start(Config::default()).await.expect("a control plane");
    let bed = bed_of(plane);
    let claude = bed.runtime("claude").await;
    bed.linked().await;
    let profile = bed.plane.add_profile(WORKSPACE, mine()).expect("a profile");
    let runtime = runtime_of(&bed.plane, &profile, true).await;
    bed.dialled(2).await;
    let task = bed.enqueue(of(&runtime));
    bed.completed(&task).await;

    bed.plane.change_profile(&profile, |spec| spec.enabled = false).expect("changed");
    let off = |request: &Request| request.is("POST", "/deregister");
    let off = bed.plane.wait_for_request(WITHIN, off).await.expect("it goes off line");
    assert_eq!(*off.body, serde_json::json!({ "runtime_ids": [runtime.as_str()] }));
    assert_eq!(bed.runtime("claude").await, claude, "the built-in one stays");

    bed.dialled(3).await;
    bed.plane.change_profile(&profile, |spec| spec.enabled = true).expect("changed");
    assert_eq!(runtime_of(&bed.plane, &profile, true).await, runtime);
    let recovered = bed.plane.requests_where(|request| request.is("POST", "/recover-orphans"));
    assert_eq!(recovered.iter().filter(|request| request.path.contains(claude.as_str())).count(), 1);
    bed.daemon.stop().await;
}

#[tokio::test]
async fn a_task_whose_custom_runtime_was_switched_off_meanwhile_fails_with_that_reason() {
    let plane = Server::start(Config::default()).await.expect("a control plane");
    let profile = plane.add_profile(WORKSPACE, mine()).expect("a profile");
    let bed = bed_of(plane);
    let runtime = runtime_of(&bed.plane, &profile, true).await;
    bed.linked().await;
    let hold = bed.fault("start", |path| Rule::new("POST", &path, Action::Hold));
    let task = bed.enqueue(of(&runtime));
    tokio::time::timeout(WITHIN, hold.reached(1)).await.expect("the request comes");
    let off = |request: &Request| request.is("POST", "/deregister");
    bed.plane.change_profile(&profile, |spec| spec.enabled = false).expect("changed");
    bed.plane.wait_for_request(WITHIN, off).await.expect("it goes off line");
    hold.release();
    bed.failed(&task).await;
    let error = bed.bodies(&task, "fail")[0]["error"].as_str().expect("a text").to_owned();
    assert!(error.contains(profile.as_str()) && error.contains("switched off"), "{error}");
    assert_eq!(bed.home.agent_starts(), [], "it is not run with another program");
    bed.daemon.stop().await;
}

#[tokio::test]
async fn inv_25_a_server_that_does_not_tell_its_custom_runtimes_delays_and_drops_nothing() {
    let plane = Server::start(Config::default()).await.expect("a control plane");
    let profile = plane.add_profile(WORKSPACE, mine()).expect("a profile");
    let route = "/api/daemon/workspaces/*/runtime-profiles";
    let hold = plane.fault(Rule::new("GET", route, Action::Hold).first(1));
    let bed = bed_of(plane);
    let claude = bed.runtime("claude").await;
    tokio::time::timeout(WITHIN, hold.reached(1)).await.expect("the request comes");
    let task = bed.enqueue(TaskSpec::new("claude"));
    bed.completed(&task).await;
    hold.release();
    let runtime = runtime_of(&bed.plane, &profile, true).await;

    bed.dialled(2).await;
    let fails = bed.plane.fault(Rule::new("GET", route, Action::error(500, "no database")));
    bed.plane.change_profile(&profile, |spec| spec.display_name = "Other".into()).expect("changed");
    tokio::time::timeout(WITHIN, fails.reached(1)).await.expect("it is fetched again");
    let task = bed.enqueue(of(&runtime));
    bed.completed(&task).await;
    fails.remove();
    let renamed =
        |plane: &Plane| plane.runtime(&runtime).filter(|row| row.name.starts_with("Other")).map(drop);
    bed.plane.wait_until(WITHIN, renamed).await.expect("it is asked again");
    assert_eq!(bed.plane.requests_where(|request| request.is("POST", "/deregister")).len(), 0);
    let is_on = |of: &RuntimeId| bed.plane.runtimes().iter().any(|row| row.id == *of && row.online);
    assert!(is_on(&claude) && is_on(&runtime));
    bed.daemon.stop().await;
}

#[tokio::test]
async fn a_server_without_custom_runtimes_is_served_all_the_same() {
    let plane = Server::start(Config::default()).await.expect("a control plane");
    let body = "404 page not found\n".to_owned();
    let missing = Action::Reply { status: 404, body, headers: Vec::new() };
    plane.fault(Rule::new("GET", "/api/daemon/workspaces/*/runtime-profiles", missing));
    let bed = bed_of(plane);
    bed.runtime("claude").await;
    let task = bed.enqueue(TaskSpec::new("claude"));
    bed.completed(&task).await;
    let asked = bed.plane.requests_where(is_fetch).len();
    assert!((1..=3).contains(&asked), "once, and again when the control channel is up: {asked}");
    bed.daemon.stop().await;
}

#[tokio::test]
async fn the_repositories_of_a_registration_are_kept_by_workspace() {
    let plane = Server::start(Config::default()).await.expect("a control plane");
    let repo = Repo { url: "https://example.com/boat.git".into(), description: "a boat".into() };
    plane.set_repos(WORKSPACE, vec![repo]).expect("set");
    plane.set_settings(WORKSPACE, r#"{"github_enabled":false}"#).expect("set");
    let home = Home::new(executable(), &plane);
    let daemon = home.drive(|core| core.timers.discover = Duration::from_mins(5)).await;
    let bed = Bed { daemon, home, plane };
    let task = {
        bed.runtime("claude").await;
        bed.enqueue(TaskSpec::new("claude"))
    };
    bed.completed(&task).await;
    let known = bed.daemon.repos(WORKSPACE);
    assert_eq!(
        known.repos.iter().map(|repo| repo.url.as_str()).collect::<Vec<_>>(),
        ["https://example.com/boat.git"]
    );
    assert!(!known.repos_version.is_empty() && !known.settings.names_co_author());
    assert!(bed.daemon.repos("another").repos.is_empty());
    bed.daemon.stop().await;
}

/// A home on a machine that has `my-agent`, and no agent CLI that the daemon knows.
fn without_agents(plane: &Server) -> Home {
    let home = Home::new(executable(), plane).env("MULTICA_CLAUDE_PATH", "/nowhere/claude");
    let path = home.path_with_agents();
    let home = home.env("PATH", path);
    fs::remove_file(home.agent("claude")).expect("it was there");
    home.install("my-agent", &format!("[ \"$1\" = code ] && shift 2\n{}", home.double()));
    home
}

#[tokio::test]
async fn cli_135_a_machine_with_custom_runtimes_alone_works_and_can_be_restarted() {
    let plane = Server::start(Config::default()).await.expect("a control plane");
    let profile = plane.add_profile(WORKSPACE, mine()).expect("a profile");
    let home = without_agents(&plane);
    let daemon = home.start();
    let bed = Bed { daemon, home, plane };
    let runtime = runtime_of(&bed.plane, &profile, true).await;
    bed.linked().await;
    let (_, health) = local(&bed.home, "GET", "/health").await;
    let health: Value = serde_json::from_str(&health).expect("JSON");
    assert_eq!((&health["agents"], &health["state"]), (&Value::from([""; 0].to_vec()), &"running".into()));
    let task = bed.enqueue(of(&runtime));
    bed.completed(&task).await;

    let said = bed.home.run(&["daemon", "restart"]).await;
    assert_eq!(said.code, Some(0), "{said:?}");
    let next = bed.enqueue(of(&runtime));
    bed.completed(&next).await;
    assert_eq!(bed.home.run(&["daemon", "stop"]).await.code, Some(0));
}

#[tokio::test]
async fn cli_135_a_daemon_without_agents_is_up_only_when_it_has_heard_of_a_custom_runtime() {
    let plane = Server::start(Config::default()).await.expect("a control plane");
    let profile = plane.add_profile(WORKSPACE, mine()).expect("a profile");
    let route = "/api/daemon/workspaces/*/runtime-profiles";
    let fails = plane.fault(Rule::new("GET", route, Action::error(500, "no database")));
    let home = without_agents(&plane);
    let daemon = home.start();
    let bed = Bed { daemon, home, plane };
    bed.plane.wait_for_requests(2, WITHIN, is_fetch).await.expect("it asks again");
    bed.logs("waits for the server to tell of custom runtimes").await;
    let (_, health) = local(&bed.home, "GET", "/health").await;
    assert!(health.contains("\"state\":\"starting\""), "{health}");
    fails.remove();
    let runtime = runtime_of(&bed.plane, &profile, true).await;
    let task = bed.enqueue(of(&runtime));
    bed.completed(&task).await;
    let (_, health) = local(&bed.home, "GET", "/health").await;
    assert!(health.contains("\"state\":\"running\""), "{health}");
    bed.daemon.stop().await;
}
