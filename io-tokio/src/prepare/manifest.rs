//! What the daemon puts into a work directory beside the agent's work, and how it is taken out again.
//!
//! The list is written before the things on it, so that a preparation which is killed half-way leaves nothing that the
//! next one could not find. Nothing that was there before is written over, recorded or removed.

use super::beneath::{Dir, plain_parts};
use super::error::{At, PrepareError};
use super::layout::{self, MANIFEST};
use super::share::{self, Shared};
use super::tree;
use rustix::fs::FileType;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Largest list that is read, in bytes.
const MAX_MANIFEST: u64 = 8 * 1024 * 1024;

/// The list on disk: absolute paths, directories from the outside in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Manifest {
    /// Files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) files: Vec<PathBuf>,
    /// Directories.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) dirs: Vec<PathBuf>,
}

impl Manifest {
    /// The list of an env root; `None` if there is none.
    pub(crate) fn read(env_root: &Dir) -> Result<Option<Self>, PrepareError> {
        let path = env_root.path().join(MANIFEST);
        let Some(bytes) = env_root.read(MANIFEST, MAX_MANIFEST).at("read", &path)? else { return Ok(None) };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| PrepareError::Io {
            action: "understand".to_owned(),
            path,
            reason: error.to_string(),
        })
    }

    fn write(&self, env_root: &Dir) -> Result<(), PrepareError> {
        let bytes =
            serde_json::to_vec(self).map_err(|error| PrepareError::Job { reason: error.to_string() })?;
        env_root.replace(MANIFEST, &bytes, layout::FILE).at("write", env_root.path().join(MANIFEST))
    }
}

/// What to do where something already is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    /// It stays, and is not ours.
    Keep,
    /// That is an error.
    Refuse,
    /// It was found to be ours from an earlier run: written anew and recorded.
    Replace,
}

struct File {
    below: PathBuf,
    bytes: Vec<u8>,
    existing: Existing,
    shared: Option<Shared>,
}

/// Files and directories that are going to be put into a work directory.
#[derive(Default)]
pub(crate) struct Sidecars {
    dirs: Vec<PathBuf>,
    files: Vec<File>,
}

impl Sidecars {
    /// Plans a directory.
    pub(crate) fn dir(&mut self, below: impl Into<PathBuf>) {
        self.dirs.push(below.into());
    }

    /// Plans a file, mode 0644.
    pub(crate) fn file(&mut self, below: impl Into<PathBuf>, bytes: impl Into<Vec<u8>>, existing: Existing) {
        self.files.push(File { below: below.into(), bytes: bytes.into(), existing, shared: None });
    }

    /// Plans a new file that may be a link to a shared one.
    pub(crate) fn shared_file(
        &mut self,
        below: impl Into<PathBuf>,
        bytes: impl Into<Vec<u8>>,
        shared: Option<Shared>,
    ) {
        let existing = Existing::Refuse;
        self.files.push(File { below: below.into(), bytes: bytes.into(), existing, shared });
    }

    /// Writes the list into the env root, then everything on it below the work directory.
    pub(crate) fn write(mut self, env_root: &Dir, work_dir: &Dir) -> Result<(), PrepareError> {
        let mut manifest = Manifest::default();
        let mut seen = BTreeSet::new();
        let mut missing = Vec::new();
        for dir in
            self.dirs.iter().map(PathBuf::as_path).chain(self.files.iter().filter_map(|f| f.below.parent()))
        {
            for part in from_the_outside(dir) {
                if seen.insert(part.clone()) && is_missing_dir(work_dir, &part)? {
                    manifest.dirs.push(work_dir.path().join(&part));
                    missing.push(part);
                }
            }
        }
        let mut names = BTreeSet::new();
        let mut kept = Vec::new();
        for file in &self.files {
            let path = work_dir.path().join(&file.below);
            let taken = !names.insert(file.below.clone()) || is_there(work_dir, &file.below)?;
            match (taken, file.existing) {
                (true, Existing::Refuse) => {
                    let reason = "it already exists".to_owned();
                    return Err(PrepareError::Io { action: "create".to_owned(), path, reason });
                }
                (true, Existing::Keep) => kept.push(false),
                _ => {
                    manifest.files.push(path);
                    kept.push(true);
                }
            }
        }
        let mut kept = kept.into_iter();
        self.files.retain(|_| kept.next().unwrap_or(false));
        manifest.write(env_root)?;

        for dir in &missing {
            let (parent, name) = parent_of(work_dir, dir)?;
            parent.make(name, layout::DIR).at("create", work_dir.path().join(dir))?;
        }
        for file in &self.files {
            let path = work_dir.path().join(&file.below);
            let (parent, name) = parent_of(work_dir, &file.below)?;
            if file.existing == Existing::Replace {
                parent.replace(name, &file.bytes, layout::FILE).at("write", &path)?;
                continue;
            }
            let written = share::create(file.shared.as_ref(), &parent, name, &file.bytes);
            if written.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::AlreadyExists) {
                // Somebody was faster: it is theirs, and must not be removed as ours.
                manifest.files.retain(|recorded| *recorded != path);
                manifest.write(env_root)?;
                if file.existing == Existing::Keep {
                    continue;
                }
            }
            written.at("write", &path)?;
        }
        Ok(())
    }
}

/// Takes out everything on the list, then the list. What others put into a directory of ours stays, with it. Goes on
/// after an error and returns the first; a list that cannot be understood removes nothing.
///
/// `spellings` are the paths under which the work directory may have been recorded. `skills` is the place of the
/// provider's skills: directories of ours directly in it go as a whole.
pub(crate) fn roll_back(
    env_root: &Dir,
    work_dir: &Dir,
    spellings: &[&Path],
    skills: Option<&Path>,
) -> Result<(), PrepareError> {
    let Some(manifest) = Manifest::read(env_root)? else { return Ok(()) };
    let mut first = None;
    let mut keep = |result: Result<(), PrepareError>| {
        if let Err(error) = result {
            first.get_or_insert(error);
        }
    };
    let below =
        |path: &Path| spellings.iter().find_map(|base| path.strip_prefix(base).ok().map(Path::to_owned));
    if let Some(skills) = skills {
        for dir in
            manifest.dirs.iter().filter_map(|dir| below(dir)).filter(|dir| dir.parent() == Some(skills))
        {
            keep(remove_whole(work_dir, &dir));
        }
    }
    for file in &manifest.files {
        keep(match below(file) {
            Some(file) => take_out(work_dir, &file, |parent, name| parent.unlink(name).map(drop)),
            None => Err(outside(file)),
        });
    }
    for dir in manifest.dirs.iter().rev() {
        keep(match below(dir) {
            Some(dir) => take_out(work_dir, &dir, |parent, name| match parent.rmdir(name) {
                Err(error) if tree::is_not_empty(&error) => Ok(()),
                other => other.map(drop),
            }),
            None => Err(outside(dir)),
        });
    }
    keep(env_root.unlink(MANIFEST).map(drop).at("remove", env_root.path().join(MANIFEST)));
    first.map_or(Ok(()), Err)
}

fn outside(path: &Path) -> PrepareError {
    let reason = "the list of files to remove names it, but it is outside the work directory".to_owned();
    PrepareError::Io { action: "remove".to_owned(), path: path.to_owned(), reason }
}

fn take_out(
    work_dir: &Dir,
    below: &Path,
    remove: impl FnOnce(&Dir, &OsStr) -> std::io::Result<()>,
) -> Result<(), PrepareError> {
    let path = work_dir.path().join(below);
    let (Some(parent), Some(name)) = (below.parent(), below.file_name()) else { return Ok(()) };
    match work_dir.descend(parent).at("remove", &path)? {
        Some(parent) => remove(&parent, name).at("remove", &path),
        None => Ok(()),
    }
}

fn remove_whole(work_dir: &Dir, below: &Path) -> Result<(), PrepareError> {
    take_out(work_dir, below, |parent, name| match parent.kind(name)? {
        Some(FileType::Directory) => tree::remove(parent, name).into_result().map(drop),
        _ => Ok(()),
    })
}

fn from_the_outside(dir: &Path) -> Vec<PathBuf> {
    let mut parts: Vec<PathBuf> =
        dir.ancestors().filter(|part| !part.as_os_str().is_empty()).map(Path::to_owned).collect();
    parts.reverse();
    parts
}

/// Whether a directory is to be made; an error if something else is there.
fn is_missing_dir(work_dir: &Dir, below: &Path) -> Result<bool, PrepareError> {
    plain_parts(below).at("create", work_dir.path().join(below))?;
    Ok(work_dir.descend(below).at("use", work_dir.path().join(below))?.is_none())
}

fn is_there(work_dir: &Dir, below: &Path) -> Result<bool, PrepareError> {
    let path = work_dir.path().join(below);
    let Some(parent) = work_dir.descend(below.parent().unwrap_or(Path::new(""))).at("look at", &path)? else {
        return Ok(false);
    };
    Ok(parent.kind(below.file_name().unwrap_or_default()).at("look at", &path)?.is_some())
}

fn parent_of<'a>(work_dir: &Dir, below: &'a Path) -> Result<(Dir, &'a OsStr), PrepareError> {
    let path = work_dir.path().join(below);
    let name = below.file_name().ok_or_else(|| outside(&path))?;
    let parent = work_dir.descend(below.parent().unwrap_or(Path::new(""))).at("open", &path)?;
    Ok((parent.ok_or(PrepareError::Changed { path })?, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    struct Place {
        temp: tempfile::TempDir,
        root: Dir,
        work: Dir,
    }

    fn place() -> Place {
        let temp = tempfile::tempdir().expect("temp");
        let root = Dir::open(temp.path()).expect("open").ensure("root", 0o755).expect("root");
        let work = Dir::open(temp.path()).expect("open").ensure("work", 0o755).expect("work");
        Place { temp, root, work }
    }

    fn undo(place: &Place, skills: Option<&str>) -> Result<(), PrepareError> {
        roll_back(&place.root, &place.work, &[place.work.path()], skills.map(Path::new))
    }

    fn listing(path: &Path) -> Vec<String> {
        let mut found = Vec::new();
        let mut todo = vec![path.to_owned()];
        while let Some(dir) = todo.pop() {
            for entry in fs::read_dir(&dir).expect("list") {
                let entry = entry.expect("entry").path();
                found.push(entry.strip_prefix(path).expect("below").to_string_lossy().into_owned());
                if entry.is_dir() && !entry.is_symlink() {
                    todo.push(entry);
                }
            }
        }
        found.sort();
        found
    }

    #[test]
    fn sid_1_writing_and_rolling_back_leaves_what_was_there() {
        let place = place();
        fs::create_dir_all(place.work.path().join(".claude/skills/mine")).expect("user's");
        fs::write(place.work.path().join(".claude/skills/mine/SKILL.md"), "mine").expect("user's");
        let before = listing(place.work.path());
        let mut sidecars = Sidecars::default();
        sidecars.file(".multica/m.json", "{}", Existing::Refuse);
        sidecars.file(".claude/skills/x/SKILL.md", "s", Existing::Refuse);
        sidecars.file(".claude/skills/x/a/b.md", "s", Existing::Refuse);
        sidecars.dir(".agent_context/skills");
        sidecars.write(&place.root, &place.work).expect("written");
        let manifest = Manifest::read(&place.root).expect("readable").expect("there");
        assert_eq!(manifest.files.len(), 3);
        assert!(manifest.files.iter().all(|file| file.is_absolute()));
        assert!(!manifest.dirs.contains(&place.work.path().join(".claude")));
        undo(&place, None).expect("rolled back");
        assert_eq!(listing(place.work.path()), before);
        undo(&place, None).expect("sid_5: twice is harmless");
    }

    #[test]
    fn sid_2_what_the_agent_added_stays_unless_the_whole_skill_is_ours() {
        let place = place();
        let mut sidecars = Sidecars::default();
        sidecars.file("s/x/SKILL.md", "s", Existing::Refuse);
        sidecars.file("other/f", "s", Existing::Refuse);
        sidecars.write(&place.root, &place.work).expect("written");
        fs::write(place.work.path().join("s/x/added"), "a").expect("added");
        fs::write(place.work.path().join("other/added"), "a").expect("added");
        undo(&place, Some("s")).expect("rolled back");
        assert_eq!(listing(place.work.path()), ["other", "other/added"]);
    }

    #[test]
    fn sid_4_and_ctx_8_what_is_there_is_kept_and_a_link_is_never_written_through() {
        let place = place();
        fs::write(place.work.path().join("f"), "user's").expect("file");
        std::os::unix::fs::symlink(place.temp.path().join("nowhere"), place.work.path().join("l"))
            .expect("link");
        let mut sidecars = Sidecars::default();
        sidecars.file("f", "ours", Existing::Keep);
        sidecars.file("l", "ours", Existing::Keep);
        sidecars.write(&place.root, &place.work).expect("written");
        let mut sidecars = Sidecars::default();
        sidecars.file("l", "ours", Existing::Refuse);
        assert_eq!(sidecars.write(&place.root, &place.work).expect_err("taken").kind(), "io");
        undo(&place, None).expect("rolled back");
        assert_eq!(fs::read_to_string(place.work.path().join("f")).expect("kept"), "user's");
        assert!(!place.temp.path().join("nowhere").exists());
        assert!(place.work.path().join("l").is_symlink());
    }

    #[test]
    fn bug_42_a_folder_of_ours_that_became_a_link_is_refused() {
        let place = place();
        fs::create_dir(place.temp.path().join("victim")).expect("victim");
        fs::write(place.temp.path().join("victim/f"), "x").expect("file");
        let mut sidecars = Sidecars::default();
        sidecars.file("d/f", "ours", Existing::Refuse);
        sidecars.write(&place.root, &place.work).expect("written");
        fs::remove_dir_all(place.work.path().join("d")).expect("agent removes it");
        std::os::unix::fs::symlink(place.temp.path().join("victim"), place.work.path().join("d"))
            .expect("link");
        assert_eq!(undo(&place, None).expect_err("refused").kind(), "symlink");
        let mut sidecars = Sidecars::default();
        sidecars.file("d/g", "ours", Existing::Refuse);
        assert_eq!(sidecars.write(&place.root, &place.work).expect_err("refused").kind(), "symlink");
        assert_eq!(listing(&place.temp.path().join("victim")), ["f"]);
    }

    #[test]
    fn sid_8_a_list_that_names_what_is_outside_removes_nothing_there() {
        let place = place();
        let victim = place.temp.path().join("victim");
        fs::write(&victim, "x").expect("victim");
        let dotted = place.work.path().join("../victim");
        let manifest =
            Manifest { files: vec![victim.clone(), dotted], dirs: vec![place.temp.path().to_owned()] };
        manifest.write(&place.root).expect("written");
        assert!(undo(&place, None).is_err());
        assert!(victim.exists());
        fs::write(place.root.path().join(MANIFEST), "{").expect("torn");
        assert!(undo(&place, None).is_err());
    }

    #[test]
    fn a_list_of_things_that_were_never_made_rolls_back_cleanly() {
        let place = place();
        let manifest = Manifest {
            files: vec![place.work.path().join("a/b/c")],
            dirs: vec![place.work.path().join("a"), place.work.path().join("a/b")],
        };
        manifest.write(&place.root).expect("written");
        undo(&place, None).expect("rolled back");
        assert_eq!(Manifest::read(&place.root).expect("gone"), None);
    }
}
