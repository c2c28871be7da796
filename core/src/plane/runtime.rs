//! Runtimes: registered, kept alive by beats, offline when silent.

use super::registration::identity;
use super::row::Text;
use super::{Plane, Refusal, limits};
use crate::id::{ProfileId, Provider, RuntimeId, WorkspaceId};
use crate::time::Now;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Why a runtime cannot be used, in its daemon's words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct OfflineReason {
    /// The kind, such as `not_executable`.
    pub code: Text,
    /// More about it; may be empty.
    pub detail: Text,
    /// What mends it.
    pub repair: Option<Repair>,
}

impl fmt::Display for OfflineReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.code)?;
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        if let Some(repair) = self.repair.as_ref().filter(|repair| !repair.command.is_empty()) {
            write!(f, " (to mend it: {})", repair.command)?;
        }
        Ok(())
    }
}

/// What mends a runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Repair {
    /// The package that holds the CLI.
    pub package: Text,
    /// A command for a person.
    pub command: Text,
    /// The shell that it is for.
    pub shell: Text,
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
    /// The profile that it is made from; none for a built-in one.
    #[serde(default)]
    pub profile: Option<ProfileId>,
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
    /// Why its daemon took it offline, until it is registered again.
    #[serde(default)]
    pub offline_reason: Option<OfflineReason>,
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

    /// What it is the same by.
    pub(super) fn identity(&self) -> Text {
        identity(&self.workspace, &self.daemon_id, &self.provider, self.profile.as_ref())
    }
}

impl Plane {
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
        self.deregister_because(runtimes, &mut BTreeMap::new())
    }

    /// The same with reasons why some of them cannot be used: no task is taken for those until they are registered or beat again.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] for an empty list.
    pub fn deregister_because(
        &mut self,
        runtimes: &[RuntimeId],
        reasons: &mut BTreeMap<RuntimeId, OfflineReason>,
    ) -> Result<(), Refusal> {
        if runtimes.is_empty() {
            return Err(Refusal::Invalid("runtime_ids is required".into()));
        }
        for id in runtimes {
            if let Some(row) = self.runtimes.get_mut(id) {
                row.online = false;
                row.offline_reason = reasons.remove(id);
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
        self.runtime_ids.remove(&row.identity());
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
