//! Taking over a run that an earlier daemon launched, or was about to.

use super::error::AttachError;
use super::launcher::Launcher;
use super::run::{Position, Run};
use super::spec::Credit;
use super::unlaunched::{self, Found};
use crate::supervise::record::{Owner, RunDir};
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long a supervisor that is in the middle of its launch is waited for: it fills a directory, no more.
const LAUNCHING_LIMIT: Duration = Duration::from_secs(10);

/// How long the end of a supervisor that was killed in the middle of its launch is waited for.
const KILLED_LIMIT: Duration = Duration::from_secs(5);

/// From one look at such a supervisor to the next.
const LOOK: Duration = Duration::from_millis(5);

impl Launcher {
    /// Takes over the run in `dir`, from a position up to which everything was acknowledged before.
    ///
    /// A run that has ended meanwhile gives the rest of its output and how it ended; one whose supervisor is gone
    /// without a record is cleaned up and gives a record that says so, as does one from before a restart of the machine. A
    /// supervisor that was just starting the agent when its daemon died is waited for. Must be called on a tokio runtime, and
    /// only for a run whose daemon is gone.
    ///
    /// # Errors
    /// [`NeverLaunched`](AttachError::NeverLaunched) when no agent was started there, and from now on none can be: what was
    /// in the directory is removed. [`NoRun`](AttachError::NoRun) when what is there cannot be read as a run.
    pub async fn attach(
        &self,
        dir: impl Into<PathBuf>,
        from: Position,
        credit: Credit,
    ) -> Result<Run, AttachError> {
        let dir = RunDir::new(dir);
        let mut until = Instant::now() + LAUNCHING_LIMIT;
        let mut killed = false;
        loop {
            let look = dir.clone();
            let found = tokio::task::spawn_blocking(move || unlaunched::look(&look)).await;
            match found.unwrap_or_else(|error| Err(io::Error::other(error))) {
                Ok(Found::Run(status)) => {
                    own(&dir).await;
                    return Ok(Run::attached(self.shared(), dir, status.as_deref(), from, credit));
                }
                Ok(Found::Nothing) => return Err(AttachError::NeverLaunched { path: dir.path().to_owned() }),
                Ok(Found::Launching) if Instant::now() < until => sleep(LOOK).await,
                Ok(Found::Launching) if !killed => {
                    unlaunched::kill_supervisor(&dir);
                    killed = true;
                    until = Instant::now() + KILLED_LIMIT;
                }
                Ok(Found::Launching) => {
                    let source = io::Error::other("its supervisor neither starts the agent nor ends; end it");
                    return Err(AttachError::NoRun { path: dir.path().to_owned(), source });
                }
                Err(source) => return Err(AttachError::NoRun { path: dir.path().to_owned(), source }),
            }
        }
    }
}

/// Notes that this daemon has the run now, so that another one does not take it for left behind.
async fn own(dir: &RunDir) {
    let dir = dir.clone();
    let path = dir.path().to_owned();
    let noted = tokio::task::spawn_blocking(move || {
        let supervisor = dir.status().map(|status| status.supervisor);
        supervisor.and_then(|supervisor| dir.write_owner(&Owner::this_process(supervisor)))
    });
    // With a full disk, or where there was only a record: nobody but a second daemon of the profile misses it.
    if let Ok(Err(error)) = noted.await {
        tracing::debug!(run = %path.display(), %error, "the run's new daemon is not noted");
    }
}
