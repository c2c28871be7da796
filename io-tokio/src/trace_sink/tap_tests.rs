//! What is seen of a flight recorder while it records, and what is said of its troubles.

use super::queue::Pushed;
use super::segments::MOST_SEGMENTS;
use super::tests::life::Life;
use super::tests::{header, record};
use super::*;
use crate::trace::input::tests::{gzip, zstd};
use longshore_core::trace::{Mode, Reader, Record, Replay, Report};
use std::fmt::{self, Write as _};
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;
use tracing::field::Field;
use tracing::{Level, Metadata};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::{Layer, Registry};

/// What a recorder gives that is refused nothing.
async fn draw(tap: &Tap) -> Drawn {
    let (drawn, refusal) = tap.draw().await.expect("drawn");
    assert_eq!(refusal, None);
    drawn
}

fn all(drawn: Drawn) -> Vec<u8> {
    drawn.flat_map(|lines| lines.expect("reads")).collect()
}

/// Replays it strictly; returns the report and the number of the last step.
fn replayed(trace: &[u8]) -> (Report, Option<StepNumber>) {
    let report = Replay::new(Mode::Strict).run(Reader::new(trace).expect("a header")).expect("replays");
    let records = Reader::new(trace).expect("a header");
    let last = records.filter_map(|record| match record.expect("a record") {
        Record::Step(step) => Some(step.n),
        _ => None,
    });
    (report, last.last())
}

#[tokio::test]
async fn what_is_drawn_at_any_moment_ends_with_the_last_step_and_replays() {
    let dir = TempDir::new().expect("temp");
    let mut life = Life::new(4);
    let first = life.fx.as_slice();
    let mut sink = Sink::flight(dir.path(), MIN_BUDGET, header(&life), first).expect("starts");
    let tap = sink.tap().expect("a flight recorder");
    let mut segments_seen = 0;
    for steps in [0, 1, 3, 1000, 2500, 7, 2500, 2500, 1] {
        record(&mut sink, &mut life, steps);
        let (report, last) = replayed(&all(draw(&tap).await));
        assert_eq!((last, report.gaps, report.skipped), (Some(life.n), 0, 0));
        assert_eq!(report.compared, report.steps);
        segments_seen = report.segments;
    }
    assert!(segments_seen > 2, "{segments_seen}");
    sink.close("stopped", &life.daemon);
    assert!(tap.draw().await.is_err(), "nobody records any more");
}

#[tokio::test]
async fn what_is_drawn_stays_whole_while_its_segments_go() {
    let dir = TempDir::new().expect("temp");
    let mut life = Life::new(5);
    let first = life.fx.as_slice();
    let mut sink = Sink::flight(dir.path(), MIN_BUDGET, header(&life), first).expect("starts");
    record(&mut sink, &mut life, 2000);
    let n = life.n;
    let drawn = draw(&sink.tap().expect("a flight recorder")).await;
    let before = segments(dir.path()).expect("lists");
    while segments(dir.path()).expect("lists").contains(&before[0]) {
        record(&mut sink, &mut life, 500);
    }
    let (report, last) = replayed(&all(drawn));
    assert_eq!((last, report.steps, report.compared), (Some(n), n + 1, n + 1));
}

#[test]
fn of_a_directory_come_whole_lines_of_whole_segments() {
    let dir = TempDir::new().expect("temp");
    for seed in [6, 7] {
        let mut life = Life::new(seed);
        let first = life.fx.as_slice();
        let mut sink = Sink::flight(dir.path(), MIN_BUDGET, header(&life), first).expect("starts");
        record(&mut sink, &mut life, 300);
    }
    // The first process was killed within a line, and another one before its first.
    let killed = segments(dir.path()).expect("lists").swap_remove(0);
    let text = fs::read(&killed).expect("reads");
    fs::write(&killed, &text[..text.len() - 20]).expect("writes");
    fs::write(dir.path().join("flight-0000000008.jsonl"), "").expect("writes");
    fs::write(dir.path().join("flight-0000000009.jsonl"), "{\"rec\":\"header\",\"form").expect("writes");
    fs::write(dir.path().join("flight-0000000010.jsonl"), "something else\nof two lines\n").expect("writes");
    let (report, last) = replayed(&all(Drawn::of_dir(dir.path()).expect("reads")));
    assert_eq!((report.segments, report.lives, last), (2, 2, Some(300)));
    assert_eq!((report.steps, report.compared, report.torn), (601, 601, None));
}

/// Somebody packed the segments of a recorder that had ended, and then it was started again.
#[test]
fn segments_that_were_packed_are_given_too_and_count_for_numbers_and_room() {
    let dir = TempDir::new().expect("temp");
    let mut life = Life::new(6);
    let mut sink = Sink::flight(dir.path(), MIN_BUDGET, header(&life), life.fx.as_slice()).expect("starts");
    record(&mut sink, &mut life, 6000);
    sink.close("stopped", &life.daemon);
    let plain = all(Drawn::of_dir(dir.path()).expect("reads"));
    let found = segments(dir.path()).expect("lists");
    assert!(found.len() > 2, "{found:?}");
    for (n, path) in found.iter().enumerate() {
        let text = fs::read(path).expect("reads");
        let (packed, end) = match n % 3 {
            0 => (gzip(&text), "gz"),
            1 => (zstd(&text), "zst"),
            // It is there twice, and half of the copy is.
            _ => (gzip(&text[..text.len() / 2]), "gz"),
        };
        fs::write(path.with_extension(format!("jsonl.{end}")), packed).expect("writes");
        if n % 3 < 2 {
            fs::remove_file(path).expect("removes");
        }
    }
    assert!(all(Drawn::of_dir(dir.path()).expect("reads")) == plain);
    let size = |path: &PathBuf| fs::metadata(path).map_or(0, |meta| meta.len());
    // A pipe and a directory that are called as segments are none.
    let odd = |number: u64| dir.path().join(SegmentName::new(number).to_string());
    fs::create_dir(odd(1 << 40)).expect("makes");
    rustix::fs::mkfifoat(rustix::fs::CWD, odd(1 << 41), rustix::fs::Mode::RUSR).expect("makes");

    let next = found.len() as u64 + 1;
    let mut life = Life::new(7);
    let mut sink = Sink::flight(dir.path(), MIN_BUDGET, header(&life), life.fx.as_slice()).expect("starts");
    record(&mut sink, &mut life, 12_000);
    sink.close("stopped", &life.daemon);
    let after = segments(dir.path()).expect("lists");
    assert!(after.iter().all(|path| !path.to_string_lossy().contains("jsonl.")), "they made room: {after:?}");
    assert!(after.iter().all(|path| *path >= odd(next)), "{after:?}");
    assert!(after.iter().map(size).sum::<u64>() <= MIN_BUDGET);
    let [one, other] = [1 << 40, 1 << 41].map(SegmentName::new);
    let odd = [format!("{one} is a directory and no file"), format!("{other} is a named pipe and no file")];
    let said =
        || -> Vec<String> { absent(dir.path()).expect("lists").iter().map(ToString::to_string).collect() };
    let [it, them] = ["; what was in it is missing", "; what was in them is missing"];
    let odd = odd.map(|odd| odd + it);
    assert_eq!(said(), odd);
    let [one, other] = [1, 2].map(|n: usize| after[n].file_name().expect("a name").display().to_string());
    fs::remove_file(&after[1]).expect("removes");
    assert_eq!(said(), [&[format!("{one} is not there{it}")][..], &odd].concat());
    fs::remove_file(&after[2]).expect("removes");
    let both = format!("{one} to {other} are not there (2 segments){them}");
    assert_eq!(said(), [&[both][..], &odd].concat());
}

/// A disk that is full takes a name and no byte. Each try once left an empty segment, and each of those took the place of one that had something.
#[test]
fn a_segment_of_which_nothing_could_be_written_is_taken_back() {
    let dir = TempDir::new().expect("temp");
    let mut flight = Segments::new(dir.path(), MIN_BUDGET, MIN_BUDGET / 4);
    for _ in 0..2 * MOST_SEGMENTS {
        let file = flight.create().expect("makes");
        assert!(flight.is_newest(&file).expect("looks"));
        flight.take_back();
    }
    let file = flight.create().expect("makes");
    let found = segments(dir.path()).expect("lists");
    assert!(found.len() == 1 && found[0].ends_with("flight-0000000001.jsonl"), "{found:?}");
    fs::rename(&found[0], dir.path().join("elsewhere")).expect("moves");
    assert!(!flight.is_newest(&file).expect("looks"));
    fs::write(&found[0], "another file").expect("writes");
    assert!(!flight.is_newest(&file).expect("looks"));
}

/// What is asked for while nothing can be recorded comes with the reason.
#[tokio::test]
async fn while_the_disk_refuses_that_is_said_with_what_is_there() {
    let temp = TempDir::new().expect("temp");
    let dir = temp.path().join("trace");
    fs::write(&dir, "").expect("writes");
    let mut life = Life::new(4);
    let mut sink = Sink::flight(&dir, MIN_BUDGET, header(&life), life.fx.as_slice()).expect("starts");
    let tap = sink.tap().expect("a flight recorder");
    record(&mut sink, &mut life, 3);
    let refused = loop {
        match tap.draw().await {
            Ok((_, Some(refusal))) => break refusal,
            Ok((_, None)) => record(&mut sink, &mut life, 1),
            Err(error) => panic!("{error}: what is there is given"),
        }
    };
    assert!(refused.why.contains("no directory stands where") && refused.since <= jiff::Timestamp::now());
    fs::remove_file(&dir).expect("removes");
    let failed = life.n;
    let drawn = loop {
        record(&mut sink, &mut life, 1);
        match tap.draw().await.expect("drawn") {
            (drawn, None) => break drawn,
            (_, Some(refusal)) => assert_eq!(refusal, refused, "since then"),
        }
        assert!(life.n < failed + 10_000, "it is tried again when time has passed");
    };
    record(&mut sink, &mut life, 5);
    let before = all(drawn).len();
    let (report, last) = replayed(&all(draw(&tap).await));
    assert!(before > 0 && report.compared >= 5);
    assert_eq!(last, Some(life.n));

    fs::remove_dir_all(&dir).expect("removes");
    let (drawn, refusal) = tap.draw().await.expect("drawn");
    assert_eq!(all(drawn).len(), 0);
    assert!(refusal.is_some_and(|refusal| refusal.why.contains("was removed or moved away")));
}

/// Counts what is logged, from warnings on.
#[derive(Clone, Default)]
struct Warnings(Arc<AtomicUsize>);

impl<S: tracing::Subscriber> Layer<S> for Warnings {
    fn enabled(&self, what: &Metadata<'_>, _: Context<'_, S>) -> bool {
        *what.level() <= Level::WARN
    }

    fn on_event(&self, _: &tracing::Event<'_>, _: Context<'_, S>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Keeps the texts of warnings.
#[derive(Clone, Default)]
struct Texts(Arc<Mutex<String>>);

impl<S: tracing::Subscriber> Layer<S> for Texts {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        event.record(&mut |field: &Field, value: &dyn fmt::Debug| {
            if field.name() == "message" {
                writeln!(self.0.lock().expect("no panic"), "{value:?}").expect("writes to memory");
            }
        });
    }
}

#[test]
#[cfg(target_os = "linux")] // It has a device that is always full.
fn what_is_refused_at_the_end_is_not_said_to_be_tried_again() {
    let queue = Queue::default();
    let full = OpenOptions::new().append(true).open("/dev/full").expect("opens");
    assert!(matches!(queue.push(b"line\n", 0, None, false), Pushed::Taken));
    queue.close();
    let texts = Texts::default();
    tracing::subscriber::with_default(Registry::default().with(texts.clone()), || {
        Writer::new(Output::File("/dev/full".into()), Some(full)).run(&queue);
    });
    let said = texts.0.lock().expect("no panic").clone();
    assert_eq!(said, "the end of the trace cannot be written; the steps from here on are missing in it\n");
}

#[test]
#[cfg(target_os = "linux")] // It has a device that is always full.
fn a_disk_that_refuses_again_and_again_is_told_of_once() {
    let queue = Arc::new(Queue::default());
    let full = OpenOptions::new().append(true).open("/dev/full").expect("opens");
    let (warnings, theirs) = (Warnings::default(), Arc::clone(&queue));
    let subscriber = Registry::default().with(warnings.clone());
    let writer = std::thread::spawn(move || {
        tracing::subscriber::with_default(subscriber, || {
            Writer::new(Output::File("/dev/full".into()), Some(full)).run(&theirs);
        });
    });
    let mut refused = 0;
    while refused < 3 {
        if let Pushed::Failed(_) = queue.push(b"line\n", 0, None, false) {
            refused += 1;
        }
        std::thread::yield_now();
    }
    queue.close();
    writer.join().expect("no panic");
    assert_eq!(warnings.0.load(Ordering::Relaxed), 1);
}
