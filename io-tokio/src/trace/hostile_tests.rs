//! Traces that somebody made on purpose, with numbers as large as there can be.

use super::test_traces::told;
use super::{Exit, TraceCommand};
use clap::Parser;
use longshore_core::config::Config;
use longshore_core::event::Event;
use longshore_core::rng::Seed;
use longshore_core::time::Now;
use longshore_core::trace::{Header, Origin, encode};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const MOST: u64 = u64::MAX;

/// A life whose header says that it goes on after this step, before which so many are missing; then with steps of these numbers, and gaps.
fn life(seed: u64, from: Option<(u64, u64)>, steps: &[u64], gaps: &[(u64, u64)]) -> Vec<u8> {
    let now = Now::default();
    let mut header = Header::new("test", Config::default(), Seed(seed), now);
    header.from = from.map(|(n, lost)| Origin { lost, ..Origin::new(n, 0) });
    let mut lines = Vec::new();
    encode::header(&mut lines, &header).expect("encodes");
    for n in steps {
        encode::step(&mut lines, *n, now, &Event::stop(), &[]).expect("encodes");
    }
    for (n, lost) in gaps {
        encode::gap(&mut lines, *n, *lost).expect("encodes");
        encode::step(&mut lines, MOST, now, &Event::stop(), &[]).expect("encodes");
    }
    lines
}

#[derive(Parser)]
struct Line {
    #[command(subcommand)]
    command: TraceCommand,
}

/// What a command says of the trace `t`; it must come to a verdict.
fn said(line: &str, dir: &Path) -> String {
    let command = Line::try_parse_from(line.split(' ')).unwrap_or_else(|error| panic!("{error}")).command;
    let (_, out, err) = told(|out, err| {
        let exit = match &command {
            TraceCommand::Show(asked) => super::show(asked, dir, out, err)?,
            TraceCommand::Stats(asked) => super::stats(asked, dir, out, err)?,
            TraceCommand::Export(asked) => super::export(asked, dir, out, err)?,
            TraceCommand::Render(asked) => super::render(asked, dir, out, err)? == Exit::Code(0),
            TraceCommand::Check(asked) => super::check(asked, dir, out, err)?.code() < 2,
            TraceCommand::Replay(asked) => super::replay(asked, dir, out, err)?.code() < 2,
            other => panic!("{other:?} is not tried"),
        };
        Ok(exit)
    });
    assert!(!(out.is_empty() && err.is_empty()), "{line} says something");
    format!("{out}{err}")
}

#[test]
fn gaps_of_more_steps_than_there_can_be_are_told_and_not_summed_up_past_all_bounds() {
    let gap = [(1, MOST)];
    let hole = [life(1, None, &[0], &gap), life(2, None, &[0], &gap)].concat();
    let origin =
        [life(1, Some((MOST, MOST)), &[MOST], &[]), life(2, Some((MOST, MOST)), &[], &[(1, MOST)])].concat();
    let steps = [life(1, None, &[1, MOST], &[]), life(2, Some((MOST - 1, 0)), &[MOST], &[])].concat();
    for (name, text) in [("hole", hole), ("origin", origin), ("steps", steps)] {
        let dir = TempDir::new().expect("temp");
        fs::write(dir.path().join("t"), text).expect("writes");
        let all =
            ["show t", "stats t", "stats --json t", "export --chrome t", "render t -o t.svg", "check t"];
        for line in all.into_iter().chain(["replay t", "replay --rebase t", "replay --events-only t"]) {
            let said = said(&format!("trace {line}"), dir.path());
            if line == "stats --json t" && name != "steps" {
                assert!(said.contains(&format!("\"missing\": {MOST}")), "{name}: {said}");
            }
        }
        if name != "steps" {
            let picture = fs::read_to_string(dir.path().join("t.svg")).expect("a picture");
            assert!(picture.contains(&format!("steps that are missing {MOST}")), "{name}");
        }
    }
}
