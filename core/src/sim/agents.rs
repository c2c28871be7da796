//! The agents' processes, each with a supervisor that outlives the daemon.

use super::fault::Fault;
use super::marks::Mark;
use super::queue::What;
use super::world::{About, Open, World};
use crate::effect::{KillStep, LaunchCall};
use crate::event::{ClaimKey, Event, RunEnd, RunEvent, RunOutcome};
use crate::id::{OpId, TaskId};
use crate::plane::State;
use crate::reason::FailReason;
use crate::script::Choose;

/// A silent agent ends by itself after this long, if nobody ends it.
const SILENCE: u64 = 45 * 60_000;

/// One run.
#[derive(Debug)]
pub(super) struct Agent {
    pub(super) claim: ClaimKey,
    pub(super) task: TaskId,
    /// Who follows it, in this life of the daemon.
    pub(super) op: Option<OpId>,
    pub(super) alive: bool,
    /// There was a process: one that was only written down has none.
    real: bool,
    /// It was made to end.
    pub(super) killed: bool,
    /// How it ended, once it has.
    pub(super) outcome: Option<RunOutcome>,
    said: u32,
    session: bool,
    tools: u32,
    /// Times that it will still say something.
    left: u32,
    /// What it will come to if nobody ends it.
    end: RunEnd,
    /// Whether it says what it came to before it ends.
    speaks: bool,
    /// It has said what it came to.
    answered: bool,
    stubborn: bool,
    rejects: bool,
    usage: bool,
    /// When the last event of it is told: none overtakes another.
    last: u64,
}

impl Agent {
    /// Whether there ever was a process.
    pub(super) const fn is_real(&self) -> bool {
        self.real
    }

    /// Whether it did, or does, what its task is about: one that refuses its session at once is followed by another.
    pub(super) const fn did_work(&self) -> bool {
        self.real && !self.rejects
    }
}

impl World {
    pub(super) fn run_agent(&mut self, op: OpId, call: &LaunchCall) {
        let key = call.claim();
        let Some(claim) = self.claims.get(&key) else { return };
        let task = claim.offer.task.clone();
        if call.attached().is_some() {
            self.attach(op, key, task);
            return;
        }
        let path = claim.path.clone();
        let resumes = claim.offer.prior.is_some() && !call.fresh();
        let twin =
            self.agents.iter().find(|agent| agent.alive && agent.task == task).map(|agent| agent.claim.0);
        self.require(twin.is_none(), "ONE-AGENT", || {
            format!(
                "an agent of claim {} is started while one of claim {:?} works on the same task",
                key.0, twin
            )
        });
        let neighbour = self.agents.iter().find(|agent| {
            let theirs = self.claims.get(&agent.claim).and_then(|claim| claim.path.as_ref());
            agent.alive && path.is_some() && theirs == path.as_ref()
        });
        let neighbour = neighbour.map(|agent| agent.claim.0);
        self.require(neighbour.is_none(), "ONE-DIRECTORY", || {
            format!("claims {} and {neighbour:?} work in the same directory of the user", key.0)
        });
        let nth = self.agents.len();
        let agent = self.new_agent(op, key, task, resumes);
        self.agents.push(agent);
        self.claims.entry(key).and_modify(|claim| (claim.run, claim.outcome) = (Some(nth), None));
        self.open.insert(op, Open { about: About::Run(nth), unsent: false, cancelled: false });
        if self.hit(Fault::SpawnFails) {
            self.agents[nth].end = RunEnd::Failed { reason: FailReason::MissingExecutable };
            self.agents[nth].speaks = false;
            self.queue.push(self.now + 5, What::AgentEnds(nth));
            return;
        }
        self.tell(nth, RunEvent::Launched);
        let silent = self.hit(Fault::Silent);
        let first = if silent { SILENCE } else { 20 + self.below(500) };
        self.queue.push(self.now + first, What::Agent(nth));
    }

    fn new_agent(&mut self, op: OpId, claim: ClaimKey, task: TaskId, resumes: bool) -> Agent {
        let rejects = resumes && self.hit(Fault::ResumeRejected);
        let instant = self.hit(Fault::InstantExit);
        let fails = self.hit(Fault::AgentFails);
        let reason = [
            FailReason::ProviderNetwork,
            FailReason::ProcessFailure,
            FailReason::ProviderAuth,
            FailReason::Timeout,
        ][self.chance.below(4) as usize];
        let failed = RunEnd::Failed { reason };
        let end = if rejects || instant || fails { failed } else { RunEnd::Completed };
        let says = self.cfg.load.says;
        let left = if rejects || instant { 0 } else { 1 + self.chance.below(says) };
        Agent {
            claim,
            task,
            op: Some(op),
            alive: true,
            real: true,
            killed: false,
            outcome: None,
            said: 0,
            session: false,
            tools: 0,
            left,
            end,
            speaks: !(rejects || instant),
            answered: false,
            stubborn: self.hit(Fault::Stubborn),
            rejects,
            usage: self.chance.one_in(2),
            last: self.now,
        }
    }

    /// The daemon follows a run again that an earlier process of it launched.
    fn attach(&mut self, op: OpId, key: ClaimKey, task: TaskId) {
        let nth = self.claims.get(&key).and_then(|claim| claim.run);
        let nth = nth.unwrap_or_else(|| {
            // It was written down as launched, and the process ended before it was.
            let nth = self.agents.len();
            let mut agent = self.new_agent(op, key, task, false);
            (agent.alive, agent.real) = (false, false);
            let end = RunEnd::Failed { reason: FailReason::RuntimeRecovery };
            agent.outcome = Some(RunOutcome { end, have: 0, usage: false, resume_rejected: false });
            self.agents.push(agent);
            self.claims.entry(key).and_modify(|claim| claim.run = Some(nth));
            nth
        });
        let now = self.now;
        let agent = &mut self.agents[nth];
        (agent.op, agent.last) = (Some(op), now);
        let (said, session, tools, answered, outcome) =
            (agent.said, agent.session, agent.tools, agent.answered, agent.outcome);
        let outcome = outcome.filter(|_| !agent.alive);
        self.open.insert(op, Open { about: About::Run(nth), unsent: false, cancelled: false });
        self.tell(nth, RunEvent::Launched);
        if said > 0 {
            self.tell(nth, RunEvent::Progress { have: said, session, tools });
        }
        if answered {
            self.tell(nth, RunEvent::Result);
        }
        match outcome {
            Some(outcome) => {
                self.marks.hit(Mark::EndedUnseen);
                self.tell(nth, RunEvent::Ended { outcome });
            }
            None => self.marks.hit(Mark::Attached),
        }
        self.claims.entry(key).and_modify(|claim| claim.outcome = outcome);
    }

    /// Tells who follows a run, in order.
    fn tell(&mut self, nth: usize, run: RunEvent) {
        let way = self.below(4);
        let (now, life) = (self.now, self.lives);
        let agent = &mut self.agents[nth];
        let Some(op) = agent.op else { return };
        agent.last = agent.last.max(now + way);
        let ended = matches!(run, RunEvent::Ended { .. });
        let event = Event::Run { op, run };
        let what = if ended { What::Done { life, op, event } } else { What::Tell { life, event } };
        self.queue.push(agent.last, what);
    }

    /// An agent says something, says what it came to, or ends.
    pub(super) fn agent_goes_on(&mut self, nth: usize) {
        if !self.agents[nth].alive {
            return;
        }
        let more = 1 + self.chance.below(3);
        let tools = self.chance.below(3);
        let pause = u64::from(self.cfg.load.run / self.cfg.load.says.max(1)).max(1);
        let pause = self.below(2 * u32::try_from(pause).unwrap_or(1) + 1);
        let grace = self.below(2_500);
        let agent = &mut self.agents[nth];
        if agent.left > 0 {
            agent.left -= 1;
            agent.said += more;
            (agent.session, agent.tools) = (true, tools);
            let have = agent.said;
            self.tell(nth, RunEvent::Progress { have, session: true, tools });
            self.queue.push(self.now + pause, What::Agent(nth));
        } else if agent.speaks && !agent.answered {
            agent.answered = true;
            let end = if agent.stubborn { 60_000 } else { grace };
            self.tell(nth, RunEvent::Result);
            self.queue.push(self.now + end, What::AgentEnds(nth));
        } else {
            self.agent_ends(nth);
        }
    }

    /// The last process of a run is gone.
    pub(super) fn agent_ends(&mut self, nth: usize) {
        let agent = &mut self.agents[nth];
        if !std::mem::replace(&mut agent.alive, false) {
            return;
        }
        let end = match agent.end {
            end if agent.answered => end,
            _ if agent.killed => RunEnd::Failed { reason: FailReason::Cancelled },
            // It had something to say and did not come to it.
            _ if agent.speaks => RunEnd::Failed { reason: FailReason::ProcessFailure },
            end => end,
        };
        let outcome =
            RunOutcome { end, have: agent.said, usage: agent.usage, resume_rejected: agent.rejects };
        agent.outcome = Some(outcome);
        let (key, followed) = (agent.claim, agent.op.is_some());
        if let Some(claim) = self.claims.get_mut(&key) {
            claim.outcome = Some(outcome);
            let row = self.plane.task(&claim.offer.task);
            if row.is_some_and(|row| row.state == State::Cancelled) {
                self.marks.hit(Mark::CancelledAtWork);
            }
        }
        if followed {
            self.tell(nth, RunEvent::Ended { outcome });
        }
    }

    pub(super) fn kill(&mut self, op: OpId, step: KillStep) {
        let Some(Open { about: About::Run(nth), .. }) = self.open.get(&op) else { return };
        let nth = *nth;
        if self.hit(Fault::ExitInKill) {
            self.agent_ends(nth);
            return;
        }
        let soon = self.below(1_000);
        let agent = &mut self.agents[nth];
        let wait = match step {
            KillStep::CloseInput if agent.stubborn || !agent.answered => return,
            KillStep::CloseInput => soon,
            KillStep::End { grace_ms } => {
                agent.killed = true;
                if agent.stubborn { u64::from(grace_ms) + 50 } else { soon.min(u64::from(grace_ms)) }
            }
            KillStep::Kill => {
                agent.killed = true;
                20
            }
        };
        self.queue.push(self.now + wait, What::AgentEnds(nth));
    }

    /// Everything works again: who has been silent comes to an end.
    pub(super) fn wake_agents(&mut self) {
        for nth in 0..self.agents.len() {
            if self.agents[nth].alive {
                let at = self.now + 1 + self.below(60_000);
                self.queue.push(at, What::Agent(nth));
            }
        }
    }
}
