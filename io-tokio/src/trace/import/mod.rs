//! `longshore trace import`: the log of another daemon as a trace, as far as it tells.

mod build;
mod clock;
#[cfg(test)]
mod cut_tests;
mod days;
#[cfg(test)]
mod days_tests;
mod header;
mod heard;
mod line;
mod process;
mod repeat;
mod said;
mod source;
mod tasks;
#[cfg(test)]
mod tests;
mod told;
#[cfg(test)]
mod told_tests;
#[cfg(test)]
mod torn_tests;
mod turn;

use super::destination::{Destination, DestinationError};
use super::input::{ONCE, is_stdin};
use crate::cli::Exit;
use clap::ValueEnum;
use clock::Clocks;
use days::Part;
use jiff::civil::Date;
use jiff::fmt::temporal::DateTimeParser;
use jiff::tz::TimeZone;
use longshore_core::trace::{Record, encode};
use source::Log;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;
use told::{Count, Dates};

/// Who wrote the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum From {
    /// The multica daemon that is written in Go: lines of text, or of JSON with the same in them.
    #[default]
    MulticaLog,
}

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
#[command(
    after_help = "Example: longshore trace import --from multica-log daemon.log -o there.jsonl\nExit code: 0, or 2 if no log can be read or understood, or the trace not be written."
)]
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
    /// Day of the first line, such as 2026-03-01: lines of text have no date. Default: by the names and times of the files
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub date: Option<Date>,
    /// Zone of the times, from -14:00 to +14:00 or such as Europe/Berlin: lines of text have none. Default: that of this machine
    #[arg(long, value_name = "ZONE", value_parser = zone, allow_hyphen_values = true)]
    pub time_zone: Option<TimeZone>,
}

fn zone(text: &str) -> Result<TimeZone, String> {
    let zone = DateTimeParser::new()
        .parse_time_zone(text)
        .map_err(|_| "it is neither an offset such as +02:00 nor a zone that this machine knows")?;
    match zone.to_fixed_offset() {
        Ok(offset) if offset.seconds().abs() > FARTHEST => {
            Err("an offset is from -14:00 to +14:00: no place on earth is farther from UTC".to_owned())
        }
        _ => Ok(zone),
    }
}

/// The zone that is farthest from UTC, in seconds.
const FARTHEST: i32 = 14 * 3600;

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
        "{} that the multica daemon writes, so there is nothing to import; name its daemon.log, or the directory that it is in",
        if *lines == 1 { "its one line is none".to_owned() } else { format!("none of the {lines} lines is one") }
    )]
    Nothing {
        /// How many there are.
        lines: u64,
    },
    /// What there is of the log is cut.
    #[error(
        "what it has of the log is cut, so there is nothing to import; name the whole daemon.log, or the directory that it is in"
    )]
    Cut,
    /// It is the log, and says nothing of what a trace is about.
    #[error(
        "{} of no task, runtime or process, so there is nothing to import; name the whole daemon.log, or the directory that it is in",
        if *lines == 1 { "its one line tells".to_owned() } else { format!("the {lines} lines tell") }
    )]
    Silent {
        /// How many there are.
        lines: u64,
    },
    /// A record cannot be encoded.
    #[error("the trace cannot be written: {0}")]
    Encode(#[from] serde_json::Error),
}

/// Writes the trace that the logs tell, and says to `err` how much of them was understood.
///
/// # Errors
/// See [`ImportError`].
pub fn import(asked: &Import, cwd: &Path, err: &mut dyn Write) -> Result<Exit, ImportError> {
    if asked.files.iter().filter(|file| is_stdin(file)).count() > 1 {
        return Err(ImportError::Twice);
    }
    let mut output = Destination::create(asked.output.as_deref(), cwd)?;
    let name = output.name();
    let zone = asked.time_zone.clone().unwrap_or_else(TimeZone::system);
    let mut logs = Vec::new();
    for file in &asked.files {
        let failed = |error| ImportError::Read { name: file.display().to_string(), error };
        logs.extend(source::logs(file, cwd).map_err(failed)?);
    }
    let (mut count, mut lines, mut parts) = (Count::default(), Vec::new(), Vec::new());
    for log in &logs {
        let failed = |error| ImportError::Read { name: log.name(), error };
        let start = lines.len();
        let done = log.lines(|text, end| lines.extend(count.read(text, end))).map_err(failed)?;
        count.end_of(&log.name(), done);
        parts.push(Part { lines: start..lines.len(), until: log.until().map_err(failed)? });
    }
    if count.understood == 0 {
        return Err(nothing(&logs, count));
    }
    count.repeated = repeat::leave_out(&mut lines, &mut parts);
    let days = days::days(&lines, &parts, asked.date, &zone);
    let clocks = Clocks::new(days.from.clone(), zone);
    let mut dates = Dates { days, twice: 0 };
    let (mut steps, mut text) = (0, Vec::new());
    let remark = |clocks: &Clocks| {
        dates.twice = clocks.twice();
        count.remark(&dates)
    };
    let told = build::build(&lines, &clocks, remark, |record| -> Result<(), ImportError> {
        text.clear();
        steps += u64::from(matches!(record, Record::Step(_)));
        encode::record(&mut text, &record)?;
        Ok(output.write(&text)?)
    })?;
    if !told {
        return Err(ImportError::Silent { lines: count.all });
    }
    output.finish()?;
    // Standard error that nobody takes is no error.
    drop(count.tell(err, &name, steps, &dates));
    Ok(Exit::Success)
}

/// Why not a line was understood.
fn nothing(logs: &[Log], mut count: Count) -> ImportError {
    match count.broken.pop() {
        Some((name, _, why)) if count.all == 0 => ImportError::Broken { name, why },
        _ if count.all == 0 => {
            let names: Vec<String> = logs.iter().map(Log::name).collect();
            ImportError::Empty { names: names.join(", "), several: logs.len() > 1 }
        }
        _ if count.not_whole > 0 => ImportError::Cut,
        _ => ImportError::Nothing { lines: count.all },
    }
}
