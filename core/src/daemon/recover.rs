//! What an earlier process of this daemon left, taken over: meant for the start, before any runtime is registered, and harmless at any
//! other time.

use super::State;
use super::route::split;
use crate::effect::{Effect, Effects, Fact};
use crate::env::Cx;
use crate::event::{ClaimKey, Offer, Recovered};
use crate::id::{PathKey, Provider, RuntimeId};
use crate::late::{Entry, Late};
use crate::runtimes::Ours;
use crate::task::Task;
use crate::task::recover::{Owed, told};
use std::collections::{BTreeMap, BTreeSet};

/// What this daemon has to do with a runtime's tasks. One whose end is told is not counted: the server has ended it, and nothing that is
/// done about the runtime's tasks can harm it.
pub(super) fn ours(
    runtime: &RuntimeId,
    first_reports: &BTreeSet<(RuntimeId, ClaimKey)>,
    by_runtime: &BTreeSet<(RuntimeId, ClaimKey)>,
    tasks: &BTreeMap<ClaimKey, Task>,
    late: &Late,
) -> Ours {
    let mut here = of(by_runtime, runtime);
    if of(first_reports, runtime).next().is_some() {
        Ours::Untried
    } else if here.any(|claim| tasks.get(&claim).is_some_and(Task::owes_report)) || late.owes(runtime) {
        Ours::Busy
    } else {
        Ours::Nothing
    }
}

fn of(claims: &BTreeSet<(RuntimeId, ClaimKey)>, runtime: &RuntimeId) -> impl Iterator<Item = ClaimKey> {
    let from = (runtime.clone(), ClaimKey(0));
    claims.range(from.clone()..).take_while(move |(of, _)| *of == from.0).map(|(_, claim)| *claim)
}

impl State {
    /// Takes over a claim of an earlier process, unless it or its task is here already. While the daemon stops, and while the collector
    /// frees a directory of it, which it cannot do before any runtime is registered, it is left to the next process.
    pub(super) fn recovered(
        &mut self,
        offer: &Offer,
        provider: &Provider,
        was: Recovered,
        path: Option<&PathKey>,
        out: &mut Effects,
    ) {
        let serving = self.shutdown.is_serving();
        split!(self, out => cx, claims, tasks, by_id, by_runtime, roots, late, first_reports, gc, paths);
        let claim = offer.claim;
        let freed = offer.roots().any(|root| roots.is_deleting(root));
        if !serving || freed || tasks.contains_key(&claim) || late.has_claim(claim) {
            cx.env.ops.stray();
            return;
        }
        let told_already = matches!(was, Recovered::Ended { report: None, .. });
        if !told_already && (by_id.contains_key(&offer.task) || late.has(&offer.task)) {
            cx.fact(Fact::Duplicate { task: offer.task.clone() });
            return;
        }
        let mut first_report = true;
        let offer = offer.clone();
        // Its run may still work in there, so it has the directory before anybody else can ask for it. That somebody has it already takes a
        // record that nobody wrote: then it goes on without.
        let path = path.filter(|_| offer.in_place).cloned();
        let (id, runtime) = (offer.task.clone(), offer.runtime.clone());
        let task = match was {
            Recovered::Claimed => Task::fail_back_again(&mut cx, offer),
            Recovered::Launched { slot, acked } => {
                first_report = false;
                gc.make_way(&mut cx);
                let permit = claims.occupy_again(provider, slot);
                let directory = path.and_then(|path| paths.take_over(path, claim));
                let places = (roots, directory);
                Task::attach(&mut cx, offer, provider.clone(), permit, (slot, acked), places)
            }
            Recovered::Ended { report: Some(report), acked, have, usage, ran } => {
                let owed = Owed { report, acked, have, usage, ran };
                let directory = path.and_then(|path| paths.take_over(path, claim));
                Task::owing(&mut cx, offer, owed, (roots, directory))
            }
            Recovered::Ended { report: None, acked, have, usage, .. } => {
                // Its id may be claimed again already, so this is no task any more, only messages and usage.
                cx.fact(told(&offer, None));
                if acked < have || usage {
                    let entry = Entry {
                        claim,
                        task: id,
                        runtime,
                        report: None,
                        sent: acked,
                        have,
                        ask: acked < have,
                        usage,
                        tries: 0,
                        spent: false,
                    };
                    late.add(&mut cx, entry);
                } else {
                    cx.emit(Effect::Forget { claim });
                }
                return;
            }
        };
        if first_report {
            first_reports.insert((runtime.clone(), claim));
        }
        by_id.insert(id, claim);
        by_runtime.insert((runtime, claim));
        tasks.insert(claim, task);
    }

    /// The report of a claim was answered, or nothing is left of the claim. Once that is so for all that an earlier process left of the
    /// runtime, its tasks may be asked for.
    pub(super) fn first_report_over(&mut self, runtime: RuntimeId, claim: ClaimKey, out: &mut Effects) {
        let key = (runtime, claim);
        if !self.first_reports.remove(&key) || !self.shutdown.is_serving() {
            return;
        }
        split!(self, out => cx, runtimes, tasks, by_runtime, late, first_reports);
        let left = ours(&key.0, first_reports, by_runtime, tasks, late);
        let changes = runtimes.first_reports_over(&mut cx, &key.0, left);
        self.changed(changes, out);
    }
}
