//! What must hold however often the daemon is killed: at any step, between any two effects, and started again with what it wrote down. Each property
//! is looked up in the server's rows and among the processes, without the rules that the daemon itself is held to, in a few hundred
//! worlds; and each of them sees a daemon that is told nothing of what it wrote down.

use longshore_core::sim::{Fault, Property, SimConfig, World};
use std::time::Duration;

/// A world in which the daemon is killed often, in one of three also with a network that loses what is sent and what is answered.
fn killed(seed: u64) -> SimConfig {
    let mut cfg =
        SimConfig { horizon: Duration::from_mins(3), steps: 3_000, rules: false, ..SimConfig::calm(seed) };
    cfg.faults.set(Fault::Crash, 10 + 4 * u16::try_from(seed % 40).expect("small"));
    if seed.is_multiple_of(3) {
        cfg.faults.set(Fault::LostReply, 60);
        cfg.faults.set(Fault::NotSent, 80);
    }
    cfg
}

/// What is wrong with a world, if something is; and the lives of the daemon and the runs in it.
fn look(cfg: SimConfig, property: Property) -> (Result<(), String>, u32, usize) {
    let (horizon, steps) = (cfg.horizon, cfg.steps);
    let mut world = World::new(cfg);
    let mut wrong = Ok(());
    let mut healed = false;
    while wrong.is_ok() {
        let bad = world.elapsed() < horizon && world.steps() < steps;
        if !bad && !std::mem::replace(&mut healed, true) {
            world.heal();
        }
        if (!bad && world.pending().is_none()) || world.steps() > 10 * steps || !world.step() {
            break;
        }
        wrong = world.holds(property);
    }
    // Other properties have tests of their own; here only this one counts.
    let rested = world.liveness().map_err(|failure| failure.to_string());
    let wrong = wrong.and_then(|()| world.holds_at_rest(property));
    let wrong = wrong.and(rested);
    (wrong, world.lives(), world.runs())
}

fn holds(property: Property) {
    let (mut lives, mut runs) = (0, 0);
    for seed in 0..300 {
        let (found, lived, ran) = look(killed(seed), property);
        assert!(found.is_ok(), "seed {seed}: {found:?}");
        (lives, runs) = (lives + lived, runs + ran);
    }
    assert!(lives > 1_500 && runs > 3_000, "only {lives} lives and {runs} runs: too little happens");
}

#[test]
fn inv_exactly_one_terminal() {
    holds(Property::OneTerminal);
}

#[test]
fn inv_no_second_run() {
    holds(Property::NoSecondRun);
}

#[test]
fn inv_no_orphan() {
    holds(Property::NoOrphan);
}

#[test]
fn inv_no_outcome_lost() {
    holds(Property::NoOutcomeLost);
}

#[test]
fn inv_no_message_lost_or_doubled() {
    holds(Property::MessagesOnce);
}

/// Each property by itself sees what a daemon does that forgets.
#[cfg(feature = "canary")]
#[test]
fn each_property_notices_a_ledger_that_is_not_read() {
    use longshore_core::sim::Canary;
    let all = [
        (Property::OneTerminal, "reports"),
        (Property::NoSecondRun, "does what that of claim"),
        (Property::NoOrphan, "nobody follows the agent"),
        (Property::NoOutcomeLost, "came to"),
        (Property::MessagesOnce, "the server has"),
    ];
    for (property, story) in all {
        let forgets = |seed| SimConfig { canary: Some(Canary::LosesLedger), ..killed(seed) };
        let seen =
            (0..300).find_map(|seed| look(forgets(seed), property).0.err().filter(|it| it.contains(story)));
        assert!(seen.is_some(), "{property:?} notices nothing");
    }
}

/// Two more bugs, of the network's client: the properties that they break are the only ones that see them.
#[cfg(feature = "canary")]
#[test]
fn a_property_notices_its_own_bugs_and_no_others() {
    use longshore_core::sim::Canary;
    let finds = |bug, property| {
        let with = |seed: u64| SimConfig { canary: Some(bug), ..killed(3 * seed) };
        // The property alone: what else is wrong with the world is not asked.
        (0..60).any(|seed| {
            let mut world = World::new(with(seed));
            let _ = world.safety();
            world.heal();
            let _ = world.liveness();
            world.holds_at_rest(property).is_err()
        })
    };
    assert!(finds(Canary::RetriesPosts, Property::MessagesOnce), "a post that is sent twice");
    assert!(!finds(Canary::RetriesPosts, Property::OneTerminal), "its task has one end");
    assert!(finds(Canary::LosesReports, Property::NoOutcomeLost), "a report that is lost");
    assert!(finds(Canary::LosesReports, Property::OneTerminal), "a report that is lost");
    assert!(!finds(Canary::LosesReports, Property::NoSecondRun), "its run is not repeated");
}
