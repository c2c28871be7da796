//! The collector's work: looking for directories, asking what they were for, freeing them.

use super::host::Host;
use crate::collector::{self, Answer, Asked, Look, Scan, Verdict};
use crate::http::{CallError, Limit};
use crate::prepare::Dir;
use crate::skills::{self, Pruned};
use jiff::Timestamp;
use longshore_core::effect::CollectCall;
use longshore_core::error::FsError;
use longshore_core::event::{ApiReply, FsReply};
use longshore_core::id::EnvRoot;
use longshore_core::reason::FailReason;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use tokio_util::sync::CancellationToken;

/// What is remembered of a round.
#[derive(Debug, Default)]
pub(super) struct Round {
    asked: Asked,
    /// What was decided upon directories and not done yet. Nothing is freed that is not here.
    verdicts: Mutex<BTreeMap<EnvRoot, Verdict>>,
}

impl Round {
    fn verdicts(&self) -> MutexGuard<'_, BTreeMap<EnvRoot, Verdict>> {
        self.verdicts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const FAILED: FsError = FsError::Failed { reason: FailReason::Unknown };

/// Looks for directories that nobody may need any more.
pub(super) async fn scan(host: &Arc<Host>, cancel: CancellationToken) -> Result<FsReply, FsError> {
    let at = host.clone();
    let looked = tokio::task::spawn_blocking(move || {
        let (root, settings) = (&at.settings.workspaces_root, &at.settings.gc);
        let go_on = || !cancel.is_cancelled();
        prune_skills(root, go_on);
        collector::scan(root, settings, Timestamp::now(), go_on)
    });
    let Scan { found, questions, verdicts } = match looked.await {
        Ok(Ok(scan)) => scan,
        Ok(Err(error)) => {
            tracing::warn!("the workspaces root cannot be looked through: {error}");
            return Err(FAILED);
        }
        Err(error) => {
            tracing::error!("the look through the workspaces root broke down ({error}); this is a bug");
            return Err(FAILED);
        }
    };
    host.round.asked.round(questions);
    *host.round.verdicts() = verdicts;
    Ok(FsReply::Scanned { found })
}

/// Removes skills that nobody uses. Nothing waits for it, and what cannot be removed is there for the next round.
fn prune_skills(root: &Path, go_on: impl Fn() -> bool) {
    match skills::prune(root, SystemTime::now(), go_on) {
        Ok(Pruned { versions: 0, .. }) => {}
        Ok(Pruned { versions, bytes }) => {
            tracing::info!(versions, bytes, "skills that were not used for 30 days were removed");
        }
        Err(error) => tracing::warn!("the kept skills cannot be looked through: {error}"),
    }
}

/// Asks what may be freed of a directory.
pub(super) async fn collectable(
    host: &Arc<Host>,
    root: &EnvRoot,
    limit: Limit,
) -> Result<ApiReply, CallError> {
    let keep = |verdict| ApiReply::Collectable { what: collector::for_core(verdict) };
    let (at, of) = (host.clone(), root.clone());
    let look = tokio::task::spawn_blocking(move || look(&at, &of)).await;
    let Ok(Some(look)) = look else { return Ok(keep(Verdict::Keep)) };
    let answer = match &look.question {
        Some(question) => host.round.asked.answer(&host.client, question, limit).await?,
        None => Answer::Silent,
    };
    let verdict = collector::decide(&look, &answer, &host.settings.gc, Timestamp::now());
    if verdict != Verdict::Keep {
        host.round.verdicts().insert(root.clone(), verdict);
    }
    Ok(keep(verdict))
}

/// What is there now; `None` if that cannot be said, which frees nothing.
fn look(host: &Host, root: &EnvRoot) -> Option<Look> {
    let top = Dir::open(&host.settings.workspaces_root).ok()?;
    Look::of(&top, root).inspect_err(|error| tracing::debug!(%root, "it is kept: {error}")).ok()?
}

/// Frees what was decided upon. It is let finish: the directory is reserved until it has.
pub(super) async fn free(host: &Arc<Host>, call: &CollectCall) -> Result<FsReply, FsError> {
    let root = call.root().clone();
    let verdict = host.round.verdicts().remove(&root).unwrap_or(Verdict::Keep);
    let at = host.clone();
    let of = root.clone();
    let freed = tokio::task::spawn_blocking(move || {
        let settings = &at.settings;
        collector::free(&settings.workspaces_root, &of, verdict, &settings.gc.artifact_patterns)
    });
    match freed.await {
        Ok(Ok(freed)) if freed.failed == 0 => {
            tracing::info!(%root, freed = verdict.as_str(), bytes = freed.bytes, entries = freed.entries, "collected");
            Ok(FsReply::Done)
        }
        Ok(Ok(freed)) => {
            tracing::warn!(%root, left = freed.failed, "not all of it could be collected; the next round tries again");
            Err(FAILED)
        }
        Ok(Err(error)) => {
            tracing::info!(%root, "it is not collected: {error}");
            Err(FAILED)
        }
        Err(error) => {
            tracing::error!(%root, "its collection broke down ({error}); this is a bug");
            Err(FAILED)
        }
    }
}
