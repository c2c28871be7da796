//! Runtimes: registered, kept alive by beats, offline when silent.

use super::row::Text;
use super::{Plane, Refusal, limits};
use crate::id::{Provider, RuntimeId, WorkspaceId};
use crate::time::Now;
use serde::{Deserialize, Serialize};

/// What a daemon says of itself and its agent CLIs for one workspace.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Registration {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The machine's identity.
    pub daemon_id: Text,
    /// The machine's name.
    pub device_name: Text,
    /// The daemon's version.
    pub cli_version: Text,
    /// Who started the daemon.
    pub launched_by: Text,
    /// What the daemon can do.
    pub capabilities: Vec<Text>,
    /// The CLIs; at least one.
    pub runtimes: Vec<RuntimeEntry>,
}

/// One agent CLI in a registration.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RuntimeEntry {
    /// Shown name; empty for one made of provider and device.
    pub name: Text,
    /// The family; trimmed and put in lower case, `unknown` if empty.
    pub provider: Text,
    /// The CLI's version line.
    pub version: Text,
    /// Whether it can take work.
    pub online: bool,
}

/// One runtime's row.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Runtime {
    /// Its id; the same for every registration of the same workspace, daemon and provider.
    pub id: RuntimeId,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The daemon that hosts it.
    pub daemon_id: Text,
    /// The CLI's family.
    pub provider: Provider,
    /// Shown name.
    pub name: Text,
    /// The CLI's version line.
    pub version: Text,
    /// The machine's name.
    pub device_name: Text,
    /// The daemon's version.
    pub cli_version: Text,
    /// Who started the daemon.
    pub launched_by: Text,
    /// What the daemon can do.
    pub capabilities: Vec<Text>,
    /// Whether it is offered work while it is not silent for too long.
    pub online: bool,
    /// The last registration or beat.
    pub last_seen: Now,
    /// The first registration.
    pub created_at: Now,
    /// The last registration.
    pub updated_at: Now,
}

impl Runtime {
    /// Whether it is offered work: online, and seen in the last [`limits::RUNTIME_STALE`].
    pub fn is_live(&self, now: Now) -> bool {
        self.online && now.mono.since(self.last_seen.mono) <= limits::RUNTIME_STALE
    }
}

impl Plane {
    /// Takes a daemon's CLIs for one workspace: each gets the row of its workspace, daemon and provider, a new one if
    /// there was none. Other rows are left alone. Gives the ids in the order of the entries.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] without daemon id or entries, [`Refusal::WorkspaceNotFound`], [`Refusal::Full`].
    pub fn register(&mut self, now: Now, from: Registration) -> Result<Vec<RuntimeId>, Refusal> {
        let daemon_id: Text = from.daemon_id.trim().into();
        if daemon_id.is_empty() || from.workspace.as_str().is_empty() {
            return Err(Refusal::Invalid("workspace_id and daemon_id are required".into()));
        }
        if from.runtimes.is_empty() {
            return Err(Refusal::Invalid("at least one runtime is required".into()));
        }
        if !self.workspaces.contains_key(&from.workspace) {
            return Err(Refusal::WorkspaceNotFound);
        }
        let entries: Vec<_> = from
            .runtimes
            .into_iter()
            .map(|entry| {
                let provider = match entry.provider.trim() {
                    "" => Provider::from("unknown"),
                    given => Provider::new(given.to_lowercase()),
                };
                (identity(&from.workspace, &daemon_id, &provider), provider, entry)
            })
            .collect();
        let new = entries.iter().filter(|(key, ..)| !self.runtime_ids.contains_key(key)).count();
        if self.runtimes.len() + new > self.limits.runtimes {
            return Err(Refusal::Full("runtimes"));
        }
        let mut ids = Vec::with_capacity(entries.len());
        for (key, provider, entry) in entries {
            let known = self.runtime_ids.get(&key).and_then(|id| self.runtimes.get(id));
            let (id, created_at) = match known {
                Some(row) => (row.id.clone(), row.created_at),
                None => (RuntimeId::new(self.ids.fresh()), now),
            };
            let name = if entry.name.is_empty() {
                format!("{provider} ({})", from.device_name).into()
            } else {
                entry.name
            };
            let row = Runtime {
                id: id.clone(),
                workspace: from.workspace.clone(),
                daemon_id: daemon_id.clone(),
                provider,
                name,
                version: entry.version,
                device_name: from.device_name.clone(),
                cli_version: from.cli_version.clone(),
                launched_by: from.launched_by.clone(),
                capabilities: from.capabilities.clone(),
                online: entry.online,
                last_seen: now,
                created_at,
                updated_at: now,
            };
            self.runtimes.insert(id.clone(), row);
            self.runtime_ids.insert(key, id.clone());
            ids.push(id);
        }
        Ok(ids)
    }

    /// One beat: the runtime is seen, and online again if it was not.
    ///
    /// # Errors
    /// [`Refusal::RuntimeNotFound`].
    pub fn heartbeat(&mut self, now: Now, runtime: &RuntimeId) -> Result<(), Refusal> {
        let row = self.runtimes.get_mut(runtime).ok_or(Refusal::RuntimeNotFound)?;
        row.online = true;
        row.last_seen = now;
        Ok(())
    }

    /// Takes runtimes offline; ids that are not there are skipped, tasks stay as they are.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] for an empty list.
    pub fn deregister(&mut self, runtimes: &[RuntimeId]) -> Result<(), Refusal> {
        if runtimes.is_empty() {
            return Err(Refusal::Invalid("runtime_ids is required".into()));
        }
        for id in runtimes {
            if let Some(row) = self.runtimes.get_mut(id) {
                row.online = false;
            }
        }
        Ok(())
    }

    /// Deletes a runtime, as a user can: its open tasks are cancelled. Whether it was there.
    pub fn delete_runtime(&mut self, now: Now, runtime: &RuntimeId) -> bool {
        let tasks: Vec<_> = self.open.of_runtime(runtime).cloned().collect();
        for task in &tasks {
            // It is open, so it is there.
            let _ = self.cancel(now, task);
        }
        self.forget_runtime(runtime)
    }

    /// Drops the row; the next registration gets a new id.
    pub(super) fn forget_runtime(&mut self, runtime: &RuntimeId) -> bool {
        let Some(row) = self.runtimes.remove(runtime) else { return false };
        self.pending.forget(runtime);
        self.runtime_ids.remove(&identity(&row.workspace, &row.daemon_id, &row.provider));
        true
    }

    /// One runtime's row.
    pub fn runtime(&self, id: &RuntimeId) -> Option<&Runtime> {
        self.runtimes.get(id)
    }

    /// Every runtime, in the order of their ids.
    pub fn runtimes(&self) -> impl Iterator<Item = &Runtime> {
        self.runtimes.values()
    }
}

/// What a runtime is the same by. No part holds a NUL that could blur the borders: ids of the wire are no such text.
fn identity(workspace: &WorkspaceId, daemon: &str, provider: &Provider) -> Text {
    format!("{workspace}\0{daemon}\0{provider}").into()
}
