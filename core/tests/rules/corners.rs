//! The world that the rules are tried in reaches every corner, and what breaks a rule in it is made small.

use longshore_core::config::Config;
use longshore_core::effect::{Effect, Fact};
use longshore_core::rng::Seed;
use longshore_core::script::{Input, Runner, Seeded, World, effect_label, shrink};
use std::collections::{BTreeMap, BTreeSet};

/// What must happen somewhere in the histories that the rules are tried on.
const CORNERS: &[&str] = &[
    "claim all",
    "claim named",
    "claim only",
    "claim all-but",
    "one",
    "is per-runtime",
    "is duplicate",
    "is handed back",
    "is unusable",
    "run fresh",
    "known",
    "messages",
    "usage",
    "pin",
    "complete",
    "fail",
    "cancel-ack",
    "is late",
    "is refused",
    "is usage late",
    "is usage lost",
    "is ending server",
    "is ending stop",
    "is ending prepare timeout",
    "is ending idle",
    "is ending too long",
    "fail idle_watchdog",
    "fail timeout",
    "is gone",
    "close-input",
    "end",
    "kill",
    "drop-idle",
    "is stopping deregistering",
    "exit stopped",
    "exit unauthorized",
    "exit restarting",
    "scan",
    "collectable",
    "collect",
    "maintain",
    "is collected",
    "orphans",
    "lease",
    "reported complete",
    "reported fail",
    "reported cancel-ack",
    "late taken",
    "resolve",
    "wait-directory",
    "is parked",
    "is unparked",
    "is awaiting slot",
    "fail local_directory_error",
    "keep claimed",
    "keep launched",
    "keep owes complete",
    "keep owes fail",
    "keep owes cancel-ack",
    "keep owes nothing",
    "is recovered",
    "is recovered slot",
    "run attached",
];

fn corner(effect: &Effect) -> Vec<String> {
    let label = effect_label(effect);
    let words: Vec<&str> = label
        .split(' ')
        .filter(|word| !word.starts_with('#') && !word.contains("..") && word.parse::<u64>().is_err())
        .collect();
    let mut corners: Vec<String> = (1..=words.len().min(4)).map(|n| words[..n].join(" ")).collect();
    if label.starts_with("is reported") {
        corners.push(format!("reported {}", words.get(2).copied().unwrap_or_default()));
    }
    corners
}

#[test]
fn a_failing_script_is_made_small() {
    // Stands for a bug: a second task in a row is reported as complete.
    let fails = |cfg: &Config, seed: u64, script: &[Input]| {
        let mut runner = Runner::new(cfg.clone(), Seed(seed)).expect("settings are in bounds");
        let mut reported = 0;
        for input in script {
            let effects = runner.take(input);
            reported += effects.iter().filter(|e| effect_label(e).starts_with("complete")).count();
        }
        reported > 1
    };
    let mut tried = 0;
    for seed in 0..40 {
        let mut choose = Seeded::new(seed);
        let cfg = World::config(&mut choose);
        let mut runner = Runner::new(cfg.clone(), Seed(seed)).expect("settings are in bounds");
        runner.play(&mut choose, 400);
        let script = runner.into_script();
        if !fails(&cfg, seed, &script) {
            continue;
        }
        tried += 1;
        let small = shrink(&cfg, Seed(seed), &script, &mut |script| fails(&cfg, seed, script));
        assert!(fails(&cfg, seed, &small), "it still fails");
        // A look and a registration, then two whole tasks, perhaps one behind the other in a directory of the user.
        assert!(small.len() <= 48, "{} lines of {}", small.len(), script.len());
    }
    assert!(tried > 3);
}

#[test]
fn the_world_reaches_every_corner() {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for seed in 0..600 {
        let mut choose = Seeded::new(seed);
        let cfg = World::config(&mut choose);
        let mut runner = Runner::new(cfg, Seed(seed)).expect("a world's settings are in bounds");
        let mut late = Vec::new();
        for _ in 0..700 {
            let Some(input) = runner.next(&mut choose) else { break };
            for effect in runner.take(&input) {
                match effect {
                    Effect::Fact { fact: Fact::ReportLate { claim } } => late.push(*claim),
                    Effect::Fact { fact: Fact::Reported { claim, .. } } if late.contains(claim) => {
                        seen.insert("late taken".into(), 1);
                    }
                    _ => {}
                }
                for corner in corner(effect) {
                    *seen.entry(corner).or_default() += 1;
                }
            }
        }
    }
    let missing: BTreeSet<_> = CORNERS.iter().filter(|corner| !seen.contains_key(**corner)).collect();
    assert!(missing.is_empty(), "never reached: {missing:?}");
}

#[test]
fn the_world_reaches_every_way_to_claim_and_every_answer_of_the_gate() {
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let mut choose = Seeded::new(seed);
        let cfg = World::config(&mut choose);
        let mut runner = Runner::new(cfg, Seed(seed)).expect("a world's settings are in bounds");
        for _ in 0..300 {
            let wakeup = runner.daemon.next_wakeup().map(|(at, _)| at);
            let Some((now, event)) = runner.world.next(&mut choose, wakeup) else { break };
            let labels: Vec<String> = runner.feed(now, event).iter().map(effect_label).collect();
            seen.extend(
                labels.into_iter().map(|l| l.split_once(" ws-").map_or(l.clone(), |(l, _)| l.into())),
            );
        }
    }
    let mut wanted: Vec<&str> = vec!["is held off", "claim-over all 1", "claim-over named"];
    wanted.extend(["gate server update granted", "gate server update busy", "gate demotion granted"]);
    wanted.extend(["gate self update granted", "gate reload granted", "gate reload busy"]);
    let missing: Vec<_> = wanted.iter().filter(|label| !seen.contains(**label)).collect();
    assert!(missing.is_empty(), "never reached: {missing:?}");
}
