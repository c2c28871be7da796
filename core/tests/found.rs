//! Traces of histories that once broke a rule: `tests/traces/found/*.jsonl`, each with a note that says which one. None does any more.

#![expect(clippy::disallowed_types, reason = "a test reads files, the core does not")]

use longshore_core::event::Event;
use longshore_core::script::{Input, replay};
use longshore_core::trace::{Reader, Record};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

fn found() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/traces/found");
    let files = fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut files: Vec<_> = files.map(|file| file.expect("lists").path()).collect();
    files.retain(|file| file.extension().is_some_and(|kind| kind == "jsonl"));
    files.sort();
    files
}

/// What a trace says: its note, and what is broken when it is played and everything works again.
fn played(trace: impl BufRead) -> (Option<String>, Vec<String>) {
    let reader = Reader::new(trace).expect("a trace");
    let head = reader.header().clone();
    let (mut note, mut script) = (None, Vec::new());
    for record in reader {
        match record.expect("a whole record") {
            Record::Step(step) => {
                let now = step.now();
                let event: Option<Event> = step.event;
                script.extend(event.map(|event| Input::Event { now, event }));
            }
            Record::Note(text) => note = note.or(Some(text.text)),
            _ => {}
        }
    }
    let runner = replay(&head.config, head.seed, &script, true).expect("settings in bounds");
    (note, runner.violations().iter().map(ToString::to_string).collect())
}

#[test]
fn what_was_found_once_stays_mended() {
    for file in found() {
        let (note, broken) = played(BufReader::new(File::open(&file).expect("opens")));
        let note = note.unwrap_or_else(|| panic!("{}: a note must say what it shows", file.display()));
        assert!(broken.is_empty(), "{}: {note}: {broken:?}", file.display());
    }
}

/// A failure of the simulator is saved in the form that is read here. The bug is one of the world, so the core's part of it is sound.
#[cfg(feature = "canary")]
#[test]
fn what_the_simulator_saves_can_be_played() {
    use longshore_core::sim::{Canary, SimConfig, run, shrink};
    let with = |seed| SimConfig { canary: Some(Canary::LosesReports), ..SimConfig::swarm(seed) };
    let seed = (0..1000).find(|seed| run(&with(*seed)).failure.is_some()).expect("the canary is found");
    let small = shrink(&with(seed)).expect("it fails again");
    let trace = small.trace().expect("plain data");
    let (note, broken) = played(trace.as_slice());
    let note = note.expect("a note");
    assert!(note.starts_with(&format!("seed {seed}, rule {}: ", small.failure.rule)), "{note}");
    assert!(!small.failure.script.is_empty() && broken.is_empty(), "{broken:?}");
}
