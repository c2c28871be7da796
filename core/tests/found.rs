//! Traces of histories that once broke a rule: `tests/traces/found/*.jsonl`, each with a note that says which one. None does any more.

#![expect(clippy::disallowed_types, reason = "a test reads files, the core does not")]

use longshore_core::effect::Effect;
use longshore_core::event::{ApiReply, Event, FsReply, Probed, Standing};
use longshore_core::script::{Addresses, Input, Runner, read_note, replay, untrue};
use longshore_core::time::Now;
use longshore_core::trace::{FORMAT, Reader, Record};
use std::collections::BTreeMap;
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

/// The same history for this version, which may ask for more than the one that the trace was made with did: looks at agent CLIs and custom runtimes,
/// which older traces do not have, are answered as they come.
struct Addressed {
    runner: Runner,
    script: Vec<Input>,
    addresses: Addresses,
}

impl Addressed {
    fn new(runner: Runner) -> Self {
        let mut addresses = Addresses::new();
        addresses.asked_here(runner.effects());
        Self { runner, script: Vec::new(), addresses }
    }

    fn feed(&mut self, now: Now, event: Event) {
        self.script.push(Input::Event { now, event: event.clone() });
        self.addresses.asked_here(self.runner.feed(now, event));
    }

    /// Answers what no line of an older trace answers.
    fn fill_in(&mut self, now: Now) {
        while let Some((op, label)) = self.addresses.take(&["probe", "profiles "]) {
            let works =
                |name: &str| Probed { provider: name.into(), standing: Standing::Works { version: 1 } };
            let event = if label.starts_with("probe") {
                let agents = ["claude", "codex", "opencode"].map(works).into();
                Event::Fs { op, r: Ok(FsReply::Probed { agents }) }
            } else {
                Event::Api { op, r: Ok(ApiReply::Profiles { signature: 1, count: 0 }) }
            };
            self.feed(now, event);
        }
    }

    fn line(&mut self, now: Now, mut event: Event, effects: &[Effect]) {
        self.fill_in(now);
        if self.addresses.translate(&mut event) {
            self.feed(now, event);
        }
        self.addresses.asked_there(effects);
    }
}

/// A trace, read.
struct Story {
    note: String,
    /// What the rules say when it is played and everything works again.
    broken: Vec<String>,
    /// What of it the server's rows show, with what it did and with what it should have done.
    untrue: [Option<&'static str>; 2],
    steps: usize,
}

fn played(trace: impl BufRead) -> Story {
    let reader = Reader::new(trace).expect("a trace");
    let head = reader.header().clone();
    let runner = Runner::new(head.config.clone(), head.seed).expect("settings in bounds");
    // A trace of this version needs no other addresses.
    let older = head.format.minor < FORMAT.minor;
    let (mut to, mut script) = (Addressed::new(runner), Vec::new());
    let (mut note, mut told, mut served) = (None, None, BTreeMap::new());
    for record in reader {
        match record.expect("a whole record") {
            Record::Step(step) => {
                let (now, effects) = (step.now(), step.effects.unwrap_or_default());
                let Some(event): Option<Event> = step.event else {
                    to.addresses.asked_there(&effects);
                    continue;
                };
                if let Some((of, deeds)) = told.take() {
                    assert!(
                        matches!(&event, Event::Api { op, .. } if *op == of),
                        "the note is for another line"
                    );
                    to.fill_in(now);
                    served.insert(if older { to.script.len() } else { script.len() }, deeds);
                }
                if older {
                    to.line(now, event, &effects);
                } else {
                    script.push(Input::Event { now, event });
                }
            }
            Record::Note(text) => {
                told = read_note(&text.text);
                note = note.or(Some(text.text));
            }
            _ => {}
        }
    }
    if older {
        script = to.script;
    }
    let runner = replay(&head.config, head.seed, &script, true).expect("settings in bounds");
    let shows =
        |served: &BTreeMap<_, _>| untrue(&head.config, head.seed, &script, served).map(|(rule, _)| rule);
    Story {
        note: note.expect("a note must say what it shows"),
        broken: runner.violations().iter().map(ToString::to_string).collect(),
        untrue: [shows(&served), shows(&BTreeMap::new())],
        steps: script.len(),
    }
}

#[test]
fn what_was_found_once_stays_mended() {
    for file in found() {
        let Story { note, broken, untrue, .. } = played(BufReader::new(File::open(&file).expect("opens")));
        assert!(broken.is_empty(), "{}: {note}: {broken:?}", file.display());
        assert_eq!(untrue, [None; 2], "{}: {note}", file.display());
    }
}

/// What only the server's rows show is made small and saved in the form that is read here: the trace shows the failure by itself, and does not if the
/// server did what its answers say. The bugs are of the world, so the core breaks no rule.
#[cfg(feature = "canary")]
fn made_small(of_each: usize) {
    use longshore_core::sim::{Canary, SimConfig, run, shrink};
    for (bug, rule) in [(Canary::LosesReports, "ONE-END"), (Canary::RetriesPosts, "TRANSCRIPT")] {
        let with = |seed| SimConfig { canary: Some(bug), ..SimConfig::swarm(seed) };
        let failing = (0..1_000).filter(|seed| run(&with(*seed)).failure.is_some());
        let mut short = 0;
        for seed in failing.take(of_each) {
            let small = shrink(&with(seed)).expect("it fails again");
            let story = played(small.trace().expect("plain data").as_slice());
            let wanted = format!("seed {seed}, rule {}: ", small.failure.rule);
            assert!(story.note.starts_with(&wanted), "{}", story.note);
            assert!(story.broken.is_empty(), "{bug:?}, seed {seed}: {:?}", story.broken);
            if small.alone {
                assert_eq!(story.untrue, [Some(rule), None], "{bug:?}, seed {seed}");
                short += usize::from(story.steps < 20);
            }
        }
        assert!(4 * short >= 3 * of_each, "{bug:?}: only {short} of {of_each} are shorter than 20 steps");
    }
}

#[cfg(feature = "canary")]
#[test]
fn what_only_the_rows_show_is_made_small_and_can_be_played() {
    made_small(1);
}

#[cfg(feature = "canary")]
#[test]
#[ignore = "takes longer: a minute"]
fn most_of_what_only_the_rows_show_is_made_small() {
    made_small(12);
}
