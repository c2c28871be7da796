//! What breaks a rule in a trace is made small, and printed as a test that compiles, runs, and fails for a core with the bug.

#![cfg(feature = "canary")]
#![expect(clippy::disallowed_methods, reason = "a test of files; the core itself reads none")]

#[path = "printed/inv_120.rs"]
mod printed;

use longshore_core::config::Config;
use longshore_core::rng::Seed;
use longshore_core::script::{
    Bug, Case, Input, Runner, Search, Seeded, Start, World, held_to, held_to_with, regression_test,
};
use longshore_core::trace::{Header, Reader, encode};
use std::cell::Cell;
use std::path::Path;

/// A recorded life of a core with a bug.
fn recorded(seed: u64, bug: Bug, steps: usize) -> (Config, Vec<u8>) {
    let mut choose = Seeded::new(seed);
    let cfg = World::config(&mut choose);
    let start = Start { bug: Some(bug), ..Start::new(cfg.clone(), Seed(seed)) };
    let mut runner = Runner::begin(&start).expect("settings are in bounds");
    let mut lines = Vec::new();
    encode::header(&mut lines, &Header::new("script", cfg.clone(), Seed(seed), start.now)).expect("encodes");
    encode::start(&mut lines, start.now, runner.effects()).expect("encodes");
    let mut n = 0;
    while n < steps as u64 {
        // Only one life.
        let Some(Input::Event { now, event }) = runner.next(&mut choose) else { continue };
        n += 1;
        runner.feed(now, event.clone());
        encode::step(&mut lines, n, now, &event, runner.effects()).expect("encodes");
        if runner.world.has_exited() {
            break;
        }
    }
    (cfg, lines)
}

fn found(lines: &[u8], bug: Option<Bug>, rule: Option<&str>) -> Option<Case> {
    let mut search = Search::new(rule);
    if let Some(bug) = bug {
        search = search.with(bug);
    }
    let reader = Reader::new(lines).expect("a trace");
    let header = longshore_core::trace::Record::Header(Box::new(reader.header().clone()));
    let mut records = std::iter::once(header).chain(reader.map(|record| record.expect("a record")));
    records.any(|record| search.record(record));
    search.finish()
}

/// The first life in which the bug breaks a rule, at once or only when all is well again.
fn first(bug: Bug, rule: &str, healed: bool) -> (Case, Vec<u8>) {
    (0..200)
        .find_map(|seed| {
            let (_, lines) = recorded(seed, bug, 400);
            let case = found(&lines, Some(bug), Some(rule)).filter(|case| case.healed == healed);
            Some((case?, lines))
        })
        .expect("the bug breaks the rule in some life")
}

#[test]
fn a_case_is_made_small_and_plain_and_printed_as_a_test() {
    let (case, lines) = first(Bug::LeaseTwice, "INV-120", false);
    assert!(found(&lines, None, Some("INV-120")).is_none(), "it is the bug that breaks it");
    let small = case.shrunk(&|| false, &mut |_| ());
    assert!(small.script.len() * 3 < case.script.len(), "{} of {}", small.script.len(), case.script.len());
    assert_eq!((small.start.seed, &small.start.config), (Seed(0), &Config::default()));
    let text = regression_test(&small, case.script.len()).expect("prints");
    for plain in
        ["\"task\":\"t1\"", "\"runtime\":\"r1\"", "\"start\":{\"mono\":0,\"wall\":0}", "\"config\":{}"]
    {
        assert!(text.contains(plain), "{plain}: {text}");
    }
    is_there("tests/printed/inv_120.rs", &text);
    // The page about traces begins with the one and ends with the other.
    is_there(
        "../tests/traces/broken/a-lease-is-refreshed-twice.jsonl",
        &String::from_utf8(lines).expect("text"),
    );
}

fn is_there(path: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("LONGSHORE_BLESS").is_some() {
        std::fs::write(&path, text).expect("writes");
    }
    let there = std::fs::read_to_string(&path).expect("reads");
    assert!(there == text, "{}: LONGSHORE_BLESS=1 writes it anew", path.display());
}

/// The printed file is a module of this test, so it compiles, and its test runs with the core as it is.
#[test]
fn the_printed_test_fails_for_the_same_rule_while_the_core_has_the_bug() {
    assert_eq!(held_to(printed::TRACE, "INV-120").expect("a trace"), []);
    let broken = held_to_with(printed::TRACE, "INV-120", Bug::LeaseTwice).expect("a trace");
    assert!(broken.iter().all(|found| found.rule == "INV-120") && !broken.is_empty(), "{broken:?}");
}

#[test]
fn what_is_broken_only_when_all_is_well_again_is_found_and_made_small() {
    let (case, _) = first(Bug::NeverCompletes, "I4", true);
    let small = case.shrunk(&|| false, &mut |_| ());
    assert!(small.healed && small.script.len() < case.script.len(), "{}", small.script.len());
    let text = String::from_utf8(small.trace().expect("plain data")).expect("text");
    let broken = held_to_with(&text, "I4", Bug::NeverCompletes).expect("a trace");
    assert!(!broken.is_empty());
}

#[test]
fn whoever_has_no_time_gets_the_best_so_far() {
    let (case, _) = first(Bug::LeaseTwice, "INV-120", false);
    let lines = case.script.len() as u64;
    // Within the first look at it, while lines are left out, and while what is left is made plain.
    for most in [1, lines, 5 * lines, 9 * lines, 40 * lines] {
        let (asked, mut seen) = (Cell::new(0), 0);
        let stop = || {
            asked.set(asked.get() + 1);
            asked.get() >= most
        };
        let small = case.shrunk(&stop, &mut |_| seen += 1);
        assert!(small.script.len() <= case.script.len());
        assert_eq!(seen > 0, most > 3 * lines, "{most} steps");
        assert!(asked.get() < most + 50, "it was asked {} times more", asked.get() - most);
        let text = String::from_utf8(small.trace().expect("plain data")).expect("text");
        let broken = held_to_with(&text, "INV-120", Bug::LeaseTwice).expect("a trace");
        assert!(broken.iter().any(|found| found.story == small.story), "{most} steps: {}", small.story);
    }
}
