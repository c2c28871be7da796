//! Who works in which of the user's own directories: one task at a time, the others wait in line.
//!
//! A line is strictly first come, first served. Who has a directory and waits for a slot waits in a second line, whose order is that in
//! which the directories were granted. Who waits in a line with a slot of its own, as too many wait without one already, is known too: who
//! has a directory and finds no slot free changes places with one of those, so that nobody waits for a slot that waits for itself.

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

/// Claims by provider, in the order in which they joined.
#[derive(Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Queue {
    lines: BTreeMap<Provider, VecDeque<(u64, ClaimKey)>>,
}

impl Queue {
    fn push(&mut self, number: u64, who: ClaimKey, provider: &Provider) {
        self.lines.entry(provider.clone()).or_default().push_back((number, who));
    }

    /// The first of those whose provider is wanted.
    fn first(&self, wanted: impl Fn(&Provider) -> bool) -> Option<(u64, &Provider)> {
        let front = |(provider, line)| wanted(provider).then_some((line, provider));
        let front = self.lines.iter().filter_map(front);
        front.filter_map(|(line, provider)| Some((line.front()?.0, provider))).min()
    }

    fn pop(&mut self, provider: &Provider) -> Option<ClaimKey> {
        let line = self.lines.get_mut(provider)?;
        let next = line.pop_front();
        if line.is_empty() {
            self.lines.remove(provider);
        }
        next.map(|(_, who)| who)
    }

    /// O(length of its line).
    fn forget(&mut self, who: ClaimKey, provider: &Provider) {
        if let Some(line) = self.lines.get_mut(provider) {
            line.retain(|(_, waiting)| *waiting != who);
            if line.is_empty() {
                self.lines.remove(provider);
            }
        }
    }

    fn len(&self) -> usize {
        self.lines.values().map(VecDeque::len).sum()
    }
}

/// All directories that somebody works in; one that is not here is free.
#[derive(Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct PathLocks {
    lines: BTreeMap<PathKey, Line>,
    /// In which line a claim waits.
    waits: BTreeMap<ClaimKey, PathKey>,
    /// Who has a directory and no slot.
    ready: Queue,
    /// Who waits for a directory and has a slot.
    #[serde(default)]
    holding: Queue,
    /// How often somebody joined one of the two.
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

    /// Takes the directory for a task that works in it since before this process, if nobody has it.
    pub(crate) fn take_over(&mut self, path: PathKey, who: ClaimKey) -> Option<PathGuard> {
        if self.lines.contains_key(&path) {
            return None;
        }
        self.acquire(path, who).ok()
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

    /// Who has the directory that this claim waits for.
    pub(crate) fn holder(&self, waiting: ClaimKey) -> Option<ClaimKey> {
        self.lines.get(self.waits.get(&waiting)?).map(|line| line.holder)
    }

    /// This claim has its directory and waits for a slot.
    pub(crate) fn await_slot(&mut self, who: ClaimKey, provider: &Provider) {
        self.grants += 1;
        self.ready.push(self.grants, who, provider);
    }

    /// This claim waits for a directory and keeps its slot.
    pub(crate) fn hold(&mut self, who: ClaimKey, provider: &Provider) {
        self.grants += 1;
        self.holding.push(self.grants, who, provider);
    }

    /// The next one to get a slot: the first whose provider has room.
    pub(crate) fn next_ready(&mut self, has_room: impl Fn(&Provider) -> bool) -> Option<ClaimKey> {
        let (_, provider) = self.ready.first(has_room)?;
        let provider = provider.clone();
        self.ready.pop(&provider)
    }

    /// The next one to change places with one that waits and has a slot, and that one: the first that can run with what the other
    /// one gives up, which is room of the same provider if it lacks room.
    pub(crate) fn next_swap(&mut self, has_room: impl Fn(&Provider) -> bool) -> Option<(ClaimKey, ClaimKey)> {
        let helper = |to: &Provider| self.holding.first(|of| has_room(to) || of == to);
        let (_, to) = self.ready.first(|to| helper(to).is_some())?;
        let (_, from) = helper(to)?;
        let (to, from) = (to.clone(), from.clone());
        Some((self.ready.pop(&to)?, self.holding.pop(&from)?))
    }

    /// The next one of those that wait and have a slot, to give it up.
    pub(crate) fn next_holding(&mut self) -> Option<ClaimKey> {
        let (_, provider) = self.holding.first(|_| true)?;
        let provider = provider.clone();
        self.holding.pop(&provider)
    }

    /// A claim that waits, for a directory or for a slot, does not any more. O(length of its line).
    pub(crate) fn forget(&mut self, who: ClaimKey, provider: &Provider) {
        if let Some(path) = self.waits.remove(&who)
            && let Some(line) = self.lines.get_mut(&path)
        {
            line.waiting.retain(|waiting| *waiting != who);
        }
        self.ready.forget(who, provider);
        self.holding.forget(who, provider);
    }

    /// A claim that has its directory and its slot waits no more. O(length of its line).
    pub(crate) fn forget_holding(&mut self, who: ClaimKey, provider: &Provider) {
        self.holding.forget(who, provider);
    }

    /// Directories that somebody works in, or is about to.
    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether this claim waits for a directory.
    pub(crate) fn is_waiting(&self, who: ClaimKey) -> bool {
        self.waits.contains_key(&who)
    }

    /// Claims that wait for a directory.
    pub(crate) fn waiting(&self) -> usize {
        self.waits.len()
    }

    /// Claims that wait for a directory and have a slot.
    pub(crate) fn holding(&self) -> usize {
        self.holding.len()
    }

    /// Claims that have a directory and wait for a slot.
    pub(crate) fn ready(&self) -> usize {
        self.ready.len()
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
        paths.forget(B, &"claude".into());
        paths.forget(B, &"claude".into());
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
        paths.forget(A, &codex);
        assert_eq!(paths.next_ready(|_| true), Some(C));
        assert_eq!(paths.ready(), 0);
    }

    #[test]
    fn who_has_a_directory_changes_places_only_with_one_whose_leave_helps() {
        let (claude, codex) = (Provider::new("claude"), Provider::new("codex"));
        let mut paths = PathLocks::default();
        paths.await_slot(A, &claude);
        paths.await_slot(B, &codex);
        assert_eq!(paths.next_swap(|_| true), None, "nobody has a slot to give");
        paths.hold(C, &codex);
        assert_eq!(paths.next_swap(|provider| *provider == codex), Some((B, C)), "claude has no room");
        paths.hold(C, &claude);
        assert_eq!(paths.next_swap(|_| false), Some((A, C)), "it leaves its room too");
        paths.hold(C, &claude);
        assert_eq!((paths.next_holding(), paths.holding(), paths.ready()), (Some(C), 0, 0));
    }

    #[test]
    fn a_directory_is_taken_over_only_if_nobody_has_it() {
        let mut paths = PathLocks::default();
        let a = paths.take_over(dir(), A).expect("free");
        assert!(paths.take_over(dir(), B).is_none());
        assert_eq!((paths.waiting(), paths.acquire(dir(), C).expect_err("taken")), (0, A));
        assert_eq!(paths.holder(C), Some(A));
        assert_eq!(paths.release(a).map(|(next, _)| next), Some(C));
    }
}
