//! What `daemon status` shows.

use crate::bed::{Bed, refused, succeeded};
use longshore_io_tokio::plane::{Action, Rule};
use serde_json::{Value, json};

#[tokio::test]
async fn cli_77_80_a_daemon_that_is_stopped_is_no_error_unless_asked_for() {
    let bed = Bed::new().await;
    let said = bed.home.run(&["daemon", "status"]).await;
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (Some(0), "Daemon: stopped\n", ""));
    let json = bed.home.run(&["daemon", "status", "--output", "json", "--exit-code"]).await;
    assert_eq!((json.code, json.out.as_str()), (Some(3), "{\n  \"status\": \"stopped\"\n}\n"));
}

#[tokio::test]
async fn cli_33_80_a_start_and_a_running_daemon_are_shown() {
    let bed = Bed::new().await;
    let hold = bed.plane.fault(Rule::new("POST", "/api/daemon/register", Action::Hold).first(1));
    let start = bed.home.begin(&["daemon", "start"]);
    hold.reached(1).await;
    let said = bed.home.run(&["daemon", "status", "--exit-code"]).await;
    assert!(said.code == Some(4) && said.out.starts_with("Daemon: starting (pid "), "{said:?}");
    hold.release();
    succeeded(&start.ended().await);

    let text = bed.home.run(&["daemon", "status", "--exit-code"]).await;
    succeeded(&text);
    let pid = bed.pid().await;
    let lines: Vec<&str> = text.out.lines().collect();
    assert!(lines[0].starts_with(&format!("Daemon:      running (pid {pid}, uptime ")), "{}", text.out);
    assert!(lines[1].starts_with("Version:     "), "{}", text.out);
    assert_eq!(lines[2..], ["Agents:      claude", "Workspaces:  1", "Tasks:       0 (0 running)"]);

    let json = bed.home.run(&["daemon", "status", "--output", "json"]).await;
    let health: Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!((&health["profile"], &health["agents"]), (&json!(""), &json!(["claude"])));
    let keys: Vec<usize> = health
        .as_object()
        .expect("an object")
        .keys()
        .map(|key| json.out.find(&format!("\n  \"{key}\"")).expect("there"))
        .collect();
    assert!(keys.is_sorted() && keys.len() > 12, "{}", json.out);
    succeeded(&bed.home.run(&["daemon", "stop"]).await);
}

#[tokio::test]
async fn cli_78_an_unknown_profile_is_no_daemon_that_is_stopped() {
    let bed = Bed::new().await;
    std::fs::create_dir_all(bed.file("profiles/team/dev")).expect("a directory");
    std::fs::write(bed.file("profiles/team/dev/config.json"), "{}").expect("written");
    let text = bed.home.run(&["daemon", "status", "--profile", "dve"]).await;
    assert!(refused(&text).contains("team/dev"), "{text:?}");
    let json = bed.home.run(&["daemon", "status", "--profile", "dve", "--output", "json"]).await;
    assert_eq!((json.code, json.err.as_str()), (Some(1), ""));
    let value: Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!(
        value,
        json!({ "known_profiles": ["team/dev"], "profile": "dve", "status": "unknown_profile" })
    );
}
