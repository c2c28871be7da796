//! Keeps warm pairs of supervisor and helper, so that starting processes is not on a task's path.

use super::error::SpawnError;
use super::link::Link;
use super::pair::Pair;
use super::watch::Watcher;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::task::TaskTracker;

/// From a pair's use to the start of its replacement: the task that took it is launching just now.
const REFILL_DELAY: Duration = Duration::from_millis(10);

/// How long the end of one spare is waited for.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// The most pairs that can be kept warm; each is two idle processes.
const MAX_SPARES: usize = 64;

/// Starts and keeps pairs. Cheap to clone; all clones share the spares.
#[derive(Clone)]
pub struct Launcher {
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    exe: PathBuf,
    pub(super) runs_dir: PathBuf,
    spares: Mutex<Spares>,
    /// The task that starts spares, if there is one.
    refills: TaskTracker,
    watcher: Mutex<Option<Arc<Watcher>>>,
}

struct Spares {
    ready: Vec<Link>,
    target: usize,
    refilling: bool,
    closed: bool,
}

impl Launcher {
    /// A launcher that starts this very program and makes run directories below `runs_dir` (a UTF-8
    /// path), keeping `spares` pairs warm, at most 64. Nothing is started before [`warm`](Self::warm) or
    /// [`take`](Self::take).
    pub fn new(runs_dir: impl Into<PathBuf>, spares: usize) -> Self {
        // The link still leads to the running program after its file was replaced by an upgrade.
        let link = Path::new("/proc/self/exe");
        let exe = match std::env::current_exe() {
            Ok(exe) if !cfg!(target_os = "linux") => exe,
            _ => link.to_owned(),
        };
        Self::with_executable(exe, runs_dir, spares)
    }

    /// As [`new`](Self::new), with another program that dispatches the modes `supervise` and `helper`.
    pub fn with_executable(exe: impl Into<PathBuf>, runs_dir: impl Into<PathBuf>, spares: usize) -> Self {
        let runs_dir = runs_dir.into();
        let spares =
            Spares { ready: Vec::new(), target: spares.min(MAX_SPARES), refilling: false, closed: false };
        Self {
            shared: Arc::new(Shared {
                exe: exe.into(),
                // A supervisor works from the root directory.
                runs_dir: std::path::absolute(&runs_dir).unwrap_or(runs_dir),
                spares: Mutex::new(spares),
                refills: TaskTracker::new(),
                watcher: Mutex::default(),
            }),
        }
    }

    /// Starts, in the background, as many pairs as are to be kept. Must be called on a tokio runtime.
    pub fn warm(&self) {
        self.refill(Duration::ZERO);
    }

    /// The process ids of the supervisors of the pairs that are warm now.
    pub fn spares(&self) -> Vec<i32> {
        self.shared.spares().ready.iter().map(Link::supervisor_pid).collect()
    }

    /// A warm pair; if there is none, a new one is started. Its replacement is started in the background.
    ///
    /// # Errors
    /// When there is no spare and a new pair cannot be started.
    pub async fn take(&self) -> Result<Pair, SpawnError> {
        let spare = self.shared.spares().take_living();
        self.refill(REFILL_DELAY);
        let link = match spare {
            Some(link) => link,
            None => Link::spawn(&self.shared.exe).await?,
        };
        Ok(Pair::new(link, Arc::clone(&self.shared)))
    }

    /// Ends the spares and waits until they are reaped. Pairs that were taken and runs are not touched.
    pub async fn close(&self) {
        let spares = {
            let mut spares = self.shared.spares();
            spares.closed = true;
            std::mem::take(&mut spares.ready)
        };
        // A pair that is just being started is ended by whoever starts it.
        let refills = &self.shared.refills;
        refills.close();
        let started = tokio::time::timeout(CLOSE_LIMIT, refills.wait());
        let _ = tokio::join!(futures_util::future::join_all(spares.into_iter().map(end)), started);
    }

    fn refill(&self, delay: Duration) {
        {
            let mut spares = self.shared.spares();
            if spares.refilling || !spares.wanted() {
                return;
            }
            spares.refilling = true;
        }
        let shared = Arc::clone(&self.shared);
        self.shared.refills.spawn(async move {
            tokio::time::sleep(delay).await;
            while shared.spares().wanted() {
                match Link::spawn(&shared.exe).await {
                    Ok(link) => {
                        let surplus = shared.spares().keep(link);
                        if let Some(link) = surplus {
                            end(link).await;
                        }
                    }
                    Err(error) => {
                        tracing::warn!(%error, "no warm pair could be started; the next task starts its own");
                        break;
                    }
                }
            }
            shared.spares().refilling = false;
        });
    }

    /// Where a run of this task and attempt has its directory, or would have it. The task's id must be a safe path component.
    pub fn run_dir(&self, task: &str, attempt: u32) -> PathBuf {
        self.shared.run_dir(task, attempt)
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

/// Ends a spare and waits until it is reaped.
async fn end(link: Link) {
    // A supervisor goes when its daemon is gone.
    let _ = tokio::time::timeout(CLOSE_LIMIT, link.release().wait()).await;
}

impl Spares {
    /// Takes a new pair, or gives it back if it is not wanted any more.
    fn keep(&mut self, link: Link) -> Option<Link> {
        if !self.wanted() {
            return Some(link);
        }
        self.ready.push(link);
        None
    }

    fn wanted(&self) -> bool {
        !self.closed && self.ready.len() < self.target
    }

    fn take_living(&mut self) -> Option<Link> {
        while let Some(mut link) = self.ready.pop() {
            if link.is_alive() {
                return Some(link);
            }
        }
        None
    }
}

impl Shared {
    pub(super) fn run_dir(&self, task: &str, attempt: u32) -> PathBuf {
        self.runs_dir.join(format!("{task}-{attempt}"))
    }

    fn spares(&self) -> MutexGuard<'_, Spares> {
        self.spares.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The watcher of all run directories, started with the first run.
    pub(super) fn watcher(&self) -> Arc<Watcher> {
        let mut watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(watcher.get_or_insert_with(|| Arc::new(Watcher::start())))
    }
}
