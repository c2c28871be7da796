//! The world around a daemon, as far as it can be told from events and effects: what is asked and not answered yet, which
//! runtimes and tasks the server has, and which control connection there is.

use super::Choose;
use super::roster::Roster;
use super::swarm::{Mix, Size};
use crate::config::{ClaimMode, Config, Timing};
use crate::digest::fingerprint;
use crate::effect::{ApiCall, Effect, FsCall, GateAnswer, LaunchCall, RuntimeChange, WsCmd};
use crate::event::{
    ApiReply, ClaimKey, Event, GateAsk, GateOwner, Registered, RunEvent, Standing, StopKind, TaskStatus,
    WsEvent,
};
use crate::id::{ConnGen, OpId, Provider, RuntimeId, TaskId, WorkspaceId};
use crate::time::{Instant, Now, UnixMillis};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Answers that are remembered, to be given twice.
const REMEMBERED: usize = 8;
/// Longest jump of the clock: 6 hours.
const LONGEST_JUMP_MS: u32 = 6 * 3_600_000;
/// How the wall clock stands at the start.
const WALL_AT_START: i64 = 1_764_000_000_000;

/// Names of the agent CLIs.
pub(super) const CLIS: [&str; 3] = ["claude", "codex", "opencode"];

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
    pub(super) tools: u32,
    pub(super) launched: bool,
    pub(super) result: bool,
}

/// Small windows for the watchdogs, also those that turn them off, and those that have no effect.
fn windows(choose: &mut dyn Choose, timers: &mut Timing) {
    let mut window = |from: &[u64]| Duration::from_millis(from[choose.below(from.len() as u32) as usize]);
    timers.idle = window(&[0, 400, 3_000, 60_000, 1_800_000]);
    timers.tool_idle = window(&[0, 900, 20_000, 7_200_000]);
    timers.run_limit = window(&[0, 0, 2_000, 90_000, 86_400_000]);
    timers.idle_of.insert(Provider::new("codex"), window(&[0, 500, 40_000, 9_000_000]));
}

/// The world: a server, a disk, processes and an adapter between them and the daemon.
#[derive(Clone, Debug)]
pub struct World {
    /// The adapter's clocks.
    pub(super) now: Now,
    pub(super) open: BTreeMap<OpId, Call>,
    pub(super) cancelled: BTreeSet<OpId>,
    pub(super) runs: BTreeMap<OpId, RunModel>,
    /// Runs that an earlier process launched, and nobody follows yet.
    pub(super) left: BTreeMap<ClaimKey, RunModel>,
    /// The daemon's set.
    pub(super) runtimes: Roster<RuntimeId>,
    pub(super) providers: BTreeMap<RuntimeId, Provider>,
    /// Those that may be asked for.
    pub(super) claimable: BTreeMap<Provider, Roster<RuntimeId>>,
    /// The agent CLIs of the machine; those that are installed.
    pub(super) clis: BTreeMap<Provider, Standing>,
    /// Counts the changes of the custom runtimes; how many there are follows from it.
    pub(super) custom: u64,
    /// What each workspace was said to hold without custom runtimes, at the most.
    pub(super) hosted: BTreeMap<WorkspaceId, Vec<Registered>>,
    /// What the server has for each task; none if it forgot it.
    pub(super) tasks: BTreeMap<TaskId, TaskStatus>,
    pub(super) known: Roster<TaskId>,
    pub(super) claims: BTreeMap<ClaimKey, TaskId>,
    pub(super) conn: ConnGen,
    pub(super) link: Link,
    pub(super) exited: bool,
    /// Who holds the gate.
    pub(super) gate: Option<GateOwner>,
    pub(super) last: VecDeque<Event>,
    pub(super) next_claim: u64,
    pub(super) next_task: u64,
    pub(super) stops: u8,
    /// Percentage of answers that are failures.
    pub(super) faults: u32,
    /// What it can be.
    pub(super) levels: [u32; 4],
    pub(super) mix: Mix,
    pub(super) size: Size,
}

impl Default for World {
    fn default() -> Self {
        Self {
            now: Now::new(Instant::ZERO, UnixMillis(WALL_AT_START)),
            open: BTreeMap::new(),
            cancelled: BTreeSet::new(),
            runs: BTreeMap::new(),
            left: BTreeMap::new(),
            runtimes: Roster::default(),
            providers: BTreeMap::new(),
            claimable: BTreeMap::new(),
            clis: all_well(),
            custom: 0,
            hosted: BTreeMap::new(),
            tasks: BTreeMap::new(),
            known: Roster::default(),
            claims: BTreeMap::new(),
            conn: ConnGen(0),
            link: Link::Off,
            exited: false,
            gate: None,
            last: VecDeque::new(),
            next_claim: 0,
            next_task: 0,
            stops: 0,
            faults: 10,
            levels: [0, 5, 20, 60],
            mix: Mix::default(),
            size: Size::USUAL,
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
        if choose.one_in(3) {
            windows(choose, &mut cfg.timers);
        }
        if choose.one_in(3) {
            cfg.gc = true;
            // So short that rounds meet tasks.
            cfg.timers.gc = Duration::from_secs([10, 40, 7_200][choose.below(3) as usize]);
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
                    RunEvent::Progress { have, tools, .. } => {
                        (model.have, model.tools) = (model.have.max(*have), *tools);
                    }
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
                WsEvent::Down | WsEvent::Refused { .. } => self.link = Link::Off,
                _ => {}
            },
            Event::Stop { .. } => self.stops = self.stops.saturating_add(1),
            Event::Recovered { offer, .. } => {
                self.claims.insert(offer.claim, offer.task.clone());
                self.tasks.entry(offer.task.clone()).or_insert(TaskStatus::Running);
                self.next_claim = self.next_claim.max(offer.claim.0);
            }
            Event::Gate { owner, ask: GateAsk::Release } if self.gate == Some(*owner) => self.gate = None,
            Event::Ws { .. } | Event::Tick | Event::Gate { .. } | Event::Credential => {}
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
            (
                ApiCall::Claim(_) | ApiCall::ClaimOver { .. } | ApiCall::ClaimOne(_),
                ApiReply::Claimed { offers, .. },
            ) => {
                for offer in offers {
                    self.known.insert(&offer.task);
                    self.claims.insert(offer.claim, offer.task.clone());
                    self.tasks.entry(offer.task.clone()).or_insert(TaskStatus::Dispatched);
                    self.next_claim = self.next_claim.max(offer.claim.0);
                }
            }
            (ApiCall::Register { workspace, .. }, ApiReply::Registered { runtimes }) => {
                let own: Vec<Registered> = runtimes.iter().filter(|r| r.profile.is_none()).cloned().collect();
                let hosted = self.hosted.entry(workspace.clone()).or_default();
                if hosted.len() < own.len() {
                    *hosted = own;
                }
            }
            (ApiCall::Profiles { .. }, ApiReply::Profiles { signature, .. }) => self.custom = *signature,
            (ApiCall::WaitDirectory { claim, .. }, _)
                if self.status(*claim) == Some(TaskStatus::Dispatched) =>
            {
                self.is_now(*claim, TaskStatus::WaitingLocalDirectory);
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
            Effect::Runtime { runtime, change, .. } => self.changed(runtime, change),
            Effect::Exit { .. } => self.exited = true,
            Effect::Gate { owner, answer: GateAnswer::Granted } => self.gate = Some(*owner),
            Effect::Progress { .. }
            | Effect::Forget { .. }
            | Effect::ForgetAction { .. }
            | Effect::Keep { .. }
            | Effect::Gate { .. }
            | Effect::DropIdleConnections
            | Effect::Fact { .. } => {}
        }
    }

    fn changed(&mut self, runtime: &RuntimeId, change: &RuntimeChange) {
        match change {
            RuntimeChange::Added { provider, .. } => {
                self.runtimes.insert(runtime);
                self.providers.insert(runtime.clone(), provider.clone());
            }
            RuntimeChange::Claimable => {
                if let Some(provider) = self.providers.get(runtime) {
                    self.claimable.entry(provider.clone()).or_default().insert(runtime);
                }
            }
            RuntimeChange::Removed => {
                self.runtimes.remove(runtime);
                if let Some(provider) = self.providers.remove(runtime)
                    && let Some(claimable) = self.claimable.get_mut(&provider)
                {
                    claimable.remove(runtime);
                }
            }
        }
    }

    /// A hash of all of it, but of the answers that could come twice only the last, and that only if `twice`.
    pub(super) fn fingerprint(&self, twice: bool) -> u64 {
        let Self { now, open, cancelled, runs, left, runtimes, providers, claimable, hosted, tasks, .. } =
            self;
        let Self { known, claims, conn, link, exited, last, next_claim, next_task, stops, .. } = self;
        let Self { faults, levels, mix, size, gate, clis, custom, .. } = self;
        let last = last.back().filter(|_| twice);
        fingerprint(&(
            (now, open, cancelled, runs, left, runtimes, providers, claimable, hosted, tasks),
            (known, claims, conn, link, exited, last, next_claim, next_task, stops),
            (faults, levels, mix, size, gate, clis, custom),
        ))
    }

    /// What happens next: mostly something plausible, sometimes nonsense. `None` once nothing is left to decide with.
    pub fn next(&mut self, choose: &mut dyn Choose, wakeup: Option<Instant>) -> Option<(Now, Event)> {
        // After the exit only a few more things happen, to see that nothing comes of them.
        if choose.exhausted() || (self.exited && choose.one_in(4)) {
            return None;
        }
        if choose.one_in(40) {
            self.faults = self.levels[choose.below(4) as usize];
        }
        let event = match self.mix.draw(choose) {
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
            95 if self.stops == 0 && choose.one_in(3) => Some(some_stop(choose)),
            // Who has asked once asks again, and who has asked twice does so soon.
            95..97 if self.stops == 2 || (self.stops == 1 && choose.one_in(3)) => Some(some_stop(choose)),
            97 => Some(self.gate_event(choose)),
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
        match choose.below(6) {
            // The machine slept, for as long as the clock moved, or for a part of it.
            2 | 3 => {
                let ms = choose.below(LONGEST_JUMP_MS);
                self.advance(ms);
                let slept = if choose.one_in(4) { choose.below(ms) } else { ms };
                self.now.slept = self.now.slept.saturating_add(u64::from(slept));
            }
            // It says that it slept, and cannot have: time did not pass, or went back.
            4 => self.now.slept = self.now.slept.saturating_add(u64::from(choose.below(LONGEST_JUMP_MS))),
            5 if choose.one_in(2) => self.now.slept = u64::from(choose.below(60_000)),
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
        let op = if choose.one_in(2) { self.open.keys().next().copied() } else { self.some_open(choose) }?;
        let call = self.open.get(&op).cloned()?;
        if matches!(call, Call::Fs(FsCall::Collect(_))) && choose.percent(80) {
            // Freeing takes long: meanwhile tasks come that want the directory.
            return None;
        }
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
        let ws = match choose.below(9) {
            8 => WsEvent::ProfilesChanged { workspace: some_workspace(choose) },
            0 => WsEvent::Down,
            1 => WsEvent::Up,
            2 => WsEvent::WorkspacesChanged,
            3 => WsEvent::PendingWork { runtime: self.some_runtime(choose) },
            4 => WsEvent::Ack {
                runtime: self.some_runtime(choose),
                gone: choose.one_in(6),
                claims: choose.percent(70),
                actions: Vec::new(),
            },
            5 => WsEvent::TaskAvailable { runtime: None, task: None },
            6 => WsEvent::TaskAvailable { runtime: Some(self.some_runtime(choose)), task: None },
            _ => WsEvent::TaskAvailable {
                runtime: Some(self.some_runtime(choose)),
                task: Some(TaskId::new("t-hinted")),
            },
        };
        Event::Ws { conn, ws }
    }

    /// Somebody asks for the gate, or lets it go: most often who has it.
    fn gate_event(&self, choose: &mut dyn Choose) -> Event {
        if let Some(owner) = self.gate.filter(|_| choose.percent(70)) {
            return Event::Gate { owner, ask: GateAsk::Release };
        }
        let owners = [GateOwner::ServerUpdate, GateOwner::SelfUpdate, GateOwner::Reload, GateOwner::Demotion];
        let asks = [GateAsk::Try, GateAsk::Wait, GateAsk::Wait, GateAsk::Release];
        let owner = owners[choose.below(4) as usize];
        Event::Gate { owner, ask: asks[choose.below(4) as usize] }
    }

    pub(super) fn some_runtime(&self, choose: &mut dyn Choose) -> RuntimeId {
        if self.runtimes.len() == 0 || choose.one_in(20) {
            return RuntimeId::new("r-unknown");
        }
        let nth = choose.below(self.runtimes.len() as u32) as usize;
        self.runtimes.get(nth).cloned().unwrap_or_else(|| RuntimeId::new("r-unknown"))
    }

    /// Something on its way: the first from a number on that is as likely as any.
    fn some_open(&self, choose: &mut dyn Choose) -> Option<OpId> {
        let (first, last) = (self.open.keys().next()?.0, self.open.keys().next_back()?.0);
        let from = first + u64::from(choose.below((last - first + 1) as u32));
        self.open.range(OpId(from)..).next().map(|(op, _)| *op)
    }

    /// Something that cannot be: an answer to nothing, or of another kind.
    fn nonsense(&self, choose: &mut dyn Choose) -> Event {
        let op = if choose.one_in(2) {
            OpId(u64::from(choose.below(1000)) + 1_000_000)
        } else {
            self.some_open(choose).unwrap_or(OpId(0))
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

/// All agent CLIs that a machine can have here, and each works.
pub(super) fn all_well() -> BTreeMap<Provider, Standing> {
    CLIS.map(|name| (Provider::new(name), Standing::Works { version: 1 })).into()
}

fn some_workspace(choose: &mut dyn Choose) -> WorkspaceId {
    WorkspaceId::new(["ws-1", "ws-2", "ws-unknown"][choose.below(3) as usize])
}

/// A request to stop, of any kind.
fn some_stop(choose: &mut dyn Choose) -> Event {
    let how = match choose.below(6) {
        0 | 1 => StopKind::Now,
        2 => StopKind::Drain { within_ms: None },
        3 => StopKind::Drain { within_ms: Some([0, 1_500, 40_000][choose.below(3) as usize]) },
        _ => StopKind::Restart,
    };
    Event::Stop { how }
}
