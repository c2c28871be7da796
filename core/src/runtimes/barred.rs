//! What had to wait while the server refused the credential, and is done once it takes it again.

use super::register::BASE;
use super::{Change, Runtime, Runtimes};
use crate::env::Cx;
use crate::id::{RuntimeId, WorkspaceId};
use crate::timer::TimerKey;

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
            self.hurry(cx, workspace);
        }
        self.pump_all(cx, &mut changes);
        let barred = |(id, runtime): (&RuntimeId, &mut Runtime)| {
            std::mem::take(&mut runtime.barred).then(|| id.clone())
        };
        (self.runtimes.iter_mut().filter_map(barred).collect(), changes)
    }

    /// A registration that was refused for want of a credential does not wait out what that has grown to: only the least wait after the last try.
    fn hurry(&self, cx: &mut Cx<'_>, workspace: &WorkspaceId) {
        let key = TimerKey::Register(workspace.clone());
        let Some(ws) = self.workspaces.get(workspace).filter(|ws| ws.failures.any()) else { return };
        let least = BASE.min(cx.timing().register_retry);
        let due = ws.sent.map_or(cx.now.mono, |sent| sent.after(least));
        if cx.env.timers.at(&key).is_some_and(|at| at > due) {
            if due > cx.now.mono { cx.arm_at(key, due) } else { cx.disarm(&key) }
        }
    }
}
