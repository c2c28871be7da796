//! Skills that were fetched, on disk: `<workspaces root>/.skill-cache/v1/<workspace>/<source>/<skill id>/<hash>/`, in it the bundle as the
//! server sent it, and beside that its files, one by one, for tasks to link to (see [`crate::prepare`]).
//!
//! Other daemons share this place. A bundle is exchanged in one step and checked whenever it is read, so it does not matter who wrote it, and
//! nobody has to wait for a lock. No symbolic link is followed on the way to it.

use super::check::Checked;
use crate::prepare::{Dir, PrepareError, layout, tree};
use crate::wire::skill::Bundle;
use longshore_core::id::is_safe_component;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The caches' folder, below the workspaces root. Dot folders are no workspaces to any daemon.
pub(super) const FOLDER: &str = ".skill-cache";
/// How the layout below it is called.
pub(super) const VERSION: &str = "v1";
/// The bundle.
pub(super) const BUNDLE: &str = "bundle.json";
/// Its files.
pub(super) const FILES: &str = "files";
/// Largest bundle that is read, in bytes: the texts of the largest skill with much in them to be escaped.
const MAX_ENTRY: u64 = 64 * 1024 * 1024;

/// Where a skill is kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    workspace: String,
    source: String,
    id: String,
    hash: String,
}

impl Place {
    /// The place of this skill; `None` if one of the texts can be no folder's name, which then is not kept.
    pub fn new(workspace: &str, source: &str, id: &str, hash: &str) -> Option<Self> {
        let usable = |text: &str| is_safe_component(text) && !text.starts_with('.');
        let own = str::to_owned;
        [workspace, source, id, hash].into_iter().all(usable).then(|| Self {
            workspace: own(workspace),
            source: own(source),
            id: own(id),
            hash: own(hash),
        })
    }

    fn parts(&self) -> [&str; 6] {
        [FOLDER, VERSION, &self.workspace, &self.source, &self.id, &self.hash]
    }

    /// Its folder, below the workspaces root.
    pub fn folder(&self) -> PathBuf {
        self.parts().iter().collect()
    }

    /// The folder of its single files, below the workspaces root.
    pub fn files(&self) -> PathBuf {
        self.folder().join(FILES)
    }
}

/// The skill at this place, if there is one and it is whole. One that is not is removed, so that it is fetched again.
pub(super) fn load(root: &Path, place: &Place) -> Option<Checked> {
    let bytes = match read(root, place) {
        Ok(bytes) => bytes?,
        Err(error) => {
            tracing::warn!(skill = place.id, "a kept skill cannot be read, so it is fetched again: {error}");
            return None;
        }
    };
    let why = match serde_json::from_slice::<Bundle>(&bytes) {
        Ok(bundle) => match Checked::of_cache(bundle, &place.id, &place.source, &place.hash) {
            Ok(checked) => {
                note_use(root, place);
                return Some(checked);
            }
            Err(error) => error.to_string(),
        },
        Err(error) => error.to_string(),
    };
    tracing::warn!(skill = place.id, "a kept skill is damaged and removed, to be fetched again: {why}");
    if let Err(error) = remove(root, place) {
        tracing::warn!(skill = place.id, "it could not be removed: {error}");
    }
    None
}

fn read(root: &Path, place: &Place) -> io::Result<Option<Vec<u8>>> {
    let top = match Dir::open(root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        top => top?,
    };
    let Some(folder) = top.descend(&place.folder())? else { return Ok(None) };
    folder.read(BUNDLE, MAX_ENTRY)
}

/// Marks the skill as used now, so that it stays. Where that cannot be done it goes the sooner, which costs a request.
fn note_use(root: &Path, place: &Place) {
    let mark = || -> io::Result<()> {
        let folder = Dir::open(root)?.descend(&place.folder())?;
        match folder.map(|folder| folder.open_file(BUNDLE)).transpose()?.flatten() {
            Some(bundle) => bundle.set_modified(SystemTime::now()),
            None => Ok(()),
        }
    };
    if let Err(error) = mark() {
        tracing::debug!(skill = place.id, "that it is used cannot be marked: {error}");
    }
}

fn remove(root: &Path, place: &Place) -> io::Result<()> {
    let above = place.folder();
    let above = above.parent().unwrap_or(Path::new(""));
    match Dir::open(root)?.descend(above)? {
        Some(above) => tree::remove(&above, &place.hash).into_result().map(drop),
        None => Ok(()),
    }
}

/// Keeps a skill.
pub(super) fn store(root: &Path, place: &Place, skill: &Checked) -> Result<(), PrepareError> {
    let failed = |error: io::Error| PrepareError::Io {
        action: "keep the skill in".to_owned(),
        path: root.join(place.folder()),
        reason: error.to_string(),
    };
    let bytes = serde_json::to_vec(skill.bundle()).map_err(|error| failed(error.into()))?;
    let make = || -> io::Result<()> {
        let mut at = Dir::open(root)?;
        for part in place.parts() {
            // The texts may be nobody else's business; programs of the same user reach them all the same.
            at = at.ensure(part, layout::PRIVATE_DIR)?;
        }
        at.replace(BUNDLE, &bytes, layout::FILE)
    };
    make().map_err(failed)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::check::tests::{bundle, reference};
    use super::*;
    use std::fs;

    pub(in super::super) fn demo() -> Checked {
        let bundle = bundle("workspace", "a", "# Demo\n", &[("ref/b.md", "beta\n")]);
        Checked::of_reply(bundle.clone(), &reference(&bundle)).expect("checked")
    }

    pub(in super::super) fn place(skill: &Checked) -> Place {
        let bundle = skill.bundle();
        Place::new("ws", &bundle.source, &bundle.id, &bundle.hash).expect("safe")
    }

    #[test]
    fn what_is_kept_comes_back_from_where_every_daemon_looks_for_it() {
        let temp = tempfile::tempdir().expect("temp");
        let (skill, at) = (demo(), place(&demo()));
        assert_eq!(load(temp.path(), &at), None);
        store(temp.path(), &at, &skill).expect("kept");
        store(temp.path(), &at, &skill).expect("and again");
        assert_eq!(load(temp.path(), &at).as_ref(), Some(&skill));
        let hash = &skill.bundle().hash;
        let file = temp.path().join(".skill-cache/v1/ws/workspace/a").join(hash).join("bundle.json");
        let text: serde_json::Value = serde_json::from_slice(&fs::read(&file).expect("there")).expect("JSON");
        assert_eq!(text["files"][0]["path"], "ref/b.md");
        assert_eq!(
            fs::read_dir(file.parent().expect("a folder")).expect("list").count(),
            1,
            "no other file is left"
        );
        assert_eq!(load(&temp.path().join("none"), &at), None, "a root that is not there has nothing");
    }

    #[test]
    fn skc_1_a_tampered_skill_is_a_miss_and_removed() {
        let temp = tempfile::tempdir().expect("temp");
        let (skill, at) = (demo(), place(&demo()));
        let file = temp.path().join(at.folder()).join(BUNDLE);
        for change in ["beta\\n", "demo-skill", "\"a\"", "{"] {
            store(temp.path(), &at, &skill).expect("kept");
            let text = fs::read_to_string(&file).expect("there");
            assert!(text.contains(change), "{change}");
            fs::write(&file, text.replacen(change, "x", 1)).expect("tampered with");
            assert_eq!(load(temp.path(), &at), None, "{change}");
            assert!(!temp.path().join(at.folder()).exists(), "{change}");
        }
        // A whole bundle, but of another place.
        let other = Place { hash: "sha256:0".into(), ..at };
        store(temp.path(), &other, &skill).expect("kept");
        assert_eq!(load(temp.path(), &other), None);
        assert!(!temp.path().join(other.folder()).exists());
    }

    #[test]
    fn bug_42_a_link_in_the_cache_leads_nowhere() {
        let temp = tempfile::tempdir().expect("temp");
        let (skill, at) = (demo(), place(&demo()));
        let elsewhere = temp.path().join("elsewhere");
        fs::create_dir(&elsewhere).expect("elsewhere");
        store(&elsewhere, &at, &skill).expect("kept");
        let root = temp.path().join("root");
        fs::create_dir(&root).expect("root");
        std::os::unix::fs::symlink(elsewhere.join(FOLDER), root.join(FOLDER)).expect("link");
        assert_eq!(load(&root, &at), None);
        assert!(store(&root, &at, &skill).is_err());
        assert_eq!(load(&elsewhere, &at).as_ref(), Some(&skill), "what it led to is as it was");
    }

    #[test]
    fn ids_that_are_no_folders_name_are_not_kept() {
        for (workspace, source, id) in [("", "s", "i"), ("w", "..", "i"), ("w", "s", "a/b"), ("w", ".s", "i")]
        {
            assert_eq!(Place::new(workspace, source, id, "sha256:0"), None, "{workspace} {source} {id}");
        }
        assert!(Place::new("w", "builtin", "builtin:multica-x", "sha256:0").is_some());
    }
}
