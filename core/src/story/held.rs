//! What tasks hold: slots, marks on directories, directories of users; and the runtimes that they are for.

use super::when::{At, Span};
use super::{LifeIx, TaskIx};
use crate::id::{EnvRoot, PathKey, ProfileId, Provider, RuntimeId, SlotIndex, WorkspaceId};

/// A slot that a task held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlotUse {
    /// In this life.
    pub life: LifeIx,
    /// Which one.
    pub slot: SlotIndex,
    /// Which task.
    pub task: TaskIx,
    /// When.
    pub span: Span,
}

/// A mark on an env root: while it is there, the collector keeps away. Several tasks may mark the same one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RootMark {
    /// In this life.
    pub life: LifeIx,
    /// Which directory.
    pub root: EnvRoot,
    /// Which task.
    pub task: TaskIx,
    /// When.
    pub span: Span,
}

/// A directory of the user that a task had for itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathUse {
    /// In this life.
    pub life: LifeIx,
    /// Which directory.
    pub path: PathKey,
    /// Which task.
    pub task: TaskIx,
    /// When.
    pub span: Span,
}

/// A runtime, over all lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runtime {
    /// Its id.
    pub id: RuntimeId,
    /// Its agent CLI family, if the trace tells.
    pub provider: Option<Provider>,
    /// Its workspace, if the trace tells.
    pub workspace: Option<WorkspaceId>,
    /// Set if it is known to be a custom runtime.
    pub profile: Option<ProfileId>,
    /// When it was registered.
    pub online: Vec<Online>,
}

/// A time in which a runtime was registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Online {
    /// In this life.
    pub life: LifeIx,
    /// When.
    pub span: Span,
    /// From when on its tasks could be asked for.
    pub claimable: Option<At>,
    /// When the server had no such runtime any more, if that is why it ended.
    pub gone: Option<At>,
}
