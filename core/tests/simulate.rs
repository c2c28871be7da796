//! Whole worlds in virtual time: every rule holds at every step, and in the end the server knows of each task what truly became of it.

use longshore_core::sim::{Fault, Mark, Marks, SimConfig, run, run_until, shrink};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

/// Runs the seeds, and tells the first failure made small, and all others in a line each. Returns what was met, and the steps.
fn sweep(seeds: std::ops::Range<u64>, make: impl Fn(u64) -> SimConfig) -> (Marks, u64) {
    let (mut marks, mut steps, mut failures) = (Marks::default(), 0, Vec::new());
    for seed in seeds {
        let cfg = make(seed);
        let outcome = run(&cfg);
        if let Some(failure) = &outcome.failure {
            failures.push(failure.to_string());
            if failures.len() == 1 {
                let small = shrink(&cfg).expect("the same seed fails again");
                let trace = String::from_utf8(small.trace().expect("plain data")).expect("JSON is text");
                let (faults, small) = (&small.faults, &small.failure);
                failures.push(format!("smaller, with {faults:?}: {small}\n{trace}"));
            }
        }
        marks.add(&outcome.marks);
        steps += outcome.steps;
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    (marks, steps)
}

#[test]
fn a_swarm_of_faults_breaks_no_rule_and_loses_nothing() {
    let (_, steps) = sweep(0..200, SimConfig::swarm);
    assert!(steps > 100_000, "only {steps} steps: the worlds are too quiet");
}

/// Worlds in which a long sweep once found something that a trace alone does not show: a runtime that came in the last seconds of the
/// rest was to be asked for before its first poll was due; and one that a trace shows too: a stop that a second request made longer.
#[test]
fn what_a_long_sweep_found_stays_mended() {
    let hours = Duration::from_hours(24);
    for seed in [2_657_702, 2_660_745] {
        sweep(seed..seed + 1, |seed| SimConfig { steps: 500, horizon: hours, ..SimConfig::swarm(seed) });
    }
    // What was refused a moment ago is not tried again because another entry of the late outbox was taken, nor is it held against a try that
    // was due before access was lost, or after a sleep.
    // And custom runtimes that are asked for in the very step in which the connection is reconciled are asked for again.
    // A first try to fail leftovers that finds nobody does not count, also if it had to wait for the credential.
    for seed in [10_023, 10_412, 10_437, 11_327, 12_506, 56_774] {
        sweep(seed..seed + 1, SimConfig::swarm);
    }
}

#[test]
fn the_same_seed_is_the_same_world() {
    for seed in 1000..1020 {
        let (first, again) = (run(&SimConfig::swarm(seed)), run(&SimConfig::swarm(seed)));
        assert_eq!(
            (first.digest, first.steps, first.lives),
            (again.digest, again.steps, again.lives),
            "seed {seed}"
        );
        assert!(first.failure.is_none(), "{}", first.failure.as_ref().expect("it failed"));
        let seen = run(&SimConfig { rules: false, record: true, ..SimConfig::swarm(seed) });
        assert_eq!(seen.digest, first.digest, "seed {seed}: who looks on changes nothing");
        assert_ne!(run(&SimConfig::swarm(seed + 1)).digest, first.digest);
    }
}

/// Says stop from the given time on that it is asked.
fn after(asked: u64) -> (impl Fn() -> bool, Rc<Cell<u64>>) {
    let count = Rc::new(Cell::new(0));
    let counted = Rc::clone(&count);
    let stop = move || {
        counted.set(counted.get() + 1);
        counted.get() >= asked
    };
    (stop, count)
}

/// A world that would take hours is asked for no more than one step once it is to stop; and in one that is at its end, the end is stopped, too.
#[test]
fn a_world_is_stopped_between_two_of_its_steps() {
    let long = SimConfig { steps: u64::MAX, horizon: Duration::from_hours(24 * 365), ..SimConfig::swarm(3) };
    for steps in [1, 2, 1_000] {
        let (stop, asked) = after(steps);
        let outcome = run_until(&long, &stop);
        assert!(outcome.stopped && outcome.failure.is_none());
        assert_eq!(asked.get(), steps, "it went on");
    }
    let (never, asked) = after(u64::MAX);
    let whole = run_until(&SimConfig::swarm(3), &never);
    assert_eq!((whole.stopped, whole.digest), (false, run(&SimConfig::swarm(3)).digest));
    let (stop, _) = after(asked.get());
    assert!(run_until(&SimConfig::swarm(3), &stop).stopped, "while it comes to rest");
}

#[test]
fn each_fault_alone_breaks_nothing() {
    for fault in Fault::ALL {
        let make = |seed| SimConfig {
            horizon: Duration::from_mins(3),
            steps: 2_000,
            ..SimConfig::only(*fault, seed)
        };
        let (_, steps) = sweep(2000..2020, make);
        assert!(steps > 4_000, "{fault}: only {steps} steps");
    }
}

#[test]
fn a_fault_has_one_name() {
    for fault in Fault::ALL {
        assert_eq!(Fault::named(fault.as_str()), Some(*fault));
    }
    assert_eq!(Fault::named("none"), None);
}

/// 20 000 worlds: minutes, in release.
#[test]
#[ignore = "takes a minute; faster with --release"]
fn a_long_sweep_meets_every_rare_situation() {
    let (marks, _) = sweep(10_000..13_000, SimConfig::swarm);
    let missing: Vec<_> = marks.missing().map(Mark::as_str).collect();
    assert!(missing.is_empty(), "never met: {missing:?}");
}

#[cfg(feature = "canary")]
mod canary {
    use super::after;
    use longshore_core::sim::{Canary, Failure, SimConfig, run, run_until, shrink_until};

    /// The first seed of 1 000 in which the bug shows.
    fn found(bug: Canary) -> Failure {
        let with = |seed| SimConfig { canary: Some(bug), ..SimConfig::swarm(seed) };
        let found = (0..1000).find_map(|seed| run(&with(seed)).failure);
        *found.unwrap_or_else(|| panic!("{bug:?} is never found: the sweep is blind"))
    }

    /// Whenever it is stopped, what is there is a failure of the same rule, and nothing is gone over any more.
    #[test]
    fn who_stops_the_making_small_gets_the_smallest_so_far() {
        let with = |seed| SimConfig { canary: Some(Canary::RetriesPosts), ..SimConfig::swarm(seed) };
        let cfg = (0..1000).map(with).find(|cfg| run(cfg).failure.is_some()).expect("it is found");
        let steps = run(&SimConfig { record: true, ..cfg.clone() }).failure.expect("again").script.len();
        let (at_once, asked) = after(1);
        assert!(shrink_until(&cfg, &at_once).is_none(), "it has not come to the failure");
        assert_eq!(asked.get(), 1);
        let asks_of = |work: &dyn Fn(&dyn Fn() -> bool)| {
            let (never, asked) = after(u64::MAX);
            work(&never);
            asked.get()
        };
        let found = asks_of(&|never| drop(run_until(&SimConfig { record: true, ..cfg.clone() }, never)));
        let whole = asks_of(&|never| assert!(!shrink_until(&cfg, never).expect("it fails").stopped));
        let mut last = usize::MAX;
        for quarter in 1..3 {
            let most = found + (whole - found) * quarter / 4;
            let (stop, asked) = after(most);
            let small = shrink_until(&cfg, &stop).expect("the failure is there");
            assert_eq!((small.failure.rule.as_str(), small.stopped), ("TRANSCRIPT", true));
            assert!(asked.get() < most + 1_000, "it went on for {} more", asked.get() - most);
            assert!(small.failure.script.len() <= steps.min(last), "{} inputs", small.failure.script.len());
            assert!(!small.trace().expect("plain data").is_empty());
            last = small.failure.script.len();
        }
        assert!(last < steps, "{last} of {steps}: nothing was made smaller");
    }

    #[test]
    fn posts_that_are_sent_twice_are_found() {
        assert_eq!(found(Canary::RetriesPosts).rule, "TRANSCRIPT");
    }

    #[test]
    fn reports_that_are_lost_are_found() {
        let failure = found(Canary::LosesReports);
        assert!(["STRANDED", "liveness", "ONE-END"].contains(&failure.rule.as_str()), "{failure}");
    }

    #[test]
    fn a_ledger_that_is_not_read_is_found() {
        let failure = found(Canary::LosesLedger);
        assert!(
            ["ORPHANS", "liveness", "ONE-END", "ONE-AGENT", "STRANDED"].contains(&failure.rule.as_str()),
            "{failure}"
        );
    }
}
