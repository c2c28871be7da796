//! Daemons make their runtimes known.

use super::row::Text;
use super::runtime::{OfflineReason, Runtime};
use super::{Plane, Refusal};
use crate::id::{ProfileId, Provider, RuntimeId, WorkspaceId};
use crate::time::Now;

/// The code of the reason why a profile's runtime is offline from the start.
const PROFILE_FAILED: &str = "profile_unusable";

/// What a daemon says of itself and its agent CLIs for one workspace.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Registration {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The machine's identity.
    pub daemon_id: Text,
    /// Earlier identities of the machine; upper and lower case are the same. The built-in runtimes of each are merged into the new ones.
    pub legacy_daemon_ids: Vec<Text>,
    /// The machine's name.
    pub device_name: Text,
    /// The daemon's version.
    pub cli_version: Text,
    /// Who started the daemon.
    pub launched_by: Text,
    /// What the daemon can do.
    pub capabilities: Vec<Text>,
    /// The CLIs; these or the failed profiles must not be empty.
    pub runtimes: Vec<RuntimeEntry>,
    /// Profiles that cannot be used on the machine.
    pub failed_profiles: Vec<FailedProfile>,
}

impl Registration {
    /// A registration that says nothing but who.
    pub fn new(workspace: WorkspaceId, daemon_id: impl Into<Text>) -> Self {
        Self {
            workspace,
            daemon_id: daemon_id.into(),
            legacy_daemon_ids: Vec::new(),
            device_name: Text::default(),
            cli_version: Text::default(),
            launched_by: Text::default(),
            capabilities: Vec::new(),
            runtimes: Vec::new(),
            failed_profiles: Vec::new(),
        }
    }
}

/// One agent CLI in a registration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RuntimeEntry {
    /// Shown name; empty for one made of provider and device.
    pub name: Text,
    /// The family; trimmed and put in lower case, `unknown` if empty. A profile's family overrides it.
    pub provider: Text,
    /// The profile that it is made from.
    pub profile: Option<ProfileId>,
    /// The CLI's version line.
    pub version: Text,
    /// Whether it can take work.
    pub online: bool,
}

/// A profile that a daemon cannot use.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FailedProfile {
    /// The profile.
    pub profile: ProfileId,
    /// Why.
    pub reason: Text,
}

/// An entry whose row is settled.
struct Entry {
    identity: Text,
    provider: Provider,
    name: Text,
    version: Text,
    profile: Option<ProfileId>,
    online: bool,
    failed: Option<Text>,
}

impl Plane {
    /// Takes a daemon's CLIs for one workspace: each gets the row of its workspace, daemon, and provider or profile; a new one if
    /// there was none. A profile that failed gets an offline row that says why. Rows of the machine's earlier identities are merged
    /// into the new ones, other rows are left alone. Gives the ids in the order of the entries, without those of failed profiles.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] without daemon id or entries, or with a profile that the workspace does not have;
    /// [`Refusal::WorkspaceNotFound`], [`Refusal::ProfileDisabled`], [`Refusal::Full`].
    pub fn register(&mut self, now: Now, from: Registration) -> Result<Vec<RuntimeId>, Refusal> {
        let daemon_id: Text = from.daemon_id.trim().into();
        if daemon_id.is_empty() || from.workspace.as_str().is_empty() {
            return Err(Refusal::Invalid("workspace_id and daemon_id are required".into()));
        }
        if from.runtimes.is_empty() && from.failed_profiles.is_empty() {
            return Err(Refusal::Invalid("at least one runtime is required".into()));
        }
        if !self.workspaces.contains_key(&from.workspace) {
            return Err(Refusal::WorkspaceNotFound);
        }
        let entries = self.entries(&from, &daemon_id)?;
        let new = entries.iter().filter(|it| !self.runtime_ids.contains_key(&it.identity)).count();
        if self.runtimes.len() + new > self.limits.runtimes {
            return Err(Refusal::Full("runtimes"));
        }
        let mut ids = Vec::with_capacity(from.runtimes.len());
        for entry in entries {
            let failed = entry.failed.is_some();
            let id = self.upsert(now, &from, &daemon_id, entry);
            if !failed {
                ids.push(id);
            }
        }
        self.merge_legacy(&from, &daemon_id, &ids);
        Ok(ids)
    }

    /// Everything that the registration names, or why it is refused as a whole.
    fn entries(&self, from: &Registration, daemon_id: &Text) -> Result<Vec<Entry>, Refusal> {
        let profile = |id: &ProfileId| {
            let row = self.profiles.get(id).filter(|row| row.workspace == from.workspace);
            row.ok_or_else(|| Refusal::Invalid(format!("unknown runtime profile {id}")))
        };
        let identity = |provider: &Provider, profile: Option<&ProfileId>| {
            identity(&from.workspace, daemon_id, provider, profile)
        };
        let mut out = Vec::with_capacity(from.runtimes.len() + from.failed_profiles.len());
        for entry in &from.runtimes {
            let (provider, display) = match &entry.profile {
                None => (provider(&entry.provider), None),
                Some(id) => {
                    let row = profile(id)?;
                    if !row.spec.enabled {
                        return Err(Refusal::ProfileDisabled(id.clone()));
                    }
                    (provider(row.spec.family.as_str()), Some(&row.spec.display_name))
                }
            };
            let name = match (&*entry.name, display) {
                ("", None) => format!("{provider} ({})", from.device_name).into(),
                ("", Some(display)) => format!("{display} ({})", from.device_name).into(),
                _ => entry.name.clone(),
            };
            out.push(Entry {
                identity: identity(&provider, entry.profile.as_ref()),
                provider,
                name,
                version: entry.version.clone(),
                profile: entry.profile.clone(),
                online: entry.online,
                failed: None,
            });
        }
        for failed in &from.failed_profiles {
            let row = profile(&failed.profile)?;
            let provider = provider(row.spec.family.as_str());
            out.push(Entry {
                identity: identity(&provider, Some(&failed.profile)),
                provider,
                name: format!("{} ({})", row.spec.display_name, from.device_name).into(),
                version: Text::default(),
                profile: Some(failed.profile.clone()),
                online: false,
                failed: Some(failed.reason.clone()),
            });
        }
        Ok(out)
    }

    fn upsert(&mut self, now: Now, from: &Registration, daemon_id: &Text, entry: Entry) -> RuntimeId {
        let known = self.runtime_ids.get(&entry.identity).and_then(|id| self.runtimes.get(id));
        let (id, created_at) = match known {
            Some(row) => (row.id.clone(), row.created_at),
            None => (RuntimeId::new(self.ids.fresh()), now),
        };
        let row = Runtime {
            id: id.clone(),
            workspace: from.workspace.clone(),
            daemon_id: daemon_id.clone(),
            provider: entry.provider,
            profile: entry.profile,
            name: entry.name,
            version: entry.version,
            device_name: from.device_name.clone(),
            cli_version: from.cli_version.clone(),
            launched_by: from.launched_by.clone(),
            capabilities: from.capabilities.clone(),
            online: entry.online,
            offline_reason: entry.failed.map(|detail| OfflineReason {
                code: PROFILE_FAILED.into(),
                detail,
                repair: None,
            }),
            last_seen: now,
            created_at,
            updated_at: now,
        };
        self.runtimes.insert(id.clone(), row);
        self.runtime_ids.insert(entry.identity, id.clone());
        id
    }

    /// Moves the tasks of the machine's earlier identities to the built-in runtimes `ids` and drops the old rows.
    fn merge_legacy(&mut self, from: &Registration, daemon_id: &Text, ids: &[RuntimeId]) {
        let earlier = |given: &Text| {
            given != daemon_id
                && from.legacy_daemon_ids.iter().any(|id| id.trim().eq_ignore_ascii_case(given))
        };
        for new in ids {
            let Some(row) = self.runtimes.get(new).filter(|row| row.profile.is_none()) else { continue };
            let provider = row.provider.clone();
            let merged: Vec<_> = self
                .runtimes
                .values()
                .filter(|old| old.workspace == from.workspace && old.provider == provider)
                .filter(|old| old.profile.is_none() && old.id != *new && earlier(&old.daemon_id))
                .map(|old| old.id.clone())
                .collect();
            for old in &merged {
                let tasks: Vec<_> =
                    self.tasks.values().filter(|it| it.runtime == *old).map(|it| it.id.clone()).collect();
                for id in &tasks {
                    let Some(task) = self.tasks.get_mut(id) else { continue };
                    self.open.remove(task);
                    task.runtime = new.clone();
                    if !task.state.is_terminal() {
                        self.open.insert(task);
                    }
                }
                self.forget_runtime(old);
            }
        }
    }
}

fn provider(given: &str) -> Provider {
    match given.trim() {
        "" => Provider::from("unknown"),
        given => Provider::new(given.to_lowercase()),
    }
}

/// What a runtime is the same by. No part holds a NUL that could blur the borders: ids of the wire are no such text.
pub(super) fn identity(
    workspace: &WorkspaceId,
    daemon: &str,
    provider: &Provider,
    profile: Option<&ProfileId>,
) -> Text {
    match profile {
        None => format!("{workspace}\0{daemon}\0{provider}").into(),
        // A profile may be given another family: the runtime stays the same.
        Some(profile) => format!("{workspace}\0{daemon}\0\0{profile}").into(),
    }
}
