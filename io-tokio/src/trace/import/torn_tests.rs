//! A log that tells less, as it was rotated, cut or torn, is never said to break a rule.

use super::build::tests::all;
use super::clock::Clocks;
use super::heard::Heard;
use super::line::Line;
use super::said::Said;
use jiff::civil::date;
use jiff::tz::TimeZone;
use longshore_core::trace::{Audit, Place};

/// What a daemon with two slots might write in fourteen seconds: five tasks, and a stop. Made up.
const WRITTEN: &str = include_str!("../../../../tests/fixtures/daemon.log");

/// Of the pairs of lines that are not about the same task one in so many is tried by default.
const SAMPLE: usize = 29;

/// The logs that are made to tell less, each with a name: as it is; two processes, and tasks that are given again in the same
/// process; the same at a level that leaves out most lines.
fn logs() -> [(&'static str, Vec<String>); 3] {
    let written: Vec<String> = WRITTEN.lines().map(str::to_owned).collect();
    let again = WRITTEN.replace("000000a3", "000000a2").replace("000000a5", "000000a4");
    let next = again.replace("01:23:", "01:33:").replace("000000a4", "000000a1");
    let twice: Vec<String> = again.lines().chain(next.lines()).map(str::to_owned).collect();
    let quiet = twice.iter().filter(|line| line.contains(" INF ")).cloned().collect();
    [("as written", written), ("given again", twice), ("without details", quiet)]
}

fn read(log: &[String]) -> Vec<Heard> {
    let lines = log.iter().map(|line| Line::read(line).expect("a line of the log"));
    lines.zip(1..).map(|(line, nth)| Heard::of(&line, Said::by(&line), nth)).collect()
}

/// What a log breaks, and how many steps of it were judged.
fn broken(lines: &[Heard]) -> (Vec<String>, u64) {
    let mut audit = Audit::default();
    let clocks = Clocks::new(vec![(0, date(2026, 3, 1))], TimeZone::UTC);
    for record in all(lines, &clocks) {
        audit.record(Place::default(), record).expect("every record is in its place");
    }
    let one = |found: &longshore_core::trace::Finding| {
        let violation = &found.violation;
        format!("{} at step {} of life {}: {}", violation.rule, violation.step, found.life, violation.story)
    };
    (audit.findings().iter().map(one).collect(), audit.audited().logged)
}

/// Leaves out lines, and holds what is left to the rules.
fn hold(name: &str, log: &[String], lines: &[Heard], without: &[usize]) {
    let kept = lines.iter().enumerate().filter(|(at, _)| !without.contains(at));
    let (found, _) = broken(&kept.map(|(_, line)| line.clone()).collect::<Vec<_>>());
    let missing: Vec<&str> = without.iter().map(|at| log[*at].as_str()).collect();
    assert!(found.is_empty(), "{name}: without\n{}\nit is said: {found:?}", missing.join("\n"));
}

#[test]
fn the_logs_are_sound_and_have_what_the_rules_are_about() {
    for (name, log) in logs() {
        let (found, judged) = broken(&read(&log));
        assert_eq!(found, Vec::<String>::new(), "{name}");
        assert!(judged > 30, "{name}: {judged} steps");
    }
}

#[test]
fn no_line_that_is_missing_is_blamed() {
    for (name, log) in logs() {
        let lines = read(&log);
        for at in 0..lines.len() {
            hold(name, &log, &lines, &[at]);
        }
    }
}

#[test]
fn no_log_that_begins_later_or_ends_earlier_is_blamed() {
    for (name, log) in logs() {
        let lines = read(&log);
        for at in 1..lines.len() {
            for part in [&lines[at..], &lines[..at]] {
                let (found, _) = broken(part);
                assert!(found.is_empty(), "{name}: cut at\n{}\nit is said: {found:?}", log[at]);
            }
        }
    }
}

/// Every pair of lines for which `wanted` holds: by its number, and whether both are about the same task.
fn pairs(wanted: impl Fn(usize, bool) -> bool) -> usize {
    let (mut nth, mut tried) = (0, 0);
    for (name, log) in logs() {
        let lines = read(&log);
        for one in 0..lines.len() {
            for other in one + 1..lines.len() {
                nth += 1;
                let task = lines[one].get("task");
                if wanted(nth, task.is_some() && task == lines[other].get("task")) {
                    hold(name, &log, &lines, &[one, other]);
                    tried += 1;
                }
            }
        }
    }
    tried
}

#[test]
fn no_pair_of_lines_that_are_missing_is_blamed() {
    let tried = pairs(|nth, same| same || nth % SAMPLE == 0);
    assert!(tried > 500, "{tried} pairs");
}

#[test]
#[ignore = "all pairs take ten seconds; a sample is tried otherwise"]
fn no_pair_of_lines_that_are_missing_is_blamed_whichever_they_are() {
    let tried = pairs(|_, _| true);
    assert!(tried > 10_000, "{tried} pairs");
}
