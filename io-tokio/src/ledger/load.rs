//! Reading what an earlier process left. A file that cannot be read costs what it was about, and nothing else: it is set aside.

use super::VERSION;
use super::journal::{Journal, Replayed};
use super::record::{Kept, KeptOutcome, Versioned, WrittenRecord};
use super::store::{OUTBOX, OUTCOME, RECORD};
use crate::regular;
use longshore_core::event::{ClaimKey, Recovered};
use longshore_core::ledger::RecordError;
use serde::de::DeserializeOwned;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Where directories go that cannot be read.
const ASIDE: &str = "aside";
/// How many of them are kept; the oldest go first.
const MAX_ASIDE: usize = 32;

/// What was found.
#[derive(Debug, Default)]
pub struct Found {
    /// Claims that something is owed for, by their number.
    pub claims: Vec<Set>,
    /// What was set aside, with the reason.
    pub aside: Vec<(PathBuf, String)>,
}

/// All that was kept of one claim.
#[derive(Debug)]
pub struct Set {
    /// The record.
    pub kept: Kept,
    /// What its last attempt came to, if one is over.
    pub outcome: Option<KeptOutcome>,
    /// What its agent said.
    pub said: Replayed,
}

/// Why a directory is set aside.
#[derive(Debug, thiserror::Error)]
enum Unreadable {
    #[error("{0} has form {1}; this version of longshore reads up to form {VERSION}")]
    Later(&'static str, u32),
    #[error("{0} is damaged: {1}")]
    Damaged(&'static str, serde_json::Error),
    #[error("{0} is about another claim than its directory")]
    Misplaced(&'static str),
    #[error("{0} cannot be read: {1}")]
    Io(&'static str, String),
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// Reads everything below the directory.
pub(super) fn all(dir: &Path) -> io::Result<Found> {
    let mut found = Found::default();
    let mut names = Vec::new();
    for entry in fs::read_dir(dir)? {
        names.push(entry?.file_name());
    }
    // What a kill left of a file that was never put in its place.
    for name in names.iter().filter(|name| name.as_bytes().starts_with(b".tmp")) {
        let _ = fs::remove_file(dir.join(name));
    }
    let mut claims: Vec<u64> = names.iter().filter_map(|name| number(name)).collect();
    claims.sort_unstable();
    for claim in claims {
        let path = dir.join(claim.to_string());
        match one(&path, ClaimKey(claim)) {
            Ok(Some(set)) => found.claims.push(set),
            // Made, and never written; or over, and not quite removed.
            Ok(None) => drop(fs::remove_dir_all(&path)),
            Err(reason) => {
                let at = set_aside(dir, &path, claim)?;
                found.aside.push((at, reason.to_string()));
            }
        }
    }
    Ok(found)
}

fn number(name: &OsStr) -> Option<u64> {
    let text = name.to_str()?;
    let number = text.parse().ok()?;
    // Only names that this version writes: `007` and `+7` are somebody else's.
    (format!("{number}") == text).then_some(number)
}

fn one(dir: &Path, claim: ClaimKey) -> Result<Option<Set>, Unreadable> {
    let Some(written) = read::<WrittenRecord>(dir, RECORD)? else { return Ok(None) };
    let mut kept = Kept::from(written);
    if kept.record.claim() != claim {
        return Err(Unreadable::Misplaced(RECORD));
    }
    let outcome = read::<KeptOutcome>(dir, OUTCOME)?;
    let mut said =
        Journal::read(&dir.join(OUTBOX)).map_err(|error| Unreadable::Io(OUTBOX, error.to_string()))?;
    if matches!(kept.record.was, Recovered::Ended { .. }) {
        // There may be many of them, and a server that takes nothing for weeks: what they said is read again when it is sent.
        (said.unsent, said.is_left) = (VecDeque::new(), true);
    }
    kept.record.acked(said.taken);
    if kept.record.is_settled() {
        return Ok(None);
    }
    Ok(Some(Set { kept, outcome, said }))
}

fn read<T: DeserializeOwned>(dir: &Path, name: &'static str) -> Result<Option<T>, Unreadable> {
    let text = match regular::read(&dir.join(name), u64::MAX) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(|error| Unreadable::Io(name, error.to_string()))?,
    };
    let damaged = |error| Unreadable::Damaged(name, error);
    let Versioned { version } = serde_json::from_slice(&text).map_err(damaged)?;
    if version > VERSION {
        return Err(Unreadable::Later(name, version));
    }
    serde_json::from_slice(&text).map(Some).map_err(damaged)
}

/// Moves a directory out of the way; what it was about is for a person to look at.
fn set_aside(dir: &Path, path: &Path, claim: u64) -> io::Result<PathBuf> {
    let aside = dir.join(ASIDE);
    match DirBuilder::new().mode(0o700).create(&aside) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let at = aside.join(format!("{claim}-{}", uuid::Uuid::now_v7().simple()));
    fs::rename(path, &at)?;
    let mut names: Vec<_> = fs::read_dir(&aside)?
        .filter_map(|entry| {
            let entry = entry.ok()?;
            Some((entry.metadata().and_then(|meta| meta.modified()).ok()?, entry.path()))
        })
        .collect();
    names.sort();
    let surplus = names.len().saturating_sub(MAX_ASIDE);
    for (_, old) in names.into_iter().take(surplus) {
        let _ = fs::remove_dir_all(old);
    }
    Ok(at)
}
