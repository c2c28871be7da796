//! `longshore trace`: what people do with recorded histories. One file for each command, which also declares its arguments.

pub mod diff;
pub mod export;
mod figures;
mod output;
mod records;
pub mod replay;
pub mod show;
pub mod stats;
#[cfg(test)]
mod test_traces;
mod words;

use crate::cli::Exit;
use crate::simulate::{self, Simulate};
use clap::Subcommand;
use diff::{Diff, diff};
use export::{Export, export};
use longshore_core::trace::Mode;
use replay::{Replay, replay};
use show::{Show, show};
use stats::{Stats, stats};
use std::io;
use std::path::Path;

/// `longshore trace …`
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum TraceCommand {
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
    /// Let simulated worlds go wrong in every way, and check what the core makes of it
    Simulate(Simulate),
}

/// Carries out a command; relative paths are below `cwd`.
pub fn perform(command: &TraceCommand, cwd: &Path) -> Exit {
    let (mut out, mut err) = (io::stdout().lock(), io::stderr());
    let done = match command {
        TraceCommand::Replay(asked) => replay(&cwd.join(&asked.file), Mode::Strict, &mut out, &mut err)
            .map(|verdict| Exit::Code(verdict.code())),
        TraceCommand::Show(asked) => show(asked, cwd, &mut out, &mut err).map(told),
        TraceCommand::Stats(asked) => stats(asked, cwd, &mut out, &mut err).map(told),
        TraceCommand::Diff(asked) => diff(asked, cwd, &mut out, &mut err).map(told),
        TraceCommand::Export(asked) => export(asked, cwd, &mut out, &mut err).map(told),
        TraceCommand::Simulate(asked) => simulate::until_a_signal(asked, cwd, &mut out, &mut err),
    };
    // Nobody reads the answer.
    done.unwrap_or(Exit::Failed)
}

/// 2 if a trace cannot be read, or does not have what was asked for.
const fn told(whole: bool) -> Exit {
    Exit::Code(if whole { 0 } else { 2 })
}
