//! The process that a start in the background makes: it leaves its terminal, and tells how its start went.

use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// How a start went, as one line of JSON from the new process to the one that started it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "startup", rename_all = "snake_case")]
pub enum Startup {
    /// Runtimes are registered, tasks are claimed.
    Running {
        /// The process.
        pid: u32,
        /// The version that is told to the server.
        version: String,
    },
    /// It ends.
    Refused {
        /// Why, in one line for people.
        why: String,
    },
}

/// Tells once how the start went. Clones tell the same one.
#[derive(Clone, Debug, Default)]
pub struct Announcer(Arc<Mutex<Option<File>>>);

impl Announcer {
    /// Leaves the terminal and session of whoever started this process, and keeps no directory busy. What was standard output is where
    /// the start is told of; standard output itself is the same as standard error from here on.
    ///
    /// # Errors
    /// The descriptors cannot be had.
    pub fn detach() -> io::Result<Self> {
        // Fails for one that leads a session already, which is as good.
        let _ = rustix::process::setsid();
        std::env::set_current_dir("/")?;
        // Nothing that is started from here inherits the copy, so its end is the end of this process.
        let to = rustix::io::fcntl_dupfd_cloexec(io::stdout(), 3)?;
        nix::unistd::dup2_stdout(io::stderr())?;
        Ok(Self(Arc::new(Mutex::new(Some(to.into())))))
    }

    /// Tells it, the first time. That nobody listens any more is no error.
    pub fn tell(&self, how: &Startup) {
        let Some(mut to) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        if let Ok(mut line) = serde_json::to_vec(how) {
            line.push(b'\n');
            let _ = to.write_all(&line);
        }
    }

    /// Tells that it is up.
    pub fn running(&self, version: &str) {
        self.tell(&Startup::Running { pid: std::process::id(), version: version.to_owned() });
    }

    /// Tells that it ends, if it has not told that it is up.
    pub fn refused(&self, why: impl ToString) {
        self.tell(&Startup::Refused { why: why.to_string() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_start_is_told_once() {
        let (mut from, to) = io::pipe().expect("a pipe");
        let announcer = Announcer(Arc::new(Mutex::new(Some(File::from(std::os::fd::OwnedFd::from(to))))));
        announcer.clone().refused("no token");
        announcer.running("1.2.3");
        let mut text = String::new();
        from.read_to_string(&mut text).expect("read to the end");
        let told: Startup = serde_json::from_str(text.trim_end()).expect("one line");
        assert_eq!(told, Startup::Refused { why: "no token".into() });
        Announcer::default().running("nobody listens");
    }
}
