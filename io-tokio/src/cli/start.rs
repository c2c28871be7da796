//! When a daemon is not started, nor anything done to one.

use super::command::Command;
use crate::config::{Env, Settings};
use crate::secret::Secret;
use crate::trace::TraceCommand;
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use thiserror::Error;

const MARKER: &str = ".multica/daemon_task_context.json";
const MARKED_BY: &str = "multica-daemon-task";
/// A longer file is no marker.
const MAX_MARKER_BYTES: u64 = 64 * 1024;
const TASK_VARIABLES: [&str; 3] = ["MULTICA_AGENT_ID", "MULTICA_TASK_ID", "MULTICA_TASK_CONFIG_ROOT"];

/// Why nothing is done.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum StartRefusal {
    /// An agent would start or stop the daemon of its user, or read its log or its trace.
    #[error("`longshore {command}` does nothing inside of a task ({signal}); use a shell of your own")]
    InTask {
        /// What was to be done.
        command: &'static str,
        /// What says that this is a task.
        signal: String,
    },
    /// Nobody has logged in.
    #[error(
        "no token in {}: log in with `multica login{}`, or write the token into that file as \"token\"",
        config.display(), profile_flag(profile)
    )]
    NoToken {
        /// The config file without a token.
        config: PathBuf,
        /// The profile's name; empty for the default one.
        profile: String,
    },
}

fn profile_flag(profile: &str) -> String {
    if profile.is_empty() { String::new() } else { format!(" --profile {profile}") }
}

/// What can be told before the settings are read.
pub(super) fn check(command: &Command, env: &Env, cwd: &Path) -> Result<(), StartRefusal> {
    let command = match command {
        Command::DaemonStart(_) => "daemon start",
        Command::DaemonStop(_) => "daemon stop",
        Command::DaemonRestart(_) => "daemon restart",
        Command::DaemonLogs(_) => "daemon logs",
        // It tells of the tasks of others.
        Command::Trace(TraceCommand::Dump(_)) => "trace dump",
        // An agent may ask how the daemon is that runs it.
        _ => return Ok(()),
    };
    match task_signal(env, cwd) {
        Some(signal) => Err(StartRefusal::InTask { command, signal }),
        None => Ok(()),
    }
}

/// What says that this process belongs to a task: a variable that tasks get, or a marker in the current directory
/// or one above it. The text names it for people.
pub fn task_signal(env: &Env, cwd: &Path) -> Option<String> {
    let set = |name: &&&str| env.path(name).is_some();
    if let Some(name) = TASK_VARIABLES.iter().find(set) {
        return Some(format!("{name} is set"));
    }
    let marker = cwd.ancestors().map(|dir| dir.join(MARKER)).find(|path| is_marker(path))?;
    Some(format!(
        "{} marks its directory as one of a task; remove it if it was left behind",
        marker.display()
    ))
}

fn is_marker(path: &Path) -> bool {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_MARKER_BYTES).read_to_end(&mut bytes));
    read.is_ok() && serde_json::from_slice::<Value>(&bytes).is_ok_and(|v| v["managed_by"] == MARKED_BY)
}

/// The daemon's credential.
///
/// # Errors
/// There is none.
pub fn require_token(settings: &Settings) -> Result<&Secret, StartRefusal> {
    if settings.token.is_empty() {
        return Err(StartRefusal::NoToken {
            config: settings.dirs.profile.join("config.json"),
            profile: settings.profile.name().to_owned(),
        });
    }
    Ok(&settings.token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Flags;

    #[test]
    fn inside_of_a_task_no_daemon_is_started() {
        let nowhere = Path::new("/missing");
        for name in TASK_VARIABLES {
            let signal = task_signal(&Env::from_pairs([(name, "x")]), nowhere).expect("a task");
            assert!(signal.contains(name), "{signal}");
        }
        let outside = Env::from_pairs([("MULTICA_TASK_ID", " "), ("MULTICA_DAEMON_PORT", "19514")]);
        assert_eq!(task_signal(&outside, nowhere), None);
    }

    #[test]
    fn a_marker_above_the_current_directory_counts_and_is_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let below = dir.path().join("a/b");
        std::fs::create_dir_all(&below).expect("directories");
        std::fs::create_dir(dir.path().join(".multica")).expect("a directory");
        let marker = dir.path().join(MARKER);
        std::fs::write(&marker, r#"{"managed_by":"someone"}"#).expect("written");
        assert_eq!(task_signal(&Env::default(), &below), None);
        std::fs::write(&marker, r#"{"managed_by":"multica-daemon-task","issue_id":"i"}"#).expect("written");
        let signal = task_signal(&Env::default(), &below).expect("a task");
        assert!(signal.contains(&marker.display().to_string()), "{signal}");
    }

    #[test]
    fn cli_61_without_a_token_the_hint_names_profile_and_file() {
        let home = tempfile::tempdir().expect("a directory");
        let env = Env::from_pairs([("HOME", home.path())]);
        let refusal = |profile: &str| {
            let flags = Flags { profile: profile.into(), ..Flags::default() };
            let settings = Settings::load(&flags, &env, Path::new("/")).expect("settings");
            require_token(&settings).expect_err("no token").to_string()
        };
        let named = refusal("dev");
        assert!(
            named.contains("multica login --profile dev`") && named.contains("profiles/dev/config.json"),
            "{named}"
        );
        assert!(refusal("").contains("multica login`"));
    }
}
