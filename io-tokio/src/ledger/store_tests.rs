use super::super::VERSION;
use super::*;
use crate::wire::task::Task;
use longshore_core::codec::outcome::{Outcome, Status};
use longshore_core::effect::{Keep, ReportKind};
use longshore_core::event::{Offer, Recovered, RunEnd, RunOutcome};
use longshore_core::id::{Provider, SlotIndex};
use longshore_core::reason::FailReason;
use std::os::unix::fs::PermissionsExt;

struct Bed {
    temp: tempfile::TempDir,
}

impl Bed {
    fn new() -> Self {
        Self { temp: tempfile::tempdir().expect("a directory") }
    }

    fn dir(&self) -> PathBuf {
        self.temp.path().join("ledger")
    }

    fn open(&self) -> (Store, Found) {
        Store::open(self.dir()).expect("a ledger")
    }

    fn record(&self, claim: u64) -> PathBuf {
        self.dir().join(claim.to_string()).join(RECORD)
    }
}

fn task(id: &str) -> TaskFacts {
    let text = format!(r#"{{"id":"{id}","workspace_id":"w","runtime_id":"r","issue_id":"i"}}"#);
    TaskFacts::of(&serde_json::from_str::<Task>(&text).expect("a task"))
}

fn claimed(claim: u64) -> Effect {
    let offer = Offer {
        claim: ClaimKey(claim),
        task: format!("t{claim}").as_str().into(),
        runtime: "r".into(),
        root: "w/t".into(),
        prior: None,
        fault: None,
        in_place: false,
    };
    Effect::Keep { claim: ClaimKey(claim), entry: Keep::Claimed { offer, provider: Provider::new("claude") } }
}

fn launched(claim: u64) -> Effect {
    Effect::Keep { claim: ClaimKey(claim), entry: Keep::Launched { slot: SlotIndex(0), path: None } }
}

fn ended(claim: u64, report: Option<ReportKind>, have: u32) -> Effect {
    let entry = Keep::Ended { report, have, usage: false, ran: true, path: None };
    Effect::Keep { claim: ClaimKey(claim), entry }
}

fn keep(store: &Store, claim: u64, effect: &Effect) {
    store.keep(ClaimKey(claim), effect, &task(&format!("t{claim}")), Place::default(), Words::default());
}

fn was(found: &Found) -> Vec<(u64, Recovered)> {
    found.claims.iter().map(|set| (set.kept.record.claim().0, set.kept.record.was)).collect()
}

#[test]
fn what_was_kept_is_found_by_the_next_process_and_what_is_forgotten_is_gone() {
    let bed = Bed::new();
    let (store, found) = bed.open();
    assert!(found.claims.is_empty() && found.aside.is_empty());
    for claim in [1, 2, 12] {
        keep(&store, claim, &claimed(claim));
    }
    keep(&store, 2, &launched(2));
    keep(&store, 12, &ended(12, Some(ReportKind::Complete), 0));
    store.forget(ClaimKey(1));
    store.settle();
    let (next, found) = bed.open();
    let report = Some(ReportKind::Complete);
    assert_eq!(
        was(&found),
        [
            (2, Recovered::Launched { slot: SlotIndex(0), acked: 0 }),
            (12, Recovered::Ended { report, acked: 0, have: 0, usage: false, ran: true }),
        ]
    );
    assert_eq!(next.last_claim(), 12, "claims are numbered above it");
    assert!(!bed.record(1).parent().expect("a directory").exists());
}

#[test]
fn an_acknowledged_outcome_with_nothing_left_to_say_is_not_kept() {
    let bed = Bed::new();
    let (store, _) = bed.open();
    keep(&store, 1, &claimed(1));
    keep(&store, 1, &ended(1, Some(ReportKind::Complete), 0));
    keep(&store, 1, &ended(1, None, 0));
    store.settle();
    assert!(!bed.record(1).exists());
}

#[test]
fn everything_is_for_its_user_alone() {
    let bed = Bed::new();
    let (store, _) = bed.open();
    keep(&store, 1, &claimed(1));
    let told = RunOutcome { end: RunEnd::Completed, have: 0, usage: false, resume_rejected: false };
    let outcome = Outcome::failed(Status::Failed, FailReason::Unknown, "x".into());
    store.keep_outcome(ClaimKey(1), &KeptOutcome::new(2, outcome, told)).expect("written");
    store.settle();
    let mode = |path: &Path| path.metadata().expect("there").permissions().mode() & 0o777;
    let dir = bed.dir().join("1");
    assert_eq!((mode(&bed.dir()), mode(&dir)), (0o700, 0o700));
    assert_eq!((mode(&bed.record(1)), mode(&dir.join(OUTCOME))), (0o600, 0o600));
    let (_, found) = bed.open();
    assert_eq!(found.claims[0].outcome.as_ref().expect("kept").attempt, 2);
}

#[test]
fn a_record_that_cannot_be_read_is_set_aside_alone() {
    type Damage = fn(&str) -> String;
    let damages: [(&str, Damage); 4] = [
        ("is damaged", |text| text[..text.len() / 2].to_owned()),
        ("is damaged", |_| "\0\0\0\0".to_owned()),
        ("form 99", |text| text.replacen("\"version\":1", "\"version\":99", 1)),
        ("another claim", |text| text.replace("\"claim\":1,", "\"claim\":5,")),
    ];
    for (says, damage) in damages {
        let bed = Bed::new();
        let (store, _) = bed.open();
        for claim in [1, 2] {
            keep(&store, claim, &claimed(claim));
        }
        store.settle();
        let text = fs::read_to_string(bed.record(1)).expect("there");
        assert_ne!(damage(&text), text);
        fs::write(bed.record(1), damage(&text)).expect("damaged");
        let (_, found) = bed.open();
        assert_eq!(was(&found), [(2, Recovered::Claimed)]);
        let [(path, reason)] = &found.aside[..] else { panic!("{:?}", found.aside) };
        assert!(reason.contains(says), "{reason}");
        assert!(path.join(RECORD).exists(), "a person can look at it");
        assert!(bed.open().1.aside.is_empty(), "once");
    }
}

#[test]
fn a_directory_without_a_record_means_nothing() {
    let bed = Bed::new();
    let (store, _) = bed.open();
    keep(&store, 1, &claimed(1));
    store.settle();
    fs::remove_file(bed.record(1)).expect("removed");
    fs::create_dir(bed.dir().join("007")).expect("made");
    fs::write(bed.dir().join(".tmpAbC123"), "half").expect("written");
    let (_, found) = bed.open();
    assert!(found.claims.is_empty() && found.aside.is_empty());
    assert!(!bed.dir().join("1").exists() && bed.dir().join("007").exists());
    assert!(!bed.dir().join(".tmpAbC123").exists());
}

#[test]
fn the_form_before_is_read() {
    // A record as it was written by the first version that had a ledger.
    let bed = Bed::new();
    let dir = bed.dir().join("3");
    fs::create_dir_all(&dir).expect("made");
    fs::write(dir.join(RECORD), include_str!("fixtures/record-1.json")).expect("written");
    let (_, found) = bed.open();
    assert_eq!(was(&found), [(3, Recovered::Launched { slot: SlotIndex(1), acked: 0 })]);
    let text = include_str!("fixtures/record-1.json");
    assert!(
        text.contains(&format!("\"version\":{VERSION}")),
        "keep the old fixture, and add one of the new form"
    );
}

#[test]
fn what_the_disk_does_not_take_is_tried_again() {
    let bed = Bed::new();
    let (store, _) = bed.open();
    // Also for root there can be no directory where a file is.
    fs::write(bed.dir().join("1"), "in the way").expect("written");
    keep(&store, 1, &claimed(1));
    assert!(store.owes() && !store.is_written(ClaimKey(1)));
    store.write_again();
    assert!(store.owes());
    fs::remove_file(bed.dir().join("1")).expect("removed");
    store.write_again();
    assert!(!store.owes() && store.is_written(ClaimKey(1)) && bed.record(1).exists());
}

#[test]
fn a_run_is_not_over_for_the_next_process_before_what_it_came_to_is_written() {
    let bed = Bed::new();
    let (store, _) = bed.open();
    for effect in [claimed(1), launched(1)] {
        keep(&store, 1, &effect);
    }
    let followed = [(1, Recovered::Launched { slot: SlotIndex(0), acked: 0 })];
    store.withhold(ClaimKey(1), 2);
    keep(&store, 1, &ended(1, Some(ReportKind::Complete), 0));
    store.write_again();
    assert!(store.owes() && !store.is_written(ClaimKey(1)), "its run directory is still needed");
    assert_eq!(was(&bed.open().1), followed);
    let told = RunOutcome { end: RunEnd::Completed, have: 0, usage: false, resume_rejected: false };
    let outcome = Outcome::failed(Status::Failed, FailReason::Unknown, "x".into());
    store.keep_outcome(ClaimKey(1), &KeptOutcome::new(2, outcome, told)).expect("written");
    store.write_again();
    assert!(!store.owes() && store.is_written(ClaimKey(1)));
    let report = Some(ReportKind::Complete);
    assert_eq!(
        was(&bed.open().1),
        [(1, Recovered::Ended { report, acked: 0, have: 0, usage: false, ran: true })]
    );
}

#[test]
fn what_an_earlier_attempt_came_to_takes_the_place_of_no_later_one() {
    let bed = Bed::new();
    let (store, _) = bed.open();
    for effect in [claimed(1), launched(1)] {
        keep(&store, 1, &effect);
    }
    let of = |attempt: u32| {
        let told = RunOutcome { end: RunEnd::Completed, have: 0, usage: false, resume_rejected: false };
        let outcome = Outcome::failed(Status::Failed, FailReason::Unknown, attempt.to_string());
        KeptOutcome::new(attempt, outcome, told)
    };
    // The disk did not take the second one at first. The first one is tried again meanwhile, and once more afterwards.
    store.withhold(ClaimKey(1), 3);
    store.keep_outcome(ClaimKey(1), &of(2)).expect("written");
    keep(&store, 1, &ended(1, Some(ReportKind::Complete), 0));
    assert!(!store.is_written(ClaimKey(1)), "what the second one came to is still to be written");
    store.keep_outcome(ClaimKey(1), &of(3)).expect("written");
    store.keep_outcome(ClaimKey(1), &of(2)).expect("nothing is done");
    store.write_again();
    assert!(store.is_written(ClaimKey(1)));
    let kept = bed.open().1.claims.remove(0).outcome.expect("there");
    assert_eq!(kept.attempt, 3);
    // Nothing is made for a claim that is over.
    keep(&store, 1, &Effect::Forget { claim: ClaimKey(1) });
    store.keep_outcome(ClaimKey(1), &of(3)).expect("nothing is done");
    store.settle();
    assert!(!bed.dir().join("1").exists());
}

#[test]
fn a_ledger_that_was_removed_is_made_again() {
    let bed = Bed::new();
    let (store, _) = bed.open();
    fs::remove_dir_all(bed.dir()).expect("removed");
    keep(&store, 1, &claimed(1));
    assert!(store.is_written(ClaimKey(1)));
    let mode = bed.dir().metadata().expect("there").permissions().mode() & 0o777;
    assert_eq!((was(&bed.open().1), mode), (vec![(1, Recovered::Claimed)], 0o700));
}

#[test]
fn a_ledger_that_cannot_be_made_says_what_to_do() {
    let bed = Bed::new();
    fs::write(bed.dir(), "in the way").expect("written");
    let error = Store::open(bed.dir()).expect_err("a file is in the way").to_string();
    assert!(error.contains("cannot be used") && error.contains("move it away"), "{error}");
}
