//! The plane as rows that somebody else keeps: which of them a call changed, and a plane that is made of them again.
//!
//! Who keeps them calls [`Plane::track`] once and [`Plane::take_changes`] after every call, and writes what that gives before the
//! call is answered. Indexes and sums are not stored: they follow from the rows.

use super::limits::Limits;
use super::row::Text;
use super::transcript::Message;
use super::{Plane, Task};
use crate::id::TaskId;
use crate::time::Now;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thiserror::Error;

/// A set of rows of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rows {
    /// The counters: one row with an empty key.
    Counters,
    /// Workspaces by id.
    Workspaces,
    /// Runtime profiles by id.
    Profiles,
    /// Runtimes by id.
    Runtimes,
    /// How many tasks an agent may have at once, by agent.
    AgentCaps,
    /// Tasks by id.
    Tasks,
    /// Messages by task and place: a message never changes.
    Messages,
    /// What users said of issues, chats and autopilot runs, by id.
    Subjects,
}

impl Rows {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Counters,
        Self::Workspaces,
        Self::Profiles,
        Self::Runtimes,
        Self::AgentCaps,
        Self::Tasks,
        Self::Messages,
        Self::Subjects,
    ];

    /// A name for it that never changes.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counters => "counters",
            Self::Workspaces => "workspaces",
            Self::Profiles => "profiles",
            Self::Runtimes => "runtimes",
            Self::AgentCaps => "agent_caps",
            Self::Tasks => "tasks",
            Self::Messages => "messages",
            Self::Subjects => "subjects",
        }
    }
}

/// A row that is to be written, or removed where there is no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What kind of row.
    pub rows: Rows,
    /// Which one.
    pub key: String,
    /// The row as JSON.
    pub value: Option<Vec<u8>>,
}

/// The rows are not those of a plane.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{rows} {key:?}: {what}", rows = rows.as_str())]
pub struct Damaged {
    /// The kind of the row.
    pub rows: Rows,
    /// Its key.
    pub key: String,
    /// What is wrong with it.
    pub what: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Counters {
    ids: super::Ids,
    enqueued: u64,
    ends: u64,
}

impl Plane {
    /// From now on notes which rows change. The first [`Self::take_changes`] gives all rows.
    pub fn track(&mut self) {
        self.workspaces.track();
        self.profiles.track();
        self.runtimes.track();
        self.agent_caps.track();
        self.tasks.track();
        self.transcripts.track();
        self.subject_status.track();
        self.stored = None;
        self.tracked = true;
    }

    /// The rows that changed since the last call, removals of messages before what replaces them. Empty unless [`Self::track`] was called.
    pub fn take_changes(&mut self) -> Vec<Change> {
        let mut out = Vec::new();
        if !self.tracked {
            return out;
        }
        let counters = self.counters();
        if self.stored.as_ref() != Some(&counters) {
            out.push(written(Rows::Counters, String::new(), Some(&counters)));
            self.stored = Some(counters);
        }
        macro_rules! touched {
            ($($rows:ident: $table:ident,)*) => {$(
                for (key, row) in self.$table.take_touched() {
                    out.push(written(Rows::$rows, key.to_string(), row));
                }
            )*};
        }
        touched! {
            Workspaces: workspaces,
            Profiles: profiles,
            Runtimes: runtimes,
            AgentCaps: agent_caps,
            Tasks: tasks,
            Subjects: subject_status,
        }
        let (gone, new) = self.transcripts.take_touched();
        for (task, count) in gone {
            out.extend((0..count).map(|n| written::<Message>(Rows::Messages, message_key(&task, n), None)));
        }
        for (task, from) in new {
            for (n, message) in self.transcript(&task).iter().enumerate().skip(from) {
                out.push(written(Rows::Messages, message_key(&task, n), Some(message)));
            }
        }
        out
    }

    fn counters(&self) -> Counters {
        Counters { ids: self.ids.clone(), enqueued: self.enqueued, ends: self.ends }
    }

    /// A plane of stored rows, given in any order. `seed` decides its ids if no counters were stored, which is so for no rows at all.
    /// It keeps to `limits`: ended tasks beyond them are forgotten.
    ///
    /// # Errors
    /// [`Damaged`] for the first row that cannot be read or contradicts another one.
    pub fn restore(
        seed: u64,
        limits: Limits,
        rows: impl IntoIterator<Item = (Rows, String, Vec<u8>)>,
    ) -> Result<Self, Damaged> {
        let mut plane = Self::with_limits(seed, limits);
        let mut messages: BTreeMap<TaskId, BTreeMap<usize, Message>> = BTreeMap::new();
        for (rows, key, value) in rows {
            let row = Row { rows, key, value };
            match rows {
                Rows::Counters => {
                    let counters: Counters = row.read()?;
                    (plane.ids, plane.enqueued, plane.ends) =
                        (counters.ids, counters.enqueued, counters.ends);
                }
                Rows::Workspaces => {
                    let read = row.read()?;
                    plane.workspaces.insert(row.key.as_str().into(), read);
                }
                Rows::Profiles => {
                    let read: super::Profile = row.read()?;
                    row.is_keyed(read.id.as_str())?;
                    plane.profiles.insert(read.id.clone(), read);
                }
                Rows::Runtimes => {
                    let read: super::Runtime = row.read()?;
                    row.is_keyed(read.id.as_str())?;
                    if plane.runtime_ids.insert(read.identity(), read.id.clone()).is_some() {
                        return Err(row.damaged("another runtime is the same one"));
                    }
                    plane.runtimes.insert(read.id.clone(), read);
                }
                Rows::AgentCaps => {
                    let read = row.read()?;
                    plane.agent_caps.insert(row.key.as_str().into(), read);
                }
                Rows::Tasks => {
                    let read: Task = row.read()?;
                    row.is_keyed(read.id.as_str())?;
                    plane.tasks.insert(read.id.clone(), read);
                }
                Rows::Messages => {
                    let (task, place) = row.message()?;
                    messages.entry(task).or_default().insert(place, row.read()?);
                }
                Rows::Subjects => {
                    let read: (Text, Now) = row.read()?;
                    plane.subject_status.insert(row.key.as_str().into(), read);
                }
            }
        }
        plane.index_tasks()?;
        for (task, list) in messages {
            let key = message_key(&task, list.len());
            let damaged = |what: &str| Damaged { rows: Rows::Messages, key, what: what.into() };
            if plane.tasks.get(&task).is_none() {
                return Err(damaged("there is no such task"));
            }
            if list.keys().enumerate().any(|(n, place)| n != *place) {
                return Err(damaged("a message before this one is missing"));
            }
            plane.transcripts.append(&task, list.into_values().collect());
        }
        plane.forget_ended();
        Ok(plane)
    }

    /// Builds what follows from the tasks, and checks that they fit each other and the rest.
    fn index_tasks(&mut self) -> Result<(), Damaged> {
        let mut ended = BTreeMap::new();
        for task in self.tasks.values() {
            let damaged =
                |what: &str| Damaged { rows: Rows::Tasks, key: task.id.to_string(), what: what.into() };
            let terminal = task.state.is_terminal();
            if terminal != task.ended_at.is_some() || terminal != task.ended_order.is_some() {
                return Err(damaged("its state and its end contradict each other"));
            }
            if task.state.is_preparing() != task.lease_until.is_some() {
                return Err(damaged("its state and its lease contradict each other"));
            }
            if task.order >= self.enqueued || task.ended_order.is_some_and(|order| order >= self.ends) {
                return Err(damaged("it is younger than the counters"));
            }
            if let Some(order) = task.ended_order {
                if ended.insert(order, task.id.clone()).is_some() {
                    return Err(damaged("another task has ended at its place"));
                }
            } else {
                if !self.runtimes.contains_key(&task.runtime) {
                    return Err(damaged("it is open, and its runtime is not there"));
                }
                self.open.insert(task);
            }
        }
        self.ended = ended.into_values().collect();
        Ok(())
    }
}

fn message_key(task: &TaskId, place: usize) -> String {
    format!("{task}/{place:08}")
}

/// Plain data always has a JSON form: the keys of all maps in rows are texts.
fn written<T: Serialize>(rows: Rows, key: String, row: Option<&T>) -> Change {
    Change { rows, key, value: row.map(|row| serde_json::to_vec(row).unwrap_or_default()) }
}

struct Row {
    rows: Rows,
    key: String,
    value: Vec<u8>,
}

impl Row {
    fn damaged(&self, what: impl Into<String>) -> Damaged {
        Damaged { rows: self.rows, key: self.key.clone(), what: what.into() }
    }

    fn read<T: DeserializeOwned>(&self) -> Result<T, Damaged> {
        serde_json::from_slice(&self.value).map_err(|why| self.damaged(why.to_string()))
    }

    fn is_keyed(&self, id: &str) -> Result<(), Damaged> {
        if self.key == id { Ok(()) } else { Err(self.damaged(format!("the row is {id:?}'s"))) }
    }

    fn message(&self) -> Result<(TaskId, usize), Damaged> {
        let parts = self.key.rsplit_once('/').and_then(|(task, place)| Some((task, place.parse().ok()?)));
        let (task, place) = parts.ok_or_else(|| self.damaged("this is no key of a message"))?;
        Ok((TaskId::from(task), place))
    }
}
