//! What happened: a table, the paths to look at, and whether all was as it should be.

use crate::driver::Incomplete;
use crate::local::place::Place;
use crate::local::speech::one_line;
use crate::plane::scenario::Scenario;
use crate::plane::{State, Task};
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Columns of the table: it fits every terminal.
const WIDTH: u16 = 80;
/// One line below the header, and nothing else that takes room.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));
/// What the columns say, in lines that fit too.
const LEGEND: &str = "Two of the tasks are not meant to complete: one is to fail, one to be stopped.\n\
    Reports: how often the server was told the end. Messages: what the agent said.";
/// Characters of a task's error in a complaint.
const ERROR: usize = 200;

/// One task's line.
#[derive(Clone, Debug)]
pub(super) struct Row {
    name: &'static str,
    about: &'static str,
    ended: Option<State>,
    tries: usize,
    messages: usize,
    took: Option<Duration>,
    work_dir: Option<PathBuf>,
    /// What is not as it should be.
    trouble: Option<String>,
}

impl Row {
    /// A task that did not come into the queue.
    pub(super) fn without_task(scenario: &Scenario) -> Self {
        Self {
            name: scenario.name,
            about: scenario.about,
            ended: None,
            tries: 0,
            messages: 0,
            took: None,
            work_dir: None,
            trouble: Some("was never queued".to_owned()),
        }
    }

    /// A task with its row on the control plane. `tries` is how often its end was reported; `abandoned` says that the daemon ended
    /// without having reported it.
    pub(super) fn new(
        scenario: &Scenario,
        row: Option<&Task>,
        tries: usize,
        messages: usize,
        abandoned: bool,
    ) -> Self {
        let Some(row) = row else { return Self::without_task(scenario) };
        let begun = row.dispatched_at.unwrap_or(row.created_at);
        let work_dir = row.work_dir.as_deref().map(PathBuf::from);
        let trouble = if abandoned {
            Some("the daemon ended without having reported it".to_owned())
        } else {
            trouble(scenario, row, tries, messages, work_dir.as_deref())
        };
        Self {
            ended: Some(row.state),
            tries,
            messages,
            took: row.ended_at.map(|end| end.mono.since(begun.mono)),
            work_dir,
            trouble,
            ..Self::without_task(scenario)
        }
    }
}

/// What is not as the scenario promises.
fn trouble(
    scenario: &Scenario,
    row: &Task,
    tries: usize,
    messages: usize,
    work_dir: Option<&Path>,
) -> Option<String> {
    if row.state != scenario.ends {
        let mut text = format!("{} instead of {}", row.state.as_str(), scenario.ends.as_str());
        if let Some(error) = &row.error {
            let _ = write!(text, " ({})", one_line(error, ERROR));
        }
        return Some(text);
    }
    let answer = row.result.as_ref().map(|result| &*result.output);
    if answer != scenario.answer {
        return Some(format!("answered {:?}", one_line(answer.unwrap_or_default(), ERROR)));
    }
    if tries as u64 <= scenario.refused_reports {
        return Some(format!("reported {tries} times, though {} were refused", scenario.refused_reports));
    }
    if scenario.cancelled && !row.cancel_acked {
        return Some("the end of its agent was not reported".to_owned());
    }
    let speaks = |step: &crate::agent_double::Step| matches!(step, crate::agent_double::Step::Say(_));
    if messages == 0 && scenario.script.iter().any(speaks) {
        return Some("nothing of what its agent said arrived".to_owned());
    }
    match work_dir {
        Some(dir) if dir.is_dir() => None,
        Some(dir) => Some(format!("its work directory {} is gone", dir.display())),
        None => Some("had no work directory".to_owned()),
    }
}

/// What people are told of.
pub(super) struct Told<'a> {
    pub(super) place: &'a Place,
    /// Its own trace, in its directory, and the copies that were asked for.
    pub(super) traces: &'a [PathBuf],
    /// This program, as it is to be typed.
    pub(super) program: &'a str,
}

/// All that there is to say on standard output.
pub(super) fn text(rows: &[Row], told: &Told<'_>, incomplete: &[Incomplete]) -> String {
    let Told { place, traces, program } = told;
    let mut text = format!("\n{}\n\n{LEGEND}\n\nWork directories\n", table(rows).trim_fmt());
    for row in rows {
        if let Some(dir) = &row.work_dir {
            let _ = writeln!(text, "  {:<10} {}", row.name, dir.display());
        }
    }
    let _ = writeln!(text, "\nLog    {}", place.log().display());
    let lacks = |trace: &PathBuf| {
        if incomplete.iter().any(|incomplete| incomplete.path == *trace) { " (incomplete)" } else { "" }
    };
    if let Some((own, copies)) = traces.split_first() {
        let _ = writeln!(text, "Trace  {}{}", own.display(), lacks(own));
        let _ = writeln!(text, "       the whole run, step by step: {program} trace show {}", own.display());
        for copy in copies {
            let _ = writeln!(text, "       the same was recorded to {}{}", copy.display(), lacks(copy));
        }
    }
    let dir = place.dir().display();
    let _ = writeln!(text, "\nEverything is in {dir}; when you have seen it: rm -r {dir}");
    if rows.iter().all(|row| row.trouble.is_none()) {
        let _ = writeln!(text, "Each of the {} tasks ended as it should.", rows.len());
    }
    text
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new();
    table
        .load_style(STYLE)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH)
        .set_header(["Task", "What it should do", "Ended as meant", "Reports", "Messages", "Time"]);
    for row in rows {
        let mark = if row.trouble.is_none() { '✔' } else { '✘' };
        let ended = row.ended.map_or("not run", State::as_str);
        let took = row.took.map_or_else(String::new, |took| format!("{:.1} s", took.as_secs_f64()));
        table.add_row([
            row.name.to_owned(),
            row.about.to_owned(),
            format!("{mark} {ended}"),
            row.tries.to_string(),
            row.messages.to_string(),
            took,
        ]);
    }
    for (n, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 1));
        if n >= 3 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Why the demo was not what it should be, if it was not. `cut` says why it was ended early.
pub(super) fn complaint(rows: &[Row], cut: Option<&str>) -> Option<String> {
    let troubles: Vec<String> =
        rows.iter().filter_map(|row| Some(format!("{}: {}", row.name, row.trouble.as_ref()?))).collect();
    if troubles.is_empty() && cut.is_none() {
        return None;
    }
    let cut = cut.map(|why| format!("the demo did not come to its end: {why}; ")).unwrap_or_default();
    let (bad, all) = (troubles.len(), rows.len());
    let mut text = format!("{cut}{bad} of {all} tasks did not end as they should");
    for trouble in troubles {
        let _ = write!(text, "\n  {trouble}");
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plane::scenario::demo_tasks;
    use crate::plane::{Plane, Subject};
    use longshore_core::id::{TaskId, WorkspaceId};
    use longshore_core::plane::{CancelAck, Completion, Failure, NewTask, Registration, RuntimeEntry};
    use longshore_core::time::{Instant, Now, UnixMillis};

    const NOW: Now = Now::new(Instant::ZERO, UnixMillis(0));

    fn scenario(name: &str) -> Scenario {
        demo_tasks().into_iter().find(|scenario| scenario.name == name).expect("one of the six")
    }

    /// A row of a task that was started in the current directory and then `ended` in some way.
    fn task(ended: impl FnOnce(&mut Plane, &TaskId)) -> Task {
        let mut plane = Plane::new(1);
        plane.add_workspace(WorkspaceId::new("w"), "W").expect("room");
        let entry = RuntimeEntry { provider: "claude".into(), online: true, ..RuntimeEntry::default() };
        let registration =
            Registration { runtimes: vec![entry], ..Registration::new(WorkspaceId::new("w"), "d") };
        let runtime = plane.register(NOW, registration).expect("registered").remove(0);
        let id = plane.enqueue(NOW, NewTask::new(runtime.clone(), "a", Subject::Bare)).expect("queued");
        plane.claim_one(NOW, &runtime).expect("claimed");
        plane.start(NOW, &id).expect("started");
        ended(&mut plane, &id);
        let mut row = plane.task(&id).expect("there").clone();
        row.work_dir = Some("/".into());
        row
    }

    fn completed(output: &str) -> Task {
        let with = Completion { output: output.into(), ..Completion::default() };
        task(|plane, id| drop(plane.complete(NOW, id, with).expect("completed").clone()))
    }

    fn trouble_of(name: &str, row: &Task, tries: usize, messages: usize) -> String {
        Row::new(&scenario(name), Some(row), tries, messages, false).trouble.unwrap_or_default()
    }

    #[test]
    fn what_the_scenario_promises_is_no_trouble() {
        assert_eq!(trouble_of("quick", &completed("Four."), 1, 1), "");
        assert_eq!(trouble_of("two-tries", &completed("Done, and told twice."), 2, 1), "");
    }

    #[test]
    fn another_end_another_answer_and_a_lost_directory_are_trouble() {
        let failure = Failure { error: "no such\nprogram".into(), ..Failure::default() };
        let failed = task(|plane, id| drop(plane.fail(NOW, id, &failure).expect("failed").clone()));
        assert_eq!(trouble_of("quick", &failed, 1, 0), "failed instead of completed (no such program)");
        assert_eq!(trouble_of("quick", &completed("Five."), 1, 0), "answered \"Five.\"");
        let lost = Task { work_dir: Some("/missing/dir".into()), ..completed("Four.") };
        assert!(trouble_of("quick", &lost, 1, 1).contains("/missing/dir is gone"));
    }

    #[test]
    fn a_report_that_was_not_refused_and_silence_are_trouble() {
        let row = completed("Done, and told twice.");
        assert!(trouble_of("two-tries", &row, 1, 1).starts_with("reported 1 times"));
        assert!(trouble_of("two-tries", &row, 2, 0).starts_with("nothing of what its agent said"));
        assert!(Row::new(&scenario("two-tries"), Some(&row), 2, 1, true).trouble.is_some(), "abandoned");
    }

    #[test]
    fn a_cancelled_task_needs_its_acknowledgement() {
        let cancel = |acked: bool| {
            task(|plane, id| {
                plane.cancel(NOW, id).expect("cancelled");
                if acked {
                    plane.ack_cancel(id, &CancelAck::default()).expect("acknowledged");
                }
            })
        };
        assert_eq!(trouble_of("cancelled", &cancel(true), 1, 1), "");
        assert!(trouble_of("cancelled", &cancel(false), 1, 1).contains("not reported"));
    }

    #[test]
    fn the_complaint_names_each_task_that_went_wrong() {
        let good = Row::new(&scenario("quick"), Some(&completed("Four.")), 1, 1, false);
        let bad = Row::without_task(&scenario("tools"));
        assert_eq!(complaint(std::slice::from_ref(&good), None), None);
        let rows = [good, bad];
        let said = complaint(&rows, None).expect("a complaint");
        assert_eq!(said, "1 of 2 tasks did not end as they should\n  tools: was never queued");
        let cut = complaint(&rows[..1], Some("it was interrupted")).expect("a complaint");
        assert!(cut.contains("it was interrupted; 0 of 1"), "{cut}");
        let table = table(&rows).to_string();
        assert!(table.contains("✔ completed") && table.contains("✘ not run"), "{table}");
    }

    #[test]
    fn an_end_that_looks_bad_is_said_to_be_the_one_that_was_meant() {
        let failure = Failure { error: "no Makefile".into(), ..Failure::default() };
        let failed = task(|plane, id| drop(plane.fail(NOW, id, &failure).expect("failed").clone()));
        let row = |name: &str| Row::new(&scenario(name), Some(&failed), 1, 1, false);
        let text = table(&[row("failing"), row("quick")]).to_string();
        for words in ["Ended as meant", "and fail", "✔ failed", "✘ failed"] {
            assert!(text.contains(words), "{text}");
        }
        let mut lines = text.lines().chain(LEGEND.lines());
        assert!(lines.all(|line| line.chars().count() <= usize::from(WIDTH)), "{text}");
    }
}
