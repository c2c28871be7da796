//! `daemon logs`: the log of a daemon in the background.

use super::error::ControlError;
use super::place::Place;
use super::say;
use super::tail::Tail;
use crate::cli::{DaemonLogs, Exit, Which};
use crate::config::Env;
use std::io::{self, Write};
use std::time::Duration;

/// From one look at the file to the next.
const LOOK: Duration = Duration::from_millis(300);

/// Writes the last lines of the log to `out`, and what comes if that is wanted: then until `out` is closed or the process is ended.
///
/// # Errors
/// There is no log, or it cannot be read.
pub fn logs(asked: &DaemonLogs, env: &Env, out: &mut dyn Write) -> Result<Exit, ControlError> {
    // The port does not matter, so that a bad one in the settings does not either.
    let which = Which { profile: asked.profile.clone(), health_port: Some("1".to_owned()) };
    let place = Place::find(&which, env)?;
    let path = place.log_file();
    let failed = || ControlError::system(format!("read {}", path.display()));
    let mut tail = match Tail::open(&path, asked.lines) {
        Ok(tail) => tail,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(ControlError::NoLog { path, profile: place.profile.to_string() });
        }
        Err(error) => return Err(failed()(error)),
    };
    say(format_args!("{} (profile {})", path.display(), place.profile));
    loop {
        match tail.copy_new(out) {
            Ok(()) => {}
            // Whoever reads has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(Exit::Success),
            Err(error) => return Err(failed()(error)),
        }
        if !asked.follow {
            return Ok(Exit::Success);
        }
        std::thread::sleep(LOOK);
    }
}
