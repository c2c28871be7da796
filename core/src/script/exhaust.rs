//! Every history of a small world, to a depth: breadth first, each state once.
//!
//! At each state the world's menu is tried: for each request on its way a good answer and some bad ones, time passing, the control
//! connection coming and going, a wakeup, a stop, a kill of the process, an answer that comes twice. A good answer and time are free; the rest are faults, of
//! which one history has a few at most, which is what keeps the number of histories small: most that go wrong need one or two.
//!
//! # What is one state
//! Two histories lead to the same state if these are equal: the digest of the daemon, the fingerprint of the rules' bookkeeping, the
//! fingerprint of the world (all of it but the answers that could come twice, of which only the last can, and only while a fault is
//! left), what is kept for the next process, and the number of faults that are left, or if more were left the first time. Then every continuation of one is a continuation
//! of the other: the menu is a function of the world, the daemon's next deadline and the faults, the daemon's answer a function of its
//! state, and what the rules say a function of their bookkeeping. The numbers of requests and the clock are part of it, so states that
//! differ in nothing else are told apart: that costs time, not soundness.
//!
//! The hashes are of 64 bits each. Two different states of equal hashes would be taken for one, and the continuations of the second not
//! be tried: a bug might be missed there. None would be made up: what is broken is found on a daemon that took exactly the events of the
//! script that is returned.

use super::runner::Around;
use super::{Input, Runner};
use crate::daemon::RestoreError;
use crate::digest::fingerprint;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// How far to go.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Events of one history at most.
    pub depth: usize,
    /// Of which are faults at most.
    pub faults: u8,
    /// One of so many of the last states is healed, and must come to rest; 0 for none.
    pub heal_one_in: u64,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Explored {
    /// States that differ.
    pub states: usize,
    /// Steps that were taken and judged.
    pub edges: usize,
    /// Last states that were healed.
    pub healed: usize,
    /// The shortest history that breaks a rule, with what it breaks; the search ends there.
    pub broken: Option<(Vec<Input>, String)>,
}

/// A state's identity: the hashes of the daemon, the world, the rules, and what is kept.
type Key = (u64, u64, u64, u64);

/// A state that was reached and not gone on from yet.
struct Node {
    daemon: String,
    around: Around,
    faults: u8,
    trail: Option<Rc<Trail>>,
}

/// How it was reached.
struct Trail {
    input: Input,
    before: Option<Rc<Trail>>,
}

impl Runner {
    /// Another daemon in the same state in another world like this one, held to the same rules. From here on both go their own ways.
    ///
    /// # Errors
    /// If the daemon's state contradicts itself, which is a bug of the core.
    pub fn fork(&self) -> Result<Self, RestoreError> {
        Self::restored(&self.daemon.checkpoint()?, self.around(), self.script.clone())
    }

    fn key(&self, faults: u8) -> Key {
        (
            self.daemon.digest(),
            self.world.fingerprint(faults > 0),
            self.rules.fingerprint(),
            fingerprint(&(&self.ledger, self.seed)),
        )
    }

    /// Tries every history from here, within `bounds`.
    ///
    /// # Errors
    /// If a state of the daemon cannot be written down and read back, which is a bug of the core.
    pub fn explore(&self, bounds: &Bounds) -> Result<Explored, RestoreError> {
        let mut search = Search { bounds: *bounds, seen: BTreeMap::new(), found: Explored::default() };
        search.seen.insert(self.key(bounds.faults), bounds.faults);
        let mut level = vec![Node::of(self, bounds.faults, None)?];
        for depth in 1..=bounds.depth {
            let last = depth == bounds.depth;
            let mut next = Vec::new();
            for node in std::mem::take(&mut level) {
                search.expand(&node, last, &mut next)?;
                if let Some((tail, story)) = search.found.broken.take() {
                    let script = self.script.iter().cloned().chain(tail).collect();
                    search.found.broken = Some((script, story));
                    return Ok(search.done());
                }
            }
            level = next;
        }
        Ok(search.done())
    }
}

struct Search {
    bounds: Bounds,
    /// The states that were reached, with the most faults that were left at any time.
    seen: BTreeMap<Key, u8>,
    found: Explored,
}

impl Search {
    fn done(mut self) -> Explored {
        self.found.states = self.seen.len();
        self.found
    }

    fn expand(&mut self, node: &Node, last: bool, next: &mut Vec<Node>) -> Result<(), RestoreError> {
        let start = node.runner()?;
        let wakeup = start.daemon.next_wakeup().map(|(at, _)| at);
        let mut start = Some(start);
        for choice in node.around.world.menu(wakeup) {
            if choice.fault && node.faults == 0 {
                continue;
            }
            let faults = node.faults - u8::from(choice.fault);
            let mut runner = match start.take() {
                Some(runner) => runner,
                None => node.runner()?,
            };
            self.found.edges += 1;
            let input = choice.input;
            let story = step(&mut runner, &input);
            let trail = Rc::new(Trail { input, before: node.trail.clone() });
            if story.is_some() {
                self.found.broken = story.map(|story| (trail.script(), story));
                return Ok(());
            }
            if !self.is_new(runner.key(faults), faults) {
                continue;
            }
            if !last && !runner.world.exited {
                next.push(Node::of(&runner, faults, Some(trail))?);
            } else if self.is_sampled(&runner) {
                self.found.healed += 1;
                let healed = caught(|| runner.heal());
                if let Some(story) = healed.or_else(|| verdict(&runner)) {
                    let mut script = trail.script();
                    script.extend(runner.into_script().into_iter().skip(1));
                    self.found.broken = Some((script, story));
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Whether there is more to be found from a state than was before.
    fn is_new(&mut self, key: Key, faults: u8) -> bool {
        let before = self.seen.insert(key, faults);
        if let Some(before) = before.filter(|before| *before >= faults) {
            self.seen.insert(key, before);
            return false;
        }
        true
    }

    fn is_sampled(&self, runner: &Runner) -> bool {
        self.bounds.heal_one_in > 0 && runner.daemon.digest().is_multiple_of(self.bounds.heal_one_in)
    }
}

impl Node {
    fn of(runner: &Runner, faults: u8, trail: Option<Rc<Trail>>) -> Result<Self, RestoreError> {
        Ok(Self { daemon: runner.daemon.checkpoint()?, around: runner.around(), faults, trail })
    }

    fn runner(&self) -> Result<Runner, RestoreError> {
        Runner::restored(&self.daemon, self.around.clone(), Vec::new())
    }
}

impl Trail {
    fn script(&self) -> Vec<Input> {
        let mut script = vec![self.input.clone()];
        let mut at = self.before.as_ref();
        while let Some(trail) = at {
            script.push(trail.input.clone());
            at = trail.before.as_ref();
        }
        script.reverse();
        script
    }
}

/// Takes one step. Returns what it breaks: a rule, or the daemon's check of itself.
fn step(runner: &mut Runner, input: &Input) -> Option<String> {
    caught(|| {
        runner.take(input);
    })
    .or_else(|| verdict(runner))
}

fn verdict(runner: &Runner) -> Option<String> {
    runner.violations().first().map(ToString::to_string)
}

fn caught(act: impl FnOnce()) -> Option<String> {
    catch_unwind(AssertUnwindSafe(act)).err().map(|_| "the daemon's own check panicked".to_owned())
}
