//! Whether the server takes the credential: told when it changes, and no sooner; nothing new is asked while it does not; what is tried again
//! is tried seldom; and once it does, or once the machine has slept, every runtime beats soon.

use super::ops::{Closed, What};
use super::seen::Seen;
use super::{Found, api_end, is_claim};
use crate::effect::{ApiCall, Effect, Fact, RuntimeChange, WsCmd};
use crate::error::{ApiError, Refusal};
use crate::event::{ApiReply, ClaimKey, Event, WsEvent};
use crate::id::{OpId, RuntimeId};
use crate::said::Said;
use crate::time::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Where every runtime is to beat, it does so in this time.
const BEATS_WITHIN: Duration = Duration::from_secs(1);
/// So many statuses are asked for in one step because of a hint at most.
const MOST_LOOKS: usize = 64;
/// And so many of one task in a second: two looks, one before and one after each of the things that ask by themselves.
const LOOKS_A_SECOND: usize = 6;

/// What a request about a task is for, as far as its tries are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Try {
    Lease,
    Start,
    Messages,
    Known,
    Usage,
    Pin,
    Report,
}

#[derive(Clone, Debug, Default)]
pub(super) struct AccessBook {
    listed: bool,
    lost: Option<Instant>,
    back: Option<Instant>,
    doubt: Instant,
    /// The last request before this changed, and the last one that was sent.
    before: OpId,
    last: OpId,
    /// Changes so far, and how many there were when the connection was last dialled.
    changes: u32,
    dialled: u32,
    /// When the list was last asked for while access was lost, or since when it is.
    probed: Option<Instant>,
    /// When what has been refused was.
    refused: BTreeMap<(ClaimKey, Try), Instant>,
    set: BTreeSet<RuntimeId>,
    beating: BTreeMap<OpId, RuntimeId>,
    /// Those that have to beat, and since when.
    owe: BTreeSet<RuntimeId>,
    owed: Instant,
    /// When the last statuses of a task were asked for.
    looks: BTreeMap<ClaimKey, Vec<Instant>>,
}

impl AccessBook {
    pub(super) const fn is_lost(&self) -> bool {
        self.lost.is_some()
    }

    pub(super) fn step(&mut self, seen: &Seen<'_>, found: &mut Found) {
        let turns = self.turns(seen);
        let told = |fact: &Fact| seen.wants(|effect| matches!(effect, Effect::Fact { fact: f } if f == fact));
        let right = told(&Fact::AccessLost) == (turns == Some(false))
            && told(&Fact::AccessBack) == (turns == Some(true));
        found.require(right, "ACCESS-TOLD", || {
            let is = match turns {
                None => "is as it was",
                Some(true) => "is taken again",
                Some(false) => "is refused",
            };
            format!("the credential {is} by {}, and the daemon tells otherwise", seen.event.said())
        });
        self.ended(seen, turns == Some(false));
        for effect in seen.effects {
            self.effect(seen, effect, found);
        }
        self.looks_are_few(seen, found);
        let late = seen.at.now >= self.owed.after(BEATS_WITHIN);
        if self.lost.is_none() && !seen.excuses() && late {
            found.require(self.owe.is_empty(), "ALL-BEAT", || {
                format!("{} should have beaten by now, after all that had to wait", self.owe.said())
            });
            self.owe.clear();
        }
    }

    /// What an event says: access is back, or lost.
    fn turns(&self, seen: &Seen<'_>) -> Option<bool> {
        let at = &seen.at;
        match seen.event? {
            Event::Credential => self.lost.is_some().then_some(true),
            Event::Api { op, r } => {
                let (_, call) = seen.ended()?;
                if *op <= self.before {
                    return None;
                }
                match r {
                    Ok(_) => (self.lost.is_some() && at.now >= self.doubt).then_some(true),
                    Err(ApiError::Refused { kind, .. }) => {
                        let counts = match kind {
                            Refusal::Unauthorized | Refusal::ClockSkew => true,
                            Refusal::Forbidden => !is_claim(call),
                            _ => false,
                        };
                        let loses = counts && *call != ApiCall::Renew && self.may_lose(seen);
                        loses.then_some(false)
                    }
                    Err(_) => None,
                }
            }
            Event::Ws { ws: WsEvent::Refused { kind, .. }, .. } => {
                let loses = kind.is_about_credential() && self.dialled == self.changes && self.may_lose(seen);
                loses.then_some(false)
            }
            Event::Ws { ws: WsEvent::Ack { gone: false, .. }, .. } => {
                let since = self.lost?;
                (at.now >= since.after(at.timing.access) && at.now >= self.doubt).then_some(true)
            }
            _ => None,
        }
    }

    const fn may_lose(&self, seen: &Seen<'_>) -> bool {
        self.lost.is_none() && self.listed && !seen.at.stopping
    }

    fn turned(&mut self, seen: &Seen<'_>, back: bool) {
        let (now, period) = (seen.at.now, seen.at.timing.access);
        self.before = self.last;
        self.changes += 1;
        if back {
            (self.lost, self.back) = (None, Some(now));
            self.refused.clear();
            self.all_owe(now);
        } else {
            self.lost = Some(now);
            let again = self.back.is_some_and(|back| now < back.after(period));
            self.doubt = if again { now.after(period) } else { now };
            self.probed = Some(now);
            self.owe.clear();
        }
    }

    fn all_owe(&mut self, now: Instant) {
        self.owe.clone_from(&self.set);
        for beating in self.beating.values() {
            self.owe.remove(beating);
        }
        self.owed = now;
    }

    fn ended(&mut self, seen: &Seen<'_>, loses: bool) {
        if matches!(seen.event, Some(Event::Credential)) && self.lost.is_none() {
            self.turned_quietly(seen);
        }
        let Some((op, call)) = seen.ended() else { return };
        self.beating.remove(&op);
        let Some(Closed { end, what: What::Api(_), .. }) = seen.closed else { return };
        let Some(result) = api_end(end) else { return };
        self.listed |= matches!(result, Ok(ApiReply::Workspaces { .. }));
        if let Some(key) = tries(call) {
            // What was refused before access is lost, as at the start, was given its next time by the usual backoff.
            let barred = loses || self.lost.is_some();
            if barred && result.as_ref().is_err_and(|error| error.is_about_credential()) {
                self.refused.insert(key, seen.at.now);
            } else {
                self.refused.remove(&key);
            }
        }
    }

    /// Another credential, though nothing was said against the one before.
    fn turned_quietly(&mut self, seen: &Seen<'_>) {
        self.before = self.last;
        self.changes += 1;
        self.back = Some(seen.at.now);
    }

    fn effect(&mut self, seen: &Seen<'_>, effect: &Effect, found: &mut Found) {
        let now = seen.at.now;
        match effect {
            Effect::Fact { fact: Fact::AccessLost } => self.turned(seen, false),
            Effect::Fact { fact: Fact::AccessBack } => self.turned(seen, true),
            Effect::Fact { fact: Fact::Woke { .. } } => {
                // Leases have run on while the machine slept, and the credential may have been mended: each is tried once at once.
                self.refused.clear();
                if self.lost.is_none() {
                    self.all_owe(now);
                }
            }
            Effect::Api { op, call, .. } => {
                self.last = self.last.max(*op);
                self.asks(seen, *op, call, found);
            }
            Effect::Ws { cmd, .. } => {
                let quiet = self.lost.is_none() || matches!(cmd, WsCmd::Close);
                found.require(quiet, "ACCESS-QUIET", || {
                    format!("{cmd} although the server refuses the credential", cmd = cmd.said())
                });
                match cmd {
                    WsCmd::Connect { .. } => self.dialled = self.changes,
                    WsCmd::Beat { runtime } => drop(self.owe.remove(runtime)),
                    WsCmd::Close => {}
                }
            }
            Effect::Fs { op, .. } | Effect::Run { op, .. } => self.last = self.last.max(*op),
            Effect::Runtime { runtime, change: RuntimeChange::Added { .. }, .. } => {
                self.set.insert(runtime.clone());
            }
            Effect::Runtime { runtime, change: RuntimeChange::Removed, .. } => {
                self.set.remove(runtime);
                self.owe.remove(runtime);
            }
            Effect::Forget { claim } => {
                self.refused.retain(|(of, _), _| of != claim);
                self.looks.remove(claim);
            }
            _ => {}
        }
    }

    fn asks(&mut self, seen: &Seen<'_>, op: OpId, call: &ApiCall, found: &mut Found) {
        let (now, period) = (seen.at.now, seen.at.timing.access);
        match call {
            ApiCall::Beat { runtime } => {
                self.owe.remove(runtime);
                self.beating.insert(op, runtime.clone());
            }
            ApiCall::Status { claim } => self.looks.entry(*claim).or_default().push(now),
            _ => {}
        }
        if self.lost.is_none() {
            return;
        }
        let work = tries(call).is_some()
            || matches!(
                call,
                ApiCall::Status { .. } | ApiCall::WaitDirectory { .. } | ApiCall::Deregister { .. }
            );
        if *call == ApiCall::Workspaces {
            let before = self.probed.replace(now);
            found.require(before.is_none_or(|at| now >= at.after(period)), "ACCESS-QUIET", || {
                "it is asked too often whether the credential is still refused".into()
            });
        } else {
            found.require(work || matches!(call, ApiCall::ActionResult { .. }), "ACCESS-QUIET", || {
                format!("{call} although the server refuses the credential", call = call.said())
            });
        }
        if let Some(at) = tries(call).and_then(|key| self.refused.get(&key)) {
            found.require(seen.at.stopping || now >= at.after(period), "ACCESS-SLOW", || {
                format!(
                    "{call} was refused {} ms ago, and is tried again",
                    now.since(*at).as_millis(),
                    call = call.said()
                )
            });
        }
    }

    fn looks_are_few(&mut self, seen: &Seen<'_>, found: &mut Found) {
        let now = seen.at.now;
        for effect in seen.effects {
            let Effect::Api { call: ApiCall::Status { claim }, .. } = effect else { continue };
            let Some(looks) = self.looks.get_mut(claim) else { continue };
            looks.retain(|at| now < at.after(Duration::from_secs(1)));
            found.require(looks.len() <= LOOKS_A_SECOND, "LOOK-RATE", || {
                format!("the status of claim {} is asked for {} times in a second", claim.0, looks.len())
            });
        }
        let sent = seen.effects.iter();
        let sent = sent.filter(|e| matches!(e, Effect::Api { call: ApiCall::Status { .. }, .. })).count();
        let hint = seen.ws().is_some() && !seen.at.was_due;
        found.require(!hint || sent <= MOST_LOOKS, "LOOK-RATE", || {
            format!("{sent} statuses are asked for because of one frame")
        });
    }
}

/// Whose tries are counted together.
const fn tries(call: &ApiCall) -> Option<(ClaimKey, Try)> {
    Some(match call {
        ApiCall::Lease { claim } => (*claim, Try::Lease),
        ApiCall::Start(call) => (call.claim(), Try::Start),
        ApiCall::Messages { claim, .. } => (*claim, Try::Messages),
        ApiCall::MessagesKnown { claim, .. } => (*claim, Try::Known),
        ApiCall::Usage { claim } => (*claim, Try::Usage),
        ApiCall::Pin { claim } => (*claim, Try::Pin),
        ApiCall::Complete { claim } | ApiCall::Fail { claim, .. } | ApiCall::CancelAck { claim } => {
            (*claim, Try::Report)
        }
        _ => return None,
    })
}
