//! Work on the disk that the core asks for: preparing a task's directory, unwinding it, sealing it.

use super::action;
use super::collect;
use super::host::Host;
use super::local;
use super::local::LocalDirectory;
use super::probe;
use super::skills;
use super::space::enough_space;
use crate::book::Entry;
use crate::prepare::reuse::{Decision, FreshBecause, Reuse};
use crate::prepare::seal::{self, Meta, Theirs};
use crate::prepare::skill::Skill;
use crate::prepare::{self, Claim, Job, PrepareError, Setup};
use crate::supervise;
use crate::tempdir::TempDir;
use jiff::Timestamp;
use longshore_core::effect::FsCall;
use longshore_core::error::FsError;
use longshore_core::event::FsReply;
use longshore_core::id::EnvRoot;
use longshore_core::reason::FailReason;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The core ends a preparation at its deadline; this much later it ends by itself.
const BACKSTOP: Duration = Duration::from_secs(30);

/// Carries out one piece of work.
pub(super) async fn perform(
    host: &Arc<Host>,
    call: &FsCall,
    cancel: CancellationToken,
) -> Result<FsReply, FsError> {
    let gone = FsError::Failed { reason: FailReason::PrepareFailed };
    match call {
        FsCall::Prepare { claim, root, .. } => {
            let entry = host.book.get(*claim).ok_or(gone)?;
            prepare(host, &entry, root, cancel).await.map_err(|trouble| noted(&entry, trouble))
        }
        FsCall::Resolve { claim } => {
            let entry = host.book.get(*claim).ok_or(gone)?;
            let looked = async {
                let (look, at) = (host.clone(), entry.clone());
                blocking(move || resolve(&look, &at)).await?
            };
            let resolved = tokio::select! {
                resolved = looked => resolved,
                // Whatever still looks, on a file system that hangs, changes nothing any more.
                () = cancel.cancelled() => Err(Trouble {
                    error: FsError::Cancelled,
                    text: "looking at the directory of the task's project did not come to an end".to_owned(),
                }),
            };
            let real = resolved.map_err(|trouble| noted(&entry, trouble))?;
            Ok(FsReply::Resolved { path: host.key_of(&real) })
        }
        FsCall::Unwind { claim } => {
            if let Some(entry) = host.book.get(*claim) {
                unwind(&entry).await;
            }
            Ok(FsReply::Done)
        }
        FsCall::Seal { claim, record } => {
            if let Some(entry) = host.book.get(*claim) {
                close(&entry, *record).await;
            }
            Ok(FsReply::Done)
        }
        FsCall::Probe { all } => probe::look(host, *all, cancel).await,
        FsCall::Act { runtime, action } => action::act(host, (runtime, action), cancel).await,
        FsCall::Scan => collect::scan(host, cancel).await,
        FsCall::Collect(call) => collect::free(host, call).await,
        // Caches of repositories, of which this daemon has none.
        FsCall::Maintain => Ok(FsReply::Done),
        _ => Err(gone),
    }
}

pub(super) struct Trouble {
    pub(super) error: FsError,
    pub(super) text: String,
}

/// Keeps the text for the report and the log.
fn noted(entry: &Entry, trouble: Trouble) -> FsError {
    tracing::warn!(task = %entry.id, "{}", trouble.text);
    entry.trouble(trouble.text);
    trouble.error
}

impl Trouble {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { error: FsError::Failed { reason: FailReason::PrepareFailed }, text: text.into() }
    }

    fn of_directory(text: impl Into<String>) -> Self {
        Self { error: FsError::Failed { reason: FailReason::LocalDirectoryError }, text: text.into() }
    }
}

async fn prepare(
    host: &Arc<Host>,
    entry: &Arc<Entry>,
    root: &EnvRoot,
    cancel: CancellationToken,
) -> Result<FsReply, Trouble> {
    let backstop = host.settings.prepare_timeout.saturating_add(BACKSTOP);
    let begun = tokio::time::Instant::now();
    let furnished = async {
        let (at, of) = (host.clone(), entry.clone());
        blocking(move || claim(&at, &of)).await??;
        let skills = skills::fetched(host, entry, backstop, &cancel).await?;
        let (at, of) = (host.clone(), entry.clone());
        blocking(move || job(&at, &of, &skills)).await?
    };
    let (job, pair) = tokio::join!(furnished, host.launcher.take());
    let job = job?;
    let pair = pair.map_err(|error| Trouble::new(error.to_string()))?;
    let backstop = backstop.saturating_sub(begun.elapsed());
    let (reply, ready) = pair.prepare(&job, backstop, cancel.cancelled()).await.map_err(|error| {
        let kind = match &error {
            supervise::PrepareError::Deadline { .. } => FsError::TimedOut,
            supervise::PrepareError::Cancelled => FsError::Cancelled,
            _ => FsError::Failed { reason: FailReason::PrepareFailed },
        };
        let text = match kind {
            FsError::Failed { .. } => format!("prepare execution environment: {error}"),
            _ => timed_out(host.settings.prepare_timeout),
        };
        Trouble { error: kind, text }
    })?;
    entry.disk().ready = Some(ready);
    let done = blocking({
        let (host, entry) = (host.clone(), entry.clone());
        move || accept(&host, &entry, &reply)
    });
    let reused = done.await??;
    // The agent works in the earlier directory, which the core has marked as well.
    let used = reused.unwrap_or_else(|| root.clone());
    Ok(FsReply::Prepared { root: used })
}

fn timed_out(after: Duration) -> String {
    format!("the task's preparation did not end within {after:?}; the process that did it was killed")
}

/// Looks at the person's directory that a task works in, and keeps which one it really is.
fn resolve(host: &Host, entry: &Entry) -> Result<PathBuf, Trouble> {
    let local = entry.disk().local.clone();
    let local = local.ok_or_else(|| Trouble::of_directory("the task has no directory; this is a bug"))?;
    let real = local::check(&local, &host.settings.dirs.home).map_err(Trouble::of_directory)?;
    entry.disk().local = Some(LocalDirectory { real: Some(real.clone()), ..local });
    Ok(real)
}

/// Where the task works, if that is in a person's directory. A chat did not wait for a look at it.
fn local_workdir(host: &Host, entry: &Entry) -> Result<Option<PathBuf>, Trouble> {
    let local = entry.disk().local.clone();
    match local {
        None => Ok(None),
        Some(LocalDirectory { real: Some(real), .. }) => Ok(Some(real)),
        Some(LocalDirectory { real: None, .. }) => resolve(host, entry).map(Some),
    }
}

/// Locks the task's directory and decides whether an earlier one is used again.
fn claim(host: &Host, entry: &Entry) -> Result<(), Trouble> {
    let root = &host.settings.workspaces_root;
    enough_space(host)?;
    let local = local_workdir(host, entry)?;
    let claim = Claim::take(root, &entry.task.workspace_id, &entry.task.id)
        .map_err(|error| Trouble::new(format!("claim execution environment: {error}")))?;
    let reuse = match &local {
        Some(_) => None,
        None => earlier(root, entry, &claim),
    };
    let mut disk = entry.disk();
    disk.claim = Some(claim);
    disk.reuse = reuse;
    Ok(())
}

/// What the helper is asked to do.
fn job(host: &Host, entry: &Entry, skills: &[Skill]) -> Result<Vec<u8>, Trouble> {
    let local = local_workdir(host, entry)?;
    let disk = entry.disk();
    let home = host.settings.dirs.home.clone();
    let codex_home = prepare::shared_codex_home(host.var("CODEX_HOME"), Some(&home));
    let setup = Setup {
        workspaces_root: &host.settings.workspaces_root,
        provider: &entry.provider,
        reuse: disk.reuse.as_ref(),
        local_workdir: local.as_deref(),
        home: Some(&home),
        codex_home: codex_home.as_deref(),
        fetched: skills,
    };
    let job = Job::for_task(&entry.task, &setup);
    drop(disk);
    job.to_bytes().map_err(|error| Trouble::new(format!("prepare execution environment: {error}")))
}

/// The earlier directory that is used again, if there is one.
fn earlier(root: &Path, entry: &Entry, claim: &Claim) -> Option<Reuse> {
    match prepare::reuse::decide(root, &entry.task, claim) {
        Decision::Reuse(reuse) => Some(reuse),
        Decision::Fresh(FreshBecause::NoPrior) => None,
        Decision::Fresh(because) => {
            tracing::info!(task = %entry.id, "a fresh directory is made: {because}");
            None
        }
    }
}

/// Takes what the helper made, after looking that it is there, and makes the temp dir. Returns the earlier directory if it is the one used.
fn accept(host: &Host, entry: &Entry, reply: &[u8]) -> Result<Option<EnvRoot>, Trouble> {
    let failed =
        |error: &dyn std::fmt::Display| Trouble::new(format!("prepare execution environment: {error}"));
    let prepared = prepare::read_reply(reply).map_err(|error| match error {
        PrepareError::WorkDir { .. } => {
            Trouble::of_directory(format!("prepare execution environment: {error}"))
        }
        error => failed(&error),
    })?;
    prepared.verify().map_err(|error| failed(&error))?;
    for warning in &prepared.warnings {
        tracing::warn!(task = %entry.id, "{warning}");
    }
    let mut reused = None;
    if prepared.reused {
        let confirmed = entry.disk().reuse.as_ref().is_some_and(|reuse| reuse.is_confirmed_by(&prepared));
        if !confirmed {
            return Err(Trouble::new(
                "prepare execution environment: the earlier directory was exchanged meanwhile",
            ));
        }
        let workdir = prepared.workdir.display().to_string();
        reused = prepare::prior_root(&[&host.settings.workspaces_root], &workdir);
    }
    let base = host.settings.agent_temp_base.as_ref().map(|base| base.as_os_str());
    let temp =
        TempDir::create(base).map_err(|error| Trouble::new(format!("prepare task temp dir: {error}")))?;
    if let Some(warning) = temp.warning() {
        tracing::warn!(task = %entry.id, "{warning}");
    }
    let mut disk = entry.disk();
    disk.prepared = Some(prepared);
    disk.temp = Some(temp);
    Ok(reused)
}

/// Ends what must not outlive the run: waiting processes, the temp dir, secrets and sidecars.
async fn unwind(entry: &Arc<Entry>) {
    let (ready, temp) = {
        let mut disk = entry.disk();
        (disk.ready.take(), disk.temp.take())
    };
    if let Some(ready) = ready
        && let Err(error) = ready.discard().await
    {
        tracing::error!(task = %entry.id, "{error}");
    }
    let entry = entry.clone();
    let done = blocking(move || {
        if let Some(temp) = temp
            && let Err(error) = temp.remove()
        {
            tracing::warn!(task = %entry.id, "the task's temp dir is left to the collector: {error}");
        }
        // A file system may hang under the work, and the thread that does everything else asks for what is held here.
        let (prepared, own, local, is_left) = {
            let disk = entry.disk();
            let own = disk.claim.as_ref().map(|claim| (claim.path().to_owned(), claim.identity()));
            (disk.prepared.clone(), own, disk.local.clone(), disk.is_left)
        };
        let local = local.as_ref();
        let unwound = match (&prepared, &own) {
            _ if is_left => Ok(()),
            (Some(prepared), _) => seal::unwind(prepared, &entry.provider),
            (None, Some((path, identity))) => {
                let real = local.and_then(|local| local.real.as_deref());
                let theirs = real.zip(local).map(|(real, local)| Theirs { real, shared: local.shared });
                seal::unwind_at(path, *identity, theirs, &entry.provider)
            }
            (None, None) => Ok(()),
        };
        if let Err(error) = unwound {
            tracing::warn!(task = %entry.id, "the task's directory could not be tidied up: {error}");
        }
    });
    if let Err(trouble) = done.await {
        tracing::error!("{}", trouble.text);
    }
}

/// Writes what the collector needs and gives the locks back.
async fn close(entry: &Arc<Entry>, record: bool) {
    let entry = entry.clone();
    let done = blocking(move || {
        let (prepared, is_left) = {
            let disk = entry.disk();
            (disk.prepared.clone(), disk.is_left)
        };
        if record
            && !is_left
            && let Some(prepared) = &prepared
        {
            let meta = Meta::of(&entry.task, prepared.local_directory, Timestamp::now());
            if let Some(meta) = meta
                && let Err(error) = seal::write_meta(prepared, &meta)
            {
                tracing::warn!(task = %entry.id, "the collector's record was not written: {error}");
            }
        }
        let (claim, reuse) = {
            let mut disk = entry.disk();
            (disk.claim.take(), disk.reuse.take())
        };
        drop(reuse);
        if let Some(claim) = claim {
            claim.release();
        }
    });
    if let Err(trouble) = done.await {
        tracing::error!("{}", trouble.text);
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Trouble> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        Trouble::new(format!("work on the disk failed unexpectedly ({error}); this is a bug"))
    })
}
