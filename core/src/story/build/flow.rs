//! Hints, the claims that follow them, and the tasks that those bring.

use super::scene::Scene;
use crate::effect::{ApiCall, ClaimScope};
use crate::event::{ApiReply, Offer};
use crate::id::{Provider, RuntimeId, TaskId};
use crate::story::{Claim, ClaimIx, Ending, Hint, Origin, RequestIx, RuntimeIx, Span, TaskIx, WaitReason};

impl Scene<'_> {
    /// The server says that work may be there.
    pub(super) fn hinted(&mut self, runtime: Option<&RuntimeId>, task: Option<&TaskId>) {
        let runtime = runtime.map(|runtime| self.runtime(runtime));
        let nth = self.story.hints.len();
        let life = self.course.life;
        self.story.hints.push(Hint {
            life,
            at: self.at,
            runtime,
            task: task.cloned(),
            claim: None,
            waited: None,
        });
        match runtime {
            Some(runtime) => self.course.pending.of.entry(runtime).or_default().push(nth),
            None => self.course.pending.any.push(nth),
        }
        self.course.step.hint = Some(nth);
    }

    /// A request was sent that may be a claim.
    pub(super) fn claim_sent(&mut self, request: RequestIx, call: &ApiCall) {
        let max = match call {
            ApiCall::Claim(claim) | ApiCall::ClaimOver { claim, .. } => claim.max(),
            ApiCall::ClaimOne(_) => 1,
            _ => return,
        };
        let claim = self.add_claim(request, Some(max));
        self.course.claims_open += 1;
        self.course.claim_failed = None;
        self.course.held_off = false;
        for nth in self.answered_by(call) {
            self.story.hints[nth].claim = Some(claim);
        }
    }

    pub(super) fn add_claim(&mut self, request: RequestIx, max: Option<u16>) -> ClaimIx {
        let claim = ClaimIx::next(&self.story.claims);
        let (life, tasks, duplicates) = (self.course.life, Vec::new(), Vec::new());
        self.story.claims.push(Claim { life, request, max, tasks, duplicates, unusable: 0 });
        self.course.claim_of.insert(request, claim);
        claim
    }

    /// Takes out the hints that a claim follows.
    fn answered_by(&mut self, call: &ApiCall) -> Vec<usize> {
        let one = if let ApiCall::ClaimOne(call) = call { Some(self.runtime(call.runtime())) } else { None };
        let pending = &mut self.course.pending;
        let mut hints = std::mem::take(&mut pending.any);
        match call {
            ApiCall::Claim(claim) | ApiCall::ClaimOver { claim, .. } => {
                let runtimes = &self.story.runtimes;
                let scope = claim.scope();
                pending.of.retain(|runtime, of| {
                    let covered = covers(scope, &runtimes[runtime.get()]);
                    if covered {
                        hints.append(of);
                    }
                    !covered
                });
            }
            _ => hints.extend(one.and_then(|runtime| pending.of.remove(&runtime)).unwrap_or_default()),
        }
        hints
    }

    /// A claim ended.
    pub(super) fn claim_ended(&mut self, request: RequestIx, ending: Ending, reply: Option<&ApiReply>) {
        let claim = match self.course.claim_of.get(&request) {
            Some(claim) => *claim,
            None => self.add_claim(request, None),
        };
        self.claim_is_over(claim);
        self.course.claim_failed = (!ending.is_done()).then_some((request, ending));
        self.course.step.claim = Some(claim);
        if let Some(ApiReply::Claimed { offers, unusable }) = reply {
            self.story[claim].unusable = *unusable;
            // A log tells of tasks that were claimed, and not of the effects of the claim.
            if self.course.step.unrecorded || self.course.header.is_imported() {
                for offer in offers {
                    self.offered(claim, offer);
                }
            }
        }
    }

    /// Nobody knows how a claim ended.
    pub(super) fn claim_lost(&mut self, request: RequestIx) {
        if let Some(claim) = self.course.claim_of.get(&request).copied() {
            self.claim_is_over(claim);
        }
    }

    fn claim_is_over(&mut self, claim: ClaimIx) {
        if self.story[claim].max.is_some() {
            self.course.claims_open = self.course.claims_open.saturating_sub(1);
        }
    }

    /// A task came, and nobody recorded what the core made of it.
    fn offered(&mut self, claim: ClaimIx, offer: &Offer) {
        if self.course.claims.contains_key(&offer.claim) {
            return;
        }
        let task = self.add_task(offer.claim, Origin::Offered(Some(claim)), Span::from(self.at));
        self.name(task, offer, None);
        self.story[claim].tasks.push(task);
    }

    /// What an offer says of a task.
    pub(super) fn name(&mut self, task: TaskIx, offer: &Offer, provider: Option<&Provider>) {
        // What a log does not tell is empty.
        let runtime = (!offer.runtime.as_str().is_empty()).then(|| self.runtime(&offer.runtime));
        let told = &mut self.story[task];
        told.id = Some(offer.task.clone());
        told.runtime = runtime;
        told.provider = provider.filter(|provider| !provider.as_str().is_empty()).cloned();
        told.root = Some(offer.root.clone()).filter(|root| !root.as_str().is_empty());
        told.in_place = Some(offer.in_place);
        let mut roots: Vec<_> = offer.roots().filter(|root| !root.as_str().is_empty()).cloned().collect();
        roots.dedup();
        self.course.held(task).roots = roots;
    }

    /// A hint of this step that no claim has followed in it waits for something.
    pub(super) fn settle_hint(&mut self) {
        let Some(nth) = self.course.step.hint else { return };
        // A log tells of no claim that is sent, so of none that is not.
        let unknown = self.course.step.unrecorded || self.course.header.is_imported();
        if self.story.hints[nth].claim.is_some() || unknown {
            return;
        }
        let waits = self.why_no_claim(self.story.hints[nth].runtime);
        self.story.hints[nth].waited = Some(waits);
    }

    fn why_no_claim(&self, runtime: Option<RuntimeIx>) -> WaitReason {
        let course = &self.course;
        let life = &self.story[course.life];
        let used = u32::try_from(course.slots.len()).unwrap_or(u32::MAX);
        let online = runtime.is_none_or(|runtime| course.online.contains_key(&runtime));
        if course.stopping || course.gate {
            WaitReason::Closed
        } else if life.barred.last().is_some_and(Span::is_open) {
            WaitReason::Credential
        } else if course.held_off {
            WaitReason::HeldOff
        } else if course.claims_open > 0 {
            WaitReason::ClaimOnItsWay
        } else if life.slots.is_some_and(|slots| used >= u32::from(slots)) && course.is_whole {
            WaitReason::Slot
        } else if let (Some((request, after)), true) = (course.claim_failed, online) {
            WaitReason::Retry { request, after }
        } else {
            WaitReason::Unknown
        }
    }
}

/// Whether a claim asks for the tasks of a runtime, as far as is known.
fn covers(scope: &ClaimScope, runtime: &crate::story::Runtime) -> bool {
    let of = |provider: &Provider| runtime.provider.as_ref() == Some(provider);
    match scope {
        ClaimScope::All => true,
        ClaimScope::Only { provider } => of(provider),
        ClaimScope::AllBut { providers } => !providers.iter().any(of),
        ClaimScope::Named { runtimes } => runtimes.contains(&runtime.id),
    }
}
