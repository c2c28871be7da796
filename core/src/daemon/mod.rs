//! The daemon: all machines, one entry, one exit.

mod access;
mod check;
mod collect;
mod directory;
mod recover;
mod route;
mod stop;
mod view;

pub use check::Broken;
pub use view::{TaskView, View};

use crate::access::Access;
use crate::actions::Actions;
use crate::beats::Beats;
use crate::claim::Claims;
use crate::config::{Config, ConfigError};
use crate::digest::Digest;
use crate::effect::{Effects, ExitCause};
use crate::env::{Cx, Env};
use crate::event::{ClaimKey, Event};
use crate::gc::GcClock;
use crate::id::{RuntimeId, TaskId};
use crate::late::Late;
use crate::link::Link;
use crate::op::Ops;
use crate::paths::PathLocks;
use crate::rng::{Rng, Seed};
use crate::roots::EnvRoots;
use crate::runtimes::Runtimes;
use crate::shutdown::Shutdown;
use crate::task::Task;
use crate::time::{Instant, Now};
use crate::timer::{TimerKey, Timers};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{Hash, Hasher};
use thiserror::Error;

/// Deadlines that one step acts upon at most; the rest stay due, and `next_wakeup` says so.
const TIMERS_PER_STEP: usize = 64;

/// Everything that the daemon knows.
#[derive(Debug, Hash, Serialize, Deserialize)]
struct State {
    cfg: Config,
    now: Now,
    /// How often the clock went back.
    backward: u64,
    env: Env,
    runtimes: Runtimes,
    claims: Claims,
    beats: Beats,
    #[serde(default)]
    actions: Actions,
    link: Link,
    tasks: BTreeMap<ClaimKey, Task>,
    by_id: BTreeMap<TaskId, ClaimKey>,
    by_runtime: BTreeSet<(RuntimeId, ClaimKey)>,
    roots: EnvRoots,
    gc: GcClock,
    #[serde(default)]
    paths: PathLocks,
    late: Late,
    /// Claims whose report waits for the server to be there again.
    unreached: BTreeSet<ClaimKey>,
    /// Tasks whose status is to be looked at once there is room for that.
    look_line: VecDeque<ClaimKey>,
    /// Within a step: access is back, and whether the list told it.
    back: Option<bool>,
    /// Claims of an earlier process whose report was not tried yet in this one: those of their runtimes wait.
    first_reports: BTreeSet<(RuntimeId, ClaimKey)>,
    shutdown: Shutdown,
    /// Whether the control connection was dialled for the first time.
    dialled: bool,
    /// The process ends at the end of this step.
    leaving: Option<ExitCause>,
    exited: bool,
    strays_told: u64,
}

/// The daemon's decisions, as a pure function of what happened.
///
/// Give every event to [`Daemon::handle`], carry out every effect that it writes, and call it with [`Event::Tick`] when the
/// instant of [`Daemon::next_wakeup`] has passed. Nothing else changes the daemon.
#[derive(Debug)]
pub struct Daemon {
    state: State,
}

/// A checkpoint that cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// It is no checkpoint of this version.
    #[error("the checkpoint cannot be read by this version: {0}")]
    Format(#[from] serde_json::Error),
    /// It contradicts itself.
    #[error("the checkpoint contradicts itself: {0}")]
    Broken(#[from] Broken),
}

impl Daemon {
    /// Creates a daemon and starts it: the first effects are in `out`.
    ///
    /// # Errors
    /// If a setting is out of bounds.
    pub fn new(cfg: Config, seed: Seed, now: Now, out: &mut Effects) -> Result<Self, ConfigError> {
        cfg.check()?;
        let claims = Claims::new(&cfg);
        let env = Env {
            ops: Ops::default(),
            timers: Timers::default(),
            rng: Rng::new(seed),
            access: Access::default(),
        };
        let mut state = State {
            cfg,
            now,
            backward: 0,
            env,
            runtimes: Runtimes::default(),
            claims,
            beats: Beats::default(),
            actions: Actions::default(),
            link: Link::default(),
            tasks: BTreeMap::new(),
            by_id: BTreeMap::new(),
            by_runtime: BTreeSet::new(),
            roots: EnvRoots::default(),
            gc: GcClock::default(),
            paths: PathLocks::default(),
            late: Late::default(),
            unreached: BTreeSet::new(),
            look_line: VecDeque::new(),
            back: None,
            first_reports: BTreeSet::new(),
            shutdown: Shutdown::default(),
            dialled: false,
            leaving: None,
            exited: false,
            strays_told: 0,
        };
        let State { cfg, env, runtimes, .. } = &mut state;
        runtimes.start(&mut Cx { now, cfg, env, out });
        Ok(Self { state })
    }

    /// Takes one event and writes what is to be done about it, after what is in `out` already.
    ///
    /// Total: any event at any time; it never blocks or fails. In debug builds a small state is checked after
    /// each step, and a contradiction, which is a bug of this crate, panics. An event that fits nothing is counted and ignored. Deadlines that have
    /// passed are acted upon after the event, so that an answer which comes at its deadline wins. After `Effect::Exit` nothing is.
    pub fn handle(&mut self, now: Now, event: &Event, out: &mut Effects) {
        let slept = self.state.clamp(now);
        if self.state.exited {
            return;
        }
        self.state.route(event, out);
        self.state.catch_up(out);
        if u128::from(slept) >= self.state.cfg.timers.sleep.as_millis().max(1) {
            self.state.woke(slept, out);
        }
        for _ in 0..TIMERS_PER_STEP {
            if self.state.leaving.is_some() {
                break;
            }
            let Some(timer) = self.state.env.timers.pop_due(self.state.now.mono) else { break };
            self.state.due(&timer, out);
        }
        self.state.finish_step(out);
        #[cfg(debug_assertions)]
        if self.state.tasks.len() < 64
            && self.state.env.ops.len() < 512
            && let Err(broken) = self.state.self_check()
        {
            panic!("{broken}");
        }
    }

    /// When the daemon wants to be called again although nothing happened, and why. Never after its exit.
    pub fn next_wakeup(&self) -> Option<(Instant, TimerKey)> {
        if self.state.exited {
            return None;
        }
        self.state.env.timers.next().map(|(at, key)| (at, key.clone()))
    }

    /// What a person or an observer may see.
    pub fn view(&self) -> View<'_> {
        View::of(&self.state)
    }

    /// A hash of the whole state, the same on every machine and in every build: equal for equal histories.
    pub fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        self.state.hash(&mut digest);
        digest.finish()
    }

    /// The whole state as text, for [`Daemon::restore`].
    ///
    /// # Errors
    /// If serialisation fails, which no state is known to make it do.
    pub fn checkpoint(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&self.state)
    }

    /// A daemon as it was at a checkpoint: it does from there what the other did.
    ///
    /// # Errors
    /// If the text is no checkpoint of this version, or contradicts itself.
    pub fn restore(checkpoint: &str) -> Result<Self, RestoreError> {
        let state: State = serde_json::from_str(checkpoint)?;
        state.self_check()?;
        Ok(Self { state })
    }

    /// Checks that every token is where it belongs. O(state).
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn self_check(&self) -> Result<(), Broken> {
        self.state.self_check()
    }
}

impl State {
    /// The core's time never goes back; a clock that does is counted. Returns for how many milliseconds the machine has slept since the last step.
    fn clamp(&mut self, now: Now) -> u64 {
        let before = self.now.slept;
        self.backward += u64::from(self.now.advance(now));
        self.now.slept - before
    }
}
