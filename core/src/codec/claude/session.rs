//! Which session a later run may continue.
//!
//! An agent that fails to resume names a new session all the same, and one that fails in its set-up names a session
//! that was never saved. So an id counts only with proof: the prompt was taken, and where another session was asked for,
//! the agent has worked in this one.

use crate::codec::message::MAX_NAME;
use serde::{Deserialize, Serialize};

/// What is known of the session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Session {
    /// The one to be resumed; empty for a fresh start.
    wanted: String,
    /// The one that the agent named last.
    named: String,
    prompt_taken: bool,
    worked: bool,
    announced: bool,
}

impl Session {
    pub(super) fn new(wanted: &str) -> Self {
        Self { wanted: wanted.to_owned(), ..Self::default() }
    }

    /// The agent named a session. What is too long for an id is none: cut, it would be another one.
    pub(super) fn named(&mut self, id: &str) {
        if !id.is_empty() && id.len() <= MAX_NAME {
            id.clone_into(&mut self.named);
        }
    }

    /// The agent's final word on its session, which may be that there is none.
    pub(super) fn settled(&mut self, id: &str) {
        if id.len() <= MAX_NAME {
            id.clone_into(&mut self.named);
        }
    }

    /// The agent has read the prompt.
    pub(super) fn prompt_taken(&mut self) {
        self.prompt_taken = true;
    }

    /// The model has answered.
    pub(super) fn worked(&mut self) {
        self.prompt_taken = true;
        self.worked = true;
    }

    /// The id to announce, the first time that there is one with proof.
    pub(super) fn take_announcement(&mut self) -> Option<String> {
        if self.announced {
            return None;
        }
        let id = self.proven()?;
        self.announced = true;
        Some(id)
    }

    /// The id that a later run can continue, after a run that did not succeed.
    pub(super) fn proven(&self) -> Option<String> {
        let proven = self.prompt_taken && (self.worked || !self.is_another());
        (proven && !self.named.is_empty()).then(|| self.named.clone())
    }

    /// The id that a later run can continue, after a run that succeeded.
    pub(super) fn of_success(&self) -> Option<String> {
        (!self.named.is_empty()).then(|| self.named.clone())
    }

    /// Whether a session was to be resumed.
    pub(super) fn was_resume(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// Whether the agent is in another session than the one it was to resume.
    pub(super) fn is_another(&self) -> bool {
        self.was_resume() && !self.named.is_empty() && self.named != self.wanted
    }

    /// Whether the agent has named any session.
    pub(super) fn is_named(&self) -> bool {
        !self.named.is_empty()
    }
}
