//! `longshore trace import`: the log of another daemon as a trace, as far as it tells.

mod build;
mod clock;
mod line;
mod process;
mod said;
mod source;
mod tasks;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod torn_tests;

use super::destination::{Destination, DestinationError};
use super::input::{ONCE, is_stdin};
use crate::cli::Exit;
use clap::ValueEnum;
use clock::Day;
use jiff::civil::Date;
use jiff::fmt::temporal::DateTimeParser;
use jiff::tz::TimeZone;
use line::Line;
use longshore_core::trace::{Record, encode};
use said::Said;
use source::Log;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// As many different messages that are not known are shown.
const SHOWN: usize = 8;

/// The longest of them that is shown, in characters.
const WIDE: usize = 60;

/// Messages that are not known and are told apart; a log of many more is none.
const TOLD_APART: usize = 10_000;

/// Who wrote the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum From {
    /// The multica daemon that is written in Go: lines of text, or of JSON with the same in them.
    #[default]
    MulticaLog,
}

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct Import {
    /// What kind of log it is
    #[arg(long, value_enum, required = true)]
    pub from: From,
    /// The log, or - for standard input, also packed by gzip or zstd; several are read in this order, and of a directory daemon.log with what was
    /// put aside of it
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// File to write, which must not be there yet; compressed if its name ends in .gz. Default: standard output
    #[arg(short, long, alias = "out", value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Day of the first line, such as 2026-03-01: lines of text have no date. Default: by the name or the time of the last file
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub date: Option<Date>,
    /// Zone of the times, such as +02:00 or Europe/Berlin: lines of text have none. Default: that of this machine
    #[arg(long, value_name = "ZONE", value_parser = zone, allow_hyphen_values = true)]
    pub time_zone: Option<TimeZone>,
}

fn zone(text: &str) -> Result<TimeZone, String> {
    let parsed = DateTimeParser::new().parse_time_zone(text);
    parsed.map_err(|_| "it is neither an offset such as +02:00 nor a zone that this machine knows".to_owned())
}

/// The first and the last day that a trace can hold in every zone: it counts from the one, and there is no calendar behind the other.
const DAYS: [Date; 2] = [jiff::civil::date(1970, 1, 1), jiff::civil::date(9999, 12, 29)];

fn date(text: &str) -> Result<Date, String> {
    let [first, last] = DAYS;
    let date: Date = text.parse().map_err(|_| "it is no date such as 2026-03-01".to_owned())?;
    if (first..=last).contains(&date) {
        return Ok(date);
    }
    Err(format!("a trace can hold the days from {first} to {last}"))
}

/// Why nothing was imported.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// A log cannot be read.
    #[error("{name} cannot be read: {error}")]
    Read {
        /// Which one.
        name: String,
        /// Why not.
        error: io::Error,
    },
    /// Standard input is named more than once.
    #[error("{ONCE}")]
    Twice,
    /// There is not a line.
    #[error("{names} {}", if *several { "are empty" } else { "is empty" })]
    Empty {
        /// The files.
        names: String,
        /// Whether there is more than one.
        several: bool,
    },
    /// Not a line can be unpacked.
    #[error("nothing of {name} can be read: {why}")]
    Broken {
        /// Which one.
        name: String,
        /// Why not.
        why: String,
    },
    /// The trace cannot be written.
    #[error(transparent)]
    Destination(#[from] DestinationError),
    /// It is another kind of file.
    #[error(
        "none of the {lines} lines is one that the multica daemon writes, so there is nothing to import; name its daemon.log, or \
         the directory that it is in"
    )]
    Nothing {
        /// How many there are.
        lines: u64,
    },
    /// It is the log, and says nothing of what a trace is about.
    #[error(
        "the {lines} lines tell of no task, runtime or process, so there is nothing to import; name the whole daemon.log, or the \
         directory that it is in"
    )]
    Silent {
        /// How many there are.
        lines: u64,
    },
    /// A record cannot be encoded.
    #[error("the trace cannot be written: {0}")]
    Encode(#[from] serde_json::Error),
}

/// What became of the lines.
#[derive(Debug, Default)]
struct Count {
    all: u64,
    /// Those with a message that is known.
    understood: u64,
    /// Those of the log with another message, by that, with the number of the first.
    unknown: BTreeMap<String, (u64, u64)>,
    unknown_lines: u64,
    /// Those that are none of the log: traces of a panic, what goes on from the line before.
    other: u64,
    /// Those whose end is missing.
    cut: u64,
    /// Files that are broken, after how many lines, and why.
    broken: Vec<(String, u64, String)>,
}

impl Count {
    fn read(&mut self, text: &str) -> Option<Line> {
        self.all += 1;
        let Some(line) = Line::read(text) else {
            self.other += u64::from(!text.trim().is_empty());
            return None;
        };
        self.cut += u64::from(line.cut);
        if Said::by(&line).is_some() {
            self.understood += 1;
        } else {
            self.unknown_lines += 1;
            let message: String = line.message.chars().filter(|c| !c.is_control()).take(WIDE).collect();
            if self.unknown.len() < TOLD_APART || self.unknown.contains_key(&message) {
                self.unknown.entry(message).or_insert((0, self.all)).0 += 1;
            }
        }
        Some(line)
    }
}

/// Writes the trace that the logs tell, and says to `err` how much of them was understood.
///
/// # Errors
/// See [`ImportError`].
pub fn import(asked: &Import, cwd: &Path, err: &mut dyn Write) -> Result<Exit, ImportError> {
    if asked.files.iter().filter(|file| is_stdin(file)).count() > 1 {
        return Err(ImportError::Twice);
    }
    let path = asked.output.as_ref().map(|path| cwd.join(path));
    let mut output = Destination::create(path.as_deref())?;
    let zone = asked.time_zone.clone().unwrap_or_else(TimeZone::system);
    let mut logs = Vec::new();
    for file in &asked.files {
        let failed = |error| ImportError::Read { name: cwd.join(file).display().to_string(), error };
        logs.extend(source::logs(file, cwd).map_err(failed)?);
    }
    let (mut count, mut lines) = (Count::default(), Vec::new());
    let mut day = asked.date.map(Day::First);
    let mut whence = "said by hand";
    for log in &logs {
        let failed = |error| ImportError::Read { name: log.name(), error };
        let done = log.lines(|text| lines.extend(count.read(text))).map_err(failed)?;
        count.cut += done.long;
        count.broken.extend(done.broken.map(|why| (log.name(), done.lines, why)));
        if !matches!(day, Some(Day::First(_))) {
            day = Some(Day::Last(log.last_day(&zone).map_err(failed)?));
            whence = match log {
                Log::Stdin => "taken from that of the import",
                Log::File(_) => "taken from the time of the file",
            };
        }
    }
    let Some(day) = day.filter(|_| count.understood > 0) else {
        return Err(nothing(&logs, count));
    };
    let dates = format!("where lines have no date it was {whence}");
    let records = build::build(&lines, day, zone, &remark(&count, &dates));
    if records.is_empty() {
        return Err(ImportError::Silent { lines: count.all });
    }
    let mut steps = 0;
    let mut text = Vec::new();
    for record in &records {
        text.clear();
        steps += u64::from(matches!(record, Record::Step(_)));
        encode::record(&mut text, record)?;
        output.write(&text)?;
    }
    let name = output.name();
    output.finish()?;
    // Standard error that nobody takes is no error.
    drop(tell(err, &name, steps, &count, &dates));
    Ok(Exit::Success)
}

/// What a reader of the trace must know of it.
fn remark(count: &Count, dates: &str) -> String {
    format!(
        "imported from a log of {} lines, of which {} were understood; {dates}",
        count.all, count.understood
    )
}

/// Why not a line was understood.
fn nothing(logs: &[Log], mut count: Count) -> ImportError {
    match count.broken.pop() {
        Some((name, _, why)) if count.all == 0 => ImportError::Broken { name, why },
        _ if count.all == 0 => {
            let names: Vec<String> = logs.iter().map(Log::name).collect();
            ImportError::Empty { names: names.join(", "), several: logs.len() > 1 }
        }
        _ => ImportError::Nothing { lines: count.all },
    }
}

fn tell(err: &mut dyn Write, name: &str, steps: u64, count: &Count, dates: &str) -> io::Result<()> {
    for (name, lines, why) in &count.broken {
        match lines {
            0 => writeln!(err, "warning: {name}: nothing can be read: {why}")?,
            _ => writeln!(
                err,
                "warning: {name}: after line {lines} nothing can be read: {why}; what came before was used"
            )?,
        }
    }
    writeln!(err, "{name}: {steps} steps from {} lines; {dates}", count.all)?;
    writeln!(err, "understood  {} lines", count.understood)?;
    if count.unknown_lines > 0 {
        writeln!(err, "not known   {} lines, left out:", count.unknown_lines)?;
        let mut most: Vec<_> = count.unknown.iter().collect();
        most.sort_by_key(|(_, (times, first))| (std::cmp::Reverse(*times), *first));
        for (message, (times, first)) in most.iter().take(SHOWN) {
            writeln!(err, "            {times} x \"{message}\", first in line {first}")?;
        }
        if most.len() > SHOWN {
            writeln!(err, "            and {} others", most.len() - SHOWN)?;
        }
    }
    if count.other > 0 {
        writeln!(err, "other       {} lines are none of the log, and were left out", count.other)?;
    }
    if count.cut > 0 {
        writeln!(err, "cut         {} lines have no end, and were read as far as they go", count.cut)?;
    }
    Ok(())
}
