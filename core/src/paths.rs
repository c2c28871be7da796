//! Who works in which of the user's own directories: one task at a time, the others wait in line.
//!
//! A line is strictly first come, first served. Who has a directory and waits for a slot waits in a second line, whose order is that in
//! which the directories were granted.

use crate::event::ClaimKey;
use crate::id::{PathKey, Provider};
use crate::token::PathGuard;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

#[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Line {
    holder: ClaimKey,
    waiting: VecDeque<ClaimKey>,
}

/// All directories that somebody works in; one that is not here is free.
#[derive(Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct PathLocks {
    lines: BTreeMap<PathKey, Line>,
    /// In which line a claim waits.
    waits: BTreeMap<ClaimKey, PathKey>,
    /// Who has a directory and no slot, by provider, with the number of the grant.
    ready: BTreeMap<Provider, VecDeque<(u64, ClaimKey)>>,
    grants: u64,
}

impl PathLocks {
    /// Takes the directory, or joins its line: then the claim that has it is named.
    pub(crate) fn acquire(&mut self, path: PathKey, who: ClaimKey) -> Result<PathGuard, ClaimKey> {
        if let Some(line) = self.lines.get_mut(&path) {
            line.waiting.push_back(who);
            self.waits.insert(who, path);
            return Err(line.holder);
        }
        self.lines.insert(path.clone(), Line { holder: who, waiting: VecDeque::new() });
        Ok(PathGuard::mint(path))
    }

    /// Gives a directory back, and to the next one in its line.
    pub(crate) fn release(&mut self, guard: PathGuard) -> Option<(ClaimKey, PathGuard)> {
        let PathGuard { path, .. } = guard;
        let line = self.lines.get_mut(&path)?;
        let Some(next) = line.waiting.pop_front() else {
            self.lines.remove(&path);
            return None;
        };
        line.holder = next;
        self.waits.remove(&next);
        Some((next, PathGuard::mint(path)))
    }

    /// This claim has its directory and waits for a slot.
    pub(crate) fn await_slot(&mut self, who: ClaimKey, provider: &Provider) {
        self.grants += 1;
        self.ready.entry(provider.clone()).or_default().push_back((self.grants, who));
    }

    /// The next one to get a slot: the first whose provider has room.
    pub(crate) fn next_ready(&mut self, has_room: impl Fn(&Provider) -> bool) -> Option<ClaimKey> {
        let first = |(provider, line): (&Provider, &VecDeque<(u64, ClaimKey)>)| {
            let (grant, _) = line.front()?;
            has_room(provider).then(|| (*grant, provider.clone()))
        };
        let (_, provider) = self.ready.iter().filter_map(first).min()?;
        let line = self.ready.get_mut(&provider)?;
        let next = line.pop_front();
        if line.is_empty() {
            self.ready.remove(&provider);
        }
        next.map(|(_, who)| who)
    }

    /// A claim that waits, for a directory or for a slot, does not any more. O(length of its line).
    pub(crate) fn forget(&mut self, who: ClaimKey) {
        if let Some(path) = self.waits.remove(&who)
            && let Some(line) = self.lines.get_mut(&path)
        {
            line.waiting.retain(|waiting| *waiting != who);
        }
    }

    /// A claim that has its directory does not wait for a slot any more. O(length of its line).
    pub(crate) fn forget_ready(&mut self, who: ClaimKey, provider: &Provider) {
        if let Some(line) = self.ready.get_mut(provider) {
            line.retain(|(_, ready)| *ready != who);
            if line.is_empty() {
                self.ready.remove(provider);
            }
        }
    }

    /// Directories that somebody works in, or is about to.
    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Claims that wait for a directory.
    pub(crate) fn waiting(&self) -> usize {
        self.waits.len()
    }

    /// Claims that have a directory and wait for a slot.
    pub(crate) fn ready(&self) -> usize {
        self.ready.values().map(VecDeque::len).sum()
    }

    /// The directory of a claim, if this is the one that has it.
    pub(crate) fn is_held_by(&self, guard: &PathGuard, who: ClaimKey) -> bool {
        self.lines.get(&guard.path).is_some_and(|line| line.holder == who)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ClaimKey = ClaimKey(1);
    const B: ClaimKey = ClaimKey(2);
    const C: ClaimKey = ClaimKey(3);

    fn dir() -> PathKey {
        PathKey::new("dir-1")
    }

    #[test]
    fn inv_90_a_directory_has_one_task_and_the_line_is_first_come_first_served() {
        let mut paths = PathLocks::default();
        let a = paths.acquire(dir(), A).expect("free");
        assert_eq!(paths.acquire(dir(), B).expect_err("taken"), A);
        assert_eq!(paths.acquire(dir(), C).expect_err("taken"), A, "who has it, not who is before it");
        let other = paths.acquire(PathKey::new("dir-2"), B).expect("another directory");
        assert!(paths.release(other).is_none());
        let (next, b) = paths.release(a).expect("somebody waits");
        assert!(next == B && paths.is_held_by(&b, B) && !paths.is_held_by(&b, A));
        let (next, c) = paths.release(b).expect("somebody waits");
        assert_eq!(next, C);
        assert!(paths.release(c).is_none());
        assert_eq!(paths, PathLocks::default(), "no entry is left");
    }

    #[test]
    fn one_that_leaves_the_line_moves_nobody_else() {
        let mut paths = PathLocks::default();
        let a = paths.acquire(dir(), A).expect("free");
        assert!(paths.acquire(dir(), B).is_err() && paths.acquire(dir(), C).is_err());
        paths.forget(B);
        paths.forget(B);
        let (next, c) = paths.release(a).expect("somebody waits");
        assert_eq!(next, C);
        assert!(paths.release(c).is_none());
        assert_eq!(paths, PathLocks::default());
    }

    #[test]
    fn a_slot_goes_to_the_oldest_grant_whose_provider_has_room() {
        let (claude, codex) = (Provider::new("claude"), Provider::new("codex"));
        let mut paths = PathLocks::default();
        for (who, provider) in [(A, &codex), (B, &claude), (C, &codex)] {
            paths.await_slot(who, provider);
        }
        assert_eq!(paths.next_ready(|provider| *provider == claude), Some(B));
        assert_eq!(paths.next_ready(|provider| *provider == claude), None);
        paths.forget_ready(A, &codex);
        assert_eq!(paths.next_ready(|_| true), Some(C));
        assert_eq!(paths.ready(), 0);
    }
}
