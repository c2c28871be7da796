//! The world around a daemon, as far as it can be told from events and effects: what is asked and not answered yet, which
//! runtimes and tasks the server has, and which control connection there is.

use super::Choose;
use crate::config::{ClaimMode, Config};
use crate::effect::{ApiCall, ClaimScope, Effect, FsCall, LaunchCall, RuntimeChange, WsCmd};
use crate::event::{ApiReply, ClaimKey, Event, RunEvent, TaskStatus, WsEvent};
use crate::id::{ConnGen, OpId, Provider, RuntimeId, TaskId};
use crate::time::{Instant, Now, UnixMillis};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Answers that are remembered, to be given twice.
const REMEMBERED: usize = 8;
/// Longest jump of the clock: 6 hours.
const LONGEST_JUMP_MS: u32 = 6 * 3_600_000;
/// How the wall clock stands at the start.
const WALL_AT_START: i64 = 1_764_000_000_000;

/// Something that was asked.
#[derive(Clone, Debug)]
pub(super) enum Call {
    Api(ApiCall),
    Fs(FsCall),
    Run(LaunchCall),
}

/// Where the control connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    Off,
    Dialing,
    Up,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RunModel {
    pub(super) have: u32,
    pub(super) launched: bool,
    pub(super) result: bool,
}

/// A runtime in the daemon's set.
#[derive(Clone, Debug)]
pub(super) struct RuntimeModel {
    pub(super) provider: Provider,
    pub(super) claimable: bool,
}

/// The world: a server, a disk, processes and an adapter between them and the daemon.
#[derive(Debug)]
pub struct World {
    /// The adapter's clocks.
    pub(super) now: Now,
    pub(super) open: BTreeMap<OpId, Call>,
    pub(super) cancelled: BTreeSet<OpId>,
    pub(super) runs: BTreeMap<OpId, RunModel>,
    /// Runs that an earlier process launched, and nobody follows yet.
    pub(super) left: BTreeMap<ClaimKey, RunModel>,
    pub(super) runtimes: BTreeMap<RuntimeId, RuntimeModel>,
    /// What the server has for each task; none if it forgot it.
    pub(super) tasks: BTreeMap<TaskId, TaskStatus>,
    pub(super) claims: BTreeMap<ClaimKey, TaskId>,
    pub(super) conn: ConnGen,
    pub(super) link: Link,
    pub(super) exited: bool,
    pub(super) last: VecDeque<Event>,
    pub(super) next_claim: u64,
    pub(super) next_task: u64,
    pub(super) stops: u8,
    /// Percentage of answers that are failures.
    pub(super) faults: u32,
}

impl Default for World {
    fn default() -> Self {
        Self {
            now: Now::new(Instant::ZERO, UnixMillis(WALL_AT_START)),
            open: BTreeMap::new(),
            cancelled: BTreeSet::new(),
            runs: BTreeMap::new(),
            left: BTreeMap::new(),
            runtimes: BTreeMap::new(),
            tasks: BTreeMap::new(),
            claims: BTreeMap::new(),
            conn: ConnGen(0),
            link: Link::Off,
            exited: false,
            last: VecDeque::new(),
            next_claim: 0,
            next_task: 0,
            stops: 0,
            faults: 10,
        }
    }
}

impl World {
    /// The adapter's clocks.
    pub const fn now(&self) -> Now {
        self.now
    }

    /// Whether the daemon has ended by itself.
    pub const fn has_exited(&self) -> bool {
        self.exited
    }

    /// Settings for a daemon in this world: few slots, so that they run out; each claim mode; sometimes a provider with a bound.
    pub fn config(choose: &mut dyn Choose) -> Config {
        let mut cfg = Config { slots: 1 + choose.below(4) as u16, ..Config::default() };
        cfg.claim_mode = [ClaimMode::Auto, ClaimMode::Auto, ClaimMode::Batch, ClaimMode::PerRuntime]
            [choose.below(4) as usize];
        if choose.one_in(3) {
            cfg.provider_caps.insert(Provider::new("claude"), 1 + choose.below(2) as u16);
        }
        cfg
    }

    /// Takes note of a step of the daemon: the event that it got, and what it wants done.
    pub fn observe(&mut self, now: Now, event: Option<&Event>, effects: &[Effect]) {
        self.now = now;
        if let Some(event) = event {
            self.happened(event);
        }
        for effect in effects {
            self.wanted(effect);
        }
    }

    fn happened(&mut self, event: &Event) {
        match event {
            Event::Api { op, r } => {
                let Some(Call::Api(call)) = self.open.get(op).cloned() else { return };
                self.open.remove(op);
                self.remember(event);
                if let Ok(reply) = r {
                    self.answered(&call, reply);
                }
            }
            Event::Fs { op, .. } => {
                if matches!(self.open.get(op), Some(Call::Fs(_))) {
                    self.open.remove(op);
                    self.remember(event);
                }
            }
            Event::Run { op, run } => {
                let Some(model) = self.runs.get_mut(op) else { return };
                match run {
                    RunEvent::Launched => model.launched = true,
                    RunEvent::Progress { have, .. } => model.have = model.have.max(*have),
                    RunEvent::Result => model.result = true,
                    RunEvent::Ended { .. } => {
                        self.runs.remove(op);
                        self.open.remove(op);
                        self.remember(event);
                    }
                }
            }
            Event::Ws { conn, ws } if *conn == self.conn => match ws {
                WsEvent::Up if self.link == Link::Dialing => self.link = Link::Up,
                WsEvent::Down => self.link = Link::Off,
                _ => {}
            },
            Event::Stop { .. } => self.stops = self.stops.saturating_add(1),
            Event::Recovered { offer, .. } => {
                self.claims.insert(offer.claim, offer.task.clone());
                self.tasks.entry(offer.task.clone()).or_insert(TaskStatus::Running);
                self.next_claim = self.next_claim.max(offer.claim.0);
            }
            Event::Ws { .. } | Event::Tick | Event::Gate { .. } => {}
        }
    }

    fn remember(&mut self, event: &Event) {
        self.last.push_back(event.clone());
        if self.last.len() > REMEMBERED {
            self.last.pop_front();
        }
    }

    pub(super) fn answered(&mut self, call: &ApiCall, reply: &ApiReply) {
        match (call, reply) {
            (ApiCall::Claim(_) | ApiCall::ClaimOne(_), ApiReply::Claimed { offers, .. }) => {
                for offer in offers {
                    self.claims.insert(offer.claim, offer.task.clone());
                    self.tasks.entry(offer.task.clone()).or_insert(TaskStatus::Dispatched);
                    self.next_claim = self.next_claim.max(offer.claim.0);
                }
            }
            (ApiCall::Start(call), _) => self.is_now(call.claim(), TaskStatus::Running),
            (ApiCall::Complete { claim }, _) => self.is_now(*claim, TaskStatus::Completed),
            (ApiCall::Fail { claim, .. }, _) => self.is_now(*claim, TaskStatus::Failed),
            (ApiCall::CancelAck { claim }, _) => self.is_now(*claim, TaskStatus::Cancelled),
            (ApiCall::Status { claim }, ApiReply::Task { status }) => self.is_now(*claim, *status),
            _ => {}
        }
    }

    fn is_now(&mut self, claim: ClaimKey, status: TaskStatus) {
        if let Some(task) = self.claims.get(&claim) {
            self.tasks.insert(task.clone(), status);
        }
    }

    fn wanted(&mut self, effect: &Effect) {
        match effect {
            Effect::Api { op, call, .. } => {
                self.open.insert(*op, Call::Api(call.clone()));
            }
            Effect::Fs { op, call } => {
                self.open.insert(*op, Call::Fs(call.clone()));
            }
            Effect::Run { op, call } => {
                self.open.insert(*op, Call::Run(call.clone()));
                let left = self.left.remove(&call.claim()).filter(|_| call.attached().is_some());
                self.runs.insert(*op, left.unwrap_or_default());
            }
            Effect::Cancel { op } | Effect::Kill { op, .. } => {
                self.cancelled.insert(*op);
            }
            Effect::Ws { conn, cmd } => match cmd {
                WsCmd::Connect { .. } => (self.conn, self.link) = (*conn, Link::Dialing),
                WsCmd::Close => self.link = Link::Off,
                WsCmd::Beat { .. } => {}
            },
            Effect::Runtime { runtime, change, .. } => match change {
                RuntimeChange::Added { provider, .. } => {
                    let model = RuntimeModel { provider: provider.clone(), claimable: false };
                    self.runtimes.insert(runtime.clone(), model);
                }
                RuntimeChange::Claimable => {
                    if let Some(model) = self.runtimes.get_mut(runtime) {
                        model.claimable = true;
                    }
                }
                RuntimeChange::Removed => {
                    self.runtimes.remove(runtime);
                }
            },
            Effect::Exit { .. } => self.exited = true,
            Effect::Progress { .. }
            | Effect::Forget { .. }
            | Effect::Keep { .. }
            | Effect::Gate { .. }
            | Effect::DropIdleConnections
            | Effect::Fact { .. } => {}
        }
    }

    /// The runtimes that a claim is for.
    pub(super) fn scope(&self, call: &ApiCall) -> Vec<RuntimeId> {
        let claimable = self.runtimes.iter().filter(|(_, model)| model.claimable);
        match call {
            ApiCall::ClaimOne(one) => vec![one.runtime().clone()],
            ApiCall::Claim(claim) => match claim.scope() {
                ClaimScope::All => claimable.map(|(id, _)| id.clone()).collect(),
                ClaimScope::Only { provider } => {
                    claimable.filter(|(_, m)| m.provider == *provider).map(|(id, _)| id.clone()).collect()
                }
                ClaimScope::AllBut { providers } => claimable
                    .filter(|(_, m)| !providers.contains(&m.provider))
                    .map(|(id, _)| id.clone())
                    .collect(),
                ClaimScope::Named { runtimes } => runtimes.clone(),
            },
            _ => Vec::new(),
        }
    }

    /// What happens next: mostly something plausible, sometimes nonsense. `None` once nothing is left to decide with.
    pub fn next(&mut self, choose: &mut dyn Choose, wakeup: Option<Instant>) -> Option<(Now, Event)> {
        // After the exit only a few more things happen, to see that nothing comes of them.
        if choose.exhausted() || (self.exited && choose.one_in(4)) {
            return None;
        }
        if choose.one_in(40) {
            self.faults = [0, 5, 20, 60][choose.below(4) as usize];
        }
        let event = match choose.below(100) {
            55..73 => None,
            73..83 => Some(self.link_event(choose)),
            83..87 => {
                let ahead = 1 + choose.below(2000);
                self.advance(ahead);
                Some(Event::Tick)
            }
            87 if choose.one_in(3) => Some(self.recovered(choose)),
            87..90 => Some(self.nonsense(choose)),
            90..93 => (!self.last.is_empty())
                .then(|| self.last[choose.below(self.last.len() as u32) as usize].clone()),
            93..95 => {
                self.jump(choose);
                Some(Event::Tick)
            }
            95 if self.stops < 2 && choose.one_in(3) => Some(Event::stop()),
            _ => self.answer(choose),
        };
        let event = event.unwrap_or_else(|| {
            if let Some(at) = wakeup
                && at > self.now.mono
            {
                self.advance(u32::try_from(at.since(self.now.mono).as_millis()).unwrap_or(u32::MAX));
            }
            Event::Tick
        });
        Some((self.now, event))
    }

    pub(super) fn advance(&mut self, ms: u32) {
        self.now.mono = Instant::from_millis(self.now.mono.as_millis().saturating_add(u64::from(ms)));
        self.now.wall.0 += i64::from(ms);
    }

    fn jump(&mut self, choose: &mut dyn Choose) {
        match choose.below(3) {
            0 => self.advance(choose.below(LONGEST_JUMP_MS)),
            1 => {
                let back = u64::from(choose.below(60_000));
                self.now.mono = Instant::from_millis(self.now.mono.as_millis().saturating_sub(back));
            }
            _ => self.now.wall.0 -= i64::from(choose.below(LONGEST_JUMP_MS)),
        }
    }

    /// Something about what is on its way: an answer, or a sign of life of a run.
    fn answer(&mut self, choose: &mut dyn Choose) -> Option<Event> {
        let count = u32::try_from(self.open.len()).unwrap_or(u32::MAX);
        let nth = if choose.one_in(2) { 0 } else { choose.below(count) };
        let (op, call) = self.open.iter().nth(nth as usize).map(|(op, call)| (*op, call.clone()))?;
        self.advance([0, 0, 1, 7, 90, 400][choose.below(6) as usize]);
        Some(match call {
            Call::Api(call) => Event::Api { op, r: self.api_reply(choose, op, &call) },
            Call::Fs(call) => Event::Fs { op, r: self.fs_reply(choose, op, &call) },
            Call::Run(_) => Event::Run { op, run: self.run_event(choose, op) },
        })
    }

    fn link_event(&mut self, choose: &mut dyn Choose) -> Event {
        let conn = if choose.one_in(12) { ConnGen(self.conn.0.wrapping_sub(1)) } else { self.conn };
        if self.link == Link::Dialing && choose.percent(70) {
            let ws = if choose.percent(self.faults) { WsEvent::Down } else { WsEvent::Up };
            return Event::Ws { conn, ws };
        }
        let ws = match choose.below(8) {
            0 => WsEvent::Down,
            1 => WsEvent::Up,
            2 => WsEvent::WorkspacesChanged,
            3 => WsEvent::PendingWork { runtime: self.some_runtime(choose) },
            4 => WsEvent::Ack { runtime: self.some_runtime(choose), gone: choose.one_in(6), claims: false },
            5 => WsEvent::TaskAvailable { runtime: None, task: None },
            6 => WsEvent::TaskAvailable { runtime: Some(self.some_runtime(choose)), task: None },
            _ => WsEvent::TaskAvailable {
                runtime: Some(self.some_runtime(choose)),
                task: Some(TaskId::new("t-hinted")),
            },
        };
        Event::Ws { conn, ws }
    }

    pub(super) fn some_runtime(&self, choose: &mut dyn Choose) -> RuntimeId {
        if self.runtimes.is_empty() || choose.one_in(20) {
            return RuntimeId::new("r-unknown");
        }
        let nth = choose.below(self.runtimes.len() as u32) as usize;
        self.runtimes.keys().nth(nth).cloned().unwrap_or_else(|| RuntimeId::new("r-unknown"))
    }

    /// Something that cannot be: an answer to nothing, or of another kind.
    fn nonsense(&self, choose: &mut dyn Choose) -> Event {
        let op = if choose.one_in(2) {
            OpId(u64::from(choose.below(1000)) + 1_000_000)
        } else {
            let nth = choose.below(self.open.len() as u32) as usize;
            self.open.keys().nth(nth).copied().unwrap_or(OpId(0))
        };
        match self.open.get(&op) {
            Some(Call::Api(_)) => Event::Fs { op, r: Ok(crate::event::FsReply::Done) },
            Some(Call::Fs(_)) => Event::Run { op, run: RunEvent::Result },
            Some(Call::Run(_)) => Event::Api { op, r: Ok(ApiReply::Done) },
            None => match choose.below(3) {
                0 => Event::Api { op, r: Ok(ApiReply::Done) },
                1 => Event::Run { op, run: RunEvent::Launched },
                _ => Event::Ws { conn: ConnGen(self.conn.0 + 1 + choose.below(3)), ws: WsEvent::Up },
            },
        }
    }
}
