//! `longshore trace shrink`: the shortest history that still breaks a rule, as a trace or as a test.

use super::check::rule;
use super::input::Input;
use super::output::NewFile;
use crate::cli::Exit;
use longshore_core::script::{Case, Search, regression_test};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct Shrink {
    /// The trace, the directory of a flight recorder, or - for standard input; may be packed by gzip or zstd
    pub file: PathBuf,
    /// The rule that is broken, such as I5. Default: the first one
    #[arg(long, value_name = "ID", value_parser = broken)]
    pub rule: Option<&'static str>,
    /// Print a Rust test in place of a trace
    #[arg(long)]
    pub as_test: bool,
    /// Write to a file that is not there yet. Default: standard output
    #[arg(short, long = "out", value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// The rule of this id, or that the core panics.
fn broken(id: &str) -> Result<&'static str, String> {
    if id == longshore_core::script::PANIC { Ok(longshore_core::script::PANIC) } else { rule(id) }
}

/// As [`shrink`], until SIGINT or SIGTERM, which gives the best so far; the second one ends the process at once.
///
/// # Errors
/// If `out` or `err` cannot be written to, or signals cannot be caught.
pub fn until_a_signal(
    asked: &Shrink,
    cwd: &Path,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    // A core that panics is what is looked for.
    std::panic::set_hook(Box::new(|_| {}));
    shrink(asked, Search::new(asked.rule), cwd, &stop, out, err)
}

/// Looks for the first history in the trace that breaks the rule in this core, and makes it small until it cannot be smaller or `stop` is set. The
/// trace or test goes to `out` or the file, and how it gets on to `err`. Relative paths are below `cwd`. Ends with 0 if there is one, 1 if
/// there is none, 2 if the trace cannot be read or the file cannot be written.
///
/// # Errors
/// If `out` or `err` cannot be written to.
pub fn shrink(
    asked: &Shrink,
    mut search: Search,
    cwd: &Path,
    stop: &AtomicBool,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    let file = asked.out.as_ref().map(|path| NewFile::create(&cwd.join(path))).transpose();
    let mut file = match file {
        Ok(file) => file,
        Err(error) => return refused(&error.to_string(), err),
    };
    let mut input = match Input::open(&asked.file, cwd) {
        Ok(input) => input,
        Err(error) => return refused(&error.to_string(), err),
    };
    while !stop.load(Ordering::Relaxed)
        && let Some(record) = input.next()
        && !search.record(record)
    {}
    input.say(err)?;
    let (lives, headless) = search.lives();
    if headless > 0 {
        writeln!(err, "warning: {headless} segments begin in the middle of a life, and were left out")?;
    }
    if lives == 0 {
        return refused(
            "no life is there from its beginning: the whole of it is needed, as by --record",
            err,
        );
    }
    if stop.load(Ordering::Relaxed) {
        writeln!(err, "stopped before anything was found")?;
        return Ok(Exit::Code(130));
    }
    let Some(case) = search.finish() else {
        let what = asked.rule.unwrap_or("a rule");
        writeln!(
            err,
            "this core does not break {what} over the events of {lives} lives; if the core that recorded did, use that version"
        )?;
        return Ok(Exit::Failed);
    };
    let small = made_small(&case, stop, err)?;
    let text = if asked.as_test {
        regression_test(&small, case.script.len()).map(String::into_bytes)
    } else {
        small.trace()
    };
    let text = match text {
        Ok(text) => text,
        Err(error) => return refused(&error.to_string(), err),
    };
    match file.take() {
        None => out.write_all(&text)?,
        Some(mut file) => match file.write(&text).and_then(|()| file.keep()) {
            Ok(path) => writeln!(err, "written to {}", path.display())?,
            Err(error) => return refused(&error.to_string(), err),
        },
    }
    Ok(Exit::Success)
}

fn made_small(case: &Case, stop: &AtomicBool, err: &mut dyn Write) -> io::Result<Case> {
    let before = case.script.len();
    let when = if case.healed { ", once everything works again" } else { "" };
    writeln!(err, "{} is broken after {before} events{when}: {}", case.rule, case.story)?;
    let (mut told, mut written) = (before, Ok(()));
    let small = case.shrunk(&|| stop.load(Ordering::Relaxed), &mut |left| {
        // Each time it is half of what was told last.
        if left * 2 <= told && written.is_ok() {
            (told, written) = (left, writeln!(err, "{left} events are left"));
        }
    });
    written?;
    let cut = if stop.load(Ordering::Relaxed) { "; stopped before it was done" } else { "" };
    writeln!(err, "{before} events before, {} after{cut}: {}", small.script.len(), small.story)?;
    Ok(small)
}

fn refused(why: &str, err: &mut dyn Write) -> io::Result<Exit> {
    writeln!(err, "error: {why}")?;
    Ok(Exit::Code(2))
}
