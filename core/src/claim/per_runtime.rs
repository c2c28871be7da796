//! One poller for each runtime: a claim that hangs delays no claim of another runtime. Those that find no free slot queue
//! in order, and a freed slot feeds them in the same step.

use crate::backoff::Failures;
use crate::claim::batch::wait_after;
use crate::claim::gate::ClaimGate;
use crate::claim::pace::Pace;
use crate::claim::slots::Slots;
use crate::effect::{ApiCall, ClaimOneCall};
use crate::env::Cx;
use crate::error::ApiError;
use crate::id::{OpId, Provider, RuntimeId};
use crate::op::ApiOp;
use crate::runtimes::Runtimes;
use crate::time::Instant;
use crate::timer::TimerKey;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

#[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum State {
    /// Until the timer fires or a wakeup comes.
    Sleeping,
    /// In the queue for a slot, at this place.
    Waiting(u64),
    /// Its provider has no room; the end of one of its tasks wakes it.
    Crowded(Provider),
    /// Until the answer.
    Claiming(OpId),
}

#[derive(Debug, Hash, Serialize, Deserialize)]
struct Poller {
    state: State,
    /// A wakeup came while a claim was on its way.
    nudged: bool,
    failures: Failures,
    not_before: Option<Instant>,
    #[serde(default)]
    pace: Pace,
}

/// All pollers.
#[derive(Debug, Default, Hash, Serialize, Deserialize)]
pub(crate) struct PerRuntimePollers {
    pollers: BTreeMap<RuntimeId, Poller>,
    /// Claims whose poller ended before their answer: a new poller of the runtime waits for it.
    left_open: BTreeMap<RuntimeId, OpId>,
    /// Those that wait, by their place.
    queue: BTreeMap<u64, RuntimeId>,
    /// The next place.
    place: u64,
    /// Those that are crowded out, by the provider that has no room.
    crowded: BTreeMap<Provider, BTreeSet<RuntimeId>>,
}

/// FNV-1a, 64 bits: spreads the first polls of a daemon's runtimes, the same way at each start.
fn fnv1a64(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// When the first unprompted claim of a runtime is due, from the start of its poller.
pub(crate) fn first_poll(runtime: &RuntimeId, poll: Duration) -> Duration {
    let ms = u64::try_from(poll.as_millis()).unwrap_or(u64::MAX).max(1);
    Duration::from_millis(fnv1a64(runtime.as_str()) % ms)
}

impl PerRuntimePollers {
    /// Starts a poller: asleep until its offset, or at once if it is prompted.
    pub(crate) fn start(&mut self, cx: &mut Cx<'_>, runtime: &RuntimeId, prompted: bool) {
        if self.pollers.contains_key(runtime) {
            return;
        }
        let mut poller = Poller {
            state: State::Sleeping,
            nudged: false,
            failures: Failures::default(),
            not_before: None,
            pace: Pace::default(),
        };
        if let Some(op) = self.left_open.remove(runtime) {
            (poller.state, poller.nudged) = (State::Claiming(op), prompted);
            self.pollers.insert(runtime.clone(), poller);
            return;
        }
        self.pollers.insert(runtime.clone(), poller);
        let first = first_poll(runtime, cx.timing().poll);
        if prompted || first.is_zero() {
            self.wake(cx, runtime);
        } else {
            cx.arm(TimerKey::PollOne(runtime.clone()), first);
        }
    }

    /// Ends a poller; a claim on its way is answered all the same.
    pub(crate) fn stop(&mut self, cx: &mut Cx<'_>, runtime: &RuntimeId) {
        match self.pollers.remove(runtime).map(|poller| poller.state) {
            Some(State::Claiming(op)) => {
                self.left_open.insert(runtime.clone(), op);
            }
            Some(State::Waiting(place)) => {
                self.queue.remove(&place);
            }
            Some(State::Crowded(provider)) => {
                if let Some(crowd) = self.crowded.get_mut(&provider) {
                    crowd.remove(runtime);
                }
            }
            Some(State::Sleeping) | None => {}
        }
        cx.disarm(&TimerKey::PollOne(runtime.clone()));
    }

    pub(crate) fn stop_all(&mut self, cx: &mut Cx<'_>) {
        for (runtime, poller) in std::mem::take(&mut self.pollers) {
            cx.disarm(&TimerKey::PollOne(runtime.clone()));
            if let State::Claiming(op) = poller.state {
                self.left_open.insert(runtime, op);
            }
        }
        self.queue.clear();
        self.crowded.clear();
    }

    /// A claim ended, whoever sent it.
    pub(crate) fn answered(&mut self, op: OpId, runtime: &RuntimeId) {
        if self.left_open.get(runtime) == Some(&op) {
            self.left_open.remove(runtime);
        }
    }

    pub(crate) fn wake(&mut self, cx: &mut Cx<'_>, runtime: &RuntimeId) {
        let Some(poller) = self.pollers.get_mut(runtime) else { return };
        poller.failures.reset();
        match poller.state {
            State::Sleeping if poller.not_before.is_some_and(|at| at > cx.now.mono) => poller.nudged = true,
            State::Sleeping => self.prompt(cx, runtime),
            State::Claiming(_) => poller.nudged = true,
            State::Waiting(_) | State::Crowded(_) => {}
        }
    }

    pub(crate) fn wake_all(&mut self, cx: &mut Cx<'_>) {
        for runtime in self.pollers.keys().cloned().collect::<Vec<_>>() {
            self.wake(cx, &runtime);
        }
    }

    /// Whether a claim of the runtime waits because too many brought nothing.
    pub(crate) fn is_paced(&self, runtime: &RuntimeId, now: Instant) -> bool {
        self.pollers.get(runtime).is_some_and(|p| p.state == State::Sleeping && p.pace.is_waiting(now))
    }

    /// Queues up a poller that something was said to, or has it wait if that was said too often in vain.
    fn prompt(&mut self, cx: &mut Cx<'_>, runtime: &RuntimeId) {
        let Some(poller) = self.pollers.get_mut(runtime) else { return };
        if let Some(at) = poller.pace.wait(cx) {
            poller.state = State::Sleeping;
            cx.arm_at(TimerKey::PollOne(runtime.clone()), at);
        } else {
            self.queue_up(cx, runtime);
        }
    }

    fn queue_up(&mut self, cx: &mut Cx<'_>, runtime: &RuntimeId) {
        if let Some(poller) = self.pollers.get_mut(runtime) {
            self.place += 1;
            poller.state = State::Waiting(self.place);
            poller.nudged = false;
            poller.not_before = None;
            self.queue.insert(self.place, runtime.clone());
            cx.disarm(&TimerKey::PollOne(runtime.clone()));
        }
    }

    /// Its timer fired.
    pub(crate) fn due(&mut self, cx: &mut Cx<'_>, runtime: &RuntimeId) {
        if self.pollers.get(runtime).is_some_and(|poller| poller.state == State::Sleeping) {
            self.queue_up(cx, runtime);
        }
    }

    /// A task of this provider ended: those that found it full may try again.
    pub(crate) fn room(&mut self, cx: &mut Cx<'_>, provider: &Provider, runtimes: &Runtimes) {
        for runtime in self.crowded.remove(provider).unwrap_or_default() {
            if runtimes.provider(&runtime) == Some(provider) {
                self.queue_up(cx, &runtime);
            }
        }
    }

    /// Gives free slots to those that wait, in order.
    pub(crate) fn feed(
        &mut self,
        cx: &mut Cx<'_>,
        slots: &mut Slots,
        gate: &mut ClaimGate,
        runtimes: &Runtimes,
    ) {
        while slots.available() > 0 && gate.is_open() {
            let Some((_, runtime)) = self.queue.pop_first() else { return };
            let Some(poller) = self.pollers.get_mut(&runtime) else { continue };
            let Some(provider) = runtimes.provider(&runtime).cloned() else {
                poller.state = State::Sleeping;
                continue;
            };
            if slots.room(&provider) == Some(0) {
                poller.state = State::Crowded(provider.clone());
                self.crowded.entry(provider).or_default().insert(runtime);
                continue;
            }
            let (Some(pass), Some(slot)) = (gate.enter(), slots.try_acquire()) else { return };
            slots.take_room(&provider, 1);
            let call = ApiCall::ClaimOne(ClaimOneCall::new(runtime.clone(), &slot));
            let within = cx.timing().request;
            let op = cx.api(ApiOp::ClaimOne { slot, pass, runtime: runtime.clone(), provider }, call, within);
            poller.state = State::Claiming(op);
        }
    }

    /// The claim ended, with a task or without.
    pub(crate) fn claimed(&mut self, cx: &mut Cx<'_>, op: OpId, runtime: &RuntimeId, task: bool) {
        let Some(poller) = self.pollers.get_mut(runtime).filter(|p| p.state == State::Claiming(op)) else {
            return;
        };
        poller.failures.reset();
        if task {
            poller.pace.forgive();
            self.queue_up(cx, runtime);
            return;
        }
        poller.pace.in_vain(cx);
        if poller.nudged {
            self.prompt(cx, runtime);
        } else {
            poller.state = State::Sleeping;
            let poll = cx.timing().poll;
            cx.arm(TimerKey::PollOne(runtime.clone()), poll);
        }
    }

    /// The claim failed.
    pub(crate) fn failed(&mut self, cx: &mut Cx<'_>, op: OpId, runtime: &RuntimeId, error: ApiError) {
        let Some(poller) = self.pollers.get_mut(runtime).filter(|p| p.state == State::Claiming(op)) else {
            return;
        };
        poller.state = State::Sleeping;
        poller.pace.in_vain(cx);
        let wait = wait_after(cx, error, &mut poller.failures);
        if let ApiError::Throttled { retry_after_ms: Some(_) } = error {
            poller.not_before = Some(cx.now.mono.after(wait));
        } else if poller.nudged {
            self.prompt(cx, runtime);
            return;
        }
        cx.arm(TimerKey::PollOne(runtime.clone()), wait);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inv_39_the_first_poll_is_offset_by_the_runtimes_id() {
        assert_eq!(fnv1a64(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a64("a"), 0xaf63_dc4c_8601_ec8c);
        let poll = Duration::from_secs(30);
        let a = first_poll(&RuntimeId::new("r-1"), poll);
        assert!(a < poll);
        assert_eq!(a, first_poll(&RuntimeId::new("r-1"), poll), "the same at each start");
        assert_ne!(a, first_poll(&RuntimeId::new("r-2"), poll));
    }
}
