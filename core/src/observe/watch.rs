//! The server's word on a task: asked for often enough while the task goes on; and a lease alone never ends one.

use super::seen::Seen;
use super::{Found, api_end};
use crate::effect::{ApiCall, Effect, Fact, PhaseName};
use crate::event::{ClaimKey, Event, StopKind};
use crate::time::Instant;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
struct Watched {
    open: u32,
    /// When the last answer came, or the task.
    last: Instant,
    /// The last answer was that the credential is not good enough.
    refused: bool,
    ending: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct WatchBook {
    tasks: BTreeMap<ClaimKey, Watched>,
    /// Runs are left to the next process of this daemon.
    leaving: bool,
}

impl WatchBook {
    fn of(&mut self, claim: ClaimKey, now: Instant) -> &mut Watched {
        self.tasks.entry(claim).or_insert(Watched { open: 0, last: now, refused: false, ending: false })
    }

    pub(super) fn step(&mut self, seen: &Seen<'_>, found: &mut Found) {
        let now = seen.at.now;
        self.leaving |= matches!(seen.event, Some(Event::Stop { how: StopKind::Restart }));
        let leased = match seen.ended() {
            Some((_, ApiCall::Status { claim })) => {
                let watched = self.of(*claim, now);
                watched.open = watched.open.saturating_sub(1);
                watched.last = now;
                let result = seen.closed.and_then(|closed| api_end(&closed.end));
                watched.refused = result.is_some_and(|r| r.as_ref().is_err_and(|e| e.is_about_credential()));
                None
            }
            Some((_, ApiCall::Lease { claim })) if !seen.at.was_due => Some(*claim),
            _ => None,
        };
        for effect in seen.effects {
            match effect {
                Effect::Api { call: ApiCall::Status { claim }, .. } => self.of(*claim, now).open += 1,
                Effect::Fact { fact: Fact::Ending { claim, .. } } => {
                    found.require(leased != Some(*claim), "INV-121", || {
                        format!("claim {} is ended by what became of its lease", claim.0)
                    });
                    self.of(*claim, now).ending = true;
                }
                Effect::Forget { claim } => {
                    self.tasks.remove(claim);
                }
                _ => {}
            }
        }
        let leaving = self.leaving;
        for task in seen.view.tasks() {
            let goes_on = matches!(
                task.phase,
                Some(
                    PhaseName::AwaitingRoot | PhaseName::Preparing | PhaseName::Starting | PhaseName::Running
                )
            );
            let watched = self.of(task.claim, now);
            if !goes_on || watched.ending || leaving || seen.at.due || watched.open > 0 {
                continue;
            }
            if seen.at.barred {
                watched.last = now;
            }
            let unseen = now.since(watched.last);
            let timing = seen.at.timing;
            let most = if watched.refused { timing.watch.max(timing.access * 6 / 5) } else { timing.watch };
            found.require(unseen <= most, "INV-95", || {
                format!("nobody has asked for claim {} for {} ms", task.claim.0, unseen.as_millis())
            });
        }
    }
}
