//! The disk: which directories there are, and what work on them comes to.

use super::fault::Fault;
use super::queue::What;
use super::world::{About, Open, World};
use crate::effect::FsCall;
use crate::error::FsError;
use crate::event::{Collect, Event, Found, FsReply};
use crate::id::{EnvRoot, OpId, PathKey};
use crate::reason::FailReason;
use crate::script::Choose;
use std::collections::BTreeSet;

/// Directories that users have, for tasks that work in one.
const USER_DIRECTORIES: u32 = 2;

#[derive(Debug, Default)]
pub(super) struct Disk {
    roots: BTreeSet<EnvRoot>,
    /// Those that are being freed.
    pub(super) collecting: BTreeSet<EnvRoot>,
}

impl World {
    pub(super) fn work(&mut self, op: OpId, call: FsCall) {
        let about = match &call {
            FsCall::Prepare { claim, .. } => About::Prepare(*claim),
            FsCall::Collect(_) => About::Collect,
            _ => About::OtherFs,
        };
        self.open.insert(op, Open { about, unsent: false, cancelled: false });
        let mut wait = self.below(30);
        let r = match call {
            FsCall::Prepare { claim, root, .. } => {
                wait += self.below(400);
                if self.hit(Fault::SlowDisk) {
                    wait += self.below(7 * 60_000);
                }
                let prior = self.claims.get(&claim).and_then(|claim| claim.offer.prior.clone());
                let prior = prior.filter(|prior| self.disk.roots.contains(prior));
                self.prepare(prior.unwrap_or(root))
            }
            FsCall::Resolve { claim } => self.resolve(claim),
            FsCall::Probe { .. } => Ok(FsReply::Probed { agents: Vec::new() }),
            FsCall::Scan => Ok(FsReply::Scanned { found: self.found() }),
            FsCall::Collect(call) => {
                self.collect(call.root(), call.what());
                wait += self.below(4_000);
                Ok(FsReply::Done)
            }
            FsCall::Maintain | FsCall::Act { .. } => {
                wait += self.below(60_000);
                Ok(FsReply::Done)
            }
            FsCall::Unwind { .. } | FsCall::Seal { .. } if self.hit(Fault::DiskError) => {
                Err(FsError::Failed { reason: FailReason::Unknown })
            }
            FsCall::Unwind { .. } | FsCall::Seal { .. } => Ok(FsReply::Done),
        };
        let event = Event::Fs { op, r };
        self.queue.push(self.now + wait, What::Done { life: self.lives, op, event });
    }

    fn prepare(&mut self, root: EnvRoot) -> Result<FsReply, FsError> {
        if self.hit(Fault::DiskFull) {
            return Err(FsError::Failed { reason: FailReason::Unknown });
        }
        self.disk.roots.insert(root.clone());
        if self.hit(Fault::PartialPrepare) {
            return Err(FsError::Failed { reason: FailReason::SkillBundleUnavailable });
        }
        Ok(FsReply::Prepared { root })
    }

    fn resolve(&mut self, claim: crate::event::ClaimKey) -> Result<FsReply, FsError> {
        if self.hit(Fault::DiskError) {
            return Err(FsError::Failed { reason: FailReason::LocalDirectoryError });
        }
        let path = PathKey::new(format!("dir-{}", self.chance.below(USER_DIRECTORIES)));
        if let Some(claim) = self.claims.get_mut(&claim) {
            claim.path = Some(path.clone());
        }
        Ok(FsReply::Resolved { path })
    }

    fn found(&mut self) -> Vec<Found> {
        let roots: Vec<_> = self.disk.roots.iter().cloned().collect();
        let guess = |world: &mut Self| {
            [None, Some(Collect::Artifacts), Some(Collect::All)][world.chance.below(3) as usize]
        };
        roots.into_iter().map(|root| Found { root, what: guess(self) }).collect()
    }

    /// A directory is freed: nobody may be at work in it.
    fn collect(&mut self, root: &EnvRoot, what: Collect) {
        let user = self.agents.iter().find(|agent| {
            agent.alive && self.claims.get(&agent.claim).is_some_and(|claim| claim.offer.root == *root)
        });
        let user = user.map(|agent| agent.claim.0);
        self.require(user.is_none(), "COLLECT", || {
            format!("{root} is freed while the agent of claim {user:?} works in it")
        });
        self.disk.collecting.insert(root.clone());
        if what == Collect::All {
            self.disk.roots.remove(root);
        }
    }

    pub(super) fn fs_done(&mut self, about: About, _reply: &FsReply) {
        if about == About::Collect && !self.open.values().any(|open| open.about == About::Collect) {
            self.disk.collecting.clear();
        }
    }

    /// Somebody removes a directory that the daemon made.
    pub(super) fn vanish(&mut self) {
        let count = self.disk.roots.len() as u32;
        let nth = self.chance.below(count) as usize;
        if let Some(root) = self.disk.roots.iter().nth(nth).cloned() {
            self.disk.roots.remove(&root);
        }
    }
}
