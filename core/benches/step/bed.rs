//! A daemon with many runtimes and nearly 1 000 tasks, which can be brought to the moment before a certain step.

use longshore_core::config::{ClaimMode, Config, Timing};
use longshore_core::daemon::Daemon;
use longshore_core::effect::{ApiCall, Effect, Effects, FsCall};
use longshore_core::event::{
    ApiReply, ClaimKey, Event, FsReply, Offer, Probed, Registered, RunEnd, RunEvent, RunOutcome, Standing,
    TaskStatus, WsEvent,
};
use longshore_core::id::{EnvRoot, OpId, Provider, RuntimeId, TaskId, WorkspaceId};
use longshore_core::rng::Seed;
use longshore_core::time::{Instant, Now, UnixMillis};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

const SLOTS: u16 = 1_000;

/// A kind of step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A tick before anything is due.
    Idle,
    /// A heartbeat was taken.
    Beat,
    /// A claim brought one task.
    Claim,
    /// An agent said something.
    Progress,
    /// A prepare lease is due.
    Lease,
    /// The directory is sealed: the last step of a task, which frees its slot.
    End,
}

pub(crate) const KINDS: [Kind; 6] =
    [Kind::Idle, Kind::Beat, Kind::Claim, Kind::Progress, Kind::Lease, Kind::End];

impl Kind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle-tick",
            Self::Beat => "heartbeat-answer",
            Self::Claim => "claim-with-one-task",
            Self::Progress => "message-progress",
            Self::Lease => "lease-due",
            Self::End => "end-of-a-task",
        }
    }
}

/// How a step is taken.
type Take<'a> = dyn FnMut(&mut Daemon, Now, &Event, &mut Effects) + 'a;

/// The daemon, and what it waits for.
pub(crate) struct Bed {
    daemon: Daemon,
    effects: Effects,
    now: Now,
    runtimes: u32,
    /// Good answers that were not given yet.
    answers: VecDeque<Event>,
    /// The answer to what is measured, kept back.
    held: Option<Event>,
    hold: Option<Kind>,
    claim: Option<OpId>,
    /// Runs that go on, with their highest message.
    runs: BTreeMap<ClaimKey, (OpId, u32)>,
    claims: u64,
    preparing: bool,
}

impl Bed {
    /// A daemon with so many runtimes, 999 tasks that run, and a claim for one more.
    pub(crate) fn new(runtimes: u32) -> Self {
        let hour = Duration::from_hours(1);
        // What comes at its own times stays out of the steps that are measured.
        let (never, idle) = (hour * 10_000, Duration::ZERO);
        let timers = Timing {
            beat: hour,
            watch: hour,
            poll: hour,
            prepare: never,
            discover: never,
            versions: never,
            idle,
            ..Timing::default()
        };
        let cfg = Config { slots: SLOTS, claim_mode: ClaimMode::Batch, timers, ..Config::default() };
        let now = Now::new(Instant::ZERO, UnixMillis(0));
        let mut effects = Effects::new();
        let daemon = Daemon::new(cfg, Seed(1), now, &mut effects).expect("settings are in bounds");
        let mut bed = Self {
            daemon,
            effects,
            now,
            runtimes,
            answers: VecDeque::new(),
            held: None,
            hold: None,
            claim: None,
            runs: BTreeMap::new(),
            claims: 0,
            preparing: false,
        };
        bed.note();
        bed.settle();
        while bed.runs.len() < usize::from(SLOTS) - 1 {
            let missing = u64::from(SLOTS) - 1 - bed.runs.len() as u64;
            bed.give(missing);
            bed.settle();
        }
        bed
    }

    /// Brings the daemon to the moment before a step of this kind, and takes it.
    pub(crate) fn step(&mut self, kind: Kind, take: &mut Take<'_>) {
        let event = match kind {
            Kind::Idle => Event::Tick,
            Kind::Beat | Kind::Lease | Kind::End | Kind::Claim => self.before(kind),
            Kind::Progress => {
                let (claim, (op, have)) = self.runs.iter().next().map(|(c, r)| (*c, *r)).expect("tasks run");
                self.runs.insert(claim, (op, have + 1));
                Event::Run { op, run: RunEvent::Progress { have: have + 1, session: false, tools: 0 } }
            }
        };
        self.effects.clear();
        take(&mut self.daemon, self.now, &event, &mut self.effects);
        self.hold = None;
        self.note();
        if kind != Kind::Progress {
            self.settle();
        }
    }

    fn before(&mut self, kind: Kind) -> Event {
        match kind {
            Kind::Claim => {
                if self.claim.is_none() {
                    self.end_one();
                }
                self.settle();
                let op = self.until_claim();
                Event::Api { op, r: Ok(self.offers(1)) }
            }
            Kind::End => {
                self.hold = Some(Kind::End);
                self.end_one();
                self.held.take().expect("a task that ends is sealed")
            }
            Kind::Lease => {
                if !self.preparing {
                    self.preparing = true;
                    self.give(1);
                    self.settle();
                }
                loop {
                    let (at, key) = self.daemon.next_wakeup().expect("a lease is due some time");
                    self.at(at);
                    if matches!(key, longshore_core::TimerKey::Lease(_)) {
                        return Event::Tick;
                    }
                    self.feed(&Event::Tick);
                    self.settle();
                }
            }
            _ => {
                self.hold = Some(kind);
                while self.held.is_none() {
                    self.tick();
                }
                self.held.take().expect("just seen")
            }
        }
    }

    /// Lets one run end, and gives all answers but those that are held.
    fn end_one(&mut self) {
        let (_, (op, have)) = self.runs.pop_first().expect("tasks run");
        let outcome = RunOutcome { end: RunEnd::Completed, have, usage: false, resume_rejected: false };
        self.feed(&Event::Run { op, run: RunEvent::Ended { outcome } });
        self.settle();
    }

    fn until_claim(&mut self) -> OpId {
        while self.claim.is_none() {
            self.tick();
        }
        self.claim.take().expect("just seen")
    }

    fn tick(&mut self) {
        let (at, _) = self.daemon.next_wakeup().expect("it polls and beats");
        self.at(at);
        self.feed(&Event::Tick);
        self.settle();
    }

    fn at(&mut self, at: Instant) {
        self.now.mono = self.now.mono.max(at);
    }

    /// Answers the claim on its way with so many tasks.
    fn give(&mut self, count: u64) {
        let op = self.until_claim();
        let offers = self.offers(count);
        self.feed(&Event::Api { op, r: Ok(offers) });
    }

    fn offers(&mut self, count: u64) -> ApiReply {
        let offer = |nth: u64| {
            let (task, runtime) =
                (TaskId::new(format!("t-{nth:06}")), runtime(nth % u64::from(self.runtimes)));
            let root = EnvRoot::new(format!("ws/{task}"));
            Offer { claim: ClaimKey(nth), task, runtime, root, prior: None, fault: None, in_place: false }
        };
        let offers = (self.claims + 1..=self.claims + count).map(offer).collect();
        self.claims += count;
        ApiReply::Claimed { offers, unusable: 0 }
    }

    fn settle(&mut self) {
        while let Some(event) = self.answers.pop_front() {
            self.feed(&event);
        }
    }

    fn feed(&mut self, event: &Event) {
        self.effects.clear();
        self.daemon.handle(self.now, event, &mut self.effects);
        self.note();
    }

    fn note(&mut self) {
        let effects: Vec<Effect> = self.effects.drain().collect();
        for effect in effects {
            let (answer, kind) = match effect {
                Effect::Api { op, call: ApiCall::Claim(_), .. } => {
                    self.claim = Some(op);
                    continue;
                }
                Effect::Api { op, call, .. } => {
                    let kind = matches!(call, ApiCall::Beat { .. }).then_some(Kind::Beat);
                    (Event::Api { op, r: Ok(self.reply(&call)) }, kind)
                }
                // The task whose lease is measured stays in preparation.
                Effect::Fs { call: FsCall::Prepare { .. }, .. } if self.preparing => continue,
                Effect::Fs { op, call } => {
                    let kind = matches!(call, FsCall::Seal { .. }).then_some(Kind::End);
                    let reply = match call {
                        FsCall::Prepare { root, .. } => FsReply::Prepared { root },
                        FsCall::Probe { .. } => {
                            let standing = Standing::Works { version: 1 };
                            FsReply::Probed {
                                agents: vec![Probed { provider: Provider::new("claude"), standing }],
                            }
                        }
                        _ => FsReply::Done,
                    };
                    (Event::Fs { op, r: Ok(reply) }, kind)
                }
                Effect::Run { op, call } => {
                    self.runs.insert(call.claim(), (op, 0));
                    (Event::Run { op, run: RunEvent::Launched }, None)
                }
                Effect::Ws { conn, cmd: longshore_core::effect::WsCmd::Connect { .. } } => {
                    (Event::Ws { conn, ws: WsEvent::Up }, None)
                }
                _ => continue,
            };
            if kind.is_some() && kind == self.hold && self.held.is_none() {
                self.held = Some(answer);
            } else {
                self.answers.push_back(answer);
            }
        }
    }

    fn reply(&self, call: &ApiCall) -> ApiReply {
        match call {
            ApiCall::Workspaces => ApiReply::Workspaces { list: vec![WorkspaceId::new("ws")], legacy: false },
            ApiCall::Register { .. } => {
                let named =
                    |nth| Registered { id: runtime(nth), provider: Provider::new("claude"), profile: None };
                ApiReply::Registered { runtimes: (0..u64::from(self.runtimes)).map(named).collect() }
            }
            ApiCall::Profiles { .. } => ApiReply::Profiles { signature: 1, count: 0 },
            ApiCall::Status { .. } => ApiReply::Task { status: TaskStatus::Running },
            ApiCall::Beat { .. } => ApiReply::Beaten { gone: false, actions: Vec::new() },
            _ => ApiReply::Done,
        }
    }
}

fn runtime(nth: u64) -> RuntimeId {
    RuntimeId::new(format!("r-{nth:05}"))
}
