//! What the server asks for in its answers to heartbeats.

use crate::bed::{Bed, WITHIN, polled};
use longshore_core::id::{ActionId, RuntimeId};
use longshore_io_tokio::plane::{Action, Ask, Config, Outcome, Request, RequestState, Rule};
use longshore_tests::Home;
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

/// Between two heartbeats, where a test waits for some.
const BEAT: &str = "1s";

/// With a skill, and an MCP server with a secret.
fn furnished(home: Home) -> Home {
    let skill = home.home_dir().join(".claude/skills/review");
    fs::create_dir_all(&skill).expect("a folder");
    fs::write(skill.join("SKILL.md"), "---\nname: Review\ndescription: Looks twice\n---\nbody\n")
        .expect("a file");
    fs::write(skill.join("more.md"), "more").expect("a file");
    let servers = json!({ "mcpServers": { "fs": { "command": "npx", "env": { "KEY": "s3cret" } } } });
    fs::write(home.home_dir().join(".claude.json"), servers.to_string()).expect("a file");
    home
}

impl<D> Bed<D> {
    async fn over(&self, request: &ActionId) -> Outcome {
        self.plane.outcome(request, WITHIN).await.expect("it is over")
    }

    fn ask(&self, runtime: &RuntimeId, ask: Ask) -> ActionId {
        self.plane.ask(runtime, ask).expect("it is taken")
    }

    /// Without the hint, so that the next beat brings it, whichever way that goes.
    fn ask_quietly(&self, runtime: &RuntimeId, ask: Ask) -> ActionId {
        let asked = self.plane.with_plane(|plane, now| {
            let asked = plane.ask(now, runtime, ask);
            plane.take_hints();
            asked
        });
        asked.expect("it is taken")
    }

    fn beats(&self) -> Vec<Request> {
        self.plane.requests_where(|request| request.path.ends_with("/daemon/heartbeat"))
    }

    fn results(&self, request: &ActionId) -> Vec<Request> {
        let end = format!("/{request}/result");
        self.plane.requests_where(|request| request.path.ends_with(&end))
    }
}

fn import(key: &str) -> Ask {
    Ask::ImportSkill { skill_key: key.into() }
}

/// One of each kind, and of what cannot be done.
async fn each_kind<D>(bed: &Bed<D>) {
    let runtime = bed.runtime("claude").await;
    let asks = [
        Ask::Models,
        Ask::LocalSkills,
        import("review"),
        import("nothing"),
        Ask::Update { target_version: "v9".into() },
    ];
    let asked = asks.map(|ask| bed.ask_quietly(&runtime, ask));
    let mut outcomes = Vec::new();
    for request in &asked {
        outcomes.push(bed.over(request).await);
    }
    let completed = RequestState::Completed;
    let states: Vec<_> = outcomes.iter().map(|outcome| outcome.state).collect();
    assert_eq!(
        states,
        [completed, completed, completed, RequestState::Failed, RequestState::Failed],
        "{outcomes:?}"
    );
    let said: Vec<&Value> = outcomes.iter().map(|outcome| &*outcome.said).collect();
    assert_eq!(said[0]["supported"], true);
    assert_eq!(said[0]["models"].as_array().map(Vec::len), Some(9));
    assert_eq!(said[1]["skills"][0]["key"], "review");
    assert_eq!(said[1]["skills"][0]["file_count"], 2);
    assert_eq!(said[1]["mcp_servers"][0]["name"], "fs");
    assert!(!said[1].to_string().contains("s3cret"));
    assert_eq!(said[2]["skill"]["name"], "Review");
    assert_eq!(said[2]["skill"]["files"], json!([{ "path": "more.md", "content": "more" }]));
    let words = |nth: usize| said[nth]["error"].as_str().unwrap_or_default();
    assert!(words(3).contains("no skill `nothing`"), "{}", words(3));
    assert!(words(4).contains("does not replace its own program") && words(4).contains("v9"), "{}", words(4));
    for request in &asked {
        assert_eq!(bed.results(request).len(), 1, "each is reported once");
    }
}

#[tokio::test]
async fn each_kind_is_answered_over_http() {
    let bed =
        Bed::with(polled(), |home| furnished(home).env("MULTICA_DAEMON_HEARTBEAT_INTERVAL", BEAT)).await;
    each_kind(&bed).await;
    let beats = bed.beats();
    assert!(beats.iter().all(|beat| beat.method == "POST" && beat.body["supports_batch_import"] == true));
}

#[tokio::test]
async fn each_kind_is_answered_over_the_control_connection() {
    let bed =
        Bed::with(Config::default(), |home| furnished(home).env("MULTICA_DAEMON_HEARTBEAT_INTERVAL", BEAT))
            .await;
    bed.linked().await;
    // A beat that goes over HTTP all the same brings nothing.
    bed.plane.fault(Rule::new("POST", "/api/daemon/heartbeat", Action::error(500, "not this way")));
    each_kind(&bed).await;
    let frames = bed.beats().into_iter().filter(|beat| beat.method == "WS");
    assert!(frames.into_iter().all(|beat| beat.body["supports_batch_import"] == true));
}

#[tokio::test]
async fn a_hint_brings_it_at_once() {
    // The next beat of the grid would come much later.
    let bed = Bed::with(Config::default(), |home| home.env("MULTICA_DAEMON_HEARTBEAT_INTERVAL", "10m")).await;
    bed.linked().await;
    let runtime = bed.runtime("claude").await;
    let request = bed.ask(&runtime, Ask::Models);
    assert_eq!(bed.over(&request).await.state, RequestState::Completed);
}

#[tokio::test]
async fn bug_08_beats_go_on_while_an_agent_program_does_not_answer() {
    let bed = Bed::driven(
        polled(),
        |home| {
            let home = home.with_codex();
            let hangs = "#!/bin/sh\ncase \"$*\" in *--version*) echo 'codex-cli 0.144.1' ;; *) trap '' TERM; sleep 600 & wait ;; esac\n";
            fs::write(home.agent("codex"), hangs).expect("written");
            home
        },
        |cfg| {
            cfg.timers.beat = Duration::from_millis(300);
            cfg.timers.action = Duration::from_secs(4);
        },
    )
    .await;
    let (codex, claude) = (bed.runtime("codex").await, bed.runtime("claude").await);
    let request = bed.ask(&codex, Ask::Models);
    let handed_out = |plane: &longshore_io_tokio::plane::Plane| {
        plane.request(&request).filter(|request| request.state == RequestState::Running).map(|_| ())
    };
    bed.plane.wait_until(WITHIN, handed_out).await.expect("it is handed out");
    let after = bed.beats().len();
    for runtime in [&codex, &claude] {
        let of = |beat: &Request| {
            beat.path.ends_with("/daemon/heartbeat")
                && beat.number as usize >= after
                && beat.body["runtime_id"] == runtime.as_str()
        };
        bed.plane.wait_for_requests(3, WITHIN, of).await.expect("it beats");
    }
    assert!(bed.results(&request).is_empty(), "all that came before the program was given up");
    let outcome = bed.over(&request).await;
    assert_eq!(outcome.state, RequestState::Failed);
    let why = outcome.said["error"].as_str().unwrap_or_default();
    assert!(why.contains("not done within 4 s"), "{why}");
    // It was killed before that was told; a killed process may take a moment to be gone, and nobody tells.
    let is_left = |id: &i32| {
        let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains("debug\0models") || line.starts_with(b"sleep\x00600")
    };
    let gone = async {
        while bed.home.processes().iter().any(is_left) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(WITHIN, gone).await.expect("what was started is gone");
}

#[tokio::test]
async fn inv_59_a_result_is_sent_again_until_it_is_taken_or_refused() {
    let bed = Bed::new().await;
    bed.linked().await;
    let runtime = bed.runtime("claude").await;
    let path = "/api/daemon/runtimes/*/models/*/result";
    let fault = bed.plane.fault(Rule::new("POST", path, Action::error(500, "not now")).first(2));
    let request = bed.ask(&runtime, Ask::Models);
    assert_eq!(bed.over(&request).await.state, RequestState::Completed);
    let results = bed.results(&request);
    assert_eq!(results.len(), 3);
    assert!(results.windows(2).all(|two| two[0].body == two[1].body), "the same result each time");
    fault.remove();

    bed.plane.fault(Rule::new("POST", path, Action::error(404, "request not found")).first(1));
    let refused = bed.ask(&runtime, Ask::Models);
    let end = format!("/{refused}/result");
    let answered = |request: &Request| request.path.ends_with(&end) && request.answered_at.is_some();
    bed.plane.wait_for_request(WITHIN, answered).await.expect("it is refused");
    // Another one begins and is over after the time at which the refused one would have been sent again.
    bed.plane.fault(Rule::new("POST", path, Action::error(503, "not now")).first(1));
    let other = bed.ask(&runtime, Ask::Models);
    assert_eq!(bed.over(&other).await.state, RequestState::Completed);
    assert_eq!(bed.results(&refused).len(), 1);
}

#[tokio::test]
async fn a_skill_of_almost_eight_mebibytes_arrives_whole() {
    let bed = Bed::with(Config::default(), |home| {
        let skill = home.home_dir().join(".claude/skills/large");
        fs::create_dir_all(&skill).expect("a folder");
        fs::write(skill.join("SKILL.md"), "large").expect("a file");
        for n in 0..10 {
            fs::write(skill.join(format!("{n}.txt")), "\"ä\\".repeat(200_000)).expect("a file");
        }
        home
    })
    .await;
    bed.linked().await;
    let runtime = bed.runtime("claude").await;
    let many: Vec<_> = (0..3).map(|_| bed.ask(&runtime, import("large"))).collect();
    for request in many {
        let outcome = bed.over(&request).await;
        assert_eq!(outcome.state, RequestState::Completed, "{}", outcome.said["error"]);
        let files = outcome.said["skill"]["files"].as_array().expect("files");
        assert_eq!(files.len(), 10);
        assert!(files.iter().all(|file| file["content"].as_str().is_some_and(|text| text.len() == 800_000)));
    }
}
