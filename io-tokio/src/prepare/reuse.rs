//! Whether the directory of an earlier task is used again, and whether its session can go on.
//!
//! The server offers a path; nothing is believed of it (#3854, MUL-6368). Any doubt means a fresh environment, which is
//! never wrong, only slower. Nothing is written before the directory is proven to be a managed one (INV-85), and no file
//! that appears only after a run is asked for (INV-86).

use super::beneath::{Dir, Identity};
use super::codex;
use super::error::PrepareError;
use super::job::{Prepared, agent_id};
use super::layout::{WORKDIR, path_of};
use super::lock::{Claim, PriorLock};
use super::marker::{ENV_MARK, Provenance, TASK_MARK, TaskMarker};
use crate::wire::task::Task;
use std::path::{Path, PathBuf};

/// Why a fresh environment is made; for the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FreshBecause {
    /// The task offers no earlier directory.
    #[error("there is no earlier work directory")]
    NoPrior,
    /// It is not a managed directory for the same workspace, agent and issue or chat.
    #[error("the earlier work directory is not proven to be for the same work: {0}")]
    NotProven(&'static str),
    /// An execution is alive in it.
    #[error("the earlier work directory is in use")]
    InUse,
    /// It was exchanged while it was looked at.
    #[error("the earlier work directory was replaced while it was looked at")]
    Changed,
    /// It cannot be looked at.
    #[error("the earlier work directory cannot be looked at: {0}")]
    Unreadable(String),
}

/// What was decided.
#[derive(Debug)]
pub enum Decision {
    /// A fresh environment.
    Fresh(FreshBecause),
    /// The earlier one, locked for as long as this value lives.
    Reuse(Reuse),
}

/// An earlier environment, proven and locked.
#[derive(Debug)]
pub struct Reuse {
    workdir: PathBuf,
    identity: Identity,
    _lock: Option<PriorLock>,
}

impl Reuse {
    /// Locks the environment that a run of an earlier process works in again; `None` if it is the task's own, or cannot be locked.
    pub fn again(workspaces_root: &Path, prepared: &Prepared) -> Option<Self> {
        let top = Dir::open(workspaces_root).ok()?;
        let below = prepared.root.strip_prefix(top.path()).ok()?;
        let lock = PriorLock::try_take(&top, below).ok()??;
        let identity = lock.identity();
        (identity == prepared.identity).then(|| Self {
            workdir: prepared.workdir.clone(),
            identity,
            _lock: Some(lock),
        })
    }

    /// Its work directory, links resolved.
    pub fn workdir(&self) -> &Path {
        &self.workdir
    }

    /// Which directory its env root is.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Whether the helper used just this environment. If not, what it prepared must not be used under this lock.
    pub fn is_confirmed_by(&self, prepared: &Prepared) -> bool {
        let root = prepared.workdir.parent().and_then(|root| Identity::at(root).ok());
        prepared.reused && prepared.identity == self.identity && root == Some(self.identity)
    }
}

/// Decides for a task that does not work in a person's directory. `own` is the claim on its own env root, which may
/// be the earlier one as well. Blocks on the file system; fails never.
pub fn decide(workspaces_root: &Path, task: &Task, own: &Claim) -> Decision {
    match find(workspaces_root, task, own) {
        Ok(reuse) => Decision::Reuse(reuse),
        Err(because) => Decision::Fresh(because),
    }
}

fn find(workspaces_root: &Path, task: &Task, own: &Claim) -> Result<Reuse, FreshBecause> {
    if task.prior_work_dir.is_empty() {
        return Err(FreshBecause::NoPrior);
    }
    // Opened before anything is checked, so that what is checked and what is locked are below the same directory.
    let top = Dir::open(workspaces_root).map_err(|error| FreshBecause::Unreadable(error.to_string()))?;
    let found = validate(&top, workspaces_root, task)?;
    if found.identity == own.identity()
        && path_of(workspaces_root, own.root()) == top.path().join(&found.below)
    {
        return Ok(Reuse { workdir: found.workdir, identity: found.identity, _lock: None });
    }
    let lock = PriorLock::try_take(&top, &found.below).map_err(|error| match error {
        PrepareError::Busy { .. } => FreshBecause::InUse,
        error => FreshBecause::Unreadable(error.to_string()),
    })?;
    let lock = lock.ok_or(FreshBecause::Changed)?;
    let still = validate(&top, workspaces_root, task)?;
    if lock.identity() != found.identity || still.identity != found.identity || still.workdir != found.workdir
    {
        return Err(FreshBecause::Changed);
    }
    Ok(Reuse { workdir: found.workdir, identity: found.identity, _lock: Some(lock) })
}

struct Found {
    workdir: PathBuf,
    below: PathBuf,
    identity: Identity,
}

fn validate(top: &Dir, workspaces_root: &Path, task: &Task) -> Result<Found, FreshBecause> {
    let unreadable = |error: std::io::Error| FreshBecause::Unreadable(error.to_string());
    let root = std::fs::canonicalize(workspaces_root).map_err(unreadable)?;
    let workdir = std::fs::canonicalize(&task.prior_work_dir).map_err(unreadable)?;
    let outside = FreshBecause::NotProven("it is not <workspaces root>/<workspace>/<key>/workdir");
    let parts: Vec<_> = match workdir.strip_prefix(&root) {
        Ok(below) => below.iter().map(ToOwned::to_owned).collect(),
        Err(_) => return Err(outside),
    };
    let [workspace, key, leaf] = &parts[..] else { return Err(outside) };
    if *workspace != *task.workspace_id || leaf != WORKDIR {
        return Err(outside);
    }
    let below = Path::new(workspace).join(key);
    let env_root = top.descend(&below).map_err(unreadable)?.ok_or(FreshBecause::Changed)?;
    let work_dir = env_root.child(WORKDIR).map_err(unreadable)?.ok_or(FreshBecause::Changed)?;
    prove(&env_root, &work_dir, task).map_err(FreshBecause::NotProven)?;
    Ok(Found { workdir, below, identity: env_root.identity().map_err(unreadable)? })
}

/// Both the provenance and the marker must name this work.
fn prove(env_root: &Dir, work_dir: &Dir, task: &Task) -> Result<(), &'static str> {
    let agent = agent_id(task);
    if agent.is_empty() {
        return Err("the task names no agent");
    }
    let provenance = Provenance::read(env_root).ok_or("it has no readable provenance")?;
    let marker = TaskMarker::read(work_dir).ok_or("it has no readable marker")?;
    if provenance.managed_by != ENV_MARK || marker.managed_by != TASK_MARK {
        return Err("it is not managed by a daemon");
    }
    if provenance.workspace_id != task.workspace_id {
        return Err("it is of another workspace");
    }
    if provenance.agent_id != agent || marker.agent_id != agent {
        return Err("it is of another agent");
    }
    let (wanted, has) = if !task.issue_id.is_empty() {
        (&task.issue_id, [&provenance.issue_id, &marker.issue_id])
    } else if !task.chat_session_id.is_empty() {
        (&task.chat_session_id, [&provenance.chat_session_id, &marker.chat_session_id])
    } else {
        return Err("the task is about no issue or chat");
    };
    if has.into_iter().all(|id| id == wanted) { Ok(()) } else { Err("it is about another issue or chat") }
}

/// The session to go on with, and whether the agent must be told that one was lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resume {
    /// The session's id, if it can go on.
    pub session_id: Option<String>,
    /// Whether there was one that cannot, or the server said so.
    pub is_lost: bool,
}

/// Keeps the earlier session only where its work directory is the very one that was prepared, told by identity and not
/// by name, and where its record is reachable (INV-87). A server's word that it is lost is never taken back.
pub fn resume(task: &Task, provider: &str, prepared: &Prepared) -> Resume {
    let session = &task.prior_session_id;
    let mut kept = !session.is_empty()
        && !task.prior_work_dir.is_empty()
        && Identity::at(Path::new(&task.prior_work_dir))
            .is_ok_and(|prior| prior == prepared.workdir_identity);
    if provider == "codex" {
        kept = kept && prepared.codex_home.as_deref().is_some_and(|home| codex::has_rollout(home, session));
    }
    Resume {
        session_id: kept.then(|| session.clone()),
        is_lost: task.prior_session_resume_unavailable || (!session.is_empty() && !kept),
    }
}

#[cfg(test)]
#[path = "reuse_tests.rs"]
mod tests;
