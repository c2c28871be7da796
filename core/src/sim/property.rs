//! Single properties of a world, by name, looked up in the server's rows, the agents' processes and what is written down. Other than
//! [`World::liveness`], which is content with a world that goes wrong in any way, these are for worlds in which nothing but the daemon's own death
//! or the network may change what a task comes to.

use super::agents::Agent;
use super::book::Claim;
use super::world::World;
use crate::event::RunEnd;
use crate::plane::{State, Task};
use crate::reason::FailReason;

/// Something that must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Property {
    /// At rest: each task that was handed to the daemon has come to an end, by one report that the server took.
    OneTerminal,
    /// At any time: no work is done twice, not by a second run of a task and not by a retry while the run before it goes on.
    NoSecondRun,
    /// At any time: no agent works that the daemon does not follow while it is up. At rest: none works at all, and the server has no task that
    /// nobody is at, nor did it have to end one by itself.
    NoOrphan,
    /// At rest: what the server has as the end of a task is what its run came to.
    NoOutcomeLost,
    /// At rest: the server has each message of each run once, and in order.
    MessagesOnce,
}

impl World {
    /// Whether this holds now, in a world that has not come to rest.
    ///
    /// # Errors
    /// What is wrong, in one line.
    pub fn holds(&self, property: Property) -> Result<(), String> {
        match property {
            Property::NoSecondRun => self.no_second_run(false),
            Property::NoOrphan => self.no_orphan(),
            Property::OneTerminal | Property::NoOutcomeLost | Property::MessagesOnce => Ok(()),
        }
    }

    /// Whether this holds in a world that should have come to rest.
    ///
    /// # Errors
    /// What is wrong, in one line.
    pub fn holds_at_rest(&self, property: Property) -> Result<(), String> {
        self.holds(property)?;
        for row in self.plane.tasks().filter(|row| self.claims_of(row).next().is_some()) {
            match property {
                Property::OneTerminal => self.one_terminal(row)?,
                Property::NoSecondRun => return self.no_second_run(true),
                Property::NoOrphan => self.no_orphan_row(row)?,
                Property::NoOutcomeLost => self.no_outcome_lost(row)?,
                Property::MessagesOnce => self.messages_once(row)?,
            }
        }
        match self.agents.iter().find(|agent| agent.alive) {
            Some(agent) if property == Property::NoOrphan => {
                Err(format!("the agent of claim {} works at rest", agent.claim.0))
            }
            _ => Ok(()),
        }
    }

    /// How many runs there were, for a test that must not look at an empty world.
    pub fn runs(&self) -> usize {
        self.agents.iter().filter(|agent| agent.is_real()).count()
    }

    fn claims_of<'a>(&'a self, row: &'a Task) -> impl Iterator<Item = &'a Claim> {
        self.claims.values().filter(|claim| claim.offer.task == row.id)
    }

    fn one_terminal(&self, row: &Task) -> Result<(), String> {
        let ends = self.claims_of(row).filter(|claim| claim.taken.is_some()).count();
        if row.state.is_terminal() && (ends == 1 || ends == 0 && self.is_left_to_the_server(row)) {
            return Ok(());
        }
        Err(format!("task {} is {}, by {ends} reports", row.id, row.state.as_str()))
    }

    /// Whether the process that claimed it died before it had written that down: the next one says that it has nothing of it.
    fn is_left_to_the_server(&self, row: &Task) -> bool {
        self.claims_of(row).all(|claim| claim.cut)
            && row.failure_reason.as_deref() == Some(FailReason::RuntimeRecovery.as_str())
    }

    /// A run that goes on is looked at as long as it does; at rest, all of them.
    fn no_second_run(&self, at_rest: bool) -> Result<(), String> {
        let looked_at = |agent: &Agent| agent.did_work() && (agent.alive || at_rest);
        for (nth, agent) in self.agents.iter().enumerate().filter(|(_, agent)| looked_at(agent)) {
            let twin = self.agents[..nth].iter().find(|before| {
                before.did_work()
                    && (before.task == agent.task || before.alive && self.is_retry(agent, before))
            });
            if let Some(before) = twin {
                let (second, first) = (agent.claim.0, before.claim.0);
                return Err(format!("the run of claim {second} does what that of claim {first} did or does"));
            }
        }
        Ok(())
    }

    /// Whether a task is a retry of the other one's work, over any number of tries.
    fn is_retry(&self, of: &Agent, before: &Agent) -> bool {
        let mut task = Some(&of.task);
        while let Some(row) = task.and_then(|task| self.plane.task(task)) {
            task = row.parent.as_ref();
            if task == Some(&before.task) {
                return true;
            }
        }
        false
    }

    fn no_orphan(&self) -> Result<(), String> {
        if self.life.is_none() {
            return Ok(());
        }
        match self.agents.iter().find(|agent| agent.alive && agent.op.is_none()) {
            Some(agent) => Err(format!("nobody follows the agent of claim {}", agent.claim.0)),
            None => Ok(()),
        }
    }

    fn no_outcome_lost(&self, row: &Task) -> Result<(), String> {
        let ran = |claim: &&Claim| claim.outcome.is_some();
        let Some(outcome) = self.claims_of(row).filter(ran).find_map(|claim| claim.outcome) else {
            return Ok(());
        };
        let reason = row.failure_reason.as_deref();
        let told = match outcome.end {
            RunEnd::Completed => row.state == State::Completed,
            RunEnd::Failed { reason: truth } => {
                row.state == State::Failed
                    && [truth, FailReason::RuntimeRecovery].iter().any(|it| Some(it.as_str()) == reason)
            }
        };
        if told {
            return Ok(());
        }
        Err(format!(
            "the run of task {} came to {:?}; it is {}, {reason:?}",
            row.id,
            outcome.end,
            row.state.as_str()
        ))
    }

    fn messages_once(&self, row: &Task) -> Result<(), String> {
        // What was on its way when its sender died may arrive at any time, also after it was sent again.
        if self.claims_of(row).any(|claim| claim.late_post) {
            return Ok(());
        }
        let Some(outcome) = self.claims_of(row).find_map(|claim| claim.outcome) else { return Ok(()) };
        let said: Vec<u32> = self.plane.transcript(&row.id).iter().map(|it| it.seq.unsigned_abs()).collect();
        if said.iter().copied().eq(1..=outcome.have) {
            return Ok(());
        }
        Err(format!("the run of task {} said {} things; the server has {said:?}", row.id, outcome.have))
    }

    fn no_orphan_row(&self, row: &Task) -> Result<(), String> {
        let reported = self.claims_of(row).any(|claim| claim.taken.is_some());
        if row.state.is_terminal() && (reported || self.is_left_to_the_server(row)) {
            return Ok(());
        }
        let (state, reason) = (row.state.as_str(), row.failure_reason.as_deref());
        Err(format!("task {} is {state}, {reason:?}, and nobody was at it", row.id))
    }
}
