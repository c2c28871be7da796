//! The simulated world: one daemon, and everything around it, driven by one queue and one source of chance.

use super::agents::Agent;
use super::book::Claim;
use super::clis::Clis;
use super::config::SimConfig;
use super::disk::Disk;
use super::fault::Fault;
use super::life::Life;
use super::marks::Marks;
use super::net::Link;
use super::queue::{Queue, What};
use crate::effect::Effect;
use crate::event::ClaimKey;
use crate::id::{OpId, Provider, RuntimeId, TaskId};
use crate::ledger::Ledger;
use crate::observe::Rules;
use crate::plane::Plane;
use crate::script::{Choose, Seeded};
use crate::time::{Instant, Now, UnixMillis};
use std::collections::{BTreeMap, VecDeque};

/// How the wall clock stands at the beginning.
const WALL_AT_START: i64 = 1_764_000_000_000;
/// Names of the machine's agent CLIs.
pub(super) const PROVIDERS: [&str; 3] = ["claude", "codex", "opencode"];
/// The machine, as the server knows it.
pub(super) const DAEMON: &str = "daemon-1";
/// Lines that are kept of what the world did.
const MOST_LINES: usize = 20_000;
/// Tasks that users remember, to do something with them.
pub(super) const REMEMBERED: usize = 24;

/// What a request of the core is about, as far as the world must remember it until its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    Claim,
    Start(ClaimKey),
    Lease(ClaimKey),
    Report(ClaimKey),
    Messages(ClaimKey, u32),
    OtherApi,
    Prepare(ClaimKey),
    Collect,
    OtherFs,
    Run(usize),
}

/// A request of the core that is not complete.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    pub(super) about: About,
    /// It never leaves, whatever becomes of it.
    pub(super) unsent: bool,
    pub(super) cancelled: bool,
}

/// A runtime, as the adapter keeps it.
#[derive(Clone, Debug)]
pub(super) struct Hosted {
    pub(super) provider: Provider,
    pub(super) claimable: bool,
}

/// One simulation at work.
///
/// [`World::new`], [`World::safety`], [`World::heal`], [`World::liveness`], in this order; [`super::run()`] does all of it.
#[derive(Debug)]
pub struct World {
    pub(super) cfg: SimConfig,
    pub(super) chance: Seeded,
    /// True time, in milliseconds from the beginning.
    pub(super) now: u64,
    /// How long the machine has slept.
    pub(super) slept: u64,
    /// What an operator did to the wall clock.
    pub(super) wall_off: i64,
    pub(super) queue: Queue,
    /// Which faults are about.
    pub(super) weather: u64,
    /// Which faults were ever about.
    pub(super) had: u64,
    /// When everything worked again.
    pub(super) healed_at: Option<u64>,

    pub(super) life: Option<Box<Life>>,
    pub(super) lives: u32,
    /// When the last of them began.
    pub(super) began: u64,
    /// What the next life is held to, if the last one was killed between two steps.
    pub(super) rules_before: Option<Rules>,
    pub(super) steps: u64,
    pub(super) digest: u64,
    /// What the daemon wrote down, on a disk that outlives it.
    pub(super) ledger: Ledger,
    /// Effects that are not carried out yet.
    pub(super) outbox: VecDeque<Effect>,
    pub(super) performing: bool,

    pub(super) open: BTreeMap<OpId, Open>,
    pub(super) hosted: BTreeMap<RuntimeId, Hosted>,
    pub(super) link: Link,
    pub(super) agents: Vec<Agent>,
    pub(super) disk: Disk,
    pub(super) clis: Clis,

    pub(super) plane: Plane,
    pub(super) claims: BTreeMap<ClaimKey, Claim>,
    pub(super) next_claim: u64,
    pub(super) next_issue: u64,
    pub(super) next_workspace: u32,
    pub(super) recent: VecDeque<TaskId>,

    pub(super) marks: Marks,
    /// What the world did, newest last, if it is recorded.
    pub(super) log: VecDeque<String>,
    /// What cannot be, and is: the first of it.
    pub(super) wrong: Option<(&'static str, String)>,
}

impl World {
    /// A world in which the daemon is about to be started.
    pub fn new(cfg: SimConfig) -> Self {
        let mut world = Self {
            chance: Seeded::new(cfg.seed),
            now: 0,
            slept: 0,
            wall_off: 0,
            queue: Queue::default(),
            weather: 0,
            had: 0,
            healed_at: None,
            life: None,
            lives: 0,
            began: 0,
            rules_before: None,
            steps: 0,
            digest: 0,
            ledger: Ledger::default(),
            outbox: VecDeque::new(),
            performing: false,
            open: BTreeMap::new(),
            hosted: BTreeMap::new(),
            link: Link::default(),
            agents: Vec::new(),
            disk: Disk::default(),
            clis: Clis::default(),
            plane: Plane::new(cfg.seed),
            claims: BTreeMap::new(),
            next_claim: 0,
            next_issue: 0,
            next_workspace: cfg.load.workspaces,
            recent: VecDeque::new(),
            marks: Marks::default(),
            log: VecDeque::new(),
            wrong: None,
            cfg,
        };
        for n in 1..=world.next_workspace {
            world.add_workspace(n);
        }
        for fault in Fault::ALL {
            if world.cfg.faults.rate(*fault) > 0 && world.chance.one_in(2) {
                world.weather |= fault.bit();
            }
        }
        world.had = world.weather;
        world.queue.push(0, What::Restart);
        world.queue.push(500, What::Users);
        world.queue.push(2_000, What::Weather);
        world.queue.push(30_000, What::Sweep);
        world
    }

    /// What this world is made of.
    pub const fn config(&self) -> &SimConfig {
        &self.cfg
    }

    /// Steps of the core so far, over all lives of the daemon.
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    /// Lives of the daemon so far.
    pub const fn lives(&self) -> u32 {
        self.lives
    }

    /// Virtual time.
    pub const fn elapsed(&self) -> std::time::Duration {
        std::time::Duration::from_millis(self.now)
    }

    /// Rare situations that were met.
    pub const fn marks(&self) -> &Marks {
        &self.marks
    }

    /// Whether this fault is about and spoils this occasion.
    pub(super) fn hit(&mut self, fault: Fault) -> bool {
        self.weather & fault.bit() != 0 && self.chance.below(1000) < u32::from(self.cfg.faults.rate(fault))
    }

    pub(super) const fn is_about(&self, fault: Fault) -> bool {
        self.weather & fault.bit() != 0
    }

    pub(super) fn below(&mut self, n: u32) -> u64 {
        u64::from(self.chance.below(n))
    }

    pub(super) fn server_now(&self) -> Now {
        Now::new(Instant::from_millis(self.now), UnixMillis(WALL_AT_START.saturating_add_unsigned(self.now)))
    }

    pub(super) fn wall(&self) -> UnixMillis {
        UnixMillis(WALL_AT_START.saturating_add_unsigned(self.now) + self.wall_off)
    }

    /// Writes down what the world does, for people.
    pub(super) fn log(&mut self, line: impl FnOnce() -> String) {
        if self.cfg.record {
            if self.log.len() >= MOST_LINES {
                self.log.pop_front();
            }
            let line = format!("{:>9} ms  {}", self.now, line());
            self.log.push_back(line);
        }
    }

    /// Notes what cannot be.
    pub(super) fn require(&mut self, holds: bool, rule: &'static str, story: impl FnOnce() -> String) {
        if !holds && self.wrong.is_none() {
            self.wrong = Some((rule, story()));
        }
    }

    /// The next thing that happens. Returns whether there was one.
    pub fn step(&mut self) -> bool {
        let Some((at, what)) = self.queue.pop() else { return false };
        self.now = self.now.max(at);
        match what {
            What::Tick { life } => self.tick(life),
            What::Arrive { life, op, call, fate } => self.arrive(life, op, &call, fate),
            What::Done { life, op, event } => self.done(life, op, event),
            What::Tell { life, event } => {
                if life == self.lives {
                    self.feed(&event);
                }
            }
            What::Perform { life } => {
                if life == self.lives {
                    self.performing = false;
                    self.perform_all();
                }
            }
            What::Agent(nth) => self.agent_goes_on(nth),
            What::AgentEnds(nth) => self.agent_ends(nth),
            What::Users => self.users(),
            What::Sweep => {
                let now = self.server_now();
                self.plane.sweep(now);
                self.push_hints();
                self.queue.push(self.now + 30_000, What::Sweep);
            }
            What::Weather => self.change_weather(),
            What::Restart => self.start(),
            What::Vanish => self.vanish(),
            What::Release { life, owner } => self.release_gate(life, owner),
        }
        true
    }

    /// Trouble comes and goes, but each kind stays for a while: a world that fails evenly never gets anywhere interesting.
    fn change_weather(&mut self) {
        if self.healed_at.is_some() {
            return;
        }
        let possible = self.cfg.faults.possible().count() as u32;
        if possible > 0 {
            let nth = self.chance.below(possible) as usize;
            let fault = self.cfg.faults.possible().nth(nth);
            if let Some(fault) = fault {
                self.weather ^= fault.bit();
                self.had |= self.weather;
                if fault == Fault::Outage && self.is_about(fault) {
                    self.break_link();
                }
            }
        }
        self.machine_trouble();
        let wait = [1_000, 4_000, 15_000, 45_000][self.chance.below(4) as usize];
        let wait = if possible > 8 { wait / 4 } else { wait };
        self.queue.push(self.now + wait, What::Weather);
    }

    /// What happens to the machine or the daemon as a whole.
    fn machine_trouble(&mut self) {
        if self.hit(Fault::Suspend) {
            let most = if self.chance.one_in(8) { 4 * 3_600_000 } else { 120_000 };
            let ms = self.below(most);
            self.now += ms;
            self.slept += ms;
        }
        if self.hit(Fault::WallStep) {
            self.wall_off += i64::from(self.chance.below(7_200_000)) - 3_600_000;
        }
        if self.hit(Fault::Disconnect) {
            self.break_link();
        }
        if self.hit(Fault::HalfOpen) {
            self.half_open();
        }
    }
}
