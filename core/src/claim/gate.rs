//! The gate that each claim passes. It counts those on their way; somebody who wants to change this program can hold it while no claim and
//! no task is about; and once closed it lets no more through.

use crate::effect::GateAnswer;
use crate::event::{GateAsk, GateOwner};
use crate::token::{ClaimPass, UpdateBarrier};
use serde::{Deserialize, Serialize};

#[derive(Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum State {
    #[default]
    Open,
    /// Nothing new passes, and this one gets the gate once the claims on their way have ended without a task.
    Waiting(GateOwner),
    Held(UpdateBarrier),
}

/// The gate.
#[derive(Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct ClaimGate {
    out: u32,
    state: State,
    closed: bool,
}

/// What comes of a request to the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// This.
    Answer(GateAnswer),
    /// The answer comes later.
    Later,
    /// There is nothing to say.
    Done,
    /// It is not this one's to release.
    Stray,
}

impl ClaimGate {
    pub(crate) fn enter(&mut self) -> Option<ClaimPass> {
        if !self.is_open() {
            return None;
        }
        self.out += 1;
        Some(ClaimPass::mint())
    }

    pub(crate) fn exit(&mut self, pass: ClaimPass) {
        let ClaimPass { .. } = pass;
        self.out -= 1;
    }

    /// Whether a new claim may pass.
    pub(crate) fn is_open(&self) -> bool {
        !self.closed && self.state == State::Open
    }

    /// Whether no claim will ever pass any more.
    pub(crate) const fn is_closed(&self) -> bool {
        self.closed
    }

    /// Who has the gate.
    pub(crate) const fn holder(&self) -> Option<GateOwner> {
        match &self.state {
            State::Held(barrier) => Some(barrier.owner),
            State::Open | State::Waiting(_) => None,
        }
    }

    /// Claims on their way.
    pub(crate) const fn out(&self) -> u32 {
        self.out
    }

    /// Somebody asks. `busy` says whether tasks are about.
    pub(crate) fn ask(&mut self, owner: GateOwner, ask: GateAsk, busy: bool) -> Asked {
        match ask {
            GateAsk::Try if self.is_open() && self.out == 0 && !busy => self.grant(owner),
            GateAsk::Wait if self.is_open() && !busy => {
                if self.out == 0 {
                    return self.grant(owner);
                }
                self.state = State::Waiting(owner);
                Asked::Later
            }
            GateAsk::Try | GateAsk::Wait => Asked::Answer(GateAnswer::Busy),
            GateAsk::Release => self.release(owner),
        }
    }

    fn grant(&mut self, owner: GateOwner) -> Asked {
        self.state = State::Held(UpdateBarrier::mint(owner));
        Asked::Answer(GateAnswer::Granted)
    }

    fn release(&mut self, owner: GateOwner) -> Asked {
        match &self.state {
            State::Held(UpdateBarrier { owner: holder, .. }) if *holder == owner => {
                self.state = State::Open;
                Asked::Done
            }
            // It does not wait any longer; what it asked for still gets its one answer.
            State::Waiting(waiting) if *waiting == owner => {
                self.state = State::Open;
                Asked::Answer(GateAnswer::Busy)
            }
            State::Open | State::Waiting(_) | State::Held(_) => Asked::Stray,
        }
    }

    /// What the one that waits gets, if it is time: at the end of each step, when what a claim brought has become a task.
    pub(crate) fn settle(&mut self, busy: bool) -> Option<(GateOwner, GateAnswer)> {
        let State::Waiting(owner) = self.state else { return None };
        if busy {
            self.state = State::Open;
            return Some((owner, GateAnswer::Busy));
        }
        if self.out > 0 {
            return None;
        }
        self.state = State::Held(UpdateBarrier::mint(owner));
        Some((owner, GateAnswer::Granted))
    }

    /// Lets nothing through any more, and gives nobody the gate. Returns who waits for it.
    pub(crate) fn close(&mut self) -> Option<GateOwner> {
        self.closed = true;
        let State::Waiting(owner) = self.state else { return None };
        self.state = State::Open;
        Some(owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Asked::{Answer, Done, Later, Stray};
    use GateAnswer::{Busy, Granted};
    use GateAsk::{Release, Try, Wait};
    use GateOwner::{Demotion, Reload, ServerUpdate};

    #[test]
    fn inv_134_a_closed_gate_lets_nothing_through() {
        let mut gate = ClaimGate::default();
        let pass = gate.enter().expect("open");
        assert_eq!(gate.close(), None);
        assert!(gate.enter().is_none());
        assert_eq!(gate.out(), 1, "a claim on its way is still counted");
        gate.exit(pass);
        assert_eq!(gate.out(), 0);
        assert_eq!(gate.ask(Reload, Try, false), Answer(Busy));
    }

    #[test]
    fn inv_47_one_holds_the_gate_and_only_it_can_release_it() {
        let mut gate = ClaimGate::default();
        assert_eq!(gate.ask(Reload, Try, true), Answer(Busy), "a task is about");
        assert_eq!(gate.ask(Reload, Try, false), Answer(Granted));
        assert_eq!(gate.ask(Demotion, Try, false), Answer(Busy));
        assert_eq!(gate.ask(Demotion, Wait, false), Answer(Busy));
        assert_eq!(gate.ask(Reload, Try, false), Answer(Busy), "not twice either");
        assert!(gate.enter().is_none());
        assert_eq!(gate.ask(Demotion, Release, false), Stray);
        assert_eq!(gate.ask(Reload, Release, false), Done);
        assert_eq!(gate.ask(Reload, Release, false), Stray);
        assert!(gate.enter().is_some());
    }

    #[test]
    fn inv_49_who_waits_gets_the_gate_when_the_claims_have_ended_empty() {
        let mut gate = ClaimGate::default();
        let pass = gate.enter().expect("open");
        assert_eq!(gate.ask(Reload, Try, false), Answer(Busy), "a claim is on its way");
        assert_eq!(gate.ask(ServerUpdate, Wait, false), Later);
        assert_eq!(gate.settle(false), None);
        assert!(gate.enter().is_none(), "no new claim");
        gate.exit(pass);
        assert_eq!(gate.settle(false), Some((ServerUpdate, Granted)));
        assert_eq!(gate.settle(true), None, "once");
        assert_eq!(gate.ask(ServerUpdate, Release, false), Done);

        let pass = gate.enter().expect("open");
        assert_eq!(gate.ask(ServerUpdate, Wait, false), Later);
        gate.exit(pass);
        assert_eq!(gate.settle(true), Some((ServerUpdate, Busy)), "it brought a task");
        let pass = gate.enter().expect("open again");
        assert_eq!(gate.ask(ServerUpdate, Wait, false), Later);
        assert_eq!(gate.ask(Reload, Release, false), Stray);
        assert_eq!(gate.ask(ServerUpdate, Release, false), Answer(Busy), "it gave up");
        assert_eq!(gate.ask(ServerUpdate, Wait, false), Later);
        assert_eq!(gate.close(), Some(ServerUpdate));
        gate.exit(pass);
        assert_eq!(gate.settle(false), None);
    }
}
