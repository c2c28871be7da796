//! Removal of whole trees: relative to open handles, links removed and not followed (bug 42), directories without
//! permissions opened up first, and one entry that cannot be removed does not keep the rest (bug 41). What is mounted somewhere in it stays.

use super::beneath::Dir;
use rustix::fs::FileType;
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;

/// How deep handles are kept open; what lies deeper is moved up first, so that no depth exhausts the descriptors.
const MAX_DEPTH: usize = 48;
/// How many failures are remembered one by one.
const MAX_REPORTED: usize = 16;

/// What a removal did.
#[derive(Debug, Default)]
pub struct Removed {
    /// Bytes of the files that are gone.
    pub bytes: u64,
    /// Entries that are gone.
    pub entries: u64,
    /// Entries that could not be removed.
    pub failed: u64,
    /// The first of those with the reason, at most 16.
    pub failures: Vec<(PathBuf, io::Error)>,
}

impl Removed {
    /// Whether everything is gone.
    pub fn is_complete(&self) -> bool {
        self.failed == 0
    }

    /// The first failure as an error.
    pub fn into_result(self) -> io::Result<u64> {
        match self.failures.into_iter().next() {
            None => Ok(self.bytes),
            Some((path, error)) => {
                let more = match self.failed - 1 {
                    0 => String::new(),
                    more => format!(" (and {more} more)"),
                };
                Err(io::Error::new(error.kind(), format!("{}: {error}{more}", path.display())))
            }
        }
    }

    fn fail(&mut self, path: PathBuf, error: io::Error) {
        self.failed += 1;
        if self.failures.len() < MAX_REPORTED {
            self.failures.push((path, error));
        }
    }
}

/// Removes everything in `dir` but the names in `keep`, which are looked at only at the top.
pub fn clear(dir: &Dir, keep: &[&str]) -> Removed {
    let mut removed = Removed::default();
    let mut walk = Walk { top: dir, removed: &mut removed, moved: 0, lifted: Vec::new() };
    walk.contents(dir, keep, 0);
    while let Some(name) = walk.lifted.pop() {
        walk.entry(dir, &name, 0);
    }
    removed
}

/// Removes `name` in `dir`, whatever it is.
pub fn remove(dir: &Dir, name: impl AsRef<OsStr>) -> Removed {
    let mut removed = Removed::default();
    let mut walk = Walk { top: dir, removed: &mut removed, moved: 0, lifted: Vec::new() };
    walk.entry(dir, name.as_ref(), 0);
    while let Some(name) = walk.lifted.pop() {
        walk.entry(dir, &name, 0);
    }
    removed
}

struct Walk<'a> {
    top: &'a Dir,
    removed: &'a mut Removed,
    moved: u64,
    lifted: Vec<OsString>,
}

impl Walk<'_> {
    fn contents(&mut self, dir: &Dir, keep: &[&str], depth: usize) {
        let names = match dir.names() {
            Ok(names) => names,
            Err(error) => return self.removed.fail(dir.path().to_owned(), error),
        };
        for name in names {
            if !keep.iter().any(|kept| name == *kept) {
                self.entry(dir, &name, depth);
            }
        }
    }

    fn entry(&mut self, dir: &Dir, name: &OsStr, depth: usize) {
        if let Err(error) = self.try_entry(dir, name, depth) {
            self.removed.fail(dir.path().join(name), error);
        }
    }

    fn try_entry(&mut self, dir: &Dir, name: &OsStr, depth: usize) -> io::Result<()> {
        let Some(stat) = dir.stat(name)? else { return Ok(()) };
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            if dir.unlink(name)? {
                self.removed.entries += 1;
                if stat.st_nlink == 1 {
                    self.removed.bytes += u64::try_from(stat.st_size).unwrap_or(0);
                }
            }
            return Ok(());
        }
        if stat.st_mode & 0o700 != 0o700 {
            open_up(dir, name)?;
        }
        if depth >= MAX_DEPTH {
            let lifted = OsString::from(format!(".longshore-removing-{}-{}", std::process::id(), self.moved));
            self.moved += 1;
            rustix::fs::renameat(dir, name, self.top, &lifted)?;
            self.lifted.push(lifted);
            return Ok(());
        }
        let failed = self.removed.failed;
        if let Some(child) = dir.own_child(name)? {
            self.contents(&child, &[], depth + 1);
        }
        if self.removed.failed > failed {
            // Said once for the entry itself, not again for each directory above it.
            return Ok(());
        }
        if dir.rmdir(name)? {
            self.removed.entries += 1;
        }
        Ok(())
    }
}

/// Gives the owner full rights on a directory that may not be readable, without following a link.
#[cfg(target_os = "linux")]
fn open_up(dir: &Dir, name: &OsStr) -> io::Result<()> {
    use rustix::fs::OFlags;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::PermissionsExt;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Some(fd) = super::mounts::open_unmounted(dir, name, flags)? else { return Ok(()) };
    // A handle opened with O_PATH takes no fchmod; its entry in /proc names the same directory and cannot be exchanged.
    let through = format!("/proc/self/fd/{}", fd.as_raw_fd());
    std::fs::set_permissions(through, std::fs::Permissions::from_mode(0o700))
}

#[cfg(not(target_os = "linux"))]
fn open_up(dir: &Dir, name: &OsStr) -> io::Result<()> {
    Ok(rustix::fs::chmodat(dir, name, rustix::fs::Mode::RWXU, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Whether an error says that a directory still has something in it.
pub(crate) fn is_not_empty(error: &io::Error) -> bool {
    [Errno::NOTEMPTY, Errno::EXIST].iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn bug_41_directories_without_permissions_go_and_the_one_outside_keeps_its_own() {
        let temp = tempfile::tempdir().expect("temp");
        let outside = temp.path().join("outside");
        fs::create_dir(&outside).expect("outside");
        fs::set_permissions(&outside, fs::Permissions::from_mode(0o500)).expect("mode");
        let tree = temp.path().join("tree");
        for (name, mode) in [("a", 0o555), ("b", 0o444), ("c", 0o111), ("d", 0o000)] {
            let deep = tree.join(name).join("x/y");
            fs::create_dir_all(&deep).expect("deep");
            fs::write(deep.join("f"), "12345").expect("file");
            fs::set_permissions(deep.join("f"), fs::Permissions::from_mode(0o400)).expect("mode");
            symlink(&outside, deep.join("link")).expect("link");
            for dir in [deep.clone(), tree.join(name).join("x"), tree.join(name)] {
                fs::set_permissions(dir, fs::Permissions::from_mode(mode)).expect("mode");
            }
        }
        let top = Dir::open(temp.path()).expect("open");
        let removed = remove(&top, "tree");
        assert!(removed.is_complete(), "{:?}", removed.failures);
        assert!(removed.bytes >= 20, "bytes are counted: {}", removed.bytes);
        assert!(!tree.exists());
        assert_eq!(fs::metadata(&outside).expect("stays").permissions().mode() & 0o777, 0o500);
    }

    #[test]
    fn bug_42_a_link_is_removed_and_what_it_points_to_stays() {
        let temp = tempfile::tempdir().expect("temp");
        let victim = temp.path().join("victim");
        fs::create_dir(&victim).expect("victim");
        fs::write(victim.join("f"), "x").expect("file");
        fs::create_dir_all(temp.path().join("tree/deep")).expect("tree");
        symlink(&victim, temp.path().join("tree/deep/link")).expect("link");
        symlink(&victim, temp.path().join("whole")).expect("link");
        let top = Dir::open(temp.path()).expect("open");
        assert!(remove(&top, "tree").is_complete());
        assert!(remove(&top, "whole").is_complete());
        assert_eq!(top.names().expect("names"), ["victim"]);
        assert!(victim.join("f").exists());
    }

    #[test]
    fn bug_42_a_folder_swapped_with_a_link_during_removal_harms_nobody() {
        use std::sync::atomic::{AtomicBool, Ordering};
        let temp = tempfile::tempdir().expect("temp");
        let victim = temp.path().join("victim");
        fs::create_dir(&victim).expect("victim");
        fs::write(victim.join("f"), "x").expect("file");
        let base = temp.path().join("base");
        fs::create_dir(&base).expect("base");
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let link = temp.path().join("link");
                while !done.load(Ordering::Relaxed) {
                    let _ = symlink(&victim, &link);
                    let _ = rustix::fs::rename(&link, base.join("mid"));
                    let _ = fs::remove_file(base.join("mid"));
                    let _ = fs::create_dir(base.join("mid"));
                    let _ = fs::write(base.join("mid/f"), "mine");
                }
            });
            let top = Dir::open(&base).expect("open");
            for _ in 0..500 {
                remove(&top, "mid");
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(fs::read(victim.join("f")).expect("whole"), b"x");
    }

    #[test]
    fn any_depth_is_removed_with_few_descriptors() {
        let temp = tempfile::tempdir().expect("temp");
        let mut at = Dir::open(temp.path()).expect("open").ensure("tree", 0o755).expect("tree");
        for _ in 0..400 {
            at = at.ensure("d", 0o755).expect("deeper");
        }
        at.create("f", b"x", 0o600).expect("file");
        let top = Dir::open(temp.path()).expect("open");
        let removed = remove(&top, "tree");
        assert!(removed.is_complete(), "{:?}", removed.failures);
        assert_eq!(removed.entries, 402);
        assert!(top.names().expect("names").is_empty());
    }

    #[test]
    fn what_is_kept_is_kept_only_at_the_top() {
        let temp = tempfile::tempdir().expect("temp");
        fs::create_dir(temp.path().join("d")).expect("dir");
        for file in [".task_owner", "x", "d/.task_owner"] {
            fs::write(temp.path().join(file), "t").expect("file");
        }
        let top = Dir::open(temp.path()).expect("open");
        assert!(clear(&top, &[".task_owner"]).is_complete());
        assert_eq!(top.names().expect("names"), [".task_owner"]);
    }
}
