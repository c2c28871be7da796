//! Tasks that are cancelled, run into their limit, or are under way when the daemon is stopped or drained, with agents that make it hard:
//! the third table.

use crate::audit::{self, Audit};
use crate::document;
use crate::rig::{Rig, WITHIN, until, within};
use crate::stage::{ANSWER, numbers};
use crate::together;
use longshore_core::id::TaskId;
use longshore_core::plane::Plane;
use longshore_io_tokio::agent_double::Step;
use longshore_io_tokio::plane::{Request, State, TaskSpec};
use longshore_tests::{Gate, Home};
use std::time::Duration;

/// The limit on a run, in milliseconds, where it is one that ends it.
const LIMIT_MS: u64 = 2_000;
/// The longest wait for an end: before it all that the agent said is sent, and several send 100 MB at once.
const PATIENCE: Duration = Duration::from_secs(3 * WITHIN.as_secs());
/// 100 lines of 1 MiB.
const HUGE: (u64, usize) = (100, 1 << 20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Cancel,
    Limit,
    Stop,
    Drain,
}

impl End {
    const ALL: [Self; 4] = [Self::Cancel, Self::Limit, Self::Stop, Self::Drain];

    const fn name(self) -> &'static str {
        match self {
            Self::Cancel => "cancelled",
            Self::Limit => "at its time limit",
            Self::Stop => "the daemon is stopped",
            Self::Drain => "the daemon is drained",
        }
    }

    fn furnish(self, home: Home) -> Home {
        match self {
            Self::Limit => home.flag(&format!("--agent-timeout={LIMIT_MS}ms")),
            Self::Drain => home.flag("--on-sigterm=drain"),
            Self::Cancel | Self::Stop => home,
        }
    }

    fn begin(self, rig: &Rig, task: &TaskId) {
        match self {
            Self::Cancel => drop(rig.plane.cancel(task).expect("it is there")),
            // Time does it.
            Self::Limit => {}
            Self::Stop | Self::Drain => rig.daemon().terminate(),
        }
    }

    const fn ends_daemon(self) -> bool {
        matches!(self, Self::Stop | Self::Drain)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Agent {
    IgnoresSigterm,
    EndsJustThen,
    Prints100Mb,
}

impl Agent {
    const ALL: [Self; 3] = [Self::IgnoresSigterm, Self::EndsJustThen, Self::Prints100Mb];

    const fn name(self) -> &'static str {
        match self {
            Self::IgnoresSigterm => "ignores SIGTERM",
            Self::EndsJustThen => "ends in the same instant",
            Self::Prints100Mb => "prints 100 MB",
        }
    }

    fn script(self, end: End, gate: &Gate) -> Vec<Step> {
        let (lines, bytes) = HUGE;
        let say = Step::Say("1".into());
        let result = Step::Result(ANSWER.into());
        match self {
            Self::IgnoresSigterm => vec![Step::IgnoreTerm, say, gate.wait(), result],
            Self::EndsJustThen if end == End::Limit => vec![say, Step::Sleep(LIMIT_MS), result],
            Self::EndsJustThen => vec![say, gate.wait(), result],
            // It is not done when all is printed: else whether it is ended before would be chance.
            Self::Prints100Mb => vec![Step::Flood { lines, bytes }, gate.wait(), result],
        }
    }

    fn whole(self) -> String {
        match self {
            Self::Prints100Mb => numbers(HUGE.0, HUGE.1),
            _ => "1".into(),
        }
    }
}

/// The answered reports about a task.
fn told(rig: &Rig, task: &TaskId) -> Vec<Request> {
    let calls = ["complete", "fail", "cancel-ack"];
    calls.iter().flat_map(|call| rig.calls(task, call)).filter(|request| request.status().is_some()).collect()
}

async fn ended(end: End, agent: Agent) -> Audit {
    let mut audit = Audit::default();
    let mut rig = Rig::new(|home| end.furnish(home)).await;
    let gate = Gate::new(rig.home.dir().join("go"));
    let spec = TaskSpec { max_attempts: 1, ..TaskSpec::new("claude") };
    let task = rig.enqueue(spec.script(&agent.script(end, &gate)));
    rig.spoke(&task).await;
    if agent == Agent::EndsJustThen {
        rig.open.push(gate.open());
    }
    end.begin(&rig, &task);
    if end == End::Drain {
        rig.open.push(gate.open());
    }
    if end.ends_daemon() {
        let gone = within(PATIENCE, || rig.daemon().has_ended().then_some(())).await;
        audit.require(gone.is_some(), || format!("the daemon is there after {PATIENCE:?}"));
        // A stop waits for 30 s at most. What a slow machine has not told by then is told by the next daemon.
        if rig.plane.task(&task).is_some_and(|row| !row.state.is_terminal()) {
            rig.start_next();
        }
    }
    let over = |plane: &Plane| plane.task(&task).filter(|row| row.state.is_terminal()).cloned();
    let row = rig.plane.wait_until(PATIENCE, over).await.expect("it ends");
    let answered = |request: &Request| {
        let is_report = ["/complete", "/fail", "/cancel-ack"].iter().any(|call| request.path.ends_with(call));
        is_report && request.answered_at.is_some()
    };
    rig.plane.wait_for_request(PATIENCE, answered).await.expect("its end is told");
    let left = rig.home.processes_of(&task);
    audit.require(left.is_empty(), || format!("{left:?} live when the end is told"));
    audit::leftovers(&rig, &mut audit).await;
    if rig.daemon().has_ended() {
        until("the end of all processes", || rig.home.processes().is_empty().then_some(())).await;
    } else {
        rig.stop().await;
    }

    let said = audit::said(&rig, &row, &mut audit);
    let whole = agent.whole();
    let ok = if row.state == State::Completed { said == whole } else { whole.starts_with(&said) };
    audit.require(ok, || audit::differ(&said, &whole));
    let starts = audit::agents(&rig, &row, &mut audit);
    audit.require(starts == 1, || format!("{starts} agents"));
    let reports = told(&rig, &task);
    audit.require(reports.len() == 1, || format!("it is told {} times: {reports:?}", reports.len()));
    if agent == Agent::EndsJustThen && end != End::Drain {
        // Which of the two comes first is no matter, as long as one does.
        let won = reports.iter().all(|report| report.is("POST", "/complete"));
        audit.require(won || row.state != State::Completed, || {
            format!("{} without a word", row.state.as_str())
        });
        audit.says = "whichever comes first, told once".into();
    } else {
        audit.says = audit::ending(&rig, &row, &mut audit);
    }
    if !audit.wrong.is_empty() {
        audit.wrong.push(rig.log());
    }
    audit
}

#[tokio::test]
#[ignore = "takes longer: true grace times, and 100 MB some times"]
async fn runs_that_are_ended_end_once_and_leave_nothing_however_hard_the_agent_makes_it() {
    let name = |end: End, agent: Agent| format!("{} / {}", end.name(), agent.name());
    let cells = End::ALL.iter().flat_map(|end| Agent::ALL.map(|agent| (*end, agent)));
    let seen = together::all(cells.map(|(end, agent)| (name(end, agent), ended(end, agent))).collect()).await;
    let mut head = vec!["ended"];
    head.extend(Agent::ALL.map(Agent::name));
    let rows = End::ALL.map(|end| {
        let mut row = vec![end.name().to_owned()];
        row.extend(Agent::ALL.map(|agent| seen[&name(end, agent)].clone()));
        row
    });
    document::hold("endings", &document::table(&head, rows));
}
