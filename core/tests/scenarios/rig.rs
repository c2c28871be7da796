//! A tiny language for scripts: requests are named by their labels, such as `start 1` or `claim all 4`. Every step is held to all rules.

use longshore_core::config::{ClaimMode, Config};
use longshore_core::daemon::View;
use longshore_core::effect::{ApiCall, Effect, FsCall, RuntimeChange};
use longshore_core::error::{ApiError, FsError, Refusal};
use longshore_core::event::{
    ApiReply, ClaimKey, Event, FsReply, Offer, Probed, Registered, RunEnd, RunEvent, RunOutcome, Standing,
    TaskStatus, WsEvent,
};
use longshore_core::id::{
    ConnGen, EnvRoot, OpId, PathKey, ProfileId, Provider, RuntimeId, TaskId, WorkspaceId,
};
use longshore_core::reason::FailReason;
use longshore_core::rng::Seed;
use longshore_core::script::{Input, Runner, effect_label};
use longshore_core::time::{Instant, Now};
use std::collections::BTreeMap;
use std::time::Duration;

pub(crate) const SERVER_ERROR: ApiError = ApiError::Server { status: 500 };
pub(crate) const BAD_REQUEST: ApiError = ApiError::Refused { status: 400, kind: Refusal::Other };
pub(crate) const TASK_GONE: ApiError = ApiError::Refused { status: 404, kind: Refusal::TaskGone };
pub(crate) const RUNTIME_GONE: ApiError = ApiError::Refused { status: 404, kind: Refusal::RuntimeGone };
pub(crate) const NO_ROUTE: ApiError = ApiError::Refused { status: 404, kind: Refusal::RouteMissing };
pub(crate) const UNAUTHORIZED: ApiError = ApiError::Refused { status: 401, kind: Refusal::Unauthorized };

pub(crate) const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A daemon, and all that it wanted so far.
pub(crate) struct Rig {
    runner: Runner,
    now: Now,
    open: BTreeMap<OpId, Effect>,
    /// Everything that it wanted since the last `clear`, with the time.
    log: Vec<(Instant, String)>,
    conn: ConnGen,
    /// The runtimes in the set, with their agent CLIs.
    set: BTreeMap<RuntimeId, Provider>,
    /// Whether looks and custom runtimes are left to the test. Else each look finds just the agent CLIs that have a runtime, or claude, and nobody has
    /// made a custom runtime.
    manual: bool,
}

pub(crate) fn with(slots: u16, claim_mode: ClaimMode) -> Config {
    Config { slots, claim_mode, ..Config::default() }
}

pub(crate) fn offer(claim: u64, task: &str, runtime: &str) -> Offer {
    Offer {
        claim: ClaimKey(claim),
        task: TaskId::new(task),
        runtime: RuntimeId::new(runtime),
        root: EnvRoot::new(format!("ws/{task}")),
        prior: None,
        fault: None,
        in_place: false,
    }
}

pub(crate) fn ended(end: RunEnd, have: u32) -> RunEvent {
    RunEvent::Ended { outcome: RunOutcome { end, have, usage: false, resume_rejected: false } }
}

pub(crate) fn failed(reason: FailReason) -> RunEnd {
    RunEnd::Failed { reason }
}

impl Rig {
    /// A daemon that was just started.
    pub(crate) fn new(cfg: Config) -> Self {
        let mut rig = Self::manual(cfg);
        rig.manual = false;
        rig.look();
        rig
    }

    /// The same for a test of looks at agent CLIs, or of custom runtimes: it answers for them.
    pub(crate) fn manual(cfg: Config) -> Self {
        let runner = Runner::new(cfg, Seed(7)).expect("the settings are in bounds");
        let now = runner.world.now();
        let (open, log, set) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
        let mut rig = Self { runner, now, open, log, conn: ConnGen(0), set, manual: true };
        rig.note();
        rig
    }

    /// Answers looks at agent CLIs, and for custom runtimes, unless the test does.
    fn look(&mut self) {
        let asks = |effect: &&Effect| {
            let label = effect_label(effect);
            label.starts_with("probe") || label.starts_with("profiles ")
        };
        while !self.manual
            && let Some((op, effect)) =
                self.open.iter().find(|(_, effect)| asks(effect)).map(|(op, effect)| (*op, effect.clone()))
        {
            let event = self.well(op, &effect);
            self.open.remove(&op);
            self.runner.feed(self.now, event);
            self.note();
        }
    }

    /// A look finds these: `claude` works, `claude=2` is of that version, `codex:slow` is not so well.
    pub(crate) fn finds(&mut self, label: &str, agents: &[&str]) {
        let op = self.op(label);
        let agents = agents.iter().map(|text| probed(text)).collect();
        self.feed(Event::Fs { op, r: Ok(FsReply::Probed { agents }) });
    }

    /// A daemon that serves these runtimes of one workspace, `id:provider` each, is connected, and has found no work.
    pub(crate) fn serving(cfg: Config, runtimes: &[&str]) -> Self {
        let mut rig = Self::new(cfg);
        rig.ok("renew");
        rig.api("workspaces", Ok(workspaces(&["ws-1"])));
        rig.api("register ws-1", Ok(registered(runtimes)));
        rig.ws(WsEvent::Up);
        rig.settle();
        rig.clear();
        rig
    }

    /// Answers what is on its way well, until nothing is.
    pub(crate) fn settle(&mut self) {
        while let Some((op, effect)) = self.open.iter().next().map(|(op, effect)| (*op, effect.clone())) {
            let event = self.well(op, &effect);
            self.feed(event);
        }
    }

    /// The same, but looks at agent CLIs are left alone.
    pub(crate) fn settle_api(&mut self) {
        let looks = |effect: &Effect| effect_label(effect).starts_with("probe");
        while let Some((op, effect)) =
            self.open.iter().find(|(_, effect)| !looks(effect)).map(|(op, effect)| (*op, effect.clone()))
        {
            let event = self.well(op, &effect);
            self.feed(event);
        }
    }

    fn note(&mut self) {
        let broken = self.runner.violations().first().map(ToString::to_string);
        for effect in self.runner.effects() {
            self.log.push((self.now.mono, effect_label(effect)));
            match effect {
                Effect::Api { op, .. } | Effect::Fs { op, .. } | Effect::Run { op, .. } => {
                    self.open.insert(*op, effect.clone());
                }
                Effect::Ws { conn, .. } => self.conn = *conn,
                Effect::Runtime { runtime, change: RuntimeChange::Added { provider, .. }, .. } => {
                    self.set.insert(runtime.clone(), provider.clone());
                }
                Effect::Runtime { runtime, change: RuntimeChange::Removed, .. } => {
                    self.set.remove(runtime);
                }
                _ => {}
            }
        }
        assert!(broken.is_none(), "{}\n{}", broken.unwrap_or_default(), self.story());
    }

    fn story(&self) -> String {
        let lines: Vec<String> =
            self.log.iter().map(|(at, label)| format!("{:>8} {label}", at.as_millis())).collect();
        lines.join("\n")
    }

    pub(crate) fn feed(&mut self, event: Event) {
        match &event {
            Event::Api { op, .. } | Event::Fs { op, .. } | Event::Run { op, run: RunEvent::Ended { .. } } => {
                self.open.remove(op);
            }
            _ => {}
        }
        self.runner.feed(self.now, event);
        self.note();
        self.look();
    }

    /// What a registration on its way names.
    pub(crate) fn names(&self, workspace: &str) -> (Vec<String>, Option<u64>) {
        let of = |effect: &&Effect| effect_label(effect) == format!("register {workspace}");
        match self.open.values().find(of) {
            Some(Effect::Api { call: ApiCall::Register { agents, profiles, .. }, .. }) => {
                (agents.iter().map(ToString::to_string).collect(), *profiles)
            }
            _ => panic!("{workspace} is not being registered\n{}", self.story()),
        }
    }

    /// The number of a request on its way.
    pub(crate) fn op(&self, label: &str) -> OpId {
        let found = self.open.iter().find(|(_, effect)| effect_label(effect) == label);
        found.map_or_else(|| panic!("`{label}` is not on its way\n{}", self.story()), |(op, _)| *op)
    }

    pub(crate) fn is_open(&self, label: &str) -> bool {
        self.open.values().any(|effect| effect_label(effect) == label)
    }

    /// Answers a request of the server.
    pub(crate) fn api(&mut self, label: &str, r: Result<ApiReply, ApiError>) {
        let op = self.op(label);
        self.feed(Event::Api { op, r });
    }

    pub(crate) fn err(&mut self, label: &str, error: ApiError) {
        self.api(label, Err(error));
    }

    /// Answers well: a claim brings nothing, a task runs, a run completes.
    pub(crate) fn ok(&mut self, label: &str) {
        let op = self.op(label);
        let event = self.well(op, &self.open[&op].clone());
        self.feed(event);
    }

    fn well(&self, op: OpId, effect: &Effect) -> Event {
        match effect {
            Effect::Fs { call: FsCall::Prepare { root, .. }, .. } => {
                Event::Fs { op, r: Ok(FsReply::Prepared { root: root.clone() }) }
            }
            Effect::Fs { call: FsCall::Resolve { .. }, .. } => {
                Event::Fs { op, r: Ok(FsReply::Resolved { path: PathKey::new("dir-1") }) }
            }
            Effect::Fs { call: FsCall::Probe { .. }, .. } => {
                let mut names: Vec<&str> = self.set.values().map(Provider::as_str).collect();
                names.sort_unstable();
                names.dedup();
                if names.is_empty() {
                    names.push("claude");
                }
                let agents = names.into_iter().map(probed).collect();
                Event::Fs { op, r: Ok(FsReply::Probed { agents }) }
            }
            Effect::Fs { .. } => Event::Fs { op, r: Ok(FsReply::Done) },
            Effect::Run { .. } => Event::Run { op, run: ended(RunEnd::Completed, 0) },
            Effect::Api { call, .. } => {
                let reply = match call {
                    ApiCall::Claim(_) | ApiCall::ClaimOver { .. } | ApiCall::ClaimOne(_) => claimed(&[]),
                    ApiCall::Status { .. } => ApiReply::Task { status: TaskStatus::Running },
                    ApiCall::Beat { .. } => ApiReply::Beaten { gone: false, actions: Vec::new() },
                    ApiCall::Workspaces => workspaces(&["ws-1"]),
                    ApiCall::Profiles { .. } => ApiReply::Profiles { signature: 1, count: 0 },
                    _ => ApiReply::Done,
                };
                Event::Api { op, r: Ok(reply) }
            }
            other => panic!("{other:?} needs no answer\n{}", self.story()),
        }
    }

    pub(crate) fn fs_err(&mut self, label: &str, error: FsError) {
        let op = self.op(label);
        self.feed(Event::Fs { op, r: Err(error) });
    }

    /// The user's directory of a task turns out to be this one.
    pub(crate) fn resolves(&mut self, claim: u64, path: &str) {
        let op = self.op(&format!("resolve {claim}"));
        self.feed(Event::Fs { op, r: Ok(FsReply::Resolved { path: PathKey::new(path) }) });
    }

    pub(crate) fn run(&mut self, label: &str, run: RunEvent) {
        let op = self.op(label);
        self.feed(Event::Run { op, run });
    }

    /// The agent has said so much.
    pub(crate) fn says(&mut self, label: &str, have: u32) {
        self.run(label, RunEvent::Progress { have, session: false, tools: 0 });
    }

    pub(crate) fn status(&mut self, label: &str, status: TaskStatus) {
        self.api(label, Ok(ApiReply::Task { status }));
    }

    /// Answers a claim with tasks.
    pub(crate) fn brings(&mut self, label: &str, offers: &[Offer]) {
        self.api(label, Ok(claimed(offers)));
    }

    pub(crate) fn ws(&mut self, ws: WsEvent) {
        self.feed(Event::Ws { conn: self.conn, ws });
    }

    /// The server says that work may be there.
    pub(crate) fn hint(&mut self, runtime: Option<&str>) {
        self.ws(WsEvent::TaskAvailable {
            runtime: runtime.map(RuntimeId::new),
            task: Some(TaskId::new("t")),
        });
    }

    pub(crate) fn stop(&mut self) {
        self.feed(Event::stop());
    }

    /// Lets time pass, with a tick at each instant that the daemon asked for.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.now.mono.after(time);
        while let Some((at, _)) = self.runner.daemon.next_wakeup().filter(|(at, _)| *at <= end) {
            self.now.mono = self.now.mono.max(at);
            self.feed(Event::Tick);
        }
        self.now.mono = end;
    }

    /// Time passes and nobody looks.
    pub(crate) fn skip(&mut self, time: Duration) {
        self.now.mono = self.now.mono.after(time);
    }

    /// The machine sleeps, and wakes up to a tick.
    pub(crate) fn sleep(&mut self, time: Duration) {
        self.skip(time);
        self.now.slept += u64::try_from(time.as_millis()).expect("a test's time");
        self.feed(Event::Tick);
    }

    /// Lets time pass while heartbeats, status looks, lists and empty claims are answered at once.
    pub(crate) fn live(&mut self, time: Duration) {
        let end = self.now.mono.after(time);
        loop {
            self.housekeep();
            let next = self.runner.daemon.next_wakeup().map(|(at, _)| at).filter(|at| *at <= end);
            let Some(at) = next else { break };
            self.now.mono = self.now.mono.max(at);
            self.feed(Event::Tick);
        }
        self.now.mono = end;
    }

    fn housekeep(&mut self) {
        let routine = |effect: &&Effect| {
            let label = effect_label(effect);
            ["beat ", "status ", "lease ", "claim ", "one ", "workspaces"]
                .iter()
                .any(|p| label.starts_with(p))
        };
        while let Some((op, effect)) =
            self.open.iter().find(|(_, effect)| routine(effect)).map(|(op, effect)| (*op, effect.clone()))
        {
            let event = self.well(op, &effect);
            self.feed(event);
        }
    }

    /// Answers the heartbeats of a runtime.
    pub(crate) fn beats(&mut self, runtime: &str) {
        let beat = format!("beat {runtime}");
        while self.is_open(&beat) {
            self.ok(&beat);
        }
    }

    /// The process is killed, and another one takes over what was kept. What was wanted before is not looked at any more.
    pub(crate) fn crash(&mut self) {
        self.open.clear();
        self.log.clear();
        self.set.clear();
        self.runner.take(&Input::Crash { now: self.now, fate: 0 });
        self.note();
        self.look();
    }

    /// The same with other settings.
    pub(crate) fn crash_with(&mut self, cfg: Config) {
        self.runner.cfg = cfg;
        self.crash();
    }

    pub(crate) fn clear(&mut self) {
        self.log.clear();
    }

    /// How often it wanted this since the last `clear`.
    pub(crate) fn count(&self, label: &str) -> usize {
        self.log.iter().filter(|(_, l)| l == label).count()
    }

    /// How often it wanted something that starts so.
    pub(crate) fn count_like(&self, prefix: &str) -> usize {
        self.log.iter().filter(|(_, l)| l.starts_with(prefix)).count()
    }

    pub(crate) fn assert_saw(&self, label: &str) {
        assert!(self.count(label) > 0, "`{label}` never came\n{}", self.story());
    }

    pub(crate) fn assert_not(&self, prefix: &str) {
        assert_eq!(self.count_like(prefix), 0, "`{prefix}` came\n{}", self.story());
    }

    /// These came, in this order, with anything between them.
    pub(crate) fn assert_order(&self, labels: &[&str]) {
        let mut log = self.log.iter();
        for label in labels {
            assert!(log.any(|(_, l)| l == label), "`{label}` did not come in its turn\n{}", self.story());
        }
    }

    /// When it first wanted this since the last `clear`.
    pub(crate) fn when(&self, label: &str) -> Instant {
        let found = self.log.iter().find(|(_, l)| l == label);
        found.map_or_else(|| panic!("`{label}` never came\n{}", self.story()), |(at, _)| *at)
    }

    /// Each time it wanted this since the last `clear`.
    pub(crate) fn times(&self, label: &str) -> Vec<Instant> {
        self.log.iter().filter(|(_, l)| l == label).map(|(at, _)| *at).collect()
    }

    pub(crate) fn now(&self) -> Instant {
        self.now.mono
    }

    pub(crate) fn view(&self) -> View<'_> {
        self.runner.daemon.view()
    }

    pub(crate) fn runner(&mut self) -> &mut Runner {
        &mut self.runner
    }

    pub(crate) fn is_marked(&self, root: &str) -> bool {
        self.view().is_root_active(&EnvRoot::new(root))
    }

    /// A task is claimed for a runtime: after a hint, in the mode that the daemon is in.
    pub(crate) fn offer(&mut self, offer: &Offer) {
        self.hint(Some(offer.runtime.as_str()));
        let claims = |effect: &&Effect| {
            let label = effect_label(effect);
            label.starts_with("claim ") || label == format!("one {}", offer.runtime)
        };
        let label = self.open.values().find(claims).map(effect_label).unwrap_or_default();
        self.brings(&label, std::slice::from_ref(offer));
    }

    /// A task is claimed and runs. The claims after it are answered.
    pub(crate) fn running(&mut self, offer: &Offer) {
        let claim = offer.claim.0;
        self.offer(offer);
        self.ok(&format!("prepare {claim}"));
        self.ok(&format!("start {claim}"));
        self.housekeep();
        self.run(&format!("run {claim}"), RunEvent::Launched);
    }

    /// A run has ended, and everything before the report is answered.
    pub(crate) fn before_report(&mut self, claim: u64) {
        self.ok(&format!("unwind {claim}"));
        if self.is_open(&format!("status {claim}")) {
            self.status(&format!("status {claim}"), TaskStatus::Running);
        }
    }
}

fn probed(text: &str) -> Probed {
    let (name, standing) = match text.split_once(':') {
        Some((name, "slow")) => (name, Standing::Slow),
        Some((name, "unreadable")) => (name, Standing::Unreadable),
        Some((name, "old")) => (name, Standing::TooOld),
        Some((name, "broken")) => (name, Standing::NotExecutable),
        Some(_) => panic!("{text} is no way to be"),
        None => {
            let (name, version) = text.split_once('=').unwrap_or((text, "1"));
            (name, Standing::Works { version: version.parse().expect("a number") })
        }
    };
    Probed { provider: Provider::new(name), standing }
}

pub(crate) fn claimed(offers: &[Offer]) -> ApiReply {
    ApiReply::Claimed { offers: offers.to_vec(), unusable: 0 }
}

pub(crate) fn workspaces(ids: &[&str]) -> ApiReply {
    ApiReply::Workspaces { list: ids.iter().map(|id| WorkspaceId::new(*id)).collect(), legacy: false }
}

/// So many custom runtimes, with this signature.
pub(crate) fn profiles(signature: u64, count: u16) -> ApiReply {
    ApiReply::Profiles { signature, count }
}

/// Runtimes by name: `r-1:claude`, or `r-2:claude+p-1` for a custom one.
pub(crate) fn registered(runtimes: &[&str]) -> ApiReply {
    let split = |text: &&str| {
        let (id, provider) = text.split_once(':').expect("`id:provider`");
        let (provider, profile) = provider.split_once('+').map_or((provider, None), |(p, of)| (p, Some(of)));
        let profile = profile.map(ProfileId::new);
        Registered { id: RuntimeId::new(id), provider: Provider::new(provider), profile }
    };
    ApiReply::Registered { runtimes: runtimes.iter().map(split).collect() }
}
