//! The private home of codex: its own sessions and skills, copies of the shared configuration.
//!
//! The shared home is the user's, and may be on anything: opening a file there can block for ever (a FIFO, a dead
//! network mount). That is not looked for beforehand, as no check could be relied on; the helper process in which this
//! runs has a deadline instead (MUL-4923).

use super::beneath::{Dir, read_bounded};
use super::error::{At, PrepareError};
use super::layout::{self, CODEX_HOME};
use super::skill::{Placed, PlacedFile};
use super::{share, tree};
use rustix::fs::FileType;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// What is copied on every preparation, in this order.
const COPIED: [&str; 3] = ["config.json", "config.toml", "instructions.md"];
/// Largest file that is copied, in bytes.
const MAX_COPIED: u64 = 16 * 1024 * 1024;
/// Most of the user's own skills that are linked.
const MAX_USER_SKILLS: usize = 1024;
/// Depth of `sessions/<year>/<month>/<day>`.
const SESSION_DEPTH: usize = 3;

/// The home that codex has outside of tasks: the value of `CODEX_HOME`, or `.codex` in the home directory. Both may
/// be missing; a relative value is taken from the current directory.
pub fn shared_home(codex_home: Option<&OsStr>, home: Option<&Path>) -> Option<PathBuf> {
    match codex_home.filter(|value| !value.is_empty()) {
        Some(value) => std::path::absolute(value).ok(),
        None => home.map(|home| home.join(".codex")),
    }
}

/// Makes or refreshes the task's home.
pub(super) fn home(
    env_root: &Dir,
    shared: Option<&Path>,
    skills: &[Placed],
    warnings: &mut Vec<String>,
) -> Result<PathBuf, PrepareError> {
    let path = env_root.path().join(CODEX_HOME);
    let home = env_root.ensure(CODEX_HOME, layout::DIR).at("open", &path)?;
    // Another daemon may have linked it to a store; the link is its own.
    if home.kind("sessions").at("look at", path.join("sessions"))? != Some(FileType::Symlink) {
        home.make("sessions", layout::DIR).at("create", path.join("sessions"))?;
    }
    for name in COPIED {
        copy(&home, shared, name)?;
    }
    link_login(&home, shared)?;
    let reset = tree::remove(&home, "skills").into_result();
    reset.at("replace", path.join("skills"))?;
    let folder = home.ensure("skills", layout::DIR).at("create", path.join("skills"))?;
    if let Some(shared) = shared
        && let Err(error) = link_user_skills(&folder, &shared.join("skills"), skills)
    {
        warnings.push(format!("the user's own skills of codex are left out: {error}"));
    }
    write_skills(&folder, skills)?;
    Ok(path)
}

fn copy(home: &Dir, shared: Option<&Path>, name: &str) -> Result<(), PrepareError> {
    let target = home.path().join(name);
    let content = match shared.map(|shared| (shared.join(name), File::open(shared.join(name)))) {
        None => None,
        Some((_, Err(error))) if error.kind() == io::ErrorKind::NotFound => None,
        Some((source, file)) => {
            Some(file.and_then(|file| read_bounded(file, MAX_COPIED)).at("read the shared file", source)?)
        }
    };
    home.unlink(name).at("replace", &target)?;
    match content {
        // Private, as keys may be in it.
        Some(content) => home.create(name, &content, layout::PRIVATE_FILE).at("write", &target),
        None => Ok(()),
    }
}

/// The login is shared by a link, so that a token that is renewed in a task is renewed for all (#2081).
fn link_login(home: &Dir, shared: Option<&Path>) -> Result<(), PrepareError> {
    let target = home.path().join("auth.json");
    home.unlink("auth.json").at("replace", &target)?;
    let Some(source) = shared.map(|shared| shared.join("auth.json")).filter(|source| source.exists()) else {
        return Ok(());
    };
    rustix::fs::symlinkat(&source, home, "auth.json").map_err(io::Error::from).at("link", target)
}

/// The user's skills as links to their folders; a workspace's skill of the same name wins.
fn link_user_skills(folder: &Dir, from: &Path, skills: &[Placed]) -> io::Result<()> {
    let entries = match std::fs::read_dir(from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries.take(MAX_USER_SKILLS) {
        let name = entry?.file_name();
        let hidden = name.to_string_lossy().starts_with('.');
        let shadowed = skills.iter().any(|skill| name == *skill.slug);
        let Ok(source) = std::fs::canonicalize(from.join(&name)) else { continue };
        if !hidden && !shadowed && source.is_dir() {
            rustix::fs::symlinkat(&source, folder, &name)?;
        }
    }
    Ok(())
}

fn write_skills(folder: &Dir, skills: &[Placed]) -> Result<(), PrepareError> {
    for PlacedFile { below, text, shared } in skills.iter().flat_map(|skill| &skill.files) {
        let path = folder.path().join(below);
        let mut at =
            folder.descend(Path::new("")).at("open", folder.path())?.ok_or_else(|| changed(&path))?;
        for part in below.parent().into_iter().flat_map(Path::components) {
            at = at.ensure(part.as_os_str(), layout::DIR).at("create", &path)?;
        }
        let name = below.file_name().ok_or_else(|| changed(&path))?;
        share::create(shared.as_ref(), &at, name, text.as_bytes()).at("write", &path)?;
    }
    Ok(())
}

fn changed(path: &Path) -> PrepareError {
    PrepareError::Changed { path: path.to_owned() }
}

/// Whether the home has the record of this session, without which codex would silently begin a new one.
pub(super) fn has_rollout(home: &Path, session_id: &str) -> bool {
    if session_id.is_empty() {
        return false;
    }
    let mut level = vec![home.join("sessions")];
    for depth in 0..=SESSION_DEPTH {
        let mut next = Vec::new();
        for entry in level.iter().filter_map(|dir| std::fs::read_dir(dir).ok()).flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_of_session = name
                .strip_prefix("rollout-")
                .and_then(|rest| rest.split_once(&format!("-{session_id}.jsonl")))
                .is_some();
            if is_of_session {
                return true;
            }
            if depth < SESSION_DEPTH && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                next.push(entry.path());
            }
        }
        level = next;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn placed(slug: &str) -> Placed {
        let below = PathBuf::from(slug).join("SKILL.md");
        let files = vec![PlacedFile { below, text: "ours".to_owned(), shared: None }];
        Placed { slug: slug.to_owned(), is_listed: true, files }
    }

    #[test]
    fn cdx_2_copies_follow_the_shared_files_and_go_with_them() {
        let temp = tempfile::tempdir().expect("temp");
        let root = Dir::open(temp.path()).expect("open");
        let shared = temp.path().join("shared");
        fs::create_dir(&shared).expect("shared");
        fs::write(shared.join("config.toml"), "a = 1").expect("file");
        let path = home(&root, Some(&shared), &[], &mut Vec::new()).expect("made");
        assert_eq!(fs::read_to_string(path.join("config.toml")).expect("copy"), "a = 1");
        assert_eq!(fs::metadata(path.join("config.toml")).expect("meta").permissions().mode() & 0o777, 0o600);
        assert!(
            path.join("sessions").is_dir()
                && !path.join("config.json").exists()
                && !path.join("auth.json").exists()
        );
        fs::write(shared.join("config.json"), "{}").expect("file");
        fs::remove_file(shared.join("config.toml")).expect("gone");
        fs::write(path.join("sessions/keep"), "").expect("session");
        home(&root, Some(&shared), &[], &mut Vec::new()).expect("refreshed");
        assert!(
            path.join("config.json").exists()
                && !path.join("config.toml").exists()
                && path.join("sessions/keep").exists()
        );
        home(&root, None, &[], &mut Vec::new()).expect("without a shared home");
        assert!(!path.join("config.json").exists());
    }

    #[test]
    fn cdx_1_a_login_of_its_own_becomes_the_link_again() {
        let temp = tempfile::tempdir().expect("temp");
        let root = Dir::open(temp.path()).expect("open");
        let shared = temp.path().join("shared");
        fs::create_dir(&shared).expect("shared");
        fs::write(shared.join("auth.json"), "login").expect("file");
        let path = home(&root, Some(&shared), &[], &mut Vec::new()).expect("made");
        fs::remove_file(path.join("auth.json")).expect("remove");
        fs::write(path.join("auth.json"), "stale").expect("file");
        home(&root, Some(&shared), &[], &mut Vec::new()).expect("refreshed");
        assert_eq!(fs::read_link(path.join("auth.json")).expect("a link"), shared.join("auth.json"));
        assert_eq!(fs::read_to_string(shared.join("auth.json")).expect("whole"), "login");
    }

    #[test]
    fn cdx_10_user_skills_are_links_and_the_workspaces_own_win() {
        let temp = tempfile::tempdir().expect("temp");
        let root = Dir::open(temp.path()).expect("open");
        let shared = temp.path().join("shared");
        for name in ["one", "two", ".hidden"] {
            fs::create_dir_all(shared.join("skills").join(name)).expect("skill");
            fs::write(shared.join("skills").join(name).join("SKILL.md"), "user's").expect("skill");
        }
        let path =
            home(&root, Some(&shared), &[placed("two")], &mut Vec::new()).expect("made").join("skills");
        assert!(
            path.join("one").is_symlink() && !path.join("two").is_symlink() && !path.join(".hidden").exists()
        );
        assert_eq!(fs::read_to_string(path.join("two/SKILL.md")).expect("ours"), "ours");
        fs::remove_dir_all(shared.join("skills/one")).expect("removed");
        home(&root, Some(&shared), &[], &mut Vec::new()).expect("refreshed");
        assert!(!path.join("one").is_symlink() && path.join("two").is_symlink());
        assert_eq!(
            fs::read_to_string(shared.join("skills/two/SKILL.md")).expect("whole"),
            "user's",
            "cdx_11"
        );
    }

    #[test]
    fn a_session_is_found_flat_or_by_date_and_no_other_is_taken_for_it() {
        let temp = tempfile::tempdir().expect("temp");
        let day = temp.path().join("sessions/2026/01/02");
        fs::create_dir_all(&day).expect("day");
        fs::write(day.join("rollout-2026-01-02T03-04-05-abc.jsonl"), "").expect("rollout");
        fs::write(temp.path().join("sessions/rollout-x-flat.jsonl.zst"), "").expect("rollout");
        assert!(has_rollout(temp.path(), "abc") && has_rollout(temp.path(), "flat"));
        assert!(
            !has_rollout(temp.path(), "ab")
                && !has_rollout(temp.path(), "")
                && !has_rollout(temp.path(), "zabc")
        );
    }

    #[test]
    fn the_shared_home_is_the_variable_or_in_the_home_directory() {
        assert_eq!(shared_home(Some(OsStr::new("/c")), Some(Path::new("/h"))), Some("/c".into()));
        assert_eq!(shared_home(Some(OsStr::new("")), Some(Path::new("/h"))), Some("/h/.codex".into()));
        assert_eq!(shared_home(None, None), None);
    }
}
