//! Which tasks have not ended, by runtime and by agent, so that a claim looks at those alone.

use super::row::{Task, Text};
use crate::id::{RuntimeId, TaskId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Open {
    by_runtime: BTreeMap<RuntimeId, BTreeSet<TaskId>>,
    by_agent: BTreeMap<Text, BTreeSet<TaskId>>,
    len: usize,
}

impl Open {
    pub(super) fn insert(&mut self, task: &Task) {
        if self.by_runtime.entry(task.runtime.clone()).or_default().insert(task.id.clone()) {
            self.by_agent.entry(task.agent.clone()).or_default().insert(task.id.clone());
            self.len += 1;
        }
    }

    pub(super) fn remove(&mut self, task: &Task) {
        if drop_from(&mut self.by_runtime, &task.runtime, &task.id) {
            drop_from(&mut self.by_agent, &task.agent, &task.id);
            self.len -= 1;
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn of_runtime(&self, runtime: &RuntimeId) -> impl Iterator<Item = &TaskId> {
        self.by_runtime.get(runtime).into_iter().flatten()
    }

    pub(super) fn of_agent(&self, agent: &str) -> impl Iterator<Item = &TaskId> {
        self.by_agent.get(agent).into_iter().flatten()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &TaskId> {
        self.by_runtime.values().flatten()
    }
}

fn drop_from<K: Ord>(index: &mut BTreeMap<K, BTreeSet<TaskId>>, key: &K, id: &TaskId) -> bool {
    let Some(set) = index.get_mut(key) else { return false };
    let was = set.remove(id);
    if set.is_empty() {
        index.remove(key);
    }
    was
}
