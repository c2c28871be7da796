//! A life of a daemon for tests of what reads traces: a small world that answers every effect, out of order and sometimes badly, by
//! its own seed, and the trace of it. By the seed it also asks per runtime, bounds its provider, or meets a server that takes no
//! terminal report.
//!
//! [`World`](super::World) can do more, and asks for every decision; this one needs a number and nothing else. It uses the public
//! API only.

use crate::config::{ClaimMode, Config};
use crate::daemon::Daemon;
use crate::effect::{ApiCall, Effect, Effects, FsCall, KillStep, WsCmd};
use crate::error::{ApiError, Refusal};
use crate::event::{
    ApiReply, ClaimKey, Event, FsReply, Offer, Probed, Registered, RunEnd, RunEvent, RunOutcome, Standing,
    TaskStatus, WsEvent,
};
use crate::id::OpId;
use crate::reason::FailReason;
use crate::rng::Seed;
use crate::time::{Instant, Now, UnixMillis};
use crate::trace::{Header, StepNumber, encode};
use std::collections::BTreeSet;

/// What is recorded after a step, beside the step itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Nothing.
    None,
    /// A digest of the state.
    Digest,
    /// The whole state.
    Checkpoint,
}

/// A daemon and its world.
#[derive(Debug)]
pub struct Life {
    /// The daemon's settings.
    pub config: Config,
    /// Seed of the daemon's generator; the world has one of its own that begins with the same number.
    pub seed: Seed,
    /// When the daemon was created.
    pub start: Now,
    /// The daemon, after the last step.
    pub daemon: Daemon,
    /// Effects of the last step, or of the creation.
    pub fx: Effects,
    /// Number of the last step; 0 is the creation.
    pub n: StepNumber,
    now: Now,
    pending: Vec<Event>,
    open: BTreeSet<OpId>,
    claims: u64,
    chance: u64,
}

impl Life {
    /// Creates the daemon: its first effects are in `fx`.
    pub fn new(seed: u64) -> Self {
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
    ///
    /// # Panics
    /// If they are out of bounds.
    pub fn with(config: Config, seed: u64) -> Self {
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

    /// A whole life as a trace, as a daemon records it: the header, the creation and so many steps, each with what `mark` says of its
    /// number. The caller may add an end.
    ///
    /// # Panics
    /// If something cannot be encoded, which is a bug.
    pub fn recorded(seed: u64, steps: usize, mark: impl Fn(StepNumber) -> Mark) -> Vec<u8> {
        let (mut life, mut lines) = (Self::new(seed), Vec::new());
        let header = Header::new("test", life.config.clone(), life.seed, life.start);
        encode::header(&mut lines, &header).expect("encodes");
        encode::start(&mut lines, life.start, life.fx.as_slice()).expect("encodes");
        for _ in 0..steps {
            let (now, event) = life.step();
            encode::step(&mut lines, life.n, now, &event, life.fx.as_slice()).expect("encodes");
            match mark(life.n) {
                Mark::None => {}
                Mark::Digest => encode::digest(&mut lines, life.n, life.daemon.digest()).expect("encodes"),
                Mark::Checkpoint => {
                    encode::checkpoint(&mut lines, life.n, &life.daemon).expect("encodes");
                }
            }
        }
        lines
    }

    /// One step: something that is due, or the next deadline. Gives when it was, and what.
    pub fn step(&mut self) -> (Now, Event) {
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

    /// One step with an event of the caller's, at the time of the step before.
    pub fn handle(&mut self, event: Event) -> (Now, Event) {
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
