//! Traces of each version of the format that there was can still be read, replayed and checked: `tests/traces/compat/`.

#![expect(clippy::disallowed_methods, reason = "a test reads files, the core does not")]

use longshore_core::trace::{
    Audit, FORMAT, Mode, Place, Reader, Rebase, Record, Replay, Report, Salvage, Version,
};
use std::fs;
use std::path::Path;

fn kept(minor: u32) -> Vec<u8> {
    let name = Version { minor, ..FORMAT }.to_string();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/traces/compat").join(name + ".jsonl");
    fs::read(&path).unwrap_or_else(|error| {
        panic!("{}: {error}; each version of the format needs a trace that is kept", path.display())
    })
}

/// With the header, which a reader gives apart.
fn records(lines: &[u8]) -> Vec<Record> {
    let reader = Reader::new(lines).expect("a header");
    let header = Record::Header(Box::new(reader.header().clone()));
    std::iter::once(header).chain(reader.map(|record| record.expect("a record"))).collect()
}

fn replay(lines: &[u8], mode: Mode) -> Report {
    Replay::new(mode).run(Reader::new(lines).expect("a header")).expect("replays")
}

fn rebased(lines: &[u8]) -> (Vec<u8>, longshore_core::trace::Rebased) {
    let (mut rebase, mut out) = (Rebase::default(), Vec::new());
    for record in records(lines) {
        rebase.record(0, record, &mut out).expect("rebases");
    }
    (out, rebase.finish())
}

fn audited(lines: &[u8]) -> Audit {
    let mut audit = Audit::default();
    for record in records(lines) {
        audit.record(Place::default(), record).expect("is of use");
    }
    audit
}

#[test]
fn every_version_can_be_read_replayed_and_checked() {
    for minor in 0..=FORMAT.minor {
        let lines = kept(minor);
        let all = records(&lines);
        let Some(Record::Header(header)) = all.first() else { panic!("a header comes first") };
        assert_eq!(header.format, Version { minor, ..FORMAT }, "the file says what its name says");
        let steps = all.iter().filter(|record| matches!(record, Record::Step(_))).count() as u64;
        assert!(steps > 100, "1.{minor}: {steps}");

        let mut salvage = Salvage::default();
        salvage.begin();
        for (line, text) in (1..).zip(lines.split(|byte| *byte == b'\n')) {
            salvage.line(Place { line, ..Place::default() }, text);
        }
        salvage.finish();
        assert!(salvage.by_ref().map(|(_, record)| record).eq(all), "1.{minor}");
        assert!(salvage.troubles().is_empty(), "1.{minor}: {:?}", salvage.troubles());

        let report = replay(&lines, Mode::EventsOnly);
        assert_eq!((report.steps, report.skipped), (steps, 0), "1.{minor}");

        let (ours, report) = rebased(&lines);
        assert_eq!((report.lives, report.steps, report.skipped), (1, steps, 0), "1.{minor}");
        let again = replay(&ours, Mode::Strict);
        assert_eq!((again.compared, again.skipped), (again.steps, 0), "1.{minor}");
        let audit = audited(&ours);
        assert_eq!(audit.findings(), [], "1.{minor}");
        assert_eq!((audit.audited().whole, audit.audited().divergences), (again.steps, 0), "1.{minor}");
        let done = |lines: &[u8]| String::from_utf8_lossy(lines).matches(r#""call":"complete""#).count();
        assert!(done(&ours) > 0, "1.{minor}: tasks get to their end in the rebased trace, too");
    }
}

#[test]
fn the_newest_version_replays_strictly() {
    let lines = kept(FORMAT.minor);
    let report = replay(&lines, Mode::Strict);
    assert_eq!((report.compared, report.skipped), (report.steps, 0));
    let audit = audited(&lines);
    assert_eq!((audit.findings(), audit.audited().whole), (&[][..], report.steps));
    assert_eq!(audit.blind().count(), 0);
}
