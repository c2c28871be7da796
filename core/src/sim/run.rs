//! One simulation from its beginning to its end, and what to do about one that fails.

use super::config::SimConfig;
use super::fault::Fault;
use super::marks::Marks;
use super::world::World;
use crate::config::Config;
use crate::digest::Digest;
use crate::event::Event;
use crate::rng::Seed;
use crate::script::{self, Input, Runner, Served};
use crate::time::Now;
use crate::trace::{Header, encode};
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// What sort of thing failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// A rule of [`crate::observe`].
    Rule,
    /// The server's rows are not what truly was, or the world saw something that must not be.
    Truth,
    /// The daemon does not come to rest.
    Liveness,
    /// The core panicked.
    Panic,
}

/// How a simulation failed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Failure {
    /// The seed of the simulation; of a failure that was made small, that of the first one.
    pub seed: u64,
    /// What sort of thing failed.
    pub kind: FailureKind,
    /// The rule, or `liveness`.
    pub rule: String,
    /// What happened, in one line.
    pub story: String,
    /// At which step of the core, over all its lives.
    pub step: u64,
    /// In which life of the daemon, from 1.
    pub life: u32,
    /// The daemon's settings.
    pub config: Config,
    /// The seed of the core in that life.
    pub core_seed: Seed,
    /// What happened to the core in that life; empty unless it was recorded.
    pub script: Vec<Input>,
    /// What the server did about the requests that lines of the script end.
    pub served: BTreeMap<usize, Served>,
    /// What the world did, newest last; empty unless it was recorded.
    pub log: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "seed {}: {} in life {}, step {}: {}",
            self.seed, self.rule, self.life, self.step, self.story
        )
    }
}

/// What a simulation came to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// Steps of the core.
    pub steps: u64,
    /// Lives of the daemon.
    pub lives: u32,
    /// Virtual time.
    pub elapsed: Duration,
    /// A hash of everything that can be compared: equal for equal settings.
    pub digest: u64,
    /// Rare situations that were met.
    pub marks: Marks,
    /// How it failed, if it did.
    pub failure: Option<Box<Failure>>,
    /// Whether it was stopped before its end: then nothing was compared with the truth.
    pub stopped: bool,
}

/// Runs one simulation: with faults, then without, then the comparison with the truth.
pub fn run(cfg: &SimConfig) -> Outcome {
    run_until(cfg, &|| false)
}

/// The same, until `stop` says so, which is asked before each step of the world.
pub fn run_until(cfg: &SimConfig, stop: &dyn Fn() -> bool) -> Outcome {
    let mut world = World::new(cfg.clone());
    let ended = catch_unwind(AssertUnwindSafe(|| {
        if !world.safety_until(stop)? {
            return Ok(false);
        }
        world.heal();
        world.liveness_until(stop)
    }));
    let (whole, failure) = match ended {
        Ok(Ok(whole)) => (whole, None),
        Ok(Err(failure)) => (true, Some(failure)),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            (true, Some(world.failed(FailureKind::Panic, "panic", text.unwrap_or_default())))
        }
    };
    let mut digest = Digest::default();
    (world.digest, world.steps, world.now, world.lives).hash(&mut digest);
    world.plane.hash(&mut digest);
    Outcome {
        steps: world.steps,
        lives: world.lives,
        elapsed: world.elapsed(),
        digest: digest.finish(),
        marks: world.marks,
        failure,
        stopped: !whole,
    }
}

/// A failure made small.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Shrunk {
    /// The failure, with the shortest script that was found.
    pub failure: Failure,
    /// The faults without which it does not fail.
    pub faults: Vec<Fault>,
    /// Whether the script alone, without the world, shows the failure.
    pub alone: bool,
    /// Whether it was stopped before it was as small as it can be made.
    pub stopped: bool,
}

/// How often the world is gone over to make it smaller: what one thing left out lets go of may be another.
const ROUNDS: u32 = 4;

/// Steps of the core that are spent on it, about.
const SHRINK_STEPS: u64 = 6_000_000;
/// A smaller world is another world, in which the same may have to happen elsewhere: so many are tried of each.
const WORLDS: u64 = 120;
/// Before anything else, a world is looked for that shows it in so many seconds: of short ones many can be tried.
const SHORT: [u64; 6] = [2, 5, 10, 20, 40, 80];
/// So many of each.
const SHORT_WORLDS: u64 = 120;

/// No world is made shorter than this.
const SHORTEST: Duration = Duration::from_secs(1);

/// A way to make a world smaller.
type Smaller = fn(&mut SimConfig);

/// What may be made smaller in a world, beside its kinds of fault.
const SMALLER: [Smaller; 12] = [
    |cfg| cfg.horizon /= 2,
    |cfg| cfg.horizon = cfg.horizon * 9 / 10,
    |cfg| cfg.load.workspaces = 1,
    |cfg| cfg.load.providers = 1,
    |cfg| cfg.load.agents = (cfg.load.agents / 2).max(1),
    |cfg| cfg.load.open = (cfg.load.open / 2).max(1),
    |cfg| cfg.load.says /= 2,
    |cfg| cfg.load.run = (cfg.load.run / 2).max(1),
    |cfg| cfg.load.every = cfg.load.every.saturating_mul(2).min(600_000),
    |cfg| cfg.daemon.slots = 1,
    |cfg| cfg.daemon.slots = (cfg.daemon.slots / 2).max(1),
    |cfg| cfg.daemon.gc = false,
];

/// Makes a failing simulation small: first the world, by leaving out kinds of fault and load and ending it sooner, then the script of the
/// daemon's last life, line by line, if that shows the failure without the world. `None` if it does not fail.
pub fn shrink(cfg: &SimConfig) -> Option<Shrunk> {
    shrink_until(cfg, &|| false)
}

/// The same, until `stop` says so, which is asked before each step: what is given back then is the smallest so far. `None`, too, if it was stopped
/// before the failure was there again.
pub fn shrink_until(cfg: &SimConfig, stop: &dyn Fn() -> bool) -> Option<Shrunk> {
    let mut best = SimConfig { record: true, ..cfg.clone() };
    let mut failure = *run_until(&best, stop).failure?;
    let mut spent = 0;
    // A script that shows the failure without the world can be made small itself, which is cheaper: then the world need not be.
    let alone = shown(&failure, stop).is_some();
    let budget = if alone { SHRINK_STEPS / 6 } else { SHRINK_STEPS };
    // The same failure in a world like this one, of this seed or another, in no more steps of the last life than `most`.
    let mut same = |cfg: &SimConfig, worlds: u64, rule: &str, most: usize| {
        (0..worlds).take_while(|_| !stop()).find_map(|nth| {
            if spent > budget {
                return None;
            }
            let cfg = SimConfig { seed: cfg.seed.wrapping_add(nth.wrapping_mul(0x9e37_79b9)), ..cfg.clone() };
            let outcome = run_until(&cfg, stop);
            spent += outcome.steps;
            let found = outcome.failure.filter(|found| found.rule == rule && found.script.len() <= most)?;
            (!alone || shown(&found, stop).is_some()).then_some((cfg, *found))
        })
    };
    for secs in SHORT {
        let less = SimConfig { horizon: Duration::from_secs(secs), ..best.clone() };
        if less.horizon < best.horizon
            && let Some(found) = same(&less, SHORT_WORLDS, &failure.rule, failure.script.len())
        {
            (best, failure) = found;
            break;
        }
    }
    for _ in 0..ROUNDS {
        let before = best.clone();
        // Of worlds that are as small, the one that needs the fewest steps.
        while let Some(fewer) = failure.script.len().checked_sub(1)
            && let Some(found) = same(&best, SHORT_WORLDS, &failure.rule, fewer)
        {
            (best, failure) = found;
        }
        for fault in Fault::ALL {
            let mut less = best.clone();
            less.faults.set(*fault, 0);
            if less != best
                && let Some(found) = same(&less, WORLDS, &failure.rule, failure.script.len())
            {
                (best, failure) = found;
            }
        }
        for make in SMALLER {
            loop {
                let mut less = best.clone();
                make(&mut less);
                if less == best || less.horizon < SHORTEST {
                    break;
                }
                let Some(found) = same(&less, WORLDS, &failure.rule, failure.script.len()) else { break };
                (best, failure) = found;
            }
        }
        if best == before {
            break;
        }
    }
    failure.seed = cfg.seed;
    let shown = shown(&failure, stop);
    match shown {
        Some(Shown::Rule) => {
            let Failure { config, core_seed, script, rule, .. } = &failure;
            let mut breaks = |lines: &[Input], _: &[usize]| breaks(config, *core_seed, lines, rule, stop);
            (failure.script, _) = script::shrink_lines(config, *core_seed, script, stop, &mut breaks);
            failure.served.clear();
        }
        Some(Shown::Rows(rule)) => shrink_untrue(&mut failure, rule, stop),
        None => {}
    }
    let faults = best.faults.possible().collect();
    // Of worlds in which it was shown so only such were taken.
    Some(Shrunk { failure, faults, alone: alone || shown.is_some(), stopped: stop() })
}

/// What shows a failure in the script of one life, without the world.
#[derive(Clone, Copy, Debug)]
enum Shown {
    /// A rule, or a panic of the core.
    Rule,
    /// What the server did, by this rule.
    Rows(&'static str),
}

fn shown(failure: &Failure, stop: &dyn Fn() -> bool) -> Option<Shown> {
    let Failure { config, core_seed, script, served, rule, kind, .. } = failure;
    let breaks = || breaks(config, *core_seed, script, rule, stop);
    // What the world alone knows is no rule of the daemon, so there is no need to look.
    if *kind != FailureKind::Truth && catch_unwind(AssertUnwindSafe(breaks)).unwrap_or(true) {
        return Some(Shown::Rule);
    }
    let (found, _) = script::untrue_until(config, *core_seed, script, served, stop)?;
    shown_by(rule, found).then_some(Shown::Rows(found))
}

/// Whether a script breaks a rule; one about liveness is broken only once the world has been healed. If it is stopped, it does not.
fn breaks(config: &Config, seed: Seed, lines: &[Input], rule: &str, stop: &dyn Fn() -> bool) -> bool {
    let Ok(mut runner) = Runner::new(config.clone(), seed) else { return false };
    for line in lines {
        if stop() {
            return false;
        }
        runner.take(line);
    }
    let broken = |runner: &Runner| runner.violations().iter().any(|found| found.rule == rule);
    broken(&runner) || {
        runner.heal();
        broken(&runner)
    }
}

/// Whether a failure that the world saw is one that is seen so in a script.
fn shown_by(failure: &str, rule: &str) -> bool {
    match rule {
        "ONE-END" => ["ONE-END", "STRANDED", "liveness"].contains(&failure),
        _ => failure == rule,
    }
}

/// Makes the script of a failure small that only the server's rows show.
fn shrink_untrue(failure: &mut Failure, rule: &str, stop: &dyn Fn() -> bool) {
    let Failure { config, core_seed, script, served, .. } = &*failure;
    let of = |lines: &[usize]| -> BTreeMap<usize, Served> {
        let deeds = lines.iter().enumerate();
        deeds.filter_map(|(to, from)| Some((to, served.get(from)?.clone()))).collect()
    };
    let shows = |script: &[Input], served: &BTreeMap<usize, Served>| {
        script::untrue_until(config, *core_seed, script, served, stop).filter(|(found, _)| *found == rule)
    };
    let (script, lines) = script::shrink_lines(config, *core_seed, script, stop, &mut |script, lines| {
        shows(script, &of(lines)).is_some()
    });
    let served = of(&lines);
    let story = shows(&script, &served).map_or_else(|| failure.story.clone(), |(_, story)| story);
    (failure.script, failure.served, failure.story) = (script, served, story);
}

impl Shrunk {
    /// The failure as a trace: the events of the daemon's life in which it failed, with the effects of the core that had the bug. For a test that
    /// holds a mended core to all rules over these events.
    ///
    /// # Errors
    /// If serialisation fails, which no record is known to make it do.
    pub fn trace(&self) -> Result<Vec<u8>, serde_json::Error> {
        let Failure { seed, rule, story, config, core_seed, script, served, .. } = &self.failure;
        let mut out = Vec::new();
        let Ok(mut runner) = Runner::new(config.clone(), *core_seed) else { return Ok(out) };
        let start: Now = runner.world.now();
        encode::header(&mut out, &Header::new("simulator", config.clone(), *core_seed, start))?;
        encode::start(&mut out, start, runner.effects())?;
        let faults: Vec<_> = self.faults.iter().map(|fault| fault.as_str()).collect();
        encode::note(&mut out, 0, &format!("seed {seed}, rule {rule}: {story}"))?;
        encode::note(&mut out, 0, &format!("faults that it needs: {}", faults.join(", ")))?;
        let mut n = 0;
        for (line, input) in script.iter().enumerate() {
            n += 1;
            // A panic of the core is what is shown: the trace then ends with the event that led to it.
            let Input::Event { now, event } = input else { continue };
            if let (Event::Api { op, r }, Some(deeds)) = (event, served.get(&line))
                && runner.call(*op).is_some_and(|call| script::honest(call, r) != *deeds)
            {
                encode::note(&mut out, n, &script::note(*op, deeds)?)?;
            }
            let fed = catch_unwind(AssertUnwindSafe(|| {
                runner.feed(*now, event.clone());
            }));
            encode::step(&mut out, n, *now, event, runner.effects())?;
            if fed.is_err() {
                return Ok(out);
            }
        }
        encode::digest(&mut out, n, runner.daemon.digest())?;
        encode::end(&mut out, n, "the simulation failed")?;
        Ok(out)
    }
}
