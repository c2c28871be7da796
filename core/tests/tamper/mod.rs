//! Shows the rules a history with one change, and looks whether they notice.

use longshore_core::effect::{ApiCall, Effect};
use longshore_core::event::Event;
use longshore_core::id::OpId;
use longshore_core::observe::{Rules, Step};
use longshore_core::rng::Seed;
use longshore_core::script::{Runner, Seeded, World, effect_label};
use longshore_core::time::Instant;

/// What an observer is shown instead of the truth. Returns whether it was changed.
pub(crate) type Tamper = fn(&mut Event, &mut Vec<Effect>) -> bool;

/// Histories that are tried at most, and their length.
const SEEDS: u64 = 300;
const STEPS: usize = 300;

/// A number that the daemon itself never comes to.
pub(crate) const FORGED: OpId = OpId(9_000_000);

/// Leaves out what starts so.
pub(crate) fn hide(effects: &mut Vec<Effect>, prefix: &str) -> bool {
    let before = effects.len();
    effects.retain(|effect| !effect_label(effect).starts_with(prefix));
    effects.len() < before
}

/// Shows an effect a second time, under another number.
pub(crate) fn twice(effects: &mut Vec<Effect>, prefix: &str) -> bool {
    let Some(mut copy) = find(effects, prefix) else { return false };
    if let Effect::Api { op, .. } | Effect::Fs { op, .. } | Effect::Run { op, .. } = &mut copy {
        *op = FORGED;
    }
    effects.push(copy);
    true
}

/// The first effect that starts so.
pub(crate) fn find(effects: &[Effect], prefix: &str) -> Option<Effect> {
    effects.iter().find(|effect| effect_label(effect).starts_with(prefix)).cloned()
}

/// A request that nobody sent.
pub(crate) fn forged(call: ApiCall) -> Effect {
    Effect::Api { op: FORGED, call, deadline: Instant::from_millis(u64::MAX) }
}

/// Adds the early end of a request that is sent in this step.
pub(crate) fn cut_short(effects: &mut Vec<Effect>, prefix: &str) -> bool {
    let Some(Effect::Api { op, .. }) = find(effects, prefix) else { return false };
    effects.push(Effect::Cancel { op });
    true
}

/// Whether the rule is broken, first or together with others, by some history that is shown with one change.
pub(crate) fn noticed(tamper: Tamper, wanted: &str) -> bool {
    (0..SEEDS).any(|seed| {
        let mut choose = Seeded::new(seed);
        let cfg = World::config(&mut choose);
        let mut runner = Runner::new(cfg.clone(), Seed(seed)).expect("a world's settings are in bounds");
        let mut rules = Rules::new(&cfg);
        let mut changed = false;
        show(&mut rules, &runner, None, runner.effects());
        for _ in 0..STEPS {
            let wakeup = runner.daemon.next_wakeup().map(|(at, _)| at);
            let Some((now, mut event)) = runner.world.next(&mut choose, wakeup) else { break };
            let mut effects = runner.feed(now, event.clone()).to_vec();
            changed = changed || tamper(&mut event, &mut effects);
            show(&mut rules, &runner, Some(&event), &effects);
            if !rules.violations().is_empty() {
                break;
            }
        }
        assert!(changed || rules.violations().is_empty(), "a true history breaks no rule");
        rules.violations().iter().any(|violation| violation.rule == wanted)
    })
}

/// Shows the rules a step of the daemon: what is said to have happened, and what it is said to want.
pub(crate) fn show(rules: &mut Rules, runner: &Runner, event: Option<&Event>, effects: &[Effect]) {
    let wakeup = runner.daemon.next_wakeup().map(|(at, _)| at);
    rules.observe(&Step { now: runner.world.now(), event, effects, view: runner.daemon.view(), wakeup });
}
