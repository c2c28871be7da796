//! Why the plane refuses a call, with the status and the text that the wire has for it.

use super::row::State;
use crate::id::ProfileId;
use thiserror::Error;

/// A refused call: nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The request itself is wrong.
    #[error("{0}")]
    Invalid(String),
    /// No such runtime; a daemon stops using it.
    #[error("runtime not found")]
    RuntimeNotFound,
    /// No such task; a daemon stops its agent and reports nothing.
    #[error("task not found")]
    TaskNotFound,
    /// No such workspace.
    #[error("workspace not found")]
    WorkspaceNotFound,
    /// No such runtime profile, or another workspace's.
    #[error("runtime profile not found")]
    ProfileNotFound,
    /// The runtime profile is there and must not be used.
    #[error("runtime profile {0} is disabled")]
    ProfileDisabled(ProfileId),
    /// The runtime is offline, and its daemon said why it cannot be used: waiting would not help.
    #[error("the runtime cannot run anything: {0}")]
    Unusable(String),
    /// The call moves a task on from a state that it is not in.
    #[error("{call}: the task is {state}, this call needs it to be {needs}", state = state.as_str())]
    WrongState {
        /// What was to be done.
        call: &'static str,
        /// Where the task is.
        state: State,
        /// Where it would have to be.
        needs: &'static str,
    },
    /// Only a task that is being prepared has what the call asks for.
    #[error("the task is {state}, and not being prepared", state = .0.as_str())]
    NotPreparing(State),
    /// A task for the same issue and agent is waiting already, or the id is taken.
    #[error("{0}")]
    Conflict(&'static str),
    /// A bound of the plane is reached.
    #[error("too many {0}: the control plane takes no more until some are gone")]
    Full(&'static str),
}

impl Refusal {
    /// The HTTP status for it.
    pub const fn status(&self) -> u16 {
        match self {
            Self::Invalid(_) | Self::WrongState { .. } => 400,
            Self::RuntimeNotFound | Self::TaskNotFound | Self::WorkspaceNotFound | Self::ProfileNotFound => {
                404
            }
            Self::Conflict(_) | Self::ProfileDisabled(_) | Self::Unusable(_) | Self::NotPreparing(_) => 409,
            Self::Full(_) => 413,
        }
    }
}
