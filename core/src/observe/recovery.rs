//! What survives the process: that it is written down before what depends on it, and that the next process takes it over once, as it was
//! written down.

use super::gc::GcBook;
use super::life::{Life, Stage};
use super::tasks::TaskBook;
use super::{At, Found};
use crate::effect::{Keep, LaunchCall, ReportKind};
use crate::event::{ClaimKey, Event, Offer, Recovered};
use crate::id::{OpId, Provider, RuntimeId, SlotIndex, TaskId};
use crate::said::{self, Said};
use std::collections::BTreeMap;

/// How far a claim is as its record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    Claimed,
    Launched(SlotIndex),
    Ended(Option<ReportKind>),
}

impl Said for Kept {
    fn said(&self) -> String {
        match self {
            Self::Claimed => "claimed".to_owned(),
            Self::Launched(slot) => said::launched(*slot),
            Self::Ended(report) => said::ended(*report),
        }
    }
}

impl Kept {
    const fn of(entry: &Keep) -> Self {
        match entry {
            Keep::Claimed { .. } => Self::Claimed,
            Keep::Launched { slot, .. } => Self::Launched(*slot),
            Keep::Ended { report, .. } => Self::Ended(*report),
        }
    }

    const fn was(was: &Recovered) -> Self {
        match was {
            Recovered::Claimed => Self::Claimed,
            Recovered::Launched { slot, .. } => Self::Launched(*slot),
            Recovered::Ended { report, .. } => Self::Ended(*report),
        }
    }
}

/// A claim that an earlier process had, and this one has not heard of yet.
#[derive(Clone, Debug)]
struct Before {
    task: TaskId,
    kept: Option<Kept>,
    /// Its end was acknowledged, or refused for good.
    reported: bool,
}

/// Records, and claims that are to be taken over.
#[derive(Clone, Debug, Default)]
pub(super) struct Records {
    before: BTreeMap<ClaimKey, Before>,
    /// What this step wrote down about claims before it said anything else of them.
    early: BTreeMap<ClaimKey, Kept>,
    /// What this step is told of an earlier process, until it is taken.
    coming: Option<Coming>,
}

#[derive(Clone, Debug)]
struct Coming {
    offer: Offer,
    provider: Provider,
    was: Recovered,
    /// Whether the claim or its task is here already, or its directory is being freed, so that nothing may come of it.
    here: bool,
    taken: bool,
    /// Whether the claim was reported by the process before, and the record does not say so.
    again: bool,
}

impl Records {
    pub(super) fn early(&mut self, claim: ClaimKey) -> Option<Kept> {
        self.early.remove(&claim)
    }

    /// What the next process must hear of, given what this one leaves.
    pub(super) fn after_crash<'a>(&self, lives: impl Iterator<Item = &'a Life>) -> Self {
        let mut before = self.before.clone();
        before.extend(lives.filter(|life| !life.forgotten).map(|life| {
            let reported = life.is_reported() && life.kept != Some(Kept::Ended(None));
            let task = life.offer.task.clone();
            (life.offer.claim, Before { task, kept: life.kept, reported })
        }));
        Self { before, early: BTreeMap::new(), coming: None }
    }

    /// What an earlier process had, and nobody ever heard of again.
    pub(super) fn finish(&self, found: &mut Found) {
        for (claim, before) in &self.before {
            let owed = !before.reported && before.kept != Some(Kept::Ended(None));
            found.require(!owed, "NOTHING-LOST", || {
                format!(
                    "claim {} of {} was here when the process was killed, and is lost",
                    claim.0, before.task
                )
            });
        }
    }
}

impl TaskBook {
    /// What the daemon is told of an earlier process.
    pub(super) fn told(&mut self, at: &At<'_>, event: &Event, gc: &GcBook) {
        let Event::Recovered { offer, provider, was, .. } = event else { return };
        let silent = matches!(was, Recovered::Ended { report: None, .. });
        let here = self.lives.contains_key(&offer.claim) || (!silent && self.has(&offer.task));
        let before = self.records.before.remove(&offer.claim);
        let same = |before: &Before| before.kept == Some(Kept::was(was));
        let again = !silent && before.is_some_and(|before| same(&before) && before.reported);
        self.records.coming = Some(Coming {
            offer: offer.clone(),
            provider: provider.clone(),
            was: *was,
            here: here || at.stopping || offer.roots().any(|root| gc.is_freeing(root)),
            taken: false,
            again,
        });
    }

    /// The daemon says that it has taken something over.
    pub(super) fn taken_over(
        &mut self,
        at: &At<'_>,
        claim: ClaimKey,
        slot: Option<SlotIndex>,
        found: &mut Found,
    ) {
        let fits = self
            .records
            .coming
            .as_mut()
            .filter(|coming| coming.offer.claim == claim && !coming.here && !coming.taken);
        let Some(coming) = fits else {
            found.require(false, "RECOVERED-ONCE", || {
                format!("claim {} is taken over twice, or nobody spoke of it", claim.0)
            });
            return;
        };
        coming.taken = true;
        let (was, again) = (coming.was, coming.again);
        let launched = matches!(was, Recovered::Launched { .. });
        found.require(launched || slot.is_none(), "RECOVERED-SLOT", || {
            format!("claim {} is not launched and gets a slot", claim.0)
        });
        if let (Recovered::Launched { slot: own, .. }, Some(slot)) = (was, slot) {
            let taken = self.lives.values().any(|life| !life.released && life.slot == Some(own));
            found.require(
                slot == own || taken || at.claims_out || own.0 >= at.slots,
                "RECOVERED-SLOT",
                || format!("claim {} gets slot {} although its own, {}, is free", claim.0, slot.0, own.0),
            );
        }
        let provider = launched.then(|| coming.provider.clone());
        let mut life = Life::new(coming.offer.clone(), provider, slot, at.now);
        life.kept = Some(Kept::was(&was));
        life.recovered = Some(was);
        life.dir = was != Recovered::Claimed;
        (life.taken, life.marked, life.waits) = (life.dir, life.dir, false);
        life.post_unknown = true;
        match was {
            Recovered::Claimed => {}
            Recovered::Launched { acked, .. } => (life.sent, life.have) = (acked, acked),
            Recovered::Ended { report, acked, have, usage, .. } => {
                (life.sent, life.have) = (acked, have.max(acked));
                (life.usage_due, life.usage_late) = (usage, usage && report.is_none());
                life.released = report.is_none();
            }
        }
        life.reported_before = again;
        self.lives.insert(claim, life);
    }

    /// The daemon wants something written down.
    pub(super) fn keep(&mut self, claim: ClaimKey, entry: &Keep, found: &mut Found) {
        let kept = Kept::of(entry);
        let Some(life) = self.lives.get_mut(&claim).filter(|life| !life.forgotten) else {
            let offered = self.offers.iter().any(|offer| offer.claim == claim);
            found.require(offered && kept == Kept::Claimed, "LEDGER-BEFORE-STEP", || {
                format!(
                    "what is written down of claim {} is that it is {kept}, and it is not here",
                    claim.0,
                    kept = kept.said()
                )
            });
            self.records.early.insert(claim, kept);
            return;
        };
        let back = matches!(
            (life.kept, kept),
            (_, Kept::Claimed)
                | (Some(Kept::Ended(_)), Kept::Launched(_))
                | (Some(Kept::Ended(None)), Kept::Ended(Some(_)))
        );
        found.require(!back, "LEDGER-BEFORE-STEP", || {
            format!(
                "claim {} is written down as {kept} after it was as {}",
                claim.0,
                life.kept.said(),
                kept = kept.said()
            )
        });
        life.kept = Some(kept);
    }

    /// Whether a report that an earlier process left for this runtime was not tried yet.
    pub(super) fn is_untried(&self, runtime: &RuntimeId) -> bool {
        let untried = |life: &Life| {
            let owed = match life.recovered {
                Some(Recovered::Claimed) => true,
                Some(Recovered::Ended { report, .. }) => report.is_some(),
                _ => false,
            };
            owed && !life.forgotten && !life.report.answered
        };
        self.lives.values().any(|life| life.offer.runtime == *runtime && untried(life))
    }

    pub(super) fn settle_records(&mut self, found: &mut Found) {
        if let Some(coming) = self.records.coming.take() {
            found.require(coming.taken || coming.here, "RECOVERED-ONCE", || {
                format!("claim {} of an earlier process is not taken over", coming.offer.claim.0)
            });
        }
        self.records.early.clear();
    }
}

/// After each step: what became of a claim is written down.
pub(super) fn is_written_down(life: &Life, found: &mut Found) {
    if life.forgotten {
        return;
    }
    let claim = life.offer.claim.0;
    let over = life.outcome.is_some() && life.run.is_none();
    found.require(!over || matches!(life.kept, Some(Kept::Ended(_))), "LEDGER-BEFORE-STEP", || {
        format!("the run of claim {claim} is over, and what it came to is not kept")
    });
    found.require(!life.is_reported() || life.kept == Some(Kept::Ended(None)), "LEDGER-BEFORE-STEP", || {
        format!("claim {claim} is reported, and its record does not say so")
    });
}

/// ATTACH-NOT-LAUNCH: a run of an earlier process is followed, once; one of this process is launched, with its record before it.
/// Returns whether it is followed.
pub(super) fn run(life: &mut Life, op: OpId, call: &LaunchCall, found: &mut Found) -> bool {
    let claim = call.claim().0;
    match (life.recovered, call.attached()) {
        (None, None) => {
            let kept = life.kept == Some(Kept::Launched(call.slot()));
            found.require(kept, "LEDGER-BEFORE-STEP", || {
                format!("claim {claim} is launched, and its record says {}", life.kept.said())
            });
            false
        }
        (Some(Recovered::Launched { slot, acked }), Some(known)) => {
            let fits = life.runs == 0 && known == acked && call.slot() == slot;
            found.require(fits, "ATTACH-NOT-LAUNCH", || {
                format!("claim {claim} is followed twice, or not from where it was")
            });
            life.started = true;
            life.run = Some(op);
            life.runs += 1;
            true
        }
        (was, how) => {
            found.require(false, "ATTACH-NOT-LAUNCH", || {
                let how = if how.is_some() { "followed" } else { "launched" };
                format!(
                    "claim {claim} was {was} in an earlier process, and its agent is {how} now",
                    was = was.said()
                )
            });
            how.is_some()
        }
    }
}

/// RECOVERED-ONCE: what is reported is what was written down, and was not reported before.
pub(super) fn reported(life: &Life, kind: ReportKind, found: &mut Found) {
    let claim = life.offer.claim.0;
    found.require(life.kept == Some(Kept::Ended(Some(kind))), "LEDGER-BEFORE-STEP", || {
        format!(
            "claim {claim} is reported as {kind}, and its record says {}",
            life.kept.said(),
            kind = kind.said()
        )
    });
    found.require(!life.reported_before, "RECOVERED-ONCE", || {
        format!("claim {claim} is reported as {kind}; an earlier process has done so", kind = kind.said())
    });
    if let (Some(Recovered::Ended { report: Some(report), .. }), None) = (life.recovered, life.report.kind) {
        found.require(report == kind, "RECOVERED-ONCE", || {
            format!(
                "claim {claim} ended as {report} in an earlier process, and is reported as {kind}",
                report = report.said(),
                kind = kind.said()
            )
        });
    }
}

impl Life {
    /// INV-10: whether failing what the server has for its runtime would fail it.
    pub(super) fn is_at_stake(&self) -> bool {
        let told = self.is_reported() || self.kept == Some(Kept::Ended(None));
        !self.forgotten && !told && (!self.released || self.is_owed())
    }

    /// Whether it was taken over with this report to make.
    pub(super) fn was_owed(&self, kind: ReportKind) -> bool {
        matches!(self.recovered, Some(Recovered::Ended { report: Some(report), .. }) if report == kind)
    }

    /// Whether it may be forgotten although nothing was reported here.
    pub(super) fn is_silent(&self) -> bool {
        let told_before = matches!(self.recovered, Some(Recovered::Ended { report: None, .. }));
        let closed = self.seal == Stage::Done || (self.is_bare() && self.may_be_silent());
        told_before || (self.report.kind.is_none() && closed)
    }
}
