//! Agent CLIs that cannot be used any more: found so twice, some time apart, and taken off line everywhere while nothing is about. One that is held back
//! comes back only once a look that began later has found that it works.

use super::{Change, Runtimes};
use crate::effect::Fact;
use crate::env::Cx;
use crate::event::Standing;
use crate::id::{Provider, RuntimeId, WorkspaceId};
use crate::time::Instant;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Hash, Serialize, Deserialize)]
struct Hold {
    /// How many looks had begun by then.
    look: u64,
    /// Whether the system refuses to run it; else it is too old.
    broken: bool,
}

/// What is held back, and what may come to be.
#[derive(Debug, Default, Hash, Serialize, Deserialize)]
pub(super) struct Holds {
    held: BTreeMap<Provider, Hold>,
    /// Since when each of these was found unfit, with no look in between that found it fit or gone.
    unfit: BTreeMap<Provider, Instant>,
}

impl Holds {
    pub(super) fn has(&self, provider: &Provider) -> bool {
        self.held.contains_key(provider)
    }

    /// The agent CLI itself if it is held back because the system refuses to run it.
    pub(super) fn broken(&self, provider: &Provider) -> Option<Provider> {
        self.held.get(provider).filter(|hold| hold.broken).map(|_| provider.clone())
    }
}

const fn is_unfit(standing: Standing) -> bool {
    matches!(standing, Standing::TooOld | Standing::NotExecutable)
}

impl Runtimes {
    /// Takes note of what a look found: what works again is let go, and what is unfit is suspect from now on.
    pub(super) fn note_standings(&mut self, cx: &mut Cx<'_>) {
        let Self { looks, holds, .. } = self;
        let works = |of: &Provider| matches!(looks.seen.get(of), Some(Standing::Works { .. }));
        holds.held.retain(|of, hold| {
            let free = works(of) && looks.begun > hold.look;
            if free {
                cx.fact(Fact::Freed { provider: of.clone() });
            }
            !free
        });
        // One that is slow or unreadable now is neither fit nor gone.
        holds.unfit.retain(|of, _| looks.seen.contains_key(of) && !works(of));
        for (of, _) in looks.seen.iter().filter(|(_, standing)| is_unfit(**standing)) {
            holds.unfit.entry(of.clone()).or_insert(cx.now.mono);
        }
    }

    /// Whether something is to be taken off line as soon as nothing is about.
    pub(crate) fn any_to_hold(&self, cx: &Cx<'_>) -> bool {
        self.to_hold(cx).next().is_some()
    }

    fn to_hold<'a>(&'a self, cx: &Cx<'_>) -> impl Iterator<Item = (&'a Provider, bool)> {
        let (now, confirm) = (cx.now.mono, cx.timing().demote_confirm);
        self.looks.seen.iter().filter_map(move |(of, standing)| {
            let since = self.holds.unfit.get(of)?;
            let confirmed = is_unfit(*standing) && now >= since.after(confirm) && !self.holds.has(of);
            let hosted = || self.runtimes.values().any(|r| r.profile.is_none() && r.provider == *of);
            (confirmed && hosted()).then_some((of, *standing == Standing::NotExecutable))
        })
    }

    /// Takes what is unfit off line everywhere, and holds it back. Called only while nothing is about, by who has the gate.
    pub(crate) fn hold(&mut self, cx: &mut Cx<'_>) -> Vec<Change> {
        let mut changes = Vec::new();
        let unfit: Vec<(Provider, bool)> =
            self.to_hold(cx).map(|(of, broken)| (of.clone(), broken)).collect();
        for (provider, broken) in unfit {
            let own = self.runtimes.iter().filter(|(_, r)| r.profile.is_none() && r.provider == provider);
            let own: Vec<(RuntimeId, WorkspaceId)> =
                own.map(|(id, r)| (id.clone(), r.workspace.clone())).collect();
            self.holds.held.insert(provider.clone(), Hold { look: self.looks.begun, broken });
            cx.fact(Fact::Held { provider: provider.clone() });
            for (id, workspace) in own {
                self.remove(cx, &id, &mut changes);
                self.owe(&workspace, id, broken.then(|| provider.clone()));
            }
        }
        let all: Vec<WorkspaceId> = self.workspaces.keys().cloned().collect();
        for workspace in all {
            self.take_owed_off_line(cx, &workspace);
        }
        changes
    }
}
