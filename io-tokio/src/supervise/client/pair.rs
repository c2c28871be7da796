//! A supervisor and a helper from their start to the launch.

use super::error::{LaunchError, PrepareError};
use super::launcher::Shared;
use super::link::Link;
use super::lost;
use super::run::{Position, Run};
use super::spec::LaunchSpec;
use crate::supervise::exec_call::ExecCall;
use crate::supervise::frame::MAX_PAYLOAD;
use crate::supervise::protocol::{self, Answer, LaunchOrder};
use crate::supervise::record::{Identity, MARKER_VARIABLE, Owner, RunDir};
use longshore_core::id::is_safe_component;
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// From the order to launch to the answer; the supervisor gives up by itself a little earlier.
const LAUNCH_LIMIT: Duration = Duration::from_secs(25);

/// A warm supervisor with its helper, for one task. Dropped, both end by themselves.
pub struct Pair {
    link: Link,
    shared: Arc<Shared>,
}

impl Pair {
    pub(super) fn new(link: Link, shared: Arc<Shared>) -> Self {
        Self { link, shared }
    }

    /// The process id of the helper, which will be the agent's.
    pub fn helper_pid(&self) -> i32 {
        self.link.helper_pid()
    }

    /// The process id of the supervisor.
    pub fn supervisor_pid(&self) -> i32 {
        self.link.supervisor_pid()
    }

    /// Has the helper prepare: gives its reply to `job` (at most 64 MiB each), and the pair for the launch.
    ///
    /// When the deadline passes or `cancel` completes first, the helper and everything that it started are killed
    /// and reaped *before* this returns, so whoever tries again is the only writer. Dropping the future kills them
    /// as well, a little later.
    ///
    /// # Errors
    /// See [`PrepareError`]; the pair is gone then.
    pub async fn prepare(
        self,
        job: &[u8],
        deadline: Duration,
        cancel: impl Future<Output = ()>,
    ) -> Result<(Vec<u8>, Ready), PrepareError> {
        let Self { mut link, shared } = self;
        if job.len() > MAX_PAYLOAD {
            link.abort().await?;
            return Err(PrepareError::TooLarge { length: job.len(), limit: MAX_PAYLOAD });
        }
        let outcome = tokio::select! {
            biased;
            () = cancel => Err(PrepareError::Cancelled),
            reply = link.exchange(job) => Ok(reply),
            () = tokio::time::sleep(deadline) => Err(PrepareError::Deadline { after: deadline }),
        };
        match outcome {
            Ok(Ok(reply)) => Ok((reply, Ready { link, shared })),
            Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => {
                link.abort().await?;
                Err(PrepareError::SupervisorFailed(error.to_string()))
            }
            Ok(Err(_)) => Err(link.helper_died().await),
            Err(why) => {
                link.abort().await?;
                Err(why)
            }
        }
    }

    /// Goes on without a preparation.
    pub fn skip_preparation(self) -> Ready {
        Ready { link: self.link, shared: self.shared }
    }
}

/// A pair that is prepared. Dropped, both processes end by themselves.
pub struct Ready {
    link: Link,
    shared: Arc<Shared>,
}

impl Ready {
    /// The process id that the agent will have.
    pub fn helper_pid(&self) -> i32 {
        self.link.helper_pid()
    }

    /// Starts the agent. From here on the run goes on also when the daemon is gone.
    ///
    /// Not cancel-safe: a run that was launched by a future that was dropped is found in the runs directory.
    ///
    /// # Errors
    /// See [`LaunchError`]; the pair is gone then, and so is the run directory.
    pub async fn launch(self, spec: LaunchSpec) -> Result<Run, LaunchError> {
        if !is_safe_component(&spec.task) {
            self.end_unused().await;
            return Err(LaunchError::UnsafeTask(spec.task));
        }
        let dir = RunDir::new(self.shared.run_dir(&spec.task, spec.attempt));
        let path = dir.path().to_owned();
        let LaunchSpec { prompt, .. } = spec;
        let marker = uuid::Uuid::new_v4().to_string();
        let made = {
            let (dir, marker) = (dir.clone(), marker.clone());
            let supervisor = Identity::of(self.link.supervisor_pid());
            tokio::task::spawn_blocking(move || make_dir(&dir, &prompt, supervisor, &marker)).await
        };
        if let Err(error) = made.map_err(io::Error::other).and_then(|made| made) {
            self.end_unused().await;
            return Err(LaunchError::RunDir { path, reason: error.to_string() });
        }

        let Self { mut link, shared } = self;
        let order = LaunchOrder {
            version: protocol::VERSION,
            task: spec.task,
            attempt: spec.attempt,
            marker: marker.clone(),
            run_dir: dir.path().to_owned(),
            keep_stdin_open: spec.keep_stdin_open,
            spool_budget: spec.spool_budget,
            leftover_grace_ms: u64::try_from(spec.leftover_grace.as_millis()).unwrap_or(u64::MAX),
        };
        let mut env = spec.env;
        env.push((MARKER_VARIABLE.into(), marker.into()));
        let call = ExecCall { program: spec.program, cwd: spec.cwd, args: spec.args, env };

        let error = match timeout(LAUNCH_LIMIT, link.launch(&call, order)).await {
            Ok(Ok(Answer::Launched)) => {
                let (from, budget) = (Position::default(), spec.spool_budget);
                let run = Run::open(&shared, dir, Some(link.helper_pid()), from, spec.credit, budget);
                return Ok(run.owning(link.release()));
            }
            Ok(Ok(Answer::LaunchFailed(failure))) => {
                link.reaped().await;
                remove(dir).await;
                return Err(LaunchError::new(failure, &call.program, &call.cwd, &path));
            }
            Ok(Ok(Answer::HelperDied(exit))) => LaunchError::HelperDied(exit.to_string()),
            Ok(Ok(other)) => LaunchError::HelperDied(format!("the supervisor answered {other:?}")),
            Ok(Err(error)) => LaunchError::HelperDied(error.to_string()),
            Err(_) => {
                let reason = format!("no answer from the supervisor within {} s", LAUNCH_LIMIT.as_secs());
                LaunchError::Timeout(reason)
            }
        };
        link.kill().await;
        let settled = dir.clone();
        let _ = tokio::task::spawn_blocking(move || lost::settle(&settled, "it was not launched")).await;
        remove(dir).await;
        Err(error)
    }

    async fn end_unused(self) {
        // An idle helper is killed in no time; if not, that is no news for who wanted to launch.
        let _ = self.discard().await;
    }

    /// Ends the pair and waits until everything of it is reaped.
    ///
    /// # Errors
    /// When something could not be killed.
    pub async fn discard(self) -> Result<(), PrepareError> {
        self.link.abort().await
    }
}

fn make_dir(dir: &RunDir, prompt: &[u8], supervisor: Identity, marker: &str) -> io::Result<()> {
    if let Some(parent) = dir.path().parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    }
    DirBuilder::new().mode(0o700).create(dir.path())?;
    let write = |name: &str, bytes: &[u8]| {
        File::options().write(true).create_new(true).mode(0o600).open(dir.file(name))?.write_all(bytes)
    };
    let fill = || {
        write("prompt", prompt)?;
        dir.write_owner(&Owner::this_process(supervisor))?;
        // Last: without it nothing can be launched here.
        write("alive", marker.as_bytes())
    };
    fill().inspect_err(|_| {
        // Ours alone, as it was made just now; a full disk must not get fuller.
        let _ = dir.remove();
    })
}

async fn remove(dir: RunDir) {
    let removed = tokio::task::spawn_blocking(move || dir.remove()).await;
    if let Ok(Err(error)) = removed {
        tracing::warn!(%error, "the run directory of a run that did not start is left");
    }
}
