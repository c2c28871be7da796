//! One claim.

use super::keeping::Keeping;
use super::outbox::Outbox;
use super::stream::Stream;
use crate::driver::LocalDirectory;
use crate::ledger::{Journal, Kept, KeptOutcome, Set};
use crate::prepare::reuse::Reuse;
use crate::prepare::{Claim, Prepared};
use crate::supervise::Ready;
use crate::tempdir::TempDir;
use crate::wire::report::{CompleteRequest, FailRequest, Pointers, Usage};
use crate::wire::task::Task;
use longshore_core::codec::outcome::Outcome;
use longshore_core::effect::EndReason;
use longshore_core::event::ClaimKey;
use longshore_core::id::{ProfileId, TaskId};
use longshore_core::reason::FailReason;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is kept for a claim.
#[derive(Debug)]
pub struct Entry {
    /// Its number.
    pub claim: ClaimKey,
    /// The task's id.
    pub id: TaskId,
    /// All that the server said of the task.
    pub task: Task,
    /// The agent CLI family of its runtime; empty if the runtime is not ours.
    pub provider: String,
    /// Set if its runtime is a custom one. Of a claim of an earlier process it is not known, and not needed: its agent is launched by now, or
    /// never.
    pub profile: Option<ProfileId>,
    /// Messages on their way to the server.
    pub outbox: Outbox,
    pub(super) keeping: Keeping,
    pub(super) stream: Mutex<Option<Stream>>,
    disk: Mutex<Disk>,
    ending: Mutex<Ending>,
}

/// What a claim holds on this machine.
#[derive(Default)]
pub struct Disk {
    /// The person's directory that it works in.
    pub local: Option<LocalDirectory>,
    /// The lock on its own directory.
    pub claim: Option<Claim>,
    /// The lock on the directory that is used again.
    pub reuse: Option<Reuse>,
    /// The directory.
    pub prepared: Option<Prepared>,
    /// The private temp dir.
    pub temp: Option<TempDir>,
    /// The processes that wait for the launch.
    pub ready: Option<Ready>,
    /// Somebody else is at work in its directory by now: nothing there is its own any more.
    pub is_left: bool,
}

impl Disk {
    /// Leaves everything to the next process: the temp dir of a run that goes on must not go with this one.
    pub fn leave(&mut self) {
        if let Some(temp) = self.temp.take() {
            temp.leave();
        }
        if let Some(claim) = self.claim.take() {
            claim.leave();
        }
    }
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Disk").field("prepared", &self.prepared).finish_non_exhaustive()
    }
}

/// What a claim came to.
#[derive(Debug, Default)]
pub struct Ending {
    /// What the agent made of it; of both attempts, if there were two.
    pub outcome: Option<Outcome>,
    /// What an attempt came to that an earlier process saw the end of.
    pub seen: Option<KeptOutcome>,
    /// Session that the agent named.
    pub session: Option<String>,
    /// A session that turned out dead.
    pub retired_session: Option<String>,
    /// Why it could not be prepared or launched, in words for people.
    pub trouble: Option<String>,
    /// Why the core ended it before its time; the last reason, if there were several.
    pub why: Option<EndReason>,
    /// Which setting allows more, where the run was ended because it was silent or took too long.
    pub hint: Option<String>,
    /// Why the server would not take the completion.
    pub refusal: Option<String>,
    /// What the server was not told of it for want of a route.
    pub unrouted: BTreeSet<&'static str>,
}

impl Entry {
    pub(super) fn new(claim: ClaimKey, task: Task, provider: String, journal: Journal) -> Self {
        Self {
            claim,
            id: TaskId::new(task.id.as_str()),
            task,
            provider,
            profile: None,
            outbox: Outbox::default(),
            keeping: Keeping::new(journal),
            stream: Mutex::default(),
            disk: Mutex::default(),
            ending: Mutex::default(),
        }
    }

    /// A claim of an earlier process, without what it holds on this machine.
    pub(super) fn taken_over(set: Set, journal: Journal) -> Self {
        let Set { kept, outcome, mut said } = set;
        let Kept { record, task, words, .. } = kept;
        let entry = Self::new(record.claim(), task.task(), record.provider.as_str().to_owned(), journal);
        let at = said.at.take();
        entry.outbox.restore(said);
        words.give(&entry);
        if let Some(at) = at {
            // Words are written down when the run begins, which knows no session yet. One that was given up with its attempt stays so.
            if at.session.is_some() && outcome.as_ref().is_none_or(|seen| seen.attempt != at.attempt) {
                entry.ending().session.clone_from(&at.session);
            }
            entry.keeping.is_durable_up_to(at.position());
            *entry.stream() = Some(at.stream());
        }
        if let Some(seen) = outcome {
            let mut ending = entry.ending();
            ending.session = ending.session.take().or_else(|| seen.session.clone());
            ending.retired_session = ending.retired_session.take().or_else(|| seen.retired_session.clone());
            ending.outcome = Some(seen.outcome.clone());
            ending.seen = Some(seen);
        }
        entry
    }

    /// Its agent's output as far as it is read; `None` before the launch.
    pub fn stream(&self) -> MutexGuard<'_, Option<Stream>> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it holds on this machine.
    pub fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it came to.
    pub fn ending(&self) -> MutexGuard<'_, Ending> {
        self.ending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes why it could not be prepared or launched.
    pub fn trouble(&self, text: impl Into<String>) {
        self.ending().trouble = Some(text.into());
    }

    /// The work directory, if there is one.
    pub fn work_dir(&self) -> Option<String> {
        self.disk().prepared.as_ref().map(|prepared| prepared.workdir.display().to_string())
    }

    fn pointers(&self) -> Pointers {
        let work_dir = self.work_dir().unwrap_or_default();
        let ending = self.ending();
        let of_outcome =
            ending.outcome.as_ref().map(|outcome| outcome.session_id.clone().unwrap_or_default());
        let session_id = of_outcome.or_else(|| ending.session.clone()).unwrap_or_default();
        let retired_session_id = ending.retired_session.clone().unwrap_or_default();
        Pointers { session_id, work_dir, retired_session_id, ..Pointers::default() }
    }

    /// The report of a success.
    pub fn completion(&self) -> CompleteRequest {
        let output = self.ending().outcome.as_ref().map(|outcome| outcome.output.clone()).unwrap_or_default();
        CompleteRequest { output, pointers: self.pointers() }
    }

    /// The report of a failure. The text is the agent's own where the agent failed, and ours where we did.
    pub fn failure(&self, reason: FailReason) -> FailRequest {
        let error = self.failure_text(reason);
        FailRequest { error, failure_reason: reason.as_str().to_owned(), pointers: self.pointers() }
    }

    fn failure_text(&self, reason: FailReason) -> String {
        let ending = self.ending();
        if let Some(refusal) = &ending.refusal {
            return format!("the work was done, but the server did not take its result: {refusal}");
        }
        let of_agent = ending.outcome.as_ref().map(|outcome| outcome.error.clone()).filter(|e| !e.is_empty());
        match reason {
            FailReason::RuntimeOffline => {
                "the daemon stopped, or no longer has this runtime, before the task was done; it can be tried again"
                    .to_owned()
            }
            FailReason::InvalidTaskIdentity => ending.trouble.clone().unwrap_or_else(|| {
                "the task names no agent, or two different ones; it was not run".to_owned()
            }),
            FailReason::IdleWatchdog | FailReason::Timeout if ending.hint.is_some() => {
                let what = of_agent.unwrap_or_else(|| match reason {
                    FailReason::Timeout => "the run was ended as it took too long".to_owned(),
                    _ => "the run was ended as nothing came from it for too long".to_owned(),
                });
                format!("{what}; {}", ending.hint.as_deref().unwrap_or_default())
            }
            FailReason::Timeout if of_agent.is_none() => ending.trouble.clone().unwrap_or_else(|| {
                "the task's preparation took longer than its deadline; everything it started is gone".to_owned()
            }),
            _ => of_agent
                .or_else(|| ending.trouble.clone())
                .unwrap_or_else(|| format!("the task could not be run ({})", reason.as_str())),
        }
    }

    /// The tokens used, by model, without entries that count nothing.
    pub fn usage(&self) -> Vec<Usage> {
        let ending = self.ending();
        let Some(outcome) = &ending.outcome else { return Vec::new() };
        let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        outcome
            .usage
            .iter()
            .map(|(model, usage)| Usage {
                provider: self.provider.clone(),
                model: model.clone(),
                input_tokens: signed(usage.input),
                output_tokens: signed(usage.output),
                cache_read_tokens: signed(usage.cache_read),
                cache_write_tokens: signed(usage.cache_write),
                cost_usd_ticks: (usage.cost_usd_ticks > 0).then(|| signed(usage.cost_usd_ticks)),
            })
            .filter(|u| u.input_tokens + u.output_tokens + u.cache_read_tokens + u.cache_write_tokens > 0)
            .collect()
    }
}

#[cfg(test)]
#[path = "entry_tests.rs"]
mod tests;
