//! An agent CLI that does what it is told: `longshore agent-double` speaks claude's stream-json, and its script says what it does.
//!
//! The script is a JSON list of [`Step`]s, from the environment variable [`SCRIPT_ENV`], or else from the prompt: what
//! follows the first [`PROMPT_MARK`] in it. Without a script it says one sentence and succeeds. It reads the prompt from its
//! standard input, does the steps, reports success unless a step did otherwise, waits until its input is closed, and exits.

mod play;
mod script;

pub use script::{PROMPT_MARK, SCRIPT_ENV, Step, script_text};

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

/// The version line that discovery sees.
const VERSION: &str = "2.1.197 (Claude Code)";
/// The argument with which the double starts itself as a child that only holds its standard output, for so many milliseconds.
const HOLD: &str = "--hold";
/// The argument after it: leave the session first.
const OWN_SESSION: &str = "--own-session";

/// Whether the command line asks for the double, as its first argument or by the name it was started by.
pub fn is_asked_for(args: &[OsString]) -> bool {
    let name = args.first().map(std::path::Path::new).and_then(std::path::Path::file_name);
    args.get(1).is_some_and(|arg| arg == "agent-double") || name.is_some_and(|name| name == "agent-double")
}

/// Runs the double. `args` is the whole command line.
pub fn main(args: &[OsString]) -> ExitCode {
    let args: Vec<_> =
        args.iter().skip(1).filter_map(|arg| arg.to_str()).filter(|arg| *arg != "agent-double").collect();
    match args.first() {
        Some(&"--version" | &"-v") => {
            println!("{VERSION}");
            return ExitCode::SUCCESS;
        }
        Some(&HOLD) => return hold(&args[1..]),
        _ => {}
    }
    let resumed = value_after(&args, "--resume");
    let model = value_after(&args, "--model");
    let session = resumed.map_or_else(|| uuid::Uuid::new_v4().to_string(), Into::into);
    let given = std::env::var(SCRIPT_ENV).ok();
    let input = std::io::BufReader::new(std::io::stdin());
    let out = std::io::BufWriter::new(std::io::stdout());
    let played = play::Player::new(input, out, std::io::stderr(), session, model.unwrap_or("double-1"))
        .play(given.as_deref());
    match played {
        Ok(code) => code.into(),
        Err(why) => {
            eprintln!("agent-double: {why}");
            ExitCode::FAILURE
        }
    }
}

fn value_after<'a>(args: &[&'a str], name: &str) -> Option<&'a str> {
    args.iter().position(|arg| *arg == name).and_then(|at| args.get(at + 1)).copied()
}

/// The child that outlives its parent with the parent's standard output open.
fn hold(args: &[&str]) -> ExitCode {
    if args.contains(&OWN_SESSION) && rustix::process::setsid().is_err() {
        return ExitCode::FAILURE;
    }
    let ms = args.first().and_then(|ms| ms.parse().ok()).unwrap_or_default();
    std::thread::sleep(Duration::from_millis(ms));
    ExitCode::SUCCESS
}
