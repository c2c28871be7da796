//! Slots, marks on directories, and directories of users: who has them, and until when.

use super::course::How;
use super::scene::Scene;
use crate::effect::PhaseName;
use crate::id::{EnvRoot, PathKey, SlotIndex};
use crate::story::{End, PathUse, RootMark, SlotUse, Span, TaskIx};

impl Scene<'_> {
    pub(super) fn take_slot(&mut self, task: TaskIx, slot: SlotIndex, span: Span) {
        self.free_slot(task, How::Over);
        // Only if steps were lost can somebody else have it still.
        if let Some(other) = self.course.slots.get(&slot).copied() {
            self.free_slot(other, How::Over);
        }
        let nth = self.story.slots.len();
        self.story.slots.push(SlotUse { life: self.course.life, slot, task, span });
        self.course.slots.insert(slot, task);
        self.course.held(task).slot = Some((slot, nth));
    }

    pub(super) fn free_slot(&mut self, task: TaskIx, how: How) {
        let held = self.course.alive.get_mut(&task).and_then(|held| held.slot.take());
        if let Some((slot, nth)) = held {
            let end = self.end(self.story.slots[nth].span, how);
            self.story.slots[nth].span.close(end);
            if self.course.slots.get(&slot) == Some(&task) {
                self.course.slots.remove(&slot);
            }
        }
    }

    /// Marks what the task is to get: at once, or when the collector lets go of it. Returns whether it has to wait.
    pub(super) fn mark_all(&mut self, task: TaskIx, span: Span) -> bool {
        let roots = self.course.held(task).roots.clone();
        let mut waits = false;
        for root in roots {
            if let Some(line) = self.course.freeing.get_mut(&root) {
                line.push(task);
                waits = true;
            } else {
                self.mark(task, root, span);
            }
        }
        waits
    }

    /// Since when a task that begins to prepare has its marks: since this step, if it began to wait for them in it.
    pub(super) fn marked_by_now(&self, task: TaskIx) -> Span {
        let waits = self.story[task].phases.last().filter(|phase| phase.name == PhaseName::AwaitingRoot);
        let since = waits.and_then(|phase| phase.span.begin.seen());
        if since == Some(self.at) { Span::from(self.at) } else { self.already() }
    }

    /// Marks a directory, unless the task has marked it.
    pub(super) fn mark_once(&mut self, task: TaskIx, root: &EnvRoot, span: Span) {
        let marks = &self.course.held(task).marks;
        if !marks.iter().any(|nth| self.story.marks[*nth].root == *root) {
            self.mark(task, root.clone(), span);
        }
    }

    pub(super) fn mark(&mut self, task: TaskIx, root: EnvRoot, span: Span) {
        let nth = self.story.marks.len();
        self.story.marks.push(RootMark { life: self.course.life, root, task, span });
        self.course.held(task).marks.push(nth);
    }

    /// The collector has let go of a directory: who waited for it has it now.
    pub(super) fn freed(&mut self, root: &EnvRoot) {
        for task in self.course.freeing.remove(root).unwrap_or_default() {
            if self.story[task].here.is_open() && self.course.alive.contains_key(&task) {
                self.mark(task, root.clone(), Span::from(self.at));
            }
        }
    }

    pub(super) fn free_marks(&mut self, task: TaskIx, how: How) {
        let marks = self.course.alive.get_mut(&task).map(|held| std::mem::take(&mut held.marks));
        for nth in marks.unwrap_or_default() {
            let end = self.end(self.story.marks[nth].span, how);
            self.story.marks[nth].span.close(end);
        }
        for line in self.course.freeing.values_mut() {
            line.retain(|waits| *waits != task);
        }
    }

    /// Since when a task that needs to wait no more for a directory has it: since this step, if it is known to have waited until now.
    pub(super) fn entered_by_now(&self, task: TaskIx) -> Span {
        let before = self.story[task].phases.last();
        let waited = before.is_some_and(|phase| {
            let waits = matches!(phase.name, PhaseName::Resolving | PhaseName::AwaitingDirectory);
            waits && phase.span.end == End::Seen(self.at)
        });
        if waited { Span::from(self.at) } else { self.already() }
    }

    /// It is the task's turn in the user's directory that it is to work in.
    pub(super) fn take_path(&mut self, task: TaskIx, span: Span) {
        let held = self.course.held(task);
        let Some(path) = held.path.clone().filter(|_| held.path_use.is_none()) else { return };
        // As above.
        if let Some(other) = self.course.paths.get(&path).copied() {
            self.free_path(other, How::Over);
        }
        let nth = self.story.paths.len();
        self.story.paths.push(PathUse { life: self.course.life, path: path.clone(), task, span });
        self.course.paths.insert(path, task);
        self.course.held(task).path_use = Some(nth);
    }

    pub(super) fn free_path(&mut self, task: TaskIx, how: How) {
        let Some(held) = self.course.alive.get_mut(&task) else { return };
        let Some(nth) = held.path_use.take() else { return };
        let end = self.end(self.story.paths[nth].span, how);
        self.story.paths[nth].span.close(end);
        let path = &self.story.paths[nth].path;
        if self.course.paths.get(path) == Some(&task) {
            self.course.paths.remove(path);
        }
    }

    /// The user's directory that a task of an earlier process works in, unless somebody has it.
    pub(super) fn take_over_path(&mut self, task: TaskIx, path: &PathKey) {
        if !self.course.paths.contains_key(path) {
            self.course.held(task).path = Some(path.clone());
            self.take_path(task, Span::from(self.at));
        }
    }
}
