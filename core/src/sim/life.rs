//! A life of the daemon: started, fed, killed or left to end, started again with what it wrote down.

use super::fault::Fault;
use super::net::LinkState;
use super::queue::What;
use super::world::World;
use crate::daemon::Daemon;
use crate::effect::{Effect, Effects, ExitReport};
use crate::event::{ClaimKey, Event};
use crate::id::OpId;
use crate::observe::{Rules, Step};
use crate::rng::Seed;
use crate::script::{Choose, Input, Served};
use crate::time::{Instant, Now};
use std::collections::BTreeMap;

/// A daemon at work.
#[derive(Debug)]
pub(super) struct Life {
    pub(super) daemon: Daemon,
    pub(super) rules: Option<Rules>,
    pub(super) seed: Seed,
    pub(super) script: Vec<Input>,
    /// How often the server acted upon each of its requests, if that is recorded.
    pub(super) served: BTreeMap<OpId, Served>,
    effects: Effects,
    /// True time of its beginning.
    started: u64,
    slept_before: u64,
    /// When the next call is due, in true time.
    tick_at: Option<u64>,
    pub(super) stops: u8,
    pub(super) exited: Option<ExitReport>,
}

impl Life {
    /// The true time of an instant of its clock.
    pub(super) const fn at(&self, instant: Instant) -> u64 {
        self.started.saturating_add(instant.as_millis())
    }
}

impl World {
    /// The daemon's clocks.
    fn clocks(&mut self) -> Now {
        let coarse = self.is_about(Fault::CoarseClock);
        let back = if self.hit(Fault::BackwardClock) { self.below(40) } else { 0 };
        let wall = self.wall();
        let Some(life) = &self.life else { return Now::default() };
        let mut mono = self.now - life.started;
        if coarse {
            mono -= mono % self.resolution();
        }
        let slept = self.slept - life.slept_before;
        Now::new(Instant::from_millis(mono.saturating_sub(back)), wall).with_slept(slept)
    }

    const fn resolution(&self) -> u64 {
        [16, 100, 1_000][(self.cfg.seed % 3) as usize]
    }

    /// A process of the daemon begins.
    pub(super) fn start(&mut self) {
        if self.life.is_some() {
            return;
        }
        self.lives += 1;
        self.began = self.now;
        let seed = Seed(self.cfg.seed.wrapping_mul(31).wrapping_add(u64::from(self.lives)));
        // The zero of the clock is the process's start, or the machine's: both are right.
        let started = if self.cfg.seed.is_multiple_of(2) { self.now } else { 0 };
        let now = Now::new(Instant::from_millis(self.now - started), self.wall());
        let mut effects = Effects::new();
        let Ok(daemon) = Daemon::new(self.cfg.daemon.clone(), seed, now, &mut effects) else {
            self.require(false, "SETTINGS", || "the daemon refuses its settings".into());
            return;
        };
        let before = self.rules_before.take();
        let mut rules = before.or_else(|| self.cfg.rules.then(|| Rules::new(&self.cfg.daemon)));
        if let Some(rules) = &mut rules {
            let wakeup = daemon.next_wakeup().map(|(at, _)| at);
            rules.observe(&Step {
                now,
                event: None,
                effects: effects.as_slice(),
                view: daemon.view(),
                wakeup,
            });
        }
        let first: Vec<Effect> = effects.drain().collect();
        self.life = Some(Box::new(Life {
            daemon,
            rules,
            seed,
            script: Vec::new(),
            served: BTreeMap::new(),
            effects,
            started,
            slept_before: self.slept,
            tick_at: None,
            stops: 0,
            exited: None,
        }));
        let known = self.ledger.recover();
        let (life, count) = (self.lives, known.len());
        self.log(|| format!("the daemon begins its life {life}, with {count} records"));
        self.reap(&known);
        #[cfg(feature = "canary")]
        let known =
            if self.cfg.canary == Some(super::config::Canary::LosesLedger) { Vec::new() } else { known };
        self.outbox.extend(first);
        self.perform_all();
        for event in known {
            self.feed(&event);
        }
        self.plan_tick();
    }

    /// What nobody wrote down is ended at the start of a process; what is written down is followed again.
    fn reap(&mut self, known: &[Event]) {
        let kept = |claim: ClaimKey| {
            known.iter().any(|event| matches!(event, Event::Recovered { offer, .. } if offer.claim == claim))
        };
        for nth in 0..self.agents.len() {
            if self.agents[nth].alive && !kept(self.agents[nth].claim) {
                self.agents[nth].killed = true;
                self.agent_ends(nth);
            }
        }
        for (key, claim) in &mut self.claims {
            claim.cut |= !claim.forgotten && !kept(*key);
        }
    }

    /// The core wants to be called, or wanted to be before something else happened.
    pub(super) fn tick(&mut self, number: u32) {
        if number != self.lives {
            return;
        }
        let now = self.now;
        let Some(life) = &mut self.life else { return };
        if life.tick_at.is_none_or(|at| at > now) {
            return;
        }
        life.tick_at = None;
        self.feed(&Event::Tick);
    }

    /// Plans the next call at the instant that the core names.
    fn plan_tick(&mut self) {
        let coarse = self.is_about(Fault::CoarseClock);
        let resolution = if coarse { self.resolution() } else { 1 };
        let late = if self.hit(Fault::LateTick) { self.below(3_000) } else { 0 };
        let (now, number) = (self.now, self.lives);
        let Some(life) = &mut self.life else { return };
        let Some((wakeup, _)) = life.daemon.next_wakeup() else { return };
        let seen = wakeup.as_millis().next_multiple_of(resolution);
        let due = life.at(Instant::from_millis(seen));
        // A clock that reads too little now is looked at again in the next millisecond.
        let at = if due <= now && life.tick_at.is_none() && late == 0 {
            now + u64::from(due < now)
        } else {
            due.max(now) + late
        };
        if life.tick_at.is_none_or(|planned| planned > at) {
            life.tick_at = Some(at);
            self.queue.push(at, What::Tick { life: number });
        }
    }

    /// Gives the daemon one event, and carries out what it wants.
    pub(super) fn feed(&mut self, event: &Event) {
        if self.life.is_none() {
            return;
        }
        let now = self.clocks();
        match event {
            Event::Ws { conn, ws } => self.link_told(*conn, ws),
            Event::Stop { .. } => self.stop_told(),
            _ => {}
        }
        if !matches!(event, Event::Tick) {
            self.log(|| format!("the daemon is told {event:?}"));
        }
        let Some(life) = &mut self.life else { return };
        life.effects.clear();
        life.daemon.handle(now, event, &mut life.effects);
        self.steps += 1;
        if self.cfg.record {
            life.script.push(Input::Event { now, event: event.clone() });
        }
        if let Some(rules) = &mut life.rules {
            let wakeup = life.daemon.next_wakeup().map(|(at, _)| at);
            let view = life.daemon.view();
            rules.observe(&Step { now, event: Some(event), effects: life.effects.as_slice(), view, wakeup });
        }
        self.outbox.extend(life.effects.drain());
        if self.outbox.is_empty() {
            self.plan_tick();
            return;
        }
        if self.hit(Fault::Crash) {
            self.crash();
            return;
        }
        if !self.performing {
            if self.hit(Fault::LateEffects) {
                self.performing = true;
                let at = self.now + self.below(400);
                self.queue.push(at, What::Perform { life: self.lives });
            } else {
                self.perform_all();
            }
        }
        self.plan_tick();
    }

    /// The process is killed, after any number of the effects of this step.
    pub fn crash(&mut self) {
        self.log(|| "the daemon is killed".into());
        let count = self.chance.below(self.outbox.len() as u32 + 1);
        for _ in 0..count {
            let Some(effect) = self.outbox.pop_front() else { break };
            self.ledger.apply(std::slice::from_ref(&effect));
            self.perform(effect);
        }
        // A process that was killed within a step has not done all that its observers were shown.
        self.rules_before = match &self.life {
            Some(life) if self.outbox.is_empty() => {
                life.rules.as_ref().map(|rules| rules.after_crash(&self.cfg.daemon))
            }
            _ => None,
        };
        self.end_life();
        let down = [50, 2_000, 20_000, 300_000][self.chance.below(4) as usize];
        let at = self.now + 10 + self.below(down);
        self.queue.push(at, What::Restart);
    }

    /// The process has ended by itself.
    pub(super) fn exit(&mut self) {
        let report = self.life.as_mut().and_then(|life| life.exited.take());
        self.log(|| format!("the daemon ends: {report:?}"));
        let kept = report.map(|report| report.kept).unwrap_or_default();
        for nth in 0..self.agents.len() {
            if self.agents[nth].alive && !kept.contains(&self.agents[nth].task) {
                self.agents[nth].killed = true;
                self.agent_ends(nth);
            }
        }
        self.end_life();
        let at = self.now + 100 + self.below(20_000);
        self.queue.push(at, What::Restart);
    }

    fn end_life(&mut self) {
        if let Some(life) = self.life.take() {
            self.digest = self.digest.rotate_left(7) ^ life.daemon.digest();
            if life.rules.as_ref().is_some_and(|rules| !rules.violations().is_empty()) {
                // Its story is still to be told.
                self.life = Some(life);
                return;
            }
        }
        self.outbox.clear();
        self.performing = false;
        self.open.clear();
        self.hosted.clear();
        self.disk.collecting.clear();
        self.link.state = LinkState::Off;
        for agent in &mut self.agents {
            agent.op = None;
        }
    }
}
