//! What the daemon wants is carried out, and what came of it is told to it.

use super::book::Claim;
use super::fault::Fault;
use super::marks::Mark;
use super::queue::What;
use super::world::{About, Hosted, World};
#[cfg(feature = "canary")]
use crate::effect::ApiCall;
use crate::effect::{Effect, Fact, RuntimeChange};
use crate::event::{ApiReply, Event, Offer};
use crate::id::OpId;

impl World {
    /// A request is complete.
    pub(super) fn done(&mut self, life: u32, op: OpId, event: Event) {
        if life != self.lives || self.life.is_none() {
            return;
        }
        let Some(open) = self.open.remove(&op) else {
            // What was cancelled ends once, whatever else was on its way.
            return;
        };
        if self.hit(Fault::Duplicate) {
            let at = self.now + self.below(500);
            self.queue.push(at, What::Tell { life, event: event.clone() });
        }
        match (&event, open.about) {
            (Event::Api { r: Ok(reply), .. }, about) => self.api_done(about, reply),
            (Event::Fs { r: Ok(reply), .. }, about) => self.fs_done(about, reply),
            _ => {}
        }
        self.feed(&event);
    }

    fn api_done(&mut self, about: About, reply: &ApiReply) {
        match (about, reply) {
            (About::Claim, ApiReply::Claimed { offers, .. }) => {
                let slots = usize::from(self.cfg.daemon.slots);
                if offers.len() == slots && slots > 1 {
                    self.marks.hit(Mark::AllSlots);
                }
                for offer in offers {
                    self.offered(offer);
                }
            }
            (About::Start(claim), _) if self.open.values().any(|open| open.about == About::Lease(claim)) => {
                self.marks.hit(Mark::LeaseWaited);
            }
            (About::Messages(claim, upto), reply) => {
                let taken = if let ApiReply::Known { upto } = reply { *upto } else { upto };
                self.ledger.acked(claim, taken);
            }
            _ => {}
        }
    }

    fn offered(&mut self, offer: &Offer) {
        if !self.hosted.contains_key(&offer.runtime) {
            self.marks.hit(Mark::RemovedRuntime);
        }
        self.claims.insert(offer.claim, Claim::new(offer.clone()));
    }

    /// Carries out what waits, in order.
    pub(super) fn perform_all(&mut self) {
        while let Some(effect) = self.outbox.pop_front() {
            self.ledger.apply(std::slice::from_ref(&effect));
            self.perform(effect);
        }
        if self.life.as_ref().is_some_and(|life| life.exited.is_some()) {
            self.exit();
        }
    }

    pub(super) fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Api { op, call, deadline } => {
                #[cfg(feature = "canary")]
                if self.swallow(op, &call) {
                    return;
                }
                self.ask(op, call, deadline);
            }
            Effect::Fs { op, call } => self.work(op, call),
            Effect::Run { op, call } => self.run_agent(op, &call),
            Effect::Kill { op, step } => self.kill(op, step),
            Effect::Cancel { op } => self.cancel(op),
            Effect::Ws { conn, cmd } => self.ws(conn, &cmd),
            Effect::Runtime { runtime, change, .. } => match change {
                RuntimeChange::Added { provider, .. } => {
                    self.hosted.insert(runtime, Hosted { provider, claimable: false });
                }
                RuntimeChange::Claimable => {
                    if let Some(hosted) = self.hosted.get_mut(&runtime) {
                        hosted.claimable = true;
                    }
                }
                RuntimeChange::Removed => {
                    self.hosted.remove(&runtime);
                }
            },
            Effect::Forget { claim } => {
                if let Some(claim) = self.claims.get_mut(&claim) {
                    claim.forgotten = true;
                }
            }
            // The world acts upon no fact: a daemon whose facts are all lost must do the same.
            Effect::Fact { fact } => self.note(&fact),
            Effect::Gate { owner, answer } => self.gate_answered(owner, answer),
            Effect::Exit { report } => {
                if let Some(life) = &mut self.life {
                    life.exited = Some(report);
                }
            }
            Effect::Progress { .. }
            | Effect::Keep { .. }
            | Effect::ForgetAction { .. }
            | Effect::DropIdleConnections => {}
        }
    }

    #[cfg(feature = "canary")]
    fn swallow(&mut self, op: OpId, call: &ApiCall) -> bool {
        use super::config::Canary;
        let report = matches!(call, ApiCall::Complete { .. } | ApiCall::Fail { .. });
        if self.cfg.canary != Some(Canary::LosesReports) || !report || !self.hit(Fault::NotSent) {
            return false;
        }
        let open = super::world::Open { about: About::OtherApi, unsent: true, cancelled: false };
        self.open.insert(op, open);
        let event = Event::Api { op, r: Ok(ApiReply::Done) };
        self.queue.push(self.now + 1, What::Done { life: self.lives, op, event });
        true
    }

    fn note(&mut self, fact: &Fact) {
        match fact {
            Fact::Ending { claim, why } => {
                if let Some(claim) = self.claims.get_mut(claim) {
                    claim.ending = claim.ending.max(Some(*why));
                }
            }
            Fact::Phase { claim, phase: crate::effect::PhaseName::AwaitingRoot } => {
                let waits =
                    |claim: &Claim| claim.offer.roots().any(|root| self.disk.collecting.contains(root));
                if self.claims.get(claim).is_some_and(waits) {
                    self.marks.hit(Mark::CollectorYielded);
                }
            }
            _ => {}
        }
    }
}
