//! What is known of each workspace beside its runtimes: the custom runtimes that it defines, and its repositories.

use super::profiles::{Profile, ProfileSet};
use crate::wire::register::Repos;
use longshore_core::id::{ProfileId, WorkspaceId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// All workspaces.
#[derive(Debug, Default)]
pub(super) struct Served(BTreeMap<WorkspaceId, Known>);

#[derive(Debug, Default)]
struct Known {
    /// As they are, and as they were: the core may ask for a registration of the one before it hears of the other.
    profiles: Option<Arc<ProfileSet>>,
    before: Option<Arc<ProfileSet>>,
    repos: Arc<Repos>,
}

impl Served {
    /// Keeps what was learned of the custom runtimes. Returns whether it is news.
    pub(super) fn set_profiles(&mut self, workspace: &WorkspaceId, set: Arc<ProfileSet>) -> bool {
        let known = self.0.entry(workspace.clone()).or_default();
        let is_news = known.profiles.as_ref().is_none_or(|now| now.signature != set.signature);
        if is_news {
            known.before = known.profiles.take();
        }
        known.profiles = Some(set);
        is_news
    }

    /// The custom runtimes that this signature stands for.
    pub(super) fn profiles(&self, workspace: &WorkspaceId, signature: u64) -> Option<Arc<ProfileSet>> {
        let known = self.0.get(workspace)?;
        let sets = known.profiles.iter().chain(&known.before);
        sets.into_iter().find(|set| set.signature == signature).cloned()
    }

    /// A custom runtime as it is now; `None` if there is none any more.
    pub(super) fn profile(&self, workspace: &WorkspaceId, id: &ProfileId) -> Option<Arc<Profile>> {
        self.0.get(workspace)?.profiles.as_ref()?.all.iter().find(|profile| profile.id == *id).cloned()
    }

    /// Whether one of its custom runtimes can be used here; `None` if nobody has told of them.
    pub(super) fn has_usable(&self, workspace: &WorkspaceId) -> Option<bool> {
        let set = self.0.get(workspace)?.profiles.as_ref()?;
        Some(set.all.iter().any(|profile| profile.here.is_ok()))
    }

    /// Keeps what a registration, or a look at them, said of the repositories.
    pub(super) fn set_repos(&mut self, workspace: &WorkspaceId, repos: Repos) {
        self.0.entry(workspace.clone()).or_default().repos = Arc::new(repos);
    }

    /// The repositories as they were last named; none where the workspace is not known.
    pub(super) fn repos(&self, workspace: &WorkspaceId) -> Arc<Repos> {
        self.0.get(workspace).map(|known| known.repos.clone()).unwrap_or_default()
    }

    /// Forgets all but these.
    pub(super) fn retain(&mut self, workspaces: &BTreeSet<WorkspaceId>) {
        self.0.retain(|workspace, _| workspaces.contains(workspace));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(signature: u64) -> Arc<ProfileSet> {
        Arc::new(ProfileSet { signature, all: Vec::new() })
    }

    #[test]
    fn a_registration_finds_the_set_that_the_core_knows_when_there_is_a_newer_one() {
        let (mut served, workspace) = (Served::default(), WorkspaceId::new("w"));
        let found = |served: &Served, signature| served.profiles(&workspace, signature).is_some();
        assert!(served.set_profiles(&workspace, set(1)) && !served.set_profiles(&workspace, set(1)));
        assert!(served.set_profiles(&workspace, set(2)));
        assert!(found(&served, 1) && found(&served, 2) && !found(&served, 3));
        assert!(served.set_profiles(&workspace, set(3)));
        assert!(!found(&served, 1) && found(&served, 2) && found(&served, 3));
        served.retain(&BTreeSet::new());
        assert!(!found(&served, 3));
    }
}
