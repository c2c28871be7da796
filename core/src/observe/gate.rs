//! I10, INV-47 to 49: who holds the gate, and that each request for it gets one answer, which is right.

use super::{At, Found};
use crate::effect::GateAnswer;
use crate::event::{GateAsk, GateOwner};
use crate::said::Said;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Open,
    Waiting(GateOwner),
    Held(GateOwner),
}

impl Said for State {
    fn said(&self) -> String {
        match self {
            Self::Open => "free".to_owned(),
            Self::Waiting(owner) => format!("to be that of {}", owner.said()),
            Self::Held(owner) => format!("that of {}", owner.said()),
        }
    }
}

/// What is about: claims on their way, and tasks.
#[derive(Clone, Copy, Debug)]
pub(super) struct About {
    pub(super) claims: usize,
    pub(super) tasks: usize,
}

impl Said for About {
    fn said(&self) -> String {
        format!("claims are on their way ({}) or tasks are here ({})", self.claims, self.tasks)
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct GateBook {
    state: State,
    /// Asked in this step, and not answered yet.
    owed: Option<(GateOwner, GateAsk)>,
}

impl GateBook {
    /// Whether a claim may be sent.
    pub(super) fn is_open(&self) -> bool {
        self.state == State::Open && self.owed.is_none()
    }

    /// INV-48: who has the gate was told so. What the daemon does itself while nothing is about is over at the end of its step.
    pub(super) fn holds(&self, holder: Option<GateOwner>, found: &mut Found) {
        let told = if let State::Held(owner) = self.state { Some(owner) } else { None };
        found.require(told == holder, "INV-48", || {
            format!(
                "{holder} has the gate, and {told} was told so",
                holder = holder.said(),
                told = told.said()
            )
        });
    }

    pub(super) fn asked(&mut self, owner: GateOwner, ask: GateAsk) {
        match ask {
            GateAsk::Try | GateAsk::Wait => self.owed = Some((owner, ask)),
            GateAsk::Release if self.state == State::Held(owner) => self.state = State::Open,
            // Who gives up waiting is answered for what it asked before.
            GateAsk::Release if self.state == State::Waiting(owner) => {
                self.state = State::Open;
                self.owed = Some((owner, ask));
            }
            GateAsk::Release => {}
        }
    }

    /// Whether a release is not for this owner to ask for.
    pub(super) fn is_stray(&self, owner: GateOwner, ask: GateAsk) -> bool {
        ask == GateAsk::Release && self.state != State::Held(owner) && self.state != State::Waiting(owner)
    }

    pub(super) fn answered(
        &mut self,
        at: &At<'_>,
        (owner, answer): (GateOwner, GateAnswer),
        about: About,
        found: &mut Found,
    ) {
        let asked = self.owed.take_if(|(of, _)| *of == owner);
        let waited = asked.is_none() && self.state == State::Waiting(owner);
        found.require(asked.is_some() || waited, "INV-47", || {
            format!(
                "{owner} is told {answer} about the gate and asked for nothing",
                owner = owner.said(),
                answer = answer.said()
            )
        });
        let free = waited || self.state == State::Open;
        match answer {
            GateAnswer::Granted => {
                found.require(free && asked.is_none_or(|(_, ask)| ask != GateAsk::Release), "INV-47", || {
                    format!("{owner} gets the gate, which is {}", self.state.said(), owner = owner.said())
                });
                found.require(about.claims == 0 && about.tasks == 0 && !at.stopping, "I10", || {
                    format!(
                        "{owner} gets the gate although {about}, or in a stop",
                        owner = owner.said(),
                        about = about.said()
                    )
                });
                self.state = State::Held(owner);
            }
            GateAnswer::Busy => {
                let claims = about.claims > 0 && asked.is_some_and(|(_, ask)| ask == GateAsk::Try);
                let gave_up = asked.is_some_and(|(_, ask)| ask == GateAsk::Release);
                let why = !free || about.tasks > 0 || claims || gave_up || at.stopping;
                found.require(why, "INV-49", || {
                    format!("{owner} does not get the gate, which is free", owner = owner.said())
                });
                if waited {
                    self.state = State::Open;
                }
            }
        }
    }

    pub(super) fn settle(&mut self, claims: usize, found: &mut Found) {
        if let Some((owner, ask)) = self.owed.take() {
            let waits = ask == GateAsk::Wait && self.state == State::Open && claims > 0;
            found.require(waits, "GATE-ANSWER", || {
                format!("{owner} is not answered about the gate", owner = owner.said())
            });
            self.state = if waits { State::Waiting(owner) } else { self.state };
        }
        found.require(!matches!(self.state, State::Waiting(_)) || claims > 0, "INV-49", || {
            "no claim is on its way any more, and who waits for the gate is told nothing".into()
        });
    }
}
