//! What the handlers, the control channels and the operator share.

use super::access::{Caller, Tokens};
use super::content::Content;
use super::database::{CLOCK, Change, TOKENS, Table, Unwritten, Writer, write_content};
use super::faults::Fault;
use super::links::Links;
use super::log::{Answer, Arrival, Log};
use super::pending::Results;
use super::restored::Restored;
use super::skills::Skill;
use crate::secret::Secret;
use longshore_core::plane::{Payload, Plane, Text};
use longshore_core::time::{Instant, Now, UnixMillis};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::Notify;

/// Texts beyond those of twice the remembered tasks are looked through and dropped.
const SPARE_CONTENTS: usize = 256;

/// What the server can be told not to have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Switches {
    pub(super) batch_claim: bool,
    pub(super) websocket: bool,
    pub(super) rpc: bool,
    /// Whether tasks that want a worktree are kept from daemons that do not say that they can.
    pub(super) worktree_gate: bool,
}

pub(super) struct Shared {
    pub(super) token: Secret,
    pub(super) ping_every: Duration,
    started: tokio::time::Instant,
    /// Told after everything that a waiter could look for.
    pub(super) changed: Notify,
    inner: Mutex<Inner>,
}

pub(super) struct Inner {
    pub(super) plane: Plane,
    pub(super) log: Log,
    pub(super) links: Links,
    pub(super) switches: Switches,
    pub(super) tokens: Tokens,
    /// What the agents' skills are.
    skills: BTreeMap<Text, Arc<Vec<Skill>>>,
    pub(super) results: Results,
    contents: BTreeMap<Payload, Arc<Content>>,
    next_payload: u64,
    faults: Vec<Fault>,
    /// How far the plane's clock is ahead of the time since the start.
    skew: Duration,
    /// How far the wall clock was moved on.
    wall_skew: Duration,
    writer: Option<Writer>,
    /// Changes beside the plane's own that are not with the writer yet.
    unsent: Vec<Change>,
}

impl Shared {
    /// `moment` is where the plane's clock stands; `writer` keeps what is restored, if anything does.
    pub(super) fn new(
        token: Secret,
        ping_every: Duration,
        restored: Restored,
        writer: Option<Writer>,
        log: Log,
        switches: Switches,
    ) -> Self {
        let Restored { plane, mut tokens, skills, contents, moment } = restored;
        tokens.grant_passing(&token);
        let next_payload = contents.keys().next_back().map_or(0, |last| last.0);
        let inner = Inner {
            plane,
            log,
            links: Links::default(),
            switches,
            tokens,
            skills,
            results: Results::new(),
            contents,
            next_payload,
            faults: Vec::new(),
            skew: moment,
            wall_skew: Duration::ZERO,
            writer,
            unsent: Vec::new(),
        };
        let started = tokio::time::Instant::now();
        Self { token, ping_every, started, changed: Notify::new(), inner: Mutex::new(inner) }
    }

    /// The state. Never held over an await; a panic under it leaves it usable, as every call of the plane is whole.
    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time since the start.
    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Does something with the plane, passes its hints on, and wakes who waits.
    pub(super) fn act<T>(&self, with: impl FnOnce(&mut Inner, Now) -> T) -> T {
        let mut inner = self.lock();
        let now = self.now(&inner);
        let out = with(&mut inner, now);
        for hint in inner.plane.take_hints() {
            inner.links.push(&hint);
        }
        inner.store(now);
        drop(inner);
        self.changed.notify_waiters();
        out
    }

    fn now(&self, inner: &Inner) -> Now {
        let mono = Instant::ZERO.after(self.elapsed() + inner.skew);
        let wall =
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default() + inner.wall_skew;
        Now::new(mono, UnixMillis(i64::try_from(wall.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Waits until everything that was done so far is on the disk; without a database nothing has to be.
    pub(super) async fn stored(&self) -> Result<(), Unwritten> {
        let due = self.lock().writer.as_ref().map(Writer::due);
        match due {
            Some(due) => due.written().await,
            None => Ok(()),
        }
    }

    /// Ends the writing; what was done so far is on the disk when this returns, unless the disk does not take it.
    pub(super) fn close(&self) {
        let writer = self.lock().writer.take();
        drop(writer);
    }

    /// Who shows this token, if it is accepted now.
    pub(super) fn caller(&self, token: &str) -> Option<Caller> {
        let inner = self.lock();
        inner.tokens.caller(token, self.now(&inner).wall)
    }

    /// Notes a request, and finds the fault that is for it.
    pub(super) fn arrived(&self, of: &Arrival<'_>) -> (u64, Option<Fault>) {
        let mut inner = self.lock();
        let number = inner.log.arrived(of);
        inner.faults.retain(|fault| !fault.is_removed());
        let mut taken = None;
        for fault in &inner.faults {
            // Each rule counts what it matches, whoever acts.
            if fault.takes(of.method, of.path) && taken.is_none() {
                taken = Some(fault.clone());
            }
        }
        drop(inner);
        if let Some(fault) = &taken {
            fault.hit();
        }
        self.changed.notify_waiters();
        (number, taken)
    }

    /// Notes that a request was acted upon, and that its answer is held back.
    pub(super) fn held(&self, number: u64, status: u16) {
        self.lock().log.held(number, status);
        self.changed.notify_waiters();
    }

    /// Notes what became of a request.
    pub(super) fn answered(&self, number: u64, answer: Answer) {
        let at = self.elapsed();
        self.lock().log.answered(number, at, answer);
        self.changed.notify_waiters();
    }
}

impl Inner {
    /// Moves the plane's clock on and lets it do what time does.
    pub(super) fn advance(&mut self, by: Duration, now: Now) {
        self.skew += by;
        self.wall_skew += by;
        self.plane.sweep(Now::new(now.mono.after(by), now.wall));
    }

    /// Gives the writer what has changed.
    fn store(&mut self, now: Now) {
        let Some(writer) = &mut self.writer else { return };
        let rows = self.plane.take_changes().into_iter().map(|it| Change {
            table: Table::Plane(it.rows),
            key: it.key,
            value: it.value,
        });
        let mut changes: Vec<_> = self.unsent.drain(..).chain(rows).collect();
        if self.tokens.take_touched() {
            changes.push(single(TOKENS, &self.tokens));
        }
        if !changes.is_empty() {
            changes.push(single(CLOCK, &now));
            writer.send(changes);
        }
    }

    /// Notes a row beside the plane's own.
    fn note(&mut self, table: Table, key: String, value: Option<Vec<u8>>) {
        if self.writer.is_some() {
            self.unsent.push(Change { table, key, value });
        }
    }

    pub(super) fn add_fault(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    /// Keeps a task's texts under a new number.
    pub(super) fn keep(&mut self, content: Content) -> Payload {
        if self.contents.len() > 2 * self.plane.tasks().count() + SPARE_CONTENTS {
            let used: BTreeSet<_> = self.plane.tasks().map(|task| task.payload).collect();
            let spare: Vec<_> = self.contents.keys().filter(|it| !used.contains(it)).copied().collect();
            for payload in spare {
                self.contents.remove(&payload);
                self.note(Table::Contents, payload_key(payload), None);
            }
        }
        self.next_payload += 1;
        let payload = Payload(self.next_payload);
        self.note(Table::Contents, payload_key(payload), Some(write_content(&content)));
        self.contents.insert(payload, Arc::new(content));
        payload
    }

    /// Renews the caller's token if it ends soon: when it ends, and whether that has moved.
    pub(super) fn renew(&mut self, caller: &Caller, now: Now) -> (Option<UnixMillis>, bool) {
        self.tokens.renew(caller, now.wall)
    }

    /// Sets the skills of an agent. Those of agents without a remembered task go when there are too many.
    pub(super) fn set_skills(&mut self, agent: Text, skills: Vec<Skill>) {
        if self.skills.len() > 2 * self.plane.tasks().count() + SPARE_CONTENTS {
            let used: BTreeSet<_> = self.plane.tasks().map(|task| task.agent.clone()).collect();
            let spare: Vec<_> = self.skills.keys().filter(|agent| !used.contains(*agent)).cloned().collect();
            for agent in spare {
                self.skills.remove(&agent);
                self.note(Table::Skills, agent.to_string(), None);
            }
        }
        self.note(Table::Skills, agent.to_string(), Some(json(&skills)));
        self.skills.insert(agent, Arc::new(skills));
    }

    /// The skills of an agent.
    pub(super) fn skills(&self, agent: &Text) -> Arc<Vec<Skill>> {
        self.skills.get(agent).cloned().unwrap_or_default()
    }

    /// A task's texts; empty ones if there are none.
    pub(super) fn content(&self, payload: Payload) -> Arc<Content> {
        self.contents.get(&payload).cloned().unwrap_or_default()
    }
}

/// The key of a task's texts: in the order of their numbers.
fn payload_key(payload: Payload) -> String {
    format!("{:020}", payload.0)
}

/// Plain data always has a JSON form.
fn json<T: Serialize>(of: &T) -> Vec<u8> {
    serde_json::to_vec(of).unwrap_or_default()
}

fn single<T: Serialize>(key: &str, of: &T) -> Change {
    Change { table: Table::Singles, key: key.into(), value: Some(json(of)) }
}
