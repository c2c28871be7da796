use super::*;
use crate::trace_sink::tests::life::Life;
use crate::trace_sink::tests::{header, record};
use crate::trace_sink::{MIN_BUDGET, Sink};
use longshore_core::trace::{Mode, Reader, Replay};
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tracing::Subscriber;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::{Layer, Registry};

/// Keeps what is logged: a line each, with its fields.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl<S: Subscriber> Layer<S> for Log {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut log = self.0.lock().expect("no panic");
        event.record(&mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            write!(log, "{field}={value:?} ").expect("writes to memory");
        });
        log.push('\n');
    }
}

impl Log {
    /// What `during` logs.
    fn of(during: impl FnOnce()) -> Vec<String> {
        let log = Self::default();
        tracing::subscriber::with_default(Registry::default().with(log.clone()), during);
        let said = log.0.lock().expect("no panic");
        said.lines().map(str::to_owned).collect()
    }
}

fn batch(first: StepNumber) -> Batch {
    Batch { bytes: b"line\n".to_vec(), first, ..Batch::default() }
}

/// Writes a line, and says what there is to say of it.
fn write(writer: &mut Writer, first: StepNumber) -> Result<(), (StepNumber, WriteError)> {
    let written = writer.write(&batch(first));
    writer.tell(&written, false);
    written
}

fn made(path: &Path) -> File {
    OpenOptions::new().append(true).create_new(true).mode(0o600).open(path).expect("makes")
}

#[test]
fn a_file_that_is_removed_or_moved_is_closed_at_the_next_write_and_that_is_told_once() {
    for (gone, lost_from) in [(Gone::Removed, 0), (Gone::Moved, 7)] {
        let dir = TempDir::new().expect("temp");
        let [path, other] = ["run.jsonl", "other.jsonl"].map(|name| dir.path().join(name));
        let mut writer = Writer::new(Output::File(path.clone()), Some(made(&path)));
        let said = Log::of(|| {
            write(&mut writer, 1).expect("the file is there");
            match gone {
                Gone::Moved => fs::rename(&path, &other).expect("moves"),
                _ => fs::remove_file(&path).expect("removes"),
            }
            // Another file of the name is not the one that is recorded to.
            fs::write(&path, "mine").expect("writes");
            for _ in 0..3 {
                let (from, error) = write(&mut writer, 7).expect_err("it is gone");
                assert_eq!((from, error.to_string()), (lost_from, gone.to_string()));
                assert!(writer.file.is_none(), "it keeps no room on the disk");
            }
        });
        assert_eq!(said.len(), 1, "{said:?}");
        let file = format!("file={} ", path.display());
        assert!(said[0].contains(gone.warning(false)) && said[0].contains(&file), "{said:?}");
        assert_eq!(fs::read(&path).expect("reads"), b"mine");
        assert_eq!(fs::read(&other).ok().as_deref(), (gone == Gone::Moved).then_some(&b"line\n"[..]));
    }
}

#[test]
#[cfg(target_os = "linux")] // It has a device that is always full.
fn each_line_names_its_recording_and_a_removed_file_is_told_after_a_full_disk_too() {
    let temp = TempDir::new().expect("temp");
    let [dir, path] = ["trace", "run.jsonl"].map(|name| temp.path().join(name));
    fs::write(&dir, "").expect("writes");
    let full = || OpenOptions::new().append(true).open("/dev/full").expect("opens");
    let mut flight =
        Writer::new(Output::Flight(Segments::new(&dir, MIN_BUDGET, MIN_BUDGET / 4)), Some(full()));
    let mut whole = Writer::new(Output::File(path.clone()), Some(full()));
    let said = Log::of(|| {
        for _ in 0..2 {
            write(&mut flight, 3).expect_err("the disk is full");
            write(&mut whole, 3).expect_err("the disk is full");
            flight.file = Some(full());
        }
        (flight.file, whole.file) = (Some(made(&temp.path().join("segment"))), Some(made(&path)));
        write(&mut flight, 4).expect("there is room");
        fs::remove_file(&path).expect("removes");
        write(&mut whole, 4).expect_err("it is gone");
    });
    let (dir, file) = (format!("dir={} ", dir.display()), format!("file={} ", path.display()));
    let about: Vec<(&str, &str)> = vec![
        (warning(false), &dir),
        (warning(false), &file),
        ("the trace is written again, with a gap", &dir),
        (Gone::Removed.warning(false), &file),
    ];
    assert_eq!(said.len(), about.len(), "{said:?}");
    for (said, (what, place)) in said.iter().zip(about) {
        assert!(said.contains(what) && said.contains(place), "{said}");
    }
}

#[test]
fn what_to_do_follows_the_kind_of_the_error() {
    let of = |kind: ErrorKind| WriteError::Disk(kind.into()).remedy();
    assert_eq!(of(ErrorKind::StorageFull), Some("free some space"));
    assert_eq!(of(ErrorKind::PermissionDenied), Some("make the directory writable for this user"));
    assert_eq!(of(ErrorKind::AlreadyExists), None, "the recorder's text says it");
    assert_eq!(WriteError::Gone(Gone::Segment).remedy(), None, "there is room, and nothing to do");
}

/// A recorder of a file that goes away: what was lost with it is counted, whenever that is seen.
#[test]
fn with_a_removed_file_all_steps_are_lost_and_with_a_moved_one_those_after_it() {
    for moved in [false, true] {
        let dir = TempDir::new().expect("temp");
        let [path, other] = ["run.jsonl", "other.jsonl"].map(|name| dir.path().join(name));
        let mut life = Life::new(3);
        let mut sink = Sink::file(&path, header(&life), life.fx.as_slice()).expect("starts");
        record(&mut sink, &mut life, 40);
        while fs::metadata(&path).expect("is there").len() == 0 {
            std::thread::yield_now();
        }
        if moved {
            fs::rename(&path, &other).expect("moves");
        } else {
            fs::remove_file(&path).expect("removes");
        }
        while sink.lost.is_none() {
            record(&mut sink, &mut life, 1);
            std::thread::yield_now();
        }
        let closed = sink.close("stopped", &life.daemon);
        let gone = if moved { Gone::Moved } else { Gone::Removed };
        assert_eq!(closed.error.map(|causes| causes.to_string()), Some(gone.to_string()));
        assert!(!path.exists(), "nothing is made in its place");
        if moved {
            let text = fs::read(&other).expect("reads");
            let report = Replay::new(Mode::Strict).run(Reader::new(text.as_slice()).expect("a header"));
            let report = report.expect("replays");
            assert_eq!((report.gaps, report.steps + closed.lost), (0, closed.steps + 1));
        } else {
            assert_eq!(closed.lost, closed.steps + 1, "nothing is left");
        }
    }
}
