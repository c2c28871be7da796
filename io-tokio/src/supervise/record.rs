//! A run's directory: the only link between a run and the daemons that come and go.
//!
//! | file | what it is |
//! |---|---|
//! | `status.json` | [`Status`], written before the agent starts |
//! | `exit.json` | [`ExitRecord`], written when the last process of the run is gone |
//! | `stdout`, `stderr` | spools: all that the agent wrote; space before the acknowledged offset may be a hole |
//! | `control` | FIFO: commands to the supervisor, one JSON text a line |
//! | `stdin` | FIFO: what the agent reads after the prompt |
//! | `prompt` | what the agent reads first |
//! | `alive` | the run's marker; locked by the supervisor for as long as it lives, or by a daemon that gives the launch up |
//! | `owner.json` | [`Owner`]: which daemon has the run |
//!
//! The directory is 0700 and everything in it 0600.

use crate::regular;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Version of `status.json` and `exit.json`.
pub const VERSION: u32 = 1;

/// The environment variable that marks the processes of a run; its value is [`Status::marker`].
pub const MARKER_VARIABLE: &str = "LONGSHORE_RUN";
/// Bytes of a record at most: some hundred are usual, and a command line for each process that was left.
const MOST: u64 = 16 << 20;

/// A process with the proof that its number was not given to another one since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The process id.
    pub pid: i32,
    /// When it started, in clock ticks since boot; absent where the system does not tell.
    pub started: Option<u64>,
}

/// A process that was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// The process id.
    pub pid: i32,
    /// The name of its program as the system shows it, at most 15 bytes on Linux.
    pub command: String,
}

/// `status.json`: whose run this is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// [`VERSION`].
    pub version: u32,
    /// The task, as the server names it.
    pub task: String,
    /// Which attempt at the task this is, from the daemon's count.
    pub attempt: u32,
    /// The supervisor.
    pub supervisor: Identity,
    /// The agent, which is also the leader of a session and group of its own.
    pub agent: Identity,
    /// The kernel's boot id: after a reboot process ids mean nothing.
    pub boot_id: Option<String>,
    /// Random value of [`MARKER_VARIABLE`] in the environment of the run's processes.
    pub marker: String,
    /// Bytes that one spool may be ahead of what is acknowledged.
    pub spool_budget: u64,
    /// The directory of the run's own control group, where it has one.
    #[serde(default)]
    pub cgroup: Option<PathBuf>,
}

/// `owner.json`: the daemon that has the run, written by itself at the launch and when it takes the run over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// [`VERSION`].
    pub version: u32,
    /// The daemon.
    pub daemon: Identity,
    /// The run's supervisor.
    pub supervisor: Identity,
    /// The kernel's boot id: after a reboot process ids mean nothing.
    pub boot_id: Option<String>,
}

impl Owner {
    /// This process as the daemon of a run.
    pub(super) fn this_process(supervisor: Identity) -> Self {
        let me = i32::try_from(std::process::id()).unwrap_or(0);
        Self { version: VERSION, daemon: Identity::of(me), supervisor, boot_id: boot_id() }
    }

    /// Whether the daemon is still there.
    pub(super) fn lives(&self) -> bool {
        #[cfg(target_os = "linux")]
        let lives = super::procfs::living(&self.daemon, self.boot_id.as_deref()).is_some();
        // Nothing tells.
        #[cfg(not(target_os = "linux"))]
        let lives = true;
        lives
    }
}

impl Identity {
    /// The process that has this id now.
    pub(super) fn of(pid: i32) -> Self {
        #[cfg(target_os = "linux")]
        let identity = super::procfs::identity(pid);
        #[cfg(not(target_os = "linux"))]
        let identity = Self { pid, started: None };
        identity
    }
}

/// The kernel's boot id, where there is one.
pub(super) fn boot_id() -> Option<String> {
    #[cfg(target_os = "linux")]
    let id = super::procfs::boot_id();
    #[cfg(not(target_os = "linux"))]
    let id = None;
    id
}

/// Who ended a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// The agent exited, or died of something that was not ours.
    Itself,
    /// [`end`](super::Run::end): the polite signal, and the kill if that was not enough.
    Cancel,
    /// [`kill`](super::Run::kill).
    Kill,
    /// A signal that asked the supervisor to stop, from outside of longshore.
    SupervisorStopped,
    /// The agent never started.
    LaunchFailed,
    /// The supervisor itself is gone without a record; what was left of the run was killed by the daemon and is named as
    /// leftovers. Also after a restart of the machine, which the note says: then nothing was left and nothing was signalled.
    SupervisorLost,
}

/// `exit.json`: how a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitRecord {
    /// [`VERSION`].
    pub version: u32,
    /// The agent's exit code, when it ended by itself.
    pub code: Option<i32>,
    /// The signal that ended the agent.
    pub signal: Option<i32>,
    /// Who ended the run.
    pub ended_by: EndedBy,
    /// What was still running when the agent had exited, and was ended by us; at most 64 are named.
    pub leftovers: Vec<Process>,
    /// What could not be killed in 10 s (a process in uninterruptible sleep); at most 64 are named.
    pub unkilled: Vec<Process>,
    /// Length of the `stdout` spool in bytes.
    pub stdout_len: u64,
    /// Length of the `stderr` spool in bytes.
    pub stderr_len: u64,
    /// Bytes that were read from the agent and could not be written to the disk, even after waiting.
    pub lost_output: u64,
    /// A trouble that a person should know of.
    pub note: Option<String>,
}

impl ExitRecord {
    /// A record with nothing in it but who ended the run.
    pub fn new(ended_by: EndedBy) -> Self {
        Self {
            version: VERSION,
            code: None,
            signal: None,
            ended_by,
            leftovers: Vec::new(),
            unkilled: Vec::new(),
            stdout_len: 0,
            stderr_len: 0,
            lost_output: 0,
            note: None,
        }
    }

    /// Whether the agent exited with code 0 by itself.
    pub fn success(&self) -> bool {
        self.ended_by == EndedBy::Itself && self.code == Some(0)
    }
}

/// The paths inside a run directory.
#[derive(Clone, Debug)]
pub struct RunDir(PathBuf);

impl RunDir {
    /// Takes the directory, which may not exist yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// One of its files.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Reads `status.json`.
    ///
    /// # Errors
    /// `InvalidData` when it is not of [`VERSION`], and whatever reading gives.
    pub fn status(&self) -> io::Result<Status> {
        read_json(&self.file("status.json"))
    }

    /// Reads `owner.json`.
    ///
    /// # Errors
    /// `InvalidData` when it is not of [`VERSION`], and whatever reading gives.
    pub fn owner(&self) -> io::Result<Owner> {
        read_json(&self.file("owner.json"))
    }

    pub(super) fn write_owner(&self, owner: &Owner) -> io::Result<()> {
        self.write_json("owner.json", owner)
    }

    /// Reads `exit.json`; `None` while there is none.
    ///
    /// # Errors
    /// `InvalidData` when it is not of [`VERSION`], and whatever reading gives.
    pub fn exit(&self) -> io::Result<Option<ExitRecord>> {
        match read_json(&self.file("exit.json")) {
            Ok(record) => Ok(Some(record)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The run's marker, as it was written before the launch.
    pub(super) fn marker(&self) -> io::Result<String> {
        let bytes = regular::read(&self.file("alive"), MOST)?;
        String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// Whether a supervisor holds the `alive` lock. A directory without the file has none.
    ///
    /// # Errors
    /// Whatever opening or locking gives, other than that the file is missing.
    pub fn is_supervised(&self) -> io::Result<bool> {
        let file = match regular::open(OpenOptions::new().read(true), &self.file("alive")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            other => other?,
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(fs::TryLockError::WouldBlock) => Ok(true),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }

    /// Removes the directory with everything in it; one that is not there is no error.
    ///
    /// # Errors
    /// Whatever removing gives.
    pub fn remove(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    /// Has the disk keep a file of ours, also when the power fails. What was removed meanwhile needs no keeping.
    pub(super) fn sync(&self, name: &str) {
        for path in [self.file(name), self.0.clone()] {
            let _ = File::open(path).and_then(|file| file.sync_all());
        }
    }

    /// Writes a file of ours so that a reader sees all of it or none.
    pub(super) fn write_json(&self, name: &str, value: &impl Serialize) -> io::Result<()> {
        let temporary = self.file(&format!("{name}.new"));
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        let mut text = serde_json::to_vec(value)?;
        text.push(b'\n');
        file.write_all(&text)?;
        drop(file);
        fs::rename(&temporary, self.file(name))
    }
}

#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

fn read_json<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    let text = regular::read(path, MOST)?;
    let invalid = |text: String| io::Error::new(io::ErrorKind::InvalidData, text);
    let name = path.display();
    let head: Versioned =
        serde_json::from_slice(&text).map_err(|error| invalid(format!("{name} is damaged: {error}")))?;
    if head.version != VERSION {
        return Err(invalid(format!("{name} has version {}; this program reads {VERSION}", head.version)));
    }
    serde_json::from_slice(&text).map_err(|error| invalid(format!("{name} is damaged: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_back_and_a_foreign_version_is_refused_with_both_numbers() {
        let dir = tempfile::tempdir().expect("a directory");
        let run = RunDir::new(dir.path());
        assert!(run.exit().expect("readable").is_none());
        let mut record = ExitRecord::new(EndedBy::Cancel);
        record.signal = Some(15);
        record.leftovers = vec![Process { pid: 7, command: "sleep".into() }];
        run.write_json("exit.json", &record).expect("written");
        assert_eq!(run.exit().expect("readable"), Some(record.clone()));
        assert!(!record.success());

        record.version = 9;
        run.write_json("exit.json", &record).expect("written");
        let text = run.exit().expect_err("a foreign version").to_string();
        assert!(text.contains("version 9") && text.contains("reads 1"), "{text}");
    }

    #[test]
    fn what_is_no_regular_file_is_not_waited_for() {
        let dir = tempfile::tempdir().expect("a directory");
        let run = RunDir::new(dir.path());
        for (name, read) in [
            ("status.json", (|run| run.status().map(drop)) as fn(&RunDir) -> io::Result<()>),
            ("owner.json", |run| run.owner().map(drop)),
            ("exit.json", |run| run.exit().map(drop)),
            ("alive", |run| run.is_supervised().map(drop)),
        ] {
            for what in regular::tests::intruders(&run.file(name)) {
                assert_eq!(
                    read(&run).expect_err(what).to_string(),
                    "it is no regular file",
                    "{name}: {what}"
                );
            }
        }
    }

    #[test]
    fn a_supervisor_is_seen_by_its_lock_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let run = RunDir::new(dir.path());
        assert!(!run.is_supervised().expect("no file"));
        let alive = File::create(run.file("alive")).expect("created");
        assert!(!run.is_supervised().expect("not locked"));
        alive.lock().expect("locked");
        assert!(run.is_supervised().expect("locked"));
    }
}
