//! Makes a failing script small: delta debugging over its lines. A line that is left out changes the numbers of later requests and
//! connections, so what is left is addressed anew, by what it answers.

use super::address::key;
use super::start::Start;
use super::world::Call;
use super::{Input, Runner};
use crate::config::Config;
use crate::effect::Effect;
use crate::event::Event;
use crate::id::{ConnGen, OpId};
use crate::rng::Seed;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Candidates that are tried at most.
const MOST_TRIES: usize = 3_000;

/// Leaves out lines of a failing script as long as it fails. `fails` is given complete scripts, with their numbers put right; it may
/// panic, which counts as failing.
///
/// Returns the script unchanged if it does not fail.
pub fn shrink(
    cfg: &Config,
    seed: Seed,
    script: &[Input],
    fails: &mut dyn FnMut(&[Input]) -> bool,
) -> Vec<Input> {
    shrink_lines(cfg, seed, script, &|| false, &mut |script, _| fails(script)).0
}

/// How long it is tried.
#[derive(Clone, Copy)]
pub(super) struct Budget<'a> {
    /// Says when it is enough.
    pub(super) stop: &'a dyn Fn() -> bool,
}

/// The same for a daemon that is created so.
pub(super) fn shrink_from(
    start: &Start,
    script: &[Input],
    budget: Budget<'_>,
    mut fails: impl FnMut(&[Input]) -> bool,
) -> Vec<Input> {
    lines(start, script, budget, &mut |script, _| fails(script)).0
}

/// The same script for a daemon that is created otherwise: `new` is what `old` became, line by line, and what each line answers is found anew.
/// Ends early, with some of it, once `stop` says so.
pub(super) fn rebuilt(
    from: &Start,
    old: &[Input],
    to: &Start,
    new: &[Input],
    stop: &dyn Fn() -> bool,
) -> Vec<Input> {
    let all: Vec<usize> = (0..new.len()).collect();
    Subjects::of(from, old, stop).rebuild(to, new, &all, stop).0
}

/// The same for a script that more is known of: `fails` is also given which line of the first script each line was. Returns that of what is left, too.
/// Ends early, with the best so far, once `stop` says so.
pub(crate) fn shrink_lines(
    cfg: &Config,
    seed: Seed,
    script: &[Input],
    stop: &dyn Fn() -> bool,
    fails: &mut dyn FnMut(&[Input], &[usize]) -> bool,
) -> (Vec<Input>, Vec<usize>) {
    lines(&Start::new(cfg.clone(), seed), script, Budget { stop }, fails)
}

fn lines(
    start: &Start,
    script: &[Input],
    budget: Budget<'_>,
    fails: &mut dyn FnMut(&[Input], &[usize]) -> bool,
) -> (Vec<Input>, Vec<usize>) {
    let mut fails = |(script, lines): &(Vec<Input>, Vec<usize>)| {
        catch_unwind(AssertUnwindSafe(|| fails(script, lines))).unwrap_or(true)
    };
    let subjects = Subjects::of(start, script, budget.stop);
    let mut kept: Vec<usize> = (0..script.len()).collect();
    let mut best = subjects.rebuild(start, script, &kept, budget.stop);
    if !fails(&best) {
        return (script.to_vec(), kept);
    }
    let mut tries = 0;
    let mut chunk = kept.len().div_ceil(2).max(1);
    loop {
        let (mut at, mut smaller) = (0, false);
        while at < kept.len() && tries < MOST_TRIES && !(budget.stop)() {
            tries += 1;
            let end = (at + chunk).min(kept.len());
            let candidate: Vec<usize> = kept[..at].iter().chain(&kept[end..]).copied().collect();
            let rebuilt = subjects.rebuild(start, script, &candidate, budget.stop);
            if fails(&rebuilt) {
                (kept, best, smaller) = (candidate, rebuilt, true);
            } else {
                at = end;
            }
        }
        if chunk == 1 && !smaller {
            // Lines that only make sense together, such as a claim and its answer far below.
            let pairs = (0..kept.len()).flat_map(|a| (a + 1..kept.len()).map(move |b| (a, b)));
            let found = pairs.take_while(|_| !(budget.stop)()).find_map(|(a, b)| {
                tries += 1;
                if tries > MOST_TRIES {
                    return None;
                }
                let rest = kept.iter().enumerate().filter(|(at, _)| *at != a && *at != b);
                let candidate: Vec<usize> = rest.map(|(_, line)| *line).collect();
                let rebuilt = subjects.rebuild(start, script, &candidate, budget.stop);
                fails(&rebuilt).then_some((candidate, rebuilt))
            });
            if let Some(found) = found {
                (kept, best, smaller) = (found.0, found.1, true);
            }
        }
        if tries >= MOST_TRIES || (budget.stop)() || (chunk == 1 && !smaller) {
            return best;
        }
        if !smaller {
            chunk = chunk.div_ceil(2);
        }
    }
}

/// What each line of the first script is about, apart from numbers.
struct Subjects {
    /// By process, as each one numbers its requests from the start.
    ops: BTreeMap<(u32, OpId), String>,
    /// For a line about a control connection: how far its number was from the current one.
    conns: BTreeMap<usize, i64>,
}

impl Subjects {
    fn of(start: &Start, script: &[Input], stop: &dyn Fn() -> bool) -> Self {
        let mut found = Self { ops: BTreeMap::new(), conns: BTreeMap::new() };
        let Ok(mut runner) = Runner::begin(start) else { return found };
        let mut life = 0;
        found.note(life, &runner);
        for (line, input) in script.iter().enumerate() {
            if stop() {
                break;
            }
            match input {
                Input::Event { event: Event::Ws { conn, .. }, .. } => {
                    found.conns.insert(line, i64::from(conn.0) - i64::from(runner.world.conn.0));
                }
                Input::Event { .. } => {}
                Input::Crash { .. } => life += 1,
            }
            let stepped = catch_unwind(AssertUnwindSafe(|| {
                runner.take(input);
            }));
            found.note(life, &runner);
            if stepped.is_err() {
                break;
            }
        }
        found
    }

    fn note(&mut self, life: u32, runner: &Runner) {
        for effect in runner.effects() {
            if let Effect::Api { op, .. } | Effect::Fs { op, .. } | Effect::Run { op, .. } = effect {
                self.ops.insert((life, *op), key(effect));
            }
        }
    }

    /// The kept lines as a script of their own, and which of them it has. A line that has nothing to answer any more is left out. Ends early, with some of
    /// them, once `stop` says so: nothing fails any more then, so that it is not taken.
    fn rebuild(
        &self,
        start: &Start,
        script: &[Input],
        kept: &[usize],
        stop: &dyn Fn() -> bool,
    ) -> (Vec<Input>, Vec<usize>) {
        let (mut rebuilt, mut lines) = (Vec::with_capacity(kept.len()), Vec::with_capacity(kept.len()));
        let Ok(mut runner) = Runner::begin(start) else { return (rebuilt, lines) };
        let (mut new, mut used) = (BTreeMap::new(), BTreeSet::new());
        let (mut life, mut seen) = (0, 0);
        for line in kept {
            if stop() {
                break;
            }
            // Lines that are left out may have ended a process, too.
            let ends = |input: &&Input| matches!(input, Input::Crash { .. });
            life += script[seen..*line].iter().filter(ends).count() as u32;
            seen = *line;
            let (now, mut event) = match &script[*line] {
                Input::Event { now, event } => (now, event.clone()),
                crash @ Input::Crash { .. } => {
                    used.clear();
                    rebuilt.push(crash.clone());
                    lines.push(*line);
                    if catch_unwind(AssertUnwindSafe(|| runner.take(crash).len())).is_err() {
                        break;
                    }
                    continue;
                }
            };
            match &mut event {
                Event::Api { op, .. } | Event::Fs { op, .. } | Event::Run { op, .. } => {
                    let old = (life, *op);
                    if let Some(key) = self.ops.get(&old) {
                        let target = new
                            .get(&old)
                            .copied()
                            .or_else(|| find(&runner, *op, key, &used).filter(|to| used.insert(*to)));
                        let Some(target) = target else { continue };
                        new.insert(old, target);
                        *op = target;
                    }
                }
                Event::Ws { conn, .. } => {
                    let off = self.conns.get(line).copied().unwrap_or(0);
                    let to = i64::from(runner.world.conn.0) + off;
                    *conn = ConnGen(u32::try_from(to).unwrap_or(u32::MAX));
                }
                Event::Tick
                | Event::Credential
                | Event::Stop { .. }
                | Event::Recovered { .. }
                | Event::Gate { .. } => {}
            }
            rebuilt.push(Input::Event { now: *now, event: event.clone() });
            lines.push(*line);
            if catch_unwind(AssertUnwindSafe(|| runner.feed(*now, event).len())).is_err() {
                break;
            }
        }
        (rebuilt, lines)
    }
}

/// The request on its way that is about the same and that no other line answers: the one of that number, or the first.
fn find(runner: &Runner, op: OpId, key: &str, used: &BTreeSet<OpId>) -> Option<OpId> {
    let same = |call: &Call| call_key(call) == key;
    if !used.contains(&op) && runner.world.open.get(&op).is_some_and(same) {
        return Some(op);
    }
    runner.world.open.iter().find(|(op, call)| !used.contains(op) && same(call)).map(|(op, _)| *op)
}

fn call_key(call: &Call) -> String {
    let op = OpId(0);
    key(&match call.clone() {
        Call::Api(call) => Effect::Api { op, call, deadline: crate::time::Instant::ZERO },
        Call::Fs(call) => Effect::Fs { op, call },
        Call::Run(call) => Effect::Run { op, call },
    })
}
