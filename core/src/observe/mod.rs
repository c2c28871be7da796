//! What every run of the daemon must hold to, checked from outside: from the events that it got, the effects that it wrote, and what
//! can be seen of it. Works on a live daemon, in property tests and over a recorded trace.
//!
//! One struct with shared bookkeeping: the rules see the same clamped time, the same open requests and the same claims. A violation names
//! the rule as the specification does (`I5`, `INV-99`) or, for our own decisions, by a word.

mod access;
mod actions;
mod agents;
mod boot;
mod calls;
pub mod catalog;
mod claims;
mod deadlines;
mod fleet;
mod freshness;
mod gate;
mod gc;
mod late;
mod life;
mod link;
mod logged;
mod ops;
mod over;
mod pace;
mod paths;
mod rate;
mod recovery;
mod register;
mod report;
mod seen;
mod silence;
mod stop;
mod tasks;
mod watch;

pub use catalog::{catalog, holds_from_the_middle, needs_no_more_than_a_log, needs_rest};
pub use logged::LogRules;

use crate::config::{Config, Timing};
use crate::daemon::View;
use crate::digest::fingerprint;
use crate::effect::{ApiCall, Effect, Fact, RuntimeChange, WsCmd};
use crate::event::{ApiReply, Event, WsEvent};
use crate::id::RuntimeId;
use crate::ledger::Ledger;
use crate::said::Said;
use crate::time::{Awake, Instant, Now};
use claims::ClaimBook;
use fleet::FleetBook;
use gc::GcBook;
use ops::{End, OpBook};
use paths::PathBook;
use seen::{Books, Seen};
use silence::SilenceBook;
use std::fmt;
use std::time::Duration;
use stop::StopBook;
use tasks::TaskBook;

/// Violations that are kept; what is broken once tends to stay broken.
const MOST_VIOLATIONS: usize = 64;
/// Violations of one rule among them, so that none hides the others.
const MOST_OF_ONE: usize = 8;
/// Deadlines that a daemon acts upon in one step at most.
const TIMERS_PER_STEP: usize = 64;
/// Ticks in a row at one instant that leave something due, beyond those that the number of deadlines explains.
const MOST_SPINS: usize = 8;
/// Effects of one step, beyond those that sizes explain.
const EFFECTS_BASE: usize = 64;
/// Effects of one step for each runtime, task, slot and offer.
const EFFECTS_EACH: usize = 6;

/// One step of a daemon, as an observer sees it.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// What the adapter's clocks said.
    pub now: Now,
    /// What happened; `None` for the creation of the daemon.
    pub event: Option<&'a Event>,
    /// What is to be done about it.
    pub effects: &'a [Effect],
    /// The daemon after it.
    pub view: View<'a>,
    /// When the daemon wants to be called again.
    pub wakeup: Option<Instant>,
}

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which one.
    pub rule: &'static str,
    /// In which step: 0 is the creation of the daemon.
    pub step: u64,
    /// What happened, in one line.
    pub story: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at step {}: {}", self.rule, self.step, self.story)
    }
}

/// What was found.
#[derive(Clone, Debug, Default)]
struct Found {
    step: u64,
    list: Vec<Violation>,
    /// Whether what came before is not known: then some rules cannot tell.
    middle: bool,
}

impl Found {
    fn require(&mut self, holds: bool, rule: &'static str, story: impl FnOnce() -> String) {
        if holds || self.list.len() >= MOST_VIOLATIONS || (self.middle && !holds_from_the_middle(rule)) {
            return;
        }
        if self.list.iter().filter(|violation| violation.rule == rule).count() < MOST_OF_ONE {
            self.list.push(Violation { rule, step: self.step, story: story() });
        }
    }
}

/// What the parts of the bookkeeping may know of a step.
#[derive(Clone, Copy, Debug)]
struct At<'a> {
    now: Instant,
    awake: Awake,
    timing: &'a Timing,
    /// Whether a stop was asked for, in this step or before.
    stopping: bool,
    /// Whether a deadline is left due: then nothing can be said about what should have been done by now.
    due: bool,
    /// Whether one was due before this step: an input that comes late is taken before what it is late for.
    was_due: bool,
    /// All slots of the daemon.
    slots: u16,
    /// Whether claims hold some of them.
    claims_out: bool,
    /// Whether the server refuses the credential, before this step or after it: then nothing new is asked.
    barred: bool,
    /// Whether the machine has slept before this step.
    woke: bool,
}

/// All rules.
#[derive(Clone, Debug)]
pub struct Rules {
    cfg: Config,
    found: Found,
    now: Now,
    wakeup: Option<Instant>,
    ops: OpBook,
    claims: ClaimBook,
    fleet: FleetBook,
    tasks: TaskBook,
    paths: PathBook,
    silence: SilenceBook,
    gc: GcBook,
    stop: StopBook,
    books: Books,
    spins: usize,
    /// Runtimes after the last step.
    fleet_size: usize,
    started: bool,
}

impl Rules {
    /// Rules for a daemon with these settings.
    pub fn new(cfg: &Config) -> Self {
        Self {
            cfg: cfg.clone(),
            found: Found::default(),
            now: Now::default(),
            wakeup: None,
            ops: OpBook::default(),
            claims: ClaimBook::default(),
            fleet: FleetBook::default(),
            tasks: TaskBook::default(),
            paths: PathBook::default(),
            silence: SilenceBook::default(),
            gc: GcBook::default(),
            stop: StopBook::default(),
            books: Books::default(),
            spins: 0,
            fleet_size: 0,
            started: false,
        }
    }

    /// Rules for the process that comes after one that was killed, with these settings: it is held to what that one had, and nothing of that may be lost or
    /// done twice. What is broken so far stays broken.
    #[must_use]
    pub fn after_crash(&self, cfg: &Config) -> Self {
        let mut next = Self::new(cfg);
        next.found = Found { step: self.found.step, list: self.found.list.clone(), middle: false };
        next.started = self.started;
        next.tasks = self.tasks.after_crash();
        next
    }

    /// Rules for a daemon with these settings that has lived for a while: the first step that they are shown is the first one after `step`. Only rules
    /// of which [`holds_from_the_middle`] is true can be broken, as the others need to know what came before.
    #[must_use]
    pub fn from_the_middle(cfg: &Config, step: u64) -> Self {
        let mut rules = Self::new(cfg);
        rules.found = Found { step, list: Vec::new(), middle: true };
        rules
    }

    /// What is broken so far, at most 64 times, and 8 times for each rule.
    pub fn violations(&self) -> &[Violation] {
        &self.found.list
    }

    /// A hash of everything that later judgements depend on: all bookkeeping, without the number of steps and what is broken already.
    /// Equal histories give equal hashes; so may others.
    pub(crate) fn fingerprint(&self) -> u64 {
        let Self {
            cfg: _,
            found: _,
            now,
            wakeup,
            ops,
            claims,
            fleet,
            tasks,
            paths,
            silence,
            gc,
            stop,
            books,
            spins,
            fleet_size,
            started,
        } = self;
        fingerprint(&(
            now,
            wakeup,
            ops,
            claims,
            fleet,
            tasks,
            (paths, silence, gc, stop, books, spins, fleet_size, started),
        ))
    }

    /// Looks at one step. Every step must be shown, from the creation of the daemon on.
    pub fn observe(&mut self, step: &Step<'_>) {
        let first = !std::mem::replace(&mut self.started, true);
        if !first || self.found.middle {
            self.found.step += 1;
        }
        if self.stop.exited() {
            self.found.require(step.effects.is_empty() && step.wakeup.is_none(), "I18", || {
                format!("after its exit the daemon wants {}", step.effects.first().said())
            });
            return;
        }
        if first || step.event.is_none() {
            self.now = step.now;
        }
        let slept = self.now.slept;
        self.now.advance(step.now);
        let slept = Duration::from_millis(self.now.slept - slept);
        let woke = !slept.is_zero() && slept >= self.cfg.timers.sleep;
        let (now, awake) = (self.now.mono, self.now.awake());
        let was_due = self.wakeup.is_some_and(|at| at <= now);
        let late = self.wakeup.map_or(Duration::ZERO, |at| now.since(at));
        self.stop.event(step.event, now, late);
        let Self { cfg, found, ops, claims, fleet, tasks, paths, silence, gc, stop, books, .. } = self;
        let due = step.wakeup.is_some_and(|at| at <= now);
        let at = At {
            now,
            awake,
            timing: &cfg.timers,
            stopping: stop.stopping(),
            due,
            was_due,
            slots: cfg.slots,
            claims_out: claims.held() > 0,
            barred: books.access.is_lost() || tells(step, &Fact::AccessLost),
            woke,
        };

        let closed = step.event.and_then(|event| ops.event(event));
        let stray = match step.event {
            Some(Event::Api { .. } | Event::Fs { .. }) => closed.is_none(),
            Some(Event::Run { op, .. }) => closed.is_none() && !ops.is_run(*op),
            Some(Event::Ws { conn, .. }) => !fleet.is_current(*conn),
            Some(Event::Gate { owner, ask }) => claims.gate.is_stray(*owner, *ask),
            _ => false,
        };
        if stray && !was_due && !woke {
            let quiet = step.effects.iter().all(|e| matches!(e, Effect::Fact { fact: Fact::Stray { .. } }));
            found.require(quiet, "I17", || format!("{} fits nothing and led to effects", step.event.said()));
        }
        claims.begin(&at, step.event);
        if let Some(closed) = &closed {
            tasks.closed(&at, closed, gc, found);
            gc.closed(&at, closed);
            claims.closed(&at, cfg, closed);
            paths.closed(closed);
            fleet.closed(&at, closed);
            silence.closed(closed);
            stop.closed(closed);
        }
        match step.event {
            Some(event @ Event::Recovered { .. }) => {
                tasks.told(&at, event, gc);
                paths.told(event);
            }
            Some(Event::Run { op, run }) if closed.is_none() => {
                tasks.progress(*op, run);
                silence.event(&at, *op, run);
            }
            Some(Event::Ws { conn, ws }) if !stray => {
                claims.ws(cfg, *conn, ws, fleet);
                fleet.ws(&at, *conn, ws);
            }
            _ => {}
        }
        let linked = fleet.is_wanted();
        for effect in step.effects {
            if let Effect::Exit { report } = effect {
                tasks.exit(report, found);
            }
            stop.effect(effect, &at, (fleet, ops, tasks), found);
            ops.effect(effect, &at, found);
            claims.effect(&at, cfg, effect, fleet, tasks, found);
            gc.effect(&at, cfg, effect, tasks, found);
            paths.effect(cfg, effect, claims, tasks, found);
            tasks.effect(&at, effect, fleet, found);
            silence.effect(&at, effect, tasks, found);
            fleet.effect(&at, effect, tasks, found);
        }
        keeps_tasks(step, &at, tasks, found);
        if !stop.exited() {
            wakes(step, &at, linked, found);
        }
        let event = step.event.filter(|_| !stray);
        let seen = Seen { at, event, closed: closed.as_ref(), effects: step.effects, view: step.view };
        books.step(&seen, found);
        if !stop.exited() {
            tasks.settle(&at, step.view, found);
            silence.settle(&at, found);
            fleet.settle(&at, stop.beats(now), &books.actions, found);
            gc.settle(step.view, found);
            stop.settle(&at, ops, found);
            claims.settle(&at, cfg, step.view, fleet, found);
            slots(step.view, claims, found);
            paths.settle(cfg, step.view, claims, tasks, found);
        }
        let fleet_size = step.view.runtime_count();
        let size = fleet_size.max(std::mem::replace(&mut self.fleet_size, fleet_size))
            + step.view.task_count()
            + usize::from(step.view.total_slots())
            + books.actions.most()
            + reply_size(step.event);
        let bound = EFFECTS_BASE + EFFECTS_EACH * size;
        found.require(step.effects.len() <= bound, "I24", || {
            format!("one step has {} effects, more than {bound}", step.effects.len())
        });
        self.spin(step, due);
        self.wakeup = step.wakeup;
    }

    /// I24, L2: time must pass between ticks.
    fn spin(&mut self, step: &Step<'_>, due: bool) {
        self.spins = if due && matches!(step.event, Some(Event::Tick)) { self.spins + 1 } else { 0 };
        let most = MOST_SPINS + step.view.timers() / TIMERS_PER_STEP;
        self.found.require(self.spins <= most, "I24", || {
            format!(
                "{} ticks in a row at {} ms, and still something is due",
                most + 1,
                self.now.mono.as_millis()
            )
        });
    }

    /// Nothing is left over from before, and everything works: from here on every runtime must be asked for.
    pub fn at_rest(&mut self) {
        self.claims.at_rest();
    }

    /// I26: everything works, and the time to come to rest is over. `rested` says whether the daemon did.
    pub fn finish(&mut self, view: View<'_>, rested: bool) {
        let Self { found, ops, claims, fleet, tasks, stop, books, .. } = self;
        found.require(rested, "I26", || {
            format!(
                "everything works, and the daemon does not come to rest: {} tasks, {} requests, late reports {}, {}",
                view.tasks().count(),
                ops.count(),
                view.has_late_reports(),
                ops.first()
            )
        });
        if !rested || stop.exited() {
            return;
        }
        found.require(view.free_slots() == view.total_slots(), "I26", || {
            format!("{} of {} slots are free at rest", view.free_slots(), view.total_slots())
        });
        found.require(!stop.stopping(), "INV-136", || "a stop does not come to an end".into());
        tasks.finish(found);
        books.actions.finish(found);
        if !stop.stopping() {
            fleet.finish(found);
            claims.finish(fleet, found);
        }
    }
}

impl Rules {
    /// What is still written down although the daemon is at rest.
    pub fn still_kept(&mut self, ledger: &Ledger) {
        if let Some(record) = ledger.iter().next() {
            self.found.require(false, "LEDGER-AT-REST", || {
                format!(
                    "nothing is owed, and claim {} is still written down as {}",
                    record.claim().0,
                    record.was.said()
                )
            });
        }
    }
}

/// I1, INV-31: each slot is free, held by a claim, or held by a task; once.
fn slots(view: View<'_>, claims: &ClaimBook, found: &mut Found) {
    let (free, held) = (usize::from(view.free_slots()), claims.held());
    // As bits: each step looks at this. More slots than that are rare.
    let (mut tasks, mut once, mut low, mut high) = (0, true, 0_u128, Vec::new());
    for slot in view.tasks().filter_map(|task| task.slot) {
        tasks += 1;
        if let Some(bit) = 1_u128.checked_shl(u32::from(slot.0)) {
            once &= low & bit == 0;
            low |= bit;
        } else {
            once &= !high.contains(&slot);
            high.push(slot);
        }
    }
    let total = usize::from(view.total_slots());
    found.require(once && free + held + tasks == total, "I1", || {
        format!("{free} slots free, {held} with claims, {tasks} with tasks, {total} in all")
    });
    let (counted, open) = (view.claims() as usize, claims.count());
    found.require(counted == open, "INV-41", || {
        format!("{counted} claims are counted as on their way, {open} are")
    });
}

fn tells(step: &Step<'_>, wanted: &Fact) -> bool {
    step.effects.iter().any(|effect| matches!(effect, Effect::Fact { fact } if fact == wanted))
}

/// WAKE: a sleep of the machine is noticed, and the connection is made anew, as it is dead.
fn wakes(step: &Step<'_>, at: &At<'_>, linked: bool, found: &mut Found) {
    let told = step.effects.iter().any(|e| matches!(e, Effect::Fact { fact: Fact::Woke { .. } }));
    found.require(told == at.woke, "WAKE", || {
        format!("the machine {} slept, and that is told otherwise", if at.woke { "has" } else { "has not" })
    });
    let dials = step.effects.iter().any(|e| matches!(e, Effect::Ws { cmd: WsCmd::Connect { .. }, .. }));
    found.require(!told || dials || !linked || at.barred || at.stopping, "WAKE", || {
        "the machine has slept, and the connection of before is kept".into()
    });
}

/// INV-50: a runtime leaves the set without its tasks.
fn keeps_tasks(step: &Step<'_>, at: &At<'_>, tasks: &TaskBook, found: &mut Found) {
    let removed = |runtime: &RuntimeId| {
        step.effects.iter().any(|effect| {
            matches!(effect, Effect::Runtime { runtime: of, change: RuntimeChange::Removed, .. } if of == runtime)
        })
    };
    for effect in step.effects {
        if let Effect::Fact { fact: Fact::Ending { claim, .. } } = effect {
            let with_it = !at.was_due && !at.stopping && tasks.runtime(*claim).is_some_and(removed);
            found.require(!with_it, "INV-50", || format!("claim {} is ended with its runtime", claim.0));
        }
    }
}

fn reply_size(event: Option<&Event>) -> usize {
    match event {
        Some(Event::Api { r: Ok(reply), .. }) => match reply {
            ApiReply::Claimed { offers, .. } => offers.len(),
            ApiReply::Registered { runtimes } => runtimes.len(),
            ApiReply::Workspaces { list, .. } => list.len(),
            _ => 0,
        },
        _ => 0,
    }
}

/// Whether a hint of the control connection says that work may be there.
const fn is_wake(ws: &WsEvent) -> bool {
    matches!(ws, WsEvent::Up | WsEvent::TaskAvailable { .. })
}

/// Whether this is a claim.
const fn is_claim(call: &ApiCall) -> bool {
    matches!(call, ApiCall::Claim(_) | ApiCall::ClaimOver { .. } | ApiCall::ClaimOne(_))
}

/// The answer of the server, if this is one.
const fn api_end<'a>(end: &End<'a>) -> Option<&'a Result<ApiReply, crate::error::ApiError>> {
    match end {
        End::Api(result) => Some(result),
        End::Fs(_) | End::Run(_) => None,
    }
}
