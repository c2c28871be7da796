//! The user's own directories: one task in each, a line that is strictly first come, first served, and slots for those that have one before
//! any claim. No more tasks are parked than there are slots. A directory is left when the last process of its task is gone and it is tidied
//! up, whatever becomes of the report; and what is written down says who has it, for the next process.

use super::Found;
use super::claims::ClaimBook;
use super::ops::{Closed, End, What};
use super::tasks::TaskBook;
use crate::config::Config;
use crate::daemon::View;
use crate::effect::{ApiCall, Effect, Fact, FsCall, Keep, PhaseName};
use crate::event::{ClaimKey, Event, FsReply, Recovered};
use crate::id::PathKey;
use crate::said::Said;
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
    /// Who waits without a slot, for a directory or for a slot to go with it.
    parked: BTreeSet<ClaimKey>,
    /// Of whom the server was told that they wait.
    told: BTreeSet<ClaimKey>,
    /// Which directory a claim has as its record says.
    kept: BTreeMap<ClaimKey, PathKey>,
    /// What this step's event says that a claim of an earlier process has.
    coming: Option<(ClaimKey, PathKey)>,
    /// Whether a claim over the control connection ended in this step: it may go on over HTTP with the slots that it holds.
    resent: bool,
}

impl PathBook {
    pub(super) fn closed(&mut self, closed: &Closed<'_>) {
        match (&closed.what, closed.end) {
            (What::Fs(FsCall::Resolve { claim }), End::Fs(Ok(FsReply::Resolved { path }))) => {
                self.of.insert(*claim, path.clone());
            }
            // It was begun once no process was left: that is INV-80.
            (What::Fs(FsCall::Unwind { claim }), _) => self.leave(*claim),
            (What::Api(ApiCall::ClaimOver { .. }), _) => self.resent = true,
            _ => {}
        }
    }

    /// What the daemon is told of an earlier process: nothing comes of it unless it says so.
    pub(super) fn told(&mut self, event: &Event) {
        let Event::Recovered { offer, was, path: Some(path), .. } = event else { return };
        let works = matches!(was, Recovered::Launched { .. } | Recovered::Ended { report: Some(_), .. });
        self.coming = (works && offer.in_place).then(|| (offer.claim, path.clone()));
    }

    /// INV-90: what an earlier process launched has its directory before anybody else can ask for it.
    fn taken_over(&mut self, claim: ClaimKey) {
        let Some((_, path)) = self.coming.take().filter(|(coming, _)| *coming == claim) else { return };
        let directory = self.directories.entry(path.clone()).or_default();
        if directory.holder.is_none() {
            directory.holder = Some(claim);
            self.of.insert(claim, path.clone());
            self.kept.insert(claim, path);
        }
    }

    /// LEDGER-PATH: what is written down of a claim names the directory that it has, and no other.
    fn keep(&mut self, claim: ClaimKey, entry: &Keep, found: &mut Found) {
        let path = match entry {
            Keep::Claimed { .. } => return,
            Keep::Launched { path, .. } | Keep::Ended { path, .. } => path,
        };
        let has = self.of.get(&claim).filter(|_| self.has_directory(claim));
        let launched = matches!(entry, Keep::Launched { .. });
        found.require(path.as_ref() == has || (path.is_none() && !launched), "LEDGER-PATH", || {
            format!(
                "claim {} is written down to have {path}, and has {has}",
                claim.0,
                path = path.said(),
                has = has.said()
            )
        });
        match path {
            Some(path) => self.kept.insert(claim, path.clone()),
            None => self.kept.remove(&claim),
        };
    }

    fn has_directory(&self, claim: ClaimKey) -> bool {
        self.directory(claim).is_some_and(|directory| directory.holder == Some(claim))
    }

    pub(super) fn effect(
        &mut self,
        cfg: &Config,
        effect: &Effect,
        claims: &ClaimBook,
        tasks: &TaskBook,
        found: &mut Found,
    ) {
        match effect {
            Effect::Fs { call: FsCall::Prepare { claim, .. }, .. } => self.inside(*claim, tasks, found),
            Effect::Run { call, .. } if call.attached().is_none() => self.inside(call.claim(), tasks, found),
            Effect::Keep { claim, entry } => self.keep(*claim, entry, found),
            Effect::Forget { claim } => drop(self.kept.remove(claim)),
            Effect::Api { call, .. } => match call {
                ApiCall::Start(call) => self.inside(call.claim(), tasks, found),
                ApiCall::WaitDirectory { claim, holder } => {
                    let right = self.directory(*claim).is_some_and(|directory| directory.holder == *holder);
                    found.require(right && holder.is_some(), "INV-90", || {
                        format!(
                            "claim {} is said to wait for {holder}, which is not so",
                            claim.0,
                            holder = holder.said()
                        )
                    });
                    let once = self.is_in_line(*claim) && self.told.insert(*claim);
                    found.require(once, "LDR-2", || {
                        format!("claim {} is said to wait twice, or does not wait", claim.0)
                    });
                }
                ApiCall::Claim(_) | ApiCall::ClaimOver { .. } | ApiCall::ClaimOne(_) => {
                    let waits = self.ready.iter().find(|ready| Self::has_room(cfg, claims, tasks, **ready));
                    found.require(waits.is_none() || self.resent, "UNPARK-FIRST", || {
                        format!(
                            "tasks are asked for while {waits} has its directory and no slot",
                            waits = waits.said()
                        )
                    });
                }
                _ => {}
            },
            Effect::Fact { fact } => self.fact(cfg, fact, claims, tasks, found),
            _ => {}
        }
    }

    fn has_room(cfg: &Config, claims: &ClaimBook, tasks: &TaskBook, claim: ClaimKey) -> bool {
        tasks.provider(claim).is_none_or(|provider| claims.has_room(cfg, provider, tasks))
    }

    /// INV-89: what works in a directory of the user has it.
    fn inside(&self, claim: ClaimKey, tasks: &TaskBook, found: &mut Found) {
        found.require(self.has_directory(claim) || !tasks.is_in_place(claim), "INV-89", || {
            format!("claim {} works in a directory of the user that it does not have", claim.0)
        });
    }

    fn directory(&self, claim: ClaimKey) -> Option<&Directory> {
        self.directories.get(self.of.get(&claim)?)
    }

    fn is_in_line(&self, claim: ClaimKey) -> bool {
        self.directory(claim).is_some_and(|directory| directory.line.contains(&claim))
    }

    fn fact(&mut self, cfg: &Config, fact: &Fact, claims: &ClaimBook, tasks: &TaskBook, found: &mut Found) {
        match fact {
            Fact::Parked { claim, holder } => {
                let exempt = !tasks.is_in_place(*claim);
                found.require(!exempt, "INV-91", || {
                    format!("claim {} waits for a directory that it does not need alone", claim.0)
                });
                let Some(directory) = self.directory(*claim) else { return };
                found.require(directory.holder == Some(*holder) && holder != claim, "INV-90", || {
                    format!(
                        "claim {} waits for claim {}, which does not have its directory",
                        claim.0, holder.0
                    )
                });
                self.parked.insert(*claim);
            }
            Fact::Phase { claim, phase: PhaseName::AwaitingDirectory } => {
                let Some(path) = self.of.get(claim) else { return };
                self.directories.entry(path.clone()).or_default().line.push(*claim);
            }
            Fact::Phase { claim, phase: PhaseName::AwaitingSlot } => {
                self.granted(*claim, found);
                self.ready.push(*claim);
            }
            Fact::Phase { claim, phase: PhaseName::AwaitingRoot } => {
                if self.is_in_line(*claim) {
                    return self.granted(*claim, found);
                }
                let Some(path) = self.of.get(claim) else { return };
                let directory = self.directories.entry(path.clone()).or_default();
                let free = directory.holder.is_none() && directory.line.is_empty();
                found.require(free || directory.holder == Some(*claim), "INV-90", || {
                    format!("claim {} works in {path} beside {}", claim.0, directory.holder.said())
                });
                directory.holder = Some(*claim);
            }
            Fact::Recovered { claim, .. } => self.taken_over(*claim),
            Fact::Unparked { claim, .. } => {
                let first = self.ready.iter().find(|ready| Self::has_room(cfg, claims, tasks, **ready));
                found.require(first == Some(claim), "UNPARK-ORDER", || {
                    format!(
                        "claim {} gets a slot, and it is the turn of {first}",
                        claim.0,
                        first = first.said()
                    )
                });
                self.ready.retain(|ready| ready != claim);
                self.parked.remove(claim);
            }
            Fact::Phase { claim, phase: PhaseName::Reporting } if tasks.is_untouched(*claim) => {
                self.leave(*claim);
            }
            Fact::Released { claim, .. } => self.leave(*claim),
            _ => {}
        }
    }

    /// A claim of a line has its directory.
    fn granted(&mut self, claim: ClaimKey, found: &mut Found) {
        let first = self.directory(claim).and_then(|directory| directory.line.first());
        found.require(first == Some(&claim), "PATH-FIFO", || {
            format!("claim {} gets a directory out of turn, before {first}", claim.0, first = first.said())
        });
        let Some(path) = self.of.get(&claim) else { return };
        let still = self.kept.iter().find(|(_, kept)| *kept == path);
        found.require(still.is_none(), "LEDGER-PATH", || {
            format!(
                "claim {} gets {path}, and it is written down that {still} has it",
                claim.0,
                still = still.map(|(claim, _)| claim).said()
            )
        });
        let Some(directory) = self.directories.get_mut(path) else { return };
        found.require(directory.holder.is_none(), "INV-92", || {
            format!("claim {} gets a directory that {} has not left", claim.0, directory.holder.said())
        });
        directory.line.retain(|waiting| *waiting != claim);
        directory.holder = Some(claim);
    }

    fn leave(&mut self, claim: ClaimKey) {
        self.parked.remove(&claim);
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
        (self.coming, self.resent) = (None, false);
        let mut with_slot = Vec::new();
        for (path, directory) in &self.directories {
            found.require(directory.holder.is_some() || directory.line.is_empty(), "PATH-GRANT", || {
                format!("nobody has {path}, and {} wait for it", directory.line.said())
            });
            for claim in &directory.line {
                found.require(self.told.contains(claim), "LDR-2", || {
                    format!("the server was never told that claim {} waits", claim.0)
                });
                if !self.parked.contains(claim) {
                    with_slot.push(*claim);
                }
            }
            let unkept =
                directory.holder.filter(|has| tasks.was_launched(*has) && !self.kept.contains_key(has));
            found.require(unkept.is_none(), "LEDGER-PATH", || {
                format!("it is not written down that {unkept} has {path}", unkept = unkept.said())
            });
        }
        for (claim, path) in &self.kept {
            found.require(self.has_directory(*claim), "LEDGER-PATH", || {
                format!("it is written down that claim {} has {path}, which it has left", claim.0)
            });
        }
        self.directories.retain(|_, directory| directory.holder.is_some() || !directory.line.is_empty());
        found.require(view.path_locks() == self.directories.len(), "PATH-LEFT", || {
            format!("{} directories are locked, {} should be", view.path_locks(), self.directories.len())
        });
        let (parked, slots) = (self.parked.len(), usize::from(cfg.slots));
        found.require(view.parked_tasks() == parked && parked <= slots, "PARK-BOUND", || {
            format!("{} tasks are parked, {parked} should be", view.parked_tasks())
        });
        found.require(with_slot.is_empty() || parked == slots, "PARK-BOUND", || {
            format!(
                "{with_slot} wait with their slots, and only {parked} tasks are parked",
                with_slot = with_slot.said()
            )
        });
        let has_room = |claim: ClaimKey| Self::has_room(cfg, claims, tasks, claim);
        let waits = self.ready.iter().find(|ready| has_room(**ready));
        found.require(waits.is_none() || view.free_slots() == 0, "UNPARK-FIRST", || {
            format!("{waits} has its directory, and does not get the slot that is free", waits = waits.said())
        });
        let same = |one: ClaimKey, other: ClaimKey| tasks.provider(one) == tasks.provider(other);
        let stuck = self
            .ready
            .iter()
            .find(|ready| with_slot.iter().any(|with| has_room(**ready) || same(**ready, *with)));
        found.require(stuck.is_none(), "UNPARK-FIRST", || {
            format!(
                "{stuck} has its directory, and {with_slot} keep slots and only wait",
                stuck = stuck.said(),
                with_slot = with_slot.said()
            )
        });
    }
}
