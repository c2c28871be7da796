//! What had to wait while the server refused the credential, and is done once it takes it again.

use super::{Change, Runtime, Runtimes};
use crate::env::Cx;
use crate::id::{RuntimeId, WorkspaceId};

impl Runtimes {
    /// The server takes the credential again, which the list may have told. Returns the runtimes whose leftovers are to be failed now.
    pub(crate) fn unbarred(&mut self, cx: &mut Cx<'_>, listed: bool) -> (Vec<RuntimeId>, Vec<Change>) {
        let mut changes = Vec::new();
        if self.closed {
            return (Vec::new(), changes);
        }
        if self.renewal_owed {
            self.renew(cx);
        }
        if !listed {
            // One on its way may still be refused.
            self.sync(cx);
        }
        let all: Vec<WorkspaceId> = self.workspaces.keys().cloned().collect();
        for workspace in &all {
            self.ask_for_profiles(cx, workspace);
        }
        self.pump_all(cx, &mut changes);
        let barred = |(id, runtime): (&RuntimeId, &mut Runtime)| {
            std::mem::take(&mut runtime.barred).then(|| id.clone())
        };
        (self.runtimes.iter_mut().filter_map(barred).collect(), changes)
    }
}
