//! The collector: when it may work, on what, and that no task is ever in a directory that it frees.

use super::ops::{Closed, End, What};
use super::tasks::TaskBook;
use super::{At, Found};
use crate::config::Config;
use crate::daemon::View;
use crate::effect::{ApiCall, Effect, Fact, FsCall};
use crate::event::{ApiReply, Collect, FsReply};
use crate::id::{EnvRoot, OpId};
use crate::said::Said;
use crate::time::Instant;

#[derive(Clone, Debug, Default)]
pub(super) struct GcBook {
    ready: Option<Instant>,
    /// What this round's scan found and nothing was done about yet; `None` if the server has to be asked.
    decided: Vec<(EnvRoot, Option<Collect>)>,
    scan: Option<OpId>,
    asking: Option<OpId>,
    freeing: Option<(OpId, EnvRoot)>,
    maintain: Option<OpId>,
    maintain_cancelled: bool,
    /// When the last round ended.
    ended: Option<Instant>,
}

impl GcBook {
    /// Whether the directory is being freed.
    pub(super) fn is_freeing(&self, root: &EnvRoot) -> bool {
        self.freeing.as_ref().is_some_and(|(_, freeing)| freeing == root)
    }

    pub(super) fn closed(&mut self, at: &At<'_>, closed: &Closed<'_>) {
        match (&closed.what, closed.end) {
            (What::Fs(FsCall::Scan), End::Fs(result)) => {
                self.scan = None;
                if let Ok(FsReply::Scanned { found }) = result {
                    // One that is named twice is decided upon twice.
                    self.decided = found.iter().map(|found| (found.root.clone(), found.what)).collect();
                }
                self.ended = Some(at.now);
            }
            (What::Fs(FsCall::Collect(_)), End::Fs(_)) => {
                self.freeing = None;
                self.ended = Some(at.now);
            }
            (What::Fs(FsCall::Maintain), End::Fs(_)) => {
                (self.maintain, self.maintain_cancelled) = (None, false);
                self.ended = Some(at.now);
            }
            (What::Api(ApiCall::Collectable { root }), End::Api(result)) => {
                self.asking = None;
                if let Ok(ApiReply::Collectable { what }) = result {
                    self.decided.push((root.clone(), Some(*what)));
                }
                self.ended = Some(at.now);
            }
            _ => {}
        }
    }

    pub(super) fn effect(
        &mut self,
        at: &At<'_>,
        cfg: &Config,
        effect: &Effect,
        tasks: &TaskBook,
        found: &mut Found,
    ) {
        match effect {
            Effect::Fact { fact: Fact::Ready } => self.ready = Some(at.now),
            Effect::Fs { op, call: call @ (FsCall::Scan | FsCall::Collect(_) | FsCall::Maintain) } => {
                found.require(cfg.gc, "GC-OFF", || {
                    format!("{call} although nothing is to be removed", call = call.said())
                });
                found.require(!at.stopping, "INV-144", || {
                    format!("{call} although the daemon stops", call = call.said())
                });
                let least = at.timing.gc_first.min(at.timing.gc);
                let ready = self.ready.is_some_and(|ready| at.now >= ready.after(least));
                found.require(ready, "INV-143", || {
                    format!("{call} too soon after the start", call = call.said())
                });
                let busy = self.scan.is_some() || self.asking.is_some() || self.maintain.is_some();
                found.require(!busy && self.freeing.is_none(), "INV-129", || {
                    format!("{call} while the collector is at something else", call = call.said())
                });
                self.work(at, *op, call, tasks, found);
            }
            Effect::Api { op, call: ApiCall::Collectable { root }, .. } => {
                found.require(!at.stopping, "INV-144", || {
                    format!("{root} is asked about although the daemon stops")
                });
                let open = self.take(root, None);
                found.require(open && self.asking.is_none(), "I23", || {
                    format!("{root} is asked about, and was not found, or that is known")
                });
                self.asking = Some(*op);
            }
            Effect::Cancel { op } if Some(*op) == self.maintain => self.maintain_cancelled = true,
            Effect::Run { .. } => {
                found.require(self.maintain.is_none() || self.maintain_cancelled, "INV-147", || {
                    "an agent is launched while caches are tidied up".into()
                });
            }
            Effect::Fs { call: FsCall::Prepare { claim, .. }, .. } => {
                let gone = tasks.roots(*claim).iter().any(|root| self.is_freeing(root));
                found.require(!gone, "INV-130", || {
                    format!("claim {} is prepared while a directory of it is being freed", claim.0)
                });
            }
            _ => {}
        }
    }

    /// Takes what was decided about a directory; false if that was not decided in this round.
    fn take(&mut self, root: &EnvRoot, what: Option<Collect>) -> bool {
        let nth = self.decided.iter().position(|(of, decided)| of == root && *decided == what);
        nth.map(|nth| self.decided.swap_remove(nth)).is_some()
    }

    fn work(&mut self, at: &At<'_>, op: OpId, call: &FsCall, tasks: &TaskBook, found: &mut Found) {
        match call {
            FsCall::Scan => {
                let early = self.ended.is_some_and(|ended| at.now < ended.after(at.timing.gc));
                found.require(!early, "GC-PAUSE", || "the collector does not rest between rounds".into());
                self.decided.clear();
                self.scan = Some(op);
            }
            FsCall::Collect(call) => {
                let root = call.root();
                let right = call.what() != Collect::Keep && self.take(root, Some(call.what()));
                found.require(right, "I23", || {
                    format!("{} of {root} is freed, and was not decided", call.what().said())
                });
                let user = tasks.works_in(root);
                found.require(user.is_none(), "I11", || {
                    format!("{root} is freed, and {user} works in it", user = user.said())
                });
                self.freeing = Some((op, root.clone()));
            }
            _ => self.maintain = Some(op),
        }
    }

    /// INV-128, INV-147: what is being freed is marked by nobody; what a task may need is not tidied up.
    pub(super) fn settle(&self, view: View<'_>, found: &mut Found) {
        if let Some((_, root)) = &self.freeing {
            found.require(!view.is_root_active(root), "INV-128", || {
                format!("{root} is marked while it is being freed")
            });
        }
        let alone = self.maintain.is_none() || self.maintain_cancelled || view.tasks().next().is_none();
        found.require(alone, "INV-147", || "caches are tidied up although a task is here".into());
    }
}
