//! A control group for each run, where the daemon's own one was delegated to it: one write ends everything in it at once, however
//! fast it forks.
//!
//! It comes on top of what [`tree`](super::tree) does and replaces nothing of it. If anything about it fails, it is as if there
//! were none.

use rustix::fs::getxattr;
use rustix::process::geteuid;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long the end of what was killed is waited for before the group is left behind.
const EMPTY_LIMIT: Duration = Duration::from_secs(2);

/// From one look at a group that is not empty to the next.
const LOOK: Duration = Duration::from_millis(2);

/// What systemd notes on a group that it has given away: the first name for root, the second for everybody.
const DELEGATED: [&str; 2] = ["trusted.delegate", "user.delegate"];

/// The control group of one run.
#[derive(Debug)]
pub(super) struct Group(PathBuf);

impl Group {
    /// Makes a group below that of the calling process, with `member` and what it starts from now on in it.
    pub(super) fn make(marker: &str, member: i32) -> Option<Self> {
        let parent = own_group().filter(|parent| is_delegated(parent))?;
        Self::make_in(&parent, marker, member).ok()
    }

    fn make_in(parent: &Path, marker: &str, member: i32) -> io::Result<Self> {
        let group = Self(parent.join(name(marker)));
        fs::create_dir(&group.0)?;
        // An old kernel has no such file. To a group in which it could not be, nothing leads back.
        let filled = group.0.join("cgroup.kill").metadata().and_then(|_| group.write("cgroup.procs", member));
        if let Err(error) = filled {
            let _ = fs::remove_dir(&group.0);
            return Err(error);
        }
        Ok(group)
    }

    /// The group that a status names, if it is one of that run.
    pub(super) fn of_run(path: &Path, marker: &str) -> Option<Self> {
        let ours = !marker.is_empty() && path.file_name().is_some_and(|found| found == &*name(marker));
        (ours && path.is_absolute() && path.is_dir()).then(|| Self(path.to_owned()))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Kills everything in it and below it.
    pub(super) fn kill(&self) {
        let _ = self.write("cgroup.kill", 1);
    }

    /// The processes in it and in groups below it.
    pub(super) fn members(&self) -> Vec<i32> {
        let mut found = Vec::new();
        for dir in with_subgroups(&self.0) {
            let text = fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
            // A process of another process namespace reads as 0.
            found.extend(text.lines().filter_map(|line| line.parse::<i32>().ok()).filter(|pid| *pid > 0));
        }
        found
    }

    /// Kills what is still in it, and removes it.
    pub(super) fn end(&self) {
        let until = Instant::now() + EMPTY_LIMIT;
        while !self.members().is_empty() && Instant::now() < until {
            self.kill();
            std::thread::sleep(LOOK);
        }
        for dir in with_subgroups(&self.0).iter().rev() {
            // What is left there cannot be killed now; an empty group costs nothing.
            let _ = fs::remove_dir(dir);
        }
    }

    fn write(&self, file: &str, number: i32) -> io::Result<()> {
        let mut file = File::options().write(true).open(self.0.join(file))?;
        file.write_all(number.to_string().as_bytes())
    }
}

fn name(marker: &str) -> String {
    format!("longshore-{marker}")
}

/// The group and all below it, each after the one that it is in.
fn with_subgroups(group: &Path) -> Vec<PathBuf> {
    let mut found = vec![group.to_owned()];
    let mut next = 0;
    while let Some(dir) = found.get(next) {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let below: Vec<PathBuf> = below.map(|entry| entry.path()).collect();
        found.extend(below);
        next += 1;
    }
    found
}

/// Root can write to every group, which does not make it root's to divide.
fn is_delegated(group: &Path) -> bool {
    let me = geteuid();
    let owned = group.metadata().is_ok_and(|meta| meta.uid() == me.as_raw());
    owned && (!me.is_root() || DELEGATED.iter().any(|name| is_set(group, name)))
}

fn is_set(group: &Path, name: &str) -> bool {
    let mut value = [0; 1];
    getxattr(group, name, &mut value).is_ok_and(|_| value == *b"1")
}

/// The directory of the calling process's group.
fn own_group() -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    directory(&groups, &mounts)
}

fn directory(groups: &str, mounts: &str) -> Option<PathBuf> {
    let group = Path::new(groups.lines().find_map(|line| line.strip_prefix("0::"))?);
    mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        right.starts_with("cgroup2 ").then_some(())?;
        let mut fields = left.split(' ').skip(3);
        let (root, at) = (fields.next()?, fields.next()?);
        // A group outside of what is mounted reads as /../something.
        let below = group.strip_prefix(root).ok()?;
        let plain = below.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        plain.then(|| Path::new(at).join(below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
        30 25 0:26 / /sys/fs/cgroup rw,nosuid - tmpfs tmpfs ro\n\
        31 25 0:27 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
        32 25 0:28 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";

    #[test]
    fn the_own_directory_is_found_in_both_layouts_and_not_outside_of_what_is_mounted() {
        let groups = "8:pids:/other\n0::/user.slice/unit.service\n";
        let found = directory(groups, MOUNTS);
        assert_eq!(found.as_deref(), Some(Path::new("/sys/fs/cgroup/unified/user.slice/unit.service")));
        let pure = "32 25 0:28 /user.slice /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        assert_eq!(directory(groups, pure).as_deref(), Some(Path::new("/sys/fs/cgroup/unit.service")));
        assert_eq!(directory("0::/../../elsewhere\n", MOUNTS), None);
        assert_eq!(directory("0::/other.slice\n", pure), None);
        assert_eq!(directory("8:pids:/other\n", MOUNTS), None);
    }

    #[test]
    fn a_group_that_cannot_be_filled_is_none_and_leaves_nothing() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(Group::make_in(dir.path(), "m", 1).is_err());
        assert_eq!(fs::read_dir(dir.path()).expect("there").count(), 0);
        assert!(Group::make_in(&dir.path().join("nowhere"), "m", 1).is_err());
    }

    #[test]
    fn what_is_written_to_a_group_goes_to_the_right_files_and_only_to_a_group_of_the_run() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("longshore-m");
        fs::create_dir_all(path.join("below")).expect("made");
        for (file, text) in [("cgroup.procs", "7\n0\n"), ("cgroup.kill", ""), ("below/cgroup.procs", "9\n")] {
            fs::write(path.join(file), text).expect("written");
        }
        assert!(Group::of_run(&path, "n").is_none() && Group::of_run(dir.path(), "").is_none());
        assert!(Group::of_run(Path::new("longshore-m"), "m").is_none());
        let group = Group::of_run(&path, "m").expect("it is there");
        assert_eq!(group.members(), [7, 9]);
        group.kill();
        assert_eq!(fs::read_to_string(path.join("cgroup.kill")).expect("there"), "1");
    }

    #[test]
    fn a_directory_that_nobody_has_given_away_is_not_divided_by_root() {
        let dir = tempfile::tempdir().expect("a directory");
        assert_eq!(is_delegated(dir.path()), !geteuid().is_root());
        assert!(!is_delegated(&dir.path().join("nowhere")));
    }
}
