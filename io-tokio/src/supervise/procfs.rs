//! What `/proc` says about processes.

use super::record::{Identity, Process};
use std::fs;

/// The fields of `/proc/<pid>/stat` that matter here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) pid: i32,
    pub(super) command: String,
    pub(super) parent: i32,
    pub(super) group: i32,
    /// Clock ticks since boot.
    pub(super) started: u64,
    /// A zombie, or already being removed.
    pub(super) dead: bool,
    /// By a signal, until another one lets it go on.
    pub(super) stopped: bool,
}

impl Stat {
    pub(super) fn of(pid: i32) -> Option<Self> {
        Self::parse(&String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/stat")).ok()?))
    }

    // The command is in parentheses and may itself hold spaces and parentheses: the last one closes it.
    fn parse(text: &str) -> Option<Self> {
        let (pid, rest) = text.split_once(" (")?;
        let (command, rest) = rest.rsplit_once(") ")?;
        let mut fields = rest.split(' ');
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let started = fields.nth(16)?.parse().ok()?;
        let dead = matches!(state, "Z" | "X" | "x");
        let stopped = state == "T";
        Some(Self {
            pid: pid.parse().ok()?,
            command: command.to_owned(),
            parent,
            group,
            started,
            dead,
            stopped,
        })
    }

    pub(super) fn process(&self) -> Process {
        Process { pid: self.pid, command: self.command.clone() }
    }
}

/// The ids of all processes.
pub(super) fn pids() -> impl Iterator<Item = i32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// All processes below these, nearest first.
pub(super) fn descendants(ancestors: &[i32]) -> Vec<Stat> {
    let mut others: Vec<Stat> = pids().filter_map(Stat::of).collect();
    let mut found: Vec<Stat> = Vec::new();
    let mut parents = ancestors.to_vec();
    while !parents.is_empty() {
        let (next, rest): (Vec<Stat>, _) =
            others.into_iter().partition(|stat| parents.contains(&stat.parent));
        others = rest;
        parents = next.iter().map(|stat| stat.pid).collect();
        found.extend(next);
    }
    found
}

/// The process that was seen as `identity`, if it is still the same one and runs.
pub(super) fn living(identity: &Identity, boot: Option<&str>) -> Option<Stat> {
    if boot.is_none() || boot != boot_id().as_deref() {
        return None;
    }
    Stat::of(identity.pid).filter(|stat| !stat.dead && Some(stat.started) == identity.started)
}

pub(super) fn identity(pid: i32) -> Identity {
    Identity { pid, started: Stat::of(pid).map(|stat| stat.started) }
}

pub(super) fn boot_id() -> Option<String> {
    Some(fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let text = "42 (a) b (c) S 7 41 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 9876 1 2 3\n";
        let stat = Stat::parse(text).expect("whole");
        assert_eq!((stat.pid, stat.parent, stat.group, stat.started, stat.dead), (42, 7, 41, 9876, false));
        assert_eq!(stat.command, "a) b (c");
        assert_eq!(Stat::parse("42 (cut"), None);
    }

    #[test]
    fn our_own_entry_is_found_below_our_parent() {
        let me = i32::try_from(std::process::id()).expect("a pid fits");
        let stat = Stat::of(me).expect("we exist");
        assert!(descendants(&[stat.parent]).iter().any(|stat| stat.pid == me));
        assert!(boot_id().is_some_and(|id| id.len() == 36));
    }
}
