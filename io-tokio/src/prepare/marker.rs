//! The small JSON files that say what is managed by a daemon, and for whom.

use super::beneath::Dir;
use super::error::{At, PrepareError};
use super::layout::{self, MARKER, MULTICA_DIR, PROVENANCE};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// `managed_by` of the markers that put the `multica` CLI into its fail-closed mode.
pub const TASK_MARK: &str = "multica-daemon-task";
/// `managed_by` of the provenance file.
pub const ENV_MARK: &str = "multica-daemon-managed-env";
/// Largest marker that is read, in bytes.
const MAX_MARKER: u64 = 64 * 1024;

/// Marker in a work directory: whose task works there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskMarker {
    /// [`TASK_MARK`] if it is ours.
    pub managed_by: String,
    /// The agent.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub agent_id: String,
    /// The issue, if it is about one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub issue_id: String,
    /// The chat session, if it is one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub chat_session_id: String,
}

impl TaskMarker {
    /// As it is written: two spaces, no newline at the end.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("strings only")
    }

    /// The marker of a work directory; `None` if there is none or it cannot be understood.
    pub fn read(work_dir: &Dir) -> Option<Self> {
        let folder = work_dir.child(MULTICA_DIR).ok()??;
        serde_json::from_slice(&folder.read(MARKER, MAX_MARKER).ok()??).ok()
    }
}

/// Provenance of a managed environment, in the env root: it is no user's directory, and for whom it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Provenance {
    /// [`ENV_MARK`] if it is ours.
    pub managed_by: String,
    /// The workspace.
    pub workspace_id: String,
    /// The issue, if it is about one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub issue_id: String,
    /// The chat session, if it is one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub chat_session_id: String,
    /// The agent.
    pub agent_id: String,
}

impl Provenance {
    /// As it is written: compact.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("strings only")
    }

    /// The provenance of an env root; `None` if there is none or it cannot be understood.
    pub fn read(env_root: &Dir) -> Option<Self> {
        serde_json::from_slice(&env_root.read(PROVENANCE, MAX_MARKER).ok()??).ok()
    }
}

/// Makes sure that the workspaces root carries the marker which tells the `multica` CLI that it is inside a task even
/// if all variables are lost. A valid one is left as it is, one that nobody can read is written again.
///
/// [`PrepareError::Foreign`] if it belongs to somebody else; it is not touched then.
pub fn ensure_root_marker(workspaces_root: &Path) -> Result<(), PrepareError> {
    std::fs::create_dir_all(workspaces_root).at("create", workspaces_root)?;
    let top = Dir::open(workspaces_root).at("open", workspaces_root)?;
    let folder = top.ensure(MULTICA_DIR, layout::DIR).at("open", workspaces_root.join(MULTICA_DIR))?;
    let path = folder.path().join(MARKER);
    if let Some(bytes) = folder.read(MARKER, MAX_MARKER).at("read", &path)?
        && let Ok(marker) = serde_json::from_slice::<TaskMarker>(&bytes)
    {
        return if marker.managed_by == TASK_MARK { Ok(()) } else { Err(PrepareError::Foreign { path }) };
    }
    let marker = TaskMarker { managed_by: TASK_MARK.to_owned(), ..TaskMarker::default() };
    folder.replace(MARKER, &marker.to_bytes(), layout::FILE).at("write", &path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn path(root: &Path) -> std::path::PathBuf {
        root.join(MULTICA_DIR).join(MARKER)
    }

    #[test]
    fn root_1_and_2_a_valid_marker_stays_and_a_broken_one_is_written_again() {
        let temp = tempfile::tempdir().expect("temp");
        ensure_root_marker(temp.path()).expect("made");
        let text = fs::read_to_string(path(temp.path())).expect("marker");
        assert_eq!(text, "{\n  \"managed_by\": \"multica-daemon-task\"\n}");
        let before = fs::metadata(path(temp.path())).expect("meta").modified().expect("time");
        ensure_root_marker(temp.path()).expect("kept");
        assert_eq!(fs::metadata(path(temp.path())).expect("meta").modified().expect("time"), before);
        fs::write(path(temp.path()), "{").expect("broken");
        ensure_root_marker(temp.path()).expect("written again");
        assert_eq!(fs::read_to_string(path(temp.path())).expect("marker"), text);
    }

    #[test]
    fn root_3_a_foreign_marker_is_an_error_and_stays() {
        let temp = tempfile::tempdir().expect("temp");
        fs::create_dir(temp.path().join(MULTICA_DIR)).expect("dir");
        fs::write(path(temp.path()), r#"{"managed_by":"somebody"}"#).expect("foreign");
        assert_eq!(ensure_root_marker(temp.path()).expect_err("foreign").kind(), "foreign");
        assert_eq!(fs::read_to_string(path(temp.path())).expect("same"), r#"{"managed_by":"somebody"}"#);
    }

    #[test]
    fn files_have_the_keys_that_other_daemons_read() {
        let provenance = Provenance {
            managed_by: ENV_MARK.into(),
            workspace_id: "w".into(),
            issue_id: "i".into(),
            agent_id: "a".into(),
            ..Provenance::default()
        };
        assert_eq!(
            String::from_utf8(provenance.to_bytes()).expect("text"),
            r#"{"managed_by":"multica-daemon-managed-env","workspace_id":"w","issue_id":"i","agent_id":"a"}"#
        );
    }
}
