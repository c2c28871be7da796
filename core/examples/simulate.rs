//! Sweeps the simulator and measures it:
//! `cargo run --release -p longshore-core --features sim --example simulate -- SEEDS [FROM] [steps=N] [norules] [log] [small]`.
//!
//! `log` tells what the world of a failing seed did, `small` makes each first failure of a rule small and tells its trace.
#![expect(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a program for people, not the core"
)]

use longshore_core::sim::{Mark, Marks, SimConfig, run, shrink};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

#[cfg(feature = "canary")]
fn canary(args: &[String]) -> Option<longshore_core::sim::Canary> {
    use longshore_core::sim::Canary;
    args.iter().find_map(|arg| match arg.as_str() {
        "posts" => Some(Canary::RetriesPosts),
        "reports" => Some(Canary::LosesReports),
        "ledger" => Some(Canary::LosesLedger),
        _ => None,
    })
}

fn tell_small(cfg: &SimConfig) {
    let all =
        run(&SimConfig { record: true, ..cfg.clone() }).failure.map_or(0, |failure| failure.script.len());
    let Some(small) = shrink(cfg) else { return };
    let (inputs, faults) = (small.failure.script.len(), &small.faults);
    println!("smaller, {inputs} inputs of {all}, alone {}, with {faults:?}: {}", small.alone, small.failure);
    if let Ok(trace) = small.trace() {
        println!("{}", String::from_utf8_lossy(&trace));
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |nth: usize, usual: u64| args.get(nth).and_then(|text| text.parse().ok()).unwrap_or(usual);
    let (seeds, from) = (number(0, 100), number(1, 0));
    let has = |word: &str| args.iter().any(|arg| arg == word);
    let (rules, record, small) = (!has("norules"), has("log"), has("small"));
    let steps_each = args.iter().find_map(|arg| arg.strip_prefix("steps=")?.parse().ok());
    std::panic::set_hook(Box::new(|_| ()));
    let (mut steps, mut lives, mut elapsed, mut marks) = (0, 0, Duration::ZERO, Marks::default());
    let mut failures: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let begun = Instant::now();
    for seed in from..from + seeds {
        let cfg = SimConfig { rules, record, ..SimConfig::swarm(seed) };
        // The same worlds as those of `longshore trace simulate --steps`.
        let horizon = steps_each.map_or(cfg.horizon, |_| cfg.horizon.max(Duration::from_hours(24)));
        let cfg = SimConfig { steps: steps_each.unwrap_or(cfg.steps), horizon, ..cfg };
        #[cfg(feature = "canary")]
        let cfg = SimConfig { canary: canary(&args), ..cfg };
        let outcome = run(&cfg);
        if let Some(failure) = &outcome.failure {
            println!("{failure}");
            failure.log.iter().for_each(|line| println!("{line}"));
            let list = failures.entry(failure.rule.clone()).or_default();
            list.push(seed);
            if small && list.len() <= 1 {
                tell_small(&cfg);
            }
        }
        steps += outcome.steps;
        lives += outcome.lives;
        elapsed += outcome.elapsed;
        marks.add(&outcome.marks);
    }
    let took = begun.elapsed();
    println!("{seeds} seeds, {steps} steps, {lives} lives, {} virtual hours", elapsed.as_secs() / 3600);
    let rate = u128::from(steps) * 1000 / took.as_millis().max(1);
    println!("{:.2} s, {rate} steps/s", took.as_secs_f64());
    for (rule, seeds) in &failures {
        println!("{rule}: {} seeds, such as {:?}", seeds.len(), &seeds[..seeds.len().min(8)]);
    }
    for mark in Mark::ALL {
        println!("{:>8}  {}", marks.count(*mark), mark.as_str());
    }
}
