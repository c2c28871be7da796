//! The machine's agent CLIs, and the custom runtimes of each workspace: what a look finds, and what the server says.

use super::fault::Fault;
use super::world::{PROVIDERS, World};
use crate::event::{Probed, Standing, WsEvent};
use crate::id::{Provider, WorkspaceId};
use crate::script::Choose;
use std::collections::BTreeMap;

/// One agent CLI.
#[derive(Clone, Copy, Debug, Default)]
struct Cli {
    version: u64,
    missing: bool,
    /// Too old, or not executable.
    broken: Option<Standing>,
}

/// All of it.
#[derive(Debug, Default)]
pub(super) struct Clis {
    clis: [Cli; PROVIDERS.len()],
    /// Counts the changes of a workspace's custom runtimes; how many there are follows from it.
    custom: BTreeMap<WorkspaceId, u64>,
}

/// How many custom runtimes there are after so many changes.
pub(super) const fn custom_count(signature: u64) -> u16 {
    (signature % 3) as u16
}

impl Clis {
    /// Stands for the custom runtimes of a workspace.
    pub(super) fn custom(&self, workspace: &WorkspaceId) -> u64 {
        self.custom.get(workspace).copied().unwrap_or_default()
    }
}

impl World {
    /// What a look finds; some of it may have changed since the last one.
    pub(super) fn look_at_clis(&mut self) -> Vec<Probed> {
        let mut found = Vec::new();
        for (nth, name) in PROVIDERS.iter().enumerate().take(self.cfg.load.providers.clamp(1, 3) as usize) {
            let mut cli = self.clis.clis[nth];
            if self.hit(Fault::UpdatedCli) {
                cli.version += 1;
            }
            if self.hit(Fault::MissingCli) {
                cli.missing = !cli.missing;
            }
            if self.hit(Fault::BrokenCli) {
                let how = [Standing::TooOld, Standing::NotExecutable][self.chance.below(2) as usize];
                cli.broken = if cli.broken.is_some() { None } else { Some(how) };
            }
            self.clis.clis[nth] = cli;
            let standing = if self.hit(Fault::SlowCli) {
                Standing::Slow
            } else if self.hit(Fault::UnreadableCli) {
                Standing::Unreadable
            } else {
                cli.broken.unwrap_or(Standing::Works { version: cli.version })
            };
            if !cli.missing {
                found.push(Probed { provider: Provider::new(*name), standing });
            }
        }
        found
    }

    /// Somebody makes, changes or deletes custom runtimes of a workspace.
    pub(super) fn change_profiles(&mut self) {
        let count = self.plane.workspaces().count() as u32;
        let nth = self.chance.below(count) as usize;
        let Some(workspace) = self.plane.workspaces().nth(nth).map(|(id, _)| id.clone()) else { return };
        *self.clis.custom.entry(workspace.clone()).or_default() += 1;
        self.frame(WsEvent::ProfilesChanged { workspace });
    }

    /// Everything works again: each agent CLI, and each custom runtime that there ever was, so that what waits for one can be done.
    pub(super) fn mend_clis(&mut self) {
        for cli in &mut self.clis.clis {
            (cli.missing, cli.broken) = (false, None);
        }
        let all: Vec<WorkspaceId> = self.plane.workspaces().map(|(id, _)| id.clone()).collect();
        for workspace in all {
            let custom = self.clis.custom.entry(workspace.clone()).or_default();
            if *custom > 0 {
                // The next one after which there are as many as ever.
                *custom += 3 - (*custom + 1) % 3;
            }
            self.frame(WsEvent::ProfilesChanged { workspace });
        }
    }
}
