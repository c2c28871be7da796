//! `longshore trace`: what people do with recorded histories. One file for each command, which also declares its arguments.

pub mod check;
pub mod destination;
pub mod diff;
pub mod dump;
pub mod export;
mod figures;
#[cfg(test)]
mod hostile_tests;
pub mod import;
pub mod input;
mod parts;
mod plain;
mod rebase;
mod records;
pub mod render;
pub mod replay;
pub mod show;
pub mod shrink;
pub mod stats;
pub mod step_name;
mod tally;
#[cfg(test)]
mod test_traces;
mod words;

use crate::cli::{Exit, explain};
use crate::config::Env;
use crate::simulate::{self, Simulate};
use check::{Check, check};
use clap::Subcommand;
use diff::{Diff, diff};
use dump::{Dump, dump};
use export::{Export, export};
use import::{Import, import};
use plain::Plain;
use render::{Render, render};
use replay::{Replay, replay};
use show::{Show, show};
use shrink::Shrink;
use stats::{Stats, stats};
use std::error::Error;
use std::io::{self, Write};
use std::path::Path;
use tokio::runtime::Runtime;

/// What `longshore trace --help` ends with.
const HELP: &str = "A trace is what a daemon recorded of its decisions. `longshore trace dump -o run.jsonl.gz` saves that of the daemon of this \
machine, `longshore demo --record run.jsonl` makes one without a server. Then for example:
  longshore trace show run.jsonl.gz
  longshore trace render run.jsonl.gz -o run.html

Exit codes:
  0    done; of replay: the core does the same, of check and simulate: no rule is broken, of shrink: one is
  1    of replay: the core does something else, of check and simulate: a rule is broken, of shrink: none is, of dump: there is nothing
  2    nothing could be read, judged or written, or what was typed is wrong
  141  nobody read the output to its end";

/// `longshore trace …`
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
#[command(after_help = HELP)]
pub enum TraceCommand {
    /// Save what the flight recorder of a daemon has, as one file
    Dump(Dump),
    /// Make a trace of the log of another daemon, as far as that tells
    Import(Import),
    /// Let this core go through the recorded events, and compare what it does with what was recorded
    Replay(Replay),
    /// Tell line by line what happened, to whom, and why something waited
    Show(Show),
    /// Say how long everything took, how it ended and how often it was tried
    Stats(Stats),
    /// Lay the numbers of two traces side by side
    Diff(Diff),
    /// Write a trace in the format of another program
    Export(Export),
    /// Draw a trace as a picture or a page: lanes of runtimes, slots and tasks over time
    Render(Render),
    /// Say whether a trace breaks a rule (an invariant), and where
    Check(Check),
    /// Find the few events of a trace that this core needs to break a rule
    Shrink(Shrink),
    /// Let simulated worlds go wrong in every way, and check what the core makes of it
    Simulate(Simulate),
}

impl TraceCommand {
    /// With the profile that was said, for what is about a daemon.
    #[must_use]
    pub fn of_profile(mut self, profile: String) -> Self {
        if let Self::Dump(dump) = &mut self {
            dump.profile = profile;
        }
        self
    }
}

/// Carries out a command; relative paths are below `cwd`.
pub fn perform(command: &TraceCommand, runtime: &Runtime, env: &Env, cwd: &Path) -> Exit {
    let (mut out, mut err) = (io::stdout().lock(), Plain(io::stderr()));
    let done = match command {
        TraceCommand::Dump(asked) => match runtime.block_on(dump(asked, env, cwd, &mut err)) {
            Ok(exit) => Ok(exit),
            Err(error) => {
                let exit = if error.is_usage() { Exit::Code(2) } else { Exit::Failed };
                failed(&error, exit, &mut err)
            }
        },
        TraceCommand::Import(asked) => match import(asked, cwd, &mut err) {
            Ok(exit) => Ok(exit),
            Err(error) => failed(&error, Exit::Code(2), &mut err),
        },
        TraceCommand::Render(asked) => render(asked, cwd, &mut out, &mut err),
        TraceCommand::Replay(asked) => {
            replay(asked, cwd, &mut Plain(out), &mut err).map(|verdict| Exit::Code(verdict.code()))
        }
        TraceCommand::Check(asked) => {
            check(asked, cwd, &mut Plain(out), &mut err).map(|verdict| Exit::Code(verdict.code()))
        }
        TraceCommand::Shrink(asked) => shrink::until_a_signal(asked, cwd, &mut out, &mut err),
        TraceCommand::Show(asked) => show(asked, cwd, &mut Plain(out), &mut err).map(told),
        TraceCommand::Stats(asked) => stats(asked, cwd, &mut Plain(out), &mut err).map(told),
        TraceCommand::Diff(asked) => diff(asked, cwd, &mut Plain(out), &mut err).map(told),
        TraceCommand::Export(asked) => export(asked, cwd, &mut out, &mut err).map(told),
        TraceCommand::Simulate(asked) => simulate::until_a_signal(asked, cwd, &mut out, &mut err),
    };
    done.unwrap_or_else(|error| {
        if is_unheard(&error) {
            return UNHEARD;
        }
        // If nobody hears this either, that is that.
        let _ = writeln!(err, "error: the result cannot be written: {error}");
        Exit::Code(2)
    })
}

/// Who reads the output has gone, as `head` does when it has enough: 128 and the number of SIGPIPE, as a shell says of `git` and others that
/// this signal ends. 0 would be a verdict, and nobody has heard it.
const UNHEARD: Exit = Exit::Code(141);

/// Whether it is no failure that is worth a word, but that nobody listens any more.
fn is_unheard(error: &(dyn Error + 'static)) -> bool {
    let causes = std::iter::successors(Some(error), |error: &&(dyn Error + 'static)| (*error).source());
    let mut of_io = causes.filter_map(|error| error.downcast_ref::<io::Error>());
    of_io.any(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// What went wrong, if somebody listens.
fn failed(error: &(dyn Error + 'static), code: Exit, err: &mut dyn Write) -> io::Result<Exit> {
    if is_unheard(error) {
        return Ok(UNHEARD);
    }
    writeln!(err, "{}", explain(error, false)).map(|()| code)
}

/// 2 if a trace cannot be read, or does not have what was asked for.
const fn told(whole: bool) -> Exit {
    Exit::Code(if whole { 0 } else { 2 })
}
