//! Processes, found by what is in their environment, and their ends.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Once};
use std::time::Duration;

/// The ids of all living processes whose environment has exactly this entry, such as `HOME=/some/where`.
pub fn carrying(entry: &str) -> Vec<i32> {
    let Ok(listed) = std::fs::read_dir("/proc") else { return Vec::new() };
    let ids = listed.flatten().filter_map(|found| found.file_name().to_str()?.parse().ok());
    ids.filter(|id| {
        // Another user's process, or one that has just ended, cannot be read and is none of ours.
        let environment = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|found| found == entry.as_bytes())
    })
    .collect()
}

/// Has what is started from here on heed SIGINT, also where the tests themselves were started with it ignored, as a script does with what it
/// starts in the background: a handler ends at an exec, what is ignored stays so.
pub fn heed_interrupts() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if ignores("self", Signal::INT) {
            signal_hook::flag::register(Signal::INT.as_raw(), Arc::default()).expect("a handler");
        }
    });
}

/// Whether a process, named as `/proc` does, ignores a signal.
pub(crate) fn ignores(process: &str, signal: Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("a mask");
    u64::from_str_radix(mask.trim(), 16).expect("a mask") >> (signal.as_raw() - 1) & 1 == 1
}

/// Whether the process exists and has not ended.
pub fn is_alive(id: i32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{id}/stat")) else { return false };
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

/// Waits until the process has ended; whether it did in time. One that is not there has.
pub async fn wait_for_end(id: i32, within: Duration) -> bool {
    let Some(handle) = handle(id) else { return true };
    tokio::task::spawn_blocking(move || has_ended(&handle, within)).await.expect("no panic")
}

/// Kills everything that carries `entry`, and waits until it is gone: at most a few seconds, as a process that cannot be killed
/// must not stop the tests.
pub(crate) fn kill_carrying(entry: &str) {
    /// What is killed may have started something in the meantime.
    const ROUNDS: usize = 10;
    for _ in 0..ROUNDS {
        let found = carrying(entry);
        if found.is_empty() {
            return;
        }
        // Opened before the signal, so that no other process of the same number can be meant.
        let handles: Vec<_> = found.iter().filter_map(|id| handle(*id)).collect();
        for id in found {
            signal(id, Signal::KILL);
        }
        for handle in &handles {
            has_ended(handle, Duration::from_secs(1));
        }
    }
}

/// Sends a signal to one process; one that is gone needs none.
pub fn signal(id: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(id) {
        let _ = kill_process(pid, signal);
    }
}

/// Whether the process that the handle is for ends in time.
fn has_ended(handle: &OwnedFd, within: Duration) -> bool {
    let limit = Timespec::try_from(within).expect("a time that a person would wait");
    loop {
        match poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&limit)) {
            Ok(ready) => return ready > 0,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("the end of a process cannot be waited for: {error}"),
        }
    }
}

fn handle(id: i32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(id)?, PidfdFlags::empty()).ok()
}
