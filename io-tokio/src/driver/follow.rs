//! Reading a run to its end: what the agent writes goes through its codec into the outbox, and the core hears that there is something.

use super::host::Host;
use super::silence;
use crate::book::{Entry, Stream};
use crate::supervise::record::{self, ExitRecord};
use crate::supervise::{Position, Run, RunEvent as ProcessEvent};
use longshore_core::codec::message::Output;
use longshore_core::codec::outcome::{EndedBy, Exit, Outcome, Status};
use longshore_core::codec::{Codec, Family, retry};
use longshore_core::effect::{EndReason, KillStep};
use longshore_core::event::{Event, RunEvent};
use longshore_core::id::OpId;
use longshore_core::reason::FailReason;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// So many bytes of output are read at most before where reading stands is written down, and their space given back. A sixteenth of what
/// the agent may be ahead.
const UNWRITTEN: u64 = crate::supervise::DEFAULT_SPOOL_BUDGET / 16;
/// What the disk did not take is tried again so much later.
const AGAIN: Duration = Duration::from_secs(1);

/// What there was in one read.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    /// A message.
    spoke: bool,
    /// A session that was not known.
    named: bool,
    /// The word that the agent is done.
    result: bool,
}

/// Follows one run.
pub(super) struct Follower<'a> {
    host: &'a Arc<Host>,
    entry: &'a Arc<Entry>,
    op: OpId,
    family: Family,
    /// Whether an earlier process launched it.
    taken_over: bool,
    /// When where reading stands is to be written down again.
    again_at: Option<Instant>,
    outputs: Vec<Output>,
}

impl<'a> Follower<'a> {
    pub(super) fn new(
        host: &'a Arc<Host>,
        entry: &'a Arc<Entry>,
        op: OpId,
        family: Family,
        taken_over: bool,
    ) -> Self {
        Self { host, entry, op, family, taken_over, again_at: None, outputs: Vec::new() }
    }

    /// Reads it to its end. Gives what it came to, and whether it is to be tried afresh, without the session that it was to go on with. Gives
    /// nothing if this process is over while there is no room for the rest of the output: then it waits for the agent's end alone, and the
    /// next process reads on.
    pub(super) async fn follow(
        mut self,
        mut run: Run,
        steps: &mut mpsc::UnboundedReceiver<KillStep>,
    ) -> Option<(Outcome, bool)> {
        let mut ended_by = EndedBy::Itself;
        let mut durable = self.entry.durable();
        let record = loop {
            // The agent waits while the server has too much of it to take yet: nothing is dropped.
            let room = self.entry.outbox.has_room();
            tokio::select! {
                biased;
                Some(step) = steps.recv() => match step {
                    KillStep::CloseInput => run.close_stdin(),
                    KillStep::End { grace_ms } => {
                        ended_by = self.ended_by();
                        run.end(Duration::from_millis(u64::from(grace_ms)));
                    }
                    _ => {
                        ended_by = self.ended_by();
                        run.kill();
                    }
                },
                // The sender lives as long as the entry.
                Ok(()) = durable.changed() => {
                    let upto = *durable.borrow_and_update();
                    run.acknowledge(upto);
                }
                event = run.next(), if room => match event {
                    ProcessEvent::Stdout(bytes) => {
                        let heard = self.read(&mut run, |stream, outputs| stream.stdout(&bytes, outputs));
                        self.pass_on(heard).await;
                        self.write_down_if_much().await;
                    }
                    ProcessEvent::Stderr(bytes) => {
                        self.read(&mut run, |stream, _| stream.stderr(&bytes));
                        self.write_down_if_much().await;
                    }
                    ProcessEvent::Ended(record) => break record,
                },
                () = self.entry.outbox.room(), if !room => {}
                // Nobody makes room any more.
                () = self.host.over.cancelled(), if !room => {
                    while !matches!(run.next().await, ProcessEvent::Ended(_)) {}
                    tracing::info!(task = %self.entry.id, "the agent has ended; what it said and the server does not have is left to the next daemon");
                    return None;
                }
                // It is not silent: it is not listened to.
                () = silence::before_it_counts(&self.host.timing), if !room => self.tell(false).await,
                () = sleep_until(self.again_at.unwrap_or_else(Instant::now)), if self.again_at.is_some() => {
                    self.write_down().await;
                }
            }
        };
        let heard = self.read(&mut run, |stream, outputs| stream.codec.stdout_end(outputs));
        self.pass_on(heard).await;
        log_end(self.entry, &record);
        if ended_by == EndedBy::Itself {
            ended_by = self.ended_before(&record);
        }
        let exit = Exit { code: record.code, signal: record.signal };
        let mut stream = self.entry.stream();
        let Some(stream) = stream.as_mut() else {
            let lost = "the state of the run was lost; this is a bug".to_owned();
            return Some((Outcome::failed(Status::Failed, FailReason::Unknown, lost), false));
        };
        // A copy reads the last word: where reading stands is still to be written down.
        let outcome = stream.codec.clone().finish(exit, ended_by);
        let fresh = stream.resumed && retry::wants_fresh_session(&outcome, self.family.rejection_signs());
        Some((outcome, fresh))
    }

    /// Takes what a codec makes of some output. All at once as far as others see it: what is written down meanwhile is the state before
    /// or the state after, with the messages that came of it, and with no question that is read and not answered.
    fn read(&mut self, run: &mut Run, with: impl FnOnce(&mut Stream, &mut Vec<Output>)) -> Heard {
        let mut heard = Heard::default();
        let mut stream = self.entry.stream();
        let Some(stream) = stream.as_mut() else { return heard };
        with(stream, &mut self.outputs);
        let joint = if self.family.speaks_in_blocks() { "\n\n" } else { "" };
        for output in self.outputs.drain(..) {
            match output {
                Output::Message(message) => {
                    heard.spoke = true;
                    stream.tools.note(&message);
                    self.entry.outbox.push(message, joint);
                }
                Output::Session(session) => {
                    heard.named |= stream.session.as_ref() != Some(&session);
                    self.entry.ending().session = Some(session.clone());
                    stream.session = Some(session);
                }
                Output::Write(line) => {
                    if let Err(error) = run.write_stdin(line.as_bytes()) {
                        tracing::debug!(task = %self.entry.id, "an answer did not reach the agent: {error}");
                    }
                }
                Output::Result => heard.result |= !std::mem::replace(&mut stream.result, true),
                Output::Log { level, text } => tracing::debug!(task = %self.entry.id, ?level, "{text}"),
            }
        }
        heard
    }

    /// The core hears of a read once, and only if there was something in it: pings, logs and questions are no sign that the agent gets on.
    async fn pass_on(&self, heard: Heard) {
        if heard.spoke || heard.named {
            self.tell(heard.named).await;
        }
        if heard.result {
            self.host.tell(Event::Run { op: self.op, run: RunEvent::Result }).await;
        }
    }

    /// Why the agent was told to end.
    fn ended_by(&self) -> EndedBy {
        let (result, in_tool) = {
            let stream = self.entry.stream();
            let known = stream.as_ref();
            (known.is_some_and(|it| it.result), known.is_some_and(|it| it.tools.at_work() > 0))
        };
        let mut ending = self.entry.ending();
        if result {
            return EndedBy::AfterResult;
        }
        let (by, hint) = match ending.why {
            Some(EndReason::Idle) => silence::idle(&self.host.timing, &self.entry.provider, in_tool),
            Some(EndReason::TooLong) => silence::too_long(&self.host.timing),
            _ => return EndedBy::Shutdown,
        };
        ending.hint = Some(hint);
        by
    }

    /// Who ended a run that this process did not end.
    fn ended_before(&self, record: &ExitRecord) -> EndedBy {
        match record.ended_by {
            record::EndedBy::SupervisorLost => EndedBy::Lost,
            // An earlier process did, for a reason that it wrote down.
            record::EndedBy::Cancel | record::EndedBy::Kill if self.taken_over => self.ended_by(),
            _ => EndedBy::Itself,
        }
    }

    /// Says all that is known of a run that was taken over, as the core of this process knows nothing of it.
    pub(super) async fn tell_all(&self) {
        let (session, result) = {
            let stream = self.entry.stream();
            let known = stream.as_ref();
            (known.is_some_and(|it| it.session.is_some()), known.is_some_and(|it| it.result))
        };
        self.tell(session).await;
        if result {
            self.host.tell(Event::Run { op: self.op, run: RunEvent::Result }).await;
        }
    }

    /// Tells the core of a sign of life.
    async fn tell(&self, session: bool) {
        let have = self.entry.outbox.last();
        let tools = self.entry.stream().as_ref().map_or(0, |stream| stream.tools.at_work());
        self.host.tell(Event::Run { op: self.op, run: RunEvent::Progress { have, session, tools } }).await;
    }

    /// An agent that writes a lot of what is no message must not wait for room in its spool.
    async fn write_down_if_much(&mut self) {
        let read = self.entry.stream().as_ref().map(Stream::position).unwrap_or_default();
        let Position { stdout, stderr } = *self.entry.durable().borrow();
        let much = read.stdout.saturating_sub(stdout).max(read.stderr.saturating_sub(stderr)) >= UNWRITTEN;
        if much && self.again_at.is_none() {
            self.write_down().await;
        }
    }

    async fn write_down(&mut self) {
        self.again_at = match self.entry.write_down().await {
            Ok(()) => None,
            Err(error) => {
                tracing::warn!(task = %self.entry.id, %error, "the agent's output could not be written down; the agent may have to wait");
                Some(Instant::now() + AGAIN)
            }
        };
    }
}

fn log_end(entry: &Entry, record: &ExitRecord) {
    tracing::info!(task = %entry.id, code = record.code, signal = record.signal, "agent ended");
    if !record.leftovers.is_empty() {
        tracing::warn!(task = %entry.id, leftovers = ?record.leftovers, "processes that the agent left behind were ended");
    }
    if !record.unkilled.is_empty() {
        tracing::error!(task = %entry.id, processes = ?record.unkilled, "processes of the agent cannot be killed");
    }
    if record.lost_output > 0 {
        tracing::error!(task = %entry.id, bytes = record.lost_output, "output of the agent was lost: is the disk full?");
    }
    if let Some(note) = &record.note {
        tracing::warn!(task = %entry.id, "{note}");
    }
}
