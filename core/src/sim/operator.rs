//! Who has a say over the daemon: an operator that stops it, and those who want it to pause.

use super::marks::Mark;
use super::queue::What;
use super::world::{About, World};
use crate::event::{Event, GateAsk, GateOwner, StopKind};
use crate::script::Choose;

impl World {
    pub(super) fn stop_told(&mut self) {
        let reporting = self.open.values().any(|open| matches!(open.about, About::Report(_)));
        let Some(life) = &mut self.life else { return };
        life.stops = life.stops.saturating_add(1);
        if life.stops == 2 && reporting {
            self.marks.hit(Mark::HurriedReport);
        }
    }

    /// Asks the daemon to stop; it is started again once it has.
    pub(super) fn ask_to_stop(&mut self) {
        let within = [None, Some(5_000), Some(120_000)][self.chance.below(3) as usize];
        let how = match self.chance.below(4) {
            0 => StopKind::Drain { within_ms: within },
            1 => StopKind::Restart,
            _ => StopKind::Now,
        };
        self.feed(&Event::Stop { how });
        if self.chance.one_in(3) {
            let at = self.now + self.below(20_000);
            let event = Event::Stop { how };
            self.queue.push(at, What::Tell { life: self.lives, event });
        }
    }

    pub(super) fn gate_answered(&mut self, owner: GateOwner, answer: crate::effect::GateAnswer) {
        if answer == crate::effect::GateAnswer::Granted {
            let at = self.now + self.below(30_000);
            self.queue.push(at, What::Release { life: self.lives, owner });
        }
    }

    pub(super) fn ask_for_gate(&mut self) {
        let owner = [GateOwner::ServerUpdate, GateOwner::SelfUpdate, GateOwner::Reload, GateOwner::Demotion]
            [self.chance.below(4) as usize];
        let ask = [GateAsk::Try, GateAsk::Wait][self.chance.below(2) as usize];
        self.feed(&Event::Gate { owner, ask });
        if self.chance.one_in(8) {
            self.feed(&Event::Gate { owner, ask: GateAsk::Release });
        }
    }

    pub(super) fn release_gate(&mut self, life: u32, owner: GateOwner) {
        if life == self.lives {
            self.feed(&Event::Gate { owner, ask: GateAsk::Release });
        }
    }
}
