//! Custom runtimes that a workspace defines: an agent CLI family with a command and arguments of its own.

use super::row::Text;
use super::{Hint, Plane, Refusal};
use crate::id::{ProfileId, Provider, WorkspaceId};
use crate::time::Now;
use serde::{Deserialize, Serialize};

/// What a user says of a profile.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProfileSpec {
    /// Base of its runtimes' names.
    pub display_name: Text,
    /// The family that it is driven as; decides the provider of its runtimes.
    pub family: Provider,
    /// The executable to be found on the path: one word.
    pub command: Text,
    /// What it is for.
    pub description: Option<Text>,
    /// Arguments before all others.
    pub fixed_args: Vec<Text>,
    /// Who sees it; informational.
    pub visibility: Text,
    /// Whether daemons are to register it.
    pub enabled: bool,
}

impl ProfileSpec {
    /// An enabled profile of `family` that runs `command`, without arguments.
    pub fn new(display_name: &str, family: &str, command: &str) -> Self {
        Self {
            display_name: display_name.into(),
            family: Provider::from(family),
            command: command.into(),
            description: None,
            fixed_args: Vec::new(),
            visibility: "workspace".into(),
            enabled: true,
        }
    }

    fn check(&self) -> Result<(), Refusal> {
        if self.family.as_str().trim().is_empty() {
            return Err(Refusal::Invalid("a runtime profile needs a protocol_family".into()));
        }
        if self.command.is_empty() || self.command.contains(char::is_whitespace) {
            return Err(Refusal::Invalid("command_name must be one word: arguments go to fixed_args".into()));
        }
        Ok(())
    }
}

/// One profile's row.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Profile {
    /// Its id.
    pub id: ProfileId,
    /// The workspace that defines it.
    pub workspace: WorkspaceId,
    /// What was said of it.
    pub spec: ProfileSpec,
    /// When it was made.
    pub created_at: Now,
    /// When it was changed last.
    pub updated_at: Now,
}

impl Plane {
    /// Adds a profile and hints the daemons of its workspace.
    ///
    /// # Errors
    /// [`Refusal::WorkspaceNotFound`]; [`Refusal::Invalid`] without family or for a command that is not one word;
    /// [`Refusal::Full`].
    pub fn add_profile(
        &mut self,
        now: Now,
        workspace: &WorkspaceId,
        spec: ProfileSpec,
    ) -> Result<ProfileId, Refusal> {
        if !self.workspaces.contains_key(workspace) {
            return Err(Refusal::WorkspaceNotFound);
        }
        spec.check()?;
        if self.profiles.len() >= self.limits.profiles {
            return Err(Refusal::Full("runtime profiles"));
        }
        let id = ProfileId::new(self.ids.fresh());
        let workspace = workspace.clone();
        let row = Profile { id: id.clone(), workspace, spec, created_at: now, updated_at: now };
        self.profile_changed(&row);
        self.profiles.insert(id.clone(), row);
        Ok(id)
    }

    /// Changes a profile and hints the daemons of its workspace. Runtimes that are registered for it stay.
    ///
    /// # Errors
    /// [`Refusal::ProfileNotFound`]; [`Refusal::Invalid`] as for a new one.
    pub fn change_profile(&mut self, now: Now, id: &ProfileId, spec: ProfileSpec) -> Result<(), Refusal> {
        spec.check()?;
        let row = self.profiles.get_mut(id).ok_or(Refusal::ProfileNotFound)?;
        row.spec = spec;
        row.updated_at = now;
        let row = row.clone();
        self.profile_changed(&row);
        Ok(())
    }

    /// Removes a profile with its runtimes, and with them their open tasks. Whether it was there.
    pub fn remove_profile(&mut self, now: Now, id: &ProfileId) -> bool {
        let Some(row) = self.profiles.remove(id) else { return false };
        let theirs: Vec<_> = self
            .runtimes
            .values()
            .filter(|runtime| runtime.profile.as_ref() == Some(id))
            .map(|runtime| runtime.id.clone())
            .collect();
        for runtime in &theirs {
            self.delete_runtime(now, runtime);
        }
        self.profile_changed(&row);
        true
    }

    /// The profiles of a workspace, those that are not enabled included, in the order of their ids.
    pub fn profiles(&self, workspace: &WorkspaceId) -> impl Iterator<Item = &Profile> {
        self.profiles.values().filter(move |row| row.workspace == *workspace)
    }

    /// One profile's row.
    pub fn profile(&self, id: &ProfileId) -> Option<&Profile> {
        self.profiles.get(id)
    }

    fn profile_changed(&mut self, row: &Profile) {
        self.hint(Hint::ProfilesChanged { workspace: row.workspace.clone(), profile: row.id.clone() });
    }
}
