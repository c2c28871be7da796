//! What became of a task, as the server and the machine know it, and whether that is as it must be.

use crate::rig::{Rig, within};
use crate::stage::{ANSWER, Stage};
use longshore_io_tokio::plane::{Answer, Request, State, Task};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Stands between two blocks of text that go out as one message.
const BREAK: &str = "\n\n";
/// The calls that end a task.
const REPORTS: [&str; 3] = ["complete", "fail", "cancel-ack"];
/// How long what is left of a task may stay after its end.
const TIDY: Duration = Duration::from_secs(30);
/// Endings of names of files that are written before they are put in their place.
const HALF_MADE: [&str; 4] = ["new", "tmp", "part", "claiming"];
/// The reasons for which a server tries a task again.
const RETRYABLE: [&str; 2] = ["runtime_offline", "runtime_recovery"];

/// What was seen, and what of it must not be.
#[derive(Clone, Debug, Default)]
pub(crate) struct Audit {
    /// In words for a table.
    pub(crate) says: String,
    /// Nothing, if all is well.
    pub(crate) wrong: Vec<String>,
}

impl Audit {
    pub(crate) fn require(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.wrong.push(what());
        }
    }
}

/// The reports of a try that the server has acted upon, and those that came in all.
fn reports(rig: &Rig, task: &Task) -> (Vec<(&'static str, Request)>, usize) {
    let all: Vec<_> = REPORTS
        .iter()
        .flat_map(|call| rig.calls(&task.id, call).into_iter().map(move |request| (*call, request)))
        .collect();
    let came = all.len();
    let acted =
        |request: &Request| matches!(request.answer, Answer::Sent(200..=299) | Answer::Lost(200..=299));
    let mut taken: Vec<_> = all.into_iter().filter(|(_, request)| acted(request)).collect();
    taken.sort_by_key(|(_, request)| request.number);
    (taken, came)
}

/// Looks at the reports of one try, and says how it ended.
pub(crate) fn ending(rig: &Rig, task: &Task, audit: &mut Audit) -> String {
    let reason = task.failure_reason.as_deref().unwrap_or("no reason");
    let (taken, _) = reports(rig, task);
    let (call, end) = match task.state {
        State::Completed => ("complete", "completed".to_owned()),
        State::Failed if RETRYABLE.contains(&reason) => ("fail", format!("handed back (`{reason}`)")),
        State::Failed => ("fail", format!("failed (`{reason}`)")),
        State::Cancelled => ("cancel-ack", "cancelled".to_owned()),
        other => ("nothing", other.as_str().to_owned()),
    };
    audit.require(taken.iter().all(|(kind, _)| *kind == call), || {
        let kinds: Vec<_> = taken.iter().map(|(kind, _)| *kind).collect();
        format!("{} is {}, and was told as {kinds:?}", task.id, task.state.as_str())
    });
    let bodies: Vec<_> = taken.iter().map(|(_, request)| request.body.to_string()).collect();
    audit.require(bodies.windows(2).all(|pair| pair[0] == pair[1]), || {
        format!("a report that is sent again is another one: {bodies:?}")
    });
    match taken.len() {
        // The server found it out by itself.
        0 if reason == "runtime_recovery" => end,
        0 => {
            audit.wrong.push(format!("{} has ended, and nobody told: {end}", task.id));
            end
        }
        1 => end,
        n => format!("{end}, told {n} times and taken once"),
    }
}

/// The same for all tries of a task.
pub(crate) fn endings(rig: &Rig, tries: &[Task], audit: &mut Audit) -> String {
    let mut ends = Vec::new();
    for (n, row) in tries.iter().enumerate() {
        let end = ending(rig, row, audit);
        ends.push(if n == 0 { end } else { format!("try {} {end}", n + 1) });
    }
    ends.join("; ")
}

/// The messages of a try: one after the other, each once.
pub(crate) fn said(rig: &Rig, task: &Task, audit: &mut Audit) -> String {
    let messages = rig.plane.transcript(&task.id);
    let numbers: Vec<_> = messages.iter().map(|message| message.seq).collect();
    audit.require(is_count(&numbers), || format!("messages of {} are {numbers:?}", task.id));
    let said: String = messages.iter().filter_map(|message| message.content.as_deref()).collect();
    said.replace(BREAK, "")
}

fn is_count(numbers: &[i32]) -> bool {
    numbers.iter().zip(1..).all(|(number, place)| *number == place)
}

/// How often the agent of a try was started, and that never two of one work were alive at once.
pub(crate) fn agents(rig: &Rig, task: &Task, audit: &mut Audit) -> usize {
    let overlaps = rig.home.overlapping_agents();
    audit.require(overlaps.is_empty(), || format!("two agents at once: {overlaps:?}"));
    rig.home.agent_starts().iter().filter(|start| start.task == task.id.as_str()).count()
}

/// Looks at a task of the matrix and its tries.
pub(crate) fn task(rig: &Rig, tries: &[Task], launched: bool) -> Audit {
    let mut audit = Audit::default();
    audit.says = endings(rig, tries, &mut audit);
    for (n, row) in tries.iter().enumerate() {
        let (said, starts) = (said(rig, row, &mut audit), agents(rig, row, &mut audit));
        let works = n + 1 == tries.len();
        audit.require(starts == usize::from(works), || format!("try {} has {starts} agents", n + 1));
        let (want, answer) = if works { (Stage::whole(), Some(ANSWER)) } else { (String::new(), None) };
        audit.require(said == want, || differ(&said, &want));
        let output = row.result.as_ref().map(|result| &*result.output);
        audit.require(output == answer, || format!("the answer is {output:?}"));
    }
    let state = tries.last().map(|row| row.state);
    audit.require(state == Some(State::Completed), || format!("the end is {state:?}"));
    audit.require(!launched || tries.len() == 1, || "work that was begun was begun anew".to_owned());
    audit
}

/// Where two long texts differ.
pub(crate) fn differ(said: &str, want: &str) -> String {
    let same = said.bytes().zip(want.bytes()).take_while(|(one, other)| one == other).count();
    let near = |text: &str| text.chars().skip(same.saturating_sub(12)).take(48).collect::<String>();
    format!(
        "{} bytes are there and {} were said; from byte {same} on it is {:?} and not {:?}",
        said.len(),
        want.len(),
        near(said),
        near(want)
    )
}

/// What is left of tasks on the machine: nothing must be, soon after they have ended.
pub(crate) async fn leftovers(rig: &Rig, audit: &mut Audit) {
    let left = || files_left(rig);
    let tidy = within(TIDY, || left().is_empty().then_some(())).await;
    audit.require(tidy.is_some(), || format!("files are left: {:?}", left()));
}

pub(crate) fn files_left(rig: &Rig) -> BTreeSet<PathBuf> {
    let state = rig.home.state_dir();
    let mut left: BTreeSet<_> = [rig.home.temp_base(), state.join("runs"), state.join("ledger")]
        .iter()
        .flat_map(|dir| fs::read_dir(dir).into_iter().flatten().flatten())
        .map(|entry| entry.path())
        .collect();
    for place in [state, rig.home.workspaces_root(), rig.home.home_dir()] {
        half_made(&place, &mut left);
    }
    left
}

fn half_made(dir: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            half_made(&path, found);
        } else if path.extension().is_some_and(|end| HALF_MADE.iter().any(|half| end == *half)) {
            found.insert(path);
        }
    }
}
