//! A life that is looked at from its middle on: what is said of it is true.

use super::harness::twice;
use longshore_core::observe::{Rules, Step};
use longshore_core::rng::Seed;
use longshore_core::script::{Runner, Seeded, World};
use std::collections::BTreeMap;

/// Each life is looked at from this many of its steps on.
const EVERY: usize = 23;

fn false_alarms(seeds: std::ops::Range<u64>, steps: usize) -> BTreeMap<&'static str, String> {
    let mut alarms = BTreeMap::new();
    for seed in seeds {
        let mut choose = Seeded::new(seed);
        let cfg = World::config(&mut choose);
        let mut runner = Runner::new(cfg.clone(), Seed(seed)).expect("settings are in bounds");
        if seed % 4 == 3 {
            runner.world.swarm(&mut choose);
        }
        let mut from: Vec<Rules> = Vec::new();
        for n in 0..steps {
            let Some(input) = runner.next(&mut choose) else { break };
            let mut crashed = false;
            runner.take_with(&input, &mut |step: Option<&Step<'_>>| match step {
                Some(step) => from.iter_mut().for_each(|rules| rules.observe(step)),
                None => crashed = true,
            });
            if crashed {
                // Another life.
                from.clear();
            }
            for rules in &from {
                for broken in rules.violations() {
                    alarms.entry(broken.rule).or_insert_with(|| format!("seed {seed}: {broken}"));
                }
            }
            if n % EVERY == 0 {
                from.push(Rules::from_the_middle(&cfg, n as u64));
            }
        }
    }
    alarms
}

#[test]
fn nothing_untrue_is_said_of_a_life_whose_beginning_is_not_known() {
    let alarms = false_alarms(0..300, 400);
    assert!(alarms.is_empty(), "{alarms:#?}");
}

#[test]
#[ignore = "takes longer: a minute"]
fn nothing_untrue_is_said_of_many_lives() {
    let alarms = false_alarms(0..6_000, 500);
    assert!(alarms.is_empty(), "{alarms:#?}");
}

/// Who came late sees it, too, if the lease of a claim is asked for twice at once.
#[test]
fn what_happens_behind_the_middle_is_noticed() {
    let (mut tried, mut noticed) = (0, 0);
    for seed in 0..200 {
        let mut choose = Seeded::new(seed);
        let cfg = World::config(&mut choose);
        let mut runner = Runner::new(cfg.clone(), Seed(seed)).expect("settings are in bounds");
        runner.play(&mut choose, 60);
        let mut late = Rules::from_the_middle(&cfg, 60);
        for _ in 0..400 {
            let Some(input) = runner.next(&mut choose) else { break };
            let (mut told, mut crashed) = (false, false);
            runner.take_with(&input, &mut |step| {
                let Some(step) = step else {
                    crashed = true;
                    return;
                };
                let mut effects = step.effects.to_vec();
                told |= twice(&mut effects, "lease ");
                late.observe(&Step { effects: &effects, ..*step });
            });
            if told {
                tried += 1;
                noticed += usize::from(!late.violations().is_empty());
            }
            if told || crashed {
                break;
            }
        }
    }
    // Of claims that were taken before, it knows too little.
    assert!(noticed > 10 && noticed * 3 > tried, "{noticed} of {tried}");
}
