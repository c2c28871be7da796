//! `longshore trace stats`: how long everything in a trace took, how it ended, and how often it was tried.

#[cfg(test)]
mod tests;

use super::figures::{Counted, Figures, Margins, Timed, figures};
use super::words::count;
use super::{records, words};
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Columns of a table at most.
const WIDTH: u16 = 110;
/// One line below the header, and nothing else that takes room.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
#[command(
    after_help = "Times are of what has its beginning and its end in the trace; what is there in part is counted as left out.\nExit code: 0, or 2 if the trace cannot be read."
)]
pub struct Stats {
    /// The trace, the directory of a flight recorder or a tar archive of it, or - for standard input; may be packed by gzip or zstd
    pub file: PathBuf,
    /// Print one JSON object; times are in milliseconds
    #[arg(long)]
    pub json: bool,
}

/// Writes the numbers of a trace to `out`, and what is wrong with it to `err`. Returns whether there was one.
///
/// # Errors
/// If `out` or `err` cannot be written to.
pub fn stats(asked: &Stats, cwd: &Path, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<bool> {
    let Some(story) = records::read(&asked.file, cwd, err)? else { return Ok(false) };
    let figures = figures(&story);
    if asked.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&figures).map_err(io::Error::other)?)?;
    } else {
        text(&figures, out)?;
    }
    Ok(true)
}

/// A table whose columns from the second on are numbers.
pub(super) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(STYLE).set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    table.set_header(header.to_vec());
    for (nth, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if nth > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// A duration of a table; a dash where there is none.
pub(super) fn cell(ms: Option<i64>) -> String {
    ms.map_or_else(|| "–".to_owned(), words::signed)
}

fn text(figures: &Figures, out: &mut dyn Write) -> io::Result<()> {
    let of = figures;
    let recorded = Duration::from_millis(of.recorded_ms.unsigned_abs());
    writeln!(out, "lives {}, steps {} in {}", of.lives, of.steps, words::length(recorded))?;
    for (number, what) in [
        (of.missing, "missing steps:"),
        (of.without_effects, "steps without effects, so that it is not known what the daemon did:"),
        (
            of.begun_before as u64,
            "lives that began before their records do, so that of some things only a part is known:",
        ),
    ] {
        if number > 0 {
            writeln!(out, "{what} {number}")?;
        }
    }
    write!(out, "runtimes {}, tasks {}", of.runtimes, of.tasks)?;
    if of.carried_over > 0 {
        write!(
            out,
            ", {} on from one life to the next",
            count(of.carried_over, "of which goes", "of which go")
        )?;
    }
    writeln!(out)?;
    counts("Outcome of tasks", &of.outcomes, out)?;
    times("Latency", &of.latencies, out)?;
    times("Wait for", &of.waits, out)?;
    let retries = &of.retries;
    writeln!(
        out,
        "\nDone again: /start {}, report {}, launch without the session that was dead {}; {} told late",
        count(retries.starts, "time", "times"),
        count(retries.reports, "time", "times"),
        count(retries.sessions, "time", "times"),
        count(retries.late, "end", "ends")
    )?;
    let claims = &of.claims;
    writeln!(
        out,
        "Claims: {} sent, {} brought {}, {} brought nothing new, {} failed; {} here already, {} unusable",
        claims.sent,
        claims.brought,
        count(claims.tasks, "task", "tasks"),
        claims.empty,
        claims.failed,
        count(claims.duplicates, "task was", "tasks were"),
        claims.unusable
    )?;
    leases(&of.lease_margins, out)?;
    requests(of, out)
}

/// How near leases came to their end.
fn leases(of: &Margins, out: &mut dyn Write) -> io::Result<()> {
    let (Some(min), Some(p50)) = (of.min, of.p50) else {
        return writeln!(out, "Leases: none");
    };
    let times = count(of.count, "time", "times");
    write!(out, "Leases: extended or not needed any more {times}, at the latest {}, ", words::margin(min))?;
    writeln!(out, "in the middle {}; {} had run out", words::margin(p50), of.expired)
}

fn counts(title: &str, list: &[Counted], out: &mut dyn Write) -> io::Result<()> {
    if list.is_empty() {
        return Ok(());
    }
    let mut rows = table(&[title, "Count"]);
    for Counted { name, count } in list {
        rows.add_row([name.clone(), count.to_string()]);
    }
    writeln!(out, "\n{}", rows.trim_fmt())
}

fn times(title: &str, list: &[Timed], out: &mut dyn Write) -> io::Result<()> {
    if list.is_empty() {
        return Ok(());
    }
    let mut header = vec![title, "Count", "p50", "p90", "p99", "Max"];
    let in_part = list.iter().any(|timed| timed.spread.left_out > 0);
    if in_part {
        header.push("Left out");
    }
    let mut rows = table(&header);
    for Timed { name, spread: of } in list {
        let mut row = vec![(*name).to_owned(), of.count.to_string()];
        row.extend([of.p50, of.p90, of.p99, of.max].map(cell));
        if in_part {
            row.push(of.left_out.to_string());
        }
        rows.add_row(row);
    }
    writeln!(out, "\n{}", rows.trim_fmt())
}

fn requests(figures: &Figures, out: &mut dyn Write) -> io::Result<()> {
    if figures.requests.is_empty() {
        return Ok(());
    }
    let mut rows = table(&["Request", "Count", "Done", "p50", "p99", "Max", "Otherwise"]);
    if let Some(last) = rows.column_mut(6) {
        last.set_cell_alignment(CellAlignment::Left);
    }
    for of in &figures.requests {
        let mut other: Vec<String> =
            of.failed.iter().map(|counted| format!("{} {}", counted.count, counted.name)).collect();
        if of.no_end > 0 {
            other.push(format!("{} without an end", of.no_end));
        }
        if of.begun_before > 0 {
            other.push(format!("{} begun before", of.begun_before));
        }
        let mut row = vec![of.kind.to_owned(), of.count.to_string(), of.done.to_string()];
        row.extend([of.took.p50, of.took.p99, of.took.max].map(cell));
        row.push(other.join(", "));
        rows.add_row(row);
    }
    writeln!(out, "\n{}", rows.trim_fmt())
}
