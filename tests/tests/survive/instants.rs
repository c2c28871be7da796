//! The instants at which a daemon is killed, and how each of them is reached for certain.

use crate::rig::{Rig, WITHIN, until};
use crate::sockets::unread_from;
use crate::stage::Stage;
use longshore_core::id::TaskId;
use longshore_io_tokio::plane::{Action, Fault, Rule, State};
use longshore_tests::{Gate, wait_for_end};
use serde_json::json;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Instant {
    Claim,
    Preparing,
    StartSent,
    StartTaken,
    Launched,
    MidOutput,
    MessagesTaken,
    Finished,
    ReportSent,
    ReportTaken,
    ReportAcknowledged,
}

impl Instant {
    pub(crate) const ALL: [Self; 11] = [
        Self::Claim,
        Self::Preparing,
        Self::StartSent,
        Self::StartTaken,
        Self::Launched,
        Self::MidOutput,
        Self::MessagesTaken,
        Self::Finished,
        Self::ReportSent,
        Self::ReportTaken,
        Self::ReportAcknowledged,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Claim => "after the claim, its answer on the way",
            Self::Preparing => "while preparing",
            Self::StartSent => "during `/start`, not taken yet",
            Self::StartTaken => "during `/start`, taken and unanswered",
            Self::Launched => "just launched",
            Self::MidOutput => "mid-output",
            Self::MessagesTaken => "mid-output, messages taken and unanswered",
            Self::Finished => "agent finished, unread",
            Self::ReportSent => "report sent, not taken yet",
            Self::ReportTaken => "report taken, unanswered",
            Self::ReportAcknowledged => "report acknowledged, not recorded",
        }
    }

    /// Whether the agent was launched before it.
    pub(crate) fn is_launched(self) -> bool {
        !matches!(self, Self::Claim | Self::Preparing | Self::StartSent | Self::StartTaken)
    }

    /// Puts a task in the queue, brings the daemon to this instant with it, and kills it there.
    pub(crate) async fn reach(self, rig: &mut Rig, stage: &Stage) -> TaskId {
        let task = match self {
            Self::Claim => claim(rig, stage).await,
            Self::Preparing => preparing(rig, stage).await,
            Self::StartSent => start(rig, stage, Action::Hold, State::Dispatched).await,
            Self::StartTaken => start(rig, stage, Action::HoldReply, State::Running).await,
            Self::Launched => launched(rig, stage).await,
            Self::MidOutput => mid_output(rig, stage).await,
            Self::MessagesTaken => messages_taken(rig, stage).await,
            Self::Finished => finished(rig, stage).await,
            Self::ReportSent => report(rig, stage, Action::Hold, State::Running).await,
            Self::ReportTaken => report(rig, stage, Action::HoldReply, State::Completed).await,
            Self::ReportAcknowledged => acknowledged(rig, stage).await,
        };
        // What the server still holds of the daemon that is dead is not let go of later.
        rig.plane.cut_connections().await;
        task
    }
}

async fn reached(fault: &Fault) {
    tokio::time::timeout(WITHIN, fault.reached(1)).await.expect("the request comes");
}

/// Kills the daemon while it waits for an answer.
async fn killed_at(rig: &Rig, fault: &Fault) {
    reached(fault).await;
    rig.kill().await;
    rig.plane.cut_connections().await;
    fault.remove();
}

fn state(rig: &Rig, task: &TaskId) -> State {
    rig.plane.task(task).expect("it is there").state
}

async fn claim(rig: &Rig, stage: &Stage) -> TaskId {
    let path = "/api/daemon/tasks/claim";
    // So that the claim that is held is the one that brings the task.
    let busy = rig.plane.fault(Rule::new("*", path, Action::error(503, "busy")));
    reached(&busy).await;
    let task = rig.enqueue(stage.spec(false));
    let hold = rig.plane.fault(Rule::new("*", path, Action::HoldReply));
    busy.remove();
    reached(&hold).await;
    rig.plane.wait_for(&task, State::Dispatched, WITHIN).await.expect("the claim brings it");
    killed_at(rig, &hold).await;
    task
}

async fn preparing(rig: &Rig, stage: &Stage) -> TaskId {
    // The user's MCP servers are read where the agent has some of its own.
    let users = Gate::new(rig.home.home_dir().join(".claude.json"));
    let mut spec = stage.spec(false);
    spec.content.agent_fields.insert("mcp_config".into(), json!({ "mcpServers": {} }));
    let task = rig.enqueue(spec);
    let helper = users.reached().await;
    assert_eq!(state(rig, &task), State::Dispatched);
    rig.kill().await;
    assert!(helper.forsaken(WITHIN).await, "whoever prepares goes with the daemon");
    users.replace_by_file("{}\n");
    task
}

async fn start(rig: &Rig, stage: &Stage, action: Action, then: State) -> TaskId {
    let hold = rig.fault("start", |path| Rule::new("POST", &path, action));
    let task = rig.enqueue(stage.spec(false));
    reached(&hold).await;
    rig.plane.wait_for(&task, then, WITHIN).await.expect("the server is that far");
    killed_at(rig, &hold).await;
    task
}

async fn launched(rig: &mut Rig, stage: &Stage) -> TaskId {
    let task = rig.enqueue(stage.spec(false));
    stage.pass(&stage.born, rig).await;
    rig.kill().await;
    assert!(rig.plane.transcript(&task).is_empty());
    task
}

/// A task whose agent is before its second part, and the server has something of the first.
async fn after_first_part(rig: &mut Rig, stage: &Stage, leaves: bool) -> TaskId {
    let task = rig.enqueue(stage.spec(leaves));
    stage.pass(&stage.born, rig).await;
    rig.open.push(stage.first.open());
    rig.spoke(&task).await;
    task
}

async fn mid_output(rig: &mut Rig, stage: &Stage) -> TaskId {
    let task = after_first_part(rig, stage, false).await;
    rig.open.push(stage.second.open());
    stage.pass(&stage.written, rig).await;
    rig.kill().await;
    task
}

async fn messages_taken(rig: &mut Rig, stage: &Stage) -> TaskId {
    let task = after_first_part(rig, stage, false).await;
    let hold = rig.fault("messages", |path| Rule::new("POST", &path, Action::HoldReply));
    rig.open.push(stage.second.open());
    killed_at(rig, &hold).await;
    task
}

async fn finished(rig: &mut Rig, stage: &Stage) -> TaskId {
    let task = after_first_part(rig, stage, true).await;
    rig.daemon().freeze().await;
    let agent = rig.home.processes_of(&task);
    assert!(!agent.is_empty());
    stage.open_all(rig);
    for process in agent {
        assert!(wait_for_end(process, WITHIN).await, "the agent comes to its end");
    }
    rig.kill().await;
    assert!(rig.calls(&task, "complete").is_empty());
    task
}

async fn report(rig: &mut Rig, stage: &Stage, action: Action, then: State) -> TaskId {
    let hold = rig.fault("complete", |path| Rule::new("POST", &path, action));
    let task = rig.enqueue(stage.spec(false));
    stage.open_all(rig);
    reached(&hold).await;
    rig.plane.wait_for(&task, then, WITHIN).await.expect("the server is that far");
    killed_at(rig, &hold).await;
    task
}

async fn acknowledged(rig: &mut Rig, stage: &Stage) -> TaskId {
    let hold = rig.fault("complete", |path| Rule::new("POST", &path, Action::HoldReply));
    let task = rig.enqueue(stage.spec(false));
    stage.open_all(rig);
    reached(&hold).await;
    rig.plane.wait_for(&task, State::Completed, WITHIN).await.expect("the server takes it");
    rig.daemon().freeze().await;
    let port = rig.plane.addr().port();
    let before = unread_from(port);
    hold.remove();
    let arrived = || unread_from(port).difference(&before).next().copied();
    until("the answer in the daemon's socket", arrived).await;
    rig.kill().await;
    task
}
