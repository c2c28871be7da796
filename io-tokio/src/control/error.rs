//! Why a command of a daemon's life did not work.

use crate::cli::{StartRefusal, Unwritten};
use crate::config::ConfigError;
use crate::http::ClientError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// What went wrong, and what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ControlError {
    /// The answer could not be written.
    #[error(transparent)]
    Unwritten(#[from] Unwritten),
    /// A setting cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// There is no credential.
    #[error(transparent)]
    Refused(#[from] StartRefusal),
    /// There is no way to speak to the server: its address, or a proxy, cannot be used.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A name was mistyped, or the profile was never used.
    #[error("there is no profile {name:?}; {}", known_list(known))]
    UnknownProfile {
        /// The name.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// The new daemon would fail where the old one works.
    #[error("{0}; the running daemon is left as it is")]
    NoSuccessor(String),
    /// A daemon runs already.
    #[error("{label} is already running (pid {pid}, {state}); `longshore daemon restart` replaces it")]
    AlreadyRunning {
        /// What the daemon is called.
        label: String,
        /// Its process id, as it says.
        pid: String,
        /// Its state in one word.
        state: String,
    },
    /// A daemon of another profile has the port.
    #[error(
        "port {port} of profile {wanted:?} is used by the daemon of {occupant}; stop that one, or choose another port with \
         --health-port"
    )]
    Collision {
        /// The port.
        port: u16,
        /// The profile that is meant.
        wanted: String,
        /// Whose daemon answers there.
        occupant: String,
    },
    /// Another user of this machine has the port.
    #[error("port {port} is used by a program of user id {owner}; choose another port with --health-port")]
    OtherUser {
        /// The port.
        port: u16,
        /// The user.
        owner: u32,
    },
    /// Something has the port and gives no answer.
    #[error(
        "something listens on port {port} and does not answer as a daemon does ({why}); see what it is, for example with \
         `ss -ltnp`, and end it yourself: nothing is ended here that cannot be told to be a daemon"
    )]
    Mute {
        /// The port.
        port: u16,
        /// What was seen.
        why: String,
    },
    /// The daemon does not say which process it is.
    #[error("the daemon on port {port} does not say its process id, so nothing is done to it")]
    NoProcess {
        /// The port.
        port: u16,
    },
    /// The daemon refuses the request.
    #[error("the daemon refuses to be stopped: {why}")]
    StopRefused {
        /// Its words.
        why: String,
    },
    /// The daemon cannot be asked, and may not be ended either.
    #[error("the daemon (pid {pid}) cannot be asked to stop ({why}), and is not ended by force, as {doubt}")]
    NotEnded {
        /// Its process.
        pid: i32,
        /// Why it cannot be asked.
        why: String,
        /// What is not sure about it.
        doubt: String,
    },
    /// The daemon runs on.
    #[error("the daemon (pid {pid}) is still there after {waited}: {hint}")]
    StillThere {
        /// Its process.
        pid: i32,
        /// For how long it was waited for.
        waited: String,
        /// What can be done.
        hint: &'static str,
    },
    /// The daemon is not one of this program.
    #[error(
        "the daemon (pid {pid}) is none of longshore and cannot let its runs end first; `longshore daemon stop` ends it together \
         with its runs"
    )]
    CannotDrain {
        /// Its process.
        pid: i32,
    },
    /// A restart would end what a drain waits for.
    #[error(
        "the daemon (pid {pid}) is draining; wait for it with `longshore daemon stop --drain`, or end it with `longshore daemon \
         stop`, then start it"
    )]
    Draining {
        /// Its process.
        pid: i32,
    },
    /// The server does not take the credential.
    #[error("{server} refuses this daemon's credential; log in again with `multica login{flag}`")]
    Credential {
        /// The server.
        server: String,
        /// The flag for the profile, with a blank before it; empty for the default one.
        flag: String,
    },
    /// The server is not there.
    #[error("{server} cannot be reached ({why}); check the address and the network{hint}")]
    Unreachable {
        /// The server.
        server: String,
        /// Why.
        why: String,
        /// What else can be done.
        hint: &'static str,
    },
    /// The server does not say whether it takes the credential.
    #[error(
        "{server} does not confirm this daemon's credential ({why}), so the running daemon is left as it is"
    )]
    Unconfirmed {
        /// The server.
        server: String,
        /// Its answer.
        why: String,
    },
    /// The new process ended before it was ready, and said why.
    #[error("the daemon did not start: {why} (log: {})", log.display())]
    Died {
        /// Its words.
        why: String,
        /// Where more is written.
        log: PathBuf,
    },
    /// The daemon ended while it gave its recording.
    #[error(
        "the daemon (pid {pid}) broke off while it gave its recording; say the command again, also if the daemon has ended"
    )]
    RecordingBrokeOff {
        /// Its process.
        pid: i32,
    },
    /// A file or a process cannot be had.
    #[error("cannot {what}: {source}")]
    System {
        /// What was to be done.
        what: String,
        /// Why it cannot.
        source: io::Error,
    },
    /// Somebody pressed Ctrl-C.
    #[error("interrupted: {0}")]
    Interrupted(&'static str),
    /// There is nothing to show.
    #[error(
        "there is no log {} of profile {profile}: it is written by a daemon in the background, or with --log-target file; one in the \
         foreground logs to its standard error, which a service manager keeps",
        path.display()
    )]
    NoLog {
        /// Where it would be.
        path: PathBuf,
        /// The profile's name.
        profile: String,
    },
    /// A task knows its daemon by a variable alone.
    #[error("inside of a task the daemon is found by MULTICA_DAEMON_PORT, and {0}")]
    TaskPort(&'static str),
    /// The local HTTP client cannot be made.
    #[error("HTTP cannot be set up: {0}")]
    Http(String),
}

impl ControlError {
    pub(super) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::System { what, source }
    }
}

fn known_list(known: &[String]) -> String {
    match known {
        [] => "there are none but the default one".to_owned(),
        known => format!("there are {}", known.join(", ")),
    }
}
