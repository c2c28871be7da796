//! `longshore trace shrink`: the shortest history that still breaks a rule, as a trace or as a test.

use super::check::rule;
use super::destination::Destination;
use super::input::Input;
use super::words::count;
use crate::cli::Exit;
use crate::stop_flag;
use longshore_core::script::{Case, Search, Seen, regression_test};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
#[command(
    after_help = "Example: longshore trace shrink run.jsonl --rule INV-120 --as-test -o inv_120.rs\nA whole life is needed, as --record keeps it. Ctrl-C gives the best so far.\nExit code: 0 if a rule is broken, which is what was looked for; 1 if none is; 2 if nothing could be read or written."
)]
pub struct Shrink {
    /// The trace, the directory of a flight recorder or a tar archive of it, or - for standard input; may be packed by gzip or zstd
    pub file: PathBuf,
    /// The rule to look for, such as I5. Default: the first one that is broken
    #[arg(long, value_name = "ID", value_parser = broken)]
    pub rule: Option<&'static str>,
    /// Give a Rust test, in place of a trace
    #[arg(long)]
    pub as_test: bool,
    /// Write to a file that is not there yet; compressed if its name ends in .gz. Default: standard output
    #[arg(short, long = "output", alias = "out", value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// The rule of this id, or that the core panics.
fn broken(id: &str) -> Result<&'static str, String> {
    if id == longshore_core::script::PANIC { Ok(longshore_core::script::PANIC) } else { rule(id) }
}

/// As [`shrink`], until SIGINT or SIGTERM, which gives the best so far; the second one ends the process at once, and so does the first one as long as there
/// is nothing to give.
///
/// # Errors
/// If `out` or `err` cannot be written to, or signals cannot be caught.
pub fn until_a_signal(
    asked: &Shrink,
    cwd: &Path,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    // A core that panics is what is looked for.
    std::panic::set_hook(Box::new(|_| {}));
    shrink(asked, Search::new(asked.rule), cwd, stop_flag::set_by_signals, out, err)
}

/// Looks for the first history in the trace that breaks the rule in this core, and makes it small until it cannot be smaller or the flag is set that
/// `stop` gives, which is asked for it once such a history is found. The
/// trace or test goes to `out` or the file, and how it gets on to `err`. Relative paths are below `cwd`. Ends with 0 if there is one, 1 if
/// there is none, 2 if the trace cannot be read or the file cannot be written.
///
/// # Errors
/// If `out` or `err` cannot be written to.
pub fn shrink(
    asked: &Shrink,
    mut search: Search,
    cwd: &Path,
    stop: impl FnOnce() -> io::Result<Arc<AtomicBool>>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    let is_rust = |path: &PathBuf| path.extension().is_some_and(|end| end == "rs");
    if let Some(path) = asked.out.as_ref().filter(|path| is_rust(path) && !asked.as_test) {
        let path = path.display();
        return refused(&format!("{path} is a name for Rust, and would become a trace: add --as-test"), err);
    }
    let file = asked.out.as_ref().map(|path| Destination::create(Some(path), cwd)).transpose();
    let file = match file {
        Ok(file) => file,
        Err(error) => return refused(&error.to_string(), err),
    };
    let mut input = match Input::open(&asked.file, cwd) {
        Ok(input) => input,
        Err(error) => return refused(&error.to_string(), err),
    };
    while let Some(record) = input.next()
        && !search.record(record)
    {}
    input.say(err)?;
    let seen = search.seen();
    if let Seen { lives: 0, imported: 1.., .. } = seen {
        return refused(
            "it was made from the log of another daemon: no core decided what is in it, so none can be tried on it; `trace check` judges it",
            err,
        );
    }
    let headless = seen.headless;
    if headless > 0 {
        let begin = count(headless, "segment begins", "segments begin");
        let were = if headless == 1 { "was" } else { "were" };
        writeln!(err, "warning: {begin} in the middle of a life, and {were} left out")?;
    }
    if seen.lives == 0 {
        return refused(
            "no life is there from its beginning: the whole of it is needed, as by --record",
            err,
        );
    }
    let Some(case) = search.finish() else {
        if seen.events == 0 && seen.cut > 0 {
            return refused("the steps after the beginning are missing: nothing could be tried", err);
        }
        let what = asked.rule.unwrap_or("a rule");
        let (events, lives) = (count(seen.events, "event", "events"), count(seen.lives, "life", "lives"));
        let cut = if seen.cut > 0 { ", up to what is missing" } else { "" };
        writeln!(
            err,
            "this core does not break {what} over {events} of {lives}{cut}; if the core that recorded did, use that version"
        )?;
        return Ok(Exit::Failed);
    };
    let small = made_small(&case, &*stop()?, err)?;
    give(asked, &small, case.script.len(), file, out, err)
}

/// Writes what was made small from `before` events.
fn give(
    asked: &Shrink,
    small: &Case,
    before: usize,
    file: Option<Destination>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    let text =
        if asked.as_test { regression_test(small, before).map(String::into_bytes) } else { small.trace() };
    let text = match text {
        Ok(text) => text,
        Err(error) => return refused(&error.to_string(), err),
    };
    match file {
        None => out.write_all(&text)?,
        Some(mut file) => match file.write(&text).and_then(|()| file.finish()) {
            Ok(name) => writeln!(err, "written to {name}")?,
            Err(error) => return refused(&error.to_string(), err),
        },
    }
    Ok(Exit::Success)
}

fn made_small(case: &Case, stop: &AtomicBool, err: &mut dyn Write) -> io::Result<Case> {
    let before = case.script.len();
    let when = if case.healed { ", once everything works again" } else { "" };
    let events = count(before, "event", "events");
    writeln!(err, "{} is broken after {events}{when}: {}", case.rule, case.story)?;
    let (mut told, mut written) = (before, Ok(()));
    let small = case.shrunk(&|| stop.load(Ordering::Relaxed), &mut |left| {
        // Each time it is half of what was told last.
        if left * 2 <= told && written.is_ok() {
            (told, written) = (left, writeln!(err, "{} left", count(left, "event is", "events are")));
        }
    });
    written?;
    let cut = if stop.load(Ordering::Relaxed) { "; stopped before it was done" } else { "" };
    writeln!(err, "{events} before, {} after{cut}: {}", small.script.len(), small.story)?;
    Ok(small)
}

fn refused(why: &str, err: &mut dyn Write) -> io::Result<Exit> {
    writeln!(err, "error: {why}")?;
    Ok(Exit::Code(2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::input::tests::recorded;
    use longshore_core::config::Config;
    use longshore_core::event::Event;
    use longshore_core::rng::Seed;
    use longshore_core::script::{Input as Line, Start};
    use longshore_core::trace::Reader;
    use std::fs;
    use tempfile::TempDir;

    fn run(text: &str, asked: &Shrink) -> (Exit, String, String) {
        let dir = TempDir::new().expect("temp");
        fs::write(dir.path().join("t"), text).expect("writes");
        let asked = Shrink { file: "t".into(), ..asked.clone() };
        let search = Search::new(asked.rule);
        let nothing_found = || -> io::Result<Arc<AtomicBool>> { panic!("no core of ours breaks a rule") };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let exit =
            shrink(&asked, search, dir.path(), nothing_found, &mut out, &mut err).expect("writes to memory");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        (exit, text(out), text(err))
    }

    #[test]
    fn a_trace_that_breaks_nothing_ends_with_1() {
        let asked = Shrink { rule: Some("I5"), ..Shrink::default() };
        let (exit, out, err) = run(&recorded(6, 120), &asked);
        assert_eq!((exit, out.as_str()), (Exit::Failed, ""));
        assert!(err.starts_with("this core does not break I5 over 120 events of 1 life; if"), "{err}");
        let lines = recorded(6, 120);
        let cut: Vec<_> = lines.lines().enumerate().filter(|(n, _)| *n != 60).map(|(_, line)| line).collect();
        let (exit, _, err) = run(&cut.join("\n"), &asked);
        assert_eq!(exit, Exit::Failed);
        assert!(err.contains(" of 1 life, up to what is missing; if") && !err.contains(" 120 "), "{err}");
    }

    #[test]
    fn what_cannot_be_read_or_written_or_begins_in_the_middle_ends_with_2() {
        let (exit, _, err) = run("x\n", &Shrink::default());
        assert_eq!(exit, Exit::Code(2));
        assert!(err.contains("no header of a trace"), "{err}");
        let (exit, _, err) = run("x\n", &Shrink { out: Some("t".into()), ..Shrink::default() });
        assert_eq!(exit, Exit::Code(2));
        assert!(err.contains("exists already"), "{err}");
        let from = "\"from\":{\"n\":1,\"h\":\"0000000000000000\"}";
        let middle = recorded(6, 2).replacen("\"from\":null", from, 1);
        let (exit, _, err) = run(&middle, &Shrink::default());
        assert_eq!(exit, Exit::Code(2));
        assert!(err.contains("no life is there from its beginning"), "{err}");
        let lines = recorded(6, 9);
        let late = |n: &usize| !(1..6).contains(n);
        let cut: Vec<_> = lines.lines().enumerate().filter(|(n, _)| late(n)).map(|(_, line)| line).collect();
        let (exit, _, err) = run(&cut.join("\n"), &Shrink::default());
        assert_eq!(exit, Exit::Code(2));
        assert!(err.contains("nothing could be tried"), "{err}");
        let imported = recorded(6, 9).replacen("\"source\":\"test\"", "\"source\":\"imported\"", 1);
        let (exit, _, err) = run(&imported, &Shrink::default());
        assert_eq!(exit, Exit::Code(2));
        assert!(err.contains("made from the log of another daemon"), "{err}");
        let (exit, out, err) =
            run(&recorded(6, 9), &Shrink { out: Some("small.rs".into()), ..Shrink::default() });
        assert_eq!((exit, out.as_str()), (Exit::Code(2), ""));
        assert!(err.contains("small.rs is a name for Rust"), "{err}");
    }

    #[test]
    fn a_search_that_is_stopped_says_so() {
        let case = made_up();
        let mut err = Vec::new();
        let small = made_small(&case, &AtomicBool::new(true), &mut err).expect("writes to memory");
        let err = String::from_utf8(err).expect("text");
        assert!(err.contains("stopped before it was done"), "{err}");
        assert_eq!(small.script, case.script, "the best so far");
    }

    /// No core of ours breaks a rule, so this only says that it does.
    fn made_up() -> Case {
        let start = Start::new(Config::default(), Seed(1));
        let script = vec![Line::Event { now: start.now, event: Event::stop() }];
        Case { start, script, rule: "I5".into(), story: "made up".into(), healed: false }
    }

    #[test]
    fn the_result_is_a_trace_or_a_test_on_standard_output_or_in_a_file() {
        let dir = TempDir::new().expect("temp");
        let given = |as_test: bool, file: Option<&Path>| {
            let asked = Shrink { as_test, ..Shrink::default() };
            let new = file.map(|path| Destination::create(Some(path), Path::new("/")).expect("begins"));
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let exit = give(&asked, &made_up(), 7, new, &mut out, &mut err).expect("writes to memory");
            assert_eq!(exit, Exit::Success);
            String::from_utf8(out).expect("text")
        };
        let trace = given(false, None);
        assert_eq!(Reader::new(trace.as_bytes()).expect("a trace").count(), 3);
        let test = given(true, None);
        assert!(test.contains("fn i5_holds_over_what_once_broke_it() {"), "{test}");
        assert!(test.contains("1 of 7 events are left"), "{test}");
        let path = dir.path().join("new.rs");
        assert_eq!(given(true, Some(&path)), "");
        assert_eq!(fs::read_to_string(&path).expect("reads"), test);
    }
}
