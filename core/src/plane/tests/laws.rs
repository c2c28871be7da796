//! Laws that hold after any calls in any order.

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
enum Call {
    Wait(u64),
    Beat,
    Enqueue { agent: u8, issue: u8 },
    Claim { max: usize },
    ClaimOne,
    Start(usize),
    Lease(usize),
    WaitDir(usize),
    Complete(usize),
    Fail(usize, usize),
    Cancel(usize),
    Recover,
    Deregister,
    Sweep,
}

const REASONS: [&str; 4] = ["timeout", "runtime_offline", "agent_error.provider_network", "cancelled"];

fn call() -> impl Strategy<Value = Call> {
    let task = 0..40usize;
    prop_oneof![
        2 => prop_oneof![0..30u64, 30..400u64, Just(11_000u64)].prop_map(Call::Wait),
        2 => Just(Call::Beat),
        4 => (0..3u8, 0..4u8).prop_map(|(agent, issue)| Call::Enqueue { agent, issue }),
        4 => (0..5usize).prop_map(|max| Call::Claim { max }),
        1 => Just(Call::ClaimOne),
        4 => task.clone().prop_map(Call::Start),
        1 => task.clone().prop_map(Call::Lease),
        1 => task.clone().prop_map(Call::WaitDir),
        2 => task.clone().prop_map(Call::Complete),
        2 => (task.clone(), 0..REASONS.len()).prop_map(|(task, why)| Call::Fail(task, why)),
        1 => task.prop_map(Call::Cancel),
        1 => Just(Call::Recover),
        1 => Just(Call::Deregister),
        1 => Just(Call::Sweep),
    ]
}

struct Watch {
    plane: Plane,
    runtime: RuntimeId,
    now: u64,
    seen: BTreeMap<TaskId, Task>,
    starts: BTreeMap<TaskId, u32>,
}

impl Watch {
    fn new() -> Self {
        let (mut plane, runtime) = plane();
        plane.set_agent_cap("a0", 1);
        Self { plane, runtime, now: 0, seen: BTreeMap::new(), starts: BTreeMap::new() }
    }

    fn pick(&self, n: usize) -> TaskId {
        self.seen.keys().nth(n % self.seen.len().max(1)).cloned().unwrap_or_else(|| "none".into())
    }

    fn call(&mut self, call: &Call) {
        let now = at(self.now);
        match call {
            Call::Wait(seconds) => self.now = (self.now + seconds).min(600_000),
            Call::Beat => self.plane.heartbeat(now, &self.runtime).expect("less than a week has passed"),
            Call::Enqueue { agent, issue: about } => {
                let task = issue(&self.runtime, &format!("a{agent}"), &format!("i{about}"));
                // A refusal is a rule of its own.
                let _ = self.plane.enqueue(now, task);
            }
            Call::Claim { max } => {
                let got =
                    self.plane.claim(now, "d", std::slice::from_ref(&self.runtime), *max).expect("a daemon");
                assert!(got.len() <= *max);
                self.handed_out(&got);
            }
            Call::ClaimOne => {
                let got = self.plane.claim_one(now, &self.runtime).expect("there");
                self.handed_out(got.as_slice());
            }
            Call::Start(n) => {
                let id = self.pick(*n);
                if self.plane.start(now, &id).is_ok() {
                    *self.starts.entry(id).or_default() += 1;
                }
            }
            Call::Lease(n) => {
                let id = self.pick(*n);
                let preparing = self.plane.status(&id).is_ok_and(State::is_preparing);
                assert_eq!(self.plane.prepare_lease(now, &self.runtime.clone(), &id).is_ok(), preparing);
            }
            Call::WaitDir(n) => {
                let id = self.pick(*n);
                let dispatched = self.plane.status(&id) == Ok(State::Dispatched);
                assert_eq!(self.plane.wait_local_directory(now, &id, "x").is_ok(), dispatched);
            }
            Call::Complete(n) => {
                let id = self.pick(*n);
                let was = self.plane.status(&id);
                let is = self.plane.complete(now, &id, Completion::default()).map(|row| row.state);
                let ran = was == Ok(State::Running);
                assert_eq!(is, if ran { Ok(State::Completed) } else { was });
            }
            Call::Fail(n, why) => {
                let id = self.pick(*n);
                let was = self.plane.status(&id);
                let is = self.plane.fail(now, &id, &failure(REASONS[*why])).map(|row| row.state);
                let active = was.as_ref().is_ok_and(|state| state.is_active());
                assert_eq!(is, if active { Ok(State::Failed) } else { was });
            }
            Call::Cancel(n) => {
                let id = self.pick(*n);
                assert!(
                    self.plane.cancel(now, &id).is_ok_and(|row| row.state.is_terminal())
                        || self.seen.is_empty()
                );
            }
            Call::Recover => {
                self.plane.recover_orphans(now, &self.runtime).expect("there");
                assert!(self.plane.tasks().all(|task| !task.state.is_active()));
            }
            Call::Deregister => self.plane.deregister(std::slice::from_ref(&self.runtime)).expect("a list"),
            Call::Sweep => self.plane.sweep(now),
        }
        self.laws();
    }

    /// A claim gives a live runtime queued tasks, one for each agent, and dispatched ones that nobody prepares.
    fn handed_out(&self, got: &[Claimed]) {
        let now = at(self.now);
        assert!(got.is_empty() || self.plane.runtime(&self.runtime).expect("there").is_live(now));
        let mut agents = BTreeSet::new();
        for one in got {
            let before = &self.seen[&one.task];
            if one.again {
                assert_eq!(before.state, State::Dispatched);
                assert!(before.lease_until.expect("a lease") <= now.mono);
                assert!(self.now * 1000 - before.dispatched_at.expect("claimed").mono.as_millis() >= 90_000);
            } else {
                assert!(matches!(before.state, State::Queued | State::Deferred));
                assert!(agents.insert(before.agent.clone()), "two of one agent");
            }
        }
    }

    fn laws(&mut self) {
        let now: BTreeMap<_, _> = self.plane.tasks().map(|task| (task.id.clone(), task.clone())).collect();
        for (id, before) in &self.seen {
            let after = now.get(id).expect("no task is ever lost");
            if before.state.is_terminal() {
                assert_eq!(before, after, "an ended task never changes");
            }
        }
        for task in now.values() {
            let listed = self.plane.open.of_runtime(&task.runtime).any(|id| *id == task.id);
            assert_eq!(listed, !task.state.is_terminal(), "the index of open tasks is exact");
            assert_eq!(task.lease_until.is_some(), task.state.is_preparing(), "a lease is for preparing");
            assert_eq!(task.ended_at.is_some(), task.state.is_terminal());
            if task.state == State::Failed {
                assert!(task.failure_reason.is_some());
            }
        }
        assert!(self.starts.values().all(|starts| *starts == 1), "a task starts once");
        let active: Vec<_> = now.values().filter(|task| task.state.is_active()).collect();
        assert!(active.iter().filter(|task| &*task.agent == "a0").count() <= 1, "the agent's cap");
        for (n, task) in active.iter().enumerate() {
            assert!(!active[n + 1..].iter().any(|other| task.excludes(other)), "one run for issue and agent");
        }
        let parents: Vec<_> = now.values().filter_map(|task| task.parent.as_ref()).collect();
        assert_eq!(
            parents.iter().collect::<BTreeSet<_>>().len(),
            parents.len(),
            "one retry for each failure"
        );
        self.seen = now;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_calls_in_any_order_keep_the_laws(calls in prop::collection::vec(call(), 1..120)) {
        let mut watch = Watch::new();
        for call in &calls {
            watch.call(call);
        }
    }

    #[test]
    fn a_stored_plane_goes_on_as_the_one_it_was_stored_from(
        before in prop::collection::vec(call(), 1..40),
        after in prop::collection::vec(call(), 1..20),
    ) {
        let mut watch = Watch::new();
        for call in &before {
            watch.call(call);
        }
        let text = serde_json::to_string(&watch.plane).expect("plain data");
        let mut other = Watch::new();
        other.plane = serde_json::from_str(&text).expect("what was written");
        prop_assert_eq!(&other.plane, &watch.plane);
        (other.now, other.seen) = (watch.now, watch.seen.clone());
        for call in &after {
            watch.call(call);
            other.call(call);
        }
        prop_assert_eq!(other.plane, watch.plane);
    }
}
