//! `daemon start` without `--foreground`: starts this very program once more, and waits until it is up.

use super::detached::Startup;
use super::error::ControlError;
use super::health::{Health, Seen, other_user, probe};
use super::place::Place;
use super::running::collision;
use super::{preflight, say};
use crate::cli::{DaemonStart, Exit, LogTarget, require_token};
use crate::config::{Env, Flags, Settings};
use crate::local::interrupts::Interrupts;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// How long the new daemon is waited for. The desktop app gives the whole command a minute.
const UP: Duration = Duration::from_secs(45);
/// From the end of the new process's words to its own.
const REAPED: Duration = Duration::from_secs(10);
/// An error log of this size is put aside.
const ERROR_LOG_LIMIT: u64 = 5 << 20;
/// How much of what a process said that died without a word about it is read, …
const LAST_WORDS: u64 = 64 << 10;
/// … and how many lines are shown.
const LAST_LINES: usize = 5;
/// Ended by Ctrl-C.
const INTERRUPTED: Exit = Exit::Code(130);

/// Starts a daemon in the background.
///
/// # Errors
/// One runs already, something that it needs is not there, or the new process ended before it was up.
pub async fn start(start: &DaemonStart, env: &Env, cwd: &Path) -> Result<Exit, ControlError> {
    let mut interrupts = Interrupts::catch().map_err(ControlError::system("catch signals"))?;
    let settings = Settings::load(&start.flags, env, cwd)?;
    let place = Place::of(&settings);
    if let Seen::Daemon(health) = probe(place.port).await? {
        return Err(occupied(&place, &health));
    }
    require_token(&settings)?;
    for warning in &settings.warnings {
        say(format_args!("warning: {warning}"));
    }
    tokio::select! {
        reached = preflight::reach(&settings) => reached?,
        () = interrupts.next() => return Err(ControlError::Interrupted("nothing was started")),
    }

    let (errors, before) = open_error_log(&place)?;
    let mut child = spawn(start, cwd, &errors).map_err(ControlError::system("start the daemon"))?;
    let pid = child.id().unwrap_or_default();
    let label = place.label();
    let log = match start.log_target {
        Some(LogTarget::Stderr) => place.error_log(),
        _ => place.log_file(),
    };
    let told = tokio::select! {
        told = tokio::time::timeout(UP, words(&mut child)) => told,
        () = interrupts.next() => {
            say(format_args!("{label} (pid {pid}) goes on starting without this command; see `longshore daemon status`"));
            return Ok(INTERRUPTED);
        }
    };
    match told {
        Ok(Some(Startup::Running { pid, version })) => {
            say(format_args!("{label} started (pid {pid}, version {version})"));
            say(format_args!("Log: {}", log.display()));
            Ok(Exit::Success)
        }
        Ok(Some(Startup::Refused { why })) => {
            // So that whoever starts it once more at once does not meet it.
            let _ = tokio::time::timeout(REAPED, child.wait()).await;
            Err(ControlError::Died { why, log })
        }
        Ok(None) => {
            let status = tokio::time::timeout(REAPED, child.wait()).await;
            let why = died(status.ok().and_then(Result::ok), &last_lines(errors, before));
            Err(ControlError::Died { why, log: place.error_log() })
        }
        Err(_) => {
            say(format_args!(
                "{label} (pid {pid}) is still starting after {} s; it goes on trying, see `longshore daemon status`",
                UP.as_secs()
            ));
            say(format_args!("Log: {}", log.display()));
            Ok(Exit::Success)
        }
    }
}

fn occupied(place: &Place, health: &Health) -> ControlError {
    if let Some(owner) = other_user(place.port) {
        return ControlError::OtherUser { port: place.port, owner };
    }
    if !health.profile().fits(&place.profile) {
        return collision(place, health);
    }
    ControlError::AlreadyRunning {
        label: place.label(),
        pid: health.pid().map_or_else(|| "unknown".to_owned(), |pid| pid.to_string()),
        state: health.state().to_owned(),
    }
}

/// The error log and how long it is already. A long one is put aside.
fn open_error_log(place: &Place) -> Result<(File, u64), ControlError> {
    let path = place.error_log();
    let what = || ControlError::system(format!("write {}", path.display()));
    fs::create_dir_all(&place.dirs.profile).map_err(what())?;
    if fs::metadata(&path).is_ok_and(|meta| meta.len() >= ERROR_LOG_LIMIT) {
        // One that cannot be put aside is written on.
        let _ = fs::rename(&path, path.with_extension("log.1"));
    }
    let mut options = File::options();
    let file = options.create(true).append(true).read(true).mode(0o600).open(&path).map_err(what())?;
    let before = file.metadata().map_err(what())?.len();
    Ok((file, before))
}

fn spawn(start: &DaemonStart, cwd: &Path, errors: &File) -> io::Result<Child> {
    Command::new(program())
        .args(arguments(start))
        .current_dir(cwd)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(errors.try_clone()?)
        .kill_on_drop(false)
        .spawn()
}

/// This program, also where its file was replaced meanwhile: then the new one.
fn program() -> PathBuf {
    let called = || PathBuf::from(std::env::args_os().next().unwrap_or_else(|| "longshore".into()));
    std::env::current_exe().ok().filter(|exe| exe.exists()).unwrap_or_else(called)
}

/// The first line that the new process says, if it says one.
async fn words(child: &mut Child) -> Option<Startup> {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut()?).read_line(&mut line).await.ok()?;
    serde_json::from_str(line.trim_end()).ok()
}

fn died(status: Option<ExitStatus>, lines: &str) -> String {
    let how = match status {
        Some(status) => match (status.code(), status.signal()) {
            (Some(code), _) => format!("its process ended with exit code {code} before it was up"),
            (None, Some(signal)) => format!("its process was ended by signal {signal} before it was up"),
            (None, None) => "its process ended before it was up".to_owned(),
        },
        None => "its process says nothing and does not end".to_owned(),
    };
    if lines.is_empty() { how } else { format!("{how}: {lines}") }
}

/// The last lines that were added since, as one.
fn last_lines(mut log: File, before: u64) -> String {
    let mut bytes = Vec::new();
    let end = log.metadata().map_or(before, |meta| meta.len());
    let from = before.max(end.saturating_sub(LAST_WORDS));
    if log.seek(SeekFrom::Start(from)).is_err() || log.take(LAST_WORDS).read_to_end(&mut bytes).is_err() {
        return String::new();
    }
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("; ")
}

/// The arguments of the new process: what was said, as it was said.
fn arguments(start: &DaemonStart) -> Vec<OsString> {
    let DaemonStart { flags, foreground: _, detached: _, log_target, record, debug: _ } = start;
    let mut all: Vec<OsString> = ["daemon", "start", "--foreground", "--detached"].map(Into::into).into();
    let mut add = |name: &str, value: &std::ffi::OsStr| {
        let mut word = OsString::from(name);
        word.push("=");
        word.push(value);
        all.push(word);
    };
    add("--log-target", log_target.unwrap_or(LogTarget::File).as_str().as_ref());
    // Every field by its name, so that a new flag cannot be forgotten.
    let Flags {
        profile,
        server_url,
        daemon_id,
        device_name,
        runtime_name,
        workspaces_root,
        poll_interval,
        heartbeat_interval,
        agent_timeout,
        codex_semantic_inactivity_timeout,
        codex_handshake_timeout,
        max_concurrent_tasks,
        no_auto_update,
        auto_update_interval,
        no_auto_reload,
        health_port,
        claim_mode,
        disk_budget,
        trace_budget,
        min_free_space,
        on_sigterm,
        log_level,
        log_format,
    } = flags;
    let texts = [
        ("--server-url", server_url),
        ("--daemon-id", daemon_id),
        ("--device-name", device_name),
        ("--runtime-name", runtime_name),
        ("--poll-interval", poll_interval),
        ("--heartbeat-interval", heartbeat_interval),
        ("--agent-timeout", agent_timeout),
        ("--codex-semantic-inactivity-timeout", codex_semantic_inactivity_timeout),
        ("--codex-handshake-timeout", codex_handshake_timeout),
        ("--max-concurrent-tasks", max_concurrent_tasks),
        ("--auto-update-interval", auto_update_interval),
        ("--health-port", health_port),
        ("--claim-mode", claim_mode),
        ("--disk-budget", disk_budget),
        ("--trace-budget", trace_budget),
        ("--min-free-space", min_free_space),
        ("--on-sigterm", on_sigterm),
        ("--log-level", log_level),
        ("--log-format", log_format),
    ];
    if !profile.is_empty() {
        add("--profile", profile.as_ref());
    }
    for (name, value) in texts {
        if let Some(value) = value {
            add(name, value.as_ref());
        }
    }
    for (name, value) in [("--workspaces-root", workspaces_root), ("--record", record)] {
        if let Some(value) = value {
            add(name, value.as_os_str());
        }
    }
    for (name, on) in [("--no-auto-update", *no_auto_update), ("--no-auto-reload", *no_auto_reload)] {
        if on {
            all.push(name.into());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Command as Typed, parse};

    #[test]
    fn cli_68_the_new_process_is_told_what_was_said() {
        let line = "longshore daemon start --daemon-id i --device-name=d --runtime-name r --workspaces-root w \
            --poll-interval 1s --heartbeat-interval=2s --agent-timeout 0s --codex-semantic-inactivity-timeout 3s \
            --codex-handshake-timeout 4s --max-concurrent-tasks -1 --no-auto-update --auto-update-interval 5s \
            --no-auto-reload --health-port 6 --claim-mode batch --disk-budget 7 --trace-budget 9 --min-free-space 8 \
            --on-sigterm drain --record -t --server-url u --profile p --log-level info --log-format json";
        let read = |words: Vec<OsString>| match parse(words).expect("it is read") {
            Typed::DaemonStart(start) => *start,
            other => panic!("{other:?}"),
        };
        let words = line.replace("--record -t", "--record=-t");
        let typed = read(words.split_whitespace().map(OsString::from).collect());
        let handed = arguments(&typed);
        assert_eq!(handed[..3], ["daemon", "start", "--foreground"].map(OsString::from));
        let told = read(std::iter::once("longshore".into()).chain(handed).collect());
        let want =
            DaemonStart { foreground: true, detached: true, log_target: Some(LogTarget::File), ..typed };
        assert_eq!(told, want);
    }

    #[test]
    fn a_death_without_a_word_is_told_with_the_last_lines_of_this_attempt() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("daemon.err.log");
        fs::write(&path, "an earlier attempt\n1\n2\n\n3\n4\n5\n6\n").expect("written");
        let text = |before| last_lines(File::open(&path).expect("open"), before);
        assert_eq!(text(19), "2; 3; 4; 5; 6");
        assert_eq!(text(29), "6");
        assert_eq!(text(31), "");
        assert_eq!(text(19 + 1000), "");
        let status = Some(ExitStatus::from_raw(9));
        assert_eq!(died(status, "x"), "its process was ended by signal 9 before it was up: x");
    }
}
