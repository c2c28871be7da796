//! What is seen of a flight recorder while it records, and what is said of its troubles.

use super::queue::Pushed;
use super::tests::life::Life;
use super::tests::{header, record};
use super::*;
use longshore_core::trace::{Mode, Reader, Record, Replay, Report};
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;
use tracing::{Level, Metadata};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::{Layer, Registry};

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
        let (report, last) = replayed(&all(tap.draw().await.expect("drawn")));
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
    let drawn = sink.tap().expect("a flight recorder").draw().await.expect("drawn");
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

#[test]
#[cfg(target_os = "linux")] // It has a device that is always full.
fn a_disk_that_refuses_again_and_again_is_told_of_once() {
    let queue = Arc::new(Queue::default());
    let full = OpenOptions::new().append(true).open("/dev/full").expect("opens");
    let (warnings, theirs) = (Warnings::default(), Arc::clone(&queue));
    let subscriber = Registry::default().with(warnings.clone());
    let writer = std::thread::spawn(move || {
        tracing::subscriber::with_default(subscriber, || {
            Writer::new(Output::File, Some(full)).run(&theirs);
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
