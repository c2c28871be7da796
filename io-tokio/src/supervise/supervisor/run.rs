//! A run: copy, feed, obey, reap, until the last process of it is gone.

use super::Signals;
use super::feed::Feed;
use super::spool::{CHUNK, Spool};
use crate::supervise::cgroup::Group;
use crate::supervise::protocol::Command;
use crate::supervise::record::{EndedBy, ExitRecord, RunDir};
use crate::supervise::tree::{self, Children, Ending};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal};
use std::fs::File;
use std::io::{self, Read};
use std::time::{Duration, Instant};

/// Grace when a signal from outside asks this process to stop.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// Longest command on the control FIFO, in bytes; a longer one is thrown away up to its line end.
const MAX_COMMAND: usize = 4096;

/// How long and how often an exit record is tried to be written when the disk does not take it.
const RECORD_TRIES: u32 = 60;
const RECORD_PAUSE: Duration = Duration::from_millis(500);

/// The parts of a run.
pub(super) struct Run {
    pub(super) agent: Pid,
    pub(super) control: File,
    pub(super) stdout: Spool,
    pub(super) stderr: Spool,
    pub(super) feed: Feed,
    /// From the polite signal to what the agent left behind until the kill.
    pub(super) leftover_grace: Duration,
    /// Holds all that the agent starts, where there is one.
    pub(super) group: Option<Group>,
}

/// Stays until the run is over and its record is written.
///
/// `parent` was the daemon at the start.
pub(super) fn supervise(run: Run, mut signals: Signals, parent: Option<Pid>, dir: &RunDir) -> io::Result<()> {
    let mut state = State {
        run,
        commands: Vec::new(),
        skipping: false,
        kill_at: None,
        agent: Agent::Runs,
        asked: false,
        record: ExitRecord::new(EndedBy::Itself),
    };
    let mut buffer = vec![0; CHUNK];
    state.run.feed.pump();
    // The agent may have ended before the handler's first byte was looked at.
    let mut signalled = true;
    loop {
        if signalled && signals.take() {
            state.end(STOP_GRACE, EndedBy::SupervisorStopped);
        }
        if signalled && state.reap() == Flow::Over || state.kill_if_due(&signals) == Flow::Over {
            break;
        }
        signalled = state.move_bytes(&signals, &mut buffer)?;
    }
    if let Some(group) = &state.run.group {
        group.end();
    }
    state.finish(&mut buffer);
    write_record(&state.record, dir)?;
    // A daemon that waits for our end sees to it beside its own work.
    if rustix::process::getppid() != parent {
        dir.sync("exit.json");
    }
    Ok(())
}

#[derive(PartialEq, Eq)]
enum Flow {
    On,
    Over,
}

#[derive(PartialEq, Eq)]
enum Agent {
    Runs,
    /// And is reaped: its number is no longer ours to signal.
    Ended,
}

struct State {
    run: Run,
    /// A command that has no line end yet.
    commands: Vec<u8>,
    /// The current command is too long.
    skipping: bool,
    /// When everything that is left is killed.
    kill_at: Option<Instant>,
    agent: Agent,
    /// What the agent left behind was asked to end.
    asked: bool,
    record: ExitRecord,
}

impl State {
    /// Reaps what ended; when that is the agent, asks what it left behind to end as well.
    fn reap(&mut self) -> Flow {
        let agent = self.run.agent;
        loop {
            match tree::reap_all_but(agent) {
                Children::None => return Flow::Over,
                Children::Running if self.agent == Agent::Runs => return Flow::On,
                Children::Running => {
                    if !self.asked || self.record.leftovers.is_empty() {
                        self.ask_leftovers();
                    }
                    return Flow::On;
                }
                Children::LeaderEnded => {
                    // Not reaped yet, so the group is still its own. Nothing is left in it as a rule.
                    if tree::has_children_but(agent) {
                        self.record.leftovers = tree::running();
                    }
                    tree::ask_group_to_end(agent);
                    // Without a subreaper this is the last moment at which what is left can be reached.
                    #[cfg(not(target_os = "linux"))]
                    tree::signal_group(agent, Signal::KILL);
                    self.ended(tree::reap(agent));
                }
            }
        }
    }

    fn ended(&mut self, ending: Option<Ending>) {
        let Ending { code, signal } = ending.unwrap_or_default();
        self.record.code = code;
        self.record.signal = signal;
        self.agent = Agent::Ended;
        let grace_end = Instant::now() + self.run.leftover_grace;
        self.kill_at = Some(self.kill_at.map_or(grace_end, |at| at.min(grace_end)));
    }

    fn ask_leftovers(&mut self) {
        self.asked = true;
        let found = tree::signal_descendants(Signal::TERM, Some(self.run.agent));
        if self.record.leftovers.is_empty() {
            self.record.leftovers = found;
        }
    }

    /// Asks the agent to end, and kills everything after the grace. The first one who asks is the one who ended it;
    /// a later one can only shorten the grace.
    fn end(&mut self, grace: Duration, by: EndedBy) {
        if self.agent == Agent::Runs {
            if self.record.ended_by == EndedBy::Itself {
                self.record.ended_by = by;
                if !grace.is_zero() {
                    tree::ask_group_to_end(self.run.agent);
                }
            }
            if by == EndedBy::Kill {
                self.record.ended_by = by;
            }
        }
        let at = Instant::now() + grace;
        self.kill_at = Some(self.kill_at.map_or(at, |earlier| earlier.min(at)));
    }

    fn kill_if_due(&mut self, signals: &Signals) -> Flow {
        if self.kill_at.is_none_or(|at| Instant::now() < at) {
            return Flow::On;
        }
        let leader = (self.agent == Agent::Runs).then_some(self.run.agent);
        let killed = tree::kill_all(leader, &signals.woken, || {
            if let Some(group) = &self.run.group {
                group.kill();
            }
        });
        if leader.is_some() {
            self.ended(killed.ending);
        } else if self.record.leftovers.is_empty() {
            // It was too fast for the looks before.
            self.record.leftovers = killed.first;
        }
        self.record.unkilled = killed.left;
        Flow::Over
    }

    /// Waits for something to do and does it; true when a signal came.
    fn move_bytes(&mut self, signals: &Signals, buffer: &mut [u8]) -> io::Result<bool> {
        let run = &self.run;
        let retries = [run.stdout.retry_at(), run.stderr.retry_at()];
        let wake_at = retries.into_iter().flatten().chain(self.kill_at).min();
        // Rounded up: a wake-up before the time would spin.
        let wait = wake_at.map(|at| at.saturating_duration_since(Instant::now()) + Duration::from_millis(1));
        let timeout = wait.and_then(|wait| Timespec::try_from(wait).ok());
        let mut fds =
            vec![PollFd::new(&signals.woken, PollFlags::IN), PollFd::new(&run.control, PollFlags::IN)];
        let pipe_at = run.feed.pipe().map(|(pipe, wants)| {
            fds.push(PollFd::new(pipe, if wants { PollFlags::OUT } else { PollFlags::empty() }));
            fds.len() - 1
        });
        if let Some(fifo) = run.feed.fifo() {
            fds.push(PollFd::new(fifo, PollFlags::IN));
        }
        for pipe in [run.stdout.wanted(), run.stderr.wanted()].into_iter().flatten() {
            fds.push(PollFd::new(pipe, PollFlags::IN));
        }
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let has = |at: usize, flags: PollFlags| fds.get(at).is_some_and(|fd| fd.revents().intersects(flags));
        let signalled = has(0, PollFlags::IN);
        let commanded = has(1, PollFlags::IN);
        let closed = pipe_at.is_some_and(|at| has(at, PollFlags::ERR | PollFlags::NVAL));
        drop(fds);

        if closed {
            self.run.feed.agent_closed();
        }
        if commanded {
            self.read_commands(buffer);
        }
        self.run.feed.pump();
        self.run.stdout.copy(buffer);
        self.run.stderr.copy(buffer);
        Ok(signalled)
    }

    fn read_commands(&mut self, buffer: &mut [u8]) {
        let count = self.run.control.read(buffer).unwrap_or(0);
        for byte in buffer.get(..count).unwrap_or_default() {
            match byte {
                b'\n' if self.skipping => self.skipping = false,
                b'\n' => {
                    let line = std::mem::take(&mut self.commands);
                    // A line that is no command changes nothing: the daemon is the only writer.
                    if let Ok(command) = serde_json::from_slice(&line) {
                        self.obey(&command);
                    }
                }
                _ if self.commands.len() < MAX_COMMAND => self.commands.push(*byte),
                _ => {
                    self.commands.clear();
                    self.skipping = true;
                }
            }
        }
    }

    fn obey(&mut self, command: &Command) {
        match *command {
            Command::CloseStdin => self.run.feed.close_when_empty(),
            Command::End { grace_ms } => self.end(Duration::from_millis(grace_ms), EndedBy::Cancel),
            Command::Kill => self.end(Duration::ZERO, EndedBy::Kill),
            Command::Credit { stdout, stderr } => {
                self.run.stdout.acknowledge(stdout);
                self.run.stderr.acknowledge(stderr);
            }
        }
    }

    /// Reads what the agent's pipes still hold, and closes the books.
    fn finish(&mut self, buffer: &mut [u8]) {
        self.record.lost_output = self.run.stdout.finish(buffer) + self.run.stderr.finish(buffer);
        self.record.stdout_len = self.run.stdout.written();
        self.record.stderr_len = self.run.stderr.written();
        if self.record.lost_output > 0 {
            self.record.note = Some("the disk refused the end of the agent's output".into());
        }
    }
}

fn write_record(record: &ExitRecord, dir: &RunDir) -> io::Result<()> {
    let mut tries = 0;
    loop {
        match dir.write_json("exit.json", record) {
            Err(error) if error.kind() != io::ErrorKind::NotFound && tries < RECORD_TRIES => tries += 1,
            other => return other,
        }
        std::thread::sleep(RECORD_PAUSE);
    }
}
