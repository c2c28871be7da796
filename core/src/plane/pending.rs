//! What people ask a runtime for, to be handed out with the answer to one of its beats: its models, the skills of its machine, another
//! version. Handing one out makes it running, and nobody hands it out again; each state has a time in which the next one must come.

use super::row::{Hint, Text};
use super::{Plane, Refusal};
use crate::event::ActionKind;
use crate::id::{ActionId, RuntimeId};
use crate::time::Now;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Imports of skills that one beat's answer holds at most.
pub const IMPORTS_AT_ONCE: usize = 10;
/// What may be asked of one runtime at a time.
pub const MOST_OF_RUNTIME: usize = 64;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "asks", rename_all = "snake_case")]
pub enum Ask {
    /// Another version of the daemon.
    Update {
        /// Which one.
        target_version: Text,
    },
    /// The models of the agent CLI.
    Models,
    /// The skills that are installed.
    LocalSkills,
    /// One of them, in full.
    ImportSkill {
        /// By the key that the list has for it.
        skill_key: Text,
    },
}

impl Ask {
    /// What it is to a daemon.
    pub const fn kind(&self) -> ActionKind {
        match self {
            Self::Update { .. } => ActionKind::Update,
            Self::Models => ActionKind::Models,
            Self::LocalSkills => ActionKind::LocalSkills,
            Self::ImportSkill { .. } => ActionKind::ImportSkill,
        }
    }

    /// How long it waits for a beat, how long a daemon has for it, and how long its end is remembered.
    const fn times(&self) -> [Duration; 3] {
        let s = Duration::from_secs;
        match self {
            Self::Update { .. } => [s(120), s(150), s(300)],
            Self::Models => [s(30), s(60), s(120)],
            Self::LocalSkills | Self::ImportSkill { .. } => [s(180), s(60), s(300)],
        }
    }
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestState {
    /// It waits for a beat.
    Pending,
    /// It was handed out.
    Running,
    /// The daemon has done it.
    Completed,
    /// The daemon could not do it.
    Failed,
    /// It was not handed out, or the daemon said nothing, in time.
    TimedOut,
}

impl RequestState {
    /// Whether it never changes again.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::TimedOut)
    }
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Request {
    /// Of whom.
    pub runtime: RuntimeId,
    /// For what.
    pub ask: Ask,
    /// How far it is.
    pub state: RequestState,
    /// Since when.
    pub since: Now,
    order: u64,
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Pending {
    requests: BTreeMap<ActionId, Request>,
    next: u64,
}

impl Pending {
    /// What time alone does.
    pub(super) fn sweep(&mut self, now: Now) {
        for request in self.requests.values_mut() {
            let [waits, runs, _] = request.ask.times();
            let within = match request.state {
                RequestState::Pending => waits,
                RequestState::Running => runs,
                _ => continue,
            };
            if now.mono.since(request.since.mono) > within {
                (request.state, request.since) = (RequestState::TimedOut, now);
            }
        }
        self.requests.retain(|_, request| {
            let [_, _, kept] = request.ask.times();
            !request.state.is_over() || now.mono.since(request.since.mono) <= kept
        });
    }

    /// Forgets what was asked of a runtime.
    pub(super) fn forget(&mut self, runtime: &RuntimeId) {
        self.requests.retain(|_, request| request.runtime != *runtime);
    }
}

impl Plane {
    /// Asks a runtime for something; its daemon is told that a beat brings it.
    ///
    /// # Errors
    /// [`Refusal::RuntimeNotFound`], [`Refusal::Full`] at [`MOST_OF_RUNTIME`].
    pub fn ask(&mut self, now: Now, runtime: &RuntimeId, ask: Ask) -> Result<ActionId, Refusal> {
        if !self.runtimes.contains_key(runtime) {
            return Err(Refusal::RuntimeNotFound);
        }
        self.pending.sweep(now);
        let theirs = self.pending.requests.values().filter(|request| request.runtime == *runtime).count();
        if theirs >= MOST_OF_RUNTIME {
            return Err(Refusal::Full("requests of one runtime"));
        }
        let id = ActionId::new(self.ids.fresh());
        self.pending.next += 1;
        let order = self.pending.next;
        let request =
            Request { runtime: runtime.clone(), ask, state: RequestState::Pending, since: now, order };
        self.pending.requests.insert(id.clone(), request);
        self.hint(Hint::PendingWork { runtime: runtime.clone() });
        Ok(id)
    }

    /// What the answer to a beat of the runtime holds: of each kind the oldest, and of imports at most [`IMPORTS_AT_ONCE`]; one if
    /// the daemon takes no list of them. They are running from now on.
    pub fn answer_beat(&mut self, now: Now, runtime: &RuntimeId, takes_list: bool) -> Vec<(ActionId, Ask)> {
        self.pending.sweep(now);
        let waits =
            |request: &&mut Request| request.runtime == *runtime && request.state == RequestState::Pending;
        let mut waiting: Vec<_> =
            self.pending.requests.iter_mut().filter(|(_, request)| waits(request)).collect();
        waiting.sort_by_key(|(_, request)| request.order);
        let most = if takes_list { IMPORTS_AT_ONCE } else { 1 };
        let mut given: Vec<(ActionId, Ask)> = Vec::new();
        for (id, request) in waiting {
            let same = given.iter().filter(|(_, ask)| ask.kind() == request.ask.kind()).count();
            if same < if request.ask.kind() == ActionKind::ImportSkill { most } else { 1 } {
                (request.state, request.since) = (RequestState::Running, now);
                given.push((id.clone(), request.ask.clone()));
            }
        }
        given
    }

    /// The daemon says what came of a request; whether that is news. One that is over stays as it is.
    ///
    /// # Errors
    /// [`Refusal::RequestNotFound`] if there is none of this kind for this runtime (any more).
    pub fn finish(
        &mut self,
        now: Now,
        runtime: &RuntimeId,
        (id, kind): (&ActionId, ActionKind),
        completed: bool,
    ) -> Result<bool, Refusal> {
        self.pending.sweep(now);
        let theirs = |request: &&mut Request| request.runtime == *runtime && request.ask.kind() == kind;
        let request = self.pending.requests.get_mut(id).filter(theirs).ok_or(Refusal::RequestNotFound)?;
        if request.state.is_over() {
            return Ok(false);
        }
        let state = if completed { RequestState::Completed } else { RequestState::Failed };
        (request.state, request.since) = (state, now);
        Ok(true)
    }

    /// One request, as long as it is remembered.
    pub fn request(&self, id: &ActionId) -> Option<&Request> {
        self.pending.requests.get(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::WorkspaceId;
    use crate::plane::{Registration, RuntimeEntry};
    use crate::time::{Instant, UnixMillis};

    fn at(secs: u64) -> Now {
        Now::new(Instant::from_millis(secs * 1000), UnixMillis(0))
    }

    fn plane() -> (Plane, RuntimeId) {
        let mut plane = Plane::new(1);
        plane.add_workspace(WorkspaceId::new("w"), "W").expect("room");
        let entry = RuntimeEntry { provider: "claude".into(), online: true, ..RuntimeEntry::default() };
        let from = Registration { runtimes: vec![entry], ..Registration::new(WorkspaceId::new("w"), "d") };
        let runtime = plane.register(at(0), from).expect("registered").remove(0);
        plane.take_hints();
        (plane, runtime)
    }

    #[test]
    fn a_request_is_handed_out_once_and_ends_once() {
        let (mut plane, runtime) = plane();
        let id = plane.ask(at(0), &runtime, Ask::Models).expect("asked");
        assert_eq!(plane.take_hints(), [Hint::PendingWork { runtime: runtime.clone() }]);
        assert_eq!(plane.answer_beat(at(1), &runtime, true), [(id.clone(), Ask::Models)]);
        assert_eq!(plane.answer_beat(at(2), &runtime, true), []);
        let models = (&id, ActionKind::Models);
        assert_eq!(
            plane.finish(at(3), &RuntimeId::new("other"), models, true),
            Err(Refusal::RequestNotFound)
        );
        assert_eq!(
            plane.finish(at(3), &runtime, (&id, ActionKind::Update), true),
            Err(Refusal::RequestNotFound)
        );
        assert_eq!(plane.finish(at(3), &runtime, models, true), Ok(true));
        assert_eq!(plane.finish(at(4), &runtime, models, false), Ok(false));
        assert_eq!(plane.request(&id).map(|request| request.state), Some(RequestState::Completed));
    }

    #[test]
    fn each_state_has_its_time() {
        let (mut plane, runtime) = plane();
        let never = plane.ask(at(0), &runtime, Ask::Models).expect("asked");
        plane.sweep(at(31));
        assert_eq!(plane.request(&never).map(|request| request.state), Some(RequestState::TimedOut));
        let lost = plane.ask(at(31), &runtime, Ask::LocalSkills).expect("asked");
        assert_eq!(
            plane.answer_beat(at(200), &runtime, true).len(),
            1,
            "a list of skills waits for three minutes"
        );
        plane.sweep(at(261));
        assert_eq!(plane.request(&lost).map(|request| request.state), Some(RequestState::TimedOut));
        plane.sweep(at(600));
        assert!(plane.request(&lost).is_none());
        let late = plane.finish(at(600), &runtime, (&lost, ActionKind::LocalSkills), true);
        assert_eq!(late, Err(Refusal::RequestNotFound));
    }

    #[test]
    fn imports_come_in_tens_and_are_bounded() {
        let (mut plane, runtime) = plane();
        let import = |n: usize| Ask::ImportSkill { skill_key: format!("k{n}").into() };
        for n in 0..MOST_OF_RUNTIME {
            plane.ask(at(0), &runtime, import(n)).expect("room");
        }
        assert!(matches!(plane.ask(at(0), &runtime, Ask::Models), Err(Refusal::Full(_))));
        let first = plane.answer_beat(at(1), &runtime, true);
        assert_eq!((first.len(), &first[0].1, &first[9].1), (10, &import(0), &import(9)));
        assert_eq!(
            plane.answer_beat(at(1), &runtime, false).len(),
            1,
            "a daemon that takes no list gets one"
        );
        plane.delete_runtime(at(2), &runtime);
        assert!(plane.request(&first[0].0).is_none());
    }
}
