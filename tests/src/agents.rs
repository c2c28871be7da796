//! The agent programs that a private home has.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A session that the `claude` of a private home refuses to resume, as one that it does not know.
pub const CLAUDE_SESSION_LOST: &str = "lost-session";

/// A variable in a task's environment that names the work that it belongs to: no two agents for the same work may be alive at once, see
/// [`Home::overlapping_agents`](crate::Home::overlapping_agents).
pub const AGENT_WORK: &str = "AGENT_WORK";

/// One start of an agent for a task; starts that only ask for the version are none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The task's id.
    pub task: String,
    /// The arguments, with blanks between them.
    pub arguments: String,
}

/// The folder with the programs, and the list of their starts.
#[derive(Debug)]
pub(crate) struct Agents {
    dir: PathBuf,
    starts: PathBuf,
    overlaps: PathBuf,
}

impl Agents {
    /// Makes the folder, with a `claude` that is the agent double of `executable`.
    pub(crate) fn new(dir: PathBuf, executable: &Path) -> Self {
        fs::create_dir(&dir).expect("a folder");
        let agents = Self { starts: dir.join("starts"), overlaps: dir.join("overlaps"), dir };
        let double = format!(
            r#"case "$*" in
*--version*) ;;
*) printf '%s %s\n' "$MULTICA_TASK_ID" "$*" >> '{starts}'
    if [ -n "${WORK}" ]; then
        exec 9>> '{dir}/alive-'"${WORK}"
        flock -n 9 || printf '%s\n' "$MULTICA_TASK_ID" >> '{overlaps}'
    fi ;;
esac
case "$*" in
*'--resume {CLAUDE_SESSION_LOST}'*) echo 'No conversation found with session ID: {CLAUDE_SESSION_LOST}' >&2; exit 1 ;;
esac
exec '{executable}' agent-double "$@"
"#,
            starts = agents.starts.display(),
            dir = agents.dir.display(),
            overlaps = agents.overlaps.display(),
            WORK = AGENT_WORK,
            executable = executable.display(),
        );
        agents.add("claude", &double);
        agents
    }

    /// Adds a program: a shell script.
    pub(crate) fn add(&self, name: &str, script: &str) {
        let path = self.path(name);
        fs::write(&path, format!("#!/bin/sh\n{script}")).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("made executable");
    }

    /// Puts a program there at once or not at all, in place of one that there may be. Another process writes the file: while this one forks
    /// in other tests, a file that it has open for writing cannot be run.
    pub(crate) fn install(&self, name: &str, content: &str) {
        let write = r#"printf '%s' "$2" > "$1.new" && chmod 755 "$1.new" && mv "$1.new" "$1""#;
        let status = Command::new("/bin/sh")
            .args(["-c", write, "sh"])
            .arg(self.path(name))
            .arg(content)
            .status()
            .expect("a shell");
        assert!(status.success(), "{name} is installed");
    }

    /// Where a program is.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The tasks whose agent was started while another one for the same work was alive.
    pub(crate) fn overlaps(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.overlaps).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The starts so far, oldest first.
    pub(crate) fn starts(&self) -> Vec<Invocation> {
        let text = fs::read_to_string(&self.starts).unwrap_or_default();
        text.lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(task, arguments)| Invocation { task: task.into(), arguments: arguments.into() })
            .collect()
    }
}
