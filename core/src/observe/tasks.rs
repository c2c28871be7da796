//! The order of things in a task: directory, `/start`, lease, run, messages, report, seal, slot.

use super::calls::{api_closed, api_sent, fs_sent};
use super::fleet::FleetBook;
use super::gc::GcBook;
use super::life::{Life, Stage};
use super::ops::{Closed, End, What};
use super::recovery::{Kept, Records};
use super::{At, Found, recovery, report};
use crate::daemon::View;
use crate::effect::{Effect, EndReason, ExitReport, Fact, FsCall, PhaseName};
use crate::event::{ApiReply, ClaimKey, FsReply, Offer, Recovered, RunEvent};
use crate::id::{EnvRoot, OpId, Provider, RuntimeId, TaskId};
use crate::reason::FailReason;
use crate::said::{Said, nth};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub(super) struct TaskBook {
    pub(super) lives: BTreeMap<ClaimKey, Life>,
    /// What this step's claim brought and nobody took yet.
    pub(super) offers: Vec<Offer>,
    pub(super) records: Records,
}

impl TaskBook {
    /// What is known of tasks when another process begins.
    pub(super) fn after_crash(&self) -> Self {
        Self { records: self.records.after_crash(self.lives.values()), ..Self::default() }
    }

    pub(super) fn runtime(&self, claim: ClaimKey) -> Option<&RuntimeId> {
        self.lives.get(&claim).map(|life| &life.offer.runtime)
    }

    /// The agent CLI family that a task runs.
    pub(super) fn provider(&self, claim: ClaimKey) -> Option<&Provider> {
        self.lives.get(&claim).and_then(|life| life.provider.as_ref())
    }

    pub(super) fn task(&self, claim: ClaimKey) -> Option<&TaskId> {
        self.lives.get(&claim).map(|life| &life.offer.task)
    }

    /// Tasks that are here.
    pub(super) fn active(&self) -> usize {
        self.lives.values().filter(|life| !life.released).count()
    }

    /// Whether a task of this runtime is here, or its end is still to be told.
    pub(super) fn is_busy(&self, runtime: &RuntimeId) -> bool {
        self.lives.values().any(|life| life.offer.runtime == *runtime && life.is_at_stake())
    }

    /// Tasks of a provider that hold a slot, and runs of an earlier process, which may have found none.
    pub(super) fn of_provider(&self, provider: &Provider) -> usize {
        let runs =
            |life: &Life| life.slot.is_some() || matches!(life.recovered, Some(Recovered::Launched { .. }));
        let holds = |life: &&Life| !life.released && runs(life) && life.provider.as_ref() == Some(provider);
        self.lives.values().filter(holds).count()
    }

    /// Whether the task works in a directory of the user.
    pub(super) fn is_in_place(&self, claim: ClaimKey) -> bool {
        self.lives.get(&claim).is_some_and(|life| life.offer.in_place)
    }

    /// Whether the task was to work in a directory of the user, and has touched nothing yet.
    pub(super) fn is_untouched(&self, claim: ClaimKey) -> bool {
        self.lives.get(&claim).is_some_and(|life| life.offer.in_place && life.is_bare())
    }

    /// Whether this id is live or its end is still to be told.
    pub(super) fn has(&self, task: &TaskId) -> bool {
        self.lives.values().any(|life| life.offer.task == *task && (!life.released || life.is_owed()))
    }

    /// Whether a task that has a slot may work in this directory.
    pub(super) fn works_in(&self, root: &EnvRoot) -> Option<ClaimKey> {
        let holds = |life: &&Life| life.marked && life.dir && !life.released && life.roots.contains(root);
        self.lives.values().find(holds).map(|life| life.offer.claim)
    }

    pub(super) fn closed(&mut self, at: &At<'_>, closed: &Closed<'_>, gc: &GcBook, found: &mut Found) {
        match (&closed.what, closed.end) {
            (What::Api(call), End::Api(result)) => {
                if super::is_claim(call)
                    && let Ok(ApiReply::Claimed { offers, .. }) = result
                {
                    self.offers.clone_from(offers);
                }
                if let Some(life) = call.claim().and_then(|claim| self.lives.get_mut(&claim)) {
                    api_closed(life, at, closed.op, call, result, found);
                }
            }
            (What::Fs(call), End::Fs(result)) => {
                let Some(life) = call.claim().and_then(|claim| self.lives.get_mut(&claim)) else { return };
                match call {
                    FsCall::Prepare { .. } => {
                        life.prepare = Stage::Failed;
                        if let Ok(FsReply::Prepared { root }) = result {
                            life.prepare = Stage::Done;
                            if !life.roots.contains(root) && !gc.is_freeing(root) {
                                life.roots.push(root.clone());
                            }
                        }
                    }
                    FsCall::Resolve { .. } => life.resolve = Stage::Done,
                    FsCall::Unwind { .. } => life.unwind = Stage::Done,
                    FsCall::Seal { .. } => life.seal = Stage::Done,
                    _ => {}
                }
            }
            (What::Run(claim), End::Run(outcome)) => {
                let Some(life) = self.lives.get_mut(claim) else { return };
                life.run = None;
                life.have = life.have.max(outcome.have);
                life.usage_due |= outcome.usage;
                life.outcome = Some(outcome);
            }
            _ => {}
        }
    }

    /// Directories that a claim may work in.
    pub(super) fn roots(&self, claim: ClaimKey) -> &[EnvRoot] {
        self.lives.get(&claim).map_or(&[], |life| &life.roots)
    }

    /// Whether any task is here.
    pub(super) fn any(&self) -> bool {
        self.lives.values().any(|life| !life.released)
    }

    /// Whether the claim's agent was ever launched.
    pub(super) fn was_launched(&self, claim: ClaimKey) -> bool {
        self.lives.get(&claim).is_some_and(|life| life.runs > 0)
    }

    /// Whether there is a reason to end a run, apart from a stop.
    pub(super) fn may_be_killed(&self, run: OpId) -> bool {
        self.lives.values().any(|life| life.run == Some(run) && (life.ended || life.answered))
    }

    pub(super) fn progress(&mut self, op: OpId, event: &RunEvent) {
        if let (RunEvent::Result, Some(life)) =
            (event, self.lives.values_mut().find(|life| life.run == Some(op)))
        {
            life.answered = true;
        }
        let RunEvent::Progress { have, session, .. } = event else { return };
        if let Some(life) = self.lives.values_mut().find(|life| life.run == Some(op)) {
            life.have = life.have.max(*have);
            life.session |= session;
        }
    }

    pub(super) fn effect(&mut self, at: &At<'_>, effect: &Effect, fleet: &FleetBook, found: &mut Found) {
        let claim = match effect {
            Effect::Api { call, .. } => call.claim(),
            Effect::Fs { call, .. } => call.claim(),
            Effect::Progress { claim, .. } => Some(*claim),
            Effect::Run { call, .. } => Some(call.claim()),
            Effect::Keep { claim, entry } => return self.keep(*claim, entry, found),
            Effect::Forget { claim } => return self.forget(*claim, found),
            Effect::Fact { fact } => return self.fact(at, fact, fleet, found),
            _ => None,
        };
        let Some(claim) = claim else { return };
        let Some(life) = self.lives.get_mut(&claim).filter(|life| !life.forgotten) else {
            found.require(false, "INV-72", || {
                format!(
                    "{effect} is about claim {}, which was not taken or is forgotten",
                    claim.0,
                    effect = effect.said()
                )
            });
            return;
        };
        match effect {
            Effect::Api { op, call, .. } => api_sent(life, at, *op, call, found),
            Effect::Fs { op, call } => fs_sent(life, at, *op, call, found),
            Effect::Run { op, call } => {
                if recovery::run(life, *op, call, found) {
                    return;
                }
                let (claim, again) = (claim.0, life.runs == 1);
                found.require(life.started || life.seen_running, "I5", || {
                    format!("claim {claim} runs without an accepted /start")
                });
                found.require(life.lease.is_none(), "I6", || {
                    format!("claim {claim} runs while its lease is refreshed")
                });
                let once = life.run.is_none() && (life.runs == 0 || again) && call.fresh() == again;
                let rejected = life.outcome.is_some_and(|outcome| outcome.resume_rejected);
                found.require(once && (!again || rejected), "INV-103", || {
                    format!("claim {claim} is launched again ({} run)", nth(u32::from(life.runs) + 1))
                });
                found.require(!life.ending && life.settling.is_none(), "I5", || {
                    format!("claim {claim} runs although it is to end")
                });
                found.require(Some(call.slot()) == life.slot, "I1", || {
                    format!("claim {claim} runs in another slot")
                });
                life.started = true;
                life.run = Some(*op);
                life.runs += 1;
            }
            _ => {}
        }
    }

    fn fact(&mut self, at: &At<'_>, fact: &Fact, fleet: &FleetBook, found: &mut Found) {
        match fact {
            Fact::Admitted { claim, slot, .. } => {
                let Some(offer) = self.take(*claim, found) else { return };
                found.require(!at.stopping && offer.fault.is_none(), "INV-135", || {
                    format!("claim {} is run although it is faulty or the daemon stops", claim.0)
                });
                let provider = fleet.provider(&offer.runtime).cloned();
                found.require(provider.is_some(), "INV-135", || {
                    format!("claim {} is run for a runtime that is not here", claim.0)
                });
                let life = Life::new(offer, provider, Some(*slot), at.now);
                self.admitted(life, found);
            }
            Fact::Recovered { claim, slot, .. } => {
                self.taken_over(at, *claim, *slot, found);
            }
            Fact::HandedBack { claim, reason, .. } => {
                let again = self.lives.get(claim).filter(|l| l.recovered == Some(Recovered::Claimed));
                if let Some(life) = again {
                    let right = *reason == life.offer.fault.unwrap_or(FailReason::RuntimeOffline);
                    found.require(right, "INV-135", || {
                        format!("claim {} is failed back as {reason}", claim.0, reason = reason.said())
                    });
                    return;
                }
                let Some(offer) = self.take(*claim, found) else { return };
                let right = *reason == offer.fault.unwrap_or(FailReason::RuntimeOffline);
                found.require(right, "INV-135", || {
                    format!("claim {} is failed back as {reason}", claim.0, reason = reason.said())
                });
                let life = Life::new(offer, None, None, at.now);
                self.admitted(life, found);
            }
            Fact::Duplicate { task } => {
                found.require(self.has(task), "INV-116", || {
                    format!("{task} is ignored as a duplicate, and is not here")
                });
            }
            Fact::Parked { claim, .. } => {
                if let Some(life) = self.lives.get_mut(claim) {
                    found.require(life.waits && !life.parked && !life.ending, "INV-91", || {
                        format!("claim {} is parked twice, or has no need to be", claim.0)
                    });
                    (life.parked, life.slot) = (true, None);
                }
            }
            Fact::Unparked { claim, slot } => {
                if let Some(life) = self.lives.get_mut(claim) {
                    found.require(life.parked && life.waits && !life.ending, "I1", || {
                        format!("claim {} gets a second slot, or is to end", claim.0)
                    });
                    (life.parked, life.slot) = (false, Some(*slot));
                }
            }
            Fact::Phase { claim, phase: PhaseName::AwaitingRoot } => {
                if let Some(life) = self.lives.get_mut(claim) {
                    (life.waits, life.marked) = (false, true);
                }
            }
            Fact::Phase { claim, phase: PhaseName::Reporting } => {
                if let Some(life) = self.lives.get_mut(claim) {
                    life.waits = false;
                }
            }
            Fact::Phase { claim, phase: PhaseName::Settling } => {
                if let Some(life) = self.lives.get_mut(claim) {
                    found.require(life.settling.is_none() && life.run.is_none(), "INV-96", || {
                        format!("claim {} settles twice, or while it runs", claim.0)
                    });
                    let kept = matches!(life.kept, Some(Kept::Ended(_)));
                    found.require(kept, "LEDGER-BEFORE-STEP", || {
                        format!("claim {} settles, and what it came to is not kept", claim.0)
                    });
                    life.settling = Some(at.now);
                }
            }
            Fact::Ending { claim, why } => {
                if let Some(life) = self.lives.get_mut(claim) {
                    life.ending = true;
                    life.forced = match why {
                        EndReason::Idle => Some(FailReason::IdleWatchdog),
                        EndReason::TooLong => Some(FailReason::Timeout),
                        _ => None,
                    };
                    life.ended |= *why != EndReason::Stop;
                }
            }
            Fact::UsageLate { claim } => {
                if let Some(life) = self.lives.get_mut(claim) {
                    life.usage_late = true;
                }
            }
            Fact::UsageLost { claim } => {
                if let Some(life) = self.lives.get_mut(claim) {
                    life.usage = Stage::Done;
                }
            }
            Fact::Released { claim, slot } => {
                let Some(life) = self.lives.get_mut(claim) else { return };
                let sealed = !life.dir || life.seal == Stage::Done || life.is_bare();
                found.require(sealed && life.slot == *slot && !life.released, "I13", || {
                    format!("the slot of claim {} is free before it is sealed, or twice", claim.0)
                });
                life.released = true;
                life.waits = false;
            }
            Fact::Reported { claim, .. }
            | Fact::ReportRefused { claim, .. }
            | Fact::ReportSuperseded { claim, .. }
            | Fact::ReportLate { claim } => {
                if let Some(life) = self.lives.get_mut(claim) {
                    report::fact(life, fact, found);
                }
            }
            _ => {}
        }
    }

    /// A task was taken, and what is needed to know it again was written down before.
    fn admitted(&mut self, mut life: Life, found: &mut Found) {
        let claim = life.offer.claim;
        life.kept = self.records.early(claim);
        found.require(life.kept == Some(Kept::Claimed), "LEDGER-BEFORE-STEP", || {
            format!("claim {} is taken, and that is not kept", claim.0)
        });
        self.lives.insert(claim, life);
    }

    /// INV-116: takes an offer out of this step's, if its id is not here.
    fn take(&mut self, claim: ClaimKey, found: &mut Found) -> Option<Offer> {
        let nth = self.offers.iter().position(|offer| offer.claim == claim);
        found.require(nth.is_some(), "INV-116", || format!("claim {} is taken and was not offered", claim.0));
        let offer = self.offers.remove(nth?);
        found.require(!self.has(&offer.task) && !self.lives.contains_key(&claim), "INV-116", || {
            format!("{} is taken a second time while it is here", offer.task)
        });
        Some(offer)
    }

    fn forget(&mut self, claim: ClaimKey, found: &mut Found) {
        if let Some(nth) = self.offers.iter().position(|offer| offer.claim == claim) {
            let offer = self.offers.remove(nth);
            found.require(self.has(&offer.task), "INV-33", || {
                format!("claim {} was brought and is dropped, and its task is not here", claim.0)
            });
            return;
        }
        let Some(life) = self.lives.get_mut(&claim) else {
            found.require(false, "I8", || format!("claim {} is forgotten twice, or was never here", claim.0));
            return;
        };
        // Within the step that ends a task, its marks and its slot go after this.
        let told = life.is_reported() || life.is_silent();
        found.require(told, "I8", || format!("claim {} is forgotten, and its end is not told", claim.0));
        found.require(life.sent >= life.have || life.is_gone(), "INV-99", || {
            format!("claim {} is forgotten, and messages {}..{} are left", claim.0, life.sent, life.have)
        });
        found.require(!life.usage_due || life.usage == Stage::Done || life.is_silent(), "INV-98", || {
            format!("claim {} is forgotten, and its usage is not reported", claim.0)
        });
        life.forgotten = true;
    }

    /// The daemon ends: what it does not report any more, it names.
    pub(super) fn exit(&self, exit: &ExitReport, found: &mut Found) {
        for life in self.lives.values() {
            let named = exit.abandoned.contains(&life.offer.task);
            let other = |o: &Life| o.offer.task == life.offer.task && o.offer.claim != life.offer.claim;
            if self.lives.values().any(other) {
                continue;
            }
            let told = named || exit.kept.contains(&life.offer.task);
            found.require(told || life.may_be_silent() || !life.is_owed(), "I8", || {
                format!("claim {} is abandoned without a word", life.offer.claim.0)
            });
            found.require(!(named && life.is_reported()), "I8", || {
                format!("claim {} is named as abandoned, and is reported", life.offer.claim.0)
            });
            let kept = exit.kept.contains(&life.offer.task);
            let goes_on = life.run.is_some() && exit.cause.leaves_runs();
            found.require(kept == goes_on && !(kept && named), "RESTART", || {
                let claim = life.offer.claim.0;
                format!("claim {claim}: kept {kept}, abandoned {named}, its run goes on {goes_on}")
            });
        }
    }

    pub(super) fn settle(&mut self, at: &At<'_>, view: View<'_>, found: &mut Found) {
        for offer in std::mem::take(&mut self.offers) {
            found.require(false, "INV-33", || {
                format!("claim {} was brought and nothing is done", offer.claim.0)
            });
        }
        let mut seen = 0;
        for task in view.tasks() {
            seen += 1;
            let fits =
                self.lives.get(&task.claim).is_some_and(|life| !life.released && life.slot == task.slot);
            found.require(fits, "I1", || format!("claim {} is here and should not be", task.claim.0));
        }
        // One walk for all that each step looks at: most of what the rules cost is here.
        let (mut live, mut released) = (0, false);
        for life in self.lives.values() {
            let claim = life.offer.claim.0;
            live += usize::from(!life.released);
            released |= life.released;
            recovery::is_written_down(life, found);
            // One that waits for the collector has not marked all of it yet, and touches nothing.
            if life.dir && !life.released && !life.is_bare() {
                for root in &life.roots {
                    found.require(view.is_root_active(root), "INV-124", || {
                        format!("{root} is not marked although claim {claim} works in it")
                    });
                }
            }
            let waits = life.marked && life.slot.is_some() && life.is_bare() && !life.released;
            found.require(!(waits && life.ending) || life.report.kind.is_some(), "INV-132", || {
                format!("claim {claim} is to end, and waits for the collector")
            });
            let leased = life.is_leased() && !at.due && life.lease.is_none();
            let rule = if life.parked { "INV-122" } else { "INV-117" };
            found.require(!leased || at.now.since(life.lease_at) <= at.timing.lease, rule, || {
                format!("the lease of claim {claim} is not refreshed")
            });
            let gap = at.now.since(life.granted_at);
            found.require(!leased || life.refused || gap <= at.timing.lease * 2, "INV-123", || {
                format!("the lease of claim {claim} was last granted {} ms ago", gap.as_millis())
            });
        }
        found.require(seen == live, "I1", || format!("{live} tasks should be here, {seen} are"));
        self.settle_records(found);
        if released {
            self.settle_released(view, found);
        }
    }

    /// INV-125: directories of those that left this step's tasks are free, if nobody else works in them.
    fn settle_released(&mut self, view: View<'_>, found: &mut Found) {
        for life in self.lives.values().filter(|life| life.released) {
            for root in &life.roots {
                let other = |o: &Life| o.marked && o.dir && !o.released && o.roots.contains(root);
                let shared = self.lives.values().any(other);
                found.require(shared || !view.is_root_active(root), "INV-125", || {
                    format!("{root} stays marked although nobody works in it")
                });
            }
        }
        self.lives.retain(|_, life| !(life.released && life.forgotten));
    }

    pub(super) fn finish(&self, found: &mut Found) {
        for life in self.lives.values() {
            found.require(false, "I26", || format!("claim {} is never forgotten", life.offer.claim.0));
        }
        self.records.finish(found);
    }
}
