//! Traces for the tests of the commands that tell of them.

use crate::trace_sink::Sink;
use crate::trace_sink::tests::life::Life;
use crate::trace_sink::tests::{header, record};
use longshore_core::effect::Effect;
use longshore_core::event::Event;
use longshore_core::rng::Seed;
use longshore_core::script::{Runner, Seeded, World};
use longshore_core::time::Now;
use longshore_core::trace::{Header, Origin, Reader, Record, Step, encode};
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A recorded run of six tasks of different fates: completed, failed, cancelled, and reported while the server was down.
pub(super) fn six_tasks() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/traces/demo/six-tasks.jsonl")
}

/// A history in which a stop comes while tasks are prepared.
pub(super) fn stopped() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/traces/found/a-second-stop-made-it-longer.jsonl")
}

/// A life of the small world, recorded as a daemon does it.
pub(super) fn recorded(dir: &TempDir, seed: u64, steps: usize) -> PathBuf {
    let path = dir.path().join(format!("run-{seed}.jsonl"));
    let mut life = Life::new(seed);
    let mut sink = Sink::file(&path, header(&life), life.fx.as_slice()).expect("starts");
    record(&mut sink, &mut life, steps);
    sink.close("stopped", &life.daemon);
    path
}

/// A recording that begins at a checkpoint, after so many steps.
pub(super) fn from_the_middle(dir: &TempDir, seed: u64, before: u64, steps: u64) -> PathBuf {
    let mut life = Life::new(seed);
    for _ in 0..before {
        life.step();
    }
    let from = Some(Origin::new(before, life.daemon.digest()));
    let mut lines = Vec::new();
    encode::header(&mut lines, &Header { from, ..header(&life) }).expect("encodes");
    encode::checkpoint(&mut lines, before, &life.daemon).expect("encodes");
    for n in before + 1..=before + steps {
        let (now, event) = life.step();
        encode::step(&mut lines, n, now, &event, life.fx.as_slice()).expect("encodes");
    }
    let path = dir.path().join(format!("middle-{seed}.jsonl"));
    fs::write(&path, lines).expect("writes");
    path
}

/// A history of daemons that are killed and started again, so that tasks go on in the next life.
pub(super) fn over_lives(seed: u64) -> Vec<Record> {
    let mut choose = Seeded::new(seed);
    let config = World::config(&mut choose);
    let mut runner = Runner::new(config.clone(), Seed(seed)).expect("a world's settings are in bounds");
    let (mut records, mut lives, mut n, mut exited) = (Vec::new(), 0_u64, 0, false);
    let mut take = |now: Now, event: Option<&Event>, effects: &[Effect]| {
        if event.is_none() {
            let header = Header::new("script", config.clone(), Seed(seed + 1_000_000 * lives), now);
            records.push(Record::Header(Box::new(header)));
            (lives, n, exited) = (lives + 1, 0, false);
        }
        // The process has ended: nothing is recorded any more.
        if !exited {
            let Now { mono, wall, slept } = now;
            let (event, effects) = (event.cloned(), Some(effects.to_vec()));
            exited = matches!(effects.as_deref(), Some([.., Effect::Exit { .. }]));
            records.push(Record::Step(Step { n, mono, wall, slept, event, effects }));
        }
        n += 1;
    };
    take(runner.world.now(), None, runner.effects());
    for _ in 0..300 {
        let Some(input) = runner.next(&mut choose) else { break };
        runner.take_with(&input, &mut |step| {
            if let Some(step) = step {
                take(step.now, step.event, step.effects);
            }
        });
    }
    records
}

/// All records of a file, its header first.
pub(super) fn records(path: &Path) -> Vec<Record> {
    let reader = Reader::new(BufReader::new(File::open(path).expect("opens"))).expect("is a trace");
    let header = Record::Header(Box::new(reader.header().clone()));
    std::iter::once(header).chain(reader.map(|record| record.expect("reads"))).collect()
}

/// What a command writes, and what it returns.
pub(super) fn told(
    run: impl FnOnce(&mut dyn std::io::Write, &mut dyn std::io::Write) -> std::io::Result<bool>,
) -> (bool, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let done = run(&mut out, &mut err).expect("writes to memory");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (done, text(out), text(err))
}
