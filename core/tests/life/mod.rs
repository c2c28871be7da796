//! A life of a daemon for tests: a small world that answers every effect, out of order and sometimes badly, by its own seed.
//! By the seed it also asks per runtime, bounds its provider, or meets a server that takes no terminal report.
//! It uses the public API only.

use longshore_core::config::{ClaimMode, Config};
use longshore_core::daemon::Daemon;
use longshore_core::effect::{ApiCall, Effect, Effects, FsCall, KillStep, WsCmd};
use longshore_core::error::{ApiError, Refusal};
use longshore_core::event::{
    ApiReply, ClaimKey, Event, FsReply, Offer, Probed, Registered, RunEnd, RunEvent, RunOutcome, Standing,
    TaskStatus, WsEvent,
};
use longshore_core::id::OpId;
use longshore_core::reason::FailReason;
use longshore_core::rng::Seed;
use longshore_core::time::{Instant, Now, UnixMillis};
use std::collections::BTreeSet;

/// A daemon and its world.
pub(crate) struct Life {
    pub(crate) config: Config,
    pub(crate) seed: Seed,
    pub(crate) start: Now,
    pub(crate) daemon: Daemon,
    /// Effects of the last step.
    pub(crate) fx: Effects,
    /// Number of the last step.
    pub(crate) n: u64,
    now: Now,
    pending: Vec<Event>,
    open: BTreeSet<OpId>,
    claims: u64,
    chance: u64,
}

impl Life {
    /// Creates the daemon: its first effects are in `fx`.
    pub(crate) fn new(seed: u64) -> Self {
        let mut config = Config { slots: 4, ..Config::default() };
        if seed % 3 == 1 {
            config.claim_mode = ClaimMode::PerRuntime;
        }
        if seed % 2 == 1 {
            config.provider_caps.insert("claude".into(), 3);
        }
        Self::with(config, seed)
    }

    /// The same with settings of the caller's.
    pub(crate) fn with(config: Config, seed: u64) -> Self {
        let start = Now::new(Instant::from_millis(5), UnixMillis(1_764_000_000_000));
        let (seed, mut fx) = (Seed(seed), Effects::new());
        let daemon = Daemon::new(config.clone(), seed, start, &mut fx).expect("settings are in bounds");
        let mut life = Self {
            config,
            seed,
            start,
            daemon,
            fx,
            n: 0,
            now: start,
            pending: Vec::new(),
            open: BTreeSet::new(),
            claims: 0,
            chance: seed.0 | 1,
        };
        life.answer();
        life
    }

    /// One step: something that is due, or the next deadline.
    pub(crate) fn step(&mut self) -> (Now, Event) {
        let event = if self.pending.is_empty() || self.below(8) == 0 {
            let at = self.daemon.next_wakeup().map_or(self.now.mono, |(at, _)| at);
            self.now.mono = self.now.mono.max(at);
            Event::Tick
        } else {
            let i = usize::try_from(self.below(self.pending.len() as u64)).expect("an index");
            self.now.mono = Instant::from_millis(self.now.mono.as_millis() + self.below(400));
            self.pending.remove(self.in_order(i))
        };
        self.handle(event)
    }

    /// One step with an event of the caller's.
    pub(crate) fn handle(&mut self, event: Event) -> (Now, Event) {
        self.now.wall =
            UnixMillis(self.start.wall.0 + i64::try_from(self.now.mono.as_millis()).expect("a test's time"));
        self.n += 1;
        self.fx.clear();
        if let Event::Run { op, run: RunEvent::Ended { .. } } = &event {
            self.open.remove(op);
        }
        self.daemon.handle(self.now, &event, &mut self.fx);
        self.answer();
        (self.now, event)
    }

    /// What a run says comes in order: the first event of the same run.
    fn in_order(&self, i: usize) -> usize {
        let Event::Run { op, .. } = &self.pending[i] else { return i };
        let same = |event: &Event| matches!(event, Event::Run { op: of, .. } if of == op);
        self.pending.iter().position(same).unwrap_or(i)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        self.chance % limit
    }

    fn answer(&mut self) {
        for effect in self.fx.as_slice().to_vec() {
            match effect {
                Effect::Api { op, call, .. } => {
                    let report = matches!(call, ApiCall::Complete { .. } | ApiCall::Fail { .. });
                    let r = if report && self.seed.0 % 5 == 2 {
                        Err(ApiError::Server { status: 503 })
                    } else if self.below(10) == 0 {
                        Err(self.error())
                    } else {
                        Ok(self.reply(&call))
                    };
                    self.pending.push(Event::Api { op, r });
                }
                Effect::Fs { op, call: FsCall::Prepare { root, .. } } => {
                    self.pending.push(Event::Fs { op, r: Ok(FsReply::Prepared { root }) });
                }
                Effect::Fs { op, call: FsCall::Resolve { .. } } => {
                    let path = format!("dir-{}", self.below(2)).as_str().into();
                    self.pending.push(Event::Fs { op, r: Ok(FsReply::Resolved { path }) });
                }
                Effect::Fs { op, call: FsCall::Probe { .. } } => {
                    let version = self.below(3);
                    let claude = Probed { provider: "claude".into(), standing: Standing::Works { version } };
                    self.pending.push(Event::Fs { op, r: Ok(FsReply::Probed { agents: vec![claude] }) });
                }
                Effect::Fs { op, .. } => self.pending.push(Event::Fs { op, r: Ok(FsReply::Done) }),
                Effect::Run { op, .. } => {
                    self.open.insert(op);
                    let end =
                        RunOutcome { end: RunEnd::Completed, have: 7, usage: true, resume_rejected: false };
                    let said = RunEvent::Progress { have: 7, session: true, tools: 0 };
                    for run in [RunEvent::Launched, said, RunEvent::Result, RunEvent::Ended { outcome: end }]
                    {
                        self.pending.push(Event::Run { op, run });
                    }
                }
                Effect::Kill { op, step } if step != KillStep::CloseInput && self.open.contains(&op) => {
                    self.pending.retain(|event| !matches!(event, Event::Run { op: of, .. } if *of == op));
                    let end = RunEnd::Failed { reason: FailReason::Cancelled };
                    let outcome = RunOutcome { end, have: 7, usage: false, resume_rejected: false };
                    self.pending.push(Event::Run { op, run: RunEvent::Ended { outcome } });
                }
                Effect::Ws { conn, cmd } => {
                    let ws = match cmd {
                        WsCmd::Beat { runtime } => {
                            WsEvent::Ack { runtime, gone: false, claims: true, actions: Vec::new() }
                        }
                        WsCmd::Connect { .. } if self.below(3) > 0 => WsEvent::Up,
                        _ => WsEvent::Down,
                    };
                    self.pending.push(Event::Ws { conn, ws });
                }
                _ => {}
            }
        }
    }

    fn error(&mut self) -> ApiError {
        match self.below(6) {
            0 => ApiError::NotSent,
            1 => ApiError::Unknown,
            2 => ApiError::Throttled { retry_after_ms: Some(700) },
            3 => ApiError::Server { status: 502 },
            4 => ApiError::Refused { status: 400, kind: Refusal::Other },
            _ => ApiError::Undecodable,
        }
    }

    fn reply(&mut self, call: &ApiCall) -> ApiReply {
        match call {
            ApiCall::Workspaces => {
                ApiReply::Workspaces { list: vec!["w1".into(), "w2".into()], legacy: false }
            }
            ApiCall::Profiles { .. } => ApiReply::Profiles { signature: self.below(3), count: 0 },
            ApiCall::Register { workspace, .. } => {
                let id = format!("r-{workspace}");
                ApiReply::Registered {
                    runtimes: vec![Registered {
                        id: id.as_str().into(),
                        provider: "claude".into(),
                        profile: None,
                    }],
                }
            }
            ApiCall::Beat { .. } => ApiReply::Beaten { gone: self.below(20) == 0, actions: Vec::new() },
            ApiCall::Claim(claim) | ApiCall::ClaimOver { claim, .. } => {
                let most = u64::from(claim.max()).min(2);
                let count = self.below(most + 1);
                ApiReply::Claimed { offers: (0..count).map(|_| self.offer("r-w1")).collect(), unusable: 0 }
            }
            ApiCall::ClaimOne(claim) => {
                let runtime = claim.runtime().clone();
                ApiReply::Claimed { offers: vec![self.offer(runtime.as_str())], unusable: 1 }
            }
            ApiCall::Lease { .. } => ApiReply::Task { status: TaskStatus::Dispatched },
            ApiCall::Start(_) | ApiCall::Status { .. } => ApiReply::Task { status: TaskStatus::Running },
            ApiCall::MessagesKnown { after, .. } => ApiReply::Known { upto: *after },
            _ => ApiReply::Done,
        }
    }

    fn offer(&mut self, runtime: &str) -> Offer {
        self.claims += 1;
        let task = format!("t{}", self.claims);
        Offer {
            claim: ClaimKey(self.claims),
            root: format!("w1/{task}").as_str().into(),
            task: task.as_str().into(),
            runtime: runtime.into(),
            prior: self.claims.is_multiple_of(3).then(|| "w1/t1".into()),
            fault: self.claims.is_multiple_of(7).then_some(FailReason::InvalidTaskIdentity),
            in_place: self.claims.is_multiple_of(4),
        }
    }
}
