//! `longshore trace replay`: whether a recorded history comes out again.

use crate::trace_sink::segments;
use longshore_core::trace::{self, Mode, Reader, ReplayError, Report, TraceError};
use std::fs::{self, File};
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};

/// Bytes that are read at once.
const READ_BYTES: usize = 256 * 1024;

/// What a replay came to, for the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Everything that could be compared is the same.
    Same,
    /// The core does something else than was recorded.
    Differs,
    /// The trace cannot be read, or nothing in it can be replayed.
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
pub struct Replay {
    /// The trace, or the directory of a flight recorder
    pub file: PathBuf,
}

/// Replays a trace file, or all segments of a flight recorder's directory, and writes what came of it to `out`, and what went
/// wrong to `err`.
///
/// # Errors
/// If `out` or `err` cannot be written to.
pub fn replay(path: &Path, mode: Mode, out: &mut impl Write, err: &mut impl Write) -> io::Result<Verdict> {
    let files = match files(path) {
        Ok(files) => files,
        Err(error) => {
            writeln!(
                err,
                "error: {}: {error}; name a trace file, or a flight recorder's directory",
                path.display()
            )?;
            return Ok(Verdict::Unreadable);
        }
    };
    let single = files.len() == 1;
    let mut replay = trace::Replay::new(mode);
    for file in files {
        match segment(&mut replay, &file) {
            Ok(()) => {}
            // A segment may go while the daemon that records makes room, and one that it has just made is empty.
            Err(Broken::Open(error)) if !single && error.kind() == io::ErrorKind::NotFound => {}
            Err(Broken::Replay(ReplayError::Trace(error @ TraceError::Empty))) if !single => {
                writeln!(err, "{}: left out: {error}", file.display())?;
            }
            Err(Broken::Open(error)) => {
                writeln!(err, "error: {}: {error}", file.display())?;
                return Ok(Verdict::Unreadable);
            }
            Err(Broken::Replay(ReplayError::Diverged(what))) => {
                summary(replay.report(), out)?;
                writeln!(out, "result      the core does something else than was recorded")?;
                writeln!(err, "error: {}: {what}", file.display())?;
                return Ok(Verdict::Differs);
            }
            Err(Broken::Replay(error)) => {
                writeln!(err, "error: {}: {error}", file.display())?;
                return Ok(Verdict::Unreadable);
            }
        }
    }
    let report = replay.finish();
    summary(&report, out)?;
    let (verdict, text) = judge(&report, mode);
    writeln!(out, "result      {text}")?;
    Ok(verdict)
}

enum Broken {
    Open(io::Error),
    Replay(ReplayError),
}

fn segment(replay: &mut trace::Replay, file: &Path) -> Result<(), Broken> {
    let source = BufReader::with_capacity(READ_BYTES, File::open(file).map_err(Broken::Open)?);
    let reader = Reader::new(source).map_err(|error| Broken::Replay(error.into()))?;
    replay.segment(reader, |_| {}).map_err(Broken::Replay)
}

fn files(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !fs::metadata(path)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let files = segments(path)?;
    if files.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            "the directory has no segment of a flight recorder",
        ));
    }
    Ok(files)
}

fn judge(report: &Report, mode: Mode) -> (Verdict, &'static str) {
    let replayed = report.steps - report.skipped;
    match mode {
        _ if replayed == 0 && report.imported => (
            Verdict::Unreadable,
            "the trace was imported from the log of another daemon: no core recorded it, so there is nothing to replay",
        ),
        _ if replayed == 0 => (
            Verdict::Unreadable,
            "nothing could be replayed: no segment begins with a daemon's creation or has a checkpoint",
        ),
        Mode::EventsOnly => (Verdict::Same, "the events were replayed; nothing was to be compared"),
        Mode::Strict if report.compared == 0 => {
            (Verdict::Same, "the events were replayed; the trace has no effects to compare")
        }
        Mode::Strict if report.skipped > 0 => {
            (Verdict::Same, "the core does what was recorded, as far as the trace allows to compare")
        }
        Mode::Strict => (Verdict::Same, "the core does what was recorded"),
    }
}

fn summary(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let here = env!("CARGO_PKG_VERSION");
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
    writeln!(out, "digests     {} compared", report.digests)?;
    if report.gaps > 0 {
        writeln!(
            out,
            "gaps        {}, with {} steps; went on at a checkpoint {} times",
            report.gaps, report.lost, report.restored
        )?;
    }
    match &report.end {
        Some(why) => writeln!(out, "ended       {why}")?,
        None => writeln!(out, "ended       without a word: the daemon was killed, or still records")?,
    }
    if let Some(torn) = report.torn {
        writeln!(out, "torn        line {} of a segment is incomplete and was left out", torn.line)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace_sink::tests::life::Life;
    use crate::trace_sink::tests::{header, record};
    use crate::trace_sink::{MIN_BUDGET, Sink};
    use tempfile::TempDir;

    fn run(path: &Path, mode: Mode) -> (Verdict, String, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let verdict = replay(path, mode, &mut out, &mut err).expect("writes to memory");
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
        assert!(bad(&path).contains("the recording ended before it began"));
        fs::write(&path, "{\"rec\":\"step\"}\n").expect("writes");
        assert!(bad(&path).contains("line 1 is not the header of a trace"));
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
        fs::write(dir.path().join("flight-0000000999.jsonl"), "").expect("writes");
        fs::write(dir.path().join("other.txt"), "not a segment").expect("writes");
        let (verdict, out, err) = run(dir.path(), Mode::Strict);
        assert_eq!(verdict, Verdict::Same, "{out}{err}");
        assert!(out.contains(&format!("segments    {count}, ")), "{out}");
        assert!(out.contains("without a word"), "{out}");
        assert!(err.contains("left out: there is no complete first line"), "{err}");

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
}
