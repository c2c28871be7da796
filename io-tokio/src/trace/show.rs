//! `longshore trace show`: what a daemon went through, line by line.

mod lines;
mod of_task;
#[cfg(test)]
mod tests;

use super::{records, words};
use jiff::Timestamp;
use lines::{Line, Wanted, lines};
use longshore_core::story::{Begins, Life, Story};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Ids that an error names at most.
const NAMED: usize = 8;

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
#[command(after_help = "Exit code: 0, or 2 if the trace cannot be read or does not have what is asked for.")]
pub struct Show {
    /// The trace, the directory of a flight recorder or a tar archive of it, or - for standard input; may be packed by gzip or zstd
    pub file: PathBuf,
    /// Only this task, with its requests and its lease: its id, or '#7' for the task of claim 7, where the trace has no id
    #[arg(long, value_name = "ID")]
    pub task: Option<String>,
    /// Only this runtime, with its requests and its tasks
    #[arg(long, value_name = "ID")]
    pub runtime: Option<String>,
}

/// Writes the story of a trace to `out`, and what is wrong with it to `err`. Returns whether there was one, and it has what was asked for.
///
/// # Errors
/// If `out` or `err` cannot be written to.
pub fn show(asked: &Show, cwd: &Path, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<bool> {
    let Some(story) = records::read(&asked.file, cwd, err)? else { return Ok(false) };
    let wanted = match wanted(asked, &story) {
        Ok(wanted) => wanted,
        Err(text) => {
            writeln!(err, "error: {}: {text}", asked.file.display())?;
            return Ok(false);
        }
    };
    let lines = lines(&story, &wanted);
    let mut lines = lines.iter().peekable();
    for (nth, life) in story.lives.iter().enumerate() {
        head(life, nth, out)?;
        while let Some(line) = lines.next_if(|line| line.life == nth) {
            let Line { at, text, .. } = line;
            // What a checkpoint says was so before the first step that is there.
            let step = if life.has_step(at.n) { at.n.to_string() } else { "–".to_owned() };
            writeln!(out, "{:>13}  {step:>7}  {text}", words::clock(life.since_story(at.at)))?;
        }
        foot(life, out)?;
    }
    Ok(true)
}

/// What is asked for, in terms of the story.
fn wanted(asked: &Show, story: &Story) -> Result<Wanted, String> {
    let task = asked.task.as_deref().map(|id| {
        let claim = id.strip_prefix('#').and_then(|number| number.parse::<u64>().ok());
        let is = |task: &longshore_core::story::Task| {
            task.id.as_ref().is_some_and(|known| known.as_str() == id) || claim == Some(task.claim.0)
        };
        let found: Vec<usize> = (0..story.tasks.len()).filter(|nth| is(&story.tasks[*nth])).collect();
        if found.is_empty() {
            return Err(none("task", id, story.tasks.iter().map(words::task)));
        }
        Ok(found)
    });
    let runtime = asked.runtime.as_deref().map(|id| {
        let found = story.runtimes.iter().position(|runtime| runtime.id.as_str() == id);
        let all = || story.runtimes.iter().map(|runtime| words::clean(runtime.id.as_str()));
        found.ok_or_else(|| none("runtime", id, all()))
    });
    Ok(Wanted { tasks: task.transpose()?, runtime: runtime.transpose()? })
}

/// That there is no such thing, and which there are.
fn none(what: &str, id: &str, all: impl Iterator<Item = String>) -> String {
    let mut known: Vec<String> = Vec::new();
    let mut more = 0_usize;
    for id in all {
        if known.contains(&id) {
            continue;
        }
        if known.len() < NAMED { known.push(id) } else { more += 1 }
    }
    let id = words::clean(id);
    let there = match (known.is_empty(), more) {
        (true, _) => format!("it has no {what} at all"),
        (false, 0) => format!("it has {}", known.join(", ")),
        (false, more) => format!("it has {} and {more} more", known.join(", ")),
    };
    format!("the trace has no {what} {id}; {there}")
}

fn head(life: &Life, nth: usize, out: &mut dyn Write) -> io::Result<()> {
    let begun = Timestamp::from_millisecond(life.start.wall.0)
        .map_or_else(|_| "at a time that no calendar has".to_owned(), |at| format!("{at:.3}"));
    let core = words::clean(&life.core);
    let recorder = if life.is_imported() {
        format!("imported from the log of {core}")
    } else {
        format!("{}, core {core}", words::clean(&life.source))
    };
    let slots =
        life.slots.map_or_else(|| "slots not known".to_owned(), |slots| words::count(slots, "slot", "slots"));
    writeln!(out, "life {}: {recorder}, {slots}, begun {begun}", nth + 1)?;
    let from = match life.begins {
        Begins::Created => None,
        Begins::Checkpoint(n) => {
            Some(format!("begins at the checkpoint after step {n}: when what was there began is not known"))
        }
        Begins::Middle(n) => Some(format!(
            "begins after step {n}, without a checkpoint: what was there is known only where it is named"
        )),
    };
    from.map_or(Ok(()), |from| writeln!(out, "  the trace {from}"))?;
    if life.without_effects > 0 {
        let steps = words::count(life.steps, "step", "steps");
        writeln!(
            out,
            "  {} no effects: what the daemon did in them is not known",
            words::count(life.without_effects, &format!("of {steps} has"), &format!("of {steps} have"))
        )?;
    }
    writeln!(out, "{:>13}  {:>7}  what happened", "time", "step")
}

fn foot(life: &Life, out: &mut dyn Write) -> io::Result<()> {
    let steps = words::count(life.steps, "step in", "steps in");
    writeln!(out, "  {steps} {}; {}", words::length(life.duration()), words::life_end(&life.end))
}
