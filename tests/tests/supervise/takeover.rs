//! Output of a run that goes from daemon to daemon: no byte lost, none doubled.

use crate::bench::{Bench, LIMIT, listen, seq, until};
use longshore_io_tokio::supervise::{Credit, LaunchSpec, Position, Run, RunEvent};
use std::fs::File;
use std::io::Write;
use std::process::Command;

const BUDGET: u64 = 1_000_000;

fn writing(bench: &Bench, text: &str) -> LaunchSpec {
    let mut spec = bench.shell(text);
    (spec.credit, spec.spool_budget) = (Credit::Explicit, BUDGET);
    spec
}

/// Reads about so many bytes of stdout as one daemon does, acknowledges up to the last line end, and is gone with what it read
/// after it. Gives the acknowledged position, and whether that was the end.
async fn read_some(run: &mut Run, from: u64, count: u64, kept: &mut impl Write) -> (Position, bool) {
    let mut acknowledged = Position { stdout: from, stderr: 0 };
    let mut rest = Vec::new();
    loop {
        match tokio::time::timeout(LIMIT, run.next()).await.expect("it goes on") {
            RunEvent::Stdout(bytes) => {
                rest.extend_from_slice(&bytes);
                if run.position().stdout >= from + count {
                    return (acknowledged, false);
                }
                let whole = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                let lines: Vec<u8> = rest.drain(..whole).collect();
                kept.write_all(&lines).expect("kept");
                acknowledged.stdout += lines.len() as u64;
                run.acknowledge(acknowledged);
            }
            RunEvent::Stderr(bytes) => panic!("{bytes:?}"),
            RunEvent::Ended(record) => {
                assert!(record.success() && rest.is_empty(), "{record:?}");
                return (acknowledged, true);
            }
        }
    }
}

async fn relay(upto: u32, step: u64) {
    let bench = Bench::new();
    let spec = writing(&bench, &format!("seq 1 {upto}"));
    let kept = bench.dir.path().join("kept");
    let mut file = File::create(&kept).expect("created");
    let mut run = bench.launch(spec).await;
    let dir = run.dir().clone();
    let (mut position, mut over) = read_some(&mut run, 0, step, &mut file).await;
    let mut daemons = 1;
    while !over {
        drop(run);
        run = bench.launcher.attach(dir.path(), position, Credit::Explicit).await.expect("attached");
        (position, over) = read_some(&mut run, position.stdout, step, &mut file).await;
        daemons += 1;
    }
    assert!(daemons > 4, "{daemons} daemons");
    // Compared by programs: 100 MB are too many for a debug build.
    let compare = format!("seq 1 {upto} | cmp - kept");
    let same = Command::new("/bin/sh").args(["-c", &compare]).current_dir(bench.dir.path()).status();
    assert!(same.expect("sh runs").success(), "bytes were lost or doubled");
}

#[tokio::test]
async fn no_byte_is_lost_or_doubled_from_daemon_to_daemon() {
    relay(1_000_000, 1_500_000).await;
}

#[tokio::test]
#[ignore = "takes longer: 100 MB"]
async fn no_byte_of_a_hundred_megabytes_is_lost_or_doubled_from_daemon_to_daemon() {
    relay(12_500_000, 10_000_000).await;
}

#[tokio::test]
async fn an_agent_waits_at_the_budget_while_no_daemon_is_there() {
    let bench = Bench::new();
    let run = bench.launch(writing(&bench, "seq 1 400000; : >written")).await;
    let dir = run.dir().clone();
    drop(run);
    let spooled = || dir.file("stdout").metadata().expect("there").len();
    until("the spool is full", || spooled() >= BUDGET).await;
    let full = spooled();
    assert!(full <= BUDGET + 64 * 1024, "{full} bytes are spooled");
    assert!(!bench.dir.path().join("written").exists(), "the agent did not wait");
    let mut run =
        bench.launcher.attach(dir.path(), Position::default(), Credit::OnRead).await.expect("attached");
    assert_eq!(spooled(), full, "it wrote on without a daemon");
    let said = listen(&mut run).await;
    let expected = seq(400_000);
    assert!(said.stdout == expected.as_bytes() && said.record.success());
}
