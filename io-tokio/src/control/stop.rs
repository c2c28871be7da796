//! `daemon stop`: ends the daemon, at once or when its runs are over.

use super::error::ControlError;
use super::place::Place;
use super::running::{Asked, Running, Wait};
use super::{say, tasks};
use crate::cli::{DaemonStop, DrainFor, Exit};
use crate::config::{Env, GoDuration};
use crate::local::interrupts::Interrupts;
use std::time::Duration;

/// What a daemon needs at most to end runs, report them, and go off line.
pub(super) const ENDING: Duration = Duration::from_mins(1);
/// Ended by Ctrl-C.
const INTERRUPTED: Exit = Exit::Code(130);
const HURRY: &str = "`longshore daemon stop` said once more hurries it";

/// Stops the daemon and waits until its process is gone.
///
/// # Errors
/// It is not sure that it is the daemon that is meant, or the daemon is still there.
pub async fn stop(asked: &DaemonStop, env: &Env) -> Result<Exit, ControlError> {
    // Caught before anything is asked for: from then on a signal ends the waiting alone.
    let mut interrupts = Interrupts::catch().map_err(ControlError::system("catch signals"))?;
    let place = Place::find(&asked.which, env)?;
    let Some(daemon) = Running::find(&place).await? else {
        say(format_args!("{} is not running", place.label()));
        return Ok(Exit::Success);
    };
    let within = if let Some(time) = asked.drain {
        drain(&place, &daemon, time).await?
    } else {
        tell_forced(daemon.end("").await?);
        Some(ENDING)
    };
    Ok(match daemon.gone(within, &mut interrupts).await {
        Wait::Gone => {
            say(format_args!("{} stopped", place.label()));
            Exit::Success
        }
        Wait::Unanswering => {
            say(format_args!(
                "{} answers no more; whether its process (pid {}) is gone cannot be told from here",
                place.label(),
                daemon.pid
            ));
            Exit::Success
        }
        Wait::TooLong => return Err(daemon.still_there(within.unwrap_or_default(), HURRY)),
        Wait::Interrupted if asked.drain.is_some() => {
            say("the drain goes on without this command; `longshore daemon stop` ends it at once");
            INTERRUPTED
        }
        Wait::Interrupted => {
            say(format_args!("the daemon goes on ending without this command; {HURRY}"));
            INTERRUPTED
        }
    })
}

/// Begins a drain, and says for how long its end is to be waited for. A drain or a stop that is going on already is not hurried by a
/// wish to wait.
async fn drain(place: &Place, daemon: &Running, time: DrainFor) -> Result<Option<Duration>, ControlError> {
    let (label, pid, health) = (place.label(), daemon.pid, &daemon.health);
    if !health.is_longshore() {
        return Err(ControlError::CannotDrain { pid });
    }
    match health.state() {
        "draining" => {
            let bound = if time == DrainFor::Ever { "" } else { ", within the time that it was given then" };
            say(format_args!("{label} (pid {pid}) is draining already{bound}; waiting for it"));
            return Ok(None);
        }
        "stopping" => {
            say(format_args!("{label} (pid {pid}) is stopping already; waiting for it"));
            return Ok(Some(ENDING));
        }
        _ => {}
    }
    let (query, bound, within) = match time {
        DrainFor::Ever => ("how=drain".to_owned(), String::new(), None),
        DrainFor::Within(time) => {
            let text = GoDuration(time).to_string();
            // Go's form may have a sign of its own in it.
            let query = format!("how=drain&within={}ms", time.as_millis());
            (query, format!(", for {text} at most"), Some(time + ENDING))
        }
    };
    if let Some(why) = daemon.ask(&query).await? {
        return Err(ControlError::StopRefused { why });
    }
    let left = match health.active_tasks() {
        0 => "it has no task".to_owned(),
        n => format!("waiting for {}{bound}", tasks(n)),
    };
    say(format_args!("{label} (pid {pid}) takes no more tasks; {left}"));
    Ok(within)
}

/// Whether a daemon was ended by force, which a restart says aloud.
pub(super) fn tell_forced(asked: Asked) {
    if asked == Asked::Forced {
        say("the daemon was ended by force; what it had to say to the server may be missing there");
    }
}
