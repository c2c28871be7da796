//! A restart.

use crate::bed::{Bed, refused, succeeded};
use longshore_io_tokio::plane::{Action, Rule};
use longshore_tests::{ReservedPort, is_alive};
use serde_json::json;
use std::fs;

#[tokio::test]
async fn cli_73_a_restart_with_nothing_running_is_a_start() {
    let bed = Bed::new().await;
    let said = bed.home.run(&["daemon", "restart", "--device-name", "box"]).await;
    succeeded(&said);
    assert!(said.out.is_empty() && said.err.contains("started"), "{said:?}");
    assert_eq!(bed.status().await["device_name"], "box");
    succeeded(&bed.home.run(&["daemon", "stop"]).await);
}

#[tokio::test]
async fn cli_72_a_restart_that_would_fail_leaves_the_daemon_as_it_is() {
    let bed = Bed::new().await;
    let daemon = bed.daemon().await;
    let nobody = ReservedPort::new();
    let url = format!("http://127.0.0.1:{}", nobody.port());
    let good = fs::read(bed.home.config_file()).expect("a config file");

    let gone = bed.home.run(&["daemon", "restart", "--server-url", &url]).await;
    assert!(refused(&gone).contains(&url), "{gone:?}");
    let bad = bed.home.run(&["daemon", "restart", "--poll-interval", "soon"]).await;
    assert!(refused(&bad).contains("--poll-interval"), "{bad:?}");
    let taken = bed.home.dir().join("taken.jsonl");
    fs::write(&taken, "kept").expect("written");
    let recorded = bed.home.run(&["daemon", "restart", "--record", &taken.display().to_string()]).await;
    assert!(refused(&recorded).contains("taken.jsonl"), "{recorded:?}");
    let nowhere = bed.home.run(&["daemon", "restart", "--workspaces-root", "/proc/nowhere"]).await;
    assert!(refused(&nowhere).contains("/proc/nowhere"), "{nowhere:?}");
    let agentless =
        bed.home.run_with(&["daemon", "restart"], &[("MULTICA_CLAUDE_PATH", "/nowhere/claude")]).await;
    assert!(refused(&agentless).contains("no agent program"), "{agentless:?}");
    fs::write(bed.home.config_file(), json!({ "token": "mul_of_somebody_else" }).to_string())
        .expect("written");
    let denied = bed.home.run(&["daemon", "restart"]).await;
    assert!(refused(&denied).contains("multica login"), "{denied:?}");
    fs::write(bed.home.config_file(), "{}").expect("written");
    let none = bed.home.run(&["daemon", "restart"]).await;
    assert!(refused(&none).contains("no token"), "{none:?}");

    fs::write(bed.home.config_file(), good).expect("written");
    assert_eq!(bed.pid().await, daemon.id());
    assert_eq!(bed.status().await["state"], "running");
    assert!(daemon.stop().await.status.success());
}

#[tokio::test]
async fn cli_74_a_restart_waits_for_the_old_process_and_takes_nothing_off_line() {
    let bed = Bed::new().await;
    let old = bed.daemon().await;
    let said = bed.home.run(&["daemon", "restart"]).await;
    succeeded(&said);
    assert!(!is_alive(old.id()));
    assert!(old.ended().await.status.success());
    let new = bed.pid().await;
    assert_ne!(new, old.id());
    assert!(is_alive(new) && said.err.contains(&new.to_string()), "{said:?}");
    assert_eq!((bed.off_line(), bed.pid_file()), (0, Some(new.to_string())));
    assert_eq!(bed.status().await["state"], "running");
    succeeded(&bed.home.run(&["daemon", "stop"]).await);
}

#[tokio::test]
async fn of_two_restarts_at_once_neither_ends_what_the_other_has_started() {
    let bed = Bed::new().await;
    let old = bed.daemon().await;
    // The first one has found the daemon, and asks the server for as long as the second one takes for everything.
    let asked = bed.plane.fault(Rule::new("GET", "/api/me", Action::Hold).first(1));
    let first = bed.home.begin(&["daemon", "restart"]);
    asked.reached(1).await;
    succeeded(&bed.home.run(&["daemon", "restart"]).await);
    let new = bed.pid().await;
    assert_ne!(new, old.id());
    asked.release();
    let said = first.ended().await;
    // Who comes too late may be told so in more than one way.
    refused(&said);
    assert_eq!((bed.pid().await, bed.off_line()), (new, 0));
    assert_eq!(bed.status().await["state"], "running");
    assert!(old.ended().await.status.success());
    succeeded(&bed.home.run(&["daemon", "stop"]).await);
}
