//! `longshore trace replay`: whether a recorded history comes out again, or what this core makes of it.

#[cfg(test)]
mod tests;

use super::input::Input;
use super::rebase::rebase;
use super::step_name::StepName;
use super::words::{count, goes_on};
use crate::identity::source;
use longshore_core::trace::{self, FORMAT, Mode, ReplayError, Report};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What a replay came to, for the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Everything that could be compared is the same, or nothing was to be.
    Same,
    /// The core does something else than was recorded.
    Differs,
    /// The trace cannot be read, nothing in it can be replayed, or what comes of it cannot be written.
    Unreadable,
}

impl Verdict {
    /// 0, 1 or 2, in the order above.
    pub const fn code(self) -> u8 {
        match self {
            Self::Same => 0,
            Self::Differs => 1,
            Self::Unreadable => 2,
        }
    }
}

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
#[command(
    after_help = "Exit code: 0 if this core does the same, as far as can be compared; 1 if it does something else; 2 if nothing can be replayed. With --rebase: 0 or 2."
)]
pub struct Replay {
    /// The trace, the directory of a flight recorder or a tar archive of it, or - for standard input; may be packed by gzip or zstd
    pub file: PathBuf,
    /// Stop after this step, such as 59 (or 2/59 in life 2), and show the 20 that end with it
    #[arg(long, value_name = "STEP", allow_hyphen_values = true)]
    pub until: Option<StepName>,
    /// Take the events alone: whether they can be replayed at all; nothing is compared
    #[arg(long, conflicts_with = "rebase")]
    pub events_only: bool,
    /// Go on where this core does something else, and say in how many steps it does
    #[arg(long)]
    pub rebase: bool,
    /// With --rebase: write what this core does as a trace, to a file that is not there yet; compressed if its name ends in .gz
    #[arg(short, long = "output", alias = "out", value_name = "FILE", requires = "rebase")]
    pub out: Option<PathBuf>,
}

/// Replays a trace, and writes what came of it to `out`, and what went wrong to `err`. Relative paths are below `cwd`.
///
/// # Errors
/// If `out` or `err` cannot be written to.
pub fn replay(asked: &Replay, cwd: &Path, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<Verdict> {
    match Input::open(&asked.file, cwd) {
        Ok(input) if asked.rebase => rebase(asked, input, cwd, out, err),
        Ok(input) => compare(asked, input, out, err),
        Err(error) => {
            writeln!(err, "error: {error}")?;
            Ok(Verdict::Unreadable)
        }
    }
}

fn compare(
    asked: &Replay,
    mut input: Input,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Verdict> {
    let mode = if asked.events_only { Mode::EventsOnly } else { Mode::Strict };
    let mut replay = trace::Replay::new(mode);
    let mut stopped = false;
    while let Some(record) = input.next() {
        match replay.record(input.place().line, record, &mut |_| {}) {
            Ok(()) => {}
            Err(ReplayError::Diverged(what)) => {
                input.say(err)?;
                summary(replay.report(), End::NotReached, out)?;
                writeln!(
                    out,
                    "stopped     at step {}{}: what comes after it was not read",
                    what.n,
                    of_life(what.life)
                )?;
                writeln!(out, "result      the core does something else than was recorded")?;
                writeln!(err, "error: {}: {what}", input.source())?;
                let format = input.header().format;
                if format != FORMAT {
                    writeln!(err, "it was recorded in format {format}, and this core writes {FORMAT}")?;
                }
                writeln!(err, "`trace replay --rebase` goes on from there, and says what this core does")?;
                return Ok(Verdict::Differs);
            }
            Err(error) => {
                if matches!(error, ReplayError::Config { .. }) {
                    replay.lose_state();
                }
                writeln!(err, "warning: {}: {error}; it was not used", input.source())?;
            }
        }
        let here = replay.last().map(|n| (replay.report().all_lives, n));
        stopped = asked.until.zip(here).is_some_and(|(until, (life, n))| until.is(life, n));
        if stopped {
            break;
        }
    }
    input.say(err)?;
    let (verdict, text) = judge(replay.report(), mode, input.troubles().lose());
    let end = if stopped {
        End::NotReached
    } else if input.troubles().lose_after(input.place()) {
        End::MayBeLost
    } else {
        End::Reached
    };
    summary(replay.report(), end, out)?;
    if let Some(until) = asked.until {
        if stopped {
            writeln!(
                out,
                "stopped     after step {}{}, as was asked; the last steps:\n{}",
                until.n,
                of_life(replay.report().all_lives),
                replay.context()
            )?;
        } else {
            let any = until.life.is_none() && replay.report().all_lives > 1;
            let lives = if any { " in any life" } else { "" };
            writeln!(out, "stopped     never: the trace has no {until}{lives}")?;
        }
    }
    writeln!(out, "result      {text}")?;
    Ok(verdict)
}

/// Why there was nothing to begin with. `steps` are those in the trace, and `at_checkpoint` says whether a state is known from a checkpoint.
pub(super) const fn why_nothing(steps: u64, at_checkpoint: bool) -> &'static str {
    match (steps, at_checkpoint) {
        (0, true) => "there is no step behind the checkpoint",
        (0, false) => "there is no step behind the header",
        _ => "no segment begins with a daemon's creation or has a checkpoint that can be used",
    }
}

fn judge(report: &Report, mode: Mode, damaged: bool) -> (Verdict, String) {
    let replayed = report.steps - report.skipped;
    let (verdict, text) = match mode {
        _ if replayed == 0 && report.imported => (
            Verdict::Unreadable,
            "the trace was imported from the log of another daemon: no core recorded it, so there is nothing to replay",
        ),
        _ if replayed == 0 => {
            let why = why_nothing(report.steps, report.from_checkpoint.is_some());
            return (Verdict::Unreadable, format!("nothing could be replayed: {why}"));
        }
        Mode::EventsOnly => (Verdict::Same, "the events were replayed; nothing was to be compared"),
        Mode::Strict if report.compared == 0 => {
            (Verdict::Same, "the events were replayed; the trace has no effects to compare")
        }
        Mode::Strict if report.compared < report.steps || report.gaps > 0 || damaged => {
            (Verdict::Same, "the core does what was recorded, as far as the trace allows to compare")
        }
        Mode::Strict => (Verdict::Same, "the core does what was recorded"),
    };
    (verdict, text.to_owned())
}

/// Which life a step is of, where there is more than one so far.
fn of_life(life: u64) -> String {
    if life > 1 { format!(" of life {life}") } else { String::new() }
}

/// What is known of the end of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Not all of it was read.
    NotReached,
    /// All of it was read, and something may be missing behind the last record.
    MayBeLost,
    /// Its last record is the last that was made.
    Reached,
}

fn summary(report: &Report, end: End, out: &mut dyn Write) -> io::Result<()> {
    let here = trace::version_of(source().as_deref());
    writeln!(out, "recorded by core {}, replayed by core {here}", report.core)?;
    writeln!(out, "segments    {}, lives from their beginning: {}", report.segments, report.lives)?;
    if let Some(n) = report.from_checkpoint {
        writeln!(out, "began       at the checkpoint after step {n}")?;
    }
    writeln!(
        out,
        "steps       {}: {} compared, {} not replayed for want of a checkpoint",
        report.steps, report.compared, report.skipped
    )?;
    write!(out, "digests     {} compared", report.digests)?;
    if report.digests_skipped > 0 {
        write!(out, ", {} not for want of a checkpoint", report.digests_skipped)?;
    }
    writeln!(out)?;
    if report.gaps > 0 {
        writeln!(
            out,
            "gaps        {}, with {}; went on at a checkpoint {}",
            report.gaps,
            count(report.lost, "step", "steps"),
            count(report.restored, "time", "times")
        )?;
    }
    match report.end.as_ref().filter(|why| !goes_on(why)) {
        _ if end == End::NotReached => Ok(()),
        Some(why) => writeln!(out, "ended       {why}"),
        None if end == End::MayBeLost => {
            writeln!(out, "ended       not known: what says so may be in what cannot be read")
        }
        None => writeln!(out, "ended       without a word: the daemon was killed, or still records"),
    }
}
