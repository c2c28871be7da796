//! Shows the rules histories with one change each, and looks whether they notice.

use longshore_core::config::{ClaimMode, Config};
use longshore_core::effect::{ApiCall, ClaimCall, Effect, Fact};
use longshore_core::error::ApiError;
use longshore_core::event::{ApiReply, ClaimKey, Event, Offer, RunEvent, RunOutcome, WsEvent};
use longshore_core::id::{ConnGen, EnvRoot, OpId, RuntimeId};
use longshore_core::observe::{Rules, Step};
use longshore_core::rng::Seed;
use longshore_core::script::{Runner, Seeded, World, effect_label};
use longshore_core::time::Instant;
use std::collections::{BTreeMap, BTreeSet};

/// What an observer is shown instead of the truth, given what was true before. Returns whether it was changed; if not, nothing may be.
pub(crate) type Tamper = fn(&Past, &mut Event, &mut Vec<Effect>) -> bool;

/// Histories that are tried at most, and their length.
const SEEDS: u64 = 1_000;
const STEPS: usize = 350;

/// A number that the daemon itself never comes to.
pub(crate) const FORGED: OpId = OpId(9_000_000);

/// What is known of the history so far.
#[derive(Default)]
pub(crate) struct Past {
    over: BTreeSet<OpId>,
    pub(crate) held_off: bool,
    pub(crate) per_runtime: bool,
    pub(crate) conn: Option<ConnGen>,
    pub(crate) many: Option<ClaimCall>,
    ones: BTreeMap<OpId, RuntimeId>,
    /// What is on its way to the server.
    pub(crate) calls: BTreeMap<OpId, ApiCall>,
    /// Claims for one that a hint came during.
    pub(crate) hinted: BTreeSet<OpId>,
    pub(crate) admitted: BTreeMap<RuntimeId, ClaimKey>,
    /// Directories that tasks work in, or did.
    pub(crate) prepared: Vec<EnvRoot>,
}

impl Past {
    fn note(&mut self, event: Option<&Event>, effects: &[Effect]) {
        match event {
            Some(Event::Ws { conn, ws: WsEvent::Ack { claims: true, .. } }) => self.conn = Some(*conn),
            Some(Event::Ws { ws: WsEvent::TaskAvailable { runtime: Some(runtime), .. }, .. }) => {
                self.hinted.extend(self.ones.iter().filter(|(_, of)| *of == runtime).map(|(op, _)| *op));
            }
            Some(Event::Api { op, r }) => {
                self.ones.remove(op);
                self.calls.remove(op);
                if let Ok(ApiReply::Claimed { offers, .. }) = r {
                    let prepared = |offer: &&Offer| has(effects, &format!("prepare {}", offer.claim.0));
                    self.prepared.extend(offers.iter().filter(prepared).map(|offer| offer.root.clone()));
                }
            }
            _ => {}
        }
        for effect in effects {
            if let Effect::Api { op, call, .. } = effect {
                self.calls.insert(*op, call.clone());
            }
            match effect {
                Effect::Api { op, call: ApiCall::ClaimOne(call), .. } => {
                    self.ones.insert(*op, call.runtime().clone());
                }
                Effect::Api { op, call: ApiCall::ClaimOver { .. }, .. } => {
                    self.over.insert(*op);
                }
                Effect::Api { call: ApiCall::Claim(call), .. } => {
                    self.held_off = false;
                    self.many = Some(call.clone());
                }
                Effect::Fact { fact: Fact::HeldOff } => self.held_off = true,
                Effect::Fact { fact: Fact::PerRuntimeClaims } => self.per_runtime = true,
                Effect::Fact { fact: Fact::Admitted { claim, runtime, .. } } => {
                    self.admitted.insert(runtime.clone(), *claim);
                }
                _ => {}
            }
        }
    }

    /// The result of a claim over the connection, if this is one.
    pub(crate) fn over<'a>(&self, event: &'a mut Event) -> Option<&'a mut Result<ApiReply, ApiError>> {
        match event {
            Event::Api { op, r } if self.over.contains(op) => Some(r),
            _ => None,
        }
    }
}

/// One change, and what the rules make of the history that it was made in.
struct Trial {
    nth: usize,
    /// None as long as nothing was changed.
    told: Option<Rules>,
}

/// A world of its own for each seed: most are usual ones, some are a swarm's, and in some pollers never wait for slots.
fn world(seed: u64, choose: &mut Seeded) -> (Config, Runner) {
    let mut cfg = World::config(choose);
    if seed % 8 == 5 {
        cfg = Config { slots: 40, claim_mode: ClaimMode::PerRuntime, ..Config::default() };
    }
    let mut runner = Runner::new(cfg.clone(), Seed(seed)).expect("a world's settings are in bounds");
    if seed % 4 == 3 {
        runner.world.swarm(choose);
    }
    (cfg, runner)
}

/// Every change is noticed by the rule that it is meant for, in one history at least. All of them share their histories: up to where one
/// is changed they are the same. A change that breaks another rule first is made once more, later.
pub(crate) fn notice(tampers: &[(&str, Tamper)]) {
    let mut blind: Vec<usize> = (0..tampers.len()).collect();
    for seed in 0..SEEDS {
        if blind.is_empty() {
            return;
        }
        try_all(seed, tampers, &mut blind);
    }
    let names: Vec<_> = blind.iter().map(|nth| (nth, tampers[*nth].0)).collect();
    assert!(names.is_empty(), "not noticed: {names:?}");
}

fn try_all(seed: u64, tampers: &[(&str, Tamper)], blind: &mut Vec<usize>) {
    let mut choose = Seeded::new(seed);
    let (cfg, mut runner) = world(seed, &mut choose);
    let (mut truth, mut past) = (Rules::new(&cfg), Past::default());
    let mut trials: Vec<Trial> = blind.iter().map(|nth| Trial { nth: *nth, told: None }).collect();
    show(&mut truth, &runner, None, runner.effects());
    for _ in 0..STEPS {
        let Some(input) = runner.next(&mut choose) else { break };
        runner.take_with(&input, &mut |step| {
            let Some(step) = step else {
                // Requests of the process that was killed mean nothing to the next one.
                past = Past::default();
                truth = truth.after_crash(&cfg);
                for told in trials.iter_mut().filter_map(|trial| trial.told.as_mut()) {
                    *told = told.after_crash(&cfg);
                }
                return;
            };
            trials.retain_mut(|trial| !trial.step(tampers, &truth, &past, step, blind));
            truth.observe(step);
            past.note(step.event, step.effects);
        });
        assert!(
            truth.violations().is_empty(),
            "seed {seed}: a true history breaks no rule: {:?}",
            truth.violations()
        );
        if trials.is_empty() {
            break;
        }
    }
}

impl Trial {
    /// Shows one step, changed if that was not done yet. Returns whether the change was noticed.
    fn step(
        &mut self,
        tampers: &[(&str, Tamper)],
        truth: &Rules,
        past: &Past,
        step: &Step<'_>,
        blind: &mut Vec<usize>,
    ) -> bool {
        let (wanted, tamper) = tampers[self.nth];
        if let Some(told) = &mut self.told {
            told.observe(step);
        } else if let Some(event) = step.event {
            let (mut event, mut effects) = (event.clone(), step.effects.to_vec());
            if !tamper(past, &mut event, &mut effects) {
                return false;
            }
            let mut told = truth.clone();
            told.observe(&Step { event: Some(&event), effects: &effects, ..*step });
            self.told = Some(told);
        }
        let Some(told) = self.told.as_ref().filter(|told| !told.violations().is_empty()) else {
            return false;
        };
        for violation in told.violations() {
            assert!(is_for_people(&violation.story), "{}: {}", violation.rule, violation.story);
        }
        let noticed = told.violations().iter().any(|violation| violation.rule == wanted);
        if noticed {
            blind.retain(|nth| *nth != self.nth);
        }
        self.told = None;
        noticed
    }
}

/// Shows the rules a step of the daemon: what is said to have happened, and what it is said to want.
pub(crate) fn show(rules: &mut Rules, runner: &Runner, event: Option<&Event>, effects: &[Effect]) {
    let wakeup = runner.daemon.next_wakeup().map(|(at, _)| at);
    rules.observe(&Step { now: runner.world.now(), event, effects, view: runner.daemon.view(), wakeup });
}

/// A daemon in its world, and rules that have seen it start.
pub(crate) fn started(seed: u64) -> (Runner, Rules) {
    let cfg = World::config(&mut Seeded::new(seed));
    let runner = Runner::new(cfg.clone(), Seed(seed)).expect("settings are in bounds");
    let mut rules = Rules::new(&cfg);
    show(&mut rules, &runner, None, runner.effects());
    (runner, rules)
}

/// The ids of the rules that are broken.
pub(crate) fn broken(rules: &Rules) -> Vec<&'static str> {
    rules.violations().iter().map(|violation| violation.rule).collect()
}

/// Whether an effect starts so.
pub(crate) fn has(effects: &[Effect], prefix: &str) -> bool {
    effects.iter().any(|effect| effect_label(effect).starts_with(prefix))
}

/// The first effect that starts so.
pub(crate) fn find(effects: &[Effect], prefix: &str) -> Option<Effect> {
    effects.iter().find(|effect| effect_label(effect).starts_with(prefix)).cloned()
}

/// Leaves out what starts so.
pub(crate) fn hide(effects: &mut Vec<Effect>, prefix: &str) -> bool {
    let before = effects.len();
    effects.retain(|effect| !effect_label(effect).starts_with(prefix));
    effects.len() < before
}

/// Shows an effect a second time, under another number.
pub(crate) fn twice(effects: &mut Vec<Effect>, prefix: &str) -> bool {
    let Some(mut copy) = find(effects, prefix) else { return false };
    if let Effect::Api { op, .. } | Effect::Fs { op, .. } | Effect::Run { op, .. } = &mut copy {
        *op = FORGED;
    }
    effects.push(copy);
    true
}

/// A request that nobody sent.
pub(crate) fn forged(call: ApiCall) -> Effect {
    Effect::Api { op: FORGED, call, deadline: Instant::from_millis(u64::MAX) }
}

/// Adds the early end of a request that is sent in this step.
pub(crate) fn cut_short(effects: &mut Vec<Effect>, prefix: &str) -> bool {
    let Some(Effect::Api { op, .. }) = find(effects, prefix) else { return false };
    effects.push(Effect::Cancel { op });
    true
}

/// Shows another event where an effect comes.
pub(crate) fn instead(event: &mut Event, effects: &[Effect], prefix: &str, other: Event) -> bool {
    let comes = has(effects, prefix);
    if comes {
        *event = other;
    }
    comes
}

/// Shows another answer.
pub(crate) fn answers(
    event: &mut Event,
    wanted: fn(&ApiReply) -> bool,
    instead: Result<ApiReply, ApiError>,
) -> bool {
    match event {
        Event::Api { r, .. } if r.as_ref().is_ok_and(wanted) => {
            *r = instead;
            true
        }
        _ => false,
    }
}

/// Shows another failure.
pub(crate) fn fails(event: &mut Event, wanted: fn(ApiError) -> bool, with: ApiError) -> bool {
    match event {
        Event::Api { r: Err(error), .. } if wanted(*error) => {
            *error = with;
            true
        }
        _ => false,
    }
}

/// Shows another end of a run.
pub(crate) fn ended(event: &mut Event, change: fn(&mut RunOutcome)) -> bool {
    match event {
        Event::Run { run: RunEvent::Ended { outcome }, .. } => {
            change(outcome);
            true
        }
        _ => false,
    }
}

/// Whether nothing in it is Rust's own notation of a value.
fn is_for_people(story: &str) -> bool {
    let is_type = |word: &str| {
        let letters: Vec<char> = word.chars().collect();
        letters.windows(2).any(|pair| pair[0].is_lowercase() && pair[1].is_uppercase())
    };
    let is_debug = ["Some(", "None", " { ", "Ok(", "Err("].iter().any(|part| story.contains(part));
    !is_debug && !story.split(|c: char| !c.is_alphanumeric()).any(is_type)
}
