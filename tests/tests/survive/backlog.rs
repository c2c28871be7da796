//! Very many results that the server has not taken: what they cost the daemon, and that all of them arrive.

use crate::rig::{Rig, until, within};
use longshore_io_tokio::agent_double::Step;
use longshore_io_tokio::plane::{Action, Rule, TaskSpec};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

const RESULTS: u64 = 1_000;
/// So many of them are still to be reported; of the others only messages are left.
const UNREPORTED: u64 = 200;
/// What each agent said: lines, and the bytes of each.
const SAID: (u64, usize) = (8, 20_000);
/// The most memory that a daemon may come to have had, in bytes. All that was said comes to 160 MB without a single copy, beside the 25 MB that
/// the daemon needs without any of it. 127 MiB were seen, most of it for the reports, which are all told at once.
const MEMORY: u64 = 160 << 20;
/// All of them take a debug build on a machine with a lot to do this long at most.
const LONG: Duration = Duration::from_mins(5);

/// Makes as many of the one record that is there, each about another claim and task. Of most of them the server has taken the end, and not yet
/// what was said.
fn multiply(ledger: &Path, task: &str) {
    let first = ledger.join("1");
    let text = |name: &str| fs::read_to_string(first.join(name)).expect("it was written");
    let (record, outcome, outbox) = (text("record.json"), text("outcome.json"), text("outbox.jsonl"));
    let mut told: Value = serde_json::from_str(&record).expect("JSON");
    told["record"]["report"] = Value::Null;
    let told = told.to_string();
    for claim in 2..=RESULTS {
        let id = format!("{}{claim:012}", &task[..task.len() - 12]);
        let (key, own) = (&task[task.len() - 12..], &id[id.len() - 12..]);
        let record = if claim <= UNREPORTED { &record } else { &told };
        let about =
            |text: &str| text.replace(key, own).replace("\"claim\":1,", &format!("\"claim\":{claim},"));
        let dir = ledger.join(claim.to_string());
        fs::create_dir(&dir).expect("made");
        fs::write(dir.join("record.json"), about(record)).expect("written");
        fs::write(dir.join("outcome.json"), about(&outcome)).expect("written");
        fs::write(dir.join("outbox.jsonl"), &outbox).expect("written");
    }
}

#[tokio::test]
#[ignore = "takes longer: 1 000 results, and 160 MB of messages"]
async fn very_many_results_that_were_not_taken_are_delivered_and_do_not_fill_the_memory() {
    let mut rig = Rig::new(|home| home).await;
    let calls = ["messages", "complete"];
    let refused =
        calls.map(|call| rig.fault(call, |path| Rule::new("POST", &path, Action::error(503, "no"))));
    let script = [Step::Flood { lines: SAID.0, bytes: SAID.1 }, Step::Result("said".into())];
    // The control plane does not hear of its end: it is not to be tried again.
    let task = rig.enqueue(TaskSpec { max_attempts: 1, ..TaskSpec::new("claude").script(&script) });
    until("the report", || (!rig.calls(&task, "complete").is_empty()).then_some(())).await;
    rig.kill().await;
    let ledger = rig.home.state_dir().join("ledger");
    multiply(&ledger, task.as_str());
    for fault in &refused {
        fault.remove();
    }
    // The control plane knows none but the first of them.
    let taken = |body: &str| Action::Reply { status: 200, body: body.to_owned(), headers: Vec::new() };
    let reports = rig.fault("complete", |path| Rule::new("POST", &path, taken(r#"{"status":"completed"}"#)));
    let messages = rig.fault("messages", |path| Rule::new("POST", &path, taken(r#"{"status":"ok"}"#)));
    rig.fault("usage", |path| Rule::new("POST", &path, taken(r#"{"status":"ok"}"#)));
    rig.fault("messages", |path| Rule::new("GET", &path, taken("[]")));

    let (before, begun) = (rig.registrations(), Instant::now());
    rig.start_next();
    rig.registered_since(before).await;
    let registered = begun.elapsed();
    let left = || fs::read_dir(&ledger).expect("listed").count();
    let empty = within(LONG, || (left() == 0).then_some(())).await;
    let (drained, peak) = (begun.elapsed(), rig.daemon().peak_memory());
    println!(
        "{RESULTS} results: registered after {registered:?}, all delivered after {drained:?}, at most {} KiB of memory",
        peak >> 10
    );
    assert!(empty.is_some(), "{} are left", left());
    assert_eq!((reports.hits(), messages.hits()), (UNREPORTED, RESULTS), "each once");
    assert!(peak < MEMORY, "{peak} bytes");
    rig.stop().await;
}
