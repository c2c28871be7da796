//! The command line: what was typed becomes a [`Command`], and errors become one line and an exit code.

mod args;
mod command;
mod exit;
mod start;
mod version;

pub use args::parse;
pub use command::{
    Command, DaemonLogs, DaemonStart, DaemonStatus, DaemonStop, Demo, DrainFor, Local, LogTarget,
    VersionOutput, Which,
};
pub use exit::{Exit, Unwritten, debug_wanted, explain, print};
pub use start::{StartRefusal, require_token, task_signal};

use crate::config::{ConfigError, Env};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

/// Runs the command line in this process: `args` begins with the program's name. What is not done in here (that is,
/// everything but `version` and refusals) is handed to `perform` with the environment and the current directory.
pub fn run(
    args: impl IntoIterator<Item = OsString>,
    perform: impl FnOnce(Command, &Env, &Path) -> Exit,
) -> ExitCode {
    let exit = match std::env::current_dir() {
        Ok(cwd) => run_in(args, &Env::of_process(), &cwd, &mut io::stdout(), &mut io::stderr(), perform),
        Err(error) => {
            let _ = writeln!(io::stderr(), "{}", explain(&ConfigError::CurrentDir(error), false));
            Exit::Failed
        }
    };
    exit.into()
}

/// As [`run`], with everything that belongs to the process handed in.
pub fn run_in(
    args: impl IntoIterator<Item = OsString>,
    env: &Env,
    cwd: &Path,
    out: &mut dyn Write,
    err: &mut dyn Write,
    perform: impl FnOnce(Command, &Env, &Path) -> Exit,
) -> Exit {
    let args: Vec<OsString> = args.into_iter().collect();
    let command = match parse(args.iter().cloned()) {
        Ok(command) => command,
        Err(error) => {
            let told_apart = args::is_about_form(&error) || args::is_of_trace(args);
            let wrong = if told_apart { WRONG_USAGE } else { Exit::Failed };
            return refuse(&error, wrong, out, err);
        }
    };
    if let Command::Version(output) = command {
        return answer(&version::text(args.first(), output), out, err);
    }
    if let Err(refusal) = start::check(&command, env, cwd) {
        let _ = writeln!(err, "{}", explain(&refusal, false));
        return Exit::Failed;
    }
    perform(command, env, cwd)
}

/// Text that was asked for, and nothing else.
fn answer(text: &str, out: &mut dyn Write, err: &mut dyn Write) -> Exit {
    match print(out, text) {
        Ok(()) => Exit::Success,
        Err(unwritten) => {
            let _ = writeln!(err, "{}", explain(&unwritten, false));
            Exit::Failed
        }
    }
}

/// What was typed is wrong, where 1 says something else: it is the verdict of a `trace` command about a trace, and to a program that reads
/// what it asked for it is a failure of the command.
const WRONG_USAGE: Exit = Exit::Code(2);

/// Help goes to `out`. An error is one line, and ends with `wrong`; with a wrong number of arguments the usage follows, a line for each way.
fn refuse(error: &clap::Error, wrong: Exit, out: &mut dyn Write, err: &mut dyn Write) -> Exit {
    let text = error.to_string();
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand) {
        return answer(&text, out, err);
    }
    let (message, usage) = text.split_once("\n\nUsage:").unwrap_or((&text, ""));
    let _ = writeln!(err, "{}", one_line(message));
    let extra =
        matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(a)) if !a.starts_with('-'));
    let count = error.kind() == ErrorKind::MissingRequiredArgument
        || (error.kind() == ErrorKind::UnknownArgument && extra);
    let usage = usage.lines().take_while(|line| !line.trim().is_empty()).collect::<Vec<_>>().join("\n");
    if count && !usage.is_empty() {
        let _ = writeln!(err, "Usage:{usage}");
    }
    wrong
}

fn one_line(message: &str) -> String {
    let mut line = String::new();
    let parts = message.lines().map(str::trim).filter(|part| !part.is_empty());
    for part in parts.filter(|part| !part.starts_with("For more information")) {
        line.push_str(if line.is_empty() {
            ""
        } else if line.ends_with(':') {
            " "
        } else {
            "; "
        });
        line.push_str(part);
    }
    line
}

#[cfg(test)]
mod tests;
