//! A supervisor that died without a record (killed from outside, out of memory).
//!
//! The kernel killed the agent with it, but not what the agent had started. Those processes are nobody's children
//! that we could know, so they are found by the run's marker in their environment.

use crate::supervise::record::{EndedBy, ExitRecord, RunDir};

/// Kills what is left of a run, and gives a record that says no more than what is known.
pub(super) fn settle(dir: &RunDir, how: &str) -> ExitRecord {
    let mut record = ExitRecord::new(EndedBy::SupervisorLost);
    let length = |name: &str| dir.file(name).metadata().map_or(0, |meta| meta.len());
    // Written before the launch, where the status is damaged.
    let marker =
        dir.status().map(|status| status.marker).or_else(|_| std::fs::read_to_string(dir.file("alive")));
    match marker {
        Ok(marker) => (record.leftovers, record.unkilled) = kill_marked(&marker),
        Err(error) => record.note = Some(format!("what the run left behind is unknown: {error}")),
    }
    record.stdout_len = length("stdout");
    record.stderr_len = length("stderr");
    let rest = record.note.take().map(|note| format!("; {note}")).unwrap_or_default();
    record.note = Some(format!("the run's supervisor ended without a record ({how}){rest}"));
    record
}

#[cfg(target_os = "linux")]
use by_marker::kill_marked;

#[cfg(target_os = "linux")]
mod by_marker {
    use crate::supervise::procfs::{Stat, pids};
    use crate::supervise::record::{MARKER_VARIABLE, Process};
    use crate::supervise::tree::{KILL_LIMIT, MAX_NAMED, signal_same};
    use rustix::process::Signal;
    use std::collections::BTreeMap;
    use std::time::{Duration, Instant};

    /// From one look at what is left to the next.
    const PASS: Duration = Duration::from_millis(5);

    /// Gives what was killed and what could not be.
    pub(super) fn kill_marked(marker: &str) -> (Vec<Process>, Vec<Process>) {
        if marker.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let entry = format!("{MARKER_VARIABLE}={marker}");
        let until = Instant::now() + KILL_LIMIT;
        let mut seen = BTreeMap::new();
        loop {
            let left: Vec<Stat> = marked(&entry);
            if left.is_empty() || Instant::now() >= until {
                let unkilled = left.iter().take(MAX_NAMED).map(Stat::process).collect();
                return (seen.into_values().take(MAX_NAMED).collect(), unkilled);
            }
            for stat in left {
                signal_same(&stat, Signal::KILL);
                seen.insert((stat.pid, stat.started), stat.process());
            }
            std::thread::sleep(PASS);
        }
    }

    fn marked(entry: &str) -> Vec<Stat> {
        let me = i32::try_from(std::process::id()).unwrap_or(0);
        pids()
            .filter(|pid| *pid != me)
            .filter_map(|pid| {
                // Read first: the signal goes only to a process that still has this start time.
                let stat = Stat::of(pid).filter(|stat| !stat.dead)?;
                let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
                environment.split(|byte| *byte == 0).any(|it| it == entry.as_bytes()).then_some(stat)
            })
            .collect()
    }
}

#[cfg(not(target_os = "linux"))]
fn kill_marked(
    _marker: &str,
) -> (Vec<crate::supervise::record::Process>, Vec<crate::supervise::record::Process>) {
    (Vec::new(), Vec::new())
}
