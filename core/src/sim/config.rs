//! What a simulation is made of: all of it follows from a seed.

use super::fault::{Fault, Faults};
use crate::config::{ClaimMode, Config};
use crate::id::Provider;
use crate::script::{Choose, Seeded};
use std::time::Duration;

/// What is asked of the daemon, and how fast the world is when nothing is wrong. Times in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// Workspaces, 1 to 4.
    pub workspaces: u32,
    /// Agent CLIs of the machine, 1 to 3.
    pub providers: u32,
    /// Agents whose tasks compete: each has at most one task in one claim.
    pub agents: u32,
    /// Mean time between two things that users do.
    pub every: u32,
    /// Tasks that are open at once at most.
    pub open: usize,
    /// Longest run of an agent that works.
    pub run: u32,
    /// Times that an agent says something at most.
    pub says: u32,
    /// Longest way of a request, one way.
    pub latency: u32,
}

/// A bug that is put in on purpose, to see that a sweep finds it. Only the world around the core is broken, never the core.
#[cfg(feature = "canary")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Canary {
    /// The client sends a post of messages again by itself when its answer is lost.
    RetriesPosts,
    /// A report that could not be sent is said to be taken.
    LosesReports,
    /// At its start the daemon is told nothing of what it wrote down, if it runs at all.
    LosesLedger,
}

/// One simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimConfig {
    /// Every decision follows from it.
    pub seed: u64,
    /// Virtual time with faults.
    pub horizon: Duration,
    /// Steps of the core with faults, at most.
    pub steps: u64,
    /// What goes wrong, and how often.
    pub faults: Faults,
    /// What is asked of the daemon.
    pub load: Load,
    /// The daemon's settings.
    pub daemon: Config,
    /// Whether every rule is checked at every step. The comparison of the server's rows with the truth is always made.
    pub rules: bool,
    /// Whether what happened is kept, for [`super::Failure`]. Costs time and memory.
    pub record: bool,
    /// A bug that is put in on purpose.
    #[cfg(feature = "canary")]
    pub canary: Option<Canary>,
}

impl SimConfig {
    /// Nothing goes wrong.
    pub fn calm(seed: u64) -> Self {
        let mut choose = Seeded::new(seed ^ 0x5eed_0001);
        let mut pick = |list: &[u32]| list[choose.below(list.len() as u32) as usize];
        let load = Load {
            workspaces: pick(&[1, 1, 2, 3]),
            providers: pick(&[1, 2, 3]),
            agents: pick(&[1, 3, 8, 20]),
            every: pick(&[500, 2_000, 5_000, 20_000]),
            open: pick(&[4, 12, 40]) as usize,
            run: pick(&[2_000, 20_000, 60_000]),
            says: pick(&[3, 15, 60]),
            latency: pick(&[1, 20, 150]),
        };
        let mut daemon = Config { slots: pick(&[1, 2, 4, 8, 20]) as u16, ..Config::default() };
        daemon.claim_mode = [ClaimMode::Auto, ClaimMode::Auto, ClaimMode::Batch, ClaimMode::PerRuntime]
            [pick(&[0, 1, 2, 3]) as usize];
        if pick(&[0, 0, 1]) == 1 {
            daemon.provider_caps.insert(Provider::new("claude"), pick(&[1, 2]) as u16);
        }
        daemon.gc = pick(&[0, 1]) == 1;
        if daemon.gc && pick(&[0, 1]) == 1 {
            daemon.timers.gc = Duration::from_mins(1);
        }
        Self {
            seed,
            horizon: Duration::from_mins(10),
            steps: 20_000,
            faults: Faults::NONE,
            load,
            daemon,
            rules: true,
            record: false,
            #[cfg(feature = "canary")]
            canary: None,
        }
    }

    /// Everything may go wrong: which kinds, and how often each, follows from the seed. About half of them are left out, so that
    /// what one kind hides from another can be seen.
    pub fn swarm(seed: u64) -> Self {
        let mut cfg = Self::calm(seed);
        let mut choose = Seeded::new(seed ^ 0x5eed_0002);
        let few = choose.one_in(4);
        for fault in Fault::ALL {
            let taken = if few { choose.one_in(6) } else { choose.one_in(2) };
            let scale = [250, 1000, 1000, 3000][choose.below(4) as usize];
            // Whether this server is an old one is decided for its whole life in the weather, so it must be rare.
            if taken && (*fault != Fault::OldServer || choose.one_in(4)) {
                let rate = (u32::from(fault.usual()) * scale / 1000).clamp(1, 900);
                cfg.faults.set(*fault, rate as u16);
            }
        }
        cfg
    }

    /// One kind of fault alone, twice as often as usual.
    pub fn only(fault: Fault, seed: u64) -> Self {
        let mut cfg = Self::calm(seed);
        cfg.faults.set(fault, fault.usual() * 2);
        cfg
    }
}
