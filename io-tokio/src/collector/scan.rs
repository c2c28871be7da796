//! Looks for directories that nobody may need any more.

use super::asked::Question;
use super::free;
use super::look::{Look, is_marked, is_name};
use super::policy::{Answer, Verdict, decide};
use crate::config::GcSettings;
use crate::prepare::{Dir, tree};
use jiff::Timestamp;
use longshore_core::event::{Collect, Found};
use longshore_core::id::EnvRoot;
use rustix::fs::FileType;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Most directories that one look returns.
const MOST: usize = 100_000;

/// What a look found.
#[derive(Debug, Default)]
pub struct Scan {
    /// The directories, with what may be done with them, or that the server must be asked.
    pub found: Vec<Found>,
    /// What is going to be asked about them.
    pub questions: Vec<Question>,
    /// What was decided without asking.
    pub verdicts: BTreeMap<EnvRoot, Verdict>,
}

/// Looks at every directory below the workspaces root. `go_on` is asked before each; once it says no, what was found so far is returned.
///
/// Only directories that a daemon made are looked at. Caches, which have a dot before their names, and symbolic links are not.
///
/// # Errors
/// If the workspaces root itself cannot be read.
pub fn scan(
    root: &Path,
    settings: &GcSettings,
    now: Timestamp,
    go_on: impl Fn() -> bool,
) -> io::Result<Scan> {
    let mut scan = Scan::default();
    let top = match Dir::open(root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(scan),
        top => top?,
    };
    // What an earlier process had taken away but not removed yet.
    if matches!(top.kind(free::TRASH), Ok(Some(FileType::Directory))) {
        let swept = tree::remove(&top, free::TRASH);
        if let Err(error) = swept.into_result() {
            tracing::warn!("remains of collected directories cannot be removed: {error}");
        }
    }
    for workspace in directories(&top)? {
        let Ok(Some(above)) = top.child(&workspace) else { continue };
        let Ok(keys) = directories(&above) else { continue };
        for key in keys {
            if !go_on() || scan.found.len() == MOST {
                return Ok(scan);
            }
            match one(&above, &workspace, &key, settings, now) {
                Ok(Some(One::Ask(root, question))) => {
                    scan.found.push(Found { root, what: None });
                    scan.questions.push(question);
                }
                Ok(Some(One::Free(root, verdict))) => {
                    scan.found.push(Found { root: root.clone(), what: Some(for_core(verdict)) });
                    scan.verdicts.insert(root, verdict);
                }
                Ok(None) => {}
                Err(error) => tracing::debug!(workspace, key, "a directory is passed over: {error}"),
            }
        }
    }
    Ok(scan)
}

/// A directory that may be freed.
enum One {
    Ask(EnvRoot, Question),
    Free(EnvRoot, Verdict),
}

fn one(
    above: &Dir,
    workspace: &str,
    key: &str,
    settings: &GcSettings,
    now: Timestamp,
) -> io::Result<Option<One>> {
    let Some(dir) = above.child(key)? else { return Ok(None) };
    if !is_marked(&dir) {
        return Ok(None);
    }
    let look = Look::at(&dir, workspace)?;
    let root = EnvRoot::new(format!("{workspace}/{key}"));
    if let Some(question) = look.question {
        return Ok(Some(One::Ask(root, question)));
    }
    let verdict = decide(&look, &Answer::Silent, settings, now);
    Ok((verdict != Verdict::Keep).then_some(One::Free(root, verdict)))
}

/// What the core needs to know of it.
pub(crate) fn for_core(verdict: Verdict) -> Collect {
    match verdict {
        Verdict::Keep => Collect::Keep,
        Verdict::Managed | Verdict::Artifacts => Collect::Artifacts,
        Verdict::All => Collect::All,
    }
}

/// The names of real directories that can be workspaces or tasks' directories.
fn directories(dir: &Dir) -> io::Result<Vec<String>> {
    let names = dir.names()?.into_iter().filter_map(|name| name.into_string().ok());
    let real = |name: &String| is_name(name) && matches!(dir.kind(name), Ok(Some(FileType::Directory)));
    Ok(names.filter(real).collect())
}
