//! How a daemon is created: with this and a script its whole life is known.

#[cfg(feature = "canary")]
use super::bug::Bug;
use super::world::World;
use crate::config::Config;
use crate::rng::Seed;
use crate::time::Now;
use crate::trace::Header;

/// The creation of a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// Its settings.
    pub config: Config,
    /// Seed of its generator.
    pub seed: Seed,
    /// The adapter's clocks.
    pub now: Now,
    /// A bug that is put between the core and all that is around it.
    #[cfg(feature = "canary")]
    pub bug: Option<Bug>,
}

impl Start {
    /// At the time at which worlds begin.
    pub fn new(config: Config, seed: Seed) -> Self {
        Self {
            config,
            seed,
            now: World::default().now(),
            #[cfg(feature = "canary")]
            bug: None,
        }
    }

    /// As the header of a trace says.
    pub fn of(header: &Header) -> Self {
        Self { now: header.start, ..Self::new(header.config.clone(), header.seed) }
    }
}
