//! The end: everything works again, the daemon comes to rest, and then the server's rows are compared with what truly was.

use super::book::Claim;
use super::fault::{Fault, Faults};
use super::run::{Failure, FailureKind};
use super::world::{About, World};
use crate::effect::{EndReason, PhaseName, ReportKind, StopPhase};
use crate::event::{ClaimKey, Event, RunEnd};
use crate::id::{OpId, TaskId};
use crate::plane::{State, Task};
use crate::reason::FailReason;
use crate::script::{Input, Served};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// After everything works again, the daemon has this much virtual time to come to rest.
pub const BUDGET: Duration = Duration::from_hours(8);
/// So long it is watched at rest, in milliseconds: every runtime must be asked for, and beat.
const REST: u64 = 7 * 60_000;
/// What the server ends by itself this long after everything worked again and the daemon was back, somebody has left behind.
const SETTLED: u64 = 60_000;
/// Steps of the core until it rests, at most; a hot loop ends here.
const MOST_STEPS: u64 = 2_000_000;

/// The first thing that is not at rest; put into words only when it is shown, as it is asked for after each step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending(Still);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Still {
    Open(OpId, About),
    Down,
    Stopping(StopPhase),
    Task(ClaimKey, Option<PhaseName>),
    Late,
    Slots { free: u16, of: u16 },
    Agent(ClaimKey),
    Record(ClaimKey),
    Row { task: TaskId, state: State, deliveries: u32 },
}

impl std::fmt::Display for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Still::Open(op, about) => write!(f, "request {} is open: {about:?}", op.0),
            Still::Down => f.write_str("the daemon is down"),
            Still::Stopping(phase) => write!(f, "the daemon is stopping: {phase:?}"),
            Still::Task(claim, phase) => write!(f, "claim {} is in {phase:?}", claim.0),
            Still::Late => f.write_str("reports wait in the late outbox"),
            Still::Slots { free, of } => write!(f, "{free} of {of} slots are free"),
            Still::Agent(claim) => write!(f, "the agent of claim {} works", claim.0),
            Still::Record(claim) => write!(f, "claim {} is still written down", claim.0),
            Still::Row { task, state, deliveries } => {
                write!(f, "task {task} is {}, handed out {deliveries} times", state.as_str())
            }
        }
    }
}

/// When everything works again, a disk that hung has answered after so long.
const DISK_ANSWERS: u64 = 5_000;

impl World {
    /// Lets the world go wrong until its time or its steps are used up.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn safety(&mut self) -> Result<(), Box<Failure>> {
        self.safety_until(&|| false).map(drop)
    }

    /// The same, until `stop` says so, which is asked before each step. Returns whether it came to its end.
    pub(super) fn safety_until(&mut self, stop: &dyn Fn() -> bool) -> Result<bool, Box<Failure>> {
        let horizon = u64::try_from(self.cfg.horizon.as_millis()).unwrap_or(u64::MAX);
        while self.now < horizon && self.steps < self.cfg.steps {
            if stop() {
                return Ok(false);
            }
            if !self.step() {
                break;
            }
            self.fine()?;
        }
        Ok(true)
    }

    /// From now on nothing goes wrong, and nothing new is asked for. What is on its way arrives.
    pub fn heal(&mut self) {
        self.cfg.faults = Faults::NONE;
        self.weather = 0;
        self.healed_at = Some(self.now);
        self.log(|| "everything works again".into());
        self.settle_users();
        self.mend_clis();
        self.wake_agents();
        self.queue.disk_is_done_by(self.now + DISK_ANSWERS);
    }

    /// Holds the daemon to coming to rest, and the server's rows to the truth.
    ///
    /// # Errors
    /// The first rule that is broken, what does not come to rest, or what is not told as it was.
    pub fn liveness(&mut self) -> Result<(), Box<Failure>> {
        self.liveness_until(&|| false).map(drop)
    }

    /// The same, until `stop` says so, which is asked before each step. Returns whether it came to its end.
    pub(super) fn liveness_until(&mut self, stop: &dyn Fn() -> bool) -> Result<bool, Box<Failure>> {
        let deadline = self.now + u64::try_from(BUDGET.as_millis()).unwrap_or(u64::MAX);
        let most = self.steps + MOST_STEPS;
        // A runtime that has just come must be asked for too, and has to be given the time for it.
        let mut rest = None;
        loop {
            if stop() {
                return Ok(false);
            }
            if !self.step() {
                break;
            }
            self.fine()?;
            let set = self.life.as_ref().map(|life| life.daemon.view().runtime_set());
            let present = (self.lives, set);
            if let Some((then, since)) = rest
                && then == present
            {
                if self.now >= since + REST && self.pending().is_none() {
                    break;
                }
            } else if self.pending().is_none() {
                rest = Some((present, self.now));
                if let Some(rules) = self.life.as_mut().and_then(|life| life.rules.as_mut()) {
                    rules.at_rest();
                }
            }
            if self.now > deadline || self.steps > most {
                let pending =
                    self.pending().map_or_else(|| "it never stays at rest".into(), |it| it.to_string());
                return Err(self.failed(FailureKind::Liveness, "liveness", pending));
            }
        }
        if let Some(life) = &mut self.life
            && let Some(rules) = &mut life.rules
        {
            rules.finish(life.daemon.view(), true);
        }
        self.fine()?;
        self.judge();
        self.fine()?;
        if let Some(life) = &self.life {
            self.digest = self.digest.rotate_left(7) ^ life.daemon.digest();
        }
        Ok(true)
    }

    /// Whether nothing is broken so far.
    fn fine(&self) -> Result<(), Box<Failure>> {
        if let Some(violation) = self.life.as_ref().and_then(|life| life.rules.as_ref()?.violations().first())
        {
            return Err(self.failed(FailureKind::Rule, violation.rule, violation.story.clone()));
        }
        match &self.wrong {
            Some((rule, story)) => Err(self.failed(FailureKind::Truth, rule, story.clone())),
            None => Ok(()),
        }
    }

    pub(super) fn failed(&self, kind: FailureKind, rule: &str, story: String) -> Box<Failure> {
        let (seed, script, served) = self
            .life
            .as_ref()
            .map(|life| (life.seed, life.script.clone(), life.served.clone()))
            .unwrap_or_default();
        let served = by_line(&script, &served);
        Box::new(Failure {
            seed: self.cfg.seed,
            kind,
            rule: rule.into(),
            story,
            step: self.steps,
            life: self.lives,
            config: self.cfg.daemon.clone(),
            core_seed: seed,
            script,
            served,
            log: self.log.iter().cloned().collect(),
        })
    }

    /// The first thing that is not at rest; `None` if everything is.
    pub fn pending(&self) -> Option<Pending> {
        self.still().map(Pending)
    }

    fn still(&self) -> Option<Still> {
        if let Some((op, open)) = self.open.first_key_value() {
            return Some(Still::Open(*op, open.about));
        }
        let Some(life) = &self.life else { return Some(Still::Down) };
        let view = life.daemon.view();
        if view.stop_phase() != StopPhase::Serving {
            return Some(Still::Stopping(view.stop_phase()));
        }
        if let Some(task) = view.tasks().next() {
            return Some(Still::Task(task.claim, task.phase));
        }
        if view.has_late_reports() {
            return Some(Still::Late);
        }
        if view.free_slots() != view.total_slots() {
            return Some(Still::Slots { free: view.free_slots(), of: view.total_slots() });
        }
        if let Some(agent) = self.agents.iter().find(|agent| agent.alive) {
            return Some(Still::Agent(agent.claim));
        }
        if let Some(record) = self.ledger.iter().next() {
            return Some(Still::Record(record.claim()));
        }
        if self.plane.open_tasks() == 0 {
            return None;
        }
        let row = self.plane.tasks().find(|row| !row.state.is_terminal())?;
        Some(Still::Row { task: row.id.clone(), state: row.state, deliveries: row.deliveries })
    }

    /// Compares the server's rows with what truly was.
    fn judge(&mut self) {
        let mut claims: BTreeMap<TaskId, Vec<&Claim>> = BTreeMap::new();
        for claim in self.claims.values() {
            claims.entry(claim.offer.task.clone()).or_default().push(claim);
        }
        let mut wrong = None;
        for row in self.plane.tasks() {
            let theirs = claims.get(&row.id).map_or(&[][..], Vec::as_slice);
            let verdict = self.end_is_true(row, theirs).and_then(|()| self.transcript_is_true(row, theirs));
            if let Err(found) = verdict {
                wrong = Some(found);
                break;
            }
        }
        self.wrong = self.wrong.take().or(wrong);
    }

    /// Each task has exactly one accepted end, and it is the true one.
    fn end_is_true(&self, row: &Task, claims: &[&Claim]) -> Result<(), (&'static str, String)> {
        let taken: Vec<_> = claims.iter().filter_map(|claim| Some((*claim, claim.taken?))).collect();
        if taken.len() > 1 {
            return Err(("ONE-END", format!("the server took {} ends of task {}", taken.len(), row.id)));
        }
        if let Some((claim, kind)) = taken.first() {
            return told_truly(claim, *kind);
        }
        let name = |claim: &Claim| format!("claim {} of task {}", claim.offer.claim.0, row.id);
        let ended = row.ended_at.map_or(0, |at| at.mono.as_millis());
        for claim in claims.iter().filter(|claim| !claim.cut) {
            let late = self.healed_at.is_some_and(|healed| ended > healed.max(self.began) + SETTLED);
            if row.state == State::Failed && late {
                let why = row.failure_reason.as_deref().unwrap_or_default();
                return Err((
                    "STRANDED",
                    format!("{} was left to the server, which failed it: {why}", name(claim)),
                ));
            }
            if row.state == State::Cancelled && claim.run.is_some() && !claim.heard {
                return Err((
                    "ONE-END",
                    format!("{} ran, was cancelled, and its end was never told", name(claim)),
                ));
            }
        }
        Ok(())
    }

    /// Each message once, in order; all of them, once nothing is owed any more.
    fn transcript_is_true(&self, row: &Task, claims: &[&Claim]) -> Result<(), (&'static str, String)> {
        let said = self.plane.transcript(&row.id);
        // A server that cannot say which messages it has, or cannot know yet, may be sent one twice.
        if self.had(Fault::OldServer) || claims.iter().any(|claim| claim.late_post) {
            return Ok(());
        }
        if let Some(pair) = said.windows(2).find(|pair| pair[0].seq >= pair[1].seq) {
            let (first, second) = (pair[0].seq, pair[1].seq);
            return Err(("TRANSCRIPT", format!("task {}: message {second} comes after {first}", row.id)));
        }
        for claim in claims.iter().filter(|claim| claim.forgotten && !claim.cut) {
            let Some(outcome) = claim.outcome else { continue };
            let have = usize::try_from(outcome.have).unwrap_or(usize::MAX);
            if said.len() != have {
                let (key, count) = (claim.offer.claim.0, said.len());
                return Err(("TRANSCRIPT", format!("claim {key}: {count} messages of {have} are there")));
            }
        }
        Ok(())
    }

    const fn had(&self, fault: Fault) -> bool {
        self.had & fault.bit() != 0
    }
}

/// What the server did about the request that each line ends; of a repeated line the first counts.
fn by_line(script: &[Input], served: &BTreeMap<OpId, Served>) -> BTreeMap<usize, Served> {
    let mut ended = BTreeSet::new();
    let line = |(line, input): (usize, &Input)| match input {
        Input::Event { event: Event::Api { op, .. }, .. } if ended.insert(*op) => {
            Some((line, served.get(op).cloned().unwrap_or_default()))
        }
        _ => None,
    };
    script.iter().enumerate().filter_map(line).collect()
}

/// Whether a report says what the run came to.
fn told_truly(claim: &Claim, kind: ReportKind) -> Result<(), (&'static str, String)> {
    let end = claim.outcome.map(|outcome| outcome.end);
    let by_watchdog =
        matches!(claim.ending, Some(EndReason::Idle | EndReason::TooLong | EndReason::PrepareTimeout));
    let holds = match (kind, end) {
        (ReportKind::Complete, end) => end == Some(RunEnd::Completed),
        (ReportKind::Fail { .. }, Some(RunEnd::Completed)) => by_watchdog,
        (ReportKind::Fail { reason }, Some(RunEnd::Failed { reason: truth })) => {
            let ours = [FailReason::RuntimeOffline, FailReason::RuntimeRecovery];
            reason == truth || by_watchdog || ours.contains(&reason)
        }
        (ReportKind::Fail { .. }, None) | (ReportKind::CancelAck, _) => true,
    };
    if holds {
        return Ok(());
    }
    let key = claim.offer.claim.0;
    Err(("TRUE-END", format!("claim {key} was reported as {kind:?}; its run came to {end:?}")))
}
