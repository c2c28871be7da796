//! `daemon restart`: the old daemon makes way for a new one, and leaves it its runs.

use super::error::ControlError;
use super::place::Place;
use super::preflight;
use super::running::{Running, Wait};
use super::say;
use super::stop::{ENDING, tell_forced};
use crate::cli::{DaemonStart, Which, require_token};
use crate::config::{Env, Settings};
use crate::local::interrupts::Interrupts;
use crate::service::{ServeError, rehearse};
use std::path::Path;

const HINT: &str =
    "no new daemon was started; try again when it is gone, or end it with `longshore daemon stop`";

/// `has_agents` says whether the daemon that runs has any: one that lives off custom runtimes has a successor that does.
async fn confirm(settings: &Settings, env: &Env, cwd: &Path, has_agents: bool) -> Result<(), ControlError> {
    match rehearse(settings, env, cwd).await {
        Err(ServeError::NoAgents(_)) if !has_agents => {}
        ready => ready.map_err(|error| ControlError::NoSuccessor(error.to_string()))?,
    }
    preflight::confirm(settings).await
}

/// Ends the daemon that runs, if one does, and waits until its process is gone, so that the new one can be started. Everything that
/// would keep the new one from working is looked at first: the old one is not touched if its successor would not start.
///
/// # Errors
/// The new one could not work, or the old one does not go.
pub async fn make_way(start: &DaemonStart, env: &Env, cwd: &Path) -> Result<(), ControlError> {
    let flags = &start.flags;
    let which = Which { profile: flags.profile.clone(), health_port: flags.health_port.clone() };
    // Caught before anything is asked for: from then on a signal ends this command alone.
    let mut interrupts = Interrupts::catch().map_err(ControlError::system("catch signals"))?;
    let place = Place::find(&which, env)?;
    let Some(daemon) = Running::find(&place).await? else { return Ok(()) };
    let settings = Settings::load(flags, env, cwd)?;
    require_token(&settings)?;
    if let Some(file) = start.record.as_ref().map(|file| cwd.join(file)).filter(|file| file.exists()) {
        let why = format!("{} is there already, and nothing is recorded over it", file.display());
        return Err(ControlError::NoSuccessor(why));
    }
    tokio::select! {
        confirmed = confirm(&settings, env, cwd, daemon.health.has_agents()) => confirmed?,
        () = interrupts.next() => return Err(ControlError::Interrupted("the running daemon is left as it is")),
    }
    let (label, pid) = (place.label(), daemon.pid);
    match daemon.health.state() {
        "draining" => return Err(ControlError::Draining { pid }),
        "stopping" => say(format_args!("{label} (pid {pid}) is stopping already; waiting for it")),
        _ if !daemon.health.is_longshore() => {
            say(format_args!(
                "{label} (pid {pid}) is none of longshore: its runs end with it, and are tried again by the server"
            ));
            tell_forced(daemon.end("").await?);
        }
        _ => tell_forced(daemon.end("how=restart").await?),
    }
    match daemon.gone(Some(ENDING), &mut interrupts).await {
        Wait::Gone | Wait::Unanswering => {
            say(format_args!("{label} (pid {pid}) made way"));
            Ok(())
        }
        Wait::Interrupted => {
            Err(ControlError::Interrupted("the daemon goes on ending, and no new one was started"))
        }
        Wait::TooLong => Err(daemon.still_there(ENDING, HINT)),
    }
}
