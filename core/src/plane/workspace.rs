//! Workspaces: their names, their repositories, their settings.

use super::row::Text;
use super::{Hint, Plane, Refusal};
use crate::id::{RuntimeId, WorkspaceId};
use crate::time::Now;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// One workspace's row.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Workspace {
    /// Shown name.
    pub name: Text,
    /// Repositories that its tasks may check out, no two with the same address.
    #[serde(default)]
    pub repos: Vec<Repo>,
    /// Its settings: a JSON object as text; `{}` until somebody sets one.
    #[serde(default = "no_settings")]
    pub settings: Text,
}

/// A repository of a workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Repo {
    /// Where from.
    pub url: Text,
    /// What it is; empty for nothing said.
    #[serde(default)]
    pub description: Text,
}

fn no_settings() -> Text {
    "{}".into()
}

impl Plane {
    /// Adds a workspace, or renames it.
    ///
    /// # Errors
    /// [`Refusal::Full`] at the bound.
    pub fn add_workspace(&mut self, id: WorkspaceId, name: &str) -> Result<(), Refusal> {
        match self.workspaces.get(&id) {
            Some(row) if &*row.name == name => return Ok(()),
            Some(_) => {
                if let Some(row) = self.workspaces.get_mut(&id) {
                    row.name = name.into();
                }
            }
            None if self.workspaces.len() >= self.limits.workspaces => {
                return Err(Refusal::Full("workspaces"));
            }
            None => {
                let row = Workspace { name: name.into(), repos: Vec::new(), settings: no_settings() };
                self.workspaces.insert(id, row);
            }
        }
        self.hint(Hint::WorkspacesChanged);
        Ok(())
    }

    /// Removes a workspace with its profiles, its runtimes, and with them their open tasks. Whether it was there.
    pub fn remove_workspace(&mut self, now: Now, id: &WorkspaceId) -> bool {
        let theirs: Vec<RuntimeId> =
            self.runtimes.values().filter(|row| row.workspace == *id).map(|row| row.id.clone()).collect();
        for runtime in &theirs {
            self.delete_runtime(now, runtime);
        }
        let profiles: Vec<_> = self.profiles(id).map(|row| row.id.clone()).collect();
        for profile in &profiles {
            self.profiles.remove(profile);
        }
        let was = self.workspaces.remove(id).is_some();
        if was {
            self.hint(Hint::WorkspacesChanged);
        }
        was
    }

    /// The workspaces with their names, in the order of their ids.
    pub fn workspaces(&self) -> impl Iterator<Item = (&WorkspaceId, &str)> {
        self.workspaces.iter().map(|(id, row)| (id, &*row.name))
    }

    /// One workspace's row.
    pub fn workspace(&self, id: &WorkspaceId) -> Option<&Workspace> {
        self.workspaces.get(id)
    }

    /// Sets the repositories of a workspace: addresses are trimmed, empty ones and those that came before are left out.
    ///
    /// # Errors
    /// [`Refusal::WorkspaceNotFound`]; [`Refusal::Full`] for more than the bound.
    pub fn set_repos(&mut self, id: &WorkspaceId, repos: Vec<Repo>) -> Result<(), Refusal> {
        let mut seen = BTreeSet::new();
        let mut kept = Vec::new();
        for repo in repos {
            let url: Text = repo.url.trim().into();
            if !url.is_empty() && seen.insert(url.clone()) {
                kept.push(Repo { url, ..repo });
            }
        }
        if kept.len() > self.limits.repos {
            return Err(Refusal::Full("repositories"));
        }
        self.workspaces.get_mut(id).ok_or(Refusal::WorkspaceNotFound)?.repos = kept;
        Ok(())
    }

    /// Sets the settings of a workspace: a JSON object as text.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] for a text that is no JSON object; [`Refusal::WorkspaceNotFound`].
    pub fn set_settings(&mut self, id: &WorkspaceId, settings: &str) -> Result<(), Refusal> {
        let object = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(settings)
            .map_err(|why| Refusal::Invalid(format!("settings must be a JSON object: {why}")))?;
        let text = serde_json::Value::Object(object).to_string();
        self.workspaces.get_mut(id).ok_or(Refusal::WorkspaceNotFound)?.settings = text.into();
        Ok(())
    }
}
