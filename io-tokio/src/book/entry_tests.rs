use super::*;
use crate::book::{Book, Stream};
use crate::ledger::{At, Place, Store, TaskFacts, Words};
use longshore_core::codec::for_provider;
use longshore_core::codec::message::AgentMessage;
use longshore_core::codec::options::Options;
use longshore_core::codec::outcome::Status;
use longshore_core::effect::{Effect, Keep};
use longshore_core::event::{Offer, RunEnd, RunOutcome};
use longshore_core::id::{Provider, SlotIndex};
use std::path::Path;
use std::sync::Arc;

const CLAIM: ClaimKey = ClaimKey(1);

/// A claim that was launched, of which this much more was written down, as the next process has it.
fn taken_over(dir: &Path, stream: Option<(u32, &str)>, outcome: Option<KeptOutcome>) -> Arc<Entry> {
    let task: Task =
        serde_json::from_str(r#"{"id":"t","workspace_id":"w","prior_session_id":"old"}"#).expect("a task");
    let (store, _) = Store::open(dir).expect("a ledger");
    let offer = Offer {
        claim: CLAIM,
        task: "t".into(),
        runtime: "r".into(),
        root: "w/t".into(),
        prior: None,
        fault: None,
        in_place: false,
    };
    let claimed = Keep::Claimed { offer, provider: Provider::new("claude") };
    for entry in [claimed, Keep::Launched { slot: SlotIndex(0), path: None }] {
        let effect = Effect::Keep { claim: CLAIM, entry };
        store.keep(CLAIM, &effect, &TaskFacts::of(&task), Place::default(), Words::default());
    }
    if let Some((attempt, session)) = stream {
        let codec = for_provider("claude").expect("a codec").start(&Options::default());
        let stream = Stream { session: Some(session.to_owned()), ..Stream::new(attempt, codec, true) };
        let mut journal = Journal::new(store.outbox(CLAIM), 0);
        journal.add(&[], &At::of(&stream, 0)).expect("written");
    }
    if let Some(outcome) = outcome {
        store.keep_outcome(CLAIM, &outcome).expect("written");
    }
    store.settle();
    let (next, mut found) = Store::open(dir).expect("a ledger");
    Book::new(next).take_over(found.claims.remove(0))
}

fn rejected() -> KeptOutcome {
    let reason = FailReason::Unknown;
    let told = RunOutcome { end: RunEnd::Failed { reason }, have: 0, usage: false, resume_rejected: true };
    let outcome = Outcome::failed(Status::Failed, reason, "no such session".into());
    let mut kept = KeptOutcome::new(2, outcome, told);
    kept.retired_session = Some("old".into());
    kept
}

#[test]
fn the_session_of_a_run_that_goes_on_is_known_to_the_next_process() {
    let dir = tempfile::tempdir().expect("a directory");
    let entry = taken_over(dir.path(), Some((2, "named")), None);
    assert_eq!(entry.ending().session.as_deref(), Some("named"), "it is pinned again");
    assert_eq!(entry.failure(FailReason::Timeout).pointers.session_id, "named");
}

#[test]
fn a_session_that_turned_out_dead_is_told_by_the_next_process() {
    for stream in [None, Some((2, "dead"))] {
        let dir = tempfile::tempdir().expect("a directory");
        let entry = taken_over(dir.path(), stream, Some(rejected()));
        let pointers = entry.failure(FailReason::RuntimeOffline).pointers;
        assert_eq!((pointers.session_id.as_str(), pointers.retired_session_id.as_str()), ("", "old"));
    }
}

#[test]
fn the_session_of_an_attempt_after_a_dead_one_is_its_own() {
    let dir = tempfile::tempdir().expect("a directory");
    let entry = taken_over(dir.path(), Some((3, "fresh")), Some(rejected()));
    let ending = entry.ending();
    assert_eq!((ending.session.as_deref(), ending.retired_session.as_deref()), (Some("fresh"), Some("old")));
}

/// Two that want it written at the same time, as a request does and the reader of the output: one writes, and the other finds it done.
#[tokio::test]
async fn inv_101_what_two_writers_find_unwritten_is_written_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let entry = taken_over(dir.path(), Some((2, "named")), None);
    for round in 1..=50 {
        entry.outbox.push(AgentMessage::Error { text: round.to_string() }, "");
        let writers = [(), ()].map(|()| {
            let entry = entry.clone();
            tokio::spawn(async move { entry.write_down().await })
        });
        for writer in writers {
            writer.await.expect("no panic").expect("written");
        }
    }
    // One whose request is given up in the middle writes all the same.
    for round in 51..=100 {
        entry.outbox.push(AgentMessage::Error { text: round.to_string() }, "");
        drop(futures_util::poll!(Box::pin(entry.write_down())));
        entry.write_down().await.expect("written");
    }
    let (ledger, _) = Store::open(dir.path()).expect("a ledger");
    let journal = std::fs::read_to_string(ledger.outbox(CLAIM)).expect("there");
    assert_eq!(journal.matches("\"said\"").count(), 100);
}
