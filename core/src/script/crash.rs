//! What a killed process leaves in the world, and what the next one is told of it.

use super::roster::Roster;
use super::world::{Call, Link, World};
use super::{Choose, Seeded};
use crate::effect::{ApiCall, ReportKind};
use crate::event::{ApiReply, ClaimKey, Event, Recovered};
use crate::id::{ConnGen, PathKey, Provider, SlotIndex};

impl World {
    /// The messages that the server is known to have once this has happened.
    pub(super) fn taken(&self, event: &Event) -> Option<(ClaimKey, u32)> {
        let Event::Api { op, r: Ok(reply) } = event else { return None };
        match (self.open.get(op)?, reply) {
            (Call::Api(ApiCall::Messages { claim, upto, .. }), ApiReply::Known { upto: part }) => {
                Some((*claim, *part.min(upto)))
            }
            (Call::Api(ApiCall::Messages { claim, upto, .. }), _) => Some((*claim, *upto)),
            _ => None,
        }
    }

    /// The daemon's process is killed: what it asked for ends with it, though the server may have taken some of it; runs go on.
    pub(super) fn crash(&mut self, fate: u32) {
        let open = std::mem::take(&mut self.open);
        for (op, call) in open {
            match call {
                Call::Api(call) if Seeded::new(u64::from(fate) ^ op.0).below(2) == 0 => {
                    self.answered(&call, &ApiReply::Done);
                }
                Call::Run(call) => {
                    if let Some(run) = self.runs.get(&op) {
                        self.left.insert(call.claim(), *run);
                    }
                }
                Call::Api(_) | Call::Fs(_) => {}
            }
        }
        self.cancelled.clear();
        self.runs.clear();
        self.runtimes = Roster::default();
        self.providers.clear();
        self.claimable.clear();
        self.last.clear();
        (self.conn, self.link, self.stops) = (ConnGen(0), Link::Off, 0);
    }

    /// What an earlier process left, told late or twice: a claim that is here, or was, or never was.
    pub(super) fn recovered(&mut self, choose: &mut dyn Choose) -> Event {
        let runtime = self.some_runtime(choose);
        let mut offer = self.offer_for(choose, runtime);
        if choose.one_in(2) && !self.claims.is_empty() {
            let nth = choose.below(self.claims.len() as u32) as usize;
            if let Some((claim, task)) = self.claims.iter().nth(nth) {
                (offer.claim, offer.task) = (*claim, task.clone());
            }
        }
        let acked = choose.below(4);
        let was = match choose.below(5) {
            0 => Recovered::Claimed,
            1 => Recovered::Launched { slot: SlotIndex(choose.below(6) as u16), acked },
            n => Recovered::Ended {
                report: [None, Some(ReportKind::Complete), Some(ReportKind::CancelAck)][n as usize - 2],
                acked,
                have: choose.below(6),
                usage: choose.one_in(2),
                ran: choose.one_in(2),
            },
        };
        let path = choose.one_in(2).then(|| PathKey::new(format!("dir-{}", choose.below(3))));
        Event::Recovered { offer, provider: Provider::new("claude"), was, path }
    }
}
