//! Measures the simulator: `cargo run --release -p longshore-core --features sim --example simulate -- SEEDS [FROM] [norules] [log]`.
#![expect(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "a program for people, not the core"
)]

use longshore_core::sim::{Marks, SimConfig, run};
use std::time::Duration;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |nth: usize, usual: u64| args.get(nth).and_then(|text| text.parse().ok()).unwrap_or(usual);
    let (seeds, from) = (number(0, 100), number(1, 0));
    let record = args.iter().any(|arg| arg == "log");
    let rules = !args.iter().any(|arg| arg == "norules");
    let (mut steps, mut lives, mut elapsed, mut marks) = (0, 0, Duration::ZERO, Marks::default());
    for seed in from..from + seeds {
        let outcome = run(&SimConfig { rules, record, ..SimConfig::swarm(seed) });
        if let Some(failure) = &outcome.failure {
            println!("{failure}");
            failure.log.iter().for_each(|line| println!("{line}"));
        }
        steps += outcome.steps;
        lives += outcome.lives;
        elapsed += outcome.elapsed;
        marks.add(&outcome.marks);
    }
    println!("{seeds} seeds, {steps} steps, {lives} lives, {} virtual hours", elapsed.as_secs() / 3600);
    for mark in longshore_core::sim::Mark::ALL {
        println!("{:>8}  {}", marks.count(*mark), mark.as_str());
    }
}
