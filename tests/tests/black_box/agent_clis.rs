//! Agent CLIs that come, hang, change, move, break and are repaired while the daemon runs.

use crate::bed::{Bed, WITHIN, polled};
use crate::service::local;
use longshore_core::config::Config as Core;
use longshore_core::plane::Plane;
use longshore_io_tokio::agent_double::Step;
use longshore_io_tokio::plane::{Action, Config, Request, Rule, State, TaskSpec};
use longshore_tests::{Gate, Home};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

const CODEX: &str = "echo codex-cli 0.144.1";

/// With a codex that is this file among the agents' programs, there or not.
fn with_codex_at(home: Home, name: &str) -> Home {
    let path = home.agent(name).display().to_string();
    home.env("MULTICA_CODEX_PATH", path)
}

/// Looks at agent CLIs come soon.
fn look_often(core: &mut Core) {
    core.timers.discover = Duration::from_millis(200);
    core.timers.demote_confirm = Duration::from_millis(500);
    core.timers.probe_again = Duration::from_millis(200);
}

fn is_registration(request: &Request) -> bool {
    request.is("POST", "/register")
}

/// The families that a registration names, and their versions.
fn named(request: &Request) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let runtimes = request.body["runtimes"].as_array().cloned().unwrap_or_default();
    runtimes.iter().map(|runtime| (text(&runtime["type"]), text(&runtime["version"]))).collect()
}

#[tokio::test]
async fn a_program_that_hangs_delays_neither_registration_nor_the_first_heartbeat_of_another() {
    let begun = Instant::now();
    let furnish = |home: Home| {
        home.install("hangs", "sleep 30; echo codex-cli 0.144.1");
        with_codex_at(home, "hangs").env("MULTICA_DAEMON_HEARTBEAT_INTERVAL", "1s")
    };
    let bed = Bed::with(polled(), furnish).await;
    let beat = |request: &Request| request.is("POST", "/heartbeat");
    bed.plane.wait_for_request(WITHIN, beat).await.expect("a heartbeat");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let first = bed.plane.wait_for_request(WITHIN, is_registration).await.expect("a registration");
    assert_eq!(named(&first).iter().map(|(family, _)| family.as_str()).collect::<Vec<_>>(), ["claude"]);
    let (_, health) = local(&bed.home, "GET", "/health").await;
    let health: Value = serde_json::from_str(&health).expect("JSON");
    assert_eq!(health["agents"], serde_json::json!(["claude"]));
    assert!(
        health["skipped_agents"]["codex"].as_str().is_some_and(|why| why.contains("waited for")),
        "{health}"
    );
    let task = bed.enqueue(TaskSpec::new("claude"));
    bed.completed(&task).await;
    let ended = bed.daemon.stop().await;
    assert!(ended.status.success(), "{}", ended.log);
    assert_eq!(bed.home.processes(), [0; 0], "what was still asked is ended too");
}

#[tokio::test]
async fn a_program_that_is_installed_later_is_registered_beside_the_others() {
    let furnish = |home: Home| with_codex_at(home, "later");
    let bed = Bed::driven(Config::default(), furnish, look_often).await;
    let claude = bed.runtime("claude").await;
    bed.home.install("later", CODEX);
    bed.runtime("codex").await;
    let of = |end: &'static str| bed.plane.requests_where(move |request| request.is("POST", end));
    assert_eq!((of("/deregister").len(), bed.runtime("claude").await), (0, claude.clone()));
    let orphans = of("/recover-orphans");
    assert_eq!(orphans.iter().filter(|request| request.path.contains(claude.as_str())).count(), 1);
    assert_eq!(bed.daemon.health().skipped_agents.len(), 0);
    bed.daemon.stop().await;
}

#[tokio::test]
async fn the_answer_to_a_claim_is_read_although_the_connection_is_dialled_anew_meanwhile() {
    let furnish = |home: Home| {
        with_codex_at(home, "later").config("providers", json!({ "claude": { "max_concurrent_tasks": 1 } }))
    };
    let bed = Bed::driven(Config::default(), furnish, look_often).await;
    bed.linked().await;
    // While this one runs nothing is claimed, so that the next claim brings the second one.
    let gate = Gate::new(bed.home.dir().join("gate"));
    let first = bed.enqueue(TaskSpec::new("claude").script(&[Step::Say("first".into()), gate.wait()]));
    bed.spoke(&first).await;
    let second = bed.enqueue(TaskSpec::new("claude"));
    let answer = bed.plane.fault(Rule::new("WS", "/api/daemon/tasks/claim", Action::HoldReply));
    let _open = gate.open();
    bed.completed(&first).await;
    let taken = |plane: &Plane| plane.task(&second).filter(|task| task.state == State::Dispatched).map(drop);
    bed.plane.wait_until(WITHIN, taken).await.expect("the server gave it away");
    bed.home.install("later", CODEX);
    let up = |request: &Request| request.path == "/api/daemon/ws" && request.status() == Some(101);
    bed.plane.wait_for_requests(2, WITHIN, up).await.expect("another control channel");
    answer.release();
    answer.remove();
    // The server would offer it again after 90 s only.
    bed.completed(&second).await;
    assert_eq!(bed.calls(&second, "start").len(), 1);
    bed.daemon.stop().await;
}

#[tokio::test]
async fn another_version_is_registered_again_under_the_same_id() {
    let furnish = |home: Home| {
        fs::write(home.dir().join("version"), "2.1.0 (Claude Code)").expect("written");
        let version = home.dir().join("version").display().to_string();
        home.install(
            "claude",
            &format!("case $* in *--version*) cat '{version}' ;; *) {} ;; esac", home.double()),
        );
        home
    };
    let tune = |core: &mut Core| {
        core.timers.versions = Duration::from_millis(300);
        core.timers.probe_again = Duration::from_millis(100);
    };
    let bed = Bed::driven(Config::default(), furnish, tune).await;
    let claude = bed.runtime("claude").await;
    fs::write(bed.home.dir().join("version"), "2.2.0 (Claude Code)").expect("written");
    let again = |request: &Request| {
        is_registration(request) && named(request) == [("claude".into(), "2.2.0 (Claude Code)".into())]
    };
    bed.plane.wait_for_request(WITHIN, again).await.expect("a registration with the new version");
    let known =
        |plane: &Plane| plane.runtime(&claude).filter(|row| row.version.starts_with("2.2.0")).map(drop);
    bed.plane.wait_until(WITHIN, known).await.expect("the same row");
    let of = |end: &'static str| bed.plane.requests_where(move |request| request.is("POST", end)).len();
    assert_eq!((of("/deregister"), of("/recover-orphans")), (0, 1));
    let task = bed.enqueue(TaskSpec::new("claude"));
    bed.completed(&task).await;
    assert_eq!(bed.plane.requests_where(is_registration).len(), 2, "and then no more");
    bed.daemon.stop().await;
}

#[tokio::test]
async fn a_program_that_cannot_be_run_any_more_goes_off_line_with_its_repair_and_comes_back() {
    let furnish = |home: Home| {
        let json = r#"{"name":"codex-package","scripts":{"postinstall":"node install.js"}}"#;
        fs::write(home.dir().join("package.json"), json).expect("written");
        home.install("mine", CODEX);
        with_codex_at(home, "mine")
    };
    let bed = Bed::driven(Config::default(), furnish, look_often).await;
    let (claude, codex) = (bed.runtime("claude").await, bed.runtime("codex").await);
    bed.home.install_broken("mine");
    let off = |request: &Request| request.is("POST", "/deregister");
    let off = bed.plane.wait_for_request(WITHIN, off).await.expect("it goes off line");
    assert_eq!(off.body["runtime_ids"], serde_json::json!([codex.as_str()]));
    let reason = &off.body["offline_reasons"][codex.as_str()];
    assert_eq!(reason["code"], "not_executable");
    assert!(reason["detail"].as_str().is_some_and(|detail| detail.contains("codex-package")), "{reason}");
    let command = format!("cd '{}' && node install.js", bed.home.dir().display());
    let repair = serde_json::json!({ "package": "codex-package", "command": command, "shell": "bash" });
    assert_eq!(reason["repair"], repair);

    bed.home.install("mine", CODEX);
    let back = |plane: &Plane| {
        let row = plane.runtime(&codex)?;
        (row.online && row.offline_reason.is_none()).then_some(())
    };
    bed.plane.wait_until(WITHIN, back).await.expect("it comes back under the same id");
    let offs = bed.plane.requests_where(|request| request.is("POST", "/deregister"));
    assert!(offs.iter().all(|off| !off.body.to_string().contains(claude.as_str())), "{offs:?}");
    bed.dialled(3).await;
    let task = bed.enqueue(TaskSpec::new("claude"));
    bed.completed(&task).await;
    bed.daemon.stop().await;
}

#[tokio::test]
async fn mul_4486_a_program_that_a_version_manager_has_moved_is_found_again_when_it_is_launched() {
    let furnish = |home: Home| {
        let links = home.dir().join("links");
        for dir in [&links, &home.dir().join("v1"), &home.dir().join("v2")] {
            fs::create_dir(dir).expect("a directory");
        }
        home.install("mine", &home.double());
        fs::rename(home.agent("mine"), home.dir().join("v1/claude")).expect("moved");
        symlink(home.dir().join("v1/claude"), links.join("claude")).expect("a link");
        let path = format!("{}:/usr/bin:/bin", links.display());
        home.without_env("MULTICA_CLAUDE_PATH").env("PATH", path)
    };
    let bed = Bed::with(Config::default(), furnish).await;
    let at = |name: &str| bed.home.dir().join(name);
    fs::rename(at("v1/claude"), at("v2/claude")).expect("moved");
    let lost = bed.enqueue(TaskSpec::new("claude"));
    let failed = bed.failed(&lost).await;
    assert_eq!(failed.failure_reason.as_deref(), Some("agent_error.runtime_missing_executable"));
    let error = bed.bodies(&lost, "fail")[0]["error"].as_str().expect("a text").to_owned();
    assert!(error.contains("v1/claude") && error.contains("install"), "{error}");

    fs::remove_file(at("links/claude")).expect("removed");
    symlink(at("v2/claude"), at("links/claude")).expect("a link");
    let found = bed.enqueue(TaskSpec::new("claude"));
    bed.completed(&found).await;
    bed.daemon.stop().await;
}
