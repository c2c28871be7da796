//! Daemons that end themselves soon after their start: with a line that says why, and with recordings that have an end.

use crate::bed::{WITHIN, executable};
use longshore_core::trace::{Mode, Reader, Replay};
use longshore_io_tokio::plane::{Config, Request, Server};
use longshore_io_tokio::trace_sink::segments;
use longshore_tests::{Home, trace_text};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::time::Duration;

const PASSWORD: &str = "hunter2";

/// The reason that the recording in these files ends with, if it ends.
fn end_of<'a>(files: impl IntoIterator<Item = &'a Path>) -> Option<String> {
    let mut replay = Replay::new(Mode::Strict);
    for file in files {
        let text = trace_text(file);
        replay.segment(Reader::new(text.as_slice()).expect("a header"), |_| {}).expect("it replays");
    }
    replay.finish().end
}

/// A daemon that is started, ends itself with exit code 1, and has recorded this end twice. Gives its log.
async fn ends_recorded(home: Home, end: &str) -> String {
    let home = home.flag("--record").flag("whole.jsonl");
    let ended = home.start().ended().await;
    assert_eq!(ended.status.code(), Some(1), "{}", ended.log);
    let whole = home.dir().join("whole.jsonl");
    assert_eq!(end_of([whole.as_path()]).as_deref(), Some(end), "{}", ended.log);
    let flight = segments(&home.state_dir().join("trace")).expect("segments");
    assert_eq!(end_of(flight.iter().map(AsRef::as_ref)).as_deref(), Some(end), "{}", ended.log);
    let read = home.run(&["trace", "replay", "whole.jsonl"]).await;
    assert!(read.code == Some(0) && !read.out.contains("killed"), "{read:?}");
    ended.log
}

#[tokio::test]
async fn without_anything_to_run_a_daemon_ends_and_its_recordings_say_so() {
    let plane = Server::start(Config::default()).await.expect("a control plane");
    let home = Home::new(executable(), &plane).env("MULTICA_CLAUDE_PATH", "/nowhere/claude");
    let said = ends_recorded(home, "no agent program was found").await;
    assert!(said.contains("/nowhere/claude is no program"), "{said}");
    assert!(said.contains("the server tells of no custom runtime"), "{said}");
    let registered = |request: &Request| request.is("POST", "/register");
    assert!(plane.requests_where(registered).is_empty());

    let home = Home::new(executable(), &plane).env("MULTICA_CLAUDE_PATH", "/nowhere/claude");
    home.write_config();
    let behind = home.run(&["daemon", "start"]).await;
    assert!(behind.code == Some(1) && behind.err.contains("no agent program was found"), "{behind:?}");
}

#[tokio::test]
async fn a_daemon_whose_port_is_taken_has_recorded_nothing() {
    let plane = Server::start(Config::default()).await.expect("a control plane");
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let home = Home::new(executable(), &plane).env("MULTICA_DAEMON_HEALTH_PORT", port);
    let home = home.flag("--record").flag("whole.jsonl");
    let ended = home.start().ended().await;
    assert!(ended.status.code() == Some(1) && ended.log.contains("already in use"), "{}", ended.log);
    assert!(!home.dir().join("whole.jsonl").exists(), "so there is no recording without an end");
    assert!(!home.state_dir().join("trace").exists());
}

#[tokio::test]
async fn a_driver_that_is_dropped_ends_its_recording() {
    let plane = Server::start(Config::default()).await.expect("a control plane");
    let home = Home::new(executable(), &plane).recorded_to("whole.jsonl");
    let daemon = home.drive(|_| {}).await;
    plane.wait_for_runtime("claude", WITHIN).await.expect("a runtime");
    let whole = home.dir().join("whole.jsonl");
    drop(daemon);
    let ends = async {
        let mut look = tokio::time::interval(Duration::from_millis(10));
        while !trace_text(&whole).windows(11).any(|bytes| bytes == b"\"rec\":\"end\"") {
            look.tick().await;
        }
    };
    tokio::time::timeout(WITHIN, ends).await.expect("an end");
    assert_eq!(end_of([whole.as_path()]).as_deref(), Some("abandoned"));
}

#[tokio::test]
async fn a_refused_credential_ends_a_daemon_and_its_recordings_say_so() {
    let plane = Server::start(Config::default()).await.expect("a control plane");
    let home = Home::at(executable(), &plane.url(), "mul_of_nobody");
    let said = ends_recorded(home, "the server refused the credential").await;
    assert!(said.contains("log in again with `multica login`"), "{said}");
}

#[tokio::test]
async fn a_proxy_that_cannot_be_used_stops_every_start_unless_the_server_is_called_directly() {
    let proxy = format!("ftp://me:{PASSWORD}@proxy.invalid:21");
    let server = "http://multica.invalid";
    let home = Home::at(executable(), server, "mul_of_somebody").env("HTTP_PROXY", &proxy);
    let in_front = home.start().ended().await;
    let behind = home.run(&["daemon", "start"]).await;
    for (code, said) in [(in_front.status.code(), in_front.log), (behind.code, behind.err)] {
        assert_eq!(code, Some(1), "{said}");
        for words in ["HTTP_PROXY", "\"ftp\"", "socks5", "add multica.invalid to NO_PROXY"] {
            assert!(said.contains(words), "{said}");
        }
        assert!(!said.contains(PASSWORD), "{said}");
    }

    let home = home.env("NO_PROXY", ".invalid");
    let behind = home.run(&["daemon", "start"]).await;
    assert!(behind.err.contains("multica.invalid") && !behind.err.contains("PROXY"), "{behind:?}");
}
