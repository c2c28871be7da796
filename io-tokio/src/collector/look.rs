//! What is known of a directory without asking anybody.

use super::asked::Question;
use crate::prepare::Dir;
use crate::prepare::layout::{CODEX_HOME, GC_META, OWNER, PROVENANCE};
use crate::prepare::seal::{Meta, MetaKind};
use crate::wire::gc;
use jiff::Timestamp;
use longshore_core::id::{EnvRoot, is_safe_component};
use rustix::fs::FileType;
use std::ffi::OsStr;
use std::io;

/// A folder in codex's home with copies of its program, which it makes again.
pub(super) const MANAGED: &str = ".sandbox-bin";

/// A directory as it is on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// What the server can be asked about it; `None` if nothing says what it was for.
    pub question: Option<Question>,
    /// When its task ended, if that was noted.
    pub completed_at: Option<Timestamp>,
    /// Whether the task worked in a person's directory, which is not in this one.
    pub local: bool,
    /// When something was last made in it or taken out of it.
    pub touched_at: Timestamp,
    /// When the note on what it was for was written.
    pub noted_at: Option<Timestamp>,
    /// Whether codex has left copies of its program in it.
    pub has_managed: bool,
}

/// Opens a directory of the workspaces root, and the workspace's above it. `None` if it is not there. No link is followed.
pub(super) fn open(top: &Dir, root: &EnvRoot) -> io::Result<Option<(Dir, Dir)>> {
    let Some((workspace, key)) = root.as_str().split_once('/') else { return Ok(None) };
    if !(is_name(workspace) && is_name(key)) {
        return Ok(None);
    }
    let Some(above) = top.child(workspace)? else { return Ok(None) };
    let Some(dir) = above.child(key)? else { return Ok(None) };
    Ok(Some((above, dir)))
}

/// Whether a workspace or a task's directory can be called so. Names with a dot before them are those of caches.
pub(super) fn is_name(name: &str) -> bool {
    is_safe_component(name) && !name.starts_with('.')
}

/// Whether a daemon has made it: one of the files that only daemons write is there.
pub(super) fn is_marked(dir: &Dir) -> bool {
    [OWNER, GC_META, PROVENANCE]
        .into_iter()
        .any(|name| matches!(dir.kind(name), Ok(Some(FileType::RegularFile))))
}

impl Look {
    /// Looks at a directory; `None` if there is none that a daemon has made.
    pub fn of(top: &Dir, root: &EnvRoot) -> io::Result<Option<Self>> {
        let Some((above, dir)) = open(top, root)? else { return Ok(None) };
        if !is_marked(&dir) {
            return Ok(None);
        }
        let workspace = above.path().file_name().map(OsStr::to_string_lossy).unwrap_or_default();
        Self::at(&dir, &workspace).map(Some)
    }

    /// Looks at an open directory of this workspace.
    pub fn at(dir: &Dir, workspace: &str) -> io::Result<Self> {
        let meta = Meta::read(dir);
        let touched_at = modified(dir, ".".as_ref())?.ok_or(io::ErrorKind::NotFound)?;
        Ok(Self {
            question: meta.as_ref().and_then(|meta| question(meta, workspace)),
            completed_at: meta.as_ref().and_then(|meta| gc::time(&meta.completed_at)),
            local: meta.as_ref().is_some_and(|meta| meta.local_directory),
            touched_at,
            noted_at: modified(dir, GC_META.as_ref())?,
            has_managed: managed(dir)?.is_some(),
        })
    }
}

/// The folder above codex's copies of its program, if they are there: real directories all the way.
pub(super) fn managed(dir: &Dir) -> io::Result<Option<Dir>> {
    if dir.kind(CODEX_HOME)? != Some(FileType::Directory) {
        return Ok(None);
    }
    let home = dir.child(CODEX_HOME)?;
    Ok(match home {
        Some(home) if home.kind(MANAGED)? == Some(FileType::Directory) => Some(home),
        _ => None,
    })
}

fn modified(dir: &Dir, name: &OsStr) -> io::Result<Option<Timestamp>> {
    Ok(dir.stat(name)?.and_then(|stat| Timestamp::from_second(stat.st_mtime).ok()))
}

/// What to ask; nothing if the id that counts is none.
fn question(meta: &Meta, workspace: &str) -> Option<Question> {
    let usable = |id: &String| is_safe_component(id).then(|| id.clone());
    Some(match meta.kind {
        MetaKind::Issue => {
            let workspace = if meta.workspace_id.is_empty() { workspace } else { &meta.workspace_id };
            let workspace = is_safe_component(workspace).then(|| workspace.to_owned())?;
            Question::Issue { workspace, id: usable(&meta.issue_id)? }
        }
        MetaKind::Chat => Question::Chat { id: usable(&meta.chat_session_id)? },
        MetaKind::AutopilotRun => Question::AutopilotRun { id: usable(&meta.autopilot_run_id)? },
        MetaKind::QuickCreate => Question::QuickCreate { id: usable(&meta.task_id)? },
    })
}
