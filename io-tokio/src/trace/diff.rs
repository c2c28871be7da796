//! `longshore trace diff`: the numbers of two traces, side by side.

#[cfg(test)]
mod tests;

use super::figures::{Counted, Figures, Timed, figures};
use super::input::{ONCE, is_stdin};
use super::stats::table;
use super::{records, words};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
#[command(after_help = "Exit code: 0 whether or not they differ, or 2 if a trace cannot be read.")]
pub struct Diff {
    /// The first trace; each may be a directory of a flight recorder or a tar archive of it, one may be - for standard input, and they may be packed by gzip or zstd
    pub a: PathBuf,
    /// The trace to compare it with: differences are B less A
    pub b: PathBuf,
    /// Print one JSON object with all numbers, also those that are the same; times are in milliseconds
    #[arg(long)]
    pub json: bool,
}

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Unit {
    Count,
    Ms,
}

/// One number of both traces; `None` where a trace has none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Row {
    name: String,
    unit: Unit,
    a: Option<i64>,
    b: Option<i64>,
    /// `b` less `a`, if both have it.
    difference: Option<i64>,
}

/// Writes the numbers of two traces to `out`, and what is wrong with them to `err`. Returns whether there were both.
///
/// # Errors
/// If `out` or `err` cannot be written to.
pub fn diff(asked: &Diff, cwd: &Path, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<bool> {
    if is_stdin(&asked.a) && is_stdin(&asked.b) {
        writeln!(err, "error: {ONCE}")?;
        return Ok(false);
    }
    let (a, b) = (records::read(&asked.a, cwd, err)?, records::read(&asked.b, cwd, err)?);
    let (Some(a), Some(b)) = (a, b) else { return Ok(false) };
    let rows = rows(&figures(&a), &figures(&b));
    if asked.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&rows).map_err(io::Error::other)?)?;
        return Ok(true);
    }
    let differ: Vec<&Row> = rows.iter().filter(|row| row.a != row.b).collect();
    writeln!(out, "a  {}\nb  {}", asked.a.display(), asked.b.display())?;
    writeln!(out, "{} of {} numbers differ", differ.len(), rows.len())?;
    if differ.is_empty() {
        return Ok(true);
    }
    let mut lines = table(&["Number", "a", "b", "Difference"]);
    for row in differ {
        let text = |n: Option<i64>| match (n, row.unit) {
            (None, _) => "–".to_owned(),
            (Some(n), Unit::Count) => n.to_string(),
            (Some(n), Unit::Ms) => words::signed(n),
        };
        let plus = if row.difference.is_some_and(|n| n > 0) { "+" } else { "" };
        lines.add_row([
            row.name.clone(),
            text(row.a),
            text(row.b),
            format!("{plus}{}", text(row.difference)),
        ]);
    }
    writeln!(out, "\n{}", lines.trim_fmt())?;
    Ok(true)
}

/// Place and name of a number.
type Key = (usize, String);
/// What a number counts, and how much in each trace.
type Both = (Unit, [Option<i64>; 2]);

/// Every number that one of them has. How often something was so that a trace does not name is 0.
fn rows(a: &Figures, b: &Figures) -> Vec<Row> {
    let mut both: BTreeMap<Key, Both> = BTreeMap::new();
    for (which, of) in [a, b].into_iter().enumerate() {
        for (rank, name, unit, n) in numbers(of) {
            let none = if unit == Unit::Count { Some(0) } else { None };
            both.entry((rank, name)).or_insert((unit, [none; 2])).1[which] = n;
        }
    }
    let row = |((_, name), (unit, [a, b])): (Key, Both)| {
        let difference = a.zip(b).map(|(a, b)| b.saturating_sub(a));
        Row { name, unit, a, b, difference }
    };
    both.into_iter().map(row).collect()
}

/// Its place among those that every trace has, or behind them; its name, what it counts, and how much.
type Number = (usize, String, Unit, Option<i64>);

fn numbers(of: &Figures) -> Vec<Number> {
    let count = |n: usize| Some(i64::try_from(n).unwrap_or(i64::MAX));
    let wide = |n: u64| Some(i64::try_from(n).unwrap_or(i64::MAX));
    let mut list: Vec<Number> = Vec::new();
    let mut add = |name: &str, unit, n| list.push((list.len(), name.to_owned(), unit, n));
    add("lives", Unit::Count, count(of.lives));
    add("steps", Unit::Count, wide(of.steps));
    add("missing steps", Unit::Count, wide(of.missing));
    add("steps without effects", Unit::Count, wide(of.without_effects));
    add("recorded", Unit::Ms, Some(of.recorded_ms));
    add("runtimes", Unit::Count, count(of.runtimes));
    add("tasks", Unit::Count, count(of.tasks));
    add("tasks that go on from one life to the next", Unit::Count, count(of.carried_over));
    let (retries, claims, margins) = (&of.retries, &of.claims, &of.lease_margins);
    for (name, n) in [
        ("/start again", retries.starts),
        ("launches without a dead session", retries.sessions),
        ("reports again", retries.reports),
        ("ends told late", retries.late),
        ("claims sent", claims.sent),
        ("claims that brought tasks", claims.brought),
        ("claims that brought nothing new", claims.empty),
        ("claims that failed", claims.failed),
        ("tasks that were here already", claims.duplicates),
        ("unusable tasks", claims.unusable),
        ("lease margins", margins.count),
        ("leases that had run out", margins.expired),
    ] {
        add(name, Unit::Count, count(n));
    }
    add("lease margin, least", Unit::Ms, margins.min);
    add("lease margin, p50", Unit::Ms, margins.p50);
    // The rest is there only if it occurs.
    let mut more = |name: String, unit, n| list.push((usize::MAX, name, unit, n));
    for Counted { name, count: n } in &of.outcomes {
        more(format!("outcome {name}"), Unit::Count, count(*n));
    }
    for (what, list) in [("latency", &of.latencies), ("wait for", &of.waits)] {
        for Timed { name, spread } in list {
            more(format!("{what} {name}, count"), Unit::Count, count(spread.count));
            more(format!("{what} {name}, left out"), Unit::Count, count(spread.left_out));
            for (which, n) in
                [("p50", spread.p50), ("p90", spread.p90), ("p99", spread.p99), ("max", spread.max)]
            {
                more(format!("{what} {name}, {which}"), Unit::Ms, n);
            }
        }
    }
    for kind in &of.requests {
        let name = kind.kind;
        more(format!("request {name}, count"), Unit::Count, count(kind.count));
        more(format!("request {name}, done"), Unit::Count, count(kind.done));
        for Counted { name: ending, count: n } in &kind.failed {
            more(format!("request {name}, {ending}"), Unit::Count, count(*n));
        }
        more(format!("request {name}, p50"), Unit::Ms, kind.took.p50);
        more(format!("request {name}, max"), Unit::Ms, kind.took.max);
    }
    list
}
