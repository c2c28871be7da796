//! A daemon, its world and the rules that it is held to, step by step.

use super::World;
use super::choose::Choose;
use super::start::Start;
use super::world::Call;
use crate::config::{Config, ConfigError};
use crate::daemon::{Daemon, RestoreError};
use crate::effect::{ApiCall, Effect, Effects, Fact};
use crate::event::Event;
use crate::id::OpId;
use crate::ledger::{Ledger, Record};
use crate::observe::{Rules, Step, Violation};
use crate::rng::Seed;
use crate::time::Now;

/// How often a process is killed: once in so many steps.
const CRASH_ONE_IN: u32 = 80;

/// One line of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Something happened.
    Event {
        /// When.
        now: Now,
        /// What.
        event: Event,
    },
    /// The process was killed, and another one was started with what was kept.
    Crash {
        /// When.
        now: Now,
        /// Decides which of the requests on their way the server has taken.
        fate: u32,
    },
}

impl Input {
    /// When it is.
    pub const fn now(&self) -> Now {
        match self {
            Self::Event { now, .. } | Self::Crash { now, .. } => *now,
        }
    }
}

/// What is around a daemon under test.
#[derive(Clone, Debug)]
pub(super) struct Around {
    pub(super) world: World,
    rules: Rules,
    ledger: Ledger,
    cfg: Config,
    seed: Seed,
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
    /// What is kept for the next process.
    pub ledger: Ledger,
    /// Settings of the next process.
    pub cfg: Config,
    pub(super) seed: Seed,
    #[cfg(feature = "canary")]
    bug: Option<super::bug::Bug>,
    effects: Effects,
}

impl Runner {
    /// Starts a daemon.
    ///
    /// # Errors
    /// If a setting is out of bounds.
    pub fn new(cfg: Config, seed: Seed) -> Result<Self, ConfigError> {
        Self::begin(&Start::new(cfg, seed))
    }

    /// Starts a daemon as it is said.
    ///
    /// # Errors
    /// If a setting is out of bounds.
    pub fn begin(start: &Start) -> Result<Self, ConfigError> {
        let (cfg, seed, now) = (start.config.clone(), start.seed, start.now);
        let mut effects = Effects::new();
        let mut world = World::default();
        let mut rules = Rules::new(&cfg);
        let daemon = Daemon::new(cfg.clone(), seed, now, &mut effects)?;
        world.observe(now, None, effects.as_slice());
        rules.observe(&step(now, None, effects.as_slice(), &daemon));
        Ok(Self {
            daemon,
            world,
            rules,
            script: Vec::new(),
            ledger: Ledger::default(),
            cfg,
            seed,
            #[cfg(feature = "canary")]
            bug: start.bug,
            effects,
        })
    }

    /// A copy of all but the daemon and the script.
    pub(super) fn around(&self) -> Around {
        let (world, rules, ledger) = (self.world.clone(), self.rules.clone(), self.ledger.clone());
        Around { world, rules, ledger, cfg: self.cfg.clone(), seed: self.seed }
    }

    pub(super) fn restored(daemon: &str, around: Around, script: Vec<Input>) -> Result<Self, RestoreError> {
        let Around { world, rules, ledger, cfg, seed } = around;
        let daemon = Daemon::restore(daemon)?;
        Ok(Self {
            daemon,
            world,
            rules,
            script,
            ledger,
            cfg,
            seed,
            #[cfg(feature = "canary")]
            bug: None,
            effects: Effects::new(),
        })
    }

    /// The effects of the last step.
    pub fn effects(&self) -> &[Effect] {
        self.effects.as_slice()
    }

    /// The request to the server that is on its way under this number.
    pub fn call(&self, op: OpId) -> Option<&ApiCall> {
        match self.world.open.get(&op) {
            Some(Call::Api(call)) => Some(call),
            _ => None,
        }
    }

    /// Gives the daemon one event.
    pub fn feed(&mut self, now: Now, event: Event) -> &[Effect] {
        self.take(&Input::Event { now, event })
    }

    /// Gives the daemon one line of a script.
    pub fn take(&mut self, input: &Input) -> &[Effect] {
        self.take_with(input, &mut |_| ())
    }

    /// The same for an onlooker: it sees each step, and `None` where the process is killed.
    pub fn take_with(&mut self, input: &Input, see: &mut dyn FnMut(Option<&Step<'_>>)) -> &[Effect] {
        self.effects.clear();
        self.script.push(input.clone());
        match input {
            Input::Event { now, event } => self.step(*now, event, 0, see),
            Input::Crash { now, fate } => self.restart(*now, *fate, see),
        }
        self.effects.as_slice()
    }

    /// One step; its effects come after the first `from`.
    fn step(&mut self, now: Now, event: &Event, from: usize, see: &mut dyn FnMut(Option<&Step<'_>>)) {
        let taken = self.world.taken(event);
        self.daemon.handle(now, event, &mut self.effects);
        #[cfg(feature = "canary")]
        self.twist(from);
        let effects = &self.effects.as_slice()[from..];
        self.world.observe(now, Some(event), effects);
        let seen = step(now, Some(event), effects, &self.daemon);
        self.rules.observe(&seen);
        see(Some(&seen));
        if let Event::Recovered { offer, provider, was, path } = event
            && self.ledger.get(offer.claim).is_none()
            && effects.iter().any(|e| matches!(e, Effect::Fact { fact: Fact::Recovered { .. } }))
        {
            // Nobody knows it but the event: then somebody has written it down.
            let (offer, provider, path) = (offer.clone(), provider.clone(), path.clone());
            self.ledger.add(Record { offer, provider, was: *was, path });
        }
        self.ledger.apply(effects);
        if let Some((claim, upto)) = taken
            // Now and then the process does not get to writing down what was taken.
            && upto % 4 != 3
        {
            self.ledger.acked(claim, upto);
        }
    }

    /// Puts the bug in: all effects but the first `from` are changed.
    #[cfg(feature = "canary")]
    fn twist(&mut self, from: usize) {
        let Some(bug) = self.bug else { return };
        let mut all: Vec<Effect> = self.effects.drain().collect();
        let mut new = all.split_off(from);
        bug.apply(&mut new);
        all.into_iter().chain(new).for_each(|effect| self.effects.push(effect));
    }

    /// The process is killed, and another one is started with what was kept. Returns what that one wants after it was told of it.
    pub fn crash(&mut self, choose: &mut dyn Choose) -> &[Effect] {
        let fate = choose.below(u32::from(u16::MAX));
        self.take(&Input::Crash { now: self.world.now(), fate })
    }

    fn restart(&mut self, now: Now, fate: u32, see: &mut dyn FnMut(Option<&Step<'_>>)) {
        if self.world.exited {
            return;
        }
        self.world.crash(fate);
        self.rules = self.rules.after_crash(&self.cfg);
        see(None);
        self.seed.0 = self.seed.0.wrapping_add(1);
        let started = Daemon::new(self.cfg.clone(), self.seed, now, &mut self.effects);
        let Ok(daemon) = started else { return };
        self.daemon = daemon;
        self.world.observe(now, None, self.effects.as_slice());
        let seen = step(now, None, self.effects.as_slice(), &self.daemon);
        self.rules.observe(&seen);
        see(Some(&seen));
        for event in self.ledger.recover() {
            let from = self.effects.as_slice().len();
            self.step(now, &event, from, see);
        }
    }

    /// Lets the world go on by itself, at most `steps` steps, until it has nothing left to decide with, or a rule is broken.
    pub fn play(&mut self, choose: &mut dyn Choose, steps: usize) {
        for _ in 0..steps {
            let Some(input) = self.next(choose) else { return };
            self.take(&input);
            if !self.rules.violations().is_empty() {
                return;
            }
        }
    }

    /// What happens next: mostly an event, now and then the end of the process.
    pub fn next(&mut self, choose: &mut dyn Choose) -> Option<Input> {
        if !self.world.exited && choose.one_in(CRASH_ONE_IN) {
            return Some(Input::Crash { now: self.world.now(), fate: choose.below(u32::from(u16::MAX)) });
        }
        let wakeup = self.daemon.next_wakeup().map(|(at, _)| at);
        self.world.next(choose, wakeup).map(|(now, event)| Input::Event { now, event })
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
        runner.take(input);
    }
    if heal {
        runner.heal();
    }
    Ok(runner)
}
