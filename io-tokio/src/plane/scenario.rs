//! Six tasks of different fates for the agent double, as data: for demonstrations and for tests.

use super::content::TaskSpec;
use super::faults::{Action, Fault, Rule};
use super::server::Server;
use super::waiting::WaitError;
use crate::agent_double::Step;
use longshore_core::id::TaskId;
use longshore_core::plane::{Refusal, State, Task};
use serde_json::json;
use std::time::Duration;
use uuid::Uuid;

/// A task with a known fate.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// A short name.
    pub name: &'static str,
    /// What it shows, in one line.
    pub about: &'static str,
    /// What the double does.
    pub script: Vec<Step>,
    /// How the task ends.
    pub ends: State,
    /// The answer, where it completes.
    pub answer: Option<&'static str>,
    /// Whether it is cancelled as soon as its first words have arrived.
    pub cancelled: bool,
    /// How many times its report is answered with 503 first.
    pub refused_reports: u64,
}

/// A scenario whose task is in the queue.
#[derive(Clone, Debug)]
pub struct Staged {
    /// The task.
    pub task: TaskId,
    /// What stands in the way of its report, if anything does.
    pub fault: Option<Fault>,
    scenario: Scenario,
}

impl Scenario {
    fn new(name: &'static str, about: &'static str, script: Vec<Step>, answer: &'static str) -> Self {
        Self {
            name,
            about,
            script,
            ends: State::Completed,
            answer: Some(answer),
            cancelled: false,
            refused_reports: 0,
        }
    }

    /// The task for an agent CLI of the family `provider`, which has to be the double.
    pub fn spec(&self, provider: &str) -> TaskSpec {
        TaskSpec::new(provider).titled(self.about).script(&self.script)
    }

    /// Puts the task in the queue, and its fault in force before that.
    ///
    /// # Errors
    /// See [`Server::enqueue`].
    pub fn stage(&self, server: &Server, provider: &str) -> Result<Staged, Refusal> {
        let task = TaskId::new(Uuid::new_v4().to_string());
        let spec = TaskSpec { id: Some(task.clone()), ..self.spec(provider) };
        let fault = (self.refused_reports > 0).then(|| {
            let path = format!("/api/daemon/tasks/{task}/complete");
            let refusal = Action::error(503, "the database is restarting");
            server.fault(Rule::new("POST", &path, refusal).first(self.refused_reports))
        });
        match server.enqueue(spec) {
            Ok(task) => Ok(Staged { task, fault, scenario: self.clone() }),
            Err(why) => {
                fault.iter().for_each(Fault::remove);
                Err(why)
            }
        }
    }
}

impl Staged {
    /// Plays the operator's part, and waits for the end that the scenario promises.
    ///
    /// # Errors
    /// See [`Server::wait_for`]; `within` bounds each of the two waits.
    pub async fn see_through(&self, server: &Server, within: Duration) -> Result<Task, WaitError> {
        if self.scenario.cancelled {
            let spoke = |plane: &super::Plane| {
                let row = plane.task(&self.task)?;
                let runs = row.state == State::Running && !plane.transcript(&self.task).is_empty();
                (runs || row.state.is_terminal()).then_some(())
            };
            server.wait_until(within, spoke).await?;
            // A task that is gone by now is found out by the wait below.
            let _ = server.cancel(&self.task);
        }
        server.wait_for(&self.task, self.scenario.ends, within).await
    }
}

/// The six.
pub fn demo_tasks() -> Vec<Scenario> {
    let say = |text: &str| Step::Say(text.into());
    let bash = |command: &str, output: &str| Step::Tool {
        name: "Bash".into(),
        input: json!({ "command": command }),
        output: output.into(),
    };
    vec![
        Scenario::new(
            "quick",
            "Answer at once",
            vec![say("Two and two, then."), Step::Result("Four.".into())],
            "Four.",
        ),
        Scenario::new("chatty", "Think aloud for a while", chatter(), "Read everything; nothing is missing."),
        Scenario::new(
            "tools",
            "Run the tests and mend one",
            vec![
                bash("cargo test", "1 failed: adds_up"),
                say("The sum starts at one."),
                Step::Sleep(700),
                Step::Tool {
                    name: "Edit".into(),
                    input: json!({ "file_path": "src/sum.rs", "old_string": "= 1", "new_string": "= 0" }),
                    output: "ok".into(),
                },
                Step::Write { path: "sum.txt".into(), text: "sum = 0\n".into() },
                Step::Sleep(700),
                bash("cargo test", "12 passed"),
                Step::Result("Fixed: the sum started at one.".into()),
            ],
            "Fixed: the sum started at one.",
        ),
        Scenario {
            ends: State::Failed,
            answer: None,
            ..Scenario::new(
                "failing",
                "Run into a wall, and fail",
                vec![
                    say("I try the build."),
                    bash("make", "make: *** no rule to make target"),
                    Step::Stderr("the build directory is gone".into()),
                    Step::Error("I cannot build this: there is no Makefile.".into()),
                ],
                "",
            )
        },
        Scenario {
            ends: State::Cancelled,
            answer: None,
            cancelled: true,
            ..Scenario::new(
                "cancelled",
                "Be stopped in the middle of it",
                vec![say("This will take me all day."), Step::Hang],
                "",
            )
        },
        Scenario {
            refused_reports: 1,
            ..Scenario::new(
                "two-tries",
                "Report to a server that is down for a moment",
                vec![say("Almost done."), Step::Result("Done, and told twice.".into())],
                "Done, and told twice.",
            )
        },
    ]
}

/// Many small texts with pauses, as of somebody who reads.
fn chatter() -> Vec<Step> {
    let mut script =
        vec![Step::Think("Where would one begin?".into()), Step::Say("I begin with the README.\n".into())];
    for file in 1..=40 {
        if file % 8 == 1 {
            script.push(Step::Sleep(450));
        }
        script.push(Step::Say(format!("File {file} of 40 is read.\n")));
    }
    script.push(Step::Sleep(300));
    script.push(Step::Say("That was a lot to read.".into()));
    script.push(Step::Result("Read everything; nothing is missing.".into()));
    script
}
