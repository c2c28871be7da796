//! Names and modes on disk, shared with every other daemon that may work on the same workspaces root.

use longshore_core::id::{EnvRoot, is_safe_component};
use std::path::{Path, PathBuf};

/// Whose env root it is: the raw task id, no newline.
pub const OWNER: &str = ".task_owner";
/// The file whose `flock` says that an execution is alive.
pub const LOCK: &str = ".task_lock";
/// Provenance of a managed environment.
pub const PROVENANCE: &str = ".managed_env.json";
/// What garbage collection needs to know.
pub const GC_META: &str = ".gc_meta.json";
/// What was put into the work directory beside the agent's work.
pub const MANIFEST: &str = ".multica_sidecar_manifest.json";
/// Where the agent works.
pub const WORKDIR: &str = "workdir";
/// For results.
pub const OUTPUT: &str = "output";
/// For logs.
pub const LOGS: &str = "logs";
/// Private config of the `multica` CLI, 0700.
pub const CLI_CONFIG: &str = "multica-config";
/// Private home of codex.
pub const CODEX_HOME: &str = "codex-home";
/// Settings of claude that hide skills, 0600.
pub const CLAUDE_SETTINGS: &str = "claude-runtime-skill-settings.json";
/// MCP servers of claude, codebuddy and qwen, 0600, removed when the run ends.
pub const MCP_CONFIG: &str = "mcp-config.json";
/// Folder of markers, at the workspaces root and in each work directory.
pub const MULTICA_DIR: &str = ".multica";
/// The marker in it.
pub const MARKER: &str = "daemon_task_context.json";
/// Folder of the pointer file for agents.
pub const AGENT_CONTEXT: &str = ".agent_context";
/// The pointer file.
pub const POINTER: &str = "issue_context.md";

/// Mode of directories whose mode the layout fixes as public.
pub const DIR: u32 = 0o755;
/// Mode of the env root itself and of what is private in it: so that what lies below is the owner's alone.
pub const PRIVATE_DIR: u32 = 0o700;
/// Mode of files that hold no secret.
pub const FILE: u32 = 0o644;
/// Mode of files that may hold one.
pub const PRIVATE_FILE: u32 = 0o600;

/// Characters kept of a task id.
const KEY_LEN: usize = 12;

/// Name of a task's directory: its id without dashes, of which the last 12 characters. Not the first, since ids
/// are time-ordered and neighbours would share them (#7326). `None` if that is no name for a directory.
pub fn task_key(task_id: &str) -> Option<String> {
    if !is_safe_component(task_id) {
        return None;
    }
    let bare: String = task_id.chars().filter(|c| *c != '-').collect();
    let key = bare[bare.len().saturating_sub(KEY_LEN)..].to_owned();
    is_directory_name(&key).then_some(key)
}

/// Where a task's environment is going to be, below the workspaces root. `None` if an id is no safe path
/// component, or begins with a dot, as such names belong to caches.
pub fn predicted_root(workspace_id: &str, task_id: &str) -> Option<EnvRoot> {
    let key = task_key(task_id)?;
    is_directory_name(workspace_id).then(|| EnvRoot::new(format!("{workspace_id}/{key}")))
}

/// The env root that a work directory is in, told from the texts alone, so that it can be marked before anything
/// is looked at. `roots` are the spellings of the workspaces root: as configured, and with links resolved.
pub fn prior_root(roots: &[&Path], work_dir: &str) -> Option<EnvRoot> {
    let below = roots.iter().find_map(|root| Path::new(work_dir).strip_prefix(root).ok())?;
    let parts: Vec<&str> = below.iter().map(|part| part.to_str()).collect::<Option<_>>()?;
    match parts[..] {
        [workspace, key, WORKDIR] if is_directory_name(workspace) && is_directory_name(key) => {
            Some(EnvRoot::new(format!("{workspace}/{key}")))
        }
        _ => None,
    }
}

/// The directory of an env root.
pub fn path_of(workspaces_root: &Path, root: &EnvRoot) -> PathBuf {
    workspaces_root.join(root.as_str())
}

fn is_directory_name(text: &str) -> bool {
    is_safe_component(text) && !text.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(workspace: &str, task: &str) -> Option<String> {
        predicted_root(workspace, task).map(|root| root.as_str().to_owned())
    }

    #[test]
    fn bug_37_the_key_is_the_random_tail_of_the_id() {
        assert_eq!(root("ws", "0197a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b").as_deref(), Some("ws/0c1d2e3f4a5b"));
        assert_eq!(root("ws", "task-1").as_deref(), Some("ws/task1"));
        assert_eq!(root("ws", "abcdefabcdef").as_deref(), Some("ws/abcdefabcdef"));
        let (a, b) = ("0197a1b2-c3d4-7e5f-8a9b-0c1d2e3f0001", "0197a1b2-c3d4-7e5f-8a9b-0c1d2e3f0002");
        assert_ne!(root("ws", a), root("ws", b));
    }

    #[test]
    fn ids_that_are_no_directory_name_have_no_root() {
        for (workspace, task) in [
            ("", "t"),
            ("ws", ""),
            ("ws", "-"),
            ("ws", "-.."),
            ("..", "t"),
            ("a/b", "t"),
            ("ws", "../x"),
            (".repos", "t"),
        ] {
            assert_eq!(root(workspace, task), None, "{workspace:?} {task:?}");
        }
    }

    #[test]
    fn a_prior_root_is_read_off_any_spelling_of_the_workspaces_root() {
        let roots = [Path::new("/link"), Path::new("/real")];
        let of = |dir| prior_root(&roots, dir).map(|root| root.as_str().to_owned());
        assert_eq!(of("/real/ws/k/workdir").as_deref(), Some("ws/k"));
        assert_eq!(of("/link/ws/k/workdir").as_deref(), Some("ws/k"));
        for dir in [
            "/real/ws/k",
            "/real/ws/k/work",
            "/real/ws/../k/workdir",
            "/other/ws/k/workdir",
            "",
            "/real/.multica/k/workdir",
        ] {
            assert_eq!(of(dir), None, "{dir}");
        }
    }
}
