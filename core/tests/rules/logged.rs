//! What a log tells of a sound life breaks no rule, and each rule notices the log that it is there for.

use longshore_core::config::Config;
use longshore_core::effect::{Effect, Fact, Keep, PhaseName, ReportKind, StopPhase};
use longshore_core::event::{ApiReply, ClaimKey, Event, Offer, Recovered, RunEnd, RunEvent, RunOutcome};
use longshore_core::id::{EnvRoot, OpId, RuntimeId, TaskId};
use longshore_core::observe::{LogRules, Step, Violation, catalog, needs_no_more_than_a_log};
use longshore_core::reason::FailReason;
use longshore_core::rng::Seed;
use longshore_core::script::{Runner, Seeded, World};
use proptest::prelude::{ProptestConfig, any, prop_assert, prop_assert_eq, proptest};
use std::collections::BTreeSet;

/// What a log has of the effects of a step: no requests.
fn told(effects: &[Effect]) -> Vec<Effect> {
    let is_told = |effect: &&Effect| {
        matches!(
            effect,
            Effect::Fact { .. } | Effect::Keep { .. } | Effect::Forget { .. } | Effect::Runtime { .. }
        )
    };
    effects.iter().filter(is_told).cloned().collect()
}

/// How much a life told, and what was found in it.
#[derive(Default)]
struct Life {
    launched: usize,
    reported: usize,
    /// Claims that came after a stop.
    late: usize,
    found: Vec<Violation>,
}

/// A sound life as a log tells it. Steps before `from` are not told. With `short`, ids are as short as those that a log has.
fn life(seed: u64, steps: usize, from: u64) -> Life {
    let mut choose = Seeded::new(seed);
    let cfg = World::config(&mut choose);
    let mut runner = Runner::new(cfg.clone(), Seed(seed)).expect("settings are in bounds");
    if seed % 4 == 3 {
        runner.world.swarm(&mut choose);
    }
    let (mut life, mut rules, mut n, mut stopping) = (Life::default(), LogRules::new(&cfg), 0, false);
    for _ in 0..steps {
        let Some(input) = runner.next(&mut choose) else { break };
        runner.take_with(&input, &mut |step: Option<&Step<'_>>| {
            let Some(step) = step else {
                // Another process: another life.
                life.found.extend_from_slice(rules.violations());
                (rules, stopping) = (LogRules::new(&cfg), false);
                return;
            };
            n += 1;
            let effects = told(step.effects);
            for effect in &effects {
                match effect {
                    Effect::Fact { fact: Fact::Phase { phase: PhaseName::Running, .. } } => {
                        life.launched += 1
                    }
                    Effect::Fact { fact: Fact::Reported { .. } } => life.reported += 1,
                    _ => {}
                }
            }
            match step.event {
                Some(Event::Stop { .. }) => stopping = true,
                Some(Event::Api { r: Ok(ApiReply::Claimed { offers, .. }), .. }) if stopping => {
                    life.late += offers.len();
                }
                _ => {}
            }
            if n > from {
                rules.observe(n, step.event, &effects);
            }
        });
    }
    life.found.extend_from_slice(rules.violations());
    life
}

#[test]
fn many_sound_lives_are_clean_and_have_what_the_rules_are_about() {
    let mut all = Life::default();
    for seed in 0..400 {
        let life = life(seed, 400, 0);
        assert!(life.found.is_empty(), "seed {seed}: {:?}", life.found);
        all.launched += life.launched;
        all.reported += life.reported;
        all.late += life.late;
    }
    assert!(
        all.launched > 1_000 && all.reported > 500 && all.late > 20,
        "{} {} {}",
        all.launched,
        all.reported,
        all.late
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_sound_life_is_clean_from_whichever_step_on(seed in any::<u64>(), from in 0..300_u64) {
        let found = life(seed, 400, from).found;
        prop_assert!(found.is_empty(), "{found:?}");
    }
}
