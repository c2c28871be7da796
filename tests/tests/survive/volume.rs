//! Much output and a slow server.

use crate::audit::{self, Audit};
use crate::rig::{Rig, WITHIN};
use crate::stage::numbers;
use longshore_core::plane::Plane;
use longshore_io_tokio::agent_double::Step;
use longshore_io_tokio::plane::{Action, Rule, State, TaskSpec};
use std::time::Duration;

/// A request of messages takes the server so long.
const SLOW: Duration = Duration::from_millis(200);
const LINES: u64 = 20_000;
/// The most memory that a daemon may come to have had, in bytes. It is some 25 MB before. Then it keeps 16 MiB of messages that the server
/// does not have, and has them in its hands again for a moment when it writes them down (as text) and when it sends them (4 MiB as messages
/// and as text); what is freed in between stays with the allocator for a while. 85 to 111 MiB were seen, with 50 to 240 MB of output.
/// Output that was all kept would come to 175 MB without a single copy.
const MEMORY: u64 = 144 << 20;

/// All that an agent says arrives, in order, and the daemon's memory stays flat. The peak.
async fn said_all(lines: u64, bytes: usize) -> u64 {
    let rig = Rig::new(|home| home).await;
    rig.fault("messages", |path| Rule::new("POST", &path, Action::Delay(SLOW)));
    let at_rest = rig.daemon().peak_memory();
    let script = [Step::Flood { lines, bytes }, Step::Result("said".into())];
    let task = rig.enqueue(TaskSpec::new("claude").script(&script));
    let row = rig.plane.wait_for(&task, State::Completed, 3 * WITHIN).await.expect("it completes");
    let peak = rig.daemon().peak_memory();
    let mut audit = Audit::default();
    let (said, want) = (audit::said(&rig, &row, &mut audit), numbers(lines, bytes));
    audit.require(said == want, || audit::differ(&said, &want));
    audit::leftovers(&rig, &mut audit).await;
    rig.stop().await;
    assert!(audit.wrong.is_empty(), "{:#?}", audit.wrong);
    println!("{} bytes: at most {} KiB of memory, {} KiB before", want.len(), peak >> 10, at_rest >> 10);
    assert!(peak < MEMORY, "{peak} bytes of memory for {} bytes of output", want.len());
    peak
}

#[tokio::test]
#[ignore = "takes longer: the server takes its time over each of many requests"]
async fn bug_12_20_000_lines_at_once_arrive_at_a_slow_server_and_memory_stays_flat() {
    said_all(LINES, 6).await;
}

#[tokio::test]
#[ignore = "takes longer: 150 MB"]
async fn bug_12_150_mb_arrive_at_a_slow_server_and_memory_stays_flat() {
    said_all(LINES, 7_500).await;
}

/// How much may be left of an agent's output when the daemon is told to stop, in lines of 5 kB.
const BUFFERED: u64 = 20_000;
/// A stop while the server has little of 100 MB yet, and takes seconds for each request: it ends in time, and nothing is lost.
#[tokio::test]
#[ignore = "takes longer: 100 MB, and a stop that uses its 30 s"]
async fn a_stop_with_much_that_is_not_sent_ends_in_time_and_the_next_daemon_sends_it() {
    let mut rig = Rig::new(|home| home).await;
    let slow = rig.fault("messages", |path| Rule::new("POST", &path, Action::Delay(Duration::from_secs(10))));
    let script = [Step::Flood { lines: BUFFERED, bytes: 5_000 }, Step::Result("said".into())];
    let spec = TaskSpec { max_attempts: 1, ..TaskSpec::new("claude").script(&script) };
    let task = rig.enqueue(spec);
    rig.spoke(&task).await;
    rig.daemon().terminate();
    let ended = rig.daemon().ended().await;
    assert!(ended.status.success(), "{}", ended.log);
    // It neither waits for what nobody will read, nor takes that for an agent that cannot be killed.
    let left = "what it said and the server does not have is left to the next daemon";
    assert!(ended.log.contains(left) && !ended.log.contains("their end was not seen"), "{}", ended.log);
    slow.remove();
    let before = rig.registrations();
    rig.start_next();
    rig.registered_since(before).await;
    let over = |plane: &Plane| plane.task(&task).filter(|row| row.state.is_terminal()).cloned();
    let tries = [rig.plane.wait_until(3 * WITHIN, over).await.expect("it ends")];
    let mut audit = Audit::default();
    let end = audit::endings(&rig, &tries, &mut audit);
    audit::leftovers(&rig, &mut audit).await;
    let (said, want) = (audit::said(&rig, &tries[0], &mut audit), numbers(BUFFERED, 5_000));
    audit.require(want.starts_with(&said), || audit::differ(&said, &want));
    println!("{end}, with {} of {} bytes", said.len(), want.len());
    rig.stop().await;
    assert!(audit.wrong.is_empty(), "{:#?}", audit.wrong);
}
