//! The tokio adapter of longshore: one module per kind of effect, and the `longshore` command line.

pub mod actions;
pub mod agent_double;
pub mod alarm;
pub mod answers;
pub mod book;
pub mod brief;
pub mod cli;
pub mod clock;
pub mod collector;
pub mod command;
pub mod config;
pub mod control;
pub mod demo;
pub mod discover;
pub mod driver;
pub mod health;
pub mod http;
pub mod identity;
mod ignored;
pub mod ledger;
pub mod local;
pub mod log;
mod open_files;
pub mod owner;
pub mod plane;
pub mod prepare;
mod regular;
mod remedy;
pub mod secret;
pub mod service;
mod signals;
pub mod simulate;
pub mod skills;
mod stop_flag;
pub mod supervise;
pub mod tempdir;
pub mod trace;
pub mod trace_sink;
mod unpack;
pub mod wire;
pub mod ws;

/// Runs the command line and returns the process's exit code.
///
/// The hidden modes of our own child processes come first, before an argument parser or a runtime exists.
pub fn run(args: impl IntoIterator<Item = std::ffi::OsString>) -> std::process::ExitCode {
    let args: Vec<_> = args.into_iter().collect();
    if agent_double::is_asked_for(&args) {
        return agent_double::main(&args);
    }
    match args.get(1).and_then(|mode| mode.to_str()) {
        Some("supervise") => supervise::supervisor::main(),
        Some("helper") => supervise::helper::main(prepare::helper),
        _ => cli::run(args, command::perform),
    }
}
