//! A daemon, its world and the rules that it is held to, step by step.

use super::World;
use super::choose::Choose;
use crate::config::{Config, ConfigError};
use crate::daemon::{Daemon, RestoreError};
use crate::effect::{Effect, Effects};
use crate::event::Event;
use crate::observe::{Rules, Step, Violation};
use crate::rng::Seed;
use crate::time::Now;

/// One line of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// When.
    pub now: Now,
    /// What.
    pub event: Event,
}

/// A daemon under test.
#[derive(Debug)]
pub struct Runner {
    /// The daemon.
    pub daemon: Daemon,
    /// What is around it.
    pub world: World,
    /// What it is held to.
    pub rules: Rules,
    /// What it was given so far.
    pub script: Vec<Input>,
    effects: Effects,
}

impl Runner {
    /// Starts a daemon.
    ///
    /// # Errors
    /// If a setting is out of bounds.
    pub fn new(cfg: Config, seed: Seed) -> Result<Self, ConfigError> {
        let mut effects = Effects::new();
        let mut world = World::default();
        let mut rules = Rules::new(&cfg);
        let now = world.now();
        let daemon = Daemon::new(cfg, seed, now, &mut effects)?;
        world.observe(now, None, effects.as_slice());
        rules.observe(&step(now, None, effects.as_slice(), &daemon));
        Ok(Self { daemon, world, rules, script: Vec::new(), effects })
    }

    pub(super) fn from_parts(
        daemon: &str,
        world: World,
        rules: Rules,
        script: Vec<Input>,
    ) -> Result<Self, RestoreError> {
        Ok(Self { daemon: Daemon::restore(daemon)?, world, rules, script, effects: Effects::new() })
    }

    /// The effects of the last step.
    pub fn effects(&self) -> &[Effect] {
        self.effects.as_slice()
    }

    /// Gives the daemon one event.
    pub fn feed(&mut self, now: Now, event: Event) -> &[Effect] {
        self.effects.clear();
        self.daemon.handle(now, &event, &mut self.effects);
        self.world.observe(now, Some(&event), self.effects.as_slice());
        self.rules.observe(&step(now, Some(&event), self.effects.as_slice(), &self.daemon));
        self.script.push(Input { now, event });
        self.effects.as_slice()
    }

    /// Lets the world go on by itself, at most `steps` steps, until it has nothing left to decide with, or a rule is broken.
    pub fn play(&mut self, choose: &mut dyn Choose, steps: usize) {
        for _ in 0..steps {
            let wakeup = self.daemon.next_wakeup().map(|(at, _)| at);
            let Some((now, event)) = self.world.next(choose, wakeup) else { return };
            self.feed(now, event);
            if !self.rules.violations().is_empty() {
                return;
            }
        }
    }

    /// What is broken so far.
    pub fn violations(&self) -> &[Violation] {
        self.rules.violations()
    }
}

fn step<'a>(now: Now, event: Option<&'a Event>, effects: &'a [Effect], daemon: &'a Daemon) -> Step<'a> {
    Step { now, event, effects, view: daemon.view(), wakeup: daemon.next_wakeup().map(|(at, _)| at) }
}

/// Gives a fresh daemon the script as it is, then heals the world if `heal`. Returns what is broken, or all it did.
///
/// # Errors
/// If a setting is out of bounds.
pub fn replay(cfg: &Config, seed: Seed, script: &[Input], heal: bool) -> Result<Runner, ConfigError> {
    let mut runner = Runner::new(cfg.clone(), seed)?;
    for input in script {
        runner.feed(input.now, input.event.clone());
    }
    if heal {
        runner.heal();
    }
    Ok(runner)
}
