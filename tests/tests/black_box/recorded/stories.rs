//! The situations that are played again, each with what the agent does in it.

use super::differences::{self, Found};
use super::player::Player;
use super::shape::shapes;
use super::tape::Tape;
use crate::bed::{WITHIN, executable};
use longshore_io_tokio::agent_double::{SCRIPT_ENV, Step, script_text};
use longshore_tests::{DaemonUnderTest, Home};
use serde_json::json;
use std::collections::BTreeSet;

/// The start, which the other recordings go on from.
const START: &str = "a-startup";

/// A daemon of the recorded server.
struct Stage {
    player: Player,
    /// Dropped before its home.
    daemon: DaemonUnderTest,
    _home: Home,
    recorded: Tape,
}

impl Stage {
    /// Every task's agent follows the script.
    async fn set(recordings: &[&str], script: &[Step]) -> Self {
        let mut tape = Tape::of(recordings);
        let asked: BTreeSet<String> = tape.answers.keys().map(|(_, path)| path.clone()).collect();
        for task in tape.claims.iter_mut().flatten() {
            let resolve = format!(
                "/api/daemon/runtimes/{}/tasks/{}/skill-bundles/resolve",
                task["runtime_id"].as_str().expect("an id"),
                task["id"].as_str().expect("an id")
            );
            let agent = task["agent"].as_object_mut().expect("an agent");
            if !asked.contains(&resolve) {
                // The recorded daemon had them from an earlier recording.
                agent.remove("skill_refs");
            }
            agent.insert("custom_env".into(), json!({ SCRIPT_ENV: script_text(script) }));
        }
        let player = Player::of(tape).await;
        let home = Home::at(executable(), player.url(), "mul_0123456789abcdef0123456789abcdef01234567");
        // The first claim may come before the control connection; the next one goes over it.
        let home = home.env("MULTICA_DAEMON_POLL_INTERVAL", "1s");
        let daemon = home.start();
        Self { player, daemon, _home: home, recorded: Tape::of(recordings) }
    }

    /// Waits for the last report of the story, and compares.
    async fn ends_with(self, last: &str, times: usize) -> Found {
        self.player.uses(last, times, WITHIN).await;
        self.claims_as_recorded().await;
        self.compare()
    }

    /// Waits for a claim over the control connection, where there was one: the next poll or hint brings it.
    async fn claims_as_recorded(&self) {
        if self.recorded.said.iter().any(|said| said.route == CLAIM_OVER) {
            self.player.uses(CLAIM_OVER, 1, WITHIN).await;
        }
    }

    /// What differs.
    fn compare(&self) -> Found {
        let heard = self.player.heard();
        let (recorded, ours) = (shapes(&self.recorded.said), shapes(&heard));
        let mut found = Found::default();
        for (route, theirs) in &recorded {
            let Some(mine) = ours.get(route) else {
                found.note(route, "is not used");
                continue;
            };
            for field in theirs.always.difference(&mine.always) {
                found.note(route, &format!("`{field}` is missing"));
            }
            for field in mine.ever.difference(&theirs.ever) {
                found.note(route, &format!("`{field}` is new"));
            }
        }
        for route in ours.keys().filter(|route| !recorded.contains_key(*route)) {
            found.note(route, "is new");
        }
        found.compare_headers(&self.recorded.said, &heard);
        found
    }
}

fn say(text: &str) -> Step {
    Step::Say(text.into())
}

const CLAIM_OVER: &str = "frame daemon:rpc_request";
const COMPLETE: &str = "POST /api/daemon/tasks/{}/complete";
const FAIL: &str = "POST /api/daemon/tasks/{}/fail";
const ACK: &str = "POST /api/daemon/tasks/{}/cancel-ack";

async fn a_start() -> Found {
    let stage = Stage::set(&[START], &[]).await;
    stage.player.uses("frame daemon:heartbeat", 1, WITHIN).await;
    stage.ends_with(CLAIM_OVER, 1).await
}

async fn a_task_with_tools() -> Found {
    let script = [
        Step::Think("thinking about it".into()),
        Step::Tool { name: "Bash".into(), input: json!({ "command": "echo hi" }), output: "hi\n".into() },
        say("All good."),
        Step::Result("done with tools".into()),
    ];
    let stage = Stage::set(&[START, "c-one-task-tools"], &script).await;
    stage.ends_with(COMPLETE, 1).await
}

async fn a_second_task_of_an_issue() -> Found {
    let stage =
        Stage::set(&[START, "c2-followup-comment"], &[say("working"), Step::Result("done".into())]).await;
    stage.ends_with(COMPLETE, 1).await
}

async fn an_agent_that_crashes() -> Found {
    let script = [say("about to crash"), Step::Stderr("fatal".into()), Step::Exit(1)];
    Stage::set(&[START, "d1-exit1"], &script).await.ends_with(FAIL, 1).await
}

async fn an_agent_that_fails() -> Found {
    let script = [say("working"), Step::Error("it cannot be done".into())];
    Stage::set(&[START, "d2-iserror"], &script).await.ends_with(FAIL, 1).await
}

async fn a_cancelled_task() -> Found {
    let stage = Stage::set(&[START, "e1-cancel-running"], &[say("sleeping"), Step::Hang]).await;
    stage.ends_with(ACK, 1).await
}

async fn a_chat_of_two_turns() -> Found {
    let stage =
        Stage::set(&[START, "p1-chat-two-turns"], &[say("hello"), Step::Result("hello".into())]).await;
    let turns = stage.recorded.claims.len();
    stage.ends_with(COMPLETE, turns).await
}

async fn tasks_of_two_workspaces() -> Found {
    let stage =
        Stage::set(&[START, "f-two-workspaces"], &[say("working"), Step::Result("done".into())]).await;
    let tasks: usize = stage.recorded.claims.iter().map(Vec::len).sum();
    stage.ends_with(COMPLETE, tasks).await
}

/// The connection is refused throughout; what came after that was mended is not played.
async fn a_start_without_a_control_connection() -> Found {
    let stage =
        Stage::set(&["w1-ws-refused-http-polling"], &[say("working"), Step::Result("done".into())]).await;
    stage.player.uses("POST /api/daemon/heartbeat", 1, WITHIN).await;
    stage.ends_with(COMPLETE, 1).await
}

async fn a_stop_in_mid_run() -> Found {
    let stage = Stage::set(&[START, "g-sigterm-running"], &[say("sleeping"), Step::Hang]).await;
    stage.player.uses("POST /api/daemon/tasks/{}/session", 1, WITHIN).await;
    stage.player.uses("POST /api/daemon/tasks/{}/messages", 1, WITHIN).await;
    stage.claims_as_recorded().await;
    stage.daemon.stop().await;
    // Recorded: "cancelled", which is final although nobody cancelled anything.
    let reports: Vec<_> = stage.player.heard().into_iter().filter(|said| said.route == FAIL).collect();
    assert!(!reports.is_empty());
    assert!(reports.iter().all(|report| report.body["failure_reason"] == "runtime_offline"), "{reports:?}");
    stage.compare()
}

/// All at once, as most of the time is waited.
#[tokio::test]
async fn what_is_said_to_the_recorded_server_is_what_was_recorded() {
    let (start, tools, second, cancelled) =
        tokio::join!(a_start(), a_task_with_tools(), a_second_task_of_an_issue(), a_cancelled_task());
    let (crashes, fails, chat) =
        tokio::join!(an_agent_that_crashes(), an_agent_that_fails(), a_chat_of_two_turns());
    let (two, unlinked, stopped) =
        tokio::join!(tasks_of_two_workspaces(), a_start_without_a_control_connection(), a_stop_in_mid_run());
    let stories = [
        ("a start", start),
        ("a task with tools", tools),
        ("a second task of an issue", second),
        ("a cancelled task", cancelled),
        ("an agent that crashes", crashes),
        ("an agent that fails", fails),
        ("a chat of two turns", chat),
        ("tasks of two workspaces", two),
        ("a start without a control connection", unlinked),
        ("a stop in mid-run", stopped),
    ];
    differences::are_as_listed(&stories);
}
