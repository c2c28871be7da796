//! Signals to the processes of a run, and their reaping. The only place that signals anything.
//!
//! The caller is the subreaper of what it started: whatever loses its parent, also after a double fork or in a
//! session of its own, becomes the caller's child. A child's number cannot be given to another process before the
//! caller reaps it, so signals to children hit what they are meant for; deeper descendants are held by a pidfd and
//! looked at again before they are signalled.

use super::record::Process;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, waitid};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// How long killed processes may take to go: one in uninterruptible sleep may take for ever.
pub(super) const KILL_LIMIT: Duration = Duration::from_secs(10);

/// How many processes a record names.
pub(super) const MAX_NAMED: usize = 64;

/// From one look at what is left to the next.
const KILL_PASS: Duration = Duration::from_millis(5);

/// How long children are killed as fast as they are seen, before every pass waits a little.
const HUNT: Duration = Duration::from_secs(2);

/// How a child ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ending {
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
}

impl From<WaitIdStatus> for Ending {
    fn from(status: WaitIdStatus) -> Self {
        Self { code: status.exit_status(), signal: status.terminating_signal() }
    }
}

/// What [`reap_all_but`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Children {
    /// There are none.
    None,
    /// There are some, and they run.
    Running,
    /// The leader has ended and is not reaped yet: its group can still be signalled safely.
    LeaderEnded,
}

/// Reaps what has ended, apart from the leader.
#[cfg(target_os = "linux")]
pub(super) fn reap_all_but(leader: Pid) -> Children {
    use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid as wait_any};
    let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    loop {
        match wait_any(Id::All, look) {
            Ok(status @ (WaitStatus::Exited(..) | WaitStatus::Signaled(..))) => {
                let pid = status.pid().and_then(|pid| Pid::from_raw(pid.as_raw()));
                match pid {
                    Some(pid) if pid == leader => return Children::LeaderEnded,
                    Some(pid) => drop(reap(pid)),
                    None => return Children::Running,
                }
            }
            Err(nix::errno::Errno::ECHILD) => return Children::None,
            Err(nix::errno::Errno::EINTR) => {}
            Ok(_) | Err(_) => return Children::Running,
        }
    }
}

/// Without a subreaper the leader is the only child.
#[cfg(not(target_os = "linux"))]
pub(super) fn reap_all_but(leader: Pid) -> Children {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match waitid(WaitId::Pid(leader), look) {
        Ok(Some(_)) => Children::LeaderEnded,
        Err(Errno::CHILD) => Children::None,
        Ok(None) | Err(_) => Children::Running,
    }
}

/// Takes the status of a child that has ended; the number is free afterwards.
pub(super) fn reap(child: Pid) -> Option<Ending> {
    loop {
        match waitid(WaitId::Pid(child), WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
            Err(Errno::INTR) => {}
            other => return other.ok().flatten().map(Ending::from),
        }
    }
}

/// Signals the group that `leader` leads; the caller has not reaped it, so the number is its own.
///
/// Refuses numbers that mean more than one group (1 and below) and the caller's own group.
pub(super) fn signal_group(leader: Pid, signal: Signal) {
    if leader.as_raw_nonzero().get() <= 1 || leader == rustix::process::getpgrp() {
        return;
    }
    // No such group: the leader has not made it yet, or nothing is left. Both are seen by the caller's other means.
    let _ = kill_process_group(leader, signal);
}

/// Asks a group to end; a stopped process must run to hear it.
pub(super) fn ask_group_to_end(leader: Pid) {
    signal_group(leader, Signal::TERM);
    signal_group(leader, Signal::CONT);
}

/// What runs below the calling process, nearest first.
#[cfg(target_os = "linux")]
pub(super) fn running() -> Vec<Process> {
    living().iter().take(MAX_NAMED).map(super::procfs::Stat::process).collect()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn running() -> Vec<Process> {
    Vec::new()
}

#[cfg(target_os = "linux")]
fn living() -> Vec<super::procfs::Stat> {
    let me = rustix::process::getpid().as_raw_nonzero().get();
    super::procfs::descendants(&[me]).into_iter().filter(|stat| !stat.dead).collect()
}

/// Whether the caller has children besides the leader, which has ended: whatever that left is below one of them.
#[cfg(target_os = "linux")]
pub(super) fn has_children_but(leader: Pid) -> bool {
    children().any(|child| child != leader)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn has_children_but(_leader: Pid) -> bool {
    false
}

/// The caller's children, dead or alive. It has one thread.
#[cfg(target_os = "linux")]
fn children() -> impl Iterator<Item = Pid> {
    let text = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    let words: Vec<i32> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    words.into_iter().filter_map(Pid::from_raw).filter(|pid| pid.as_raw_nonzero().get() > 1)
}

/// Signals everything below the calling process, except the members of one group; gives all that was there.
#[cfg(target_os = "linux")]
pub(super) fn signal_descendants(signal: Signal, except_group: Option<Pid>) -> Vec<Process> {
    let living = living();
    for stat in &living {
        if except_group.is_some_and(|group| group.as_raw_nonzero().get() == stat.group) {
            continue;
        }
        signal_same(stat, signal);
        if signal == Signal::TERM {
            signal_same(stat, Signal::CONT);
        }
    }
    living.iter().take(MAX_NAMED).map(super::procfs::Stat::process).collect()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn signal_descendants(_signal: Signal, _except_group: Option<Pid>) -> Vec<Process> {
    Vec::new()
}

/// Signals a process if its number still belongs to the one that was seen.
#[cfg(target_os = "linux")]
pub(super) fn signal_same(seen: &super::procfs::Stat, signal: Signal) -> bool {
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
    let Some(pid) = Pid::from_raw(seen.pid).filter(|pid| pid.as_raw_nonzero().get() > 1) else {
        return false;
    };
    let Ok(held) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
    let now = super::procfs::Stat::of(seen.pid);
    now.is_some_and(|now| now.started == seen.started) && pidfd_send_signal(held, signal).is_ok()
}

/// What [`kill_all`] did.
#[derive(Debug, Default)]
pub(super) struct Killed {
    /// How the leader ended.
    pub(super) ending: Option<Ending>,
    /// What the first look found, the leader too; at most [`MAX_NAMED`].
    pub(super) first: Vec<Process>,
    /// What could not be killed.
    pub(super) left: Vec<Process>,
}

/// Kills everything below the calling process and reaps it, for at most [`KILL_LIMIT`].
///
/// `leader` is an unreaped child that leads a group, if there is one; `woken` becomes readable when a child ends; `kill_group`
/// does what a control group can do.
pub(super) fn kill_all(leader: Option<Pid>, woken: impl AsFd, kill_group: impl Fn()) -> Killed {
    let started = Instant::now();
    let mut unreaped = leader;
    let mut killed = Killed::default();
    loop {
        kill_group();
        if let Some(leader) = unreaped {
            signal_group(leader, Signal::KILL);
            // Before the leader has made its group, or where there is no /proc, only its own number reaches it.
            let _ = rustix::process::kill_process(leader, Signal::KILL);
        }
        let found = signal_descendants(Signal::KILL, None);
        if killed.first.is_empty() {
            killed.first = found;
        }
        // What forks and exits at once is gone before a look at all processes is over, but its successor becomes a child.
        let hunt_end = Instant::now() + KILL_PASS;
        while started.elapsed() < HUNT
            && Instant::now() < hunt_end
            && kill_children(unreaped, &mut killed.first)
        {}
        // A number that is nobody's child stands for "no leader": pid 1 is the system's.
        match reap_all_but(unreaped.unwrap_or(Pid::INIT)) {
            Children::None => return killed,
            Children::LeaderEnded => {
                if let Some(leader) = unreaped.take() {
                    killed.ending = reap(leader);
                }
                continue;
            }
            Children::Running => {}
        }
        if started.elapsed() >= KILL_LIMIT {
            killed.left = running();
            return killed;
        }
        wait_readable(&woken, KILL_PASS);
    }
}

/// Kills the caller's children and reaps what has ended, apart from the leader; false when there is nobody else.
///
/// The caller has not reaped them, so the numbers are theirs.
#[cfg(target_os = "linux")]
fn kill_children(leader: Option<Pid>, named: &mut Vec<Process>) -> bool {
    let mut found = false;
    for child in children().filter(|child| Some(*child) != leader) {
        found = true;
        let _ = rustix::process::kill_process(child, Signal::KILL);
        if named.is_empty() {
            // Not reaped yet, so it still has a name.
            let stat = super::procfs::Stat::of(child.as_raw_nonzero().get());
            named.extend(stat.iter().map(super::procfs::Stat::process));
        }
        reap(child);
    }
    found
}

#[cfg(not(target_os = "linux"))]
fn kill_children(_leader: Option<Pid>, _named: &mut Vec<Process>) -> bool {
    false
}

/// Waits until `fd` is readable or the time is over, and empties it.
fn wait_readable(fd: impl AsFd, limit: Duration) {
    let timeout = Timespec::try_from(limit).expect("a few milliseconds fit");
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    if matches!(poll(&mut fds, Some(&timeout)), Ok(1..)) {
        let mut bytes = [0; 64];
        let _ = rustix::io::read(&fd, &mut bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::Command;

    #[test]
    fn bug_17_our_own_group_and_the_first_process_are_never_signalled() {
        // A wrong signal ends this very test run.
        signal_group(Pid::INIT, Signal::KILL);
        signal_group(rustix::process::getpgrp(), Signal::KILL);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn bug_17_a_number_that_was_given_to_another_process_is_not_signalled() {
        let mut child = Command::new("sleep").arg("600").process_group(0).spawn().expect("sleep runs");
        let pid = i32::try_from(child.id()).expect("a pid fits");
        let mut seen = super::super::procfs::Stat::of(pid).expect("it runs");
        seen.started += 1;
        assert!(!signal_same(&seen, Signal::KILL));
        seen.started -= 1;
        assert!(signal_same(&seen, Signal::KILL));
        assert_eq!(child.wait().expect("our child").signal(), Some(9));
    }
}
