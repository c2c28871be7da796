//! Versions of skills that nobody uses any more, removed from where they are kept.
//!
//! A version goes when it was not used for 30 days and none of its files is in a task's directory, which their link counts tell. Using it is
//! reading its bundle. Whoever reads one in the very moment in which it is removed has it in memory, and gets its files as copies; the next one
//! fetches it again.

use super::cache::{BUNDLE, FILES, FOLDER, VERSION};
use crate::prepare::{Dir, tree};
use rustix::fs::{FileType, Stat};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long a version stays without use.
pub const UNUSED: Duration = Duration::from_hours(30 * 24);
/// How deep the files of a skill can lie.
const MAX_DEPTH: usize = 48;

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Versions of skills.
    pub versions: u64,
    /// Bytes of their files.
    pub bytes: u64,
}

/// Removes what was not used for [`UNUSED`] below this workspaces root. `go_on` is asked before each version. A folder that cannot be looked
/// into, and one that is not as a daemon makes it, is passed over; no link is followed.
///
/// # Errors
/// If the folder of all skills cannot be opened; it is none if there is no such folder.
pub fn prune(root: &Path, now: SystemTime, go_on: impl Fn() -> bool) -> io::Result<Pruned> {
    let mut pruned = Pruned::default();
    let top = match Dir::open(root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(pruned),
        top => top?,
    };
    let Some(kept) = top.descend(&Path::new(FOLDER).join(VERSION))? else { return Ok(pruned) };
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    each(&kept, &mut |workspace, _| {
        each(workspace, &mut |source, _| {
            each(source, &mut |skill, name| {
                each(skill, &mut |version, hash| {
                    if go_on() && is_unused(version, now).unwrap_or(false) {
                        pruned.remove(skill, hash);
                    }
                });
                // It stays if a version is left in it, or just came.
                let _ = source.rmdir(name);
            });
        });
    });
    Ok(pruned)
}

impl Pruned {
    fn remove(&mut self, skill: &Dir, hash: &OsStr) {
        let path = skill.path().join(hash);
        match tree::remove(skill, hash).into_result() {
            Ok(bytes) => {
                self.versions += 1;
                self.bytes += bytes;
                tracing::debug!(path = %path.display(), bytes, "a skill that nobody uses was removed");
            }
            Err(error) => tracing::warn!("a skill that nobody uses cannot be removed: {error}"),
        }
    }
}

/// Each folder in a folder that is one of a daemon's. Those that a daemon is just making have a dot before their names.
fn each(dir: &Dir, act: &mut dyn FnMut(&Dir, &OsStr)) {
    let names: Vec<OsString> = dir.names().unwrap_or_default();
    for name in names.iter().filter(|name| !name.as_encoded_bytes().starts_with(b".")) {
        if let Ok(Some(below)) = dir.child(name) {
            act(&below, name);
        }
    }
}

/// Whether a version was not used for long, and is nowhere in use.
fn is_unused(version: &Dir, now: Duration) -> io::Result<bool> {
    // One whose bundle was lost is as old as the folder, which nothing in it can be used from.
    let used = match version.stat(OsStr::new(BUNDLE))? {
        Some(stat) => last_use(&stat),
        None => last_use(&rustix::fs::fstat(version)?),
    };
    if now.saturating_sub(used) <= UNUSED {
        return Ok(false);
    }
    Ok(match version.child(FILES)? {
        Some(files) => !is_linked(&files, 0)?,
        None => true,
    })
}

/// When it was last read or written, from 1970 on. Other daemons leave no mark but the one that the system makes.
#[allow(clippy::useless_conversion, clippy::unnecessary_cast, reason = "the types differ between systems")]
fn last_use(stat: &Stat) -> Duration {
    let latest = (stat.st_mtime as i64).max(stat.st_atime as i64);
    Duration::from_secs(u64::try_from(latest).unwrap_or(0))
}

/// Whether a file below is also somewhere else.
fn is_linked(dir: &Dir, depth: usize) -> io::Result<bool> {
    for name in dir.names()? {
        let Some(stat) = dir.stat(&name)? else { continue };
        let linked = match FileType::from_raw_mode(stat.st_mode) {
            // What lies deeper was put there by nobody who knows the layout; it is not for us to judge.
            FileType::Directory if depth == MAX_DEPTH => true,
            FileType::Directory => match dir.child(&name)? {
                Some(below) => is_linked(&below, depth + 1)?,
                None => false,
            },
            _ => stat.st_nlink > 1,
        };
        if linked {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::super::cache::tests::{demo, place};
    use super::super::cache::{load, store};
    use super::*;
    use std::fs::{self, File, FileTimes};
    use std::path::PathBuf;

    const DAY: Duration = Duration::from_hours(24);

    /// A skill that is kept, with one file of it by itself, last used so long ago.
    fn kept(root: &Path, age: Duration) -> PathBuf {
        let (skill, at) = (demo(), place(&demo()));
        fs::create_dir_all(root).expect("a root");
        store(root, &at, &skill).expect("kept");
        let files = root.join(at.files()).join("ref");
        fs::create_dir_all(&files).expect("made");
        fs::write(files.join("b.md"), "beta\n").expect("written");
        let folder = root.join(at.folder());
        used(&folder, age);
        folder
    }

    fn used(folder: &Path, age: Duration) {
        let at = SystemTime::now() - age;
        let file = File::open(folder.join(BUNDLE)).expect("there");
        file.set_times(FileTimes::new().set_accessed(at).set_modified(at)).expect("set");
    }

    fn prune_now(root: &Path) -> Pruned {
        prune(root, SystemTime::now(), || true).expect("looked through")
    }

    #[test]
    fn a_version_that_nobody_used_for_thirty_days_goes_and_no_other() {
        let temp = tempfile::tempdir().expect("temp");
        let old = kept(temp.path(), 31 * DAY);
        let skill = old.parent().expect("a skill").to_owned();
        let newer = skill.join("sha256:1");
        fs::create_dir(&newer).expect("made");
        fs::write(newer.join(BUNDLE), "{}").expect("written");
        used(&newer, 29 * DAY);
        let pruned = prune_now(temp.path());
        assert_eq!(pruned.versions, 1);
        assert!(pruned.bytes > 0 && !old.exists() && newer.exists());
        used(&newer, 31 * DAY);
        assert_eq!(prune_now(temp.path()).versions, 1);
        assert!(!skill.exists(), "nothing is left of a skill without versions");
        assert_eq!(prune_now(temp.path()), Pruned::default());
        assert_eq!(prune_now(&temp.path().join("none")), Pruned::default());
    }

    #[test]
    fn what_is_in_a_tasks_directory_stays() {
        let temp = tempfile::tempdir().expect("temp");
        let old = kept(temp.path(), 300 * DAY);
        let of_task = temp.path().join("of-a-task.md");
        fs::hard_link(old.join(FILES).join("ref/b.md"), &of_task).expect("linked");
        assert_eq!(prune_now(temp.path()), Pruned::default());
        assert!(old.exists());
        fs::remove_file(of_task).expect("the task's directory is collected");
        assert_eq!(prune_now(temp.path()).versions, 1);
    }

    #[test]
    fn a_task_that_gets_a_skill_uses_it() {
        let temp = tempfile::tempdir().expect("temp");
        let old = kept(temp.path(), 300 * DAY);
        assert!(load(temp.path(), &place(&demo())).is_some());
        assert_eq!(prune_now(temp.path()), Pruned::default());
        assert!(old.exists());
    }

    #[test]
    fn a_look_that_is_called_off_removes_nothing_and_no_link_is_followed() {
        let temp = tempfile::tempdir().expect("temp");
        let old = kept(&temp.path().join("elsewhere"), 300 * DAY);
        let pruned = prune(&temp.path().join("elsewhere"), SystemTime::now(), || false).expect("looked");
        assert_eq!(pruned, Pruned::default());
        let root = temp.path().join("root");
        fs::create_dir_all(root.join(FOLDER).join(VERSION)).expect("made");
        let from = temp.path().join("elsewhere").join(FOLDER).join(VERSION).join("ws");
        std::os::unix::fs::symlink(from, root.join(FOLDER).join(VERSION).join("ws")).expect("linked");
        assert_eq!(prune_now(&root), Pruned::default());
        assert!(old.exists());
    }
}
