//! Makes the records of a trace from the lines of a log.

use super::clock::Clocks;
use super::header::{header, settings};
use super::heard::Heard;
use super::process::Processes;
use super::said::Said;
use super::tasks::{About, Claims, provider, runtime};
use longshore_core::effect::{
    Effect, EndReason, Fact, Keep, PhaseName, ReportKind, RuntimeChange, StopPhase,
};
use longshore_core::event::{
    ApiReply, ClaimKey, Event, FsReply, Offer, Registered, RunEvent, RunOutcome, TaskStatus, WsEvent,
};
use longshore_core::id::{
    ConnGen, EnvRoot, Generation, OpId, Provider, RuntimeId, TaskId, WorkspaceId, is_safe_component,
};
use longshore_core::time::Now;
use longshore_core::trace::{End, Header, Note, Record, Step, StepNumber};
use std::collections::HashMap;

/// Gives the records of the trace that these lines tell to `take`, in order, one by one: all of them together would take several times the memory
/// of the log. At the beginning of the trace is a remark, which is made when all times were read. The lines are read twice: what an earlier
/// step needs may be said later. Returns whether they tell anything.
///
/// # Errors
/// Those of `take`.
pub(super) fn build<E>(
    lines: &[Heard],
    clocks: &Clocks,
    remark: impl FnOnce(&Clocks) -> String,
    take: impl FnMut(Record) -> Result<(), E>,
) -> Result<bool, E> {
    let (mut processes, mut claims) = (Processes::default(), Claims::default());
    let (mut said, mut headers): (Vec<Told>, Vec<Header>) = (Vec::with_capacity(lines.len()), Vec::new());
    let mut first = clocks.clone();
    for line in lines {
        let begins = processes.begins_with(line.said);
        if begins {
            claims.begin_anew();
            first.begin_anew();
        }
        let now = first.read(line.stamp);
        if begins {
            headers.push(header(headers.len() as u64, line, now));
        }
        if let (Some(Said::Settings), Some(header)) = (line.said, headers.last_mut()) {
            settings(header, line);
        }
        said.push(Told { begins, claim: claims.hear(line.said, line) });
    }
    if headers.is_empty() {
        return Ok(false);
    }
    let (about, remark) = (claims.finish(), remark(&first));
    let mut builder = Builder { about, headers: headers.into_iter(), life: None, remark: Some(remark), take };
    let mut clocks = clocks.clone();
    for (told, line) in said.into_iter().zip(lines) {
        if told.begins {
            clocks.begin_anew();
        }
        let now = clocks.read(line.stamp);
        builder.hear(told, line, now)?;
    }
    builder.end("the log ends")?;
    Ok(true)
}

/// What a line says, and of what.
#[derive(Clone, Copy, Debug)]
struct Told {
    /// Whether it is the first of a process.
    begins: bool,
    claim: Option<usize>,
}

/// One life, with what is on in it.
#[derive(Default)]
struct Life {
    /// Those that were not given away yet.
    records: Vec<Record>,
    n: StepNumber,
    ops: u64,
    set: u32,
    links: u32,
    runtimes: Vec<RuntimeId>,
    /// Of each claim that is here: the number of its run, and its highest message.
    runs: HashMap<usize, Run>,
}

#[derive(Clone, Copy, Default)]
struct Run {
    op: Option<OpId>,
    launched: bool,
    messages: u32,
}

struct Builder<T> {
    about: Vec<About>,
    /// Of the lives that have not begun.
    headers: std::vec::IntoIter<Header>,
    life: Option<Life>,
    /// Until it is made.
    remark: Option<String>,
    take: T,
}

impl Life {
    fn op(&mut self) -> OpId {
        self.ops += 1;
        OpId(self.ops)
    }

    fn step(&mut self, now: Now, event: Event, effects: Vec<Effect>) {
        self.n += 1;
        self.records.push(Record::Step(step(self.n, now, Some(event), effects)));
    }

    /// A step of which the log says only what came of it.
    fn facts(&mut self, now: Now, effects: Vec<Effect>) {
        self.step(now, Event::Tick, effects);
    }

    fn api(&mut self, now: Now, reply: ApiReply, effects: Vec<Effect>) {
        let op = self.op();
        self.step(now, Event::Api { op, r: Ok(reply) }, effects);
    }

    fn run(&mut self, claim: usize) -> &mut Run {
        self.runs.entry(claim).or_default()
    }

    /// The number of a claim's run.
    fn run_op(&mut self, claim: usize) -> OpId {
        if let Some(op) = self.run(claim).op {
            return op;
        }
        let op = self.op();
        self.run(claim).op = Some(op);
        op
    }

    fn launched(&mut self, now: Now, claim: usize) {
        if !std::mem::replace(&mut self.run(claim).launched, true) {
            let op = self.run_op(claim);
            self.step(
                now,
                Event::Run { op, run: RunEvent::Launched },
                vec![phase(claim, PhaseName::Running)],
            );
        }
    }
}

impl<E, T: FnMut(Record) -> Result<(), E>> Builder<T> {
    fn hear(&mut self, Told { begins, claim }: Told, line: &Heard, now: Now) -> Result<(), E> {
        let Some(said) = line.said.filter(|said| *said != Said::Background) else { return Ok(()) };
        if begins {
            self.begin(now)?;
        }
        let Some(life) = &mut self.life else { return Ok(()) };
        match (said, claim) {
            (Said::Ready, _) => life.facts(now, vec![Effect::Fact { fact: Fact::Ready }]),
            (Said::Runtime, _) => add_runtime(life, line, now),
            (Said::LinkUp, _) => {
                life.links += 1;
                life.step(now, Event::Ws { conn: ConnGen(life.links), ws: WsEvent::Up }, Vec::new());
            }
            (Said::Hint, _) => {
                let task = line.get("task_id").filter(|id| is_safe_component(id)).map(TaskId::new);
                let ws = WsEvent::TaskAvailable { runtime: runtime(line), task };
                life.step(now, Event::Ws { conn: ConnGen(life.links), ws }, Vec::new());
            }
            (Said::Stopping, _) => {
                let fact = Fact::Stopping { phase: StopPhase::Tasks };
                life.step(now, Event::stop(), vec![Effect::Fact { fact }]);
            }
            (Said::Deregistered, _) => {
                let gone: Vec<RuntimeId> = life.runtimes.drain(..).collect();
                let changes =
                    gone.into_iter().map(|gone| change(life, gone, RuntimeChange::Removed)).collect();
                life.api(now, ApiReply::Done, changes);
            }
            (_, Some(claim)) => task(life, said, line, now, (claim, &self.about[claim])),
            // A line about a task that does not say which.
            _ => {}
        }
        life.records.drain(..).try_for_each(&mut self.take)
    }

    /// Ends the life before, and begins the next one.
    fn begin(&mut self, now: Now) -> Result<(), E> {
        self.end("another process began")?;
        let Some(header) = self.headers.next() else { return Ok(()) };
        let is_whole = header.from.is_none();
        (self.take)(Record::Header(Box::new(header)))?;
        if is_whole {
            (self.take)(Record::Step(step(0, now, None, Vec::new())))?;
        }
        if let Some(text) = self.remark.take() {
            (self.take)(Record::Note(Note { n: 0, text }))?;
        }
        self.life = Some(Life::default());
        Ok(())
    }

    /// Ends the life, if there is one.
    fn end(&mut self, why: &str) -> Result<(), E> {
        match self.life.take() {
            Some(life) => (self.take)(Record::End(End { n: life.n, why: why.to_owned() })),
            None => Ok(()),
        }
    }
}

/// A line about a task.
fn task(life: &mut Life, said: Said, line: &Heard, now: Now, (claim, about): (usize, &About)) {
    if !about.received && !life.runs.contains_key(&claim) {
        let text = format!("claim {} is task {}: the log does not say when it came", claim + 1, about.task);
        life.records.push(Record::Note(Note { n: life.n, text }));
    }
    let key = key(claim);
    // From here on it is known to be here.
    life.run(claim);
    match said {
        Said::Received => {
            let offers = vec![offer(key, about)];
            life.api(now, ApiReply::Claimed { offers, unusable: 0 }, Vec::new());
        }
        Said::Picked => life.facts(now, vec![phase(claim, PhaseName::Preparing)]),
        Said::Prepared => {
            let op = life.op();
            let effects = vec![phase(claim, PhaseName::Starting)];
            match about.root.clone() {
                Some(root) => life.step(now, Event::Fs { op, r: Ok(FsReply::Prepared { root }) }, effects),
                None => life.facts(now, effects),
            }
        }
        Said::Launched | Said::Reading => life.launched(now, claim),
        Said::Spoke => {
            let (op, have) = (life.run_op(claim), life.run(claim).messages);
            life.step(
                now,
                Event::Run { op, run: RunEvent::Progress { have, session: false, tools: 0 } },
                Vec::new(),
            );
        }
        Said::Sent => {
            let messages = &mut life.run(claim).messages;
            *messages = line.number("last_seq").unwrap_or(0).max(*messages);
            life.api(now, ApiReply::Done, Vec::new());
        }
        Said::Finished => {
            let (op, have) = (life.run_op(claim), life.run(claim).messages);
            let outcome = RunOutcome { end: about.end(), have, usage: about.usage, resume_rejected: false };
            let effects = vec![phase(claim, PhaseName::Settling)];
            life.step(now, Event::Run { op, run: RunEvent::Ended { outcome } }, effects);
        }
        Said::Completed => {
            let mut effects = vec![keep(life, claim, about, Some(ReportKind::Complete))];
            effects.extend(reported(claim, ReportKind::Complete));
            life.api(now, ApiReply::Done, effects);
        }
        Said::Failing => {
            let report = ReportKind::Fail { reason: about.reason() };
            let mut effects =
                vec![keep(life, claim, about, Some(report)), phase(claim, PhaseName::Reporting)];
            if !about.report_in_doubt {
                effects.extend(reported(claim, report));
            }
            life.facts(now, effects);
        }
        Said::EndedByServer => {
            let fact = Fact::Ending { claim: key, why: EndReason::Server };
            let word = line.get("status").map(str::to_owned).map(serde_json::Value::from);
            let status = word.and_then(|word| serde_json::from_value(word).ok()).unwrap_or(TaskStatus::Other);
            life.api(now, ApiReply::Task { status }, vec![Effect::Fact { fact }]);
        }
        Said::Discarded => {
            let mut effects = vec![keep(life, claim, about, None)];
            effects.extend(over(claim));
            life.facts(now, effects);
        }
        _ => {}
    }
}

fn add_runtime(life: &mut Life, line: &Heard, now: Now) {
    let Some(id) = runtime(line) else { return };
    let provider = provider(line).unwrap_or_else(|| Provider::new(""));
    let workspace = line.get("workspace_id").filter(|id| is_safe_component(id)).unwrap_or_default();
    let added = RuntimeChange::Added {
        workspace: WorkspaceId::new(workspace),
        provider: provider.clone(),
        profile: None,
    };
    if !life.runtimes.contains(&id) {
        life.runtimes.push(id.clone());
    }
    let effects = vec![change(life, id.clone(), added)];
    life.api(
        now,
        ApiReply::Registered { runtimes: vec![Registered { id, provider, profile: None }] },
        effects,
    );
}

fn change(life: &mut Life, runtime: RuntimeId, change: RuntimeChange) -> Effect {
    life.set += 1;
    Effect::Runtime { set: Generation(life.set), runtime, change }
}

/// What is not known of it is empty.
fn offer(claim: ClaimKey, about: &About) -> Offer {
    Offer {
        claim,
        task: TaskId::new(about.task.as_str()),
        runtime: about.runtime.clone().unwrap_or_else(|| RuntimeId::new("")),
        root: about.root.clone().unwrap_or_else(|| EnvRoot::new("")),
        prior: None,
        fault: None,
        in_place: false,
    }
}

fn keep(life: &mut Life, claim: usize, about: &About, report: Option<ReportKind>) -> Effect {
    let run = *life.run(claim);
    let entry = Keep::Ended { report, have: run.messages, usage: about.usage, ran: run.launched, path: None };
    Effect::Keep { claim: key(claim), entry }
}

/// The log does not count tries: that it was taken is all that it says.
fn reported(claim: usize, report: ReportKind) -> impl Iterator<Item = Effect> {
    let fact = Fact::Reported { claim: key(claim), report, tries: 1 };
    std::iter::once(Effect::Fact { fact }).chain(over(claim))
}

/// Nothing comes after it. Which slot it had is not told.
fn over(claim: usize) -> [Effect; 2] {
    let claim = key(claim);
    [Effect::Fact { fact: Fact::Released { claim, slot: None } }, Effect::Forget { claim }]
}

fn phase(claim: usize, phase: PhaseName) -> Effect {
    Effect::Fact { fact: Fact::Phase { claim: key(claim), phase } }
}

fn key(claim: usize) -> ClaimKey {
    ClaimKey(claim as u64 + 1)
}

const fn step(n: StepNumber, now: Now, event: Option<Event>, effects: Vec<Effect>) -> Step {
    Step { n, mono: now.mono, wall: now.wall, slept: now.slept, event, effects: Some(effects) }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::convert::Infallible;

    /// All records, without a remark.
    pub(in crate::trace::import) fn all(lines: &[Heard], clocks: &Clocks) -> Vec<Record> {
        let mut records = Vec::new();
        let take = |record| {
            records.push(record);
            Ok::<(), Infallible>(())
        };
        let Ok(told) = build(lines, clocks, |_| String::new(), take);
        assert_eq!(told, !records.is_empty());
        records
    }
}
