use super::*;
use crate::cli::Which;
use axum::Router;
use axum::routing::get;
use std::net::Ipv4Addr;

/// Something that answers `/health` with this, and its port.
async fn answering(body: &'static str) -> u16 {
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let routes = Router::new().route("/health", get(async move || body));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    port
}

async fn asked(asked: DaemonStatus, env: &[(&str, &str)]) -> Result<(Exit, String), ControlError> {
    let home = tempfile::tempdir().expect("a directory");
    std::fs::create_dir_all(home.path().join(".multica/profiles/dev")).expect("a directory");
    std::fs::write(home.path().join(".multica/profiles/dev/config.json"), "{}").expect("written");
    let mut all = Env::from_pairs([("HOME", home.path())]);
    for (name, value) in env {
        all.set(*name, *value);
    }
    let mut out = Vec::new();
    let exit = status(&asked, &all, home.path(), &mut out).await?;
    Ok((exit, String::from_utf8(out).expect("UTF-8")))
}

fn which(profile: &str, port: u16) -> Which {
    Which { profile: profile.into(), health_port: Some(port.to_string()) }
}

async fn shown(body: &'static str, profile: &str, json: bool) -> (Exit, String) {
    let which = which(profile, answering(body).await);
    let status = DaemonStatus { which, json, exit_code: true, ..DaemonStatus::default() };
    asked(status, &[]).await.expect("an answer")
}

#[tokio::test]
async fn cli_76_rows_are_in_order_and_in_line() {
    let go = r#"{"status":"running","pid":7,"uptime":"1h0m5s","profile":"dev","cli_version":"0.4.2","launched_by":"desktop",
        "reload_pending_reason":"new binary","agents":["claude","codex"],"workspaces":[{},{}],"active_task_count":2}"#;
    let (exit, text) = shown(go, "dev", false).await;
    assert_eq!(exit, Exit::Success);
    assert_eq!(
        text,
        "Daemon [dev]:     running (pid 7, uptime 1h0m5s)\n\
         Version:          0.4.2\n\
         Managed by:       the desktop app, which starts and stops it\n\
         Restart pending:  new binary\n\
         Agents:           claude, codex\n\
         Workspaces:       2\n"
    );
    let bare = r#"{"status":"running","pid":7,"uptime":"0s","workspaces":null,"agents":[]}"#;
    assert_eq!(shown(bare, "", false).await.1, "Daemon:  running (pid 7, uptime 0s)\n");
    let starting = r#"{"status":"starting","pid":7,"state":"starting"}"#;
    assert_eq!(shown(starting, "", false).await, (NOT_TAKING, "Daemon: starting (pid 7)\n".into()));
}

#[tokio::test]
async fn cli_82_a_drain_is_shown_with_what_it_waits_for() {
    let drain = r#"{"status":"running","state":"draining","pid":7,"uptime":"5s","active_task_count":3,
        "running_task_count":1,"resource_wait_task_count":2}"#;
    let (exit, text) = shown(drain, "", false).await;
    assert_eq!(exit, NOT_TAKING);
    assert_eq!(
        text,
        "Daemon:  draining (pid 7, uptime 5s)\nTasks:   3 (1 running, 2 waiting for a directory)\n"
    );
}

#[tokio::test]
async fn cli_77_json_is_the_answer_with_its_keys_in_order() {
    let (exit, text) =
        shown(r#"{"status":"running","b":{"z":1,"a":[{"y":1,"x":2}]},"pid":7}"#, "", true).await;
    assert_eq!(exit, Exit::Success);
    let places: Vec<_> =
        ["\"a\"", "\"x\"", "\"y\"", "\"z\"", "\"pid\"", "\"status\""].map(|key| text.find(key)).into();
    assert!(places.is_sorted() && places[0].is_some() && text.starts_with("{\n  \"b\""), "{text}");
}

#[tokio::test]
async fn cli_79_a_daemon_of_another_profile_is_a_conflict() {
    let other = r#"{"status":"running","profile":"other"}"#;
    let (exit, text) = shown(other, "dev", true).await;
    let json: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((exit, &json["status"]), (UNHEALTHY, &json!("stopped")));
    assert_eq!(json["port_conflict"]["profile"], "other");
    let text = shown(other, "dev", false).await.1;
    assert!(text.starts_with("Daemon [dev]: stopped\n") && text.contains("\"other\""), "{text}");
    let json: Value =
        serde_json::from_str(&shown(r#"{"status":"running","profile":3}"#, "dev", true).await.1)
            .expect("JSON");
    assert_eq!(json["port_conflict"]["unreadable_identity"], true);
    let (exit, text) = shown("hello", "", true).await;
    let json: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((exit, &json["status"]), (UNHEALTHY, &json!("stopped")));
    let text = shown("hello", "", false).await.1;
    let why = json["port_conflict"]["used_by"].as_str().expect("a reason");
    assert!(
        json["port_conflict"]["port"].is_u64() && text.ends_with(&format!("something else: {why}\n")),
        "{text}"
    );
}

#[tokio::test]
async fn cli_78_an_unknown_profile_is_told_as_json_too() {
    let status = DaemonStatus { which: which("x", 1), json: true, ..DaemonStatus::default() };
    let (exit, text) = asked(status, &[]).await.expect("an answer");
    assert_eq!(exit, Exit::Failed);
    let json: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json, json!({ "known_profiles": ["dev"], "profile": "x", "status": "unknown_profile" }));
}

#[tokio::test]
async fn cli_104_a_task_sees_the_daemon_that_runs_it_and_no_other() {
    let port = answering(r#"{"status":"running","pid":7,"uptime":"0s","profile":"dev"}"#).await.to_string();
    let in_task = [("MULTICA_TASK_ID", "t"), ("MULTICA_DAEMON_PORT", port.as_str())];
    let (_, text) = asked(DaemonStatus::default(), &in_task).await.expect("an answer");
    assert_eq!(text, "Daemon:  running (pid 7, uptime 0s)\n");
    for (env, profile) in
        [(&in_task[..1], ""), (&[in_task[0], ("MULTICA_DAEMON_PORT", "x")][..], ""), (&in_task[..], "dev")]
    {
        let which = Which { profile: profile.into(), health_port: None };
        let error = asked(DaemonStatus { which, ..DaemonStatus::default() }, env).await.expect_err("refused");
        assert!(error.to_string().contains("MULTICA_DAEMON_PORT"), "{error}");
    }
}
