//! The rules of the plane, one test each; then all of them at once over random calls.

mod laws;
mod profiles;
mod rules;
mod stored;

use super::*;
use crate::time::{Instant, UnixMillis};

pub(super) fn at(seconds: u64) -> Now {
    let ms = seconds * 1000;
    Now::new(Instant::from_millis(ms), UnixMillis(i64::try_from(ms).expect("small")))
}

pub(super) fn registration(daemon: &str, providers: &[&str]) -> Registration {
    Registration {
        device_name: "box".into(),
        cli_version: "0.4.32".into(),
        runtimes: providers
            .iter()
            .map(|provider| RuntimeEntry {
                provider: (*provider).into(),
                version: "1".into(),
                online: true,
                ..RuntimeEntry::default()
            })
            .collect(),
        ..Registration::new("ws-1".into(), daemon)
    }
}

/// A plane with one workspace and one live runtime.
pub(super) fn plane() -> (Plane, RuntimeId) {
    let mut plane = Plane::new(7);
    plane.add_workspace("ws-1".into(), "one").expect("room");
    let id = plane.register(at(0), registration("d", &["claude"])).expect("registered").remove(0);
    plane.take_hints();
    (plane, id)
}

pub(super) fn issue(runtime: &RuntimeId, agent: &str, issue: &str) -> NewTask {
    NewTask::new(runtime.clone(), agent, Subject::Issue(issue.into()))
}

impl Plane {
    /// One task that was just claimed.
    pub(super) fn claimed(&mut self, now: Now, runtime: &RuntimeId) -> TaskId {
        let n = self.tasks.len();
        let id = self.enqueue(now, issue(runtime, &format!("a{n}"), &format!("i{n}"))).expect("enqueued");
        let got = self.claim(now, "d", std::slice::from_ref(runtime), 32).expect("claimed");
        assert!(got.iter().any(|it| it.task == id), "not handed out: {got:?}");
        id
    }

    /// One task that runs.
    pub(super) fn running(&mut self, now: Now, runtime: &RuntimeId) -> TaskId {
        let id = self.claimed(now, runtime);
        self.start(now, &id).expect("started");
        id
    }

    pub(super) fn state(&self, id: &TaskId) -> State {
        self.task(id).expect("there").state
    }
}

pub(super) fn failure(reason: &str) -> Failure {
    Failure { error: "it broke".into(), failure_reason: reason.into(), ..Failure::default() }
}
