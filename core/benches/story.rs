//! What it costs to read the story of a trace, by the number of steps: the time for a step must not grow.
//!
//! ```sh
//! cargo bench -p longshore-core --bench story
//! ```
#![expect(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "the bans are the core's; a bench measures and tells"
)]

use longshore_core::effect::Effects;
use longshore_core::event::Event;
use longshore_core::script::Life;
use longshore_core::story::{Builder, Story};
use longshore_core::time::Now;
use longshore_core::trace::{Header, Record, Step};
use std::hint::black_box;
use std::time::Instant;

const STEPS: [u64; 3] = [10_000, 100_000, 400_000];

fn record(n: u64, now: Now, event: Option<Event>, effects: &Effects) -> Record {
    let (Now { mono, wall, slept }, effects) = (now, Some(effects.as_slice().to_vec()));
    Record::Step(Step { n, mono, wall, slept, event, effects })
}

/// A life with so many steps.
fn records(steps: u64) -> Vec<Record> {
    let mut life = Life::new(3);
    let header = Header::new("bench", life.config.clone(), life.seed, life.start);
    let mut records = vec![Record::Header(Box::new(header)), record(0, life.start, None, &life.fx)];
    for n in 1..=steps {
        let (now, event) = life.step();
        records.push(record(n, now, Some(event), &life.fx));
    }
    records
}

fn read(records: &[Record]) -> Story {
    let mut builder = Builder::default();
    for record in records {
        builder.record(record);
    }
    builder.finish()
}

fn main() {
    println!("{:>9} {:>8} {:>9} {:>9} {:>11}", "steps", "tasks", "requests", "ms", "ns a step");
    for steps in STEPS {
        let records = records(steps);
        let times = (0..5).map(|_| {
            let begun = Instant::now();
            let story = black_box(read(black_box(&records)));
            (begun.elapsed(), story.tasks.len(), story.requests.len())
        });
        let (took, tasks, requests) = times.min().expect("it was read");
        let each = took.as_nanos() / u128::from(steps);
        println!("{steps:>9} {tasks:>8} {requests:>9} {:>9} {each:>11}", took.as_millis());
    }
}
