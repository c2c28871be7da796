//! The end of a task on disk: what must not stay is taken out, and what garbage collection needs is written down.

use super::beneath::{Dir, Identity};
use super::error::{At, PrepareError};
use super::job::Prepared;
use super::layout::{self, GC_META, MCP_CONFIG};
use super::manifest;
use crate::brief;
use crate::wire::task::Task;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Largest metadata file that is read, in bytes.
const MAX_META: u64 = 64 * 1024;

/// What an environment was for, as garbage collection asks the server about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MetaKind {
    /// An issue; also what a file without a kind means.
    #[default]
    Issue,
    /// A chat.
    Chat,
    /// A run of an autopilot.
    AutopilotRun,
    /// A quick-create task.
    QuickCreate,
}

/// `.gc_meta.json`. Only the id that fits the kind means something.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Meta {
    /// What it was for.
    pub kind: MetaKind,
    /// The issue.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub issue_id: String,
    /// The chat session.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub chat_session_id: String,
    /// The autopilot run.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub autopilot_run_id: String,
    /// The task, for quick-create.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub task_id: String,
    /// The workspace.
    pub workspace_id: String,
    /// When the task ended, RFC 3339 in UTC.
    pub completed_at: String,
    /// Whether it worked in a person's directory.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub local_directory: bool,
}

impl Meta {
    /// The metadata of a task, by the first of its ids; `None` for a task that is about nothing.
    pub fn of(task: &Task, local_directory: bool, completed_at: Timestamp) -> Option<Self> {
        let mut meta = Self {
            workspace_id: task.workspace_id.clone(),
            completed_at: completed_at.to_string(),
            local_directory,
            ..Self::default()
        };
        if !task.chat_session_id.is_empty() {
            meta.kind = MetaKind::Chat;
            meta.chat_session_id.clone_from(&task.chat_session_id);
        } else if !task.autopilot_run_id.is_empty() {
            meta.kind = MetaKind::AutopilotRun;
            meta.autopilot_run_id.clone_from(&task.autopilot_run_id);
        } else if !task.issue_id.is_empty() {
            meta.issue_id.clone_from(&task.issue_id);
        } else if !task.quick_create_prompt.is_empty() {
            meta.kind = MetaKind::QuickCreate;
            meta.task_id.clone_from(&task.id);
        } else {
            return None;
        }
        Some(meta)
    }

    /// The metadata of an env root; `None` if there is none or it cannot be understood.
    pub fn read(env_root: &Dir) -> Option<Self> {
        serde_json::from_slice(&env_root.read(GC_META, MAX_META).ok()??).ok()
    }
}

/// Writes the metadata of an ended task into the env root that it ran in, in one step.
/// [`PrepareError::Changed`] if that is no longer the directory that was prepared.
pub fn write_meta(prepared: &Prepared, meta: &Meta) -> Result<(), PrepareError> {
    let root = &prepared.root;
    let env_root =
        open_same(root, prepared.identity)?.ok_or_else(|| PrepareError::Changed { path: root.clone() })?;
    let bytes = serde_json::to_vec(meta).map_err(|error| PrepareError::Job { reason: error.to_string() })?;
    env_root.replace(GC_META, &bytes, layout::FILE).at("write", root.join(GC_META))
}

/// Takes out of an environment what must not outlive the run: the secret MCP file, and from a person's directory
/// everything that was put there. A managed work directory keeps its files for the next turn. May be called again.
pub fn unwind(prepared: &Prepared, provider: &str) -> Result<(), PrepareError> {
    let shared = prepared.shared_directory;
    let local = prepared.local_directory.then_some(Theirs { real: &prepared.workdir, shared });
    unwind_at(&prepared.root, prepared.identity, local, provider)
}

/// A person's directory that a task worked in, or was to.
#[derive(Clone, Copy, Debug)]
pub struct Theirs<'a> {
    /// Where it is.
    pub real: &'a Path,
    /// Whether the task was a guest beside others: the brief in there is not its own.
    pub shared: bool,
}

/// The same for a preparation whose helper was killed, so that there is no [`Prepared`]: `root` and `identity` are
/// those of the claim, `local` is the person's directory if it was to be one. A root that is gone is no error.
pub fn unwind_at(
    root: &Path,
    identity: Identity,
    local: Option<Theirs<'_>>,
    provider: &str,
) -> Result<(), PrepareError> {
    let Some(env_root) = open_same(root, identity)? else { return Ok(()) };
    let secret = env_root.unlink(MCP_CONFIG).map(drop).at("remove", root.join(MCP_CONFIG));
    let Some(Theirs { real: workdir, shared }) = local else { return secret };
    let real = std::fs::canonicalize(workdir).at("open", workdir)?;
    let work_dir = Dir::open(&real).at("open", &real)?;
    let brief = match brief::file_name(provider) {
        Some(name) if !shared => brief::block::remove(&work_dir, name),
        _ => Ok(()),
    };
    manifest::roll_back(&env_root, &work_dir, &[&real, workdir], None).and(brief).and(secret)
}

/// Opens a directory that must still be the one it was: an agent can put a link in its place.
fn open_same(root: &Path, identity: Identity) -> Result<Option<Dir>, PrepareError> {
    let dir = match Dir::open(root) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened.at("open", root)?,
    };
    if dir.identity().at("look at", root)? == identity {
        Ok(Some(dir))
    } else {
        Err(PrepareError::Changed { path: root.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(json: &str, local: bool) -> Option<String> {
        let task: Task = serde_json::from_str(json).expect("a task");
        let at = "2026-01-02T03:04:05.123456789Z".parse().expect("a time");
        Meta::of(&task, local, at).map(|meta| serde_json::to_string(&meta).expect("strings"))
    }

    #[test]
    fn the_kind_is_the_first_id_in_the_servers_order() {
        let tail = r#""workspace_id":"w","completed_at":"2026-01-02T03:04:05.123456789Z""#;
        let all = r#"{"id":"t","workspace_id":"w","chat_session_id":"c","autopilot_run_id":"r","issue_id":"i","quick_create_prompt":"q"}"#;
        assert_eq!(meta(all, false), Some(format!(r#"{{"kind":"chat","chat_session_id":"c",{tail}}}"#)));
        let all = all.replace(r#""chat_session_id":"c","#, "");
        assert_eq!(
            meta(&all, false),
            Some(format!(r#"{{"kind":"autopilot_run","autopilot_run_id":"r",{tail}}}"#))
        );
        let all = all.replace(r#""autopilot_run_id":"r","#, "");
        assert_eq!(
            meta(&all, true),
            Some(format!(r#"{{"kind":"issue","issue_id":"i",{tail},"local_directory":true}}"#))
        );
        let all = all.replace(r#""issue_id":"i","#, "");
        assert_eq!(meta(&all, false), Some(format!(r#"{{"kind":"quick_create","task_id":"t",{tail}}}"#)));
        assert_eq!(meta(r#"{"id":"t","workspace_id":"w"}"#, false), None);
    }

    #[test]
    fn metadata_is_written_in_one_step_and_read_leniently() {
        let temp = tempfile::tempdir().expect("temp");
        let root = Dir::open(temp.path()).expect("open");
        assert_eq!(Meta::read(&root), None);
        std::fs::write(temp.path().join(GC_META), r#"{"issue_id":"i","unknown":1,"workspace_id":"w"}"#)
            .expect("file");
        let old = Meta::read(&root).expect("without a kind it is an issue");
        assert_eq!((old.kind, old.issue_id.as_str()), (MetaKind::Issue, "i"));
        let identity = root.identity().expect("open");
        let prepared = prepared(temp.path(), identity);
        write_meta(&prepared, &Meta { task_id: "t".into(), ..Meta::default() }).expect("written");
        assert_eq!(Meta::read(&root).expect("new").task_id, "t");
        assert_eq!(root.names().expect("names"), [GC_META]);
    }

    #[test]
    fn bug_42_an_env_root_that_the_agent_exchanged_gets_nothing_written() {
        let temp = tempfile::tempdir().expect("temp");
        let (root, victim) = (temp.path().join("root"), temp.path().join("victim"));
        std::fs::create_dir(&root).expect("root");
        std::fs::create_dir(&victim).expect("victim");
        std::fs::write(victim.join(MCP_CONFIG), "x").expect("file");
        let prepared = prepared(&root, Identity::at(&root).expect("there"));
        std::fs::rename(&root, temp.path().join("moved")).expect("moved");
        assert_eq!(write_meta(&prepared, &Meta::default()).expect_err("gone").kind(), "changed");
        unwind(&prepared, "claude").expect("nothing is left to take out");
        std::os::unix::fs::symlink(&victim, &root).expect("link");
        assert_eq!(write_meta(&prepared, &Meta::default()).expect_err("a link").kind(), "changed");
        assert_eq!(unwind(&prepared, "claude").expect_err("a link").kind(), "changed");
        assert_eq!(std::fs::read_dir(&victim).expect("list").count(), 1);
    }

    fn prepared(root: &Path, identity: Identity) -> Prepared {
        Prepared {
            root: root.to_owned(),
            identity,
            workdir: root.join("workdir"),
            workdir_identity: identity,
            reused: false,
            local_directory: false,
            shared_directory: false,
            cli_config: root.join("multica-config"),
            codex_home: None,
            claude_settings: None,
            mcp_config: None,
            brief: String::new(),
            warnings: Vec::new(),
        }
    }
}
