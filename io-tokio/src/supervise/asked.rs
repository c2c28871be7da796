//! Processes that a daemon only asks something, such as an agent CLI for its version, and what those leave behind.
//!
//! They have no supervisor: the daemon ends each with its group. What has put itself at the head of a session of its own, and all of them
//! where the daemon is killed, would stay. So they carry a mark that names their daemon, and the next daemon of the same state
//! directory ends what carries one of a daemon that is no more.

use super::record::Identity;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// The environment variable that marks them.
pub const ASKED_VARIABLE: &str = "LONGSHORE_ASKED";

/// The value of [`ASKED_VARIABLE`] for what this process asks, as the daemon with this state directory.
pub fn mark(state_dir: &Path) -> OsString {
    let me = Identity::of(i32::try_from(std::process::id()).unwrap_or(0));
    value(&me, state_dir)
}

/// The process id, a blank, its start time, a blank, the directory: the last may hold anything.
fn value(daemon: &Identity, state_dir: &Path) -> OsString {
    let started = daemon.started.map(|started| started.to_string()).unwrap_or_default();
    let mut value = format!("{} {started} ", daemon.pid).into_bytes();
    value.extend_from_slice(state_dir.as_os_str().as_bytes());
    OsString::from_vec(value)
}

/// The daemon that a value names, if it is one with this state directory.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "there is no way to find them"))]
fn daemon(value: &OsStr, state_dir: &Path) -> Option<Identity> {
    let mut parts = value.as_bytes().splitn(3, |byte| *byte == b' ');
    let mut number = || std::str::from_utf8(parts.next()?).ok();
    let (pid, started) = (number()?.parse().ok()?, number()?.parse().ok()?);
    (parts.next()? == state_dir.as_os_str().as_bytes()).then_some(Identity { pid, started: Some(started) })
}

/// Ends what earlier daemons with this state directory have asked and left, with all that it has started. Gives how many processes that
/// were. Blocks: for some 10 s at the most, if one of them cannot be ended.
#[cfg(target_os = "linux")]
pub fn end_left(state_dir: &Path) -> usize {
    use super::procfs::Stat;

    end_of(state_dir, |daemon| {
        Stat::of(daemon.pid).is_none_or(|stat| stat.dead || Some(stat.started) != daemon.started)
    })
}

/// Ends what this process has asked and what those have left, as [`end_left`] does.
#[cfg(target_os = "linux")]
pub fn end_own(state_dir: &Path) -> usize {
    let me = Identity::of(i32::try_from(std::process::id()).unwrap_or(0));
    end_of(state_dir, |daemon| *daemon == me)
}

#[cfg(target_os = "linux")]
fn end_of(state_dir: &Path, is_meant: impl Fn(&Identity) -> bool) -> usize {
    let entry = [ASKED_VARIABLE.as_bytes(), b"="].concat();
    let is_left = |pid: i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut values = environment.split(|byte| *byte == 0).filter_map(|it| it.strip_prefix(&*entry));
        values.any(|value| daemon(OsStr::from_bytes(value), state_dir).is_some_and(|of| is_meant(&of)))
    };
    super::client::kill_where(is_left)
}

/// Ends what earlier daemons have left. It cannot be found here.
#[cfg(not(target_os = "linux"))]
pub fn end_left(_state_dir: &Path) -> usize {
    0
}

/// Ends what this process has asked. It cannot be found here.
#[cfg(not(target_os = "linux"))]
pub fn end_own(_state_dir: &Path) -> usize {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_names_its_daemon_and_the_directory() {
        let (one, two) = (Path::new("/a b/c"), Path::new("/a b"));
        let who = Identity { pid: 4711, started: Some(99) };
        let mark = value(&who, one);
        assert_eq!((daemon(&mark, one), daemon(&mark, two)), (Some(who), None));
        for other in ["", "1", "1 2", "x 2 /a b", "1  /a b", "1 2 /a b/"] {
            assert_eq!(daemon(OsStr::new(other), two), None, "{other}");
        }
    }

    #[cfg(target_os = "linux")]
    mod ended {
        use super::*;
        use crate::supervise::procfs::Stat;
        use crate::supervise::tree::signal_same;
        use rustix::process::Signal;
        use std::process::{Command, Stdio};

        /// A process that has lost its parent. Dropped, it is killed.
        struct Orphan(Stat);

        impl Orphan {
            fn marked(mark: OsString) -> Self {
                let mut shell = Command::new("sh");
                shell.args(["-c", "sleep 600 >/dev/null 2>&1 & echo $!"]).env(ASKED_VARIABLE, mark);
                let said = shell.stdin(Stdio::null()).output().expect("it runs").stdout;
                let id = String::from_utf8(said).expect("text").trim().parse().expect("a number");
                Self(Stat::of(id).expect("it is there"))
            }

            fn is_alive(&self) -> bool {
                Stat::of(self.0.pid).is_some_and(|now| now.started == self.0.started && !now.dead)
            }
        }

        impl Drop for Orphan {
            fn drop(&mut self) {
                // One that is not there any more takes none.
                let _ = signal_same(&self.0, Signal::KILL);
            }
        }

        #[test]
        fn what_a_daemon_that_is_no_more_has_asked_is_ended_and_nothing_else() {
            let (dir, other) =
                (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
            // Its number may be another's by now, but not with its start time.
            let mut daemon = Command::new("true").stdin(Stdio::null()).spawn().expect("it starts");
            let gone = Identity::of(i32::try_from(daemon.id()).expect("small"));
            daemon.wait().expect("it ends");
            let left = Orphan::marked(value(&gone, dir.path()));
            let others = Orphan::marked(value(&gone, other.path()));
            let own = Orphan::marked(mark(dir.path()));
            let all = || [&left, &others, &own].map(Orphan::is_alive);
            assert_eq!(all(), [true; 3]);
            assert_eq!((end_left(dir.path()), all()), (1, [false, true, true]));
            assert_eq!((end_own(dir.path()), all()), (1, [false, true, false]));
            assert_eq!((end_left(dir.path()), end_own(dir.path())), (0, 0));
        }
    }
}
