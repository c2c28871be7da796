//! Directories on which something is mounted. What is below belongs to somebody else, wherever it is mounted from, so a removal stops there: an
//! agent that may mount, as root in a container, or a person who looks at a work directory by way of a bind mount, would lose files elsewhere.

use rustix::fs::{self, AtFlags, Mode, OFlags, StatxAttributes, StatxFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

/// Opens the directory `name` in `dir` unless something is mounted on it; `None` if there is none.
pub(super) fn open_unmounted(
    dir: impl std::os::fd::AsFd,
    name: &OsStr,
    flags: OFlags,
) -> io::Result<Option<OwnedFd>> {
    let dir = dir.as_fd();
    let opened = match in_one_step(dir, name, flags) {
        // Kernels before 5.6, and sandboxes that do not know the call.
        Err(Errno::NOSYS | Errno::PERM) => return in_two_steps(dir, name, flags),
        opened => opened,
    };
    match opened {
        Ok(fd) => Ok(Some(fd)),
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::XDEV) => Err(mounted()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(target_os = "linux")]
fn in_one_step(dir: BorrowedFd<'_>, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    use rustix::fs::ResolveFlags;
    let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS;
    fs::openat2(dir, name, flags, Mode::empty(), resolve)
}

#[cfg(not(target_os = "linux"))]
fn in_one_step(_: BorrowedFd<'_>, _: &OsStr, _: OFlags) -> Result<OwnedFd, Errno> {
    Err(Errno::NOSYS)
}

/// Looks first. What is mounted in between is taken for ours.
fn in_two_steps(dir: BorrowedFd<'_>, name: &OsStr, flags: OFlags) -> io::Result<Option<OwnedFd>> {
    match is_mounted(dir, name) {
        Ok(false) => {}
        Ok(true) => return Err(mounted()),
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    match fs::openat(dir, name, flags, Mode::empty()) {
        Ok(fd) => Ok(Some(fd)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn is_mounted(dir: BorrowedFd<'_>, name: &OsStr) -> Result<bool, Errno> {
    #[cfg(target_os = "linux")]
    {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        match fs::statx(dir, name, flags, StatxFlags::BASIC_STATS) {
            Ok(stat) if stat.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT) => {
                return Ok(stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT));
            }
            Ok(_) | Err(Errno::NOSYS | Errno::PERM) => {}
            Err(error) => return Err(error),
        }
    }
    // Sees other file systems at least.
    Ok(fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?.st_dev != fs::fstat(dir)?.st_dev)
}

fn mounted() -> io::Error {
    io::Error::new(
        io::ErrorKind::CrossesDevices,
        "something is mounted here, and what is below is left alone: unmount it, and this is removed the next time",
    )
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::super::beneath::Dir;
    use super::super::tree;
    use super::*;
    use std::path::Path;
    use std::process::Command;

    const ROLE: &str = "LONGSHORE_TEST_MOUNTS";
    const NAME: &str = "prepare::mounts::tests::what_is_mounted_in_a_tree_is_not_removed_with_it";

    fn mount(args: &[&str], at: &Path) {
        let done = Command::new("mount").args(args).arg(at).status().expect("mount runs");
        assert!(done.success(), "{args:?} {}", at.display());
    }

    /// In a mount namespace of its own, so that nothing is left mounted.
    fn inside(temp: &Path) {
        let (victim, tree_path) = (temp.join("victim"), temp.join("tree"));
        let victim_name = victim.to_str().expect("text");
        let places = ["same", "other", "shut"].map(|name| tree_path.join(name).join("mounted"));
        for place in &places {
            std::fs::create_dir_all(place).expect("made");
        }
        mount(&["--bind", victim_name], &places[0]);
        mount(&["-t", "tmpfs", "none"], &places[1]);
        mount(&["--bind", victim_name], &places[2]);
        std::fs::write(places[1].join("kept"), "x").expect("written");
        let top = Dir::open(temp).expect("open");
        for place in &places {
            let above = Dir::open(place.parent().expect("above")).expect("open");
            assert_eq!(is_mounted(above.as_fd(), OsStr::new("mounted")), Ok(true));
            let refused = in_two_steps(above.as_fd(), OsStr::new("mounted"), OFlags::RDONLY).map(drop);
            assert_eq!(refused.expect_err("mounted").kind(), io::ErrorKind::CrossesDevices);
        }
        assert_eq!(is_mounted(top.as_fd(), OsStr::new("victim")), Ok(false));
        let removed = tree::remove(&top, "tree");
        assert_eq!(removed.failed, 3, "{:?}", removed.failures);
        assert!(removed.failures.iter().all(|(_, why)| why.to_string().contains("mounted")));
        assert!(places[1].join("kept").exists() && victim.join("kept").exists());
    }

    use std::os::fd::AsFd;

    #[test]
    fn what_is_mounted_in_a_tree_is_not_removed_with_it() {
        use std::os::unix::fs::PermissionsExt;
        if let Some(temp) = std::env::var_os(ROLE) {
            return inside(Path::new(&temp));
        }
        if !Command::new("unshare").args(["-rm", "true"]).status().is_ok_and(|status| status.success()) {
            eprintln!("skipped: this system gives nobody a mount namespace");
            return;
        }
        let temp = tempfile::tempdir().expect("temp");
        let victim = temp.path().join("victim");
        std::fs::create_dir(&victim).expect("made");
        std::fs::write(victim.join("kept"), "x").expect("written");
        // As no owner has all rights on it, removal would open it up.
        std::fs::set_permissions(&victim, std::fs::Permissions::from_mode(0o500)).expect("mode");
        let output = Command::new("unshare")
            .arg("-rm")
            .arg(std::env::current_exe().expect("this program"))
            .args(["--exact", NAME])
            .env(ROLE, temp.path())
            .output()
            .expect("it ran");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        assert!(victim.join("kept").exists());
        assert_eq!(std::fs::metadata(&victim).expect("there").permissions().mode() & 0o777, 0o500);
        let top = Dir::open(temp.path()).expect("open");
        assert!(tree::remove(&top, "tree").is_complete(), "once nothing is mounted there any more");
    }
}
