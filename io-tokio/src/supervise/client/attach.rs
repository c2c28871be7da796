//! Taking over a run that an earlier daemon launched.

use super::error::AttachError;
use super::launcher::Launcher;
use super::run::{Position, Run};
use super::spec::Credit;
use crate::supervise::record::RunDir;
use std::io;
use std::path::PathBuf;

impl Launcher {
    /// Takes over the run in `dir`, from a position up to which everything was acknowledged before.
    ///
    /// A run that has ended meanwhile gives the rest of its output and how it ended; one whose supervisor is gone
    /// without a record is cleaned up and gives a record that says so. Must be called on a tokio runtime.
    ///
    /// # Errors
    /// When the directory holds no readable run.
    pub fn attach(
        &self,
        dir: impl Into<PathBuf>,
        from: Position,
        credit: Credit,
    ) -> Result<Run, AttachError> {
        let dir = RunDir::new(dir);
        let path = dir.path().to_owned();
        let no_run = |source: io::Error| AttachError::NoRun { path: path.clone(), source };
        let (agent, budget) = match dir.status() {
            Ok(status) => (Some(status.agent.pid), status.spool_budget),
            // A launch that failed before there was a status has a record all the same.
            Err(error) => match dir.exit() {
                Ok(Some(_)) => (None, 0),
                _ => return Err(no_run(error)),
            },
        };
        Ok(Run::open(self.shared(), dir, agent, from, credit, budget))
    }
}
