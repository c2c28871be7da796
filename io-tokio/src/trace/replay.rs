//! `longshore trace replay`: whether a recorded history comes out again, or what this core makes of it.

use super::input::Input;
use super::rebase::rebase;
use super::step_name::StepName;
use super::words::count;
use crate::identity::source;
use longshore_core::trace::{self, FORMAT, Mode, ReplayError, Report};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What a replay came to, for the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Everything that could be compared is the same, or nothing was to be.
    Same,
    /// The core does something else than was recorded.
    Differs,
    /// The trace cannot be read, nothing in it can be replayed, or what comes of it cannot be written.
    Unreadable,
}

impl Verdict {
    /// 0, 1 or 2, in the order above.
    pub const fn code(self) -> u8 {
        match self {
            Self::Same => 0,
            Self::Differs => 1,
            Self::Unreadable => 2,
        }
    }
}

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
#[command(
    after_help = "Exit code: 0 if this core does the same, as far as can be compared; 1 if it does something else; 2 if nothing can be replayed. With --rebase: 0 or 2."
)]
pub struct Replay {
    /// The trace, the directory of a flight recorder or a tar archive of it, or - for standard input; may be packed by gzip or zstd
    pub file: PathBuf,
    /// Stop after this step, such as 59 (or 2/59 in life 2), and show the 20 that end with it
    #[arg(long, value_name = "STEP", allow_hyphen_values = true)]
    pub until: Option<StepName>,
    /// Take the events alone: whether they can be replayed at all; nothing is compared
    #[arg(long, conflicts_with = "rebase")]
    pub events_only: bool,
    /// Go on where this core does something else, and say in how many steps it does
    #[arg(long)]
    pub rebase: bool,
    /// With --rebase: write what this core does as a trace, to a file that is not there yet; compressed if its name ends in .gz
    #[arg(short, long = "output", alias = "out", value_name = "FILE", requires = "rebase")]
    pub out: Option<PathBuf>,
}

/// Replays a trace, and writes what came of it to `out`, and what went wrong to `err`. Relative paths are below `cwd`.
///
/// # Errors
/// If `out` or `err` cannot be written to.
pub fn replay(asked: &Replay, cwd: &Path, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<Verdict> {
    match Input::open(&asked.file, cwd) {
        Ok(input) if asked.rebase => rebase(asked, input, cwd, out, err),
        Ok(input) => compare(asked, input, out, err),
        Err(error) => {
            writeln!(err, "error: {error}")?;
            Ok(Verdict::Unreadable)
        }
    }
}

fn compare(
    asked: &Replay,
    mut input: Input,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Verdict> {
    let mode = if asked.events_only { Mode::EventsOnly } else { Mode::Strict };
    let mut replay = trace::Replay::new(mode);
    let mut stopped = false;
    while let Some(record) = input.next() {
        match replay.record(input.place().line, record, &mut |_| {}) {
            Ok(()) => {}
            Err(ReplayError::Diverged(what)) => {
                input.say(err)?;
                summary(replay.report(), false, false, out)?;
                writeln!(
                    out,
                    "stopped     at step {}{}: what comes after it was not read",
                    what.n,
                    of_life(what.life)
                )?;
                writeln!(out, "result      the core does something else than was recorded")?;
                writeln!(err, "error: {}: {what}", input.source())?;
                let format = input.header().format;
                if format != FORMAT {
                    writeln!(err, "it was recorded in format {format}, and this core writes {FORMAT}")?;
                }
                writeln!(err, "`trace replay --rebase` goes on from there, and says what this core does")?;
                return Ok(Verdict::Differs);
            }
            Err(error) => {
                if matches!(error, ReplayError::Config { .. }) {
                    replay.lose_state();
                }
                writeln!(err, "warning: {}: {error}; it was not used", input.source())?;
            }
        }
        let here = replay.last().map(|n| (replay.report().all_lives, n));
        stopped = asked.until.zip(here).is_some_and(|(until, (life, n))| until.is(life, n));
        if stopped {
            break;
        }
    }
    input.say(err)?;
    let (verdict, text) = judge(replay.report(), mode, input.troubles().lose());
    summary(replay.report(), !stopped, input.troubles().lose(), out)?;
    if let Some(until) = asked.until {
        if stopped {
            writeln!(
                out,
                "stopped     after step {}{}, as was asked; the last steps:\n{}",
                until.n,
                of_life(replay.report().all_lives),
                replay.context()
            )?;
        } else {
            let any = until.life.is_none() && replay.report().all_lives > 1;
            let lives = if any { " in any life" } else { "" };
            writeln!(out, "stopped     never: the trace has no {until}{lives}")?;
        }
    }
    writeln!(out, "result      {text}")?;
    Ok(verdict)
}

/// Why a replay of nothing is no success.
pub(super) const NOTHING: &str = "nothing could be replayed: no segment begins with a daemon's creation or has a checkpoint that can be used";

fn judge(report: &Report, mode: Mode, damaged: bool) -> (Verdict, &'static str) {
    let replayed = report.steps - report.skipped;
    match mode {
        _ if replayed == 0 && report.imported => (
            Verdict::Unreadable,
            "the trace was imported from the log of another daemon: no core recorded it, so there is nothing to replay",
        ),
        _ if replayed == 0 => (Verdict::Unreadable, NOTHING),
        Mode::EventsOnly => (Verdict::Same, "the events were replayed; nothing was to be compared"),
        Mode::Strict if report.compared == 0 => {
            (Verdict::Same, "the events were replayed; the trace has no effects to compare")
        }
        Mode::Strict if report.compared < report.steps || report.gaps > 0 || damaged => {
            (Verdict::Same, "the core does what was recorded, as far as the trace allows to compare")
        }
        Mode::Strict => (Verdict::Same, "the core does what was recorded"),
    }
}

/// Which life a step is of, where there is more than one so far.
fn of_life(life: u64) -> String {
    if life > 1 { format!(" of life {life}") } else { String::new() }
}

/// `whole` says whether all of the trace was read, `damaged` whether something of it is lost.
fn summary(report: &Report, whole: bool, damaged: bool, out: &mut dyn Write) -> io::Result<()> {
    let own = env!("CARGO_PKG_VERSION");
    let here = source().map_or_else(|| own.to_owned(), |source| format!("{own}+{source}"));
    writeln!(out, "recorded by core {}, replayed by core {here}", report.core)?;
    writeln!(out, "segments    {}, lives from their beginning: {}", report.segments, report.lives)?;
    if let Some(n) = report.from_checkpoint {
        writeln!(out, "began       at the checkpoint after step {n}")?;
    }
    writeln!(
        out,
        "steps       {}: {} compared, {} not replayed for want of a checkpoint",
        report.steps, report.compared, report.skipped
    )?;
    write!(out, "digests     {} compared", report.digests)?;
    if report.digests_skipped > 0 {
        write!(out, ", {} not for want of a checkpoint", report.digests_skipped)?;
    }
    writeln!(out)?;
    if report.gaps > 0 {
        writeln!(
            out,
            "gaps        {}, with {}; went on at a checkpoint {}",
            report.gaps,
            count(report.lost, "step", "steps"),
            count(report.restored, "time", "times")
        )?;
    }
    match &report.end {
        _ if !whole => Ok(()),
        Some(why) => writeln!(out, "ended       {why}"),
        None if damaged => writeln!(out, "ended       not known: what says so may be in what cannot be read"),
        None => writeln!(out, "ended       without a word: the daemon was killed, or still records"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace_sink::segments;
    use crate::trace_sink::tests::life::Life;
    use crate::trace_sink::tests::{header, record};
    use crate::trace_sink::{MIN_BUDGET, SegmentName, Sink};
    use std::fs;
    use tempfile::TempDir;

    fn run(path: &Path, mode: Mode) -> (Verdict, String, String) {
        let events_only = mode == Mode::EventsOnly;
        ask(&Replay { file: path.to_owned(), events_only, ..Replay::default() })
    }

    fn ask(asked: &Replay) -> (Verdict, String, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let verdict = replay(asked, Path::new("/"), &mut out, &mut err).expect("writes to memory");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        (verdict, text(out), text(err))
    }

    fn recorded(dir: &TempDir, steps: usize) -> PathBuf {
        let path = dir.path().join("run.jsonl");
        let mut life = Life::new(3);
        let mut sink = Sink::file(&path, header(&life), life.fx.as_slice()).expect("starts");
        record(&mut sink, &mut life, steps);
        sink.close("stopped", &life.daemon);
        path
    }

    #[test]
    fn a_good_trace_ends_with_0_and_says_what_was_compared() {
        let dir = TempDir::new().expect("temp");
        let path = recorded(&dir, 300);
        let (verdict, out, err) = run(&path, Mode::Strict);
        assert_eq!((verdict, verdict.code(), err.as_str()), (Verdict::Same, 0, ""));
        for line in [
            "steps       301: 301 compared, 0 not replayed for want of a checkpoint\n",
            "digests     10 compared\n",
            "ended       stopped\n",
            "result      the core does what was recorded\n",
        ] {
            assert!(out.contains(line), "{out}");
        }
    }

    #[test]
    fn what_is_lost_by_damage_qualifies_the_result() {
        let dir = TempDir::new().expect("temp");
        let path = recorded(&dir, 300);
        let text = fs::read_to_string(&path).expect("reads");
        let spoilt: Vec<_> =
            text.lines().enumerate().map(|(n, line)| if n > 60 { &line[1..] } else { line }).collect();
        fs::write(&path, spoilt.join("\n") + "\n").expect("writes");
        let (verdict, out, _) = run(&path, Mode::Strict);
        assert_eq!(verdict, Verdict::Same);
        assert!(
            out.contains("\nended       not known: what says so may be in what cannot be read\n"),
            "{out}"
        );
        assert!(
            out.ends_with("the core does what was recorded, as far as the trace allows to compare\n"),
            "{out}"
        );
        // A killed daemon leaves a line without its end: nothing that was to be compared is lost.
        let (killed, _) = text.split_at(text.len() / 2);
        fs::write(&path, killed).expect("writes");
        let (_, out, _) = run(&path, Mode::Strict);
        assert!(out.contains("\nended       without a word"), "{out}");
        assert!(out.ends_with("the core does what was recorded\n"), "{out}");
    }

    #[test]
    fn a_divergence_ends_with_1_and_shows_the_step() {
        let dir = TempDir::new().expect("temp");
        let path = recorded(&dir, 300);
        let text = fs::read_to_string(&path).expect("reads");
        let changed = text.replacen(r#""fact":"ready""#, r#""fact":"unauthorized""#, 1);
        assert_ne!(text, changed);
        fs::write(&path, changed).expect("writes");
        let (verdict, out, err) = run(&path, Mode::Strict);
        assert_eq!((verdict, verdict.code()), (Verdict::Differs, 1));
        assert!(out.ends_with("result      the core does something else than was recorded\n"), "{out}");
        assert!(out.contains("\nstopped     at step "), "{out}");
        assert!(err.contains(r#"fact.fact: "unauthorized" was recorded, "ready" was produced"#), "{err}");
        assert!(err.contains("the last steps of the replay:"), "{err}");
        assert_eq!(run(&path, Mode::EventsOnly).0, Verdict::Same);
    }

    #[test]
    fn what_cannot_be_read_ends_with_2_and_says_why() {
        let dir = TempDir::new().expect("temp");
        let bad = |path: &Path| {
            let (verdict, _, err) = run(path, Mode::Strict);
            assert_eq!((verdict, verdict.code()), (Verdict::Unreadable, 2));
            err
        };
        assert!(bad(&dir.path().join("none")).contains("No such file"));
        assert!(bad(dir.path()).contains("no segment of a flight recorder"));
        let path = dir.path().join("empty");
        fs::write(&path, "").expect("writes");
        assert!(bad(&path).contains("empty: the file is empty"));
        fs::write(&path, "{\"rec\":\"step\"}\n").expect("writes");
        assert!(bad(&path).contains("line 1 (byte 0): no header of a trace: "));
    }

    #[test]
    fn a_directory_is_replayed_in_order_with_its_newest_segment_still_empty() {
        let dir = TempDir::new().expect("temp");
        let mut life = Life::new(5);
        let first = life.fx.as_slice();
        let mut sink = Sink::flight(dir.path(), MIN_BUDGET, header(&life), first).expect("starts");
        record(&mut sink, &mut life, 3000);
        drop(sink);
        let count = segments(dir.path()).expect("lists").len();
        assert!(count > 1);
        let newest = segments(dir.path()).expect("lists").pop().expect("a segment");
        let name =
            newest.file_name().and_then(|name| name.to_str()).and_then(SegmentName::parse).expect("a name");
        let next = format!("flight-{:010}.jsonl", name.number + 1);
        fs::write(dir.path().join(&next), "").expect("writes");
        fs::write(dir.path().join("other.txt"), "not a segment").expect("writes");
        let (verdict, out, err) = run(dir.path(), Mode::Strict);
        assert_eq!(verdict, Verdict::Same, "{out}{err}");
        assert!(out.contains(&format!("segments    {count}, ")), "{out}");
        assert!(out.contains("without a word"), "{out}");
        assert!(err.contains(&format!("{next}: the file is empty; it was left out")), "{err}");

        let only = segments(dir.path()).expect("lists").swap_remove(1);
        let (verdict, out, _) = run(&only, Mode::Strict);
        assert_eq!(verdict, Verdict::Same);
        assert!(out.contains("began       at the checkpoint after step "), "{out}");
    }

    #[test]
    fn a_trace_of_which_nothing_can_be_replayed_is_no_success() {
        let dir = TempDir::new().expect("temp");
        let mut life = Life::new(5);
        let first = life.fx.as_slice();
        let mut sink = Sink::flight(dir.path(), MIN_BUDGET, header(&life), first).expect("starts");
        record(&mut sink, &mut life, 3000);
        sink.close("stopped", &life.daemon);
        let path = segments(dir.path()).expect("lists").swap_remove(1);
        let text = fs::read_to_string(&path).expect("reads");
        let kept = text.lines().filter(|line| !line.starts_with(r#"{"rec":"checkpoint""#));
        fs::write(&path, kept.collect::<Vec<_>>().join("\n")).expect("writes");
        let (verdict, out, _) = run(&path, Mode::Strict);
        assert_eq!(verdict, Verdict::Unreadable);
        assert!(out.contains("nothing could be replayed"), "{out}");
    }

    #[test]
    fn it_stops_after_the_step_that_is_named_and_shows_the_last_ones() {
        let dir = TempDir::new().expect("temp");
        let file = recorded(&dir, 300);
        let (verdict, out, _) =
            ask(&Replay { file: file.clone(), until: "120".parse().ok(), ..Replay::default() });
        assert_eq!(verdict, Verdict::Same, "{out}");
        assert!(out.contains("steps       121: 121 compared"), "{out}");
        assert!(out.contains("stopped     after step 120, as was asked; the last steps:"), "{out}");
        assert!(out.contains("\n      120 ") && !out.contains("\n      100 "), "20 of them: {out}");
        let (_, out, _) = ask(&Replay { file, until: "1000".parse().ok(), ..Replay::default() });
        assert!(out.contains("stopped     never: the trace has no step 1000\n"), "{out}");
    }

    #[test]
    fn the_life_of_a_step_is_named_where_there_is_more_than_one() {
        let dir = TempDir::new().expect("temp");
        let path = recorded(&dir, 100);
        let one = fs::read_to_string(&path).expect("reads");
        let (head, rest) = one.split_once("\"seed\":\"").expect("a seed");
        // The same steps in a life of another seed: the first digest differs, or an effect does.
        let two = format!("{one}{head}\"seed\":\"{:016x}{}", 99, &rest[16..]);
        fs::write(&path, two.replacen("\"n\":80,", "\"n\":x,", 1)).expect("writes");
        let (verdict, _, err) = run(&path, Mode::Strict);
        assert_eq!(verdict, Verdict::Differs);
        let step = err.lines().find(|line| line.starts_with("error: ")).expect("it is said");
        assert!(step.contains(" of life 2 (line "), "{step}");
        assert!(err.contains("), life 1: no record of a trace: "), "{err}");
        let (_, out, _) =
            ask(&Replay { file: path, until: "200".parse().ok(), events_only: true, ..Replay::default() });
        assert!(out.contains("stopped     never: the trace has no step 200 in any life\n"), "{out}");
    }

    #[test]
    fn it_stops_at_the_step_of_the_life_that_is_named() {
        let dir = TempDir::new().expect("temp");
        let file = dir.path().join("two.jsonl");
        let life = |seed| crate::trace::input::tests::recorded(seed, 60);
        fs::write(&file, life(6) + &life(7)).expect("writes");
        let until =
            |step: &str| ask(&Replay { file: file.clone(), until: step.parse().ok(), ..Replay::default() }).1;
        assert!(
            until("2/40").contains("stopped     after step 40 of life 2, as was asked"),
            "{}",
            until("2/40")
        );
        assert!(until("40").contains("stopped     after step 40, as was asked"), "{}", until("40"));
        assert!(until("3/40").contains("never: the trace has no step 40 of life 3\n"), "{}", until("3/40"));
        let new = dir.path().join("new.jsonl");
        let asked =
            Replay { file: file.clone(), until: "2/5".parse().ok(), rebase: true, ..Replay::default() };
        let (verdict, out, err) = ask(&Replay { out: Some(new), ..asked });
        assert_eq!((verdict, err.as_str()), (Verdict::Same, ""));
        assert!(out.contains("steps       67: 67 with the effects that were recorded"), "{out}");
    }

    #[test]
    fn digests_that_cannot_be_compared_are_not_counted_as_compared() {
        let dir = TempDir::new().expect("temp");
        let path = recorded(&dir, 300);
        let text = fs::read_to_string(&path).expect("reads");
        fs::write(&path, text.replacen("\"n\":150,", "\"n\":x,", 1)).expect("writes");
        let (_, out, _) = run(&path, Mode::Strict);
        assert!(out.contains("digests     8 compared, 2 not for want of a checkpoint\n"), "{out}");
    }

    #[test]
    fn damage_is_said_and_what_is_left_is_compared() {
        let dir = TempDir::new().expect("temp");
        let path = recorded(&dir, 300);
        let text = fs::read_to_string(&path).expect("reads");
        let broken = text.replacen("\"n\":150,", "\"n\":15\u{fffd}0,", 1);
        fs::write(&path, &broken[..broken.len() - 20]).expect("writes");
        let (verdict, out, err) = run(&path, Mode::Strict);
        assert_eq!(verdict, Verdict::Same, "{out}{err}");
        assert!(
            out.contains("steps       300: 150 compared, 150 not replayed for want of a checkpoint"),
            "{out}"
        );
        assert!(out.contains("gaps        1, with 1 step; went on at a checkpoint 0 times"), "{out}");
        assert!(out.contains("as far as the trace allows to compare"), "{out}");
        assert!(err.contains("step 150 is missing; that is taken as a gap"), "{err}");
        assert!(err.contains("broken off after "), "{err}");
    }

    #[test]
    fn a_rebased_trace_is_one_of_this_core_and_never_replaces_a_file() {
        let dir = TempDir::new().expect("temp");
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/traces/compat/1.1.jsonl");
        assert_eq!(run(&kept, Mode::Strict).0, Verdict::Differs);
        let new = dir.path().join("new.jsonl");
        let asked = Replay { file: kept, rebase: true, out: Some(new.clone()), ..Replay::default() };
        let (verdict, out, err) = ask(&asked);
        assert_eq!((verdict, err.as_str()), (Verdict::Same, ""), "{out}");
        assert!(out.contains("put in      5 answers to what traces of that format do not tell\n"), "{out}");
        assert!(out.contains("first       step 0 (line 2): 2 effects were recorded and 3 produced"), "{out}");
        let (verdict, out, _) = run(&new, Mode::Strict);
        assert_eq!(verdict, Verdict::Same);
        assert!(out.ends_with("result      the core does what was recorded\n"), "{out}");
        let (verdict, _, err) = ask(&asked);
        assert_eq!(verdict, Verdict::Unreadable);
        assert!(err.contains("exists already: name a file that does not"), "{err}");
    }
}
