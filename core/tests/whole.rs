//! The whole daemon in a world that goes wrong in every way: no rule is ever broken, and once everything works again it
//! comes to rest.

use longshore_core::config::Config;
use longshore_core::rng::Seed;
use longshore_core::script::{Bytes, Choose, Input, Runner, Seeded, World, input_label, replay, shrink};
use proptest::prelude::{ProptestConfig, any};
use proptest::test_runner::{TestCaseError, TestRunner};
use std::fmt::Write;

/// Events of one case at most.
const STEPS: usize = 400;

/// How many cases are tried; `LONGSHORE_CASES` raises it.
fn cases() -> u32 {
    #[expect(clippy::disallowed_methods, reason = "a test's settings, not the core's")]
    let asked = std::env::var("LONGSHORE_CASES").ok().and_then(|n| n.parse().ok());
    asked.unwrap_or(256)
}

fn broken(cfg: &Config, seed: Seed, script: &[Input]) -> Option<String> {
    let runner = replay(cfg, seed, script, true).expect("a world's settings are in bounds");
    runner.violations().first().map(ToString::to_string)
}

/// A failing script, as small as it gets, with the rule that it breaks.
fn story(cfg: &Config, seed: Seed, script: &[Input]) -> String {
    let small = shrink(cfg, seed, script, &mut |script| broken(cfg, seed, script).is_some());
    let verdict = std::panic::catch_unwind(|| broken(cfg, seed, &small))
        .unwrap_or_else(|_| Some("the daemon's own check panicked".into()));
    let mut text = format!("{}\nsettings: {cfg:?}\nseed {}\n", verdict.unwrap_or_default(), seed.0);
    for input in &small {
        writeln!(text, "{:>9} ms  {}", input.now().mono.as_millis(), input_label(input))
            .expect("a String takes everything");
    }
    text
}

fn check(choose: &mut dyn Choose, seed: Seed) -> Result<(), String> {
    let cfg = World::config(choose);
    let mut script = Vec::new();
    let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut runner = Runner::new(cfg.clone(), seed).expect("a world's settings are in bounds");
        play(&mut runner, choose, &mut script)
    }));
    match played {
        Ok(false) => Ok(()),
        Ok(true) | Err(_) => Err(story(&cfg, seed, &script)),
    }
}

/// Plays and heals; keeps what was fed even if the daemon panics. Returns whether a rule is broken.
fn play(runner: &mut Runner, choose: &mut dyn Choose, script: &mut Vec<Input>) -> bool {
    for _ in 0..STEPS {
        let Some(input) = runner.next(choose) else { break };
        script.push(input.clone());
        runner.take(&input);
        if !runner.violations().is_empty() {
            return true;
        }
    }
    runner.heal();
    !runner.violations().is_empty()
}

#[test]
fn every_rule_holds_in_every_history() {
    let config = ProptestConfig {
        cases: cases(),
        // Bytes shrink badly; the script that they stand for shrinks well.
        max_shrink_iters: 0,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let bytes = proptest::collection::vec(any::<u8>(), 200..2400);
    TestRunner::new(config)
        .run(&(any::<u64>(), bytes), |(seed, bytes)| {
            check(&mut Bytes::new(&bytes), Seed(seed)).map_err(TestCaseError::fail)
        })
        .unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn every_rule_holds_for_many_seeds() {
    for seed in 0..u64::from(cases()) {
        if let Err(story) = check(&mut Seeded::new(seed), Seed(seed)) {
            panic!("seed {seed}: {story}");
        }
    }
}
