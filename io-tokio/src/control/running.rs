//! A daemon that answers: asking it to end, and waiting until its process is gone.

use super::error::ControlError;
use super::health::{Health, Local, Seen, Unanswered, other_user};
use super::pid_file;
use super::place::Place;
use super::process::Process;
use super::{say, tasks};
use crate::config::GoDuration;
use crate::local::interrupts::Interrupts;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// From one look at the daemon to the next while it is waited for.
const LOOK: Duration = Duration::from_secs(1);
/// What a daemon that cannot be asked gets to end by itself, …
const POLITE: Duration = Duration::from_secs(10);
/// … and how long its end is waited for then.
const KILLED: Duration = Duration::from_secs(5);

/// The daemon.
pub(super) struct Running {
    pub(super) health: Health,
    pub(super) pid: i32,
    place: Place,
    local: Local,
    /// Its process, where it can be told for sure.
    process: Option<Process>,
}

/// How a wait ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// The process is gone.
    Gone,
    /// It answers no more. Whether its process is gone cannot be told here.
    Unanswering,
    /// It is still there.
    TooLong,
    /// Ctrl-C, or another signal that would have ended the command.
    Interrupted,
}

/// How a daemon was made to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// It took the request.
    Taken,
    /// It did not answer, and was ended by signals.
    Forced,
}

impl Running {
    /// The daemon of this place, if there is one.
    ///
    /// # Errors
    /// What answers is the daemon of another profile, or does not answer as a daemon does.
    pub(super) async fn find(place: &Place) -> Result<Option<Self>, ControlError> {
        let local = Local::new(place.port)?;
        let health = match local.health().await {
            Seen::Nobody => return Ok(None),
            Seen::Stranger(why) => {
                say(format_args!("port {} is used by something else: {why}", place.port));
                return Ok(None);
            }
            Seen::Silent(why) => return Err(ControlError::Mute { port: place.port, why }),
            Seen::Daemon(health) => health,
        };
        if let Some(owner) = other_user(place.port) {
            return Err(ControlError::OtherUser { port: place.port, owner });
        }
        if !health.profile().fits(&place.profile) {
            return Err(collision(place, &health));
        }
        let pid = health.pid().ok_or(ControlError::NoProcess { port: place.port })?;
        let process = Process::of_daemon(pid, health.number("process_start"), place.port);
        Ok(Some(Self { health, pid, place: place.clone(), local, process }))
    }

    /// The way to it.
    pub(super) const fn local(&self) -> &Local {
        &self.local
    }

    /// Asks it to end. One that does not take the request is ended by signals, if it is sure that it is the one; `query` is what is said of
    /// the runs, empty for a plain stop.
    pub(super) async fn end(&self, query: &str) -> Result<Asked, ControlError> {
        if self.is_gone_or_replaced().await {
            return Ok(Asked::Taken);
        }
        let Some(why) = self.ask(query).await? else { return Ok(Asked::Taken) };
        let pid = self.pid;
        if let Some(process) = &self.process
            && process.ended(Duration::ZERO).await
        {
            return Ok(Asked::Taken);
        }
        let Some(process) = &self.process else {
            let doubt = "its process cannot be told for sure from here".to_owned();
            return Err(ControlError::NotEnded { pid, why, doubt });
        };
        process.may_be_ended().map_err(|doubt| ControlError::NotEnded { pid, why: why.clone(), doubt })?;
        say(format_args!("the daemon (pid {pid}) cannot be asked to stop ({why}); it gets SIGTERM"));
        process.terminate();
        if !process.ended(POLITE).await {
            say(format_args!("it did not end within {} s and gets SIGKILL", POLITE.as_secs()));
            process.kill();
            process.ended(KILLED).await;
        }
        Ok(Asked::Forced)
    }

    /// Whether another command has ended it since it was found. What answers at its port by now may be its successor, which nobody wants to
    /// end.
    async fn is_gone_or_replaced(&self) -> bool {
        if let Some(process) = &self.process
            && process.ended(Duration::ZERO).await
        {
            return true;
        }
        let is_same = |now: &Health| {
            now.pid() == Some(self.pid) && now.number("process_start") == self.health.number("process_start")
        };
        matches!(self.local.health().await, Seen::Daemon(now) if !is_same(&now))
    }

    /// Asks it to end; `Some` says why it could not be asked.
    pub(super) async fn ask(&self, query: &str) -> Result<Option<String>, ControlError> {
        let path = if query.is_empty() { "/shutdown".to_owned() } else { format!("/shutdown?{query}") };
        match self.local.post(&path).await {
            Ok((200..300, _)) => Ok(None),
            Ok((400 | 403, why)) => Err(ControlError::StopRefused { why }),
            Ok((status, why)) => Ok(Some(format!("{status} {why}"))),
            Err(Unanswered::Nobody) => Ok(Some("it does not listen any more".to_owned())),
            Err(Unanswered::Silent(why)) => Ok(Some(why)),
        }
    }

    /// Waits until its process is gone, and tells what it waits for whenever that changes. A signal ends the wait alone.
    pub(super) async fn gone(&self, within: Option<Duration>, interrupts: &mut Interrupts) -> Wait {
        let begun = Instant::now();
        let deadline = within.map(|within| begun + within);
        let mut told = String::new();
        loop {
            tokio::select! {
                biased;
                gone = self.look_again() => match gone {
                    Some(wait) => {
                        pid_file::remove_if_of(&self.place.pid_file(), self.pid.unsigned_abs());
                        return wait;
                    }
                    None => self.tell(&mut told, begun).await,
                },
                () = interrupts.next() => return Wait::Interrupted,
                () = until(deadline) => return Wait::TooLong,
            }
        }
    }

    /// Whether it is gone, after a moment in which it may go.
    async fn look_again(&self) -> Option<Wait> {
        if let Some(process) = &self.process {
            return process.ended(LOOK).await.then_some(Wait::Gone);
        }
        sleep(LOOK / 4).await;
        match self.local.health().await {
            Seen::Daemon(health) if health.pid() == Some(self.pid) => None,
            Seen::Silent(_) => None,
            _ => Some(Wait::Unanswering),
        }
    }

    async fn tell(&self, told: &mut String, begun: Instant) {
        let Seen::Daemon(health) = self.local.health().await else { return };
        if health.pid() != Some(self.pid) || begun.elapsed() < LOOK {
            return;
        }
        let what = waits_for(&health);
        if what != *told {
            say(format_args!("{} (pid {}): {what}", self.place.label(), self.pid));
            *told = what;
        }
    }

    /// The error of a wait that was too long.
    pub(super) fn still_there(&self, within: Duration, hint: &'static str) -> ControlError {
        ControlError::StillThere { pid: self.pid, waited: GoDuration(within).to_string(), hint }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn waits_for(health: &Health) -> String {
    let left = health.active_tasks();
    let waiting = match health.number("resource_wait_task_count") {
        Some(parked) if parked > 0 => format!(", {parked} of them for a directory"),
        _ => String::new(),
    };
    match (health.state(), left) {
        (state, 0) => format!("{state}, no task is left"),
        ("draining", left) => format!("draining, {} still at work{waiting}", tasks(left)),
        (state, left) => format!("{state}, {} to be ended and reported", tasks(left)),
    }
}

/// The error of a port that another profile's daemon has.
pub(super) fn collision(place: &Place, health: &Health) -> ControlError {
    ControlError::Collision {
        port: place.port,
        wanted: place.profile.to_string(),
        occupant: health.profile().describe(),
    }
}
