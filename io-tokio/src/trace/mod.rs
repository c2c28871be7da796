//! `longshore trace`: what people do with recorded histories. One file for each command, which also declares its arguments.

pub mod check;
pub mod input;
mod output;
mod rebase;
pub mod render;
pub mod replay;
pub mod shrink;

use crate::cli::Exit;
use crate::simulate::{self, Simulate};
use check::{Check, check};
use clap::Subcommand;
use render::{Render, render};
use replay::{Replay, replay};
use shrink::Shrink;
use std::io;
use std::path::Path;

/// `longshore trace …`
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum TraceCommand {
    /// Feed a trace to a fresh core and compare what it decides
    Replay(Replay),
    /// Draw a trace: lanes of runtimes, slots and tasks over time
    Render(Render),
    /// Hold a trace to all invariants
    Check(Check),
    /// Make a history small that breaks an invariant
    Shrink(Shrink),
    /// Let simulated worlds go wrong in every way, and check what the core makes of it
    Simulate(Simulate),
}

/// Carries out a command; relative paths are below `cwd`.
pub fn perform(command: &TraceCommand, cwd: &Path) -> Exit {
    let (mut out, mut err) = (io::stdout().lock(), io::stderr());
    let done = match command {
        TraceCommand::Render(asked) => render(asked, cwd, &mut out, &mut err),
        TraceCommand::Replay(asked) => {
            replay(asked, cwd, &mut out, &mut err).map(|verdict| Exit::Code(verdict.code()))
        }
        TraceCommand::Check(asked) => {
            check(asked, cwd, &mut out, &mut err).map(|verdict| Exit::Code(verdict.code()))
        }
        TraceCommand::Shrink(asked) => shrink::until_a_signal(asked, cwd, &mut out, &mut err),
        TraceCommand::Simulate(asked) => simulate::until_a_signal(asked, cwd, &mut out, &mut err),
    };
    // Nobody reads the answer.
    done.unwrap_or(Exit::Failed)
}
