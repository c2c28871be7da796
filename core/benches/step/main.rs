//! What one step of the core costs, by the number of runtimes, with 1 000 tasks; and how many steps a second a script runs.
//!
//! ```sh
//! cargo bench -p longshore-core --bench step                 # nanoseconds, and scripts
//! cargo bench -p longshore-core --bench step -- --counts     # instructions, under valgrind; fails if a step is not flat
//! ```
//!
//! Nanoseconds are of one machine and one moment; instructions are the same at each run, so it is they that tell whether a change made a step dearer.
#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "the bans are the core's; a bench measures and tells"
)]

mod bed;

use bed::{Bed, KINDS, Kind};
use longshore_core::daemon::Daemon;
use longshore_core::effect::Effects;
use longshore_core::event::Event;
use longshore_core::rng::Seed;
use longshore_core::script::{Input, Runner, Seeded, World};
use longshore_core::time::Now;
use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::time::Instant;

const RUNTIMES: [u32; 3] = [10, 1_000, 10_000];
/// Steps of which the median is taken.
const TIMED: usize = 201;
/// Steps of which the mean of instructions is taken.
const COUNTED: u32 = 20;
/// How much more a step may cost with 10 000 runtimes than with 10.
const FLAT: f64 = 2.0;

/// What is measured. A function of its own, so that valgrind can be told to count here and nowhere else.
#[inline(never)]
fn measured_step(daemon: &mut Daemon, now: Now, event: &Event, out: &mut Effects) {
    daemon.handle(black_box(now), black_box(event), out);
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => {
            table("nanoseconds of a step (median)", &|kind, runtimes| Some(nanoseconds(kind, runtimes)));
            scripts();
            ExitCode::SUCCESS
        }
        ["--counts"] if table("instructions of a step (mean)", &instructions) => ExitCode::SUCCESS,
        ["--counts"] => {
            eprintln!("not flat, or valgrind is not here");
            ExitCode::FAILURE
        }
        // The same program under valgrind.
        ["--steps", kind, runtimes] => {
            let kind = KINDS.into_iter().find(|known| known.name() == *kind);
            let (Some(kind), Ok(runtimes)) = (kind, runtimes.parse()) else { return ExitCode::FAILURE };
            let mut bed = Bed::new(runtimes);
            for _ in 0..COUNTED {
                bed.step(kind, &mut measured_step);
            }
            ExitCode::SUCCESS
        }
        other => {
            eprintln!("{other:?} is not known here");
            ExitCode::FAILURE
        }
    }
}

/// Prints a line for each kind of step. Returns whether each is there and flat.
fn table(title: &str, measure: &dyn Fn(Kind, u32) -> Option<f64>) -> bool {
    println!("{title}\n{:<24}{:>10}{:>10}{:>10}", "runtimes", RUNTIMES[0], RUNTIMES[1], RUNTIMES[2]);
    let mut flat = true;
    for kind in KINDS {
        let costs = RUNTIMES.map(|runtimes| measure(kind, runtimes).unwrap_or(f64::NAN));
        let ratio = costs[2] / costs[0];
        println!("{:<24}{:>10.0}{:>10.0}{:>10.0}  x{ratio:.2}", kind.name(), costs[0], costs[1], costs[2]);
        flat &= ratio <= FLAT;
    }
    flat
}

fn nanoseconds(kind: Kind, runtimes: u32) -> f64 {
    let mut bed = Bed::new(runtimes);
    let mut times = Vec::with_capacity(TIMED);
    for _ in 0..TIMED {
        bed.step(kind, &mut |daemon, now, event, out| {
            let before = Instant::now();
            measured_step(daemon, now, event, out);
            times.push(before.elapsed());
        });
    }
    times.sort_unstable();
    times[TIMED / 2].as_secs_f64() * 1e9
}

fn instructions(kind: Kind, runtimes: u32) -> Option<f64> {
    let valgrind = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*measured_step*"])
        .arg(std::env::current_exe().ok()?)
        .args(["--steps", kind.name(), &runtimes.to_string()])
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let told = String::from_utf8_lossy(&valgrind.stderr);
    let collected = told.lines().find_map(|line| line.split_once("Collected :"))?.1.trim().to_owned();
    Some(collected.parse::<f64>().ok()? / f64::from(COUNTED))
}

/// Steps a second of scripts in a world, as tests play them: everything, and only the daemon.
fn scripts() {
    let before = Instant::now();
    let mut scripts: Vec<(u64, Runner)> = Vec::new();
    for seed in 0..100 {
        let mut choose = Seeded::new(seed);
        let cfg = World::config(&mut choose);
        let mut runner = Runner::new(cfg, Seed(seed)).expect("a world's settings are in bounds");
        runner.play(&mut choose, 400);
        scripts.push((seed, runner));
    }
    let took = before.elapsed();
    let steps: usize = scripts.iter().map(|(_, runner)| runner.script.len()).sum();
    let steps = f64::from(u32::try_from(steps).expect("some thousands"));
    println!("\nscripts: {:.0} steps/s with world and rules", steps / took.as_secs_f64());
    let mut out = Effects::new();
    let before = Instant::now();
    for (seed, runner) in &scripts {
        let cfg = World::config(&mut Seeded::new(*seed));
        let now = World::default().now();
        let mut daemon = Daemon::new(cfg, Seed(*seed), now, &mut out).expect("settings are in bounds");
        for input in &runner.script {
            // The bench is about one process: a kill is left out, and what comes after it are strays.
            let Input::Event { now, event } = input else { continue };
            out.clear();
            daemon.handle(*now, event, &mut out);
        }
    }
    println!("scripts: {:.0} steps/s, the daemon alone", steps / before.elapsed().as_secs_f64());
}
