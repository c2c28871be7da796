//! How tasks came: a hint says that work may be there, a claim asks, and its answer brings tasks.

use super::task::WaitReason;
use super::when::At;
use super::{ClaimIx, LifeIx, RequestIx, RuntimeIx, TaskIx};
use crate::id::TaskId;

/// The server said that work may be there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Hint {
    /// In this life.
    pub life: LifeIx,
    /// In this step.
    pub at: At,
    /// For this runtime; for any if `None`.
    pub runtime: Option<RuntimeIx>,
    /// This task; `None` if only the end of one is told.
    pub task: Option<TaskId>,
    /// The first claim that was sent from this step on and that asks for this runtime's tasks.
    pub claim: Option<ClaimIx>,
    /// Why that was not sent in the same step.
    pub waited: Option<WaitReason>,
}

/// A claim: a request for tasks, and what it brought.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    /// In this life.
    pub life: LifeIx,
    /// The request.
    pub request: RequestIx,
    /// How many tasks it asked for at most: so many slots were held for it. `None` if the trace does not have its beginning.
    pub max: Option<u16>,
    /// Tasks that it brought and that were taken, or failed back.
    pub tasks: Vec<TaskIx>,
    /// Tasks that it brought and that were here already.
    pub duplicates: Vec<TaskId>,
    /// How many more it brought that could not even be named to the server.
    pub unusable: u16,
}
