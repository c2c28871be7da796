//! `longshore trace replay --rebase`: what this core makes of a recorded history, although it does something else.

use super::destination::Destination;
use super::input::Input;
use super::replay::{Replay, Verdict, why_nothing};
use super::step_name::Lives;
use super::words::count;
use longshore_core::trace::{Rebase, Rebased};
use std::io::{self, Write};
use std::path::Path;

/// Replays the events against this core, writes what came of it to `out`, and the new trace to the file that is asked for.
pub(super) fn rebase(
    asked: &Replay,
    mut input: Input,
    cwd: &Path,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Verdict> {
    let file = asked.out.as_ref().map(|path| Destination::create(Some(path), cwd)).transpose();
    let mut file = match file {
        Ok(file) => file,
        Err(error) => {
            writeln!(err, "error: {error}")?;
            return Ok(Verdict::Unreadable);
        }
    };
    let (mut rebase, mut lines, mut lives) = (Rebase::default(), Vec::new(), Lives::default());
    while let Some(record) = input.next() {
        let life = lives.record(&record);
        if let Err(error) = rebase.record(input.place().line, record, &mut lines) {
            input.say(err)?;
            writeln!(err, "error: {}: {error}", input.source())?;
            return Ok(Verdict::Unreadable);
        }
        if let Some(Err(error)) = file.as_mut().map(|file| file.write(&lines)) {
            writeln!(err, "error: {error}")?;
            return Ok(Verdict::Unreadable);
        }
        lines.clear();
        if asked.until.zip(rebase.last()).is_some_and(|(until, n)| until.is(life, n)) {
            break;
        }
    }
    input.say(err)?;
    let report = rebase.finish();
    let written = file.map(Destination::finish).transpose();
    rebased(&report, out)?;
    match written {
        Err(error) => {
            writeln!(err, "error: {error}")?;
            return Ok(Verdict::Unreadable);
        }
        Ok(Some(name)) => writeln!(out, "written     {name}")?,
        Ok(None) => {}
    }
    if report.steps == report.skipped {
        let why = why_nothing(report.steps, report.restored > 0);
        writeln!(out, "result      nothing could be replayed: {why}")?;
        return Ok(Verdict::Unreadable);
    }
    let text =
        if report.differ == 0 { "the core does what was recorded" } else { "the core does something else" };
    writeln!(out, "result      the events were replayed against this core; {text}")?;
    Ok(Verdict::Same)
}

fn rebased(report: &Rebased, out: &mut dyn Write) -> io::Result<()> {
    let Rebased { lives, restored, steps, same, differ, left_out, put_in, skipped, unusable, first } = report;
    let restored = count(*restored, "time", "times");
    writeln!(out, "lives       from their beginning: {lives}; went on at a checkpoint {restored}")?;
    writeln!(
        out,
        "steps       {steps}: {same} with the effects that were recorded, {differ} with others, {skipped} not replayed"
    )?;
    if *left_out > 0 {
        let events = count(*left_out, "event that answers", "events that answer");
        writeln!(out, "left out    {events} nothing that this core asks for")?;
    }
    if *put_in > 0 {
        let answers = count(*put_in, "answer", "answers");
        writeln!(out, "put in      {answers} to what traces of that format do not tell")?;
    }
    if *unusable > 0 {
        let checkpoints = count(*unusable, "checkpoint, which is", "checkpoints, which are");
        writeln!(out, "unusable    {checkpoints} of another version")?;
    }
    match first {
        Some(first) => writeln!(out, "first       {first}"),
        None => Ok(()),
    }
}
