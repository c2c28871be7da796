//! Traces for the tests of the commands that tell of them.

use crate::trace_sink::Sink;
use crate::trace_sink::tests::life::Life;
use crate::trace_sink::tests::{header, record};
use longshore_core::trace::{Reader, Record};
use std::fs::File;
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
