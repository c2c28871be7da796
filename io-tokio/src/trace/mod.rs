//! `longshore trace`: what people do with recorded histories. One file for each command, which also declares its arguments.

pub mod check;
pub mod destination;
pub mod diff;
pub mod dump;
pub mod export;
mod figures;
pub mod import;
pub mod input;
mod plain;
mod rebase;
mod records;
pub mod render;
pub mod replay;
pub mod show;
pub mod shrink;
pub mod stats;
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
use std::io::{self, Write};
use std::path::Path;
use tokio::runtime::Runtime;

/// `longshore trace …`
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum TraceCommand {
    /// Write what the flight recorder of a daemon has to a file
    Dump(Dump),
    /// Make a trace of the log of another daemon, as far as that tells
    Import(Import),
    /// Feed a trace to a fresh core and compare what it decides
    Replay(Replay),
    /// Tell what a trace went through, line by line
    Show(Show),
    /// Say how long everything took, how it ended and how often it was tried
    Stats(Stats),
    /// Compare the numbers of two traces
    Diff(Diff),
    /// Write a trace in the format of another program
    Export(Export),
    /// Draw a trace: lanes of runtimes, slots and tasks over time
    Render(Render),
    /// Hold a trace to all invariants
    Check(Check),
    /// Make a history small that breaks an invariant
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
                writeln!(err, "{}", explain(&error, false)).map(|()| exit)
            }
        },
        TraceCommand::Import(asked) => match import(asked, cwd, &mut err) {
            Ok(exit) => Ok(exit),
            Err(error) => writeln!(err, "{}", explain(&error, false)).map(|()| Exit::Code(2)),
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
        // One who has heard enough is no failure that is worth a word; and if nobody hears this either, that is that.
        if error.kind() != io::ErrorKind::BrokenPipe {
            let _ = writeln!(err, "error: the result cannot be written: {error}");
        }
        Exit::Code(2)
    })
}

/// 2 if a trace cannot be read, or does not have what was asked for.
const fn told(whole: bool) -> Exit {
    Exit::Code(if whole { 0 } else { 2 })
}
