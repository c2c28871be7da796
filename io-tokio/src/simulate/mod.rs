//! `longshore trace simulate`: many simulated worlds, each from a seed, on all cores. What fails is made small and saved as a trace.

mod progress;
mod saved;

use crate::cli::Exit;
use crate::stop_flag;
use longshore_core::sim::{Fault, Mark, Marks, Outcome, SimConfig, run_until};
use progress::Progress;
use saved::{Saved, save};
use std::io::{self, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Failures that are made small: a broken build has as many as there are seeds.
const MOST_SHRUNK: u64 = 20;
/// Stack of a thread, as a world's state is deep in debug builds.
const STACK: usize = 8 * 1024 * 1024;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
#[command(
    after_help = "Example: longshore trace simulate --seeds 10000\nExit code: 0 if no world breaks a rule; 1 if one does; 130 if it was interrupted before one did; 2 if what was typed is wrong, or nothing could be written."
)]
pub struct Simulate {
    /// Number of worlds
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: u64,
    /// Seed of the first world; with --seeds 1 a failure comes again
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub from: u64,
    /// Steps of the core in each world before everything works again. Default: ten virtual minutes, 20 000 steps at most
    #[arg(long, value_name = "N")]
    pub steps: Option<u64>,
    /// Only this fault, such as crash or lost-reply; an unknown name lists them
    #[arg(long, value_name = "FAULT", value_parser = fault)]
    pub only: Option<Fault>,
    /// Threads. Default: one for each core
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZero<usize>>,
    /// Directory for the traces of worlds that fail
    #[arg(short, long = "output", alias = "out", value_name = "DIR", default_value = "simulate-failures")]
    pub out: PathBuf,
}

fn fault(name: &str) -> Result<Fault, String> {
    Fault::named(name).ok_or_else(|| {
        let names: Vec<_> = Fault::ALL.iter().map(|fault| fault.as_str()).collect();
        format!("there are {}", names.join(", "))
    })
}

impl Default for Simulate {
    fn default() -> Self {
        Self { seeds: 1_000, from: 0, steps: None, only: None, jobs: None, out: "simulate-failures".into() }
    }
}

impl Simulate {
    fn world(&self, seed: u64) -> SimConfig {
        let mut cfg = match self.only {
            Some(fault) => SimConfig::only(fault, seed),
            None => SimConfig::swarm(seed),
        };
        if let Some(steps) = self.steps {
            cfg.steps = steps;
            // The steps are what was asked for, so time must not end them.
            cfg.horizon = cfg.horizon.max(Duration::from_hours(24));
        }
        cfg
    }
}

/// What all worlds came to.
#[derive(Debug, Default)]
struct Tally {
    /// Those that came to their end.
    seeds: u64,
    steps: u64,
    lives: u64,
    elapsed: Duration,
    marks: Marks,
    failures: u64,
}

impl Tally {
    fn add(&mut self, outcome: &Outcome) {
        self.seeds += u64::from(!outcome.stopped);
        self.steps += outcome.steps;
        self.lives += u64::from(outcome.lives);
        self.elapsed += outcome.elapsed;
        self.marks.add(&outcome.marks);
        self.failures += u64::from(outcome.failure.is_some());
    }
}

/// As [`simulate`], until SIGINT or SIGTERM; the second one ends the process at once.
///
/// # Errors
/// If `out` or `err` cannot be written to, or signals cannot be caught.
pub fn until_a_signal(
    asked: &Simulate,
    cwd: &Path,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    let stop = stop_flag::set_by_signals()?;
    // A core that panics is a failure like any other, and is told as one.
    std::panic::set_hook(Box::new(|_| {}));
    simulate(asked, cwd, &stop, out, err)
}

/// Runs the worlds until all are done or `stop` is set, which ends one that is at work, too, and writes what came of them to `out`, and how it gets on to `err`. Relative
/// paths are below `cwd`. Ends with 0 if nothing failed, 1 if something did, 130 if it was stopped before that.
///
/// # Errors
/// If `out` or `err` cannot be written to.
pub fn simulate(
    asked: &Simulate,
    cwd: &Path,
    stop: &AtomicBool,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    let begun = Instant::now();
    writeln!(err, "Ctrl-C ends it, and tells what was found until then")?;
    let jobs = asked.jobs.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZero::get);
    // A thread has at least one world to run.
    let jobs = jobs.min(usize::try_from(asked.seeds).unwrap_or(usize::MAX));
    let dir = cwd.join(&asked.out);
    let (next, failed) = (AtomicU64::new(0), AtomicU64::new(0));
    let (to, from) = mpsc::channel();
    let mut tally = Tally::default();
    let mut progress = Progress::new(asked.seeds);
    let worker = |to: mpsc::Sender<(Outcome, Option<Saved>)>| {
        while !stop.load(Ordering::Relaxed) {
            let nth = next.fetch_add(1, Ordering::Relaxed);
            if nth >= asked.seeds {
                return;
            }
            let cfg = asked.world(asked.from.wrapping_add(nth));
            let outcome = run_until(&cfg, &|| stop.load(Ordering::Relaxed));
            let small = outcome.failure.is_some() && failed.fetch_add(1, Ordering::Relaxed) < MOST_SHRUNK;
            let saved = small.then(|| save(&cfg, &dir, stop)).flatten();
            if to.send((outcome, saved)).is_err() {
                return;
            }
        }
    };
    thread::scope(|scope| {
        for nth in 0..jobs {
            let (to, worker) = (to.clone(), &worker);
            let thread = thread::Builder::new().name(format!("simulate-{nth}")).stack_size(STACK);
            match thread.spawn_scoped(scope, move || worker(to)) {
                Ok(_) => {}
                // The machine has no room for more threads: those that are there do the work.
                Err(_) if nth > 0 => break,
                Err(error) => return Err(error),
            }
        }
        drop(to);
        for (outcome, saved) in from {
            tally.add(&outcome);
            if let Some(failure) = &outcome.failure {
                progress.pause(|| writeln!(out, "FAIL {failure}"))?;
                for line in saved.iter().flat_map(Saved::lines) {
                    progress.pause(|| writeln!(out, "     {line}"))?;
                }
            }
            progress.show(err, tally.seeds, tally.steps, tally.failures)?;
        }
        Ok::<_, io::Error>(())
    })?;
    progress.finish();
    let cut = tally.seeds < asked.seeds;
    summary(&tally, begun.elapsed(), cut, out)?;
    Ok(match tally.failures {
        0 if cut => Exit::Code(130),
        0 => Exit::Success,
        _ => Exit::Failed,
    })
}

fn summary(tally: &Tally, took: Duration, cut: bool, out: &mut dyn Write) -> io::Result<()> {
    let Tally { seeds, steps, lives, elapsed, marks, failures } = tally;
    let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX).max(1);
    let cut = if cut { ", then stopped" } else { "" };
    writeln!(out, "seeds     {seeds}{cut}, failures {failures}")?;
    writeln!(
        out,
        "steps     {steps}, {} a second, in {}.{} s",
        steps * 1000 / ms,
        ms / 1000,
        ms % 1000 / 100
    )?;
    writeln!(out, "worlds    {lives} lives of the daemon, {} virtual hours", elapsed.as_secs() / 3600)?;
    let missing: Vec<_> = marks.missing().map(Mark::as_str).collect();
    if missing.is_empty() {
        writeln!(out, "rare      every rare situation was met")
    } else {
        missing.iter().try_for_each(|mark| writeln!(out, "rare      never met: {mark}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn ran(asked: &Simulate, stop: bool) -> (Exit, String) {
        let dir = TempDir::new().expect("temp");
        let mut out = Vec::new();
        let stop = AtomicBool::new(stop);
        let exit = simulate(asked, dir.path(), &stop, &mut out, &mut io::sink()).expect("writes to memory");
        (exit, String::from_utf8(out).expect("text"))
    }

    #[test]
    fn a_sweep_that_finds_nothing_ends_with_0_and_says_what_it_did() {
        let asked =
            Simulate { seeds: 6, steps: Some(500), only: Some(Fault::LateTick), ..Simulate::default() };
        let (exit, out) = ran(&asked, false);
        assert_eq!(exit, Exit::Success, "{out}");
        assert!(out.starts_with("seeds     6, failures 0\nsteps     "), "{out}");
        assert!(out.contains("rare      never met: a run outlived the daemon"), "{out}");
    }

    #[test]
    fn no_more_threads_are_started_than_there_are_worlds() {
        let asked = Simulate {
            seeds: 2,
            steps: Some(50),
            only: Some(Fault::LateTick),
            jobs: NonZero::new(usize::MAX),
            ..Simulate::default()
        };
        let (exit, out) = ran(&asked, false);
        assert_eq!(exit, Exit::Success, "{out}");
        assert!(out.starts_with("seeds     2, failures 0\n"), "{out}");
    }

    #[test]
    fn a_sweep_that_is_stopped_says_so() {
        let (exit, out) = ran(&Simulate { seeds: 1_000_000, ..Simulate::default() }, true);
        assert_eq!(exit.code(), 130);
        assert!(out.starts_with("seeds     0, then stopped, failures 0\n"), "{out}");
    }
}
