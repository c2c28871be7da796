//! The recording of a daemon, given away: while it runs, after it, and of several lives.

use crate::bed::{Bed, WITHIN, refused, succeeded};
use longshore_core::event::{Event, RunEvent};
use longshore_core::id::TaskId;
use longshore_core::trace::{Mode, Reader, Record, Replay, Report, Step};
use longshore_io_tokio::plane::State;
use longshore_io_tokio::trace_sink::segments;
use longshore_tests::{Said, trace_text};
use serde_json::{Value, json};
use std::fs;
use std::io::BufReader;
use std::os::unix::fs::PermissionsExt;

/// Replays it strictly, and returns the steps.
fn replayed(trace: &[u8]) -> (Report, Vec<Step>) {
    let open = || Reader::new(BufReader::new(trace)).expect("a header");
    let report = Replay::new(Mode::Strict).run(open()).expect("the core does what was recorded");
    assert_eq!((report.skipped, report.gaps), (0, 0), "{report:?}");
    let steps = open().filter_map(|record| match record.expect("a record") {
        Record::Step(step) => Some(step),
        _ => None,
    });
    (report, steps.collect())
}

fn launches(steps: &[Step]) -> usize {
    let launched = |step: &&Step| matches!(step.event, Some(Event::Run { run: RunEvent::Launched, .. }));
    steps.iter().filter(launched).count()
}

async fn completed(bed: &Bed, task: &TaskId) {
    bed.plane.wait_for(task, State::Completed, WITHIN).await.expect("it completes");
}

async fn dump(bed: &Bed, file: &str) -> Said {
    let said = bed.home.run(&["trace", "dump", "-o", file]).await;
    succeeded(&said);
    assert_eq!(said.out, "");
    said
}

#[tokio::test]
async fn a_dump_of_a_daemon_at_work_ends_with_its_last_step() {
    let bed = Bed::new().await;
    let daemon = bed.daemon().await;
    let (task, gate) = bed.at_work("gate").await;
    // The agent has spoken, so its launch is among the steps, however little of them is on the disk.
    let said = dump(&bed, "now.jsonl.gz").await;
    assert!(
        said.err.contains(&format!("(pid {})", daemon.id())) && said.err.contains("of 1 life"),
        "{said:?}"
    );
    let path = bed.home.dir().join("now.jsonl.gz");
    assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    let (_, first) = replayed(&trace_text(&path));
    assert_eq!(launches(&first), 1);
    let n = first.last().expect("steps").n;
    assert!(said.err.contains(&format!("the last is step {n} ")), "{said:?}");

    let again = bed.home.run(&["trace", "dump", "-o", "now.jsonl.gz"]).await;
    assert!(refused(&again).contains("exists already"), "{again:?}");
    let shown = bed.home.run(&["trace", "dump"]).await;
    succeeded(&shown);
    let (_, piped) = replayed(shown.out.as_bytes());
    assert_eq!(piped[..first.len()], first, "what is written to a pipe goes on where the file ends");

    let _open = gate.open();
    completed(&bed, &task).await;
    assert!(daemon.stop().await.status.success());
    let after = dump(&bed, "after.jsonl").await;
    assert!(after.err.contains("no daemon of this profile runs"), "{after:?}");
    let (report, all) = replayed(&trace_text(&bed.home.dir().join("after.jsonl")));
    assert_eq!(all[..first.len()], first);
    assert_eq!((report.lives, report.end.as_deref()), (1, Some("clean")));
    let replay = bed.home.run(&["trace", "replay", "after.jsonl"]).await;
    assert_eq!(replay.code, Some(0), "{replay:?}");
}

#[tokio::test]
async fn a_dump_holds_the_lives_before_as_well() {
    let bed = Bed::new().await;
    let killed = bed.daemon().await;
    let (task, gate) = bed.at_work("gate").await;
    killed.kill().await;
    succeeded(&bed.home.run(&["daemon", "start"]).await);
    let _open = gate.open();
    completed(&bed, &task).await;
    let said = dump(&bed, "both.jsonl").await;
    assert!(said.err.contains("of 2 lives"), "{said:?}");
    let (report, _) = replayed(&trace_text(&bed.home.dir().join("both.jsonl")));
    assert_eq!(report.lives, 2);
    succeeded(&bed.home.run(&["daemon", "stop"]).await);
}

#[tokio::test]
async fn where_nothing_is_recorded_that_is_said() {
    let bed = Bed::with(|home| home.config("trace_budget", json!(0))).await;
    let none = bed.home.run(&["trace", "dump", "-o", "x.jsonl"]).await;
    assert!(refused(&none).contains("longshore/trace"), "{none:?}");
    let told = "error: no daemon of this profile runs, and there is nothing recorded in ";
    assert!(none.err.starts_with(told) && !none.err.contains("the last one"), "one text: {none:?}");
    let daemon = bed.daemon().await;
    let off = bed.home.run(&["trace", "dump", "-o", "x.jsonl"]).await;
    assert!(off.err.contains("404 this daemon has no flight recorder"), "{off:?}");
    assert!(refused(&off).contains("trace_budget"), "{off:?}");
    assert!(!bed.home.dir().join("x.jsonl").exists() && !bed.home.state_dir().join("trace").exists());
    for (words, why) in [
        (["--profile", "nobody"], "no profile \"nobody\""),
        (["--profile", "../nobody"], "profile name \"../nobody\" cannot be used"),
        (["--health-port", "99999"], "--health-port"),
        (["--health-port", "one"], "--health-port"),
    ] {
        let wrong = bed.home.run(&[&["trace", "dump"], &words[..]].concat()).await;
        assert_eq!((wrong.code, wrong.out.as_str()), (Some(2), ""), "what was typed is wrong: {wrong:?}");
        assert!(wrong.err.starts_with("error: ") && wrong.err.contains(why), "{wrong:?}");
    }
    let inside = bed.home.run_with(&["trace", "dump"], &[("MULTICA_TASK_ID", "t-1")]).await;
    assert!(refused(&inside).contains("`longshore trace dump` does nothing inside of a task"), "{inside:?}");
    assert!(daemon.stop().await.status.success());
}

/// A daemon in whose flight recorder's place something stands, which is what a disk that refuses looks like.
#[tokio::test]
async fn while_the_disk_refuses_a_dump_says_so_and_when_it_does_not_any_more_there_is_one() {
    let bed = Bed::new().await;
    let dir = bed.home.state_dir().join("trace");
    fs::create_dir_all(bed.home.state_dir()).expect("a directory");
    fs::write(&dir, "").expect("a file");
    let daemon = bed.daemon().await;
    let none = bed.home.run(&["trace", "dump", "-o", "x.jsonl"]).await;
    let said = refused(&none);
    assert!(
        said.contains("there is nothing recorded in ")
            && said.contains("the daemon cannot record there since 20"),
        "{said}"
    );
    assert!(
        said.contains("(something that is no directory stands where")
            && said.contains("tries again every 10 s"),
        "{said}"
    );
    assert!(!said.contains("free some space"), "there is room: {said}");
    assert!(!bed.home.dir().join("x.jsonl").exists());
    let log = daemon.log();
    assert_eq!(log.matches("the trace cannot be written").count(), 1, "{log}");
    assert!(log.contains(&dir.display().to_string()), "{log}");
    fs::remove_file(&dir).expect("removed");
    let again = async {
        loop {
            let said = bed.home.run(&["trace", "dump"]).await;
            if said.code == Some(0) {
                break said;
            }
        }
    };
    let again = tokio::time::timeout(WITHIN, again).await.expect("it is tried again");
    assert!(!again.err.contains("warning"), "{again:?}");
    let report = Replay::new(Mode::Strict).run(Reader::new(again.out.as_bytes()).expect("a header"));
    let report = report.expect("the core does what was recorded");
    // It says itself that everything before its checkpoint is missing.
    let upto = report.from_checkpoint.expect("it begins in the middle");
    assert_eq!((report.gaps, report.lost, report.skipped), (1, upto + 1, 0), "{report:?}");
    assert!(again.out.contains("the disk did not take the first"), "{again:?}");
    assert!(daemon.stop().await.status.success());
}

/// Everything that somebody does to the directory of a daemon at work.
#[tokio::test]
async fn a_directory_that_is_removed_is_made_again_and_a_segment_that_is_missing_is_named() {
    let bed = Bed::new().await;
    let dir = bed.home.state_dir().join("trace");
    let daemon = bed.daemon().await;
    let (task, gate) = bed.at_work("gate").await;
    fs::remove_dir_all(&dir).expect("removed");
    let _open = gate.open();
    completed(&bed, &task).await;
    let made = async {
        loop {
            let said = bed.home.run(&["trace", "dump"]).await;
            if said.code == Some(0) {
                break said;
            }
            let why = refused(&said);
            assert!(why.contains("was removed or moved away") && !why.contains("free some space"), "{why}");
        }
    };
    let said = tokio::time::timeout(WITHIN, made).await.expect("it begins anew");
    let reader = Reader::new(said.out.as_bytes()).expect("a header");
    let report = Replay::new(Mode::Strict).run(reader).expect("the core does what was recorded");
    assert!(report.from_checkpoint.is_some() && report.compared == report.steps, "{report:?}");
    assert!(report.gaps == 1 && report.lost > 0, "what went with the directory is said: {report:?}");
    assert!(said.out.contains(" are missing: the segment that was written, or"), "{said:?}");
    let ended = daemon.stop().await;
    assert!(ended.status.success(), "{}", ended.log);
    assert_eq!(ended.log.matches("WRN the segment that was written, or").count(), 1, "{}", ended.log);

    // Two more lives, the first of which somebody removes.
    for _ in 0..2 {
        bed.daemon().await.stop().await;
    }
    let found = segments(&dir).expect("segments");
    let lost = &found[found.len() - 2];
    fs::remove_file(lost).expect("removed");
    let name = lost.file_name().and_then(|name| name.to_str()).expect("a name");
    let said = bed.home.run(&["trace", "dump", "-o", "x.jsonl"]).await;
    succeeded(&said);
    assert!(said.err.contains(&format!("{name} is not there; what was in it is missing")), "{said:?}");
    let read = bed.home.run(&["trace", "replay", dir.to_str().expect("text")]).await;
    assert!(
        read.code == Some(0) && read.err.contains(&format!("{name} is not there; what is in it")),
        "{read:?}"
    );
}

#[tokio::test]
async fn a_whole_run_is_recorded_in_the_background_too_and_over_a_restart() {
    let bed = Bed::new().await;
    succeeded(&bed.home.run(&["daemon", "start", "--record", "one.jsonl"]).await);
    let (task, gate) = bed.at_work("gate").await;
    let taken = bed.home.run(&["daemon", "restart", "--record", "one.jsonl"]).await;
    assert!(refused(&taken).contains("one.jsonl"), "{taken:?}");
    succeeded(&bed.home.run(&["daemon", "restart", "--record", "two.jsonl"]).await);
    let _open = gate.open();
    completed(&bed, &task).await;
    succeeded(&bed.home.run(&["daemon", "stop"]).await);
    for (file, cause) in [("one.jsonl", "restarting"), ("two.jsonl", "stopped")] {
        let path = bed.home.dir().join(file);
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        let (report, steps) = replayed(&trace_text(&path));
        assert_eq!((report.lives, report.end.as_deref()), (1, Some("clean")), "{file}");
        let last: Value = serde_json::to_value(steps.last().expect("steps")).expect("JSON");
        assert_eq!(
            last["fx"].as_array().and_then(|fx| fx.last()).expect("an exit")["report"]["cause"],
            cause
        );
    }
    let again = bed.home.run(&["daemon", "start", "--record", "two.jsonl"]).await;
    assert!(refused(&again).contains("two.jsonl exists already"), "{again:?}");
    assert!(bed.home.processes().is_empty());
}
