//! Others than the daemon are killed, or both: the second table.

use crate::audit::{self, Audit};
use crate::document;
use crate::rig::{Rig, until};
use crate::stage::Stage;
use crate::together;
use longshore_io_tokio::plane::State;
use longshore_tests::{signal, wait_for_end};
use rustix::process::Signal;
use std::fs;
use std::time::Duration;

/// By when nothing of a run that cannot go on may be left.
const GONE: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Supervisor,
    SupervisorAndDaemon,
    Agent,
    AgentAndDaemon,
}

impl Victim {
    const ALL: [Self; 4] = [Self::Supervisor, Self::SupervisorAndDaemon, Self::Agent, Self::AgentAndDaemon];

    const fn name(self) -> &'static str {
        match self {
            Self::Supervisor => "the supervisor",
            Self::SupervisorAndDaemon => "the supervisor and the daemon",
            Self::Agent => "the agent",
            Self::AgentAndDaemon => "the agent and the daemon",
        }
    }

    const fn is_daemon_too(self) -> bool {
        matches!(self, Self::SupervisorAndDaemon | Self::AgentAndDaemon)
    }

    /// What a report about it has to name.
    const fn true_reason(self) -> &'static str {
        match self {
            Self::Supervisor | Self::SupervisorAndDaemon => "the process that kept it",
            Self::Agent | Self::AgentAndDaemon => "killed",
        }
    }
}

async fn killed(victim: Victim) -> Audit {
    let mut audit = Audit::default();
    let mut rig = Rig::new(|home| home).await;
    let stage = Stage::new(&rig);
    let task = stage.in_mid_output(&mut rig).await;

    let (dir, run) = rig.run_of(&task).await;
    // What a supervisor has not read yet of the agent's pipe goes with it. Once the server has it, its space in the spool is given back.
    let spooled = || {
        let spool = fs::read(dir.file("stdout")).unwrap_or_default();
        let is_there = String::from_utf8_lossy(&spool).contains(&Stage::last_before_third());
        let messages = rig.plane.transcript(&task);
        let said: usize =
            messages.iter().filter_map(|message| message.content.as_ref()).map(|it| it.len()).sum();
        (is_there || said >= Stage::up_to_third().len()).then_some(())
    };
    until("the second part in the supervisor's hands", spooled).await;
    let of_run = rig.home.processes_of(&task);
    audit.require(of_run.contains(&run.agent.pid), || format!("{of_run:?} without {}", run.agent.pid));
    let registrations = rig.registrations();
    if victim.is_daemon_too() {
        rig.kill().await;
    }
    let first = match victim {
        Victim::Supervisor | Victim::SupervisorAndDaemon => run.supervisor.pid,
        Victim::Agent | Victim::AgentAndDaemon => run.agent.pid,
    };
    signal(first, Signal::KILL);
    if victim.is_daemon_too() {
        rig.start_next();
        rig.registered_since(registrations).await;
    }
    for process in of_run.into_iter().chain([run.supervisor.pid]) {
        let gone = wait_for_end(process, GONE).await;
        audit.require(gone, || format!("process {process} of the run lives after {GONE:?}"));
    }
    rig.open.push(stage.third.open());
    let tries = rig.over(&task).await;
    audit::leftovers(&rig, &mut audit).await;
    rig.stop().await;

    audit.says = audit::endings(&rig, &tries, &mut audit);
    for row in &tries {
        let starts = audit::agents(&rig, row, &mut audit);
        audit.require(starts == 1, || format!("{starts} agents"));
        let said = audit::said(&rig, row, &mut audit);
        let whole = Stage::whole();
        audit.require(whole.starts_with(&said), || audit::differ(&said, &whole));
        let written = Stage::up_to_third();
        audit.require(said.len() >= written.len(), || format!("{} bytes of {}", said.len(), written.len()));
    }
    let error = tries[0].error.as_deref().unwrap_or_default();
    audit.require(tries[0].state == State::Failed && error.contains(victim.true_reason()), || {
        format!("{:?}: {error}", tries[0].state)
    });
    if !audit.wrong.is_empty() {
        audit.wrong.push(rig.log());
    }
    audit
}

#[tokio::test]
#[ignore = "takes longer: four daemons with their agents"]
async fn a_run_that_is_killed_from_outside_is_told_once_with_its_reason_and_leaves_nothing() {
    let scenarios = Victim::ALL.map(|victim| (victim.name().to_owned(), killed(victim)));
    let seen = together::all(scenarios.into()).await;
    let rows = Victim::ALL.map(|victim| vec![victim.name().to_owned(), seen[victim.name()].clone()]);
    document::hold("victims", &document::table(&["killed in mid-output", "result"], rows));
}
