//! A supervisor that died without a record (killed from outside, out of memory, a restart of the machine).
//!
//! The kernel killed the agent with it, but not what the agent had started. Those processes are nobody's children
//! that we could know, so they are found by the run's marker in their environment, by their parents, and by the run's control
//! group where it has one.

use crate::supervise::record::{EndedBy, ExitRecord, RunDir, boot_id};

/// Kills what is left of a run, and gives a record that says no more than what is known.
pub(super) fn settle(dir: &RunDir, how: &str) -> ExitRecord {
    let mut record = ExitRecord::new(EndedBy::SupervisorLost);
    let length = |name: &str| dir.file(name).metadata().map_or(0, |meta| meta.len());
    record.stdout_len = length("stdout");
    record.stderr_len = length("stderr");
    let status = dir.status();
    if let Ok(status) = &status
        && status.boot_id != boot_id()
    {
        // Nothing is left of it, and no number of that time means anything now.
        record.note = Some("the machine was restarted while the run was at work".into());
        return record;
    }
    let (group, agent) = match &status {
        Ok(status) => (status.cgroup.clone(), Some(status.agent.clone())),
        Err(_) => (None, None),
    };
    // Written before the launch, where the status is damaged.
    let marker = status.map(|status| status.marker).or_else(|_| dir.marker());
    let rest = match marker {
        Ok(marker) => {
            (record.leftovers, record.unkilled) = kill_marked(&marker, group.as_deref());
            reap_adopted(agent.as_ref());
            String::new()
        }
        Err(error) => format!("; what the run left behind is unknown: {error}"),
    };
    record.note = Some(format!("the run's supervisor ended without a record ({how}){rest}"));
    record
}

#[cfg(target_os = "linux")]
pub(in crate::supervise) use by_marker::kill_where;
#[cfg(target_os = "linux")]
use by_marker::{kill_marked, reap_adopted};

#[cfg(target_os = "linux")]
mod by_marker {
    use crate::supervise::cgroup::Group;
    use crate::supervise::procfs::{Stat, descendants, pids};
    use crate::supervise::record::{Identity, MARKER_VARIABLE, Process};
    use crate::supervise::tree::{KILL_LIMIT, MAX_NAMED, reap, signal_same};
    use rustix::process::{Pid, Signal};
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::time::{Duration, Instant};

    /// From one look at what is left to the next.
    const PASS: Duration = Duration::from_millis(5);

    /// Gives what was killed and what could not be.
    pub(super) fn kill_marked(marker: &str, group: Option<&Path>) -> (Vec<Process>, Vec<Process>) {
        if marker.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let group = group.and_then(|path| Group::of_run(path, marker));
        let entry = format!("{MARKER_VARIABLE}={marker}");
        let (seen, unkilled) = kill_all_of(|pid| is_marked(pid, &entry), group.as_ref());
        if let Some(group) = group {
            group.end();
        }
        (seen.into_values().take(MAX_NAMED).collect(), unkilled)
    }

    /// Kills every process for which this holds, and all that those have started. Gives how many there were.
    pub(in crate::supervise) fn kill_where(is_ours: impl Fn(i32) -> bool) -> usize {
        kill_all_of(is_ours, None).0.len()
    }

    /// What was seen, by its number and start time, and what could not be killed within [`KILL_LIMIT`].
    fn kill_all_of(
        is_ours: impl Fn(i32) -> bool,
        group: Option<&Group>,
    ) -> (BTreeMap<(i32, u64), Process>, Vec<Process>) {
        let until = Instant::now() + KILL_LIMIT;
        let mut seen = BTreeMap::new();
        let unkilled = loop {
            let left = left_of(&is_ours, group);
            if left.is_empty() || Instant::now() >= until {
                break left.iter().take(MAX_NAMED).map(Stat::process).collect();
            }
            if let Some(group) = group {
                group.kill();
            }
            for stat in left {
                signal_same(&stat, Signal::KILL);
                seen.insert((stat.pid, stat.started), stat.process());
            }
            std::thread::sleep(PASS);
        };
        for (pid, started) in seen.keys() {
            reap_adopted(Some(&Identity { pid: *pid, started: Some(*started) }));
        }
        (seen, unkilled)
    }

    /// What carries a marker, what is in the group, and all that those have started.
    fn left_of(is_ours: impl Fn(i32) -> bool, group: Option<&Group>) -> Vec<Stat> {
        let me = i32::try_from(std::process::id()).unwrap_or(0);
        let members = group.map(Group::members).unwrap_or_default();
        let mut found = BTreeMap::new();
        for pid in pids().filter(|pid| *pid != me) {
            // Read first: the signal goes only to a process that still has this start time.
            let Some(stat) = Stat::of(pid).filter(|stat| !stat.dead) else { continue };
            if members.contains(&pid) || is_ours(pid) {
                found.insert(pid, stat);
            }
        }
        let parents: Vec<i32> = found.keys().copied().collect();
        for stat in descendants(&parents).into_iter().filter(|stat| !stat.dead && stat.pid != me) {
            found.entry(stat.pid).or_insert(stat);
        }
        found.into_values().collect()
    }

    fn is_marked(pid: i32, entry: &str) -> bool {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|it| it == entry.as_bytes())
    }

    /// A daemon that is the first process of a container gets the orphans of a supervisor that died, and nobody else reaps them.
    pub(super) fn reap_adopted(ended: Option<&Identity>) {
        let me = i32::try_from(std::process::id()).unwrap_or(0);
        if let Some(ended) = ended
            && let Some(stat) = Stat::of(ended.pid)
            && stat.parent == me
            && Some(stat.started) == ended.started
            && let Some(pid) = Pid::from_raw(ended.pid)
        {
            reap(pid);
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn kill_marked(
    _marker: &str,
    _group: Option<&std::path::Path>,
) -> (Vec<crate::supervise::record::Process>, Vec<crate::supervise::record::Process>) {
    (Vec::new(), Vec::new())
}

#[cfg(not(target_os = "linux"))]
fn reap_adopted(_ended: Option<&crate::supervise::record::Identity>) {}
