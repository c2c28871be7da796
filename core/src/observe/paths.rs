//! The user's own directories: one task in each, a line that is strictly first come, first served, and slots for those that have one before
//! any claim. No more tasks are parked than there are slots.

use super::claims::ClaimBook;
use super::ops::{Closed, End, What};
use super::tasks::TaskBook;
use super::{At, Found};
use crate::config::Config;
use crate::daemon::View;
use crate::effect::{ApiCall, Effect, Fact, FsCall, PhaseName};
use crate::event::{ClaimKey, FsReply};
use crate::id::PathKey;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default)]
struct Directory {
    holder: Option<ClaimKey>,
    line: Vec<ClaimKey>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct PathBook {
    /// Which directory a claim is about, from the answer that says so to its end.
    of: BTreeMap<ClaimKey, PathKey>,
    directories: BTreeMap<PathKey, Directory>,
    /// Who has a directory and no slot, in the order in which they got it.
    ready: Vec<ClaimKey>,
    /// Of whom the server was told that they wait.
    told: BTreeSet<ClaimKey>,
}

impl PathBook {
    pub(super) fn closed(&mut self, closed: &Closed<'_>) {
        if let (What::Fs(FsCall::Resolve { claim }), End::Fs(Ok(FsReply::Resolved { path }))) =
            (&closed.what, closed.end)
        {
            self.of.insert(*claim, path.clone());
        }
    }

    pub(super) fn effect(
        &mut self,
        at: &At<'_>,
        cfg: &Config,
        effect: &Effect,
        claims: &ClaimBook,
        tasks: &TaskBook,
        found: &mut Found,
    ) {
        match effect {
            Effect::Fs { call: FsCall::Prepare { claim, .. }, .. } => self.inside(*claim, tasks, found),
            Effect::Api { call, .. } => match call {
                ApiCall::Start(call) => self.inside(call.claim(), tasks, found),
                ApiCall::WaitDirectory { claim, .. } => {
                    let once = self.is_in_line(*claim) && self.told.insert(*claim);
                    found.require(once, "LDR-2", || {
                        format!("claim {} is said to wait twice, or does not wait", claim.0)
                    });
                }
                ApiCall::Claim(_) | ApiCall::ClaimOver { .. } | ApiCall::ClaimOne(_) => {
                    let may_park = tasks.may_park() + claims.held();
                    found.require(may_park <= usize::from(cfg.slots), "PARK-BOUND", || {
                        format!("{may_park} tasks could come to be parked, and there are {} slots", cfg.slots)
                    });
                    let waits = self.ready.iter().find(|ready| Self::has_room(cfg, claims, tasks, **ready));
                    found.require(waits.is_none(), "UNPARK-FIRST", || {
                        format!("tasks are asked for while {waits:?} has its directory and no slot")
                    });
                }
                _ => {}
            },
            Effect::Fact { fact } => self.fact(at, cfg, fact, claims, tasks, found),
            _ => {}
        }
    }

    fn has_room(cfg: &Config, claims: &ClaimBook, tasks: &TaskBook, claim: ClaimKey) -> bool {
        tasks.provider(claim).is_none_or(|provider| claims.has_room(cfg, provider, tasks))
    }

    /// INV-89: what works in a directory of the user has it.
    fn inside(&self, claim: ClaimKey, tasks: &TaskBook, found: &mut Found) {
        let has = self.directory(claim).is_some_and(|directory| directory.holder == Some(claim));
        found.require(has || !tasks.is_in_place(claim), "INV-89", || {
            format!("claim {} works in a directory of the user that it does not have", claim.0)
        });
    }

    fn directory(&self, claim: ClaimKey) -> Option<&Directory> {
        self.directories.get(self.of.get(&claim)?)
    }

    fn is_in_line(&self, claim: ClaimKey) -> bool {
        self.directory(claim).is_some_and(|directory| directory.line.contains(&claim))
    }

    fn fact(
        &mut self,
        at: &At<'_>,
        cfg: &Config,
        fact: &Fact,
        claims: &ClaimBook,
        tasks: &TaskBook,
        found: &mut Found,
    ) {
        match fact {
            Fact::Parked { claim, holder } => {
                let exempt = !tasks.is_in_place(*claim);
                found.require(!exempt, "INV-91", || {
                    format!("claim {} waits for a directory that it does not need alone", claim.0)
                });
                let Some(path) = self.of.get(claim) else { return };
                let directory = self.directories.entry(path.clone()).or_default();
                found.require(directory.holder == Some(*holder) && holder != claim, "INV-90", || {
                    format!("claim {} waits for claim {}, which does not have {path}", claim.0, holder.0)
                });
                directory.line.push(*claim);
            }
            Fact::Phase { claim, phase: PhaseName::AwaitingSlot } => {
                let directory = self.of.get(claim).and_then(|path| self.directories.get_mut(path));
                let first = directory.as_ref().and_then(|directory| directory.line.first());
                found.require(first == Some(claim), "PATH-FIFO", || {
                    format!("claim {} gets a directory out of turn, before {first:?}", claim.0)
                });
                let Some(directory) = directory else { return };
                found.require(directory.holder.is_none(), "INV-92", || {
                    format!("claim {} gets a directory that {:?} has not left", claim.0, directory.holder)
                });
                directory.line.retain(|waiting| waiting != claim);
                directory.holder = Some(*claim);
                self.ready.push(*claim);
            }
            Fact::Phase { claim, phase: PhaseName::AwaitingRoot } => {
                let Some(path) = self.of.get(claim) else { return };
                let directory = self.directories.entry(path.clone()).or_default();
                let free = directory.holder.is_none() && directory.line.is_empty();
                found.require(free || directory.holder == Some(*claim), "INV-90", || {
                    format!("claim {} works in {path} beside {:?}", claim.0, directory.holder)
                });
                directory.holder = Some(*claim);
            }
            Fact::Unparked { claim, .. } => {
                let first = self.ready.iter().find(|ready| Self::has_room(cfg, claims, tasks, **ready));
                found.require(first == Some(claim), "UNPARK-ORDER", || {
                    format!("claim {} gets a slot, and it is the turn of {first:?}", claim.0)
                });
                self.ready.retain(|ready| ready != claim);
            }
            Fact::Phase { claim, phase: PhaseName::Reporting } if tasks.is_untouched(*claim) => {
                self.leave(*claim);
            }
            Fact::Released { claim, .. } => self.leave(*claim),
            _ => {}
        }
    }

    fn leave(&mut self, claim: ClaimKey) {
        self.told.remove(&claim);
        self.ready.retain(|ready| *ready != claim);
        let Some(path) = self.of.remove(&claim) else { return };
        let Some(directory) = self.directories.get_mut(&path) else { return };
        directory.line.retain(|waiting| *waiting != claim);
        directory.holder = directory.holder.filter(|holder| *holder != claim);
    }

    pub(super) fn settle(
        &mut self,
        cfg: &Config,
        view: View<'_>,
        claims: &ClaimBook,
        tasks: &TaskBook,
        found: &mut Found,
    ) {
        let mut parked = self.ready.len();
        for (path, directory) in &self.directories {
            parked += directory.line.len();
            found.require(directory.holder.is_some() || directory.line.is_empty(), "PATH-GRANT", || {
                format!("nobody has {path}, and {:?} wait for it", directory.line)
            });
            for claim in &directory.line {
                found.require(self.told.contains(claim), "LDR-2", || {
                    format!("the server was never told that claim {} waits", claim.0)
                });
            }
        }
        self.directories.retain(|_, directory| directory.holder.is_some() || !directory.line.is_empty());
        found.require(view.path_locks() == self.directories.len(), "PATH-LEFT", || {
            format!("{} directories are locked, {} should be", view.path_locks(), self.directories.len())
        });
        found.require(
            view.parked_tasks() == parked && parked <= usize::from(cfg.slots),
            "PARK-BOUND",
            || format!("{} tasks are parked, {parked} should be", view.parked_tasks()),
        );
        let waits = self.ready.iter().find(|ready| Self::has_room(cfg, claims, tasks, **ready));
        found.require(waits.is_none() || view.free_slots() == 0, "UNPARK-FIRST", || {
            format!("{waits:?} has its directory, and does not get the slot that is free")
        });
    }
}
