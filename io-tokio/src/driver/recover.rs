//! What an earlier process left, given to the core: first what it holds on this machine is taken in hand again, then the core is told.

use super::host::Host;
use crate::book::Entry;
use crate::ledger::{Found, Place, Set};
use crate::prepare::reuse::Reuse;
use crate::prepare::seal::{self, Theirs};
use crate::prepare::{Claim, PrepareError};
use crate::tempdir::TempDir;
use futures_util::future::join_all;
use longshore_core::event::Recovered;
use longshore_core::ledger::Record;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long the disk may take over one claim. A file system that hangs must not keep the others from being reported.
const LIMIT: Duration = Duration::from_secs(10);

/// Takes over all that was found, before any runtime is registered. Gives the run directories that belong to it.
pub async fn recover(host: &Arc<Host>, found: Found) -> BTreeSet<PathBuf> {
    for (path, reason) in &found.aside {
        tracing::error!(
            record = %path.display(),
            "the record of a task cannot be used and was set aside: {reason}; its run is ended, and the server gives the task out again once it hears nothing of it"
        );
    }
    // Live runs first: where an earlier claim of the same directory is still to be reported, the directory is theirs.
    let is_live = |set: &Set| matches!(set.kept.record.was, Recovered::Launched { .. });
    let (live, over): (Vec<_>, Vec<_>) = found.claims.into_iter().partition(is_live);
    let mut kept = BTreeSet::new();
    for sets in [live, over] {
        // All at once: a disk that hangs under one of them is no reason to keep the others waiting.
        for (dirs, record) in join_all(sets.into_iter().map(|set| one(host, set))).await {
            kept.extend(dirs);
            host.tell(record.recover()).await;
        }
    }
    kept
}

async fn one(host: &Arc<Host>, set: Set) -> ([PathBuf; 2], Record) {
    let record = as_far_as_written(&set);
    let place = set.kept.place.clone();
    let entry = host.book.take_over(set);
    let dirs = super::run::dirs(host, &entry);
    if matches!(record.was, Recovered::Claimed) {
        // It is given back. Where the disk did not take that it was launched, its agent is at work all the same.
        for dir in &dirs {
            if host.launcher.end_left(dir).await {
                tracing::warn!(task = %entry.id, "an agent that was launched without a record of it was ended");
            }
        }
    }
    (dirs, take_in_hand(host, &entry, record, place).await)
}

/// What the core counts on: no more messages than are there.
fn as_far_as_written(set: &Set) -> Record {
    let mut record = set.kept.record.clone();
    if let Recovered::Ended { have, acked, .. } = &mut record.was {
        let there = set.said.last.max(*acked);
        if *have > there {
            tracing::error!(
                task = set.kept.task.id(),
                missing = *have - there,
                "messages of the task could not be written down before the daemon was ended"
            );
            *have = there;
        }
    }
    record
}

async fn take_in_hand(host: &Arc<Host>, entry: &Arc<Entry>, mut record: Record, place: Place) -> Record {
    let was = record.was;
    if !matches!(was, Recovered::Claimed | Recovered::Ended { report: None, .. }) {
        // Whatever the disk does meanwhile: nobody else may have the person's directory that it works in.
        entry.disk().local.clone_from(&place.local);
    }
    let work = {
        let (host, entry) = (host.clone(), entry.clone());
        tokio::task::spawn_blocking(move || match was {
            Recovered::Claimed => tidy_up(&host, &entry, &place),
            // Only messages are left, and nothing on the disk is its own any more.
            Recovered::Ended { report: None, .. } => {}
            _ => hold_again(&host, &entry, place),
        })
    };
    match tokio::time::timeout(LIMIT, work).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::error!(task = %entry.id, %error, "the task's directory could not be looked at; this is a bug");
        }
        Err(_) => {
            tracing::error!(task = %entry.id, "the disk does not answer; the task's directory is left as it is");
        }
    }
    let real = entry.disk().local.as_ref().and_then(|local| local.real.clone());
    // What the last process called it means nothing in this one.
    record.path = record.path.and_then(|_| real.map(|real| host.key_of(&real)));
    record
}

/// Locks what the run works in, as its own daemon did.
fn hold_again(host: &Host, entry: &Entry, place: Place) {
    let Place { prepared, temp, .. } = place;
    let root = &host.settings.workspaces_root;
    let claim = Claim::take(root, &entry.task.workspace_id, &entry.task.id);
    let reuse =
        prepared.as_ref().filter(|prepared| prepared.reused).map(|prepared| Reuse::again(root, prepared));
    let temp = temp.and_then(|path| {
        let adopted = TempDir::adopt(&path);
        adopted.inspect_err(|error| tracing::debug!(task = %entry.id, "{error}")).ok()
    });
    // Held for no look at the disk: whoever gave this up waits for it as well, and is the thread that does everything else.
    let mut disk = entry.disk();
    match claim {
        Ok(claim) => disk.claim = Some(claim),
        Err(error) => {
            disk.is_left = matches!(error, PrepareError::Busy { .. });
            tracing::warn!(task = %entry.id, "the task's directory is not locked again: {error}");
        }
    }
    if let Some(reuse) = reuse {
        disk.reuse = reuse;
    }
    disk.temp = temp;
    disk.prepared = prepared;
}

/// Takes out of a directory what a preparation that was cut short may have put there. The root itself is left to the next attempt, or to
/// the collector.
fn tidy_up(host: &Host, entry: &Entry, place: &Place) {
    let (task, root) = (&entry.task, &host.settings.workspaces_root);
    let Some(own) = crate::prepare::predicted_root(&task.workspace_id, &task.id) else { return };
    if !root.join(own.as_str()).exists() {
        return;
    }
    let claim = match Claim::take(root, &task.workspace_id, &task.id) {
        Ok(claim) => claim,
        Err(error) => {
            tracing::debug!(task = %entry.id, "the task's directory is left as it is: {error}");
            return;
        }
    };
    let real = place
        .local
        .as_ref()
        .and_then(|local| local.real.clone().or_else(|| std::fs::canonicalize(&local.path).ok()));
    let theirs =
        real.as_deref().zip(place.local.as_ref()).map(|(real, local)| Theirs { real, shared: local.shared });
    if let Err(error) = seal::unwind_at(claim.path(), claim.identity(), theirs, &entry.provider) {
        tracing::warn!(task = %entry.id, "the task's directory could not be tidied up: {error}");
    }
    claim.release();
}
