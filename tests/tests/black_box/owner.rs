//! One daemon for each identity at each server.

use crate::bed::{Bed, WITHIN, executable};
use longshore_io_tokio::agent_double::Step;
use longshore_io_tokio::plane::{Config, Server, TaskSpec};
use longshore_tests::{Home, ReservedPort, is_alive};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Output;
use std::time::{Duration, Instant};

const START: [&str; 3] = ["daemon", "start", "--foreground"];

/// More variables of a daemon.
type Environment = Vec<(&'static str, String)>;

/// Where locks are.
fn owners(home: &Home) -> PathBuf {
    home.state_dir().join("owners")
}

/// A second daemon: arguments and environment on top of those of the first.
async fn second(home: &Home, args: &[&str], env: &[(&str, String)]) -> Output {
    let mut command = home.command(&[&START, args].concat());
    command.envs(env.iter().map(|(name, value)| (*name, value.as_str())));
    let ended = tokio::task::spawn_blocking(move || command.output().expect("it starts"));
    tokio::time::timeout(WITHIN, ended).await.expect("it ends by itself").expect("no panic")
}

#[tokio::test]
async fn bug_04_a_second_daemon_of_one_identity_ends_at_once_names_the_first_and_contacts_nobody() {
    let bed = Bed::with(Config::default(), |home| home.flag("--daemon-id=one")).await;
    let home = &bed.home;
    let profile = home.home_dir().join(".multica/profiles/dev");
    fs::create_dir_all(&profile).expect("a directory");
    fs::copy(home.config_file(), profile.join("config.json")).expect("the same token");
    let link = home.dir().join("link");
    symlink(home.home_dir(), &link).expect("a link");
    // Whoever looks for agents runs it.
    let (probe, probed) = (home.dir().join("probe"), home.dir().join("probed"));
    fs::write(&probe, format!("#!/bin/sh\n: > '{}'\necho 2.1.5\n", probed.display())).expect("written");
    fs::set_permissions(&probe, fs::Permissions::from_mode(0o755)).expect("made executable");
    let root = home.dir().join("ws-2");
    let own = [
        ("MULTICA_CLAUDE_PATH", probe.display().to_string()),
        ("MULTICA_WORKSPACES_ROOT", root.display().to_string()),
    ];
    let port = ReservedPort::new();
    let other_port = ("MULTICA_DAEMON_HEALTH_PORT", port.port().to_string());
    let server = |url: String| ("MULTICA_SERVER_URL", url);
    let at = bed.plane.addr();
    let cases: [(&[&str], Environment); 6] = [
        (&[], vec![]),
        (&[], vec![other_port.clone()]),
        (&["--profile=dev"], vec![other_port.clone()]),
        (&[], vec![other_port.clone(), server(format!("WS://{at}/ws"))]),
        (&[], vec![other_port.clone(), server(format!("http://LOCALHOST:{}//", at.port()))]),
        (&[], vec![other_port, ("HOME", link.display().to_string())]),
    ];
    let mut fastest = Duration::MAX;
    for (args, env) in &cases {
        let begun = Instant::now();
        let ended = second(home, &[*args, &["--daemon-id=one"]].concat(), &[&own, &env[..]].concat()).await;
        fastest = fastest.min(begun.elapsed());
        let text = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{args:?} {env:?}: {text}");
        let error = text.lines().last().expect("a line");
        let holder = format!("process {}, profile default, since 20", bed.daemon.id());
        assert!(error.starts_with("error: ") && error.contains(&holder), "{args:?} {env:?}: {text}");
    }
    assert!(fastest < Duration::from_secs(1), "even the fastest took {fastest:?}");
    for once in ["/api/tokens/current/renew", "/register"] {
        assert_eq!(bed.plane.requests_where(|request| request.is("POST", once)).len(), 1, "{once}");
    }
    assert!(!probed.exists(), "a second daemon looked for agents");
    assert!(!root.exists() && !profile.join("longshore").exists(), "a second daemon left something behind");
    assert_eq!(fs::read_dir(owners(home)).expect("a folder").count(), 1);

    let task = bed.enqueue(TaskSpec::new("claude"));
    bed.completed(&task).await;
    assert!(bed.daemon.stop().await.status.success(), "{}", bed.daemon.log());
}

/// Nothing but the daemon has the lock's file open. A child that is not yet what it will be has it for a moment.
async fn not_inherited(bed: &Bed) {
    let holders = || bed.home.processes_with_open(&owners(&bed.home));
    let alone = async {
        while holders() != [bed.daemon.id()] {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let waited = tokio::time::timeout(WITHIN, alone).await;
    assert!(waited.is_ok(), "{:?} have the lock of {}", holders(), bed.daemon.id());
}

#[tokio::test]
async fn bug_04_a_daemon_starts_at_once_after_a_kill_while_supervisor_and_agent_live_on() {
    let bed = Bed::new().await;
    let task = bed.enqueue(TaskSpec::new("claude").script(&[Step::Say("busy".into()), Step::Hang]));
    bed.spoke(&task).await;
    not_inherited(&bed).await;
    bed.daemon.kill().await;
    let agents = bed.home.processes_of(&task);
    assert!(agents.iter().any(|agent| is_alive(*agent)), "the agent outlives a kill of its daemon");
    // What is in the file is nobody's business but a reader's: its process lives and is none of ours.
    let lock =
        fs::read_dir(owners(&bed.home)).expect("a folder").next().expect("a lock").expect("a lock").path();
    let stale = format!("process {}, profile default, since 2026-01-01T00:00:00Z\n", std::process::id());
    fs::write(&lock, stale).expect("written");

    let next = bed.home.start();
    let again = bed.plane.wait_for_requests(2, WITHIN, |request| request.is("POST", "/register")).await;
    again.expect("the next daemon registers");
    let text = fs::read_to_string(&lock).expect("read");
    assert!(text.starts_with(&format!("process {}, ", next.id())), "{text}");
    assert!(next.stop().await.status.success(), "{}", next.log());
}

#[tokio::test]
async fn without_a_place_for_its_lock_a_daemon_does_not_start() {
    let plane = Server::start(Config::default()).await.expect("a control plane");
    let home = Home::new(executable(), &plane);
    // For a directory that cannot be written: root can write to any.
    fs::create_dir_all(home.state_dir()).expect("directories");
    fs::write(owners(&home), "in its place").expect("written");
    let ended = home.start().ended().await;
    assert_eq!(ended.status.code(), Some(1), "{}", ended.log);
    assert!(ended.log.contains("owners") && ended.log.contains("second daemon"), "{}", ended.log);
    assert!(plane.requests().is_empty());
}

#[tokio::test]
async fn what_brings_a_server_of_its_own_works_beside_a_daemon() {
    let bed = Bed::new().await;
    let prompt = r#"Do it. longshore-double: [{"say":"Four."}]"#;
    let mut commands = [bed.home.command(&["local", prompt]), bed.home.command(&["demo"])];
    for command in &mut commands {
        command.env("TMPDIR", bed.home.dir());
    }
    let ran =
        tokio::task::spawn_blocking(move || commands.map(|mut command| command.output().expect("it ran")));
    for output in ran.await.expect("no panic") {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    }
    assert_eq!(fs::read_dir(owners(&bed.home)).expect("a folder").count(), 1, "their locks go with them");
    let task = bed.enqueue(TaskSpec::new("claude"));
    bed.completed(&task).await;
    bed.daemon.stop().await;
}
