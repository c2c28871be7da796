//! One run: a shell whose output is read line by line.

use longshore_core::event::{Event, RunEnd, RunEvent, RunOutcome};
use longshore_core::id::OpId;
use longshore_core::reason::FailReason;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often a process is looked at that has closed its output and is not gone.
const LOOK: Duration = Duration::from_millis(5);

/// What a run shares with the thread that follows it.
#[derive(Clone, Default)]
pub(crate) struct Run {
    child: Arc<Mutex<Option<Child>>>,
    /// What was said; the first line has number 1.
    lines: Arc<Mutex<Vec<String>>>,
}

impl Run {
    /// Starts it; what comes of it goes to `events`, `Ended` last.
    pub(crate) fn start(&self, op: OpId, script: &str, dir: &Path, events: Sender<Event>) {
        let tell = move |run| events.send(Event::Run { op, run }).is_ok();
        let spawned = Command::new("sh")
            .args(["-c", script])
            .current_dir(dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut child) = spawned else {
            tell(ended(RunEnd::Failed { reason: FailReason::ProcessFailure }, 0));
            return;
        };
        let said = child.stdout.take();
        *self.child.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
        let run = self.clone();
        std::thread::spawn(move || {
            tell(RunEvent::Launched);
            let mut have = 0;
            for line in said.map(BufReader::new).into_iter().flat_map(BufRead::lines).map_while(Result::ok) {
                run.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
                have += 1;
                tell(RunEvent::Progress { have, session: false, tools: 0 });
            }
            // Its output is closed: it is gone, or will be soon. It stays in reach of a kill until it is.
            tell(ended(run.wait(), have));
        });
    }

    fn wait(&self) -> RunEnd {
        loop {
            let mut held = self.child.lock().unwrap_or_else(PoisonError::into_inner);
            let status = held.as_mut().map(Child::try_wait);
            drop(held);
            match status {
                // The standard library can wait for a process or leave it in reach of a kill, not both.
                Some(Ok(None)) => std::thread::park_timeout(LOOK),
                Some(Ok(Some(status))) if status.success() => return RunEnd::Completed,
                _ => return RunEnd::Failed { reason: FailReason::ProcessFailure },
            }
        }
    }

    /// The standard library knows only one signal, so the polite one is as good as the last.
    pub(crate) fn kill(&self) {
        if let Some(child) = self.child.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            // It may be gone already.
            let _ = child.kill();
        }
    }

    /// The messages after `after`, up to and with `upto`, with their numbers.
    pub(crate) fn messages(&self, after: u32, upto: u32) -> Vec<(u32, String)> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let numbered = (1..).zip(lines.iter().cloned());
        numbered.filter(|(seq, _)| (after + 1..=upto).contains(seq)).collect()
    }
}

const fn ended(end: RunEnd, have: u32) -> RunEvent {
    RunEvent::Ended { outcome: RunOutcome { end, have, usage: false, resume_rejected: false } }
}
