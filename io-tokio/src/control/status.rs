//! `daemon status`: what the daemon says of itself, for people or for programs.

use super::error::ControlError;
use super::health::{Health, Seen, StatedProfile, other_user, probe};
use super::place::Place;
use crate::cli::{DaemonStatus, Exit, print, task_signal};
use crate::config::{Env, Profile};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

/// With `--exit-code`: nobody listens.
const STOPPED: Exit = Exit::Code(3);
/// With `--exit-code`: it is there and takes no tasks, for now or any more.
const NOT_TAKING: Exit = Exit::Code(4);
/// With `--exit-code`: something else is at its port.
const UNHEALTHY: Exit = Exit::Code(5);

/// Prints the state of the daemon to `out`.
///
/// # Errors
/// It cannot be told which daemon is meant, or the answer cannot be written.
pub async fn status(
    asked: &DaemonStatus,
    env: &Env,
    cwd: &Path,
    out: &mut dyn Write,
) -> Result<Exit, ControlError> {
    let found = if task_signal(env, cwd).is_some() { of_task(asked, env) } else { of_profile(asked, env) };
    let (label, port, profile) = match found {
        Err(ControlError::UnknownProfile { name, known }) if asked.json => {
            let answer = json!({ "known_profiles": known, "profile": name, "status": "unknown_profile" });
            print(out, &format!("{answer:#}\n"))?;
            return Ok(Exit::Failed);
        }
        found => found?,
    };
    let seen = match (probe(port).await?, other_user(port)) {
        (Seen::Daemon(_), Some(owner)) => Seen::Stranger(format!("it is a daemon of user id {owner}")),
        (seen, _) => seen,
    };
    let (text, exit) = if asked.json {
        as_json(&seen, port, profile.as_ref())
    } else {
        as_text(&seen, &label, port, profile.as_ref())
    };
    print(out, &text)?;
    Ok(if asked.exit_code { exit } else { Exit::Success })
}

/// Label, port, and the profile that the daemon must be of.
type Found = (String, u16, Option<Profile>);

fn of_profile(asked: &DaemonStatus, env: &Env) -> Result<Found, ControlError> {
    let place = Place::find(&asked.which, env)?;
    Ok((place.label(), place.port, Some(place.profile)))
}

/// A task knows the daemon that runs it, and no other.
fn of_task(asked: &DaemonStatus, env: &Env) -> Result<Found, ControlError> {
    if !asked.which.profile.is_empty() || asked.which.health_port.is_some() {
        return Err(ControlError::TaskPort("no profile or port can be chosen"));
    }
    let text = env.text("MULTICA_DAEMON_PORT")?.ok_or(ControlError::TaskPort("it is not set"))?;
    let port = text.parse().ok().filter(|port| *port > 0).ok_or(ControlError::TaskPort("it is no port"))?;
    Ok(("Daemon".to_owned(), port, None))
}

/// A daemon of another profile, as seen from `profile`.
fn foreign(health: &Health, profile: Option<&Profile>) -> Option<StatedProfile> {
    profile
        .map(|own| (own, health.profile()))
        .filter(|(own, stated)| !stated.fits(own))
        .map(|(_, stated)| stated)
}

fn code(health: &Health) -> Exit {
    if health.state() == "running" { Exit::Success } else { NOT_TAKING }
}

fn as_json(seen: &Seen, port: u16, profile: Option<&Profile>) -> (String, Exit) {
    let (value, exit) = match seen {
        Seen::Daemon(health) => match foreign(health, profile) {
            None => (Value::Object(health.fields().clone()), code(health)),
            Some(StatedProfile::Named(other)) => {
                let conflict = json!({ "port": port, "profile": other });
                (json!({ "port_conflict": conflict, "status": "stopped" }), UNHEALTHY)
            }
            Some(_) => {
                let conflict = json!({ "port": port, "unreadable_identity": true });
                (json!({ "port_conflict": conflict, "status": "stopped" }), UNHEALTHY)
            }
        },
        Seen::Nobody => (json!({ "status": "stopped" }), STOPPED),
        Seen::Stranger(why) | Seen::Silent(why) => {
            let conflict = json!({ "port": port, "used_by": why });
            (json!({ "port_conflict": conflict, "status": "stopped" }), UNHEALTHY)
        }
    };
    (format!("{:#}\n", sorted(value)), exit)
}

/// With the keys of every object in order, however objects are kept in memory.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(all) => {
            let mut all: Vec<_> = all.into_iter().collect();
            all.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(all.into_iter().map(|(key, value)| (key, sorted(value))).collect::<Map<_, _>>())
        }
        Value::Array(all) => all.into_iter().map(sorted).collect(),
        other => other,
    }
}

fn as_text(seen: &Seen, label: &str, port: u16, profile: Option<&Profile>) -> (String, Exit) {
    match seen {
        Seen::Daemon(health) => match foreign(health, profile) {
            None => (report(health, label), code(health)),
            Some(other) => {
                let whose = other.describe();
                let note = format!("port {port} is used by the daemon of {whose}");
                (format!("{label}: stopped\n{note}\n"), UNHEALTHY)
            }
        },
        Seen::Nobody => (format!("{label}: stopped\n"), STOPPED),
        Seen::Stranger(why) | Seen::Silent(why) => {
            (format!("{label}: stopped\nport {port} is used by something else: {why}\n"), UNHEALTHY)
        }
    }
}

fn report(health: &Health, label: &str) -> String {
    let pid = health.pid().map_or_else(|| "unknown".to_owned(), |pid| pid.to_string());
    if health.text("status") == "starting" {
        return format!("{label}: starting (pid {pid})\n");
    }
    let state = health.state();
    let mut rows = vec![(label, format!("{state} (pid {pid}, uptime {})", health.text("uptime")))];
    let row = |key, text: &str| (!text.is_empty()).then(|| (key, text.to_owned()));
    rows.extend(row("Version", health.text("cli_version")));
    rows.extend(row("Managed by", managed_by(health.text("launched_by"))));
    rows.extend(row("Restart pending", health.text("reload_pending_reason")));
    let fields = health.fields();
    if let Some(agents) = fields.get("agents").and_then(Value::as_array) {
        let names: Vec<&str> = agents.iter().filter_map(Value::as_str).collect();
        rows.extend(row("Agents", &names.join(", ")));
    }
    if let Some(workspaces) = fields.get("workspaces").and_then(Value::as_array) {
        rows.push(("Workspaces", workspaces.len().to_string()));
    }
    if health.is_longshore() {
        rows.push(("Tasks", tasks(health)));
    }
    table(&rows)
}

fn managed_by(launched_by: &str) -> &str {
    match launched_by {
        "desktop" => "the desktop app, which starts and stops it",
        other => other,
    }
}

fn tasks(health: &Health) -> String {
    let count = |name| health.number(name).unwrap_or(0);
    let mut text = format!("{} ({} running", health.active_tasks(), count("running_task_count"));
    let parked = count("resource_wait_task_count");
    if parked > 0 {
        let _ = write!(text, ", {parked} waiting for a directory");
    }
    text.push(')');
    text
}

fn table(rows: &[(&str, String)]) -> String {
    let widest = rows.iter().map(|(key, _)| key.chars().count()).max().unwrap_or(0) + 1;
    let mut text = String::new();
    for (key, value) in rows {
        let key = format!("{key}:");
        let _ = writeln!(text, "{key:widest$}  {value}");
    }
    text
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
