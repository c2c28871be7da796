//! A run as the daemon sees it: what it said, in order, and then how it ended.

use super::error::StdinError;
use super::keeper::Keeper;
use super::launcher::Shared;
use super::lost;
use super::outbound::Outbound;
use super::spec::Credit;
use super::spool::Spool;
use super::watch::Watch;
use crate::supervise::protocol::Command;
use crate::supervise::record::{EndedBy, ExitRecord, RunDir, Status, boot_id};
use bytes::Bytes;
use std::time::Duration;
use tokio::process::Child;
use tokio::task::{JoinError, JoinHandle, spawn_blocking};
use tokio::time::{Instant, sleep, sleep_until};

/// How many bytes for the agent's stdin are held while it does not read.
const STDIN_LIMIT: usize = 16 * 1024 * 1024;

/// How many bytes of commands are held; only a supervisor that hangs lets them grow.
const CONTROL_LIMIT: usize = 64 * 1024;

/// How far reading goes at most before it is acknowledged, in bytes; a quarter of a budget that is smaller.
const CREDIT_STEP: u64 = 1024 * 1024;

/// How often a supervisor is looked after when nothing else happens: one that is not our child may be gone, and each may have been
/// stopped by its own agent. To wake it up without asking costs one system call.
const LOOK: Duration = Duration::from_secs(1);

/// From the moment when everything should have been killed to the one when the supervisor itself is: it may wait
/// for processes in uninterruptible sleep and for a full disk.
const SUPERVISOR_LIMIT: Duration = Duration::from_secs(90);

/// The same for a supervisor that is stopped whenever it is looked at.
const STOPPED_LIMIT: Duration = Duration::from_secs(3);

/// What a run says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEvent {
    /// The next bytes of its standard output, at most 256 KiB.
    Stdout(Bytes),
    /// The next bytes of its standard error, at most 256 KiB.
    Stderr(Bytes),
    /// It is over, and all that it wrote was given. Every further call gives this again.
    Ended(ExitRecord),
}

/// Offsets in both spools, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// In the standard output.
    pub stdout: u64,
    /// In the standard error.
    pub stderr: u64,
}

/// One running agent. Dropping it ends nothing: the run goes on and can be [attached](super::Launcher::attach).
pub struct Run {
    dir: RunDir,
    agent: Option<i32>,
    keeper: Keeper,
    watch: Watch,
    stdout: Spool,
    stderr: Spool,
    /// Which spool is read first next time, so that a flood on one does not silence the other.
    stderr_first: bool,
    stdin: Option<Outbound>,
    stdin_closing: bool,
    control: Option<Outbound>,
    credit: Credit,
    credit_step: u64,
    acknowledged: Position,
    credited: Position,
    give_up_at: Option<Instant>,
    /// The supervisor is gone, and what became of the run is being found out.
    settling: Option<JoinHandle<ExitRecord>>,
    ended: Option<ExitRecord>,
}

impl Run {
    /// A view on a run directory, from a position.
    pub(super) fn open(
        shared: &Shared,
        dir: RunDir,
        agent: Option<i32>,
        from: Position,
        credit: Credit,
        spool_budget: u64,
    ) -> Self {
        // Before the first look: what changes afterwards is an event.
        let watch = shared.watcher().watch(dir.path());
        let outbound = |name: &str, limit| Outbound::open(&dir.file(name), limit).ok();
        Self {
            agent,
            keeper: Keeper::Unknown,
            watch,
            stdout: Spool::open(&dir, "stdout", from.stdout),
            stderr: Spool::open(&dir, "stderr", from.stderr),
            stderr_first: false,
            stdin: outbound("stdin", STDIN_LIMIT),
            stdin_closing: false,
            control: outbound("control", CONTROL_LIMIT),
            credit,
            credit_step: (spool_budget / 4).clamp(1, CREDIT_STEP),
            acknowledged: from,
            credited: Position::default(),
            give_up_at: None,
            settling: None,
            ended: None,
            dir,
        }
    }

    /// The run of an earlier daemon. Without a status there is only a record.
    pub(super) fn attached(
        shared: &Shared,
        dir: RunDir,
        status: Option<&Status>,
        from: Position,
        credit: Credit,
    ) -> Self {
        // After a restart of the machine the numbers are other processes'.
        let current = status.filter(|status| status.boot_id == boot_id());
        let agent = current.map(|status| status.agent.pid);
        let budget = status.map_or(0, |status| status.spool_budget);
        let mut run = Self::open(shared, dir, agent, from, credit, budget);
        run.keeper = Keeper::of(current);
        run
    }

    pub(super) fn owning(mut self, supervisor: Child) -> Self {
        self.keeper = Keeper::Child(supervisor);
        self
    }

    /// The agent's process id; `None` for an attached run that never had an agent.
    pub fn pid(&self) -> Option<i32> {
        self.agent
    }

    /// The run directory. Whoever is done with the run removes it ([`RunDir::remove`]).
    pub fn dir(&self) -> &RunDir {
        &self.dir
    }

    /// Where the events that were given so far end.
    pub fn position(&self) -> Position {
        Position { stdout: self.stdout.offset, stderr: self.stderr.offset }
    }

    /// What comes next. Cancel-safe: a call that is dropped loses nothing.
    ///
    /// Also sends what is held for the agent, so it must be called for as long as the run is of interest.
    pub async fn next(&mut self) -> RunEvent {
        loop {
            self.flush();
            if let Some(event) = self.read() {
                return event;
            }
            if let Some(record) = &self.ended {
                return RunEvent::Ended(record.clone());
            }
            if let Some(settling) = &mut self.settling {
                let settled = settling.await;
                self.settling = None;
                self.end_with(settled.unwrap_or_else(|error| unknown(&error)));
                continue;
            }
            if !self.keeper.is_ours() && self.has_ended_by_its_directory() {
                continue;
            }
            let give_up_at = self.give_up_at;
            tokio::select! {
                biased;
                how = self.keeper.ended() => self.settle(how),
                () = self.watch.changed() => {}
                () = writable(self.stdin.as_ref()) => {}
                () = writable(self.control.as_ref()) => {}
                () = sleep(LOOK) => self.look_after_supervisor(),
                () = sleep_until(give_up_at.unwrap_or_else(Instant::now)), if give_up_at.is_some() => {
                    self.give_up_at = None;
                    self.kill_supervisor();
                }
            }
        }
    }

    /// Sends bytes to the agent's stdin, in order; what the agent does not read yet is held, up to 16 MiB.
    ///
    /// # Errors
    /// When the input is closed, or when too much is held; then nothing of `bytes` is sent.
    pub fn write_stdin(&mut self, bytes: &[u8]) -> Result<(), StdinError> {
        match &mut self.stdin {
            Some(stdin) if !self.stdin_closing => stdin.push(bytes),
            _ => Err(StdinError::Closed),
        }
    }

    /// Closes the agent's stdin after everything that was written before.
    pub fn close_stdin(&mut self) {
        self.stdin_closing = true;
        self.flush();
    }

    /// Asks the agent's process group to end, and kills everything of the run that is left after `grace`.
    /// A later call can only shorten the grace.
    pub fn end(&mut self, grace: Duration) {
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        self.command(&Command::End { grace_ms });
        self.keeper.wake();
        self.expect_end_after(grace);
    }

    /// Kills everything of the run at once.
    pub fn kill(&mut self) {
        self.command(&Command::Kill);
        self.keeper.wake();
        self.expect_end_after(Duration::ZERO);
    }

    fn look_after_supervisor(&mut self) {
        // One that should have ended the run by now, and is stopped again and again, will never get to it.
        let overdue =
            self.give_up_at.is_some_and(|at| at - SUPERVISOR_LIMIT + STOPPED_LIMIT < Instant::now());
        if overdue && self.keeper.is_stopped() {
            self.kill_supervisor();
        } else {
            self.keeper.wake();
        }
    }

    /// Up to here everything was dealt with for good: its space can be given back, and the agent may write more.
    /// Only with [`Credit::Explicit`]; never beyond [`position`](Self::position).
    pub fn acknowledge(&mut self, upto: Position) {
        let read = self.position();
        self.acknowledged.stdout = self.acknowledged.stdout.max(upto.stdout.min(read.stdout));
        self.acknowledged.stderr = self.acknowledged.stderr.max(upto.stderr.min(read.stderr));
        self.flush();
    }

    fn expect_end_after(&mut self, grace: Duration) {
        // A grace without bounds is a run without a back-stop.
        let Some(at) = Instant::now().checked_add(grace.saturating_add(SUPERVISOR_LIMIT)) else { return };
        self.give_up_at = Some(self.give_up_at.map_or(at, |earlier| earlier.min(at)));
    }

    fn command(&mut self, command: &Command) {
        let Some(control) = &mut self.control else { return };
        let mut line = serde_json::to_vec(command).expect("a command is plain data");
        line.push(b'\n');
        // Full only when the supervisor hangs, which the back-stop ends; closed only when the run is over.
        let _ = control.push(&line);
    }

    fn flush(&mut self) {
        if let Some(stdin) = &mut self.stdin {
            stdin.flush();
            if self.stdin_closing && stdin.is_empty() {
                // The bytes are in the FIFO, so the supervisor sees them before this command.
                self.stdin = None;
                self.command(&Command::CloseStdin);
            }
        }
        if let Some(control) = &mut self.control {
            control.flush();
        }
        self.send_credit();
    }

    fn send_credit(&mut self) {
        let (upto, step) = match self.credit {
            Credit::OnRead => (self.position(), self.credit_step),
            Credit::Explicit => (self.acknowledged, 1),
        };
        let due = upto.stdout - self.credited.stdout >= step || upto.stderr - self.credited.stderr >= step;
        // One at a time: a later one says all that an earlier one did.
        if due && self.control.as_ref().is_some_and(Outbound::is_empty) {
            self.credited = upto;
            self.command(&Command::Credit { stdout: upto.stdout, stderr: upto.stderr });
        }
    }

    fn read(&mut self) -> Option<RunEvent> {
        let stderr_first = std::mem::replace(&mut self.stderr_first, false);
        if stderr_first && let Some(bytes) = self.stderr.read() {
            return Some(RunEvent::Stderr(bytes));
        }
        if let Some(bytes) = self.stdout.read() {
            self.stderr_first = true;
            return Some(RunEvent::Stdout(bytes));
        }
        if stderr_first {
            return None;
        }
        self.stderr.read().map(RunEvent::Stderr)
    }

    fn end_with(&mut self, record: ExitRecord) {
        self.stdout.end = Some(record.stdout_len);
        self.stderr.end = Some(record.stderr_len);
        (self.stdin, self.control, self.give_up_at) = (None, None, None);
        self.ended = Some(self.with_spool_errors(record));
    }

    fn with_spool_errors(&self, mut record: ExitRecord) -> ExitRecord {
        for (name, spool, length) in
            [("stdout", &self.stdout, record.stdout_len), ("stderr", &self.stderr, record.stderr_len)]
        {
            if let Some(error) = spool.error.as_ref().filter(|_| length > spool.offset) {
                let note = format!("{name} could not be read from byte {}: {error}", spool.offset);
                record.note = Some(record.note.map_or(note.clone(), |earlier| format!("{earlier}; {note}")));
            }
        }
        record
    }

    /// For a supervisor that is not our child: whether there is its record, or it is gone without one.
    fn has_ended_by_its_directory(&mut self) -> bool {
        if let Ok(Some(record)) = self.dir.exit() {
            self.end_with(record);
            return true;
        }
        let gone = matches!(self.dir.is_supervised(), Ok(false));
        if gone {
            self.settle("its lock is free".into());
        }
        gone
    }

    /// The supervisor has ended: looks for its record, or makes a truthful one. Goes on if nobody waits for it.
    fn settle(&mut self, how: String) {
        let dir = self.dir.clone();
        self.settling = Some(spawn_blocking(move || match dir.exit() {
            Ok(Some(record)) => {
                // Beside what follows from it.
                spawn_blocking(move || dir.sync("exit.json"));
                record
            }
            Ok(None) => lost::settle(&dir, &how),
            Err(error) => lost::settle(&dir, &format!("{how}; {error}")),
        }));
    }

    fn kill_supervisor(&mut self) {
        tracing::warn!(run = %self.dir.path().display(), "the supervisor of a run does not end it, and is killed");
        self.keeper.kill();
    }
}

fn unknown(error: &JoinError) -> ExitRecord {
    let mut record = ExitRecord::new(EndedBy::SupervisorLost);
    record.note = Some(format!("what the run left behind is unknown: {error}"));
    record
}

async fn writable(outbound: Option<&Outbound>) {
    match outbound {
        Some(outbound) => outbound.writable().await,
        None => std::future::pending().await,
    }
}
