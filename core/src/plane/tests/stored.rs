//! A plane that was made of stored rows is the one that they were stored from.

use super::*;
use crate::plane::limits::Limits;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Small ones, so that forgetting happens all the time.
fn tight() -> Limits {
    Limits { ended_tasks: 3, task_messages: 6, transcript_bytes: 2000, ..Limits::default() }
}

/// A plane and the rows that somebody keeps of it.
struct Kept {
    plane: Plane,
    runtimes: Vec<RuntimeId>,
    rows: BTreeMap<(Rows, String), Vec<u8>>,
}

impl Kept {
    fn new() -> Self {
        let mut plane = Plane::with_limits(7, tight());
        plane.track();
        let mut kept = Self { plane, runtimes: Vec::new(), rows: BTreeMap::new() };
        kept.plane.add_workspace("ws-1".into(), "one").expect("room");
        kept.register(0, "d");
        kept.store();
        kept
    }

    fn register(&mut self, now: u64, daemon: &str) {
        let mut from = registration(daemon, &["claude", "codex"]);
        from.legacy_daemon_ids = vec!["OLD".into()];
        self.runtimes = self.plane.register(at(now), from).expect("registered");
    }

    fn store(&mut self) {
        for change in self.plane.take_changes() {
            let key = (change.rows, change.key);
            match change.value {
                Some(value) => drop(self.rows.insert(key, value)),
                None => drop(self.rows.remove(&key)),
            }
        }
        self.plane.take_hints();
    }

    fn restored(&self) -> Result<Plane, Damaged> {
        let rows = self.rows.iter().map(|((rows, key), value)| (*rows, key.clone(), value.clone()));
        let mut plane = Plane::restore(99, tight(), rows)?;
        plane.track();
        plane.take_changes();
        Ok(plane)
    }

    /// Any call, refused or not.
    fn call(&mut self, now: u64, what: u8, n: u8) {
        let (time, plane) = (at(now), &mut self.plane);
        let runtime = self.runtimes[usize::from(n) % self.runtimes.len()].clone();
        let task = plane.tasks().nth(usize::from(n) % plane.tasks().count().max(1)).map(|it| it.id.clone());
        let task = task.unwrap_or_else(|| "none".into());
        let profile = plane.profiles(&"ws-1".into()).next().map(|row| row.id.clone());
        let message = |seq: i32| Message {
            seq,
            kind: "text".into(),
            tool: None,
            content: Some("hello".into()),
            input: None,
            output: None,
            at: time,
        };
        let new = issue(&runtime, &format!("a{}", n % 5), &format!("i{}", n % 7));
        match what % 20 {
            0 | 1 => drop(plane.enqueue(time, new)),
            2 | 3 => drop(plane.claim(time, "d", &self.runtimes, usize::from(n % 5))),
            4 | 5 => drop(plane.start(time, &task).cloned()),
            6 => drop(plane.complete(time, &task, Completion::default()).cloned()),
            7 => drop(plane.fail(time, &task, &failure("timeout")).cloned()),
            8 => drop(plane.cancel(time, &task).cloned()),
            9 | 10 => drop(plane.post_messages(&task, (0..i32::from(n % 4)).map(message).collect())),
            11 => drop(plane.delete_task(&task)),
            12 => drop(plane.pin_session(&task, "s", "w")),
            13 => plane.sweep(time),
            14 => drop(plane.delete_runtime(time, &runtime)),
            15 => self.register(now, if n.is_multiple_of(2) { "d" } else { "old" }),
            16 => drop(plane.add_profile(time, &"ws-1".into(), ProfileSpec::new("p", "claude", "mine"))),
            17 => {
                plane.set_agent_cap("a1", usize::from(n % 3));
                plane.set_subject_status(time, "i1", "done");
            }
            18 => {
                let repo = Repo { url: format!("https://r/{n}").into(), description: Text::default() };
                plane.set_repos(&"ws-1".into(), vec![repo]).expect("there");
            }
            _ => {
                if let Some(profile) = profile {
                    plane.remove_profile(time, &profile);
                }
            }
        }
        if self.plane.runtimes().next().is_none() {
            self.register(now, "d");
        }
        self.store();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn after_any_call_the_stored_rows_make_the_same_plane(
        calls in prop::collection::vec((0..200u64, any::<u8>(), any::<u8>()), 1..80),
    ) {
        let (mut kept, mut now) = (Kept::new(), 0);
        for (wait, what, n) in calls {
            now += wait;
            kept.call(now, what, n);
            let restored = kept.restored();
            prop_assert_eq!(restored.as_ref(), Ok(&kept.plane));
        }
    }
}

#[test]
fn a_plane_that_nobody_stores_notes_nothing() {
    let (mut plane, runtime) = plane();
    plane.running(at(0), &runtime);
    assert_eq!(plane.take_changes(), []);
}

#[test]
fn a_call_tells_only_the_rows_that_it_changed() {
    let (mut plane, runtime) = plane();
    let (first, second) = (plane.running(at(0), &runtime), plane.running(at(0), &runtime));
    plane.track();
    let all = plane.take_changes();
    assert!(all.iter().all(|change| change.value.is_some()));
    plane.complete(at(1), &second, Completion::default()).expect("running");
    let told: Vec<_> = plane.take_changes().into_iter().map(|change| (change.rows, change.key)).collect();
    assert_eq!(told, [(Rows::Counters, String::new()), (Rows::Tasks, second.to_string())]);
    plane.status(&first).expect("there");
    assert_eq!(plane.take_changes(), []);
}

#[test]
fn rows_that_contradict_each_other_are_refused_with_the_place() {
    let mut kept = Kept::new();
    let runtime = kept.runtimes[0].clone();
    let task = kept.plane.running(at(0), &runtime);
    kept.store();
    assert!(kept.restored().is_ok());
    let place = (Rows::Tasks, task.to_string());
    let sound = kept.rows[&place].clone();
    let text = String::from_utf8(sound.clone()).expect("JSON");
    for (from, to, what) in [
        ("\"running\"", "\"completed\"", "its state and its end"),
        ("\"running\"", "\"dispatched\"", "its state and its lease"),
        ("\"running\"", "\"flying\"", "unknown variant"),
        ("{", "[", "expected"),
    ] {
        kept.rows.insert(place.clone(), text.replacen(from, to, 1).into_bytes());
        let why = kept.restored().expect_err("damaged");
        assert_eq!((why.rows, why.key.as_str()), (Rows::Tasks, task.as_str()));
        assert!(why.what.contains(what), "{why}");
    }
    kept.rows.insert(place.clone(), sound);
    let moved = kept.rows.remove(&(Rows::Runtimes, runtime.to_string())).expect("there");
    assert!(kept.restored().expect_err("damaged").what.contains("its runtime is not there"));
    kept.rows.insert((Rows::Runtimes, "another".into()), moved);
    assert!(kept.restored().expect_err("damaged").what.contains("the row is"));
    kept.rows.clear();
    assert_eq!(kept.restored().expect("no rows are a new plane").tasks().count(), 0);
}
